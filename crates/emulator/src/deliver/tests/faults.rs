//! Faults, signatures, and receivers that fail.

use super::*;

#[tokio::test(start_paused = true)]
async fn faults_that_forge_are_refused_and_come_sound_with_the_retry() {
    for name in ["altered-byte", "stale", "ahead", "wrong-secret"] {
        let room = room(500);
        room.fault(json!({ "fault": name, "first": 1 }));
        room.emit("evt_1");
        room.deliveries.settled().await;
        assert!(!room.is_sound(&room.arrived(0)), "{name}");
        assert_eq!(room.advance("1m").await, 1);
        assert!(room.is_sound(&room.arrived(1)), "{name}");
        assert_eq!(room.parts.faults.list()[0]["hits"], 1);
        let id = room.record("evt_1").id;
        let detail = room.deliveries.detail(&id).unwrap();
        assert_eq!(detail["attempts"][0]["fault"], name);
        assert_eq!(detail["attempts"][1]["fault"], Value::Null);
        // What was sent is kept as it was sent.
        let kept = room.kept_request(&id);
        assert_eq!(kept.body(), room.arrived(0).body(), "{name}");
        assert_eq!(kept.headers(), room.arrived(0).headers(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_byte_that_is_altered_is_one_byte() {
    let room = room(401);
    room.fault(json!({ "fault": "altered-byte", "first": 1 }));
    room.emit("evt_1");
    room.deliveries.settled().await;
    let (sent, signed) = (room.arrived(0).into_body(), event("evt_1").body);
    assert_eq!(sent.len(), signed.len());
    let differ = sent.iter().zip(&signed).filter(|(one, other)| one != other);
    assert_eq!(differ.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn gzip_compresses_what_was_signed() {
    let room = room(415);
    room.fault(json!({ "fault": "gzip", "first": 1 }));
    room.emit("evt_1");
    room.deliveries.settled().await;
    let sent = room.arrived(0);
    assert_eq!(sent.headers()["content-encoding"], "gzip");
    assert!(sent.body().starts_with(&[0x1f, 0x8b]));
    let mut plain = sent.clone();
    *plain.body_mut() = event("evt_1").body;
    assert!(room.is_sound(&plain));
}

#[tokio::test(start_paused = true)]
async fn faults_of_the_network() {
    for (name, arrivals, error) in [
        ("duplicated", 2, None),
        ("lost-answer", 1, Some("the answer was lost")),
        ("slow", 1, Some("no answer in time")),
        ("reset", 0, Some("the connection was reset")),
    ] {
        let room = room(200);
        room.fault(json!({ "fault": name, "first": 1 }));
        room.emit("evt_1");
        room.deliveries.settled().await;
        let record = room.record("evt_1");
        assert_eq!(room.times().len(), arrivals, "{name}");
        assert_eq!(record.attempts[0].error.as_deref(), error, "{name}");
        room.advance("1h").await;
        assert_eq!(room.state("evt_1"), DeliveryState::Delivered, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reordered_delivery_comes_after_the_next_one_or_ten_seconds_later() {
    let room = room(200);
    room.fault(json!({ "fault": "reordered", "first": 1 }));
    for id in ["evt_1", "evt_2", "evt_3"] {
        room.emit(id);
    }
    room.deliveries.settled().await;
    let mut ids = room.ids();
    assert_eq!(ids.len(), 3);
    assert_ne!(ids.remove(0), "evt_1");
    assert_eq!(room.parts.faults.list()[0]["hits"], 1);

    room.fault(json!({ "fault": "reordered", "first": 1 }));
    room.emit("evt_4");
    room.deliveries.settled().await;
    assert_eq!(room.state("evt_4"), DeliveryState::Pending);
    assert_eq!(room.advance("10s").await, 1);
    assert_eq!(room.times()[3], 10);
}

#[tokio::test(start_paused = true)]
async fn signatures_of_retries_are_fresh_or_the_first() {
    for first in [false, true] {
        let room = room(500);
        let value = if first { "first" } else { "fresh" };
        room.parts
            .switches
            .set("retrySignatures", &json!(value))
            .unwrap();
        room.emit("evt_1");
        room.advance("3d").await;
        let stamps = |name: &str| -> Vec<String> {
            let arrived = room.receiver.arrived.lock().unwrap();
            let values = arrived
                .iter()
                .map(|(_, _, request)| &request.headers()[name]);
            values
                .map(|value| value.to_str().unwrap().to_owned())
                .collect()
        };
        let (times, signatures) = (stamps(TIMESTAMP), stamps(SIGNATURE));
        let later = |seconds: i64| (START.as_i64() + seconds).to_string();
        if first {
            assert_eq!(times, [(); 5].map(|()| later(0)));
            assert!(signatures.iter().all(|other| *other == signatures[0]));
        } else {
            assert_eq!(times, [0, 60, 360, 2_160, 9_360].map(later));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_panics_is_a_failed_attempt() {
    let room = room_on(ManualClock::at(START), |number, _| {
        assert!(number > 1, "the receiver panics");
        (200, Duration::ZERO)
    });
    room.emit("evt_1");
    room.advance("1h").await;
    let record = room.record("evt_1");
    assert_eq!(
        record.attempts[0].error.as_deref(),
        Some("the receiver panicked")
    );
    assert_eq!(record.state, DeliveryState::Delivered);
}
