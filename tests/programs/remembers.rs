//! One process that must remember: `SqliteStore` keeps the claims across restarts, and `claim_in`
//! writes each order and the record of its event in one transaction, so that an order exists
//! exactly once.

use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Router, routing::post};
use hookgate::{Delivery, EventData, HandlerError, Receiver, Secret};
use hookgate_sqlite::{SqliteStore, claim_in, migrate};
use hookgate_testing::{EventFactory, SampleEvent, Signer};
use rusqlite::{Connection, TransactionBehavior};
use tower::ServiceExt;

/// The default retention of the receiver.
const RETAIN: Duration = Duration::from_secs(48 * 60 * 60);
const SECRET: &str = "whsec_made_up_for_a_memory";

type Database = Arc<Mutex<Connection>>;

async fn on_event(
    State(database): State<Database>,
    delivery: Delivery,
) -> Result<StatusCode, HandlerError> {
    // SQLite blocks its thread.
    tokio::task::spawn_blocking(move || write_order(&database, &delivery)).await??;
    Ok(StatusCode::NO_CONTENT)
}

fn write_order(database: &Mutex<Connection>, delivery: &Delivery) -> Result<(), HandlerError> {
    let mut database = database.lock().map_err(|_| "another order panicked")?;
    let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    claim_in(&transaction, "orders", delivery, RETAIN)?.fresh()?;
    if let EventData::RowCreated(row) = delivery.event::<hookgate::Properties>()?.data {
        transaction.execute("INSERT INTO orders VALUES (?1)", [row.row_id.as_str()])?;
    }
    Ok(transaction.commit()?)
}

/// The program from its start to its end, with these deliveries in between. Returns their answers.
async fn run(
    folder: &Path,
    claims: &str,
    deliveries: &[&SampleEvent],
) -> Result<Vec<u16>, Box<dyn Error>> {
    let database = Connection::open(folder.join("orders.db"))?;
    database.busy_timeout(Duration::from_secs(2))?;
    database.execute_batch("CREATE TABLE IF NOT EXISTS orders (row_id TEXT NOT NULL)")?;
    migrate(&database)?;
    let receiver = Receiver::builder()
        .secret(Secret::new(SECRET)?)
        .store(SqliteStore::open(folder.join(claims))?)
        .build()?;
    let app = Router::new()
        .route("/webhooks", post(on_event).layer(receiver.layer()))
        .with_state(Arc::new(Mutex::new(database)));

    let signer = Signer::new(Secret::new(SECRET)?);
    let mut answers = Vec::new();
    for event in deliveries {
        let request = signer.request("/webhooks", *event).map(Body::from);
        answers.push(app.clone().oneshot(request).await?.status().as_u16());
    }
    receiver.drain(Duration::from_secs(5)).await;
    Ok(answers)
}

#[tokio::main]
pub async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfolder()?;
    let events = EventFactory::new();
    let (first, second) = (events.row_created(), events.row_created());
    assert_eq!(
        run(&folder, "claims.db", &[&first, &first]).await?,
        [204, 200]
    );
    assert_eq!(
        run(&folder, "claims.db", &[&first, &second]).await?,
        [200, 204]
    ); // a restart remembers
    // Where even the claims are lost, the claim in the transaction still knows the order: 200, and
    // no second one.
    assert_eq!(
        run(&folder, "new.db", &[&first, &second]).await?,
        [200, 200]
    );

    let database = Connection::open(folder.join("orders.db"))?;
    let orders: u32 = database.query_row("SELECT count(*) FROM orders", [], |row| row.get(0))?;
    assert_eq!(orders, 2);
    Ok(std::fs::remove_dir_all(folder)?)
}

fn tempfolder() -> std::io::Result<std::path::PathBuf> {
    let folder = std::env::temp_dir().join(format!("remembers-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}
