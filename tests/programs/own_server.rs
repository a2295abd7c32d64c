//! A server of your own on plain TCP, with no feature of hookgate. `/check` answers only whether
//! its bytes are authentic; every other path takes the delivery to its end: claim, renew while the
//! work goes on, then commit or release.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use hookgate::{
    Delivery, Event, MemoryStore, Receiver, Refusal, Secret, Verifier, block_on,
    clock::{Clock, SystemClock},
    dedupe::Ownership,
    receiver::{Admission, Claim, RequestHead},
    verify::{DeliveryHeaders, VerifyError},
};
use hookgate_testing::{EventFactory, SampleEvent, Signer};

type Headers = Vec<(String, String)>;

fn pairs(headers: &Headers) -> impl Iterator<Item = (&str, &str)> {
    headers.iter().map(|(name, value)| (&**name, &**value))
}

/// The one question: are these bytes authentic and fresh?
fn check(verifier: &Verifier, headers: &Headers, body: &[u8]) -> Result<(), VerifyError> {
    let head = DeliveryHeaders::from_pairs(pairs(headers))?;
    verifier.verify(&head, body, SystemClock.now()).map(drop)
}

/// Every step up to the claim.
fn admit(
    receiver: &Receiver,
    method: &str,
    headers: &Headers,
    body: Vec<u8>,
) -> Result<(Delivery, Admission), Refusal> {
    let head = RequestHead::new(method, pairs(headers)); // those of the request, all of them
    let mut received = receiver.check_head(&head)?;
    received.push(body.into())?;
    let delivery = receiver.verify(received, &head)?;
    let admission = block_on(receiver.admit(&delivery))?;
    Ok((delivery, admission))
}

/// The work of an event that is claimed. The answer follows from the work alone: a commit that
/// fails costs a second run at worst.
fn run(claim: Claim, delivery: &Delivery) -> u16 {
    match work(&claim, delivery) {
        Ok(()) => {
            let _ = block_on(claim.commit());
            204
        }
        Err(error) => {
            eprintln!("{}: {error}", delivery.event_id());
            let _ = block_on(claim.release()); // the next attempt runs at once, and not when the lease ends
            500
        }
    }
}

fn work(claim: &Claim, delivery: &Delivery) -> Result<(), Box<dyn Error>> {
    let event: Event = delivery.event()?;
    // Long work renews after each third of the lease, and stops where another process has the
    // event.
    if block_on(claim.renew())? == Ownership::Lost {
        return Err("the lease was lost".into());
    }
    if event.event_type() == "row.deleted" {
        Err("no row is ever deleted here".into())
    } else {
        Ok(())
    }
}

/// Answers one request of a client that is well behaved.
fn serve(
    mut stream: TcpStream,
    receiver: &Receiver,
    verifier: &Verifier,
) -> Result<(), Box<dyn Error>> {
    let mut lines = BufReader::new(stream.try_clone()?.take(1 << 20));
    let mut first = String::new();
    lines.read_line(&mut first)?;
    let mut headers = Headers::new();
    let mut line = String::new();
    while lines.read_line(&mut line)? > 2 {
        let (name, value) = line.split_once(':').ok_or("a line that is not a header")?;
        headers.push((name.to_lowercase(), value.trim().to_owned()));
        line.clear();
    }
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .ok_or("no length")?;
    let mut body = vec![0; length.1.parse::<u16>()?.into()];
    lines.read_exact(&mut body)?;
    let status = if first.starts_with("POST /check ") {
        check(verifier, &headers, &body).map_or(401, |()| 200)
    } else {
        let method = first.split(' ').next().unwrap_or_default();
        match admit(receiver, method, &headers, body) {
            Ok((delivery, Admission::Fresh(claim))) => run(claim, &delivery),
            Ok((_, Admission::Replayed { .. })) => 200,
            Ok((_, Admission::Running { .. })) => 503,
            Err(refusal) => refusal.kind().status(),
        }
    };
    Ok(write!(
        stream,
        "HTTP/1.1 {status} \r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    )?)
}

/// The sender's part.
fn deliver(
    server: SocketAddr,
    path: &str,
    signer: &Signer,
    event: &SampleEvent,
) -> Result<String, Box<dyn Error>> {
    let (body, mut stream) = (event.to_json(), TcpStream::connect(server)?);
    write!(
        stream,
        "POST {path} HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
        body.len()
    )?;
    for (name, value) in signer.headers(&body) {
        write!(stream, "{name}: {value}\r\n")?;
    }
    write!(stream, "\r\n{body}")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.split(' ').nth(1).unwrap_or_default().to_owned())
}

pub fn main() -> Result<(), Box<dyn Error>> {
    let secret = Secret::new("whsec_made_up_for_a_server")?;
    let verifier = Verifier::new(secret.clone());
    let receiver = Receiver::builder()
        .secret(secret.clone())
        .store(MemoryStore::default())
        .build()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let server = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if let Err(error) = serve(stream, &receiver, &verifier) {
                eprintln!("{error}");
            }
        }
    });

    let (events, ours) = (EventFactory::new(), Signer::new(secret));
    let forger = Signer::new(Secret::new("whsec_made_up_by_a_forger")?);
    let (created, deleted) = (events.row_created(), events.row_deleted());
    assert_eq!(deliver(server, "/check", &ours, &created)?, "200");
    assert_eq!(deliver(server, "/check", &forger, &created)?, "401");
    assert_eq!(deliver(server, "/webhooks", &forger, &created)?, "401");
    assert_eq!(deliver(server, "/webhooks", &ours, &created)?, "204");
    assert_eq!(deliver(server, "/webhooks", &ours, &created)?, "200");
    assert_eq!(deliver(server, "/webhooks", &ours, &deleted)?, "500");
    assert_eq!(deliver(server, "/webhooks", &ours, &deleted)?, "500"); // released, so it ran again
    Ok(())
}
