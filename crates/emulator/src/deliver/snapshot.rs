//! Deliveries in a snapshot. The time of the next attempt is saved relative to now, so that a restored clock may show any
//! time.

use std::time::Duration;

use hookgate::clock::UnixSeconds;
use serde::{Deserialize, Serialize};

use super::engine::Deliveries;
use super::record::{Attempt, Delivery, DeliveryState};
use super::subscription::Subscription;
use crate::time::Moment;

/// A delivery in a snapshot.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SavedDelivery {
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
    /// Whether the fault `reordered` has held back the next attempt.
    reordered: bool,
    /// The signing time of the first attempt, and the clock's offset at that time, in milliseconds.
    first_signed: Option<(i64, u64)>,
    attempts: Vec<Attempt>,
}

impl Deliveries {
    /// Returns the subscriptions with their secrets, and the deliveries.
    pub(crate) fn saved(&self) -> (Vec<Subscription>, Vec<SavedDelivery>) {
        let state = self.inner.state();
        let now = self.inner.parts.clock.moment();
        let deliveries = state.deliveries.values();
        let settings = state.lanes.iter().map(|lane| lane.settings.clone());
        (
            settings.collect(),
            deliveries.map(|delivery| saved(delivery, now)).collect(),
        )
    }

    /// Replaces everything by what a seed holds, and sets the clock's offset. Subscriptions without a secret get one.
    ///
    /// # Errors
    /// A sentence that states the expected form. Then nothing has changed.
    pub(crate) fn load(
        &self,
        subscriptions: Vec<Subscription>,
        deliveries: Vec<SavedDelivery>,
        offset: Duration,
    ) -> Result<(), String> {
        let lanes = self.inner.lanes(subscriptions)?;
        let clock = &self.inner.parts.clock;
        let mut state = self.inner.state();
        state.clear();
        state.lanes = lanes;
        clock.set_offset(offset);
        let now = clock.moment();
        for delivery in deliveries {
            let (end, reordered) = (delivery.state, delivery.reordered);
            let due = now + millis(delivery.due_in_ms.unwrap_or_default());
            let subscription = delivery.subscription_id.clone();
            let number = state.add(restored(delivery), due);
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
        reordered: delivery.reordered,
        first_signed: delivery
            .first_signed
            .map(|(at, offset)| (at.as_i64(), as_millis(offset))),
        attempts: delivery.attempts.clone(),
    }
}

fn restored(saved: SavedDelivery) -> Delivery {
    let signed = |(at, offset)| (UnixSeconds::new(at), millis(offset));
    Delivery {
        number: 0,
        id: saved.id,
        subscription: saved.subscription_id,
        event_id: saved.event_id,
        event_type: saved.event_type,
        body: saved.payload.into(),
        state: DeliveryState::Pending,
        reason: saved.reason,
        due: None,
        once: saved.once,
        reordered: saved.reordered,
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
