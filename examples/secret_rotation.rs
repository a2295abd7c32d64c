//! A new secret without a restart and without a lost delivery: `SECRETS_FILE` has the live secrets,
//! the newest first, and is read again every second. A line is a name, a space and the secret.
//!
//! ```sh
//! echo 2026-05 whsec_$(openssl rand -hex 16) > secrets
//! SECRETS_FILE=secrets cargo run --example secret_rotation
//! ```
//!
//! 1. Put the new secret on a line above the old one: both are accepted from the next request on.
//! 2. Give the sender the new one.
//! 3. When no delivery names the old key any more, and the retries that it signed are over, delete
//!    its line. Or give the old key an end date from the start, `KeyRing::with_key_until`: then
//!    nothing has to be deleted in time.
//!
//! Each delivery names the key that signed it, and `hookgate_deliveries_total` counts by key: when
//! the count of the old key stands still, its line may go.
//!
//! A file that can't be used, for example half-written, changes nothing: the live keys stay live.

#![allow(clippy::print_stdout)] // an example prints for its user

use std::env;
use std::error::Error;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use hookgate::{Delivery, KeyRing, MemoryStore, Receiver, Secret};
use zeroize::Zeroizing;

/// Reads the ring. Of a key only the name is printed: it identifies the key and shows no part of
/// the secret.
fn read_ring(path: &str) -> Result<(KeyRing, Zeroizing<String>), Box<dyn Error>> {
    let text = Zeroizing::new(std::fs::read_to_string(path)?);
    let mut ring: Option<KeyRing> = None;
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (name, secret) = line
            .split_once(' ')
            .ok_or("a line that is not a name, a space and a secret")?;
        let secret = Secret::new(secret)?.unpublished()?;
        ring = Some(match ring {
            None => KeyRing::named(name, secret)?,
            Some(ring) => ring.with_key(name, secret)?,
        });
    }
    Ok((ring.ok_or("no secret in the file")?, text))
}

async fn on_delivery(delivery: Delivery) -> StatusCode {
    let key = delivery.verified().key_name();
    println!("{} signed with the key {key}", delivery.event_id());
    StatusCode::NO_CONTENT
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = env::var("SECRETS_FILE").map_err(|error| format!("SECRETS_FILE: {error}"))?;
    let (ring, mut current) = read_ring(&path)?;
    let receiver = Receiver::builder()
        .key_ring(ring)
        .store(MemoryStore::default())
        .build()?;

    let keys = receiver.keys().clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let (ring, text) = match read_ring(&path) {
                Ok((_, text)) if text == current => continue,
                Ok(read) => read,
                Err(error) => {
                    println!("kept the old secrets: {error}");
                    continue;
                }
            };
            let names = ring.key_names().collect::<Vec<_>>().join(", ");
            match keys.replace(ring) {
                Ok(()) => println!("live keys: {names}"),
                Err(error) => println!("kept the old secrets: {error}"),
            }
            current = text;
        }
    });

    let app = Router::new().route("/webhooks", post(on_delivery).layer(receiver.layer()));
    let address = env::var("ADDR").unwrap_or_else(|_| "127.0.0.1:8787".into());
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .map_err(|error| format!("can't listen on {address}: {error}"))?;
    println!("listening on http://{}/webhooks", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
