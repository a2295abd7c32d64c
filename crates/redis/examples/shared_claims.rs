//! Several replicas with shared claims: each event runs on one of them, and is still known after a
//! restart. Claims on Redis or Valkey.
//!
//! ```sh
//! redis-server --maxmemory 256mb --maxmemory-policy noeviction --appendonly yes --appendfsync always &
//! export REDIS_URL=redis://localhost:6379 WEBHOOK_SECRET=whsec_$(openssl rand -hex 16)
//! ADDR=127.0.0.1:8787 cargo run -p hookgate-redis --example shared_claims &
//! ADDR=127.0.0.1:8788 cargo run -p hookgate-redis --example shared_claims &
//! ```
//!
//! With `--features tls,ring` and a URL of `rediss://`, as a managed server needs it, the
//! connection is TLS: `connect` looks at the URL.
//!
//! Deliver an event to one, then to the other: the second answers 200 and
//! `Idempotent-Replayed: true`, and runs no handler. Where the server's settings allow it to forget
//! ids, the program prints that at its start; with `STRICT=1` it refuses to start. Without Redis
//! each delivery is answered 503, so that the sender tries again.

#![allow(clippy::print_stdout)] // an example prints for its user

use std::env;
use std::error::Error;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use hookgate::{Event, Receiver, Secret, layer::Answer};
use hookgate_redis::RedisStore;
use tokio::net::TcpListener;
use tokio::time::sleep;

async fn on_event(event: Event) -> StatusCode {
    println!("{} {} runs here", event.id, event.event_type());
    StatusCode::NO_CONTENT
}

fn print_answer(answer: &Answer) {
    println!("{answer}");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = env::var("ADDR").unwrap_or_else(|_| "127.0.0.1:8787".into());
    let redis = env::var("REDIS_URL").map_err(|_| "set REDIS_URL, to redis://localhost:6379")?;
    let store = RedisStore::connect(&redis)
        .await?
        .with_prefix("shared-claims:");
    let findings = store.check().await?;
    for finding in &findings.found {
        println!("redis: {finding}");
    }
    if env::var_os("STRICT").is_some() {
        findings.strict()?;
    }

    let receiver = Receiver::builder()
        .secret(Secret::from_env("WEBHOOK_SECRET")?)
        .store(store)
        .on_answer(print_answer)
        .build()?;
    let app = Router::new().route("/webhooks", post(on_event).layer(receiver.layer()));
    let listener = TcpListener::bind(&address).await?;
    println!("listening on http://{}/webhooks", listener.local_addr()?);
    let stop_signal = async || drop(tokio::signal::ctrl_c().await);
    let server = axum::serve(listener, app).with_graceful_shutdown(stop_signal());
    tokio::select! {
        served = server.into_future() => served?,
        // Every delivery is answered within 4.5 s. A client that does not end its request can't
        // hold up the end of the program.
        () = async { stop_signal().await; sleep(Duration::from_secs(5)).await } => {}
    }
    let drained = receiver.drain(Duration::from_secs(10)).await;
    println!("stopped, {drained} runs aborted");
    Ok(())
}
