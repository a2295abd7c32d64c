//! Transports: others by a service, and the connections of the default one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hookgate_client::{ApiKey, Client, ErrorKind};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{Fake, answer};

#[tokio::test]
async fn any_tower_service_can_carry_the_requests() {
    let fake = Fake::answering([answer(200, None, r#"{"data": {"title": "Home"}}"#)]);
    assert_eq!(fake.client().page("page_1").await.unwrap()["title"], "Home");
    assert_eq!(*fake.seen.lock().unwrap(), ["GET /api/v1/pages/page_1"]);
}

/// Returns the connections that two requests used, with this time between them.
async fn connections(idle: Duration, pause: Duration) -> usize {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/api/v1", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut request = [0; 4096];
                while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{\"data\": 1}";
                    stream.write_all(answer).await.unwrap();
                }
            });
        }
    });
    let key = ApiKey::new("tk_test_made_up").unwrap();
    let client = Client::builder(&url, key).idle_timeout(idle);
    let client = client.build().unwrap();
    client.page("page_1").await.unwrap();
    tokio::time::sleep(pause).await;
    client.page("page_1").await.unwrap();
    count.load(Ordering::SeqCst)
}

#[tokio::test]
async fn a_connection_that_was_idle_for_too_long_is_not_used_again() {
    let pause = Duration::from_millis(100);
    assert_eq!(connections(Duration::from_secs(30), pause).await, 1);
    assert_eq!(connections(Duration::from_millis(20), pause).await, 2);
}

// fault K5: an answer that is too long is told as a broken connection, and asked for five times
#[tokio::test]
async fn an_answer_that_is_too_long_is_told_and_not_asked_for_again() {
    let fake = Fake::answering([answer(200, None, &" ".repeat((64 << 20) + 1))]);
    let client = fake.client();
    let error = client.page("page_1").await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Answer, 1));
    assert!(error.message().contains("64 MiB"), "{error}");
    assert!(!error.is_outcome_unknown(), "{error}");
    // A change may have been made.
    let rows = client.rows::<Value>("dm_x").by_id();
    let error = rows.create(&json!({ "prop_1": 1 })).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Answer, 1));
    assert!(error.is_outcome_unknown(), "{error}");
}
