//! The engine: begins each attempt at its time and decides about the next one.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hookgate::RetrySchedule;
use hookgate_testing::sender::{AttemptEnd, Attempted, Reading};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::flight::Flight;
use super::record::{Answer, Attempt, Delivery, DeliveryState, Record, Sent, headers};
use super::route::{Reach, Route};
use super::state::{Number, State};
use super::subscription::made;
use crate::events::{Emitted, Envelope};
use crate::faults::{Fault, Faults};
use crate::ids::Ids;
use crate::live::Live;
use crate::switches::{Switch, Switches};
use crate::time::{EmulatorClock, Moment};

/// The service's schedule of retries.
pub(super) const SCHEDULE: RetrySchedule = RetrySchedule::SERVICE;
/// The longest time that the fault `reordered` holds a delivery.
const HELD: Duration = Duration::from_secs(10);
/// Shuffled deliveries are spread over this time.
const SHUFFLED_MILLIS: u64 = 1_000;
/// What the fault `wrong-secret` signs with.
const WRONG_SECRET: &str = "whsec_made_up_of_another_subscription";

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

/// The engine. Clones share it. Its lock is the innermost: what it calls takes no lock of another room but those of ids,
/// switches and faults.
#[derive(Clone)]
pub(crate) struct Deliveries {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) parts: Parts,
    pub(super) route: Route,
    state: Mutex<State>,
    runtime: Handle,
    /// Attempts have ended, or everything was forgotten.
    pub(super) changed: Notify,
    /// Another attempt may be the next one.
    pub(super) wake: Arc<Notify>,
    pub(super) advancing: tokio::sync::Mutex<()>,
}

/// What is known of an attempt when it begins.
struct Begun {
    epoch: u64,
    number: Number,
    subscription: String,
    at: Moment,
    fault: Option<Fault>,
}

impl Deliveries {
    /// Makes an engine without subscriptions. It sends on the runtime that this is called on.
    pub(crate) fn new(parts: Parts) -> Self {
        let route = parts.route.clone();
        let inner = Arc::new(Inner {
            route: route.unwrap_or_else(|| Route::http(parts.reach)),
            parts,
            state: Mutex::default(),
            runtime: Handle::current(),
            changed: Notify::new(),
            wake: Arc::default(),
            advancing: tokio::sync::Mutex::default(),
        });
        let (weak, wake) = (Arc::downgrade(&inner), Arc::clone(&inner.wake));
        inner.runtime.spawn(super::passing::watch(weak, wake));
        Self { inner }
    }

    /// Sends an event to every subscription that takes it. Does not wait, and keeps the order of its calls.
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

    /// Sends a delivery once more, as a delivery of its own: the same event, signed anew. `None` where there is no such delivery.
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

    /// Sends a subscription a test event, whatever its filters say. The specification shows no payload: here its type is `test`,
    /// its `data` is empty, and it has one attempt, as in `hookgate_testing::sender`. `None` where there is no such subscription.
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
    pub(crate) fn records(&self, event_id: Option<&str>) -> Vec<Record> {
        let state = self.inner.state();
        let wanted = |delivery: &&Delivery| event_id.is_none_or(|id| delivery.event_id == id);
        let found = state.deliveries.values().rev().filter(wanted);
        found
            .map(|delivery| delivery.record(&self.inner.parts.clock))
            .collect()
    }

    /// Returns a delivery with the requests and answers of its attempts.
    pub(crate) fn detail(&self, id: &str) -> Option<Value> {
        let state = self.inner.state();
        let (_, delivery) = state.find(id)?;
        Some(delivery.detail(&self.inner.parts.clock))
    }

    /// Returns the request of an attempt, counted from 1, as it was sent.
    #[cfg(test)]
    pub(crate) fn request(&self, id: &str, attempt: usize) -> Option<http::Request<bytes::Bytes>> {
        let state = self.inner.state();
        let (_, delivery) = state.find(id)?;
        let attempt = delivery.attempts.get(attempt.checked_sub(1)?)?;
        let mut request = http::Request::post(&attempt.request.url);
        for (name, value) in &attempt.request.headers {
            request = request.header(name, value);
        }
        request.body(delivery.sent_body(attempt)).ok()
    }

    /// Forgets all deliveries and subscriptions. Attempts under way are cut off.
    pub(crate) fn reset(&self) {
        self.inner.state().clear();
        self.inner.tell_changed();
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
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell_changed(&self) {
        self.changed.notify_waiters();
        self.wake.notify_one();
    }

    pub(super) fn tell(&self, delivery: Option<&Delivery>) {
        if let Some(delivery) = delivery {
            self.parts
                .live
                .tell("delivery", Told(delivery, &self.parts.clock));
        }
    }

    fn reading(&self) -> Reading {
        if self.parts.switches.is(Switch::Attempts, "6") {
            Reading::EveryWait
        } else {
            Reading::FewestAttempts
        }
    }

    /// The delay of a first attempt: the event's id decides about it.
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
            id: self.parts.ids.make("dlv_"),
            subscription: subscription.to_owned(),
            event_id: event.id.clone(),
            event_type: event.event_type.clone(),
            body: event.body.clone(),
            state: DeliveryState::Pending,
            reason: None,
            due: None,
            once,
            reordered: false,
            first_signed: None,
            attempts: Vec::new(),
        };
        let number = state.add(delivery, due);
        self.tell(state.deliveries.get(&number));
        number
    }

    /// Begins every attempt whose time has come.
    pub(super) fn begin(self: &Arc<Self>, state: &mut State) {
        if state.stopped {
            return;
        }
        let one_by_one = self.parts.switches.is(Switch::DeliveryOrder, "oneByOne");
        loop {
            let now = self.parts.clock.moment();
            let begun = state.begin(now, one_by_one);
            if begun.is_empty() {
                break;
            }
            for number in begun {
                self.begin_one(state, number, now);
            }
        }
        // Tasks at their end are removed now.
        while state.tasks.try_join_next().is_some() {}
    }

    fn begin_one(self: &Arc<Self>, state: &mut State, number: Number, at: Moment) {
        let (epoch, clock) = (state.epoch, &self.parts.clock);
        let Some(delivery) = state.deliveries.get_mut(&number) else {
            return;
        };
        let attempt = u32::try_from(delivery.attempts.len() + 1).unwrap_or(u32::MAX);
        let held_before = std::mem::take(&mut delivery.reordered);
        let drawn = || {
            let faults = &self.parts.faults;
            faults.delivery(&delivery.subscription, &delivery.event_id, attempt)
        };
        let fault = (!held_before).then(drawn).flatten();
        let subscription = delivery.subscription.clone();
        if fault == Some(Fault::Reordered) {
            delivery.reordered = true;
            if let Some(lane) = state.lane(&subscription) {
                lane.flying -= 1;
                lane.held.insert(number);
            }
            state.wait_until(number, at + HELD);
            return;
        }
        delivery.due = None;
        let fresh = || (clock.signing_time(), clock.offset());
        let (first, offset) = *delivery.first_signed.get_or_insert_with(fresh);
        let timestamp = if self.parts.switches.is(Switch::RetrySignatures, "first") {
            clock.aged(first, offset)
        } else {
            clock.signing_time()
        };
        let (event_id, event_type) = (delivery.event_id.clone(), delivery.event_type.clone());
        let body = delivery.body.clone();
        self.tell(Some(delivery));
        let Some(sender) = state.lane(&subscription).map(|lane| lane.sender.clone()) else {
            return;
        };
        state.begun += 1;
        state.flying.insert((at, number));
        let flight = sender.map(|sender| Flight {
            subscription: self.signing(sender, fault, state, &subscription),
            event_id,
            event_type,
            body,
            timestamp,
            fault,
            timeout: SCHEDULE.attempt_timeout(),
        });
        let begun = Begun {
            epoch,
            number,
            subscription,
            at,
            fault,
        };
        let inner = Arc::clone(self);
        state
            .tasks
            .spawn_on(inner.attempt(begun, flight), &self.runtime);
    }

    fn signing(
        &self,
        sender: hookgate_testing::sender::Subscription,
        fault: Option<Fault>,
        state: &mut State,
        subscription: &str,
    ) -> hookgate_testing::sender::Subscription {
        if fault != Some(Fault::WrongSecret) {
            return sender;
        }
        let url = state
            .lane(subscription)
            .map(|lane| lane.settings.url.clone());
        let url = url.unwrap_or_default();
        made(subscription, &url, WRONG_SECRET, &self.route).unwrap_or(sender)
    }

    async fn attempt(self: Arc<Self>, begun: Begun, flight: Option<Flight>) {
        let clock = &self.parts.clock;
        let base = clock.base_moment();
        let Some(flight) = flight else {
            let sent = Sent {
                url: String::new(),
                headers: Vec::new(),
                body: None,
            };
            let end = AttemptEnd::Failed("the subscription has no URL".to_owned());
            return self.ended(&begun, Duration::ZERO, &end, Duration::ZERO, sent, None);
        };
        let request = flight.request();
        let changed = *request.body() != flight.body;
        let sent = Sent {
            url: request.uri().to_string(),
            headers: headers(request.headers()),
            body: changed.then(|| request.body().clone()),
        };
        let Attempted {
            end,
            answer,
            elapsed,
            ..
        } = flight.fly(request).await;
        // Measured by the emulator's own clock: a clock that a test moves by hand stands still meanwhile.
        let took = clock.base_moment().saturating_sub(base);
        let took = match end {
            AttemptEnd::TimedOut => took.max(flight.timeout),
            _ => took,
        };
        let answer = answer.as_ref().map(Answer::of);
        self.ended(&begun, took, &end, elapsed, sent, answer);
    }

    /// Records the end of an attempt, and plans the next one.
    fn ended(
        self: &Arc<Self>,
        begun: &Begun,
        took: Duration,
        end: &AttemptEnd,
        elapsed: Duration,
        request: Sent,
        answer: Option<Answer>,
    ) {
        let clock = &self.parts.clock;
        let mut state = self.state();
        if state.epoch != begun.epoch {
            return;
        }
        state.flying.remove(&(begun.at, begun.number));
        if let Some(lane) = state.lane(&begun.subscription) {
            lane.flying = lane.flying.saturating_sub(1);
        }
        let Some(delivery) = state.deliveries.get_mut(&begun.number) else {
            return;
        };
        let weight = delivery.weight();
        let error = match end {
            AttemptEnd::Answered(_) => None,
            other => Some(other.to_string()),
        };
        delivery.attempts.push(Attempt {
            at: clock.millis_at(begun.at),
            status: end.status(),
            error,
            duration_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            fault: begun.fault.map(|fault| fault.name().to_owned()),
            request,
            answer,
        });
        let grown = delivery.weight().saturating_sub(weight);
        let number = u32::try_from(delivery.attempts.len()).unwrap_or(u32::MAX);
        let wait = self.reading().wait_after(&SCHEDULE, number);
        let wait = wait.filter(|_| !delivery.once && delivery.state == DeliveryState::Pending);
        let over = begun.at + took;
        match wait {
            _ if end.is_success() => state.end(begun.number, DeliveryState::Delivered),
            Some(wait) => state.wait_until(begun.number, over + wait),
            None => state.end(begun.number, DeliveryState::Discarded),
        }
        self.tell(state.deliveries.get(&begun.number));
        state.grown(grown);
        state.release(&begun.subscription, begun.number, clock.moment());
        self.begin(&mut state);
        drop(state);
        self.tell_changed();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // What waits for the next attempt finds that the engine is gone.
        self.wake.notify_one();
    }
}

/// A delivery that is written as JSON only where someone listens.
struct Told<'a>(&'a Delivery, &'a EmulatorClock);

impl serde::Serialize for Told<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.record(self.1).serialize(serializer)
    }
}

impl fmt::Debug for Deliveries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deliveries")
            .field("deliveries", &self.inner.state().deliveries.len())
            .finish_non_exhaustive()
    }
}
