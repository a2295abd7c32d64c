//! One process, and a store in memory: typed events, a handler that passes every error on with `?`,
//! and a hook that tells the operator why a delivery was not handled.

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, StatusCode};
use axum::{Router, routing::post};
use hookgate::{Event, EventData, HandlerError, MemoryStore, Receiver, Secret, event::Number};
use hookgate_testing::{EventFactory, Signer, factory::JsonText};
use tower::ServiceExt;

#[derive(serde::Deserialize)]
struct Order {
    #[serde(rename = "Customer")]
    customer: String,
    #[serde(rename = "Total")]
    total: Number,
}

/// Stands for a database that can be down.
#[derive(Default)]
struct Database {
    down: AtomicBool,
    orders: Mutex<Vec<String>>,
}

impl Database {
    fn insert(&self, order: String) -> io::Result<()> {
        if self.down.load(Ordering::Relaxed) {
            return Err(io::Error::other("no route to db-7"));
        }
        let mut orders = self
            .orders
            .lock()
            .map_err(|_| io::Error::other("poisoned"))?;
        orders.push(order);
        Ok(())
    }
}

async fn on_event(
    State(database): State<Arc<Database>>,
    event: Event<Order>,
) -> Result<StatusCode, HandlerError> {
    if let EventData::RowCreated(row) = event.data {
        let order = row.properties;
        database.insert(format!("{} for {}", order.customer, order.total.as_str()))?;
    }
    Ok(StatusCode::NO_CONTENT)
}

#[tokio::main]
pub async fn main() -> Result<(), Box<dyn Error>> {
    let secret = Secret::new("whsec_made_up_for_one_process")?;
    let told = Arc::new(Mutex::new(Vec::new()));
    let tells = told.clone();
    let receiver = Receiver::builder()
        .secret(secret.clone())
        .store(MemoryStore::default())
        .on_answer(move |answer| tells.lock().expect("no panic").push(answer.to_string()))
        .build()?;
    let database = Arc::new(Database::default());
    let app = Router::new()
        .route("/webhooks", post(on_event).layer(receiver.layer()))
        .with_state(database.clone());

    // The sender's part: an order that comes three times, while the database is down, when it is up
    // again, and once more.
    let order = EventFactory::new().row_created();
    let order = order
        .property("Customer", JsonText::text("Ada"))
        .property("Total", JsonText::currency("12.50"));
    let deliver = async |signer: &Signer| -> Result<StatusCode, Box<dyn Error>> {
        let request: Request<Body> = signer.request("/webhooks", &order).map(Body::from);
        Ok(app.clone().oneshot(request).await?.status())
    };
    let signer = Signer::new(secret);
    database.down.store(true, Ordering::Relaxed);
    assert_eq!(deliver(&signer).await?, 500);
    database.down.store(false, Ordering::Relaxed);
    assert_eq!(deliver(&signer).await?, 204);
    assert_eq!(deliver(&signer).await?, 200);
    let forger = Signer::new(Secret::new("whsec_made_up_by_a_forger")?);
    assert_eq!(deliver(&forger).await?, 401);

    assert_eq!(
        *database.orders.lock().expect("no panic"),
        ["Ada for 12.50"]
    );
    let told = told.lock().expect("no panic").clone();
    assert_eq!(told[0], "500 handler_status: no route to db-7");
    assert!(told[3].starts_with("401 not_authentic: "), "{}", told[3]);
    receiver.drain(std::time::Duration::from_secs(5)).await;
    Ok(())
}
