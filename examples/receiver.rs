//! The recommended setup: axum, typed events, one line on standard output for each delivery, a
//! shutdown that loses no event.
//!
//! ```sh
//! cargo run --example receiver -- --try
//! ```
//!
//! The secret comes from `WEBHOOK_SECRET`. With `--try` it is a published one, with which anyone
//! can sign: for deliveries from this machine, as docs/try-it.md makes them with `openssl` and
//! `curl`. `ADDR` sets another address. Ctrl-C or SIGTERM ends the program once the runs under way
//! have ended.

#![allow(clippy::print_stdout)] // an example prints for its user

use std::env;
use std::error::Error;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use hookgate::extract::EventRejection;
use hookgate::{
    Event, EventData, MemoryStore, Receiver, Secret,
    event::{Actor, Change, Number},
    layer::Answer,
};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::time::sleep;

/// A row of the data model `Orders`. Its columns have the names that users see.
#[derive(Deserialize)]
struct Order {
    #[serde(rename = "Customer")]
    customer: String,
    /// Keeps the digits that were sent: 12.50 stays 12.50.
    #[serde(rename = "Total")]
    total: Number,
}

/// The properties that may have changed. A side is `null` where the property was or is empty.
#[derive(Deserialize)]
struct OrderChanges {
    #[serde(rename = "Total")]
    total: Option<Change<Option<Number>>>,
}

async fn on_event(event: Event<Order>) -> Result<StatusCode, EventRejection> {
    let (id, event_type) = (&event.id, event.event_type());
    let text = match &event.data {
        EventData::RowCreated(row) => format!(
            "{} ordered for {} ({}, entered by {})",
            row.properties.customer,
            row.properties.total.as_str(),
            row.row_id,
            name(row.created_by.as_ref()),
        ),
        EventData::RowUpdated(row) => {
            // A column that was renamed or retyped: 422, and the sender's retry can reach a
            // corrected receiver.
            let changes: OrderChanges = row.changes.to()?;
            match changes.total {
                Some(total) => format!(
                    "total {} became {} ({}, changed by {})",
                    shown(total.before.as_ref()),
                    shown(total.after.as_ref()),
                    row.row_id,
                    name(row.updated_by.as_ref()),
                ),
                None => format!("total unchanged ({})", row.row_id),
            }
        }
        EventData::RowDeleted(row) => format!(
            "{} deleted by {}",
            row.row_id,
            name(row.deleted_by.as_ref())
        ),
        // page.*, member.* and later types of the service come as raw JSON.
        EventData::Other(other) => other.data.as_str().to_owned(),
        _ => "of a newer kind".to_owned(),
    };
    println!("{id} {event_type}: {text}");
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the actor's name. The specification does not say that there always is an actor.
fn name(actor: Option<&Actor>) -> &str {
    actor.map_or("an actor that is not named", |actor| &actor.name)
}

fn shown(total: Option<&Number>) -> &str {
    total.map_or("nothing", Number::as_str)
}

/// Prints an answer: the sender gets only a status; the operator sees the reason.
fn print_answer(answer: &Answer) {
    println!("{answer}");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = env::var("ADDR").unwrap_or_else(|_| "127.0.0.1:8787".into());
    let listener = TcpListener::bind(&address)
        .await
        .map_err(|error| format!("can't listen on {address}: {error}"))?;
    let receiver = Receiver::builder()
        .secret(secret()?)
        .store(MemoryStore::default())
        .on_answer(print_answer)
        .build()?;
    let app = Router::new().route("/webhooks", post(on_event).layer(receiver.layer()));

    println!("listening on http://{}/webhooks", listener.local_addr()?);
    let server = axum::serve(listener, app).with_graceful_shutdown(stop_signal());
    tokio::select! {
        served = server.into_future() => served?,
        // Every delivery is answered within 4.5 s. A client that does not end its request can't
        // hold up the end of the program.
        () = async { stop_signal().await; sleep(Duration::from_secs(5)).await } => {}
    }
    // Runs that are still under way get ten seconds to end.
    let drained = receiver.drain(Duration::from_secs(10)).await;
    println!("stopped, {drained} runs aborted");
    Ok(())
}

fn secret() -> Result<Secret, Box<dyn Error>> {
    if env::args().any(|argument| argument == "--try") {
        let published = "whsec_made_up_for_local_tries";
        println!("--try: the secret is {published}, which is published: anyone can sign with it");
        return Ok(Secret::new(published)?);
    }
    if env::var_os("WEBHOOK_SECRET").is_none() {
        return Err("set WEBHOOK_SECRET, or give --try for deliveries from this machine".into());
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
