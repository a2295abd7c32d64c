//! Subscriptions are made, changed and deleted; and deliveries in a snapshot. The time of the next
//! attempt is saved relative to now, so that a restored clock may show any time.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::engine::{Deliveries, Inner};
use super::record::{Delivery, DeliveryState};
use super::route::short;
use super::state::{Lane, State};
use super::subscription::Subscription;
use crate::body;
use crate::time::Moment;

impl Deliveries {
    pub(crate) fn subscriptions(&self) -> Vec<Subscription> {
        let state = self.inner.state();
        let settings = state.lanes.iter().map(|lane| lane.settings.clone());
        settings.collect()
    }

    /// Makes a subscription. `id` and `secret` are optional. The result has the secret.
    ///
    /// # Errors
    /// A sentence that states the expected form.
    pub(crate) fn create(&self, body: &Value) -> Result<Subscription, String> {
        let ids = &self.inner.parts.ids;
        let mut body = body.clone();
        let fields = body.as_object_mut().ok_or("expected an object")?;
        let id = fields.entry("id").or_insert(Value::Null);
        if id.is_null() {
            *id = ids.make("wh_").into();
        }
        let settings = Subscription::deserialize(body).map_err(|error| error.to_string())?;
        let lane = self.inner.lane(settings)?;
        let settings = lane.settings.clone();
        let mut state = self.inner.state();
        if state.lane(&settings.id).is_some() {
            let id = short(&settings.id);
            return Err(format!("there is a subscription {id} already"));
        }
        state.lanes.push(lane);
        drop(state);
        self.inner.tell_subscription(&settings);
        Ok(settings)
    }

    /// Changes the settings that the patch names. The id can't be changed. `None` if there is no
    /// such subscription.
    ///
    /// # Errors
    /// A sentence that states the expected form. Then nothing has changed.
    pub(crate) fn change(&self, id: &str, patch: &Value) -> Option<Result<Subscription, String>> {
        let mut state = self.inner.state();
        let before = state.lane(id)?.settings.clone();
        let changed = self.inner.patched(&before, patch);
        Some(changed.map(|changed| {
            let settings = changed.settings.clone();
            if let Some(lane) = state.lane(id) {
                lane.settings = changed.settings;
                lane.sender = changed.sender;
            }
            if settings.disabled && !before.disabled {
                self.inner
                    .discard_all(&mut state, id, "the subscription was disabled");
            }
            drop(state);
            self.inner.tell_subscription(&settings);
            settings
        }))
    }

    /// Deletes a subscription. What waits for it is discarded. Returns whether there was one.
    pub(crate) fn remove(&self, id: &str) -> bool {
        let mut state = self.inner.state();
        self.inner
            .discard_all(&mut state, id, "the subscription was deleted");
        let before = state.lanes.len();
        state.lanes.retain(|lane| lane.settings.id != id);
        let removed = state.lanes.len() < before;
        drop(state);
        let live = &self.inner.parts.live;
        live.tell("subscription", serde_json::json!({ "id": id }));
        self.inner.tell_changed();
        removed
    }
}

impl Inner {
    /// Checks settings.
    fn lane(&self, mut settings: Subscription) -> Result<Lane, String> {
        let secret = || self.parts.ids.make("whsec_");
        settings.secret.get_or_insert_with(secret);
        let sender = settings.sender(&self.route, self.parts.reach)?;
        Ok(Lane::new(settings, sender))
    }

    pub(super) fn lanes(&self, settings: Vec<Subscription>) -> Result<Vec<Lane>, String> {
        let mut lanes: Vec<Lane> = Vec::new();
        for settings in settings {
            let id = short(&settings.id);
            if lanes.iter().any(|lane| lane.settings.id == settings.id) {
                return Err(format!("subscription {id} is listed twice"));
            }
            let named = |error| format!("subscription {id}: {error}");
            lanes.push(self.lane(settings).map_err(named)?);
        }
        Ok(lanes)
    }

    fn patched(&self, before: &Subscription, patch: &Value) -> Result<Lane, String> {
        let patch = patch.as_object().ok_or("expected an object")?;
        if patch.get("id").is_some_and(|id| *id != before.id) {
            return Err("the id of a subscription can't be changed".to_owned());
        }
        let settings = body::patched(before, patch).map_err(|error| error.to_string())?;
        self.lane(settings)
    }

    fn discard_all(&self, state: &mut State, id: &str, reason: &str) {
        let waiting = state.lane(id).map(|lane| lane.pending.clone());
        state.discard_all(id, reason);
        for number in waiting.unwrap_or_default() {
            self.tell(state.deliveries.get(&number));
        }
    }

    fn tell_subscription(&self, settings: &Subscription) {
        self.parts.live.tell("subscription", settings.shown());
        self.tell_changed();
    }
}

/// In milliseconds.
const TEN_YEARS: u64 = 10 * 365 * 86_400_000;

impl Deliveries {
    /// Returns the subscriptions with their secrets, and the deliveries.
    pub(crate) fn saved(&self) -> (Vec<Subscription>, Vec<Delivery>) {
        let state = self.inner.state();
        let now = self.inner.parts.clock.moment();
        let deliveries = state.deliveries.values();
        let settings = state.lanes.iter().map(|lane| lane.settings.clone());
        (
            settings.collect(),
            deliveries.map(|delivery| saved(delivery, now)).collect(),
        )
    }

    /// Replaces everything by what a seed holds, and sets the clock's offset. Subscriptions without
    /// a secret get one.
    ///
    /// # Errors
    /// A sentence that states the expected form. Then nothing has changed.
    pub(crate) fn load(
        &self,
        subscriptions: Vec<Subscription>,
        deliveries: Vec<Delivery>,
        offset: Duration,
    ) -> Result<(), String> {
        let lanes = self.inner.lanes(subscriptions)?;
        let clock = &self.inner.parts.clock;
        let mut state = self.inner.state();
        state.clear();
        state.lanes = lanes;
        clock.set_offset(offset);
        let now = clock.moment();
        for mut delivery in deliveries {
            let (end, reordered) = (delivery.state, delivery.reordered);
            // At most ten years, so that no sum overflows.
            let due_in = delivery.due_in_ms.take().unwrap_or_default();
            let due = now + Duration::from_millis(due_in.min(TEN_YEARS));
            let subscription = delivery.subscription.clone();
            let number = state.add(delivery, due);
            if end != DeliveryState::Pending {
                state.end(number, end);
            } else if reordered && let Some(lane) = state.lane(&subscription) {
                lane.held.insert(number);
            }
        }
        drop(state);
        self.inner.tell_changed();
        Ok(())
    }
}

fn saved(delivery: &Delivery, now: Moment) -> Delivery {
    let due = delivery.due.unwrap_or(now).saturating_sub(now);
    let pending = delivery.state == DeliveryState::Pending;
    Delivery {
        due_in_ms: pending.then(|| as_millis(due)),
        ..delivery.clone()
    }
}

pub(super) fn as_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
