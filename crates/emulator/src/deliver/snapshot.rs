//! Subscriptions and deliveries as JSON. Times are kept relative to now, so that a restored clock may show any time.

use std::time::Duration;

use hookgate::UnixSeconds;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::engine::Deliveries;
use super::record::{Attempt, Delivery, DeliveryState};
use super::subscription::Subscription;
use crate::time::Moment;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Saved {
    subscriptions: Vec<Subscription>,
    deliveries: Vec<SavedDelivery>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedDelivery {
    id: String,
    subscription_id: String,
    event_id: String,
    event_type: String,
    payload: String,
    state: DeliveryState,
    reason: Option<String>,
    /// Milliseconds from now on; 0 for an attempt that was under way, which is made again.
    due_in_ms: Option<u64>,
    once: bool,
    /// The signing time of the first attempt, and the passed time of the emulator then.
    first_signed: Option<(i64, u64)>,
    attempts: Vec<Attempt>,
}

impl Deliveries {
    pub(crate) fn snapshot(&self) -> Value {
        let state = self.inner.state();
        let now = self.inner.parts.clock.moment();
        let saved = Saved {
            subscriptions: state
                .lanes
                .iter()
                .map(|lane| lane.settings.clone())
                .collect(),
            deliveries: state
                .deliveries
                .values()
                .map(|delivery| saved(delivery, now))
                .collect(),
        };
        serde_json::to_value(saved).unwrap_or_default()
    }

    /// Replaces everything by what a snapshot holds.
    ///
    /// # Errors
    /// A sentence that says what was expected. Then nothing has changed.
    pub(crate) fn restore(&self, snapshot: &Value) -> Result<(), String> {
        let saved = Saved::deserialize(snapshot).map_err(|error| error.to_string())?;
        let lanes = self.inner.lanes(saved.subscriptions)?;
        let now = self.inner.parts.clock.moment();
        let mut state = self.inner.state();
        state.clear();
        state.lanes = lanes;
        for delivery in saved.deliveries {
            let at = (delivery.state, delivery.due_in_ms);
            let number = state.add(restored(delivery), now + millis(at.1.unwrap_or_default()));
            if at.0 != DeliveryState::Pending {
                state.end(number, at.0);
            }
        }
        drop(state);
        self.inner.tell_changed();
        Ok(())
    }
}

fn saved(delivery: &Delivery, now: Moment) -> SavedDelivery {
    let due = delivery.due.unwrap_or(now).saturating_sub(now);
    let pending = delivery.state == DeliveryState::Pending;
    SavedDelivery {
        id: delivery.id.clone(),
        subscription_id: delivery.subscription.clone(),
        event_id: delivery.event_id.clone(),
        event_type: delivery.event_type.clone(),
        payload: String::from_utf8_lossy(&delivery.body).into_owned(),
        state: delivery.state,
        reason: delivery.reason.clone(),
        due_in_ms: pending.then(|| as_millis(due)),
        once: delivery.once,
        first_signed: delivery
            .first_signed
            .map(|(at, offset)| (at.as_i64(), as_millis(offset))),
        attempts: delivery.attempts.clone(),
    }
}

fn restored(saved: SavedDelivery) -> Delivery {
    let signed = |(at, offset)| (UnixSeconds::new(at), millis(offset));
    Delivery {
        id: saved.id,
        subscription: saved.subscription_id,
        event_id: saved.event_id,
        event_type: saved.event_type,
        body: saved.payload.into(),
        state: DeliveryState::Pending,
        reason: saved.reason,
        due: None,
        once: saved.once,
        reordered: false,
        first_signed: saved.first_signed.map(signed),
        attempts: saved.attempts,
    }
}

fn as_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// At most ten years, so that no sum overflows.
fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis.min(10 * 365 * 86_400_000))
}
