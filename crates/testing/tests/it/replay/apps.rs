//! Apps under replay: correct ones, and their counts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use hookgate::{Delivery, MemoryStore, Receiver};
use hookgate_testing::Harness;
use hookgate_testing::replay::{ReplayClock, ReplayError};
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
    let store = MemoryStore::default().with_clock(harness.clock());
    app(harness, store, effects)
}
