//! Exactly once: the order and the record of its event are written in one transaction of
//! PostgreSQL, so a crash leaves both or neither.
//!
//! ```sh
//! export DATABASE_URL=postgres://app@localhost/app WEBHOOK_SECRET=whsec_$(openssl rand -hex 16)
//! cargo run -p hookgate-postgres --example exactly_once
//! ```
//!
//! With `--features tls,ring` and `?sslmode=verify-full` at the end of the URL, as a managed server
//! needs it, the connections are TLS: `Tls::for_url` looks at the URL.
//!
//! The layer's own store prevents concurrent runs of one event as long as the process lives, and
//! spares the database most duplicates. The guarantee across processes, crashes and restarts is the
//! claim in the transaction.

#![allow(clippy::print_stdout)] // an example prints for its user

use std::env;
use std::error::Error;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use deadpool_postgres::{Manager, Pool, Runtime};
use hookgate::{Delivery, EventData, HandlerError, MemoryStore, Receiver, Secret};
use hookgate_postgres::{Tls, claim_in, forget, migrate};
use serde::Deserialize;

/// The default retention of the receiver. With an inbox, give its workers the same:
/// `Workers::claim_retention(RETAIN)`.
const RETAIN: Duration = Duration::from_secs(48 * 60 * 60);

#[derive(Deserialize)]
struct Order {
    #[serde(rename = "Customer")]
    customer: String,
}

async fn on_event(
    State(database): State<Pool>,
    delivery: Delivery,
) -> Result<StatusCode, HandlerError> {
    // Each `?` rolls the transaction back, as it is dropped. The answer is 200 for a duplicate;
    // otherwise the sender tries again.
    let mut client = database.get().await?;
    let transaction = client.transaction().await?;
    claim_in(&transaction, "orders", &delivery, RETAIN)
        .await?
        .fresh()?;
    if let EventData::RowCreated(row) = delivery.event::<Order>()?.data {
        let order = "INSERT INTO orders (event_id, row_id, customer) VALUES ($1, $2, $3)";
        let customer = &row.properties.customer;
        transaction
            .execute(
                order,
                &[&delivery.event_id(), &row.row_id.as_str(), customer],
            )
            .await?;
    }
    transaction.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes events whose retention has ended, a thousand at a time.
async fn forget_now_and_then(database: Pool) {
    loop {
        tokio::time::sleep(Duration::from_secs(60)).await;
        if let Ok(client) = database.get().await {
            while let Ok(1_000..) = forget(&**client, 1_000).await {}
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("DATABASE_URL").map_err(|error| format!("DATABASE_URL: {error}"))?;
    let (mut database, tls) = Tls::for_url(&url)?;
    database
        .options("-c statement_timeout=4s -c idle_in_transaction_session_timeout=30s")
        .keepalives_idle(Duration::from_secs(10));
    let database = Pool::builder(Manager::new(database, tls))
        .max_size(8)
        // Less than the layer's budget, so that the answer comes in time when the database is down.
        .wait_timeout(Some(Duration::from_secs(2)))
        .create_timeout(Some(Duration::from_secs(2)))
        .runtime(Runtime::Tokio1)
        .build()?;
    let client = database.get().await?;
    migrate(&**client).await?;
    let orders = "CREATE TABLE IF NOT EXISTS orders (
        number bigint GENERATED ALWAYS AS IDENTITY, event_id text NOT NULL, row_id text NOT NULL, customer text NOT NULL)";
    client.batch_execute(orders).await?;
    drop(client);
    tokio::spawn(forget_now_and_then(database.clone()));

    let receiver = Receiver::builder()
        .secret(Secret::from_env("WEBHOOK_SECRET")?)
        .store(MemoryStore::default())
        .build()?;
    let on_event = post(on_event).layer(receiver.layer());
    let app = Router::new()
        .route("/webhooks", on_event)
        .with_state(database);

    let address = env::var("ADDR").unwrap_or_else(|_| "127.0.0.1:8787".into());
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .map_err(|error| format!("can't listen on {address}: {error}"))?;
    println!("listening on http://{}/webhooks", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
