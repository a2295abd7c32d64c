//! Records, snapshots, limits and settings.

use super::*;

#[tokio::test(start_paused = true)]
async fn records_have_the_fixed_form() {
    let room = room(503);
    room.emit("evt_1");
    room.deliveries.settled().await;
    let shown = serde_json::to_value(room.record("evt_1")).unwrap();
    let id = shown["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("dlv_"));
    let payload: Value = serde_json::from_slice(&event("evt_1").body).unwrap();
    let expected = json!({
        "number": 0,
        "id": id,
        "subscriptionId": "wh_1",
        "eventId": "evt_1",
        "eventType": "row.created",
        "payload": payload,
        "state": "pending",
        "nextAttemptAt": "2026-11-21T09:31:00.000Z",
        "attempts": [{ "at": "2026-11-21T09:30:00.000Z", "status": 503, "error": null,
            "meaning": hookgate_testing::sender::meaning(503), "durationMs": 0 }],
        "retryCount": 0,
    });
    assert_eq!(shown, expected);
    let detail = room.deliveries.detail(&id).unwrap();
    assert_eq!(detail["attempts"][0]["answer"]["body"], "seen");
    assert_eq!(
        detail["attempts"][0]["request"]["body"],
        String::from_utf8_lossy(&event("evt_1").body).as_ref()
    );
    assert!(!detail.to_string().contains(SECRET));
}

// fault F36: a snapshot of the emulator loses the hits of faults, the logs, the rate windows, or what the attempts of a delivery were
#[tokio::test(start_paused = true)]
async fn a_snapshot_goes_on_where_it_was_made() {
    let room = room(500);
    room.emit("evt_1");
    room.advance("90s").await;
    let (subscriptions, saved) = room.deliveries.saved();
    let other = self::room(200);
    let offset = room.parts.clock.offset();
    let loaded = other.deliveries.load(subscriptions, saved, offset);
    loaded.unwrap();
    assert_eq!(
        other.deliveries.subscriptions(),
        room.deliveries.subscriptions()
    );
    let mut kept = serde_json::to_value(other.record("evt_1")).unwrap();
    kept["nextAttemptAt"] = Value::Null;
    let mut made = serde_json::to_value(room.record("evt_1")).unwrap();
    made["nextAttemptAt"] = Value::Null;
    assert_eq!(kept, made);
    // The third attempt is 300 s after the second, of which 30 s are over.
    assert_eq!(other.advance("269s").await, 0);
    assert_eq!(other.advance("1s").await, 1);
    assert_eq!(other.state("evt_1"), DeliveryState::Delivered);
    let as_json = |room: &Room| serde_json::to_value(room.deliveries.saved()).unwrap();
    let again = as_json(&other);
    let (subscriptions, saved) = serde_json::from_value(again.clone()).unwrap();
    let offset = other.parts.clock.offset();
    let loaded = room.deliveries.load(subscriptions, saved, offset);
    loaded.unwrap();
    assert_eq!(room.advance("3d").await, 0);
    assert_eq!(as_json(&room), again);

    let broken = json!([{ "id": "a", "url": "no url" }]);
    let broken = serde_json::from_value(broken).unwrap();
    let loaded = room.deliveries.load(broken, Vec::new(), Duration::ZERO);
    assert!(loaded.is_err());
    assert_eq!(as_json(&room), again);
}

#[tokio::test(start_paused = true)]
async fn a_reset_cuts_off_what_is_under_way() {
    let room = room_on(ManualClock::at(START), |_, _| (500, Duration::from_secs(3)));
    room.emit("evt_1");
    sleep(Duration::from_secs(1)).await;
    let passing = {
        let deliveries = room.deliveries.clone();
        tokio::spawn(async move { deliveries.advance(Duration::from_secs(86_400)).await })
    };
    tokio::task::yield_now().await;
    room.deliveries
        .load(Vec::new(), Vec::new(), Duration::ZERO)
        .unwrap();
    assert_eq!(passing.await.unwrap(), 0);
    room.deliveries.settled().await;
    assert!(room.deliveries.records(None).is_empty() && room.deliveries.subscriptions().is_empty());
    assert_eq!(room.advance("3d").await, 0);
    assert_eq!(room.times().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_log_is_bounded_and_what_waits_is_kept() {
    let room = room_on(ManualClock::at(START), |_, id| {
        (if id == "evt_waits" { 500 } else { 200 }, Duration::ZERO)
    });
    room.emit("evt_waits");
    for number in 0..10_050 {
        room.emit(&format!("evt_{number}"));
    }
    room.deliveries.settled().await;
    let records = room.deliveries.records(None);
    assert_eq!(records.len(), 10_001);
    assert_eq!(room.state("evt_waits"), DeliveryState::Pending);
    assert_eq!(records[0].event_id, "evt_10049");
    assert!(room.deliveries.records(Some("evt_0")).is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_bounded_too() {
    let room = room(500);
    let mut large = event("evt_large");
    large.body = vec![b' '; 1 << 20].into();
    for _ in 0..100 {
        room.deliveries.emit(&large);
    }
    room.deliveries.settled().await;
    let records = room.deliveries.records(None);
    let waiting = records
        .iter()
        .filter(|record| record.state == DeliveryState::Pending)
        .count();
    assert!((60..64).contains(&waiting), "{waiting}");
    let bytes: usize = records.iter().map(|record| record.payload.0.len()).sum();
    assert!(bytes <= 64 << 20);
}

#[tokio::test(start_paused = true)]
async fn settings_are_checked_with_what_is_expected() {
    let room = room(200);
    for (body, told) in [
        (json!([]), "object"),
        (json!({ "url": 5 }), "string"),
        (json!({ "nam": "x" }), "nam"),
        (json!({ "events": ["row.made"] }), "row.created"),
        (json!({ "secret": "short" }), "secret"),
        (json!({ "id": "wh_1" }), "already"),
        (json!({ "id": "a\nb", "url": "/" }), "header"),
        (json!({ "id": "" }), "header"),
        (json!({ "url": "no url" }), "URL"),
    ] {
        let error = room.deliveries.create(&body).unwrap_err();
        assert!(error.contains(told), "{body}: {error}");
    }
    let made = room.deliveries.create(&json!({ "name": "mine" })).unwrap();
    assert!(made.id.starts_with("wh_") && made.secret.as_ref().unwrap().starts_with("whsec_"));
    assert_eq!(made.events.len(), 8);
    assert!(made.shown().get("secret").is_none());
    assert!(!format!("{made:?}").contains(made.secret.as_ref().unwrap()));
    let change = |patch: Value| room.deliveries.change(&made.id, &patch).unwrap();
    assert!(change(json!({ "id": "wh_9" })).unwrap_err().contains("id"));
    assert_eq!(change(json!({ "name": "other" })).unwrap().name, "other");
    assert_eq!(change(json!({})).unwrap().secret, made.secret);
    assert!(room.deliveries.change("wh_9", &json!({})).is_none());
    // Without a URL an attempt says so.
    room.deliveries
        .test_event(&made.id, "ws_1")
        .unwrap()
        .unwrap();
    room.deliveries.settled().await;
    let record = room.deliveries.records(None).remove(0);
    assert_eq!(
        record.attempts[0].error.as_deref(),
        Some("the subscription has no URL")
    );
}

/// Such a search, for each event that was discarded, made a batch of 100,000 rows last 11 s.
// fault V3: each event beyond the limit of waiting deliveries costs a search through all that wait: a batch of 100,000 rows takes 11 s
#[tokio::test(start_paused = true)]
async fn the_end_of_a_waiting_delivery_costs_no_search_through_the_others() {
    let room = room_on(ManualClock::at(START), |_, _| (200, Duration::from_secs(1)));
    let waiting = 10_000;
    (0..waiting).for_each(|_| room.emit("evt_1"));
    let began = cpu_time();
    let disabled = json!({ "disabled": true });
    room.deliveries.change("wh_1", &disabled).unwrap().unwrap();
    let took = cpu_time() - began;
    assert!(took < Duration::from_secs(1), "{took:?}");
    let records = room.deliveries.records(None);
    let is_discarded = |record: &Record| record.state == DeliveryState::Discarded;
    assert!(records.len() >= waiting && records.iter().all(is_discarded));
}
