//! Client, driver and mirror against the emulator: what its API lists, and events that were never delivered.

use std::convert::Infallible;
use std::future::ready;
use std::sync::{Arc, Mutex};

use hookgate_client::reconcile::{MemoryMirror, Reconcile, Reconciled, Settings};
use hookgate_client::{ApiKey, Client};
use hookgate_emulator::{Emulator, Seed};
use serde_json::json;

#[allow(dead_code)] // its `main`
#[path = "../../../examples/reconcile.rs"]
mod example;

#[tokio::test]
async fn the_example_finds_what_the_outage_hid() {
    assert_eq!(
        example::found().await.unwrap(),
        ["updated: Ada", "created: Cy", "deleted: Bo"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_without_a_delivery_are_found_through_the_api() {
    let emulator = Emulator::builder(Seed::orders())
        .switch("rateLimit", "off")
        .start()
        .await
        .unwrap();
    let key = ApiKey::new("tk_test_read").unwrap();
    let client = Client::builder(&emulator.base_url(), key)
        .allow_plain_http()
        .build()
        .unwrap();
    let rows = emulator.rows("dm_orders");
    for number in 0..600 {
        rows.create(json!({ "prop_customer": format!("Customer {number}"), "prop_total": number }))
            .unwrap();
    }
    let mirror = Arc::new(MemoryMirror::with_values());
    let mut filling = Settings::default();
    filling.is_filling = true;
    let mut filling = Reconcile::new(client.clone(), Arc::clone(&mirror), "dm_orders", filling);
    let report = filling
        .pass(|_| ready(Ok::<_, Infallible>(())))
        .await
        .unwrap();
    assert!(
        report.pass.is_complete && report.handled >= 600,
        "{report:?}"
    );

    // The receiver is down.
    let created = rows
        .create(json!({ "prop_customer": "Ada", "prop_total": 12.5 }))
        .unwrap();
    let updated = rows.create(json!({ "prop_customer": "Bo" })).unwrap();
    filling
        .pass(|_| ready(Ok::<_, Infallible>(())))
        .await
        .unwrap();
    rows.update(&updated, json!({ "prop_customer": "Cy" }))
        .unwrap();
    rows.delete(&created).unwrap();
    let other = rows
        .create(json!({ "prop_customer": "Di", "prop_total": 3 }))
        .unwrap();

    let mut reconcile = Reconcile::new(client, mirror, "dm_orders", Settings::default());
    let found = Mutex::new(Vec::new());
    for _ in 0..4 {
        let note = |finding: Reconciled| {
            found
                .lock()
                .unwrap()
                .push(format!("{} {}", finding.kind(), finding.row_id()));
            ready(Ok::<_, Infallible>(()))
        };
        assert!(reconcile.pass(note).await.unwrap().pass.is_complete);
    }
    let mut found = found.into_inner().unwrap();
    found.sort();
    assert_eq!(
        found,
        [
            format!("created {other}"),
            format!("deleted {created}"),
            format!("updated {updated}")
        ]
    );
}
