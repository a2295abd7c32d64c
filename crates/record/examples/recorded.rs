//! Every delivery in a log: a receiver that records what it is sent and what it answers.
//!
//! ```sh
//! cargo run -p hookgate-record --example recorded -- --try
//! WEBHOOK_SECRET=whsec_made_up_for_local_tries hookgate send row.created --to http://127.0.0.1:8787/webhooks
//! hookgate log list deliveries.jsonl
//! ```
//!
//! The secret comes from `WEBHOOK_SECRET`. With `--try` it is a published one, with which anyone
//! can sign: for deliveries from this machine. The log is `deliveries.jsonl` in this directory, or
//! the file that `RECORD` names; only its owner can read it, since bodies hold names and e-mail
//! addresses. `Redaction` removes those. A log is replayed by the package `hookgate-testing`.
//! Ctrl-C or SIGTERM ends the program once the log is written to its end.

#![allow(clippy::print_stdout)] // an example prints for its user

use std::env;
use std::error::Error;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use hookgate::{Event, MemoryStore, Receiver, Secret};
use hookgate_record::Recorder;
use tokio::net::TcpListener;
use tokio::time::sleep;

async fn on_event(event: Event) -> StatusCode {
    println!("{} {}", event.id, event.event_type());
    StatusCode::NO_CONTENT
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = env::var("ADDR").unwrap_or_else(|_| "127.0.0.1:8787".into());
    let path = env::var_os("RECORD").unwrap_or_else(|| "deliveries.jsonl".into());
    let recorder = Recorder::to(path)
        .on_error(|error| println!("{error}: {:?}", error.source()))
        .open()?;
    let receiver = Receiver::builder()
        .secret(secret()?)
        .store(MemoryStore::default())
        .observer(recorder.clone())
        .build()?;
    let app = Router::new().route("/webhooks", post(on_event).layer(receiver.layer()));

    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}/webhooks", listener.local_addr()?);
    let server = axum::serve(listener, app).with_graceful_shutdown(stop_signal());
    tokio::select! {
        served = server.into_future() => served?,
        // Every delivery is answered within 4.5 s. A client that does not end its request can't
        // hold up the end of the program.
        () = async { stop_signal().await; sleep(Duration::from_secs(5)).await } => {}
    }
    receiver.drain(Duration::from_secs(10)).await;
    if !recorder.flush(Duration::from_secs(5)) {
        println!("the log could not be written to its end");
    }
    println!(
        "stopped, {} deliveries recorded, {} dropped",
        recorder.written(),
        recorder.dropped()
    );
    Ok(())
}

fn secret() -> Result<Secret, Box<dyn Error>> {
    if env::args().any(|argument| argument == "--try") {
        let published = "whsec_made_up_for_local_tries";
        println!("--try: the secret is {published}, which is published: anyone can sign with it");
        return Ok(Secret::new(published)?);
    }
    Ok(Secret::from_env("WEBHOOK_SECRET")?)
}

/// Ends at Ctrl-C, or at SIGTERM, as orchestrators send it.
async fn stop_signal() {
    #[cfg(unix)]
    let terminate = async {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut signals) => signals.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminate = std::future::pending::<Option<()>>();
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate => {}
    }
}
