//! *Delivery and retry*, over real connections: the clock of the emulator is moved by the test alone.

use std::time::{Duration, Instant};

use hookgate::clock::{ManualClock, UnixSeconds};
use hookgate_emulator::{Emulator, Seed};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::Service;
use crate::deliveries::{SECRET, receiver, receiver_at};

async fn by_hand() -> Service {
    let clock = ManualClock::at(UnixSeconds::new(1_795_253_400));
    let emulator = Emulator::builder(Seed::orders()).clock(clock);
    Service::of(emulator.start().await.unwrap())
}

/// Changes a row, waits for the first attempt, and returns the delivery.
async fn changed(service: &Service, quantity: u32) -> Value {
    let rows = service.emulator.rows("dm_orders");
    rows.update("row_order_1", json!({ "prop_quantity": quantity }))
        .unwrap();
    service.emulator.settled().await;
    service.emulator.deliveries().remove(0)
}

async fn advance(service: &Service, by: &str) -> u64 {
    let body = json!({ "by": by });
    let answer = service.control("POST", "clock/advance", Some(body)).await;
    answer.json()["attempts"].as_u64().unwrap()
}

#[tokio::test]
async fn a_receiver_that_is_down_for_30_hours_gets_what_is_not_discarded() {
    let service = by_hand().await;
    // A port at which nothing listens.
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = port.local_addr().unwrap();
    drop(port);
    service
        .emulator
        .subscribe(&format!("http://{address}/webhooks"), SECRET)
        .unwrap();
    for hour in 0..30 {
        let delivery = changed(&service, 100 + hour).await;
        assert_eq!(delivery["state"], "pending");
        assert_eq!(delivery["attempts"][0]["status"], Value::Null);
        assert!(
            delivery["attempts"][0]["error"]
                .as_str()
                .unwrap()
                .contains("onnect")
        );
        advance(&service, "1h").await;
    }
    let (handled, _) = receiver_at(Some(&service.emulator), address).await;
    advance(&service, "2d").await;
    let deliveries = service.emulator.deliveries();
    let state = |state: &str| {
        deliveries
            .iter()
            .filter(|one| one["state"] == state)
            .count()
    };
    // Two hours and 36 minutes after its event the last attempt was made: those of the last three hours have one left.
    assert_eq!((state("delivered"), state("discarded")), (2, 28));
    assert_eq!(handled.events().len(), 2);
    for delivery in &deliveries {
        assert_eq!(
            delivery["attempts"].as_array().unwrap().len(),
            5,
            "{delivery:#}"
        );
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
        let service = by_hand().await;
        let (handled, url) = receiver(Some(&service.emulator)).await;
        service.emulator.subscribe(&url, SECRET).unwrap();
        service.emulator.fault_first(fault, 1).unwrap();
        let began = Instant::now();
        let delivery = changed(&service, 7).await;
        let attempt = &delivery["attempts"][0];
        assert_eq!(
            (&attempt["status"], &attempt["error"]),
            (&json!(status), &json!(error)),
            "{fault}"
        );
        if fault == "slow" {
            assert!(began.elapsed() >= Duration::from_secs(5));
            let millis = attempt["durationMs"].as_u64().unwrap();
            assert!((4_900..9_000).contains(&millis), "{millis}");
            // 5 s until the sender hangs up, and a minute from there.
            let next = delivery["nextAttemptAt"].as_str().unwrap();
            assert!(next.starts_with("2026-11-21T09:31:05."), "{next}");
        }
        advance(&service, "2m").await;
        assert_eq!(
            service.emulator.deliveries()[0]["state"],
            "delivered",
            "{fault}"
        );
        assert_eq!(handled.events().len(), 1, "{fault}");
        assert_eq!(service.emulator.faults()[0]["hits"], 1, "{fault}");
    }
}
