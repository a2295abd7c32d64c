//! Any server: the steps of a delivery, one by one, over `std::net` alone. The core needs no http crate and no async runtime.
//!
//! ```sh
//! WEBHOOK_SECRET=whsec_made_up_for_local_tries cargo run --example custom_server --no-default-features
//! ```
//!
//! docs/try-it.md shows how to deliver to it. The HTTP here is as small as an example allows: one request for each connection,
//! and a body with a length.

#![allow(clippy::print_stdout)] // an example prints for its user

use std::env;
use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use hookgate::{Admission, MemoryStore, Receiver, Refusal, RequestHead, Secret, block_on};

/// The greatest length of a request's line and headers, in bytes.
const MAX_HEAD: u64 = 16 * 1024;
/// The greatest number of bytes of a refused body that are read, so that the answer arrives.
const MAX_UNREAD: u64 = 64 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let receiver = Receiver::builder()
        .secret(Secret::from_env("WEBHOOK_SECRET")?)
        .store(MemoryStore::default())
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
            println!("{refusal}");
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

/// Receives a delivery: open on the head, push the body, recognise, admit, handle, commit.
fn receive(
    receiver: &Receiver,
    request: &Request,
    body: &mut impl Read,
) -> io::Result<Result<&'static str, Refusal>> {
    let head = RequestHead::new(&request.method, request.headers());
    let mut intake = match receiver.open(&head) {
        Ok(intake) => intake,
        Err(refusal) => return Ok(Err(refusal)), // before a byte of the body is read
    };
    let mut body = body.take(request.body_bytes());
    let mut chunk = vec![0; 8 * 1024];
    loop {
        let length = match body.read(&mut chunk)? {
            0 => break,
            length => length,
        };
        if let Err(too_large) = intake.push(chunk[..length].to_vec().into()) {
            return Ok(Err(too_large.into()));
        }
    }
    Ok(receiver.recognise(intake, &head).and_then(|delivery| {
        match block_on(receiver.admit(&delivery))? {
            Admission::Fresh(claim) => {
                println!("{} {}", delivery.event_id(), delivery.event_type());
                // The event is handled: a commit that fails costs a second run at worst; any answer but 2xx costs one for
                // certain.
                let _ = block_on(claim.commit());
                Ok("204 No Content")
            }
            Admission::Replayed { .. } => Ok("200 OK"),
            Admission::Running { .. } => Ok("503 Service Unavailable"),
        }
    }))
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
