//! Several data models at one URL: an arm for each, with its own row type, and a list of the
//! subscriptions to make.
//!
//! ```sh
//! WEBHOOK_SECRETS=wh_1=whsec_$(openssl rand -hex 16),wh_2=whsec_$(openssl rand -hex 16) cargo run --example event_router
//! ```
//!
//! `WEBHOOK_SECRETS` has each subscription's id and secret, `ADDR` another address. It prints the
//! subscriptions that the arms need, then a line for each event that an arm handled and one for
//! each answer. An event without an arm is answered 204 and shown as `unhandled`.

#![allow(clippy::print_stdout)] // an example prints for its user

use std::env;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use hookgate::extract::EventRejection;
use hookgate::{
    Delivery, Event, EventData, EventRouter, MemoryStore, Receiver, Secret,
    event::{EventType, Number},
    layer::Answer,
};
use serde::Deserialize;

/// A row of the data model `dm_orders`.
#[derive(Deserialize)]
struct Order {
    #[serde(rename = "Customer")]
    customer: String,
    #[serde(rename = "Total")]
    total: Number,
}

/// A row of the data model `dm_invoices`.
#[derive(Deserialize)]
struct Invoice {
    #[serde(rename = "Number")]
    number: String,
}

/// The state that the arms share.
#[derive(Clone, Default)]
struct Shop {
    orders: Arc<AtomicU64>,
}

/// Handles created, updated and deleted orders.
async fn on_order(State(shop): State<Shop>, event: Event<Order>) -> StatusCode {
    match event.data {
        EventData::RowCreated(row) => {
            let count = shop.orders.fetch_add(1, Ordering::Relaxed) + 1;
            let order = row.properties;
            let total = order.total.as_str();
            println!("order {count}: {} for {total}", order.customer);
        }
        EventData::RowUpdated(row) => println!("order {} changed", row.row_id),
        EventData::RowDeleted(row) => println!("order {} is gone", row.row_id),
        _ => {}
    }
    StatusCode::NO_CONTENT
}

/// Handles new invoices. A row that has no number is refused, and goes to no other arm.
async fn on_new_invoice(event: Event<Invoice>) -> StatusCode {
    if let EventData::RowCreated(row) = event.data {
        println!("invoice {}", row.properties.number);
    }
    StatusCode::NO_CONTENT
}

/// The specification does not define the data of a page's event: use the raw JSON, or the fields
/// that you deserialise from it.
async fn on_page(delivery: Delivery) -> Result<StatusCode, EventRejection> {
    #[derive(Deserialize)]
    struct Page {
        title: Option<String>,
    }

    let event: Event = delivery.event()?;
    if let EventData::Other(page) = event.data {
        let page: Page = page.data.to()?;
        println!(
            "page {}",
            page.title.as_deref().unwrap_or("without a title")
        );
    }
    Ok(StatusCode::NO_CONTENT)
}

fn print_answer(answer: &Answer) {
    match &answer.delivery {
        Some(delivery) => println!("{}: {answer}", delivery.event_id()),
        None => println!("{answer}"),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let receiver = Receiver::builder()
        .subscriptions(secrets()?)
        .store(MemoryStore::default())
        .on_answer(print_answer)
        .build()?;

    let events = EventRouter::new()
        .on_rows("dm_orders", on_order)
        .on_model(EventType::ROW_CREATED, "dm_invoices", on_new_invoice)
        .on(EventType::PAGE_CREATED, on_page);
    println!("{}", events.subscriptions());

    let app = Router::new()
        .route("/webhooks", events.build()?.layer(receiver.layer()))
        .with_state(Shop::default());
    let address = env::var("ADDR").unwrap_or_else(|_| "127.0.0.1:8787".into());
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .map_err(|error| format!("can't listen on {address}: {error}"))?;
    println!("listening on http://{}/webhooks", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}

/// Reads `ID=SECRET`, joined by commas.
fn secrets() -> Result<Vec<(String, Secret)>, Box<dyn Error>> {
    let text = env::var("WEBHOOK_SECRETS").map_err(|error| format!("WEBHOOK_SECRETS: {error}"))?;
    let mut secrets = Vec::new();
    for pair in text.split(',') {
        let (id, secret) = pair
            .split_once('=')
            .ok_or("WEBHOOK_SECRETS: expected ID=SECRET, joined by commas")?;
        secrets.push((id.to_owned(), Secret::new(secret)?.unpublished()?));
    }
    Ok(secrets)
}
