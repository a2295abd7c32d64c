//! Unit tests of the engine, over a receiver that answers as each test says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use hookgate::verify::{SIGNATURE, TIMESTAMP};
use hookgate::{Clock, DeliveryHeaders, ManualClock, Secret, UnixSeconds, Verifier};
use hookgate_testing::{TokioClock, Transport, TransportError};
use http::{Request, Response};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::record::DeliveryState;
use super::*;
use crate::events::Emitted;
use crate::faults::Faults;
use crate::ids::Ids;
use crate::live::Live;
use crate::switches::Switches;
use crate::time::{EmulatorClock, SigningTime};

const START: UnixSeconds = UnixSeconds::new(1_795_253_400);
const SECRET: &str = "whsec_made_up_for_these_tests";

/// A request that arrived: the second of the emulator's time, the event's id, and the request.
type Arrived = (u64, String, Request<Bytes>);
type Answer = Arc<dyn Fn(usize, &str) -> (u16, Duration) + Send + Sync>;

/// Answers with a status after a time, by the number of the request and the event's id.
#[derive(Clone)]
struct Receiver {
    clock: EmulatorClock,
    arrived: Arc<Mutex<Vec<Arrived>>>,
    at_once: Arc<Mutex<(usize, usize)>>,
    answer: Answer,
}

impl Transport for Receiver {
    async fn deliver(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let id = request.headers()["x-service-event-id"].to_str()?.to_owned();
        let number = {
            let mut arrived = self.arrived.lock().unwrap();
            arrived.push((self.clock.moment().as_secs(), id.clone(), request));
            arrived.len()
        };
        let (status, after) = (self.answer)(number, &id);
        {
            let mut at_once = self.at_once.lock().unwrap();
            at_once.0 += 1;
            at_once.1 = at_once.1.max(at_once.0);
        }
        if !after.is_zero() {
            sleep(after).await;
        }
        self.at_once.lock().unwrap().0 -= 1;
        Ok(Response::builder()
            .status(status)
            .body(Bytes::from_static(b"seen"))?)
    }
}

struct Room {
    deliveries: Deliveries,
    parts: Parts,
    receiver: Receiver,
}

fn room_on(
    base: impl Clock,
    answer: impl Fn(usize, &str) -> (u16, Duration) + Send + Sync + 'static,
) -> Room {
    let clock = EmulatorClock::new(Arc::new(base), SigningTime::Emulated);
    let receiver = Receiver {
        clock: clock.clone(),
        arrived: Arc::default(),
        at_once: Arc::default(),
        answer: Arc::new(answer),
    };
    let parts = Parts {
        clock,
        ids: Ids::seeded(7),
        switches: Switches::default(),
        live: Live::new(),
        faults: Faults::default(),
        reach: Reach::Loopback,
        route: Some(Route::to(receiver.clone())),
    };
    let deliveries = Deliveries::new(parts.clone());
    let body = json!({ "id": "wh_1", "url": "/webhooks", "secret": SECRET });
    deliveries.create(&body).unwrap();
    Room {
        deliveries,
        parts,
        receiver,
    }
}

/// A room whose clock only `advance` moves.
fn room(status: u16) -> Room {
    room_on(ManualClock::at(START), move |_, _| (status, Duration::ZERO))
}

fn event(id: &str) -> Emitted {
    event_of(id, "row.created", Some("dm_orders"))
}

fn event_of(id: &str, event_type: &str, model: Option<&str>) -> Emitted {
    let body = json!({ "id": id, "type": event_type, "data": { "datamodelId": model } });
    Emitted {
        id: id.to_owned(),
        event_type: event_type.to_owned(),
        model: model.map(str::to_owned),
        body: body.to_string().into(),
    }
}

impl Room {
    fn emit(&self, id: &str) {
        self.deliveries.emit(&event(id));
    }

    fn times(&self) -> Vec<u64> {
        let arrived = self.receiver.arrived.lock().unwrap();
        arrived.iter().map(|(at, ..)| *at).collect()
    }

    fn ids(&self) -> Vec<String> {
        let arrived = self.receiver.arrived.lock().unwrap();
        arrived.iter().map(|(_, id, _)| id.clone()).collect()
    }

    fn arrived(&self, number: usize) -> Request<Bytes> {
        self.receiver.arrived.lock().unwrap()[number].2.clone()
    }

    fn record(&self, event_id: &str) -> Record {
        let mut records = self.deliveries.records(Some(event_id));
        assert_eq!(records.len(), 1, "{records:?}");
        records.remove(0)
    }

    fn state(&self, event_id: &str) -> DeliveryState {
        self.record(event_id).state
    }

    async fn advance(&self, text: &str) -> u64 {
        let by = crate::time::duration(text).unwrap();
        self.deliveries.advance(by).await
    }

    fn fault(&self, body: Value) {
        self.parts.faults.add(&body).unwrap();
    }

    /// Whether a request is authentic and fresh for a receiver with this clock.
    fn is_sound(&self, request: &Request<Bytes>) -> bool {
        let pairs = request.headers().iter();
        let pairs = pairs.map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
        let head = DeliveryHeaders::from_pairs(pairs).unwrap();
        let verifier = Verifier::new(Secret::new(SECRET).unwrap());
        verifier
            .verify(&head, request.body(), self.parts.clock.now())
            .is_ok()
    }
}

#[tokio::test(start_paused = true)]
async fn retries_come_at_the_times_of_the_specification() {
    let room = room(500);
    room.emit("evt_1");
    room.deliveries.settled().await;
    assert_eq!(room.times(), [0]);
    let first = room.record("evt_1");
    assert_eq!(first.state, DeliveryState::Pending);
    assert_eq!(
        first.next_attempt_at.as_deref(),
        Some("2026-11-21T09:31:00.000Z")
    );

    assert_eq!(room.advance("59s").await, 0);
    assert_eq!(room.advance("1s").await, 1);
    assert_eq!(room.advance("2d").await, 3);
    // Cumulative: 1 min, 6 min, 36 min, 2 h 36 min.
    assert_eq!(room.times(), [0, 60, 360, 2_160, 9_360]);
    let last = room.record("evt_1");
    assert_eq!(
        (last.state, last.attempts.len(), last.retry_count),
        (DeliveryState::Discarded, 5, 4)
    );
    assert_eq!(last.next_attempt_at, None);
    assert_eq!(room.advance("30d").await, 0);
    assert_eq!(
        room.parts.clock.moment(),
        Duration::from_secs(60 + 32 * 86_400)
    );
}

#[tokio::test(start_paused = true)]
async fn every_wait_is_used_with_six_attempts() {
    let room = room(500);
    room.parts.switches.set("attempts", &json!("6")).unwrap();
    room.emit("evt_1");
    assert_eq!(room.advance("26h36m").await, 5);
    assert_eq!(room.times(), [0, 60, 360, 2_160, 9_360, 95_760]);
    assert_eq!(room.state("evt_1"), DeliveryState::Discarded);
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_five_seconds_is_a_failure_and_the_wait_begins_there() {
    for (millis, status) in [(4_999, Some(200)), (5_001, None)] {
        let answer = move |number, _: &str| {
            (
                200,
                Duration::from_millis(if number == 1 { millis } else { 0 }),
            )
        };
        let room = room_on(ManualClock::at(START), answer);
        room.emit("evt_1");
        room.deliveries.settled().await;
        let record = room.record("evt_1");
        assert_eq!(record.attempts[0].status, status, "{millis}");
        if status.is_none() {
            assert_eq!(
                record.attempts[0].error.as_deref(),
                Some("no answer in time")
            );
            assert_eq!(record.attempts[0].duration_ms, 5_000);
            assert_eq!(room.advance("1h").await, 1);
            assert_eq!(room.times(), [0, 65]);
        }
        assert_eq!(room.state("evt_1"), DeliveryState::Delivered);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_2xx_is_a_failure_and_2xx_is_the_end() {
    for status in [199, 300, 301, 400, 404, 410, 500, 503] {
        let room = room(status);
        room.emit("evt_1");
        room.deliveries.settled().await;
        assert_eq!(room.state("evt_1"), DeliveryState::Pending, "{status}");
    }
    for status in [200, 204, 299] {
        let room = room(status);
        room.emit("evt_1");
        room.advance("3d").await;
        assert_eq!(room.times(), [0]);
        let record = room.record("evt_1");
        assert_eq!(record.state, DeliveryState::Delivered, "{status}");
        assert_eq!(record.attempts[0].status, Some(status));
    }
}

#[tokio::test(start_paused = true)]
async fn tokios_time_makes_the_retries_come_by_themselves() {
    let room = room_on(TokioClock::starting_at(START), |_, _| (500, Duration::ZERO));
    room.emit("evt_1");
    sleep(Duration::from_secs(3 * 3_600)).await;
    assert_eq!(room.times(), [0, 60, 360, 2_160, 9_360]);
    assert_eq!(room.state("evt_1"), DeliveryState::Discarded);
}

#[tokio::test(start_paused = true)]
async fn time_that_passes_during_attempts_loses_and_repeats_none() {
    // Each first attempt takes 3 s and fails, so that retries come due while others are under way.
    let answer = |number: usize, _: &str| {
        let fails = number.is_multiple_of(3);
        (
            if fails { 500 } else { 204 },
            Duration::from_millis(number as u64 * 37 % 3_000),
        )
    };
    let room = room_on(TokioClock::starting_at(START), answer);
    let mut emitted = 0;
    for round in 0..40 {
        for _ in 0..25 {
            emitted += 1;
            room.emit(&format!("evt_{emitted}"));
        }
        if round % 3 == 0 {
            // Two at once run one after the other.
            let (one, two) = tokio::join!(room.advance("7m"), room.advance("40m"));
            assert!(one + two > 0);
        }
    }
    room.advance("3d").await;
    let records = room.deliveries.records(None);
    assert_eq!(records.len(), emitted);
    let mut seen = BTreeMap::<String, usize>::new();
    for id in room.ids() {
        *seen.entry(id).or_default() += 1;
    }
    for record in &records {
        assert_ne!(record.state, DeliveryState::Pending, "{record:?}");
        assert_eq!(seen[&record.event_id], record.attempts.len(), "{record:?}");
        let delivered = record
            .attempts
            .iter()
            .filter(|attempt| attempt.status == Some(204));
        assert!(delivered.count() <= 1, "{record:?}");
    }
    assert!(room.times().is_sorted(), "in order of time");
    assert!(room.receiver.at_once.lock().unwrap().1 <= 16);
}

#[tokio::test(start_paused = true)]
async fn at_most_sixteen_requests_of_a_subscription_run_at_once() {
    let room = room_on(ManualClock::at(START), |_, _| (200, Duration::from_secs(1)));
    for number in 0..100 {
        room.emit(&format!("evt_{number:03}"));
    }
    room.deliveries.settled().await;
    assert_eq!(room.receiver.at_once.lock().unwrap().1, 16);
    let ids = room.ids();
    assert!(ids.len() == 100 && ids.is_sorted());
}

#[tokio::test(start_paused = true)]
async fn subscriptions_take_their_events_and_no_others() {
    let room = room(200);
    let deliveries = &room.deliveries;
    deliveries.remove("wh_1");
    let create = |id: &str, rest: Value| {
        let mut body = json!({ "id": id, "url": "/webhooks", "secret": SECRET });
        body.as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        deliveries.create(&body).unwrap();
    };
    create("wh_all", json!({}));
    create("wh_type", json!({ "events": ["page.created"] }));
    create("wh_model", json!({ "dataModelId": "dm_orders" }));
    create("wh_none", json!({ "events": [] }));
    create("wh_off", json!({ "disabled": true }));
    deliveries.emit(&event_of("evt_row", "row.created", Some("dm_orders")));
    deliveries.emit(&event_of("evt_other", "row.created", Some("dm_clients")));
    deliveries.emit(&event_of("evt_page", "page.created", None));
    deliveries.settled().await;
    let takers = |id: &str| -> Vec<String> {
        let records = deliveries.records(Some(id));
        let mut ids: Vec<_> = records
            .into_iter()
            .map(|record| record.subscription_id)
            .collect();
        ids.sort();
        ids
    };
    assert_eq!(takers("evt_row"), ["wh_all", "wh_model"]);
    assert_eq!(takers("evt_other"), ["wh_all"]);
    assert_eq!(takers("evt_page"), ["wh_all", "wh_type"]);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_or_disabled_subscription_gets_no_retry() {
    for remove in [true, false] {
        let room = room(500);
        room.emit("evt_1");
        room.deliveries.settled().await;
        if remove {
            assert!(room.deliveries.remove("wh_1"));
            assert!(!room.deliveries.remove("wh_1"));
        } else {
            let patch = json!({ "disabled": true });
            room.deliveries.change("wh_1", &patch).unwrap().unwrap();
        }
        let record = room.record("evt_1");
        assert_eq!(record.state, DeliveryState::Discarded);
        assert!(
            record
                .reason
                .unwrap()
                .contains(if remove { "deleted" } else { "disabled" })
        );
        assert_eq!(room.advance("3d").await, 0);
        assert!(room.deliveries.redeliver(&record.id).unwrap().is_err());
        room.emit("evt_2");
        room.deliveries.settled().await;
        assert_eq!(room.times(), [0]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_under_way_ends_although_its_subscription_is_deleted() {
    let room = room_on(ManualClock::at(START), |_, _| (200, Duration::from_secs(2)));
    room.emit("evt_1");
    sleep(Duration::from_secs(1)).await;
    room.deliveries.remove("wh_1");
    assert_eq!(room.state("evt_1"), DeliveryState::Discarded);
    room.deliveries.settled().await;
    assert_eq!(room.state("evt_1"), DeliveryState::Delivered);
}

#[tokio::test(start_paused = true)]
async fn a_delivery_is_sent_again_as_one_of_its_own() {
    let room = room_on(ManualClock::at(START), |number, _| {
        (if number == 1 { 500 } else { 200 }, Duration::ZERO)
    });
    room.emit("evt_1");
    room.deliveries.settled().await;
    let first = room.record("evt_1");
    let again = room.deliveries.redeliver(&first.id).unwrap().unwrap();
    room.deliveries.settled().await;
    assert_ne!(again.id, first.id);
    let records = room.deliveries.records(Some("evt_1"));
    assert_eq!(records[0].state, DeliveryState::Delivered);
    assert_eq!(records[1].state, DeliveryState::Pending);
    assert_eq!(room.arrived(0).body(), room.arrived(1).body());
    assert!(room.deliveries.redeliver("dlv_none").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_test_event_has_one_attempt_and_no_filter() {
    let room = room(500);
    let patch = json!({ "events": [] });
    room.deliveries.change("wh_1", &patch).unwrap().unwrap();
    let record = room.deliveries.test_event("wh_1", "ws_1").unwrap().unwrap();
    room.advance("3d").await;
    assert_eq!(room.times(), [0]);
    let body: Value = serde_json::from_slice(room.arrived(0).body()).unwrap();
    assert_eq!(body["type"], "test");
    assert_eq!(body["workspaceId"], "ws_1");
    assert_eq!(body["id"], record.event_id.as_str());
    assert_eq!(room.state(&record.event_id), DeliveryState::Discarded);
    assert!(room.deliveries.test_event("wh_2", "ws_1").is_none());
}

#[tokio::test(start_paused = true)]
async fn one_by_one_waits_for_the_retries_of_the_one_before() {
    let room = room_on(ManualClock::at(START), |number, _| {
        (if number <= 2 { 500 } else { 200 }, Duration::ZERO)
    });
    room.parts
        .switches
        .set("deliveryOrder", &json!("oneByOne"))
        .unwrap();
    for id in ["evt_1", "evt_2", "evt_3"] {
        room.emit(id);
    }
    room.deliveries.settled().await;
    assert_eq!(room.ids(), ["evt_1"]);
    room.advance("10m").await;
    assert_eq!(room.ids(), ["evt_1", "evt_1", "evt_1", "evt_2", "evt_3"]);
    assert_eq!(room.times(), [0, 60, 360, 360, 360]);
}

#[tokio::test(start_paused = true)]
async fn shuffled_deliveries_come_in_an_order_that_the_ids_decide() {
    let orders: Vec<_> = [(); 2]
        .map(|()| async {
            let room = room(200);
            room.parts
                .switches
                .set("deliveryOrder", &json!("shuffled"))
                .unwrap();
            for number in 0..50 {
                room.emit(&format!("evt_{number:02}"));
            }
            assert_eq!(room.advance("1s").await, 50);
            room.ids()
        })
        .into();
    let mut orders = orders.into_iter();
    let (one, two) = (orders.next().unwrap().await, orders.next().unwrap().await);
    assert_eq!(one, two);
    assert!(!one.is_sorted());
}

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
        let kept = room.deliveries.request(&id, 1).unwrap();
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
        "id": id,
        "subscriptionId": "wh_1",
        "eventId": "evt_1",
        "eventType": "row.created",
        "payload": payload,
        "state": "pending",
        "nextAttemptAt": "2026-11-21T09:31:00.000Z",
        "attempts": [{ "at": "2026-11-21T09:30:00.000Z", "status": 503, "error": null, "durationMs": 0 }],
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

#[tokio::test(start_paused = true)]
async fn a_snapshot_goes_on_where_it_was_made() {
    let room = room(500);
    room.emit("evt_1");
    room.advance("90s").await;
    let snapshot = room.deliveries.snapshot();

    let other = self::room(200);
    other.deliveries.restore(&snapshot).unwrap();
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
    let text = other.deliveries.snapshot().to_string();
    let again: Value = serde_json::from_str(&text).unwrap();
    room.deliveries.restore(&again).unwrap();
    assert_eq!(room.advance("3d").await, 0);
    assert_eq!(room.deliveries.snapshot(), again);

    for broken in [
        json!(null),
        json!({}),
        json!({ "subscriptions": [{ "id": "a", "url": "no url" }], "deliveries": [] }),
    ] {
        assert!(room.deliveries.restore(&broken).is_err(), "{broken}");
        assert_eq!(room.deliveries.snapshot(), again);
    }
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
    room.deliveries.reset();
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

/// The digest is Python's: `hmac.new(secret, b"1795253400." + body, "sha256").hexdigest()`.
#[tokio::test(start_paused = true)]
async fn headers_and_signature_are_those_of_the_specification() {
    let room = room(200);
    room.emit("evt_1");
    room.deliveries.settled().await;
    let request = room.arrived(0);
    let body: &[u8] = br#"{"data":{"datamodelId":"dm_orders"},"id":"evt_1","type":"row.created"}"#;
    assert_eq!(request.body(), body);
    assert_eq!(request.method(), "POST");
    let mut headers: Vec<_> = request
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    headers.sort_unstable();
    let signature = "sha256=083958f1e14c5d15c8498aa5068cb2507285eae8749bc504a861ec26f3a519c8";
    assert_eq!(
        headers,
        [
            ("content-type", "application/json"),
            ("user-agent", "Service-Webhook/1.0"),
            ("x-service-event-id", "evt_1"),
            ("x-service-event-type", "row.created"),
            ("x-service-signature", signature),
            ("x-service-timestamp", "1795253400"),
            ("x-service-webhook-id", "wh_1"),
        ]
    );
}
