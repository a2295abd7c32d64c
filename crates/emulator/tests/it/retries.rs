//! *Delivery and retry*, over real connections: the clock of the emulator is moved by the test
//! alone.

use std::time::{Duration, Instant};

use hookgate_emulator::Seed;
use serde_json::{Value, json};

use crate::Service;
use crate::deliveries::{SECRET, nobody, receiver, receiver_at};
use crate::support::{count, each};

/// Changes a row, waits for the first attempt, and returns the delivery.
async fn changed(service: &Service, quantity: u32) -> Value {
    let rows = service.emulator.rows("dm_orders");
    rows.update("row_order_1", json!({ "prop_quantity": quantity }))
        .unwrap();
    service.emulator.settled().await;
    service.emulator.deliveries().remove(0)
}

#[tokio::test]
async fn a_receiver_that_is_down_for_30_hours_gets_what_is_not_discarded() {
    let service = Service::by_hand(Seed::orders()).await;
    let address = nobody().await;
    let url = format!("http://{address}/webhooks");
    service.emulator.subscribe(&url, SECRET).unwrap();
    for hour in 0..30 {
        let delivery = changed(&service, 100 + hour).await;
        assert_eq!(delivery["state"], "pending");
        let attempt = &delivery["attempts"][0];
        assert_eq!(attempt["status"], Value::Null);
        assert!(
            attempt["error"].as_str().unwrap().contains("onnect"),
            "{attempt}"
        );
        service.advance("1h").await.json();
    }
    let (handled, _) = receiver_at(Some(&service.emulator), address).await;
    service.advance("2d").await.json();
    let deliveries = json!(service.emulator.deliveries());
    let states = each(&deliveries, "state");
    let state = |state: &str| states.iter().filter(|one| **one == state).count();
    // Two hours and 36 minutes after its event the last attempt was made: those of the last three
    // hours have one left.
    assert_eq!((state("delivered"), state("discarded")), (2, 28));
    assert_eq!(handled.events().len(), 2);
    for attempts in each(&deliveries, "attempts") {
        assert_eq!(count(&attempts), 5, "{attempts:#}");
    }
}

#[tokio::test]
async fn each_fault_over_a_real_connection_and_the_sound_retry() {
    for (fault, status, error) in [
        ("altered-byte", Some(401), None),
        ("stale", Some(401), None),
        ("ahead", Some(401), None),
        ("wrong-secret", Some(401), None),
        ("gzip", Some(415), None),
        ("duplicated", Some(204), None),
        ("lost-answer", None, Some("the answer was lost")),
        ("reset", None, Some("the connection was reset")),
        ("slow", None, Some("no answer in time")),
    ] {
        let service = Service::by_hand(Seed::orders()).await;
        let (handled, url) = receiver(Some(&service.emulator)).await;
        service.emulator.subscribe(&url, SECRET).unwrap();
        service.emulator.fault_first(fault, 1).unwrap();
        let began = Instant::now();
        let delivery = changed(&service, 7).await;
        let attempt = &delivery["attempts"][0];
        assert_eq!(attempt["status"], json!(status), "{fault}");
        assert_eq!(attempt["error"], json!(error), "{fault}");
        if fault == "slow" {
            assert!(began.elapsed() >= Duration::from_secs(5));
            let millis = attempt["durationMs"].as_u64().unwrap();
            assert!((4_900..9_000).contains(&millis), "{millis}");
            // 5 s until the sender hangs up, and a minute from there.
            let next = delivery["nextAttemptAt"].as_str().unwrap();
            assert!(next.starts_with("2026-11-21T09:31:05."), "{next}");
        }
        service.advance("2m").await.json();
        let delivery = &service.emulator.deliveries()[0];
        assert_eq!(delivery["state"], "delivered", "{fault}");
        assert_eq!(handled.events().len(), 1, "{fault}");
        assert_eq!(service.emulator.faults()[0]["hits"], 1, "{fault}");
    }
}
