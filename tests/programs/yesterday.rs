//! A test that replays yesterday's deliveries, as they were recorded, with copies, another order,
//! failures, and a sender that hangs up: no order is lost and none is made twice, whatever happens.

use std::error::Error;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::{Router, http::StatusCode, routing::post};
use hookgate::{Event, EventData, HandlerError, MemoryStore, Receiver, Secret, WebhookLayer};
use hookgate_testing::{DeliveryLog, Faults, Replay};

/// The rows that the app has seen created.
type Orders = Arc<Mutex<Vec<String>>>;

async fn on_event(State(orders): State<Orders>, event: Event) -> Result<StatusCode, HandlerError> {
    if let EventData::RowCreated(row) = event.data {
        let mut orders = orders.lock().map_err(|_| "another order panicked")?;
        orders.push(row.row_id.to_string());
    }
    Ok(StatusCode::NO_CONTENT)
}

/// The app as in production.
fn app(guard: WebhookLayer, orders: Orders) -> Router {
    let route = post(on_event).layer(guard);
    Router::new().route("/webhooks", route).with_state(orders)
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub async fn main() -> Result<(), Box<dyn Error>> {
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/deliveries.jsonl");
    for seed in 0..4 {
        let orders = Orders::default();
        let report = Replay::of(DeliveryLog::open(log)?)
            .secret(Secret::new("whsec_made_up_for_local_tries")?)
            .with(
                Faults::seeded(seed)
                    .duplicate()
                    .reorder()
                    .sender_hangs_up()
                    .tampered()
                    .handler_fails(1),
            )
            .against(|harness| {
                let store = MemoryStore::default().with_clock(harness.clock());
                let guard = harness.layer(Receiver::builder().store(store))?;
                Ok::<_, Box<dyn Error>>(app(guard, orders.clone()))
            })
            .await?;
        assert!(report.each_event_committed_as_logged(), "{report}");
        assert_eq!(report.let_in().count(), 0, "{report}");

        // Not only the report, the app itself: each new row once.
        let mut orders = orders.lock().map_err(|_| "a run panicked")?.clone();
        let made = orders.len();
        orders.sort();
        orders.dedup();
        assert!(made > 0 && orders.len() == made, "{orders:?}");
    }
    Ok(())
}
