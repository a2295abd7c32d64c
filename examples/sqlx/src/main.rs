//! Exactly once with sqlx: the order and the record of its event are written in one transaction.
//!
//! ```sh
//! export DATABASE_URL=postgres://app@localhost/app WEBHOOK_SECRET=whsec_$(openssl rand -hex 16)
//! cargo run --manifest-path examples/sqlx/Cargo.toml
//! ```

use std::env;
use std::error::Error;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use hookgate::{Delivery, HandlerError, MemoryStore, Receiver, Secret};
use hookgate_sqlx::{claim_in, migrate};
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

/// The default retention of the receiver.
const RETAIN: Duration = Duration::from_secs(48 * 60 * 60);

async fn on_event(
    State(database): State<PgPool>,
    delivery: Delivery,
) -> Result<StatusCode, HandlerError> {
    // Each `?` rolls the transaction back, as it is dropped. The answer is 200 for a duplicate;
    // otherwise the sender tries again.
    let mut transaction = database.begin().await?;
    let values = delivery.claim_values("orders", RETAIN);
    claim_in(&mut transaction, &values).await?.fresh()?;
    sqlx::query("INSERT INTO orders (event_id) VALUES ($1)")
        .bind(delivery.event_id())
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("DATABASE_URL").map_err(|error| format!("DATABASE_URL: {error}"))?;
    let options = url.parse::<PgConnectOptions>()?.options([
        ("statement_timeout", "4s"),
        ("idle_in_transaction_session_timeout", "30s"),
    ]);
    let database = PgPoolOptions::new()
        // Less than the layer's budget, so that the answer comes in time when the database is down.
        .acquire_timeout(Duration::from_secs(2))
        .connect_with(options)
        .await?;
    migrate(&database).await?;
    sqlx::query("CREATE TABLE IF NOT EXISTS orders (event_id text NOT NULL)")
        .execute(&database)
        .await?;
    let receiver = Receiver::builder()
        .secret(Secret::from_env("WEBHOOK_SECRET")?)
        .store(MemoryStore::default())
        .build()?;
    let on_event = post(on_event).layer(receiver.layer());
    let app = Router::new()
        .route("/webhooks", on_event)
        .with_state(database);
    let address = env::var("ADDR").unwrap_or_else(|_| "127.0.0.1:8787".into());
    let listener = tokio::net::TcpListener::bind(&address).await?;
    println!("listening on http://{}/webhooks", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
