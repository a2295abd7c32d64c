//! Unit tests of the engine, over a receiver that answers as each test says.

mod faults;
mod records;
mod schedule;
mod subscriptions;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use hookgate::{
    Secret, Verifier,
    clock::{Clock, ManualClock, UnixSeconds},
    verify::{DeliveryHeaders, SIGNATURE, TIMESTAMP},
};
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

/// The processor time of this thread: other work of the machine is left out.
#[cfg(unix)]
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap()
}

#[cfg(not(unix))]
fn cpu_time() -> Duration {
    std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap()
}

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

    /// The request of the first attempt, as it is kept.
    fn kept_request(&self, id: &str) -> Request<Bytes> {
        let state = self.deliveries.inner.state();
        let (_, delivery) = state.find(id).unwrap();
        let attempt = &delivery.attempts[0];
        let mut request = Request::post(&attempt.request.url);
        for (name, value) in &attempt.request.headers {
            request = request.header(name, value);
        }
        request.body(delivery.sent_body(attempt)).unwrap()
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
