//! A program that writes back into the rows whose events it receives, and knows its own events:
//! `cargo run -p hookgate-client --features reconcile --example write_back`.
//!
//! The service is the emulator in this process. Without the ledger the handler would be called for
//! each of its own writes.

#![allow(missing_docs)] // a program has no API
#![allow(clippy::print_stdout)] // an example prints for its user

use std::error::Error;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use hookgate::{Event, EventData, HandlerError, MemoryStore, Properties, Receiver, Secret};
use hookgate_client::{ApiKey, Client, Ledger};
use hookgate_emulator::{Emulator, Seed};
use serde_json::json;
use tokio::net::TcpListener;

#[derive(Clone)]
struct App {
    client: Client,
    ledger: Ledger,
    lines: Arc<Mutex<Vec<String>>>,
}

/// Sets the total whenever a person has changed the quantity.
async fn on_event(State(app): State<App>, event: Event) -> Result<StatusCode, HandlerError> {
    let line = match (app.ledger.echo(&event).await?, &event.data) {
        (Some(echo), _) => format!("{}: echo of {}", event.event_type(), echo.writer),
        (None, EventData::RowUpdated(row)) => {
            let quantity = row.changes.after("Quantity").number()?.into_option();
            let quantity: f64 = quantity.map_or(Ok(0.0), |quantity| quantity.as_str().parse())?;
            let orders = app.client.rows::<Properties>(row.datamodel_id.as_str());
            let total = json!({ "Total": quantity * 2.5 });
            orders.update(row.row_id.as_str(), &total).await?;
            format!("{}: total of {quantity} written", event.event_type())
        }
        (None, _) => event.event_type().to_string(),
    };
    app.lines.lock().map_err(|_| "a panic")?.push(line);
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn handled() -> Result<Vec<String>, Box<dyn Error>> {
    let service = Emulator::start(Seed::orders()).await?;
    // Replicas share a ledger by `Ledger::open_postgres`.
    let ledger = Ledger::in_memory().with_clock(service.clock());
    let client = Client::builder(&service.base_url(), ApiKey::new("tk_test_write")?)
        .allow_plain_http()
        .build()?;
    let app = App {
        client: client.writer("totals", &ledger),
        ledger,
        lines: Arc::default(),
    };

    let secret = "whsec_made_up_for_this_example";
    let receiver = Receiver::builder()
        .secret(Secret::new(secret)?)
        .store(MemoryStore::default().with_clock(service.clock()))
        .clock(service.clock())
        .build()?;
    let router = Router::new()
        .route("/webhooks", post(on_event).layer(receiver.layer()))
        .with_state(app.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    service.subscribe(
        &format!("http://{}/webhooks", listener.local_addr()?),
        secret,
    )?;
    let server = tokio::spawn(async move { axum::serve(listener, router).await });

    // A person orders two, and makes it three.
    let orders = service.rows("dm_orders");
    let order = orders.create(json!({ "prop_customer": "Ada", "prop_quantity": 2 }))?;
    service.settled().await;
    orders.update(&order, json!({ "prop_quantity": 3 }))?;
    service.settled().await;
    server.abort();
    let lines = app.lines.lock().map_err(|_| "a panic")?.clone();
    Ok(lines)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    for line in handled().await? {
        println!("{line}");
    }
    Ok(())
}
