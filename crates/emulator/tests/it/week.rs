//! End to end in one clock: a client of the API, emulator, retries and a receiver of hookgate in
//! this process. In a release build, as `scripts/soak` makes it, with 10,000 events; else with a
//! part of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use bytes::Bytes;
use hookgate::{
    Event, MemoryStore, Receiver, Secret,
    clock::{ManualClock, UnixSeconds},
};
use hookgate_emulator::{Emulator, Seed};
use hookgate_testing::{InProcess, Transport, TransportError};
use http::{Request, Response};
use serde_json::json;

use crate::Service;
use crate::deliveries::SECRET;
use crate::support::count;

const WEEK: u32 = 7 * 86_400;
const STEPS: u32 = 100;

/// The way to an app that is made after the emulator, since it takes the emulator's clock.
#[derive(Clone, Default)]
struct Late(Arc<OnceLock<InProcess<Router>>>);

impl Transport for Late {
    async fn deliver(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let app = self.0.get().ok_or("no app yet")?;
        app.deliver(request).await
    }
}

/// How often each event was begun and handled.
#[derive(Clone, Default)]
struct Runs(Arc<Mutex<BTreeMap<String, (u32, u32)>>>);

/// Fails for one event in eight, on its first two runs.
async fn on_event(State(runs): State<Runs>, event: Event) -> StatusCode {
    let mut runs = runs.0.lock().unwrap();
    let (begun, handled) = runs.entry(event.id.to_string()).or_default();
    *begun += 1;
    let sum: u32 = event.id.as_str().bytes().map(u32::from).sum();
    if *begun <= 2 && sum.is_multiple_of(8) {
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    *handled += 1;
    StatusCode::NO_CONTENT
}

/// Changes a row through the API until that is done, as a client does: an answer of 429 or 500 has
/// done nothing, and a connection that closes without an answer has done the change. Returns the
/// row's id where there was an answer.
async fn written(service: &Service, method: &str, path: &str, body: &str) -> Option<String> {
    loop {
        let rows = format!("{}/datamodels/dm_orders/rows", service.emulator.base_url());
        let request = Request::builder().method(method).uri(rows + path);
        let request = request.header("authorization", "Bearer tk_test_write");
        let request = request.body(body.to_owned()).unwrap();
        let answer = service.try_send(request).await.ok()?;
        match answer.status.as_u16() {
            200 => return answer.data()["id"].as_str().map(str::to_owned),
            429 | 500 => {}
            other => panic!("{other} {answer:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_week_with_every_fault_loses_no_event_and_handles_none_twice() {
    let events = [10_000, 2_000][usize::from(cfg!(debug_assertions))];
    let way = Late::default();
    let emulator = Emulator::builder(Seed::orders())
        .clock(ManualClock::at(UnixSeconds::new(1_795_253_400)))
        .transport(way.clone())
        .switch("rateLimit", "off")
        .start()
        .await
        .unwrap();
    let receiver = Receiver::builder()
        .secret(Secret::new(SECRET).unwrap())
        .store(MemoryStore::default().with_clock(emulator.clock()))
        .clock(emulator.clock())
        .build()
        .unwrap();
    let runs = Runs::default();
    let app = Router::new()
        .route("/webhooks", post(on_event).layer(receiver.layer()))
        .with_state(runs.clone());
    assert!(way.0.set(InProcess::new(app)).is_ok());
    emulator.subscribe("/webhooks", SECRET).unwrap();
    emulator.every_fault_seeded(1);

    let start = emulator.now();
    let service = Service::of(emulator);
    let emulator = &service.emulator;
    let mut made = None;
    for step in 0..STEPS {
        for number in 0..events / STEPS {
            let quantity = step * 1_000 + number;
            let body = json!({ "values": { "prop_quantity": quantity } }).to_string();
            // Each of these emits one event.
            match (number % 4, made.take()) {
                (0, _) => made = written(&service, "POST", "", &body).await,
                (1, Some(row)) => {
                    written(&service, "DELETE", &format!("/{row}"), "").await;
                }
                _ => {
                    written(&service, "PATCH", "/row_order_1", &body).await;
                }
            }
        }
        emulator
            .advance(Duration::from_secs((WEEK / STEPS).into()))
            .await;
    }
    let week = Duration::from_secs(WEEK.into());
    assert_eq!(emulator.now().since(start), Some(week));
    // No retry comes later than 2 h 36 min after its event.
    emulator.advance(Duration::from_secs(86_400)).await;

    let deliveries = emulator.deliveries();
    assert_eq!(deliveries.len(), events as usize);
    let runs = runs.0.lock().unwrap();
    let mut discarded = 0;
    for delivery in &deliveries {
        let id = delivery["eventId"].as_str().unwrap();
        let handled = runs.get(id).map_or(0, |(_, handled)| *handled);
        assert!(handled <= 1, "handled {handled} times: {delivery:#}");
        match delivery["state"].as_str() {
            Some("delivered") => assert_eq!(handled, 1, "{delivery:#}"),
            Some("discarded") => {
                discarded += 1;
                assert_eq!(count(&delivery["attempts"]), 5, "{delivery:#}");
            }
            _ => panic!("not at its end: {delivery:#}"),
        }
    }
    // Five attempts of which six in ten have a fault.
    assert!(discarded < deliveries.len() / 4, "{discarded}");
    let is_delivered = |id: &String| deliveries.iter().any(|one| one["eventId"] == **id);
    assert!(runs.keys().all(is_delivered));
    let faults = emulator.faults();
    assert_eq!(faults.len(), 14);
    for entry in faults {
        assert!(entry["hits"].as_u64().unwrap() > 20, "{entry}");
    }
}
