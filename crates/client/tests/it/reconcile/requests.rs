//! The order guard's hook, joined to requests for passes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use hookgate::{Event, MemoryStore, Receiver, Secret};
use hookgate_client::reconcile::{MemoryMirror, Reconcile, Reconciled, Settings, feed};
use hookgate_order::{MemoryOrderStore, OrderGuard};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::support::{client, orders};

async fn on_event(State(mirror): State<Arc<MemoryMirror>>, event: Event) -> StatusCode {
    feed(&*mirror, &event).await.unwrap();
    StatusCode::NO_CONTENT
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_that_the_order_guard_sees_leads_to_the_passes_that_repair_it() {
    let emulator = orders().await;
    let mirror = Arc::new(MemoryMirror::default());
    let mut settings = Settings::default();
    settings.is_filling = true;
    let mut filling = Reconcile::new(
        client(&emulator),
        Arc::clone(&mirror),
        "dm_orders",
        settings,
    );
    filling.pass(async |_| Ok::<_, String>(())).await.unwrap();
    let settings = Settings::default();
    let mut reconcile = Reconcile::new(
        client(&emulator),
        Arc::clone(&mirror),
        "dm_orders",
        settings,
    );

    let requests = reconcile.requests();
    let guard = OrderGuard::new(MemoryOrderStore::default()).on_ordered(move |told| {
        if told.gap.is_some() {
            requests.ask();
        }
    });
    let secret = "whsec_made_up_for_this_test";
    let receiver = Receiver::builder()
        .secret(Secret::new(secret).unwrap())
        .store(MemoryStore::default().with_clock(emulator.clock()))
        .clock(emulator.clock())
        .build()
        .unwrap();
    let route = post(on_event).layer((receiver.layer(), guard));
    let router = Router::new().route("/", route).with_state(mirror);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    emulator.subscribe(&url, secret).unwrap();

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
    server.abort();
    assert_eq!(passes, 3);
    assert_eq!(*found.lock().unwrap(), [format!("updated {row}")]);
}
