//! The same rules over HTTP/2.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::middleware::{Next, from_fn};
use bytes::Bytes;
use h2::client::SendRequest;
use http::{Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::*;

pub(crate) async fn connect(server: &Server) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(async move {
        let _ = connection.await;
    });
    client.ready().await.unwrap()
}

pub(crate) fn head(sent: &Sent, server: &Server) -> Request<()> {
    let mut request = sent.request_with(());
    *request.version_mut() = http::Version::HTTP_2;
    *request.uri_mut() = format!("http://{}{}", server.address, sent.path)
        .parse()
        .unwrap();
    request
}

pub(crate) async fn ask_h2(
    client: &mut SendRequest<Bytes>,
    sent: &Sent,
    server: &Server,
) -> Received {
    let (answer, mut body) = client.send_request(head(sent, server), false).unwrap();
    // Refused by its head, the stream may be closed before the body is sent.
    let _ = body.send_data(sent.body.clone().into(), true);
    got(timeout(PATIENCE, answer).await.expect("an answer").unwrap()).await
}

async fn got(response: Response<h2::RecvStream>) -> Received {
    let (parts, mut stream) = response.into_parts();
    let mut body = Vec::new();
    while let Some(Ok(chunk)) = stream.data().await {
        body.extend_from_slice(&chunk);
    }
    Received {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body: body.into(),
    }
}

// fault S2-40: HTTP/2 by other rules, floods of empty frames
#[tokio::test]
async fn over_http2_a_good_delivery_runs_and_its_copy_does_not() {
    let receiver = receiver().build().unwrap();
    let probe = Probe::new();
    let server = Server::start(app(&receiver, &probe)).await;
    let mut client = connect(&server).await;
    let sent = Sent::new(event("evt_1"));
    assert_eq!(ask_h2(&mut client, &sent, &server).await.status, 204);
    assert!(ask_h2(&mut client, &sent, &server).await.is_replay());
    let get = ask_h2(&mut client, &sent.by("GET"), &server).await;
    assert_eq!(get.status, 405);
    assert_eq!(probe.started(), 1);
}

// fault S2-13: headers doubled, comma-joined, folded, in trailers
// fault S16: the first of two headers wins in silence
#[tokio::test]
async fn over_http2_repeated_headers_are_refused() {
    let store = CountingStore::default();
    let receiver = receiver().store(store.clone()).build().unwrap();
    let probe = Probe::new();
    let server = Server::start(app(&receiver, &probe)).await;
    let mut client = connect(&server).await;
    let sent = Sent::new(event("evt_1"));
    for name in ["X-Service-Signature", "X-Service-Timestamp"] {
        let doubled = sent.clone().with(name, sent.header(name));
        let refused = ask_h2(&mut client, &doubled, &server).await;
        assert_eq!(refused.status, 401, "{name}");
    }
    assert_eq!((probe.started(), store.calls()), (0, 0));
}

// fault S2-13: headers doubled, comma-joined, folded, in trailers
#[tokio::test]
async fn over_http2_trailers_never_count() {
    let receiver = receiver().build().unwrap();
    let probe = Probe::new();
    let server = Server::start(app(&receiver, &probe)).await;
    let mut client = connect(&server).await;
    let sent = Sent::new(event("evt_1"));
    let trailers = sent.request_with(()).headers().clone();
    let unsigned = sent.clone().without("X-Service-Signature");
    for (head_of, status) in [(unsigned, 401), (sent.clone(), 204)] {
        let (answer, mut body) = client.send_request(head(&head_of, &server), false).unwrap();
        let _ = body.send_data(sent.body.clone().into(), false);
        let _ = body.send_trailers(trailers.clone());
        let answer = timeout(PATIENCE, answer).await.unwrap().unwrap();
        assert_eq!(answer.status(), status);
    }
    assert_eq!(probe.started(), 1);
}

struct CountsItsEnd(Arc<AtomicUsize>);

impl Drop for CountsItsEnd {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

// fault S2-34: the sender hangs up amid the run
#[tokio::test]
async fn a_stream_reset_amid_the_run_loses_nothing() {
    let settled = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&settled);
    let receiver = receiver()
        .on_settled(move |run| {
            assert!(run.late);
            counted.fetch_add(1, Ordering::SeqCst);
        })
        .build()
        .unwrap();
    let probe = Probe::new().hold();
    let ended = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ended);
    let watch = from_fn(move |request: axum::extract::Request, next: Next| {
        let end = CountsItsEnd(Arc::clone(&counted));
        async move {
            let _end = end;
            next.run(request).await
        }
    });
    let server = Server::start(app(&receiver, &probe).layer(watch)).await;
    let mut client = connect(&server).await;
    let sent = Sent::new(event("evt_1"));
    let (answer, mut body) = client.send_request(head(&sent, &server), false).unwrap();
    body.send_data(sent.body.clone().into(), true).unwrap();
    eventually("the run begins", || probe.started() == 1).await;
    body.send_reset(h2::Reason::CANCEL);
    drop((answer, body));
    eventually("the server notices", || ended.load(Ordering::SeqCst) == 1).await;
    assert_eq!(receiver.runs(), 1, "the run goes on");
    probe.let_go();
    eventually("the run settles", || settled.load(Ordering::SeqCst) == 1).await;
    assert!(ask_h2(&mut client, &sent, &server).await.is_replay());
    assert_eq!((probe.started(), probe.finished()), (1, 1));
}

// fault S2-40: HTTP/2 by other rules, floods of empty frames
#[tokio::test]
async fn a_flood_of_empty_frames_ends_with_the_deadline_at_the_latest() {
    let receiver = receiver().build().unwrap();
    let probe = Probe::new();
    let server = Server::start(app(&receiver, &probe)).await;
    let mut client = connect(&server).await;
    let sent = Sent::new(event("evt_1"));
    let (answer, mut body) = client.send_request(head(&sent, &server), false).unwrap();
    let flood = async {
        loop {
            for _ in 0..50 {
                if body.send_data(Bytes::new(), false).is_err() {
                    return;
                }
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let ended = async {
        tokio::select! {
            answer = answer => answer.map(|answer| answer.status().as_u16()).ok(),
            () = flood => None,
        }
    };
    // Either the server's own protection against such floods ends the connection, or our deadline
    // the request.
    if let Some(status) = timeout(PATIENCE, ended).await.expect("an end") {
        assert_eq!(status, 408);
    }
    assert_eq!(probe.started(), 0);
    let mut other = connect(&server).await;
    assert_eq!(
        ask_h2(&mut other, &sent, &server).await.status,
        204,
        "others go on"
    );
}

/// A frame of HTTP/2 (RFC 9113 §4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// A header field without indexing and without Huffman coding (RFC 7541 §6.2.2).
fn field(name: &str, value: &str) -> Vec<u8> {
    let mut field = vec![0];
    for text in [name, value] {
        assert!(text.len() < 127);
        field.push(u8::try_from(text.len()).unwrap());
        field.extend_from_slice(text.as_bytes());
    }
    field
}

// fault S2-40: HTTP/2 by other rules, floods of empty frames
#[tokio::test]
async fn names_in_upper_case_are_no_http2_and_never_run() {
    let receiver = receiver().build().unwrap();
    let probe = Probe::new();
    let server = Server::start(app(&receiver, &probe)).await;
    let sent = Sent::new(event("evt_1"));
    for (upper, runs) in [(true, 0), (false, 1)] {
        let mut block = Vec::new();
        for (name, value) in [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", "/hook"),
            (":authority", "localhost"),
        ] {
            block.extend(field(name, value));
        }
        for (name, value) in &sent.headers {
            let name = if upper {
                name.clone()
            } else {
                name.to_lowercase()
            };
            block.extend(field(&name, std::str::from_utf8(value).unwrap()));
        }
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        bytes.extend(frame(4, 0, 0, &[])); // SETTINGS
        bytes.extend(frame(1, 4, 1, &block)); // HEADERS, END_HEADERS
        bytes.extend(frame(0, 1, 1, &sent.body)); // DATA, END_STREAM
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
        // Until the server says something of stream 1, or goes away.
        let said = async {
            let mut head = [0; 9];
            while stream.read_exact(&mut head).await.is_ok() {
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
                let mut payload = vec![0; length];
                stream.read_exact(&mut payload).await.unwrap();
                if head[8] == 1 || head[3] == 7 {
                    return Some(head[3]);
                }
            }
            None
        };
        let said = timeout(PATIENCE, said).await.expect("an answer or the end");
        assert_eq!(said == Some(1), !upper, "frame {said:?}");
        assert_eq!(probe.started(), runs);
    }
}
