//! Apps under replay: correct ones, and their counts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use hookgate::{Delivery, MemoryStore, Receiver, ReceiverBuilder};
use hookgate_testing::replay::{Mode, ReplayClock, ReplayError, Report};
use hookgate_testing::{Harness, Replay};
use http::StatusCode;

/// The effects of handlers, by event, across processes.
#[derive(Clone, Default)]
pub struct Effects(Arc<Mutex<BTreeMap<String, usize>>>);

impl Effects {
    pub fn add(&self, id: &str) {
        *self.0.lock().unwrap().entry(id.to_owned()).or_default() += 1;
    }

    pub fn of(&self, id: &str) -> usize {
        self.0.lock().unwrap().get(id).copied().unwrap_or(0)
    }

    pub fn each_once(&self, events: usize) -> bool {
        let counts = self.0.lock().unwrap();
        counts.len() == events && counts.values().all(|count| *count == 1)
    }
}

/// A store that outlives processes.
pub fn durable(clock: ReplayClock) -> MemoryStore {
    MemoryStore::default().with_clock(clock)
}

/// Handles at once; remembers in this store.
pub fn app(
    harness: &Harness,
    store: MemoryStore,
    effects: &Effects,
) -> Result<Router, ReplayError> {
    slow_app(harness, store, effects, Duration::ZERO)
}

/// Takes so long, and counts at its end.
pub fn slow_app(
    harness: &Harness,
    store: MemoryStore,
    effects: &Effects,
    takes: Duration,
) -> Result<Router, ReplayError> {
    let effects = effects.clone();
    let handler = move |delivery: Delivery| {
        let effects = effects.clone();
        async move {
            if !takes.is_zero() {
                tokio::time::sleep(takes).await;
            }
            effects.add(delivery.event_id());
            StatusCode::NO_CONTENT
        }
    };
    let guard = harness.layer(Receiver::builder().store(store))?;
    Ok(Router::new().route("/webhooks", post(handler).layer(guard)))
}

/// Forgets with its process.
pub fn forgetful(harness: &Harness, effects: &Effects) -> Result<Router, ReplayError> {
    app(harness, durable(harness.clock()), effects)
}

/// Replays against an app that forgets with its process.
pub async fn forgetfully<M: Mode>(replay: Replay<M>, effects: &Effects) -> Report {
    let report = replay.against(|harness| forgetful(&harness, effects));
    report.await.unwrap()
}

/// Replays against an app whose handler takes so long and whose store outlives its processes: each
/// event is committed once.
pub async fn durably(replay: Replay, effects: &Effects, takes: Duration) -> Report {
    let store = durable(replay.clock());
    let report = replay.against(|harness| slow_app(&harness, store.clone(), effects, takes));
    let report = report.await.unwrap();
    assert!(report.each_event_committed_once(), "{report}");
    report
}

/// An app with these settings, whose handler handles everything.
pub fn guarded(harness: &Harness, settings: ReceiverBuilder) -> Result<Router, ReplayError> {
    let handler = async |_: Delivery| StatusCode::NO_CONTENT;
    let guard = harness.layer(settings)?;
    Ok(Router::new().route("/webhooks", post(handler).layer(guard)))
}

/// Settings with a store in memory, in the time of the replay.
pub fn in_memory(harness: &Harness) -> ReceiverBuilder {
    Receiver::builder().store(durable(harness.clock()))
}
