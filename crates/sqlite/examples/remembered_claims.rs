//! One process that must remember: a file keeps the claims across restarts, and each order and the
//! record of its event are written in one transaction of SQLite, so a crash leaves both or neither.
//!
//! ```sh
//! WEBHOOK_SECRET=whsec_$(openssl rand -hex 16) cargo run -p hookgate-sqlite --example remembered_claims
//! ```
//!
//! A handler without a database needs only the line with `SqliteStore`.

#![allow(clippy::print_stdout)] // an example prints for its user

use std::env;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use hookgate::{Delivery, HandlerError, Receiver, Secret};
use hookgate_sqlite::{SqliteStore, claim_in, migrate};
use rusqlite::{Connection, TransactionBehavior};

/// The default retention of the receiver.
const RETAIN: Duration = Duration::from_secs(48 * 60 * 60);

type Database = Arc<Mutex<Connection>>;

async fn on_event(
    State(database): State<Database>,
    delivery: Delivery,
) -> Result<StatusCode, HandlerError> {
    // SQLite blocks its thread while it writes.
    tokio::task::spawn_blocking(move || write_order(&database, &delivery)).await??;
    Ok(StatusCode::NO_CONTENT)
}

/// Each `?` rolls the transaction back, as it is dropped. The answer is 200 for a duplicate;
/// otherwise the sender tries again.
fn write_order(database: &Mutex<Connection>, delivery: &Delivery) -> Result<(), HandlerError> {
    let mut database = database.lock().unwrap_or_else(PoisonError::into_inner);
    let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    claim_in(&transaction, "orders", delivery, RETAIN)?.fresh()?;
    let order = "INSERT INTO orders (event_id, event_type) VALUES (?1, ?2)";
    transaction.execute(order, [delivery.event_id(), delivery.event_type()])?;
    Ok(transaction.commit()?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::var("DATA").unwrap_or_else(|_| ".".into());
    let database = Connection::open(format!("{folder}/orders.db"))?;
    database.busy_timeout(Duration::from_secs(2))?; // less than the receiver's budget
    database.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
        CREATE TABLE IF NOT EXISTS orders (number INTEGER PRIMARY KEY, event_id TEXT NOT NULL, event_type TEXT NOT NULL);",
    )?;
    migrate(&database)?;

    let receiver = Receiver::builder()
        .secret(Secret::from_env("WEBHOOK_SECRET")?)
        .store(SqliteStore::open(format!("{folder}/claims.db"))?)
        .build()?;
    let app = Router::new()
        .route("/webhooks", post(on_event).layer(receiver.layer()))
        .with_state(Arc::new(Mutex::new(database)));

    let address = env::var("ADDR").unwrap_or_else(|_| "127.0.0.1:8787".into());
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .map_err(|error| format!("can't listen on {address}: {error}"))?;
    println!("listening on http://{}/webhooks", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
