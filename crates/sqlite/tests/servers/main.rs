//! The inbox and the claims on SQLite: its file in several processes, on a full disk, under a lock,
//! killed, and with a clock that is set.
//!
//! Where a program that a test needs is missing, the test prints that and is left out;
//! `scripts/test` installs missing programs, and sets `HOOKGATE_REQUIRE_TOOLS`, with which no test
//! is left out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // a failed expectation must stop the test
#![allow(unreachable_pub, missing_debug_implementations)] // a test has no API
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // The numbers are the tests' own.
#![cfg(unix)]

mod claims;
mod clock;
mod crash;
mod durable;
mod effects;
mod examples;
mod faults;
mod full;
mod opening;
mod order;
mod two_processes;

// Shared with the tests of the workspace.
#[allow(dead_code)]
#[path = "../../../../tests/it/process.rs"]
mod process;
#[allow(dead_code)]
mod support;

use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use axum::routing::post_service;
use hookgate::{Delivery, Receiver, Secret, receiver::RequestHead};
use hookgate_inbox::Inbox;
use hookgate_testing::Signer;
use rusqlite::Connection;
use tower::ServiceExt;

use support::until;

/// The retention that the sender's retries require.
const RETAIN: Duration = Duration::from_secs(48 * 3_600);

fn secret() -> Secret {
    Secret::new("whsec_made_up_for_the_inbox").unwrap()
}

fn receiver() -> Receiver {
    let builder = Receiver::builder().secret(secret());
    builder.without_deduplication().build().unwrap()
}

fn body(id: &str) -> String {
    format!(r#"{{"id":"{id}","type":"page.created","data":{{}}}}"#)
}

/// A delivery that a receiver has recognised.
fn delivery(receiver: &Receiver, id: &str) -> Delivery {
    delivery_of(receiver, body(id))
}

fn delivery_of(receiver: &Receiver, body: String) -> Delivery {
    let headers = Signer::new(secret()).headers(&body);
    let head = RequestHead::new("POST", headers.iter().map(|(name, value)| (*name, value)));
    let mut received = receiver.check_head(&head).unwrap();
    received.push(body.into()).unwrap();
    receiver.verify(received, &head).unwrap()
}

/// An app that verifies, stores, and answers.
fn app(inbox: &Inbox) -> Router {
    let builder = Receiver::builder().secret(secret());
    let acceptor = builder.accept_into(inbox.clone()).unwrap();
    Router::new().route("/", post_service(acceptor))
}

/// The app's answer to an event.
async fn deliver(app: &Router, id: &str) -> StatusCode {
    let request = Signer::new(secret()).request("/", body(id));
    let answer = app.clone().oneshot(request.map(Body::from)).await;
    answer.unwrap().status()
}

/// Waits for a file that another process writes.
async fn written(file: PathBuf) -> String {
    until(file.display(), async || {
        std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n'))
    })
    .await;
    std::fs::read_to_string(&file).unwrap()
}

fn write(file: impl AsRef<Path>, text: &str) {
    // Whole or not at all, for every reader meanwhile.
    let new = file.as_ref().with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, file).unwrap();
}

/// Copies the database into a file, as for a backup.
fn back_up(file: &Path, backup: &Path) {
    let outside = Connection::open(file).unwrap();
    let into = format!("VACUUM INTO '{}'", backup.display());
    outside.execute_batch(&into).unwrap();
}

/// How many deliveries wait in a file, which is closed again.
async fn queued_in(file: &Path) -> u64 {
    let inbox = hookgate_sqlite::open_inbox(file).unwrap();
    let queued = inbox.stats().await.unwrap().queued;
    inbox.close().await;
    queued
}
