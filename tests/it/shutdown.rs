//! The end of a server as docs/handlers.md shows it, while clients hold connections open and a run
//! goes on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use hookgate::{Delivery, MemoryStore, Receiver, Secret};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use crate::process::{row_created, signed};
use crate::support::PATIENCE;

const SECRET: &str = "whsec_made_up_for_the_end_of_a_server";
const LIMIT: Duration = Duration::from_millis(500);

/// A client that sends this delivery without its last `missing` bytes.
async fn client(address: &str, id: &str, missing: usize) -> TcpStream {
    let body = row_created(id, "{}");
    let mut text = format!(
        "POST /webhooks HTTP/1.1\r\nhost: example\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in signed(SECRET, &body, 0) {
        text += &format!("{name}: {value}\r\n");
    }
    text += &format!("\r\n{body}");
    begin(address, &text.as_bytes()[..text.len() - missing]).await
}

async fn begin(address: &str, text: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text).await.unwrap();
    stream
}

#[tokio::test]
async fn a_server_ends_in_time_with_connections_held_open_and_reports_its_runs() {
    let (began, failed) = (Arc::new(Notify::new()), Arc::new(Mutex::new(Vec::new())));
    let (begins, fails) = (Arc::clone(&began), Arc::clone(&failed));
    let store = MemoryStore::default();
    let builder = || {
        let secret = Secret::new(SECRET).unwrap();
        Receiver::builder().secret(secret).store(store.clone())
    };
    let receiver = builder()
        .on_failed(move |run| {
            let delivery = run.delivery.as_ref().unwrap();
            let report = (delivery.event_id().to_owned(), run.to_string());
            fails.lock().unwrap().push(report);
        })
        .build()
        .unwrap();
    let on_delivery = async move |_: Delivery| {
        begins.notify_one();
        sleep(PATIENCE * 4).await;
        StatusCode::OK
    };
    let app = Router::new().route("/webhooks", post(on_delivery).layer(receiver.layer()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (send_stop, stopping) = watch::channel(false);
    let served = tokio::spawn(async move {
        let stop_signal = || {
            let mut stopping = stopping.clone();
            async move { drop(stopping.wait_for(|stop| *stop).await) }
        };
        let server = axum::serve(listener, app).with_graceful_shutdown(stop_signal());
        tokio::select! {
            served = server.into_future() => served.unwrap(),
            () = async { stop_signal().await; sleep(LIMIT).await } => {}
        }
        receiver.drain(LIMIT).await
    });

    let running = client(&address, "evt_running", 0).await;
    timeout(PATIENCE, began.notified()).await.unwrap();
    let mut idle = begin(&address, b"GET /webhooks HTTP/1.1\r\nhost: example\r\n\r\n").await;
    assert!(idle.read(&mut [0; 1_024]).await.unwrap() > 0);
    let half_a_head = begin(&address, b"POST /w HTTP/1.1\r\nHo").await;
    let half_a_body = client(&address, "evt_half", 9).await;
    // A client of HTTP/2 that answers no ping.
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let mut http2 = begin(&address, preface).await;
    assert!(http2.read(&mut [0; 1_024]).await.unwrap() > 0);

    send_stop.send(true).unwrap();
    // Twice the limit, and a second for the release: far below the time that the handler takes.
    let aborted = timeout(PATIENCE, served).await.unwrap().unwrap();
    assert_eq!(aborted, 1);
    let failed = failed.lock().unwrap().clone();
    assert_eq!(failed, [("evt_running".to_owned(), "drained".to_owned())]);
    drop((running, idle, half_a_head, half_a_body, http2));

    // The claim was released: the sender's next attempt runs at once.
    let body = row_created("evt_running", "{}");
    let mut request = http::Request::post("/webhooks");
    for (name, value) in signed(SECRET, &body, 0) {
        request = request.header(name, value);
    }
    let request = request.body(axum::body::Body::from(body)).unwrap();
    let next = builder().build().unwrap();
    let answer = next
        .handle(request, async |_: Delivery| StatusCode::CREATED)
        .await;
    assert_eq!(answer.status(), StatusCode::CREATED);
}
