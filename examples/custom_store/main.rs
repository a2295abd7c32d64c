//! A store of your own: handled events are still known after a restart, since each commit is a line in `STORE_FILE`.
//!
//! ```sh
//! export STORE_FILE=/tmp/handled WEBHOOK_SECRET=whsec_made_up_for_local_tries
//! cargo run --example custom_store
//! ```
//!
//! docs/try-it.md shows how to deliver to it: deliver, restart it, deliver the same event again, and see it answered as a replay.
//! `tests/it/examples.rs` runs the conformance suite over the store, as a test of yours should.

#![allow(clippy::print_stdout)] // an example prints for its user

mod store;

use std::env;
use std::error::Error;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use hookgate::{Delivery, Receiver, Secret, SystemClock};

async fn on_delivery(delivery: Delivery) -> StatusCode {
    println!("{} {}", delivery.event_id(), delivery.event_type());
    StatusCode::NO_CONTENT
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = env::var("STORE_FILE").map_err(|error| format!("STORE_FILE: {error}"))?;
    let receiver = Receiver::builder()
        .secret(Secret::from_env("WEBHOOK_SECRET")?)
        .store(store::FileStore::open(path, SystemClock)?)
        .build()?;
    let app = Router::new().route("/webhooks", post(on_delivery).layer(receiver.layer()));
    let address = env::var("ADDR").unwrap_or_else(|_| "127.0.0.1:8787".into());
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .map_err(|error| format!("can't listen on {address}: {error}"))?;
    println!("listening on http://{}/webhooks", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
