//! The engine: begins each attempt at its time and decides about the next one.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::record::{Delivery, DeliveryState, Number, Record};
use super::route::{Reach, Route};
use super::state::State;
use crate::events::{Emitted, Envelope};
use crate::faults::Faults;
use crate::ids::Ids;
use crate::live::Live;
use crate::switches::{Switch, Switches};
use crate::time::{EmulatorClock, Moment};

/// Shuffled deliveries are spread over this time.
const SHUFFLED_MILLIS: u64 = 1_000;

/// What the engine shares with the rest of the emulator.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) clock: EmulatorClock,
    pub(crate) ids: Ids,
    pub(crate) switches: Switches,
    pub(crate) live: Live,
    pub(crate) faults: Faults,
    pub(crate) reach: Reach,
    /// `None` is HTTP/1.1.
    pub(crate) route: Option<Route>,
}

/// A selection of deliveries: each part that is set has to fit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted<'a> {
    pub(crate) event: Option<&'a str>,
    /// The data model of its row.
    pub(crate) model: Option<&'a str>,
    pub(crate) subscription: Option<&'a str>,
    pub(crate) state: Option<DeliveryState>,
    /// A part of the event's type.
    pub(crate) event_type: Option<&'a str>,
    /// Words in lower case, each of which occurs in the delivery.
    pub(crate) search: Option<&'a str>,
}

impl Wanted<'_> {
    fn has(&self, delivery: &Delivery) -> bool {
        self.event.is_none_or(|id| delivery.event_id == id)
            && self
                .subscription
                .is_none_or(|id| delivery.subscription == id)
            && self.state.is_none_or(|state| delivery.state == state)
            && self
                .event_type
                .is_none_or(|part| delivery.event_type.contains(part))
            && self.model.is_none_or(|id| delivery.is_of_model(id))
            && self.search.is_none_or(|words| delivery.contains(words))
    }
}

/// The engine. Clones share it. Its lock is the innermost: code that holds it takes no lock of
/// another part of the emulator, except those of ids, switches and faults.
#[derive(Clone)]
pub(crate) struct Deliveries {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) parts: Parts,
    pub(super) route: Route,
    state: Mutex<State>,
    pub(super) runtime: Handle,
    /// Attempts have ended, or everything was forgotten.
    pub(super) changed: Notify,
    /// Notified when another attempt may have become the next one.
    pub(super) wake: Arc<Notify>,
    pub(super) advancing: tokio::sync::Mutex<()>,
}

impl Deliveries {
    /// Sends an event to every subscription that takes it. Does not wait, and keeps the order of
    /// its calls.
    pub(crate) fn emit(&self, event: &Emitted) {
        let inner = &self.inner;
        let Parts { clock, live, .. } = &inner.parts;
        live.tell("event", json!({ "id": event.id, "type": event.event_type }));
        let mut state = inner.state();
        let due = clock.moment() + inner.shuffled(&event.id);
        for subscription in state.takers(&event.event_type, event.model.as_deref()) {
            inner.add(&mut state, &subscription, event, false, due);
        }
        inner.begin(&mut state);
        inner.wake.notify_one();
    }

    /// Sends a delivery once more, as a delivery of its own: the same event, signed anew. `None` if
    /// there is no such delivery.
    ///
    /// # Errors
    /// The subscription is gone, or disabled.
    pub(crate) fn redeliver(&self, id: &str) -> Option<Result<Record, String>> {
        let inner = &self.inner;
        let mut state = inner.state();
        let (_, delivery) = state.find(id)?;
        let (subscription, once) = (delivery.subscription.clone(), delivery.once);
        let event = Emitted {
            id: delivery.event_id.clone(),
            event_type: delivery.event_type.clone(),
            model: None,
            body: delivery.body.clone(),
        };
        Some(inner.send(&mut state, &subscription, &event, once))
    }

    /// Sends a subscription a test event, whatever its filters say. The specification shows no
    /// payload: here its type is `test`, its `data` is empty, and it has one attempt, as in
    /// `hookgate_testing::sender`. `None` if there is no such subscription.
    ///
    /// # Errors
    /// The subscription is disabled.
    pub(crate) fn test_event(
        &self,
        subscription: &str,
        workspace_id: &str,
    ) -> Option<Result<Record, String>> {
        let inner = &self.inner;
        let id = inner.parts.ids.make("evt_test_");
        let created_at = inner.parts.clock.iso();
        let envelope = Envelope {
            id: &id,
            r#type: "test",
            created_at: &created_at,
            workspace_id,
            data: json!({}),
        };
        let mut state = inner.state();
        state.lane(subscription)?;
        Some(inner.send(&mut state, subscription, &envelope.emitted(None), true))
    }

    /// Returns the deliveries, the newest first; those of one event where it is named.
    pub(crate) fn records(&self, event: Option<&str>) -> Vec<Record> {
        let wanted = Wanted {
            event,
            ..Wanted::default()
        };
        self.newest(&wanted, usize::MAX).0
    }

    /// Returns the newest ones of the records that are wanted, and the number of all that are kept.
    pub(crate) fn newest(&self, wanted: &Wanted<'_>, limit: usize) -> (Vec<Record>, usize) {
        let state = self.inner.state();
        let kept = state.deliveries.values().rev();
        let found = kept.filter(|delivery| wanted.has(delivery)).take(limit);
        let records = found.map(|delivery| delivery.record(&self.inner.parts.clock));
        (records.collect(), state.deliveries.len())
    }

    /// Returns a delivery with the requests and answers of its attempts.
    pub(crate) fn detail(&self, id: &str) -> Option<Value> {
        let state = self.inner.state();
        let (_, delivery) = state.find(id)?;
        Some(delivery.detail(&self.inner.parts.clock))
    }

    /// Ends the engine: no attempt begins any more, and those under way are cut off.
    pub(crate) fn stop(&self) {
        let mut state = self.inner.state();
        state.stopped = true;
        state.clear();
        self.inner.tell_changed();
    }
}

impl Inner {
    pub(super) fn new(parts: Parts) -> Self {
        let route = parts.route.clone();
        Self {
            route: route.unwrap_or_else(|| Route::http(parts.reach)),
            parts,
            state: Mutex::default(),
            runtime: Handle::current(),
            changed: Notify::new(),
            wake: Arc::default(),
            advancing: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell_changed(&self) {
        self.changed.notify_waiters();
        self.wake.notify_one();
    }

    pub(super) fn tell(&self, delivery: Option<&Delivery>) {
        let Parts { live, clock, .. } = &self.parts;
        if let Some(delivery) = delivery.filter(|_| live.is_heard()) {
            live.tell("delivery", delivery.record(clock));
        }
    }

    /// The delay of a first attempt: zero, or a time computed from the event's id if deliveries are
    /// shuffled.
    fn shuffled(&self, event_id: &str) -> Duration {
        if !self.parts.switches.is(Switch::DeliveryOrder, "shuffled") {
            return Duration::ZERO;
        }
        let seed = event_id.bytes().fold(7_u64, |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(byte.into())
        });
        Duration::from_millis(fastrand::Rng::with_seed(seed).u64(..SHUFFLED_MILLIS))
    }

    fn send(
        self: &Arc<Self>,
        state: &mut State,
        subscription: &str,
        event: &Emitted,
        once: bool,
    ) -> Result<Record, String> {
        match state.lane(subscription) {
            None => return Err("the subscription was deleted".to_owned()),
            Some(lane) if lane.settings.disabled => {
                return Err("the subscription is disabled".to_owned());
            }
            Some(_) => {}
        }
        let now = self.parts.clock.moment();
        let number = self.add(state, subscription, event, once, now);
        self.begin(state);
        self.wake.notify_one();
        let delivery = state.deliveries.get(&number);
        let record = delivery.map(|delivery| delivery.record(&self.parts.clock));
        record.ok_or_else(|| "too many deliveries wait already".to_owned())
    }

    fn add(
        &self,
        state: &mut State,
        subscription: &str,
        event: &Emitted,
        once: bool,
        due: Moment,
    ) -> Number {
        let delivery = Delivery {
            number: 0,
            id: self.parts.ids.make("dlv_"),
            subscription: subscription.to_owned(),
            event_id: event.id.clone(),
            event_type: event.event_type.clone(),
            body: event.body.clone(),
            state: DeliveryState::Pending,
            reason: None,
            due: None,
            due_in_ms: None,
            once,
            reordered: false,
            first_signed: None,
            attempts: Vec::new(),
        };
        let number = state.add(delivery, due);
        self.tell(state.deliveries.get(&number));
        number
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // What waits for the next attempt finds that the engine is gone.
        self.wake.notify_one();
    }
}

impl fmt::Debug for Deliveries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deliveries")
            .field("deliveries", &self.inner.state().deliveries.len())
            .finish_non_exhaustive()
    }
}
