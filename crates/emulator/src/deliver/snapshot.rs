//! Deliveries in a snapshot. The time of the next attempt is saved relative to now, so that a restored clock may show any
//! time.

use std::time::Duration;

use super::engine::Deliveries;
use super::record::{Delivery, DeliveryState};
use super::subscription::Subscription;
use crate::time::Moment;

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

    /// Replaces everything by what a seed holds, and sets the clock's offset. Subscriptions without a secret get one.
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
