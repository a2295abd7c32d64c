//! Any server: the steps of a delivery, one by one, over `std::net` alone. The core needs no http
//! crate and no async runtime.
//!
//! ```sh
//! WEBHOOK_SECRET=whsec_$(openssl rand -hex 16) cargo run --example custom_server --no-default-features
//! ```
//!
//! docs/own-server.md explains the five steps; docs/try-it.md shows how to deliver to it. A handler
//! that fails or panics releases its claim, so that the next attempt runs again, and the lease is
//! renewed while it runs. `WORK_MS=20000` makes the handler take that long. The HTTP here is as
//! small as an example allows: one request for each connection, and a body with a length.

#![allow(clippy::print_stdout)] // an example prints for its user

use std::env;
use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use hookgate::outcome::one_line;
use hookgate::{
    Delivery, Event, MemoryStore, Receiver, Refusal, Secret, block_on,
    dedupe::Ownership,
    receiver::{Admission, Claim, RequestHead},
};

/// The time for which an event stays claimed if this process is killed while it handles the event.
const LEASE: Duration = Duration::from_secs(3);

/// The greatest length of a request's line and headers, in bytes.
const MAX_HEAD: u64 = 16 * 1024;
/// The greatest number of bytes of a refused body that are read, so that the answer arrives.
const MAX_UNREAD: u64 = 64 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let receiver = Receiver::builder()
        .secret(Secret::from_env("WEBHOOK_SECRET")?)
        .store(MemoryStore::default())
        .lease(LEASE)
        .build()?;
    let address = env::var("ADDR").unwrap_or_else(|_| "127.0.0.1:8787".into());
    let listener = TcpListener::bind(&address)
        .map_err(|error| format!("can't listen on {address}: {error}"))?;
    println!("listening on http://{}/webhooks", listener.local_addr()?);
    for stream in listener.incoming() {
        let (stream, receiver) = (stream?, receiver.clone());
        std::thread::spawn(move || {
            // An error here is a connection that broke.
            let _ = serve(stream, &receiver);
        });
    }
    Ok(())
}

fn serve(mut stream: TcpStream, receiver: &Receiver) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let request = Request::read(&mut reader)?;
    let answer = match receive(receiver, &request, &mut reader)? {
        Ok(answer) => answer.to_owned(),
        Err(refusal) => {
            // The reason is for the operator; the sender gets only a status.
            println!("{refusal:#}");
            if let Some(id) = refusal.claimed_subscription() {
                println!("  it claims to come from the subscription {id}, which is unproven");
            }
            format!("{} Refused", refusal.kind().status())
        }
    };
    write!(
        stream,
        "HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    )?;
    // Closing with unread bytes would reset the connection, and the sender could lose the answer.
    stream.shutdown(Shutdown::Write)?;
    io::copy(&mut reader.take(MAX_UNREAD), &mut io::sink())?;
    Ok(())
}

/// Receives a delivery: check the head, push the body, verify, admit, handle, commit.
fn receive(
    receiver: &Receiver,
    request: &Request,
    body: &mut impl Read,
) -> io::Result<Result<&'static str, Refusal>> {
    let head = RequestHead::new(&request.method, request.headers());
    let mut received = match receiver.check_head(&head) {
        Ok(received) => received,
        Err(refusal) => return Ok(Err(refusal)), // before a byte of the body is read
    };
    let mut body = body.take(request.body_bytes());
    let mut chunk = vec![0; 8 * 1024];
    loop {
        let length = match body.read(&mut chunk)? {
            0 => break,
            length => length,
        };
        if let Err(too_large) = received.push(chunk[..length].to_vec().into()) {
            return Ok(Err(too_large.into()));
        }
    }
    Ok(receiver.verify(received, &head).and_then(|delivery| {
        match block_on(receiver.admit(&delivery))? {
            Admission::Fresh(claim) => Ok(run(claim, &delivery)),
            Admission::Replayed { .. } => Ok("200 OK"),
            Admission::Running { .. } => Ok("503 Service Unavailable"),
        }
    }))
}

/// Handles an event that is claimed, and ends the claim: commit after a success, release after a
/// failure.
fn run(claim: Claim, delivery: &Delivery) -> &'static str {
    // A panic is a failure like any other. Without the release, the event would stay claimed until
    // the lease ends.
    let handled = renewing(&claim, || {
        catch_unwind(AssertUnwindSafe(|| handle(delivery)))
            .unwrap_or_else(|_| Err("the handler panicked".into()))
    });
    let (ended, answer) = match handled {
        // A commit that fails costs a second run at worst; any answer but 2xx costs one for
        // certain.
        Ok(()) => (block_on(claim.commit()), "204 No Content"),
        Err(error) => {
            println!("{} failed: {}", delivery.event_id(), one_line(&*error));
            (block_on(claim.release()), "500 Internal Server Error")
        }
    };
    match ended {
        Ok(Ownership::Held) => {}
        Ok(Ownership::Lost) => println!("{}: the lease was lost", delivery.event_id()),
        Err(error) => println!("{}: {}", delivery.event_id(), one_line(&error)),
    }
    answer
}

fn handle(delivery: &Delivery) -> Result<(), Box<dyn Error>> {
    let event: Event = delivery.event()?;
    println!("{} {}", event.id, event.event_type());
    if let Ok(millis) = env::var("WORK_MS") {
        std::thread::sleep(Duration::from_millis(millis.parse()?));
    }
    Ok(())
}

/// Renews the lease after each third of it, in another thread, for as long as `work` runs.
fn renewing<T>(claim: &Claim, work: impl FnOnce() -> T) -> T {
    let (done, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while ended.recv_timeout(LEASE / 3) == Err(RecvTimeoutError::Timeout) {
                // A renewal that fails decides nothing: the next one may succeed.
                if let Ok(Ownership::Lost) = block_on(claim.renew()) {
                    return; // another run may have begun, and the effects of this one can't be stopped
                }
            }
        });
        let result = work();
        drop(done);
        result
    })
}

struct Request {
    method: String,
    headers: Vec<(String, String)>,
}

impl Request {
    fn read(reader: &mut impl BufRead) -> io::Result<Self> {
        let mut lines = reader.take(MAX_HEAD).lines();
        let mut next = || {
            lines
                .next()
                .unwrap_or(Err(io::ErrorKind::UnexpectedEof.into()))
        };
        let method = next()?.split(' ').next().unwrap_or_default().to_owned();
        let mut headers = Vec::new();
        loop {
            let line = next()?;
            if line.is_empty() {
                return Ok(Self { method, headers });
            }
            let (name, value) = line.split_once(':').ok_or(io::ErrorKind::InvalidData)?;
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    /// Returns all headers as received, duplicate ones too.
    fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(name, value)| (&**name, &**value))
    }

    fn body_bytes(&self) -> u64 {
        self.headers()
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .and_then(|(_, value)| value.parse().ok())
            .unwrap_or(0)
    }
}
