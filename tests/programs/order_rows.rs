//! An order is a row in PostgreSQL, and is there exactly once: the claim of its event is written in
//! the transaction of the row, so that a crash, copies at the same time and replicas without a
//! common store leave no second one.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use axum::{Router, extract::State, routing::post};
use deadpool_postgres::{Manager, Pool};
use hookgate::{Delivery, EventData, HandlerError, MemoryStore, Receiver, Secret};
use hookgate_postgres::{Postgres, Tls, claim_in};
use hookgate_testing::{EventFactory, Signer};
use tokio::task::JoinSet;
use tower::ServiceExt;

/// The default retention of the receiver.
const RETAIN: Duration = Duration::from_secs(48 * 60 * 60);
const SECRET: &str = "whsec_made_up_for_rows_of_orders";

#[derive(Clone)]
struct Orders {
    database: Pool,
    /// Whether a second database, which the handler asks after it has written the order, is down.
    is_down: Arc<AtomicBool>,
}

async fn on_event(
    State(orders): State<Orders>,
    delivery: Delivery,
) -> Result<StatusCode, HandlerError> {
    let mut client = orders.database.get().await?;
    let transaction = client.transaction().await?;
    claim_in(&transaction, "orders", &delivery, RETAIN)
        .await?
        .fresh()?;
    if let EventData::RowCreated(row) = delivery.event::<hookgate::Properties>()?.data {
        let order = "INSERT INTO orders (row_id) VALUES ($1)";
        transaction.execute(order, &[&row.row_id.as_str()]).await?;
    }
    if orders.is_down.load(Ordering::Relaxed) {
        return Err("the price list can't be reached".into()); // the order and its claim are rolled back
    }
    transaction.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A replica: its store is its own, in memory.
fn replica(orders: &Orders) -> Result<Router, Box<dyn Error>> {
    let receiver = Receiver::builder()
        .secret(Secret::new(SECRET)?)
        .store(MemoryStore::default())
        .build()?;
    let route = post(on_event).layer(receiver.layer());
    Ok(Router::new()
        .route("/webhooks", route)
        .with_state(orders.clone()))
}

async fn deliver(replica: Router, request: Request<Bytes>) -> Result<u16, Box<dyn Error>> {
    let answer = replica.oneshot(request.map(Body::from)).await?;
    Ok(answer.status().as_u16())
}

pub async fn run(url: &str) -> Result<(), Box<dyn Error>> {
    Postgres::open(url)?.migrate().await?;
    let (config, tls) = Tls::for_url(url)?;
    let database = Pool::builder(Manager::new(config, tls))
        .max_size(8)
        .build()?;
    let table = "CREATE TABLE orders (row_id text NOT NULL)";
    database.get().await?.batch_execute(table).await?;
    let is_down = Arc::new(AtomicBool::new(false));
    let orders = Orders { database, is_down };
    let signer = Signer::new(Secret::new(SECRET)?);
    let events = EventFactory::new();

    // It fails after the order was written: nothing is left of it, and the next attempt is the
    // first to succeed.
    let first = signer.request("/webhooks", events.row_created());
    orders.is_down.store(true, Ordering::Relaxed);
    assert_eq!(deliver(replica(&orders)?, first.clone()).await?, 500);
    orders.is_down.store(false, Ordering::Relaxed);
    assert_eq!(deliver(replica(&orders)?, first.clone()).await?, 204);
    // A replica that was started since then has no record of it, and the database has.
    assert_eq!(deliver(replica(&orders)?, first).await?, 200);

    // The same event at ten replicas at once: one writes the order, the others are told to come
    // again, or that it is done.
    let second = signer.request("/webhooks", events.row_created());
    let mut copies = JoinSet::new();
    for _ in 0..10 {
        let (replica, request) = (replica(&orders)?, second.clone());
        copies.spawn(async move {
            deliver(replica, request)
                .await
                .map_err(|error| error.to_string())
        });
    }
    let answers = copies
        .join_all()
        .await
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?;
    assert_eq!(
        answers.iter().filter(|&&status| status == 204).count(),
        1,
        "{answers:?}"
    );
    assert!(
        answers
            .iter()
            .all(|status| [200, 204, 503].contains(status)),
        "{answers:?}"
    );
    assert_eq!(deliver(replica(&orders)?, second).await?, 200);

    let client = orders.database.get().await?;
    let rows = client
        .query_one("SELECT count(*), count(DISTINCT row_id) FROM orders", &[])
        .await?;
    assert_eq!((rows.get::<_, i64>(0), rows.get::<_, i64>(1)), (2, 2));
    Ok(())
}

#[tokio::main]
pub async fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::var("DATABASE_URL")?).await
}
