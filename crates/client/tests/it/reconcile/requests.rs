//! The order guard's hook, joined to requests for passes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use hookgate::{Event, Receiver};
use hookgate_client::reconcile::{MemoryMirror, Reconcile, Reconciled, feed};
use hookgate_order::{MemoryOrderStore, OrderGuard};
use serde_json::json;
use tokio::time::timeout;

use super::driver::settings;
use crate::support::{client, orders, serve};

async fn on_event(State(mirror): State<Arc<MemoryMirror>>, event: Event) -> StatusCode {
    feed(&*mirror, &event).await.unwrap();
    StatusCode::NO_CONTENT
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_that_the_order_guard_sees_leads_to_the_passes_that_repair_it() {
    let emulator = orders().await;
    let mirror = Arc::new(MemoryMirror::default());
    let passes = |is_filling| {
        let mirror = Arc::clone(&mirror);
        Reconcile::new(client(&emulator), mirror, "dm_orders", settings(is_filling))
    };
    let filled = passes(true).pass(async |_| Ok::<_, String>(())).await;
    filled.unwrap();
    let mut reconcile = passes(false);

    let requests = reconcile.requests();
    let guard = OrderGuard::new(MemoryOrderStore::default()).on_ordered(move |told| {
        if told.gap.is_some() {
            requests.ask();
        }
    });
    let route = |receiver: &Receiver| {
        let route = post(on_event).layer((receiver.layer(), guard));
        route.with_state(Arc::clone(&mirror))
    };
    serve(&emulator, route).await;

    let rows = emulator.rows("dm_orders");
    let row = rows.create(json!({ "prop_quantity": 1 })).unwrap();
    emulator.settled().await;
    // The order of two events of one second is unknown.
    let second = Duration::from_secs(1);
    emulator.advance(second).await;
    // Lost, at least for now.
    emulator.fault_first("wrong-secret", 1).unwrap();
    let lost = json!({ "prop_quantity": 2, "prop_customer": "Ada" });
    rows.update(&row, lost).unwrap();
    emulator.settled().await;
    let short = Duration::from_millis(50);
    timeout(short, reconcile.asked()).await.unwrap_err();
    emulator.advance(second).await;
    rows.update(&row, json!({ "prop_quantity": 3 })).unwrap();
    emulator.settled().await;
    let mut passes = 0;
    let found = Mutex::new(Vec::new());
    while timeout(second, reconcile.asked()).await.is_ok() {
        let note = async |finding: Reconciled| {
            let text = format!("{} {}", finding.kind(), finding.row_id());
            found.lock().unwrap().push(text);
            Ok::<_, String>(())
        };
        reconcile.pass(note).await.unwrap();
        passes += 1;
    }
    assert_eq!(passes, 3);
    assert_eq!(*found.lock().unwrap(), [format!("updated {row}")]);
}
