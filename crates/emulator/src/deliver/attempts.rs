//! Attempts: each begins at its time, and its end decides about the next one.

use std::sync::Arc;
use std::time::Duration;

use hookgate::{clock::UnixSeconds, dedupe::RetrySchedule};
use hookgate_testing::sender::{AttemptEnd, Reading};

use super::engine::Inner;
use super::flight::Flight;
use super::record::{Answer, Attempt, DeliveryState, KEPT, Number, Sent};
use super::snapshot::as_millis;
use super::state::State;
use super::subscription::made;
use crate::body::headers;
use crate::faults::Fault;
use crate::switches::Switch;
use crate::time::Moment;

/// The service's schedule of retries.
pub(super) const SCHEDULE: RetrySchedule = RetrySchedule::SERVICE;
/// The longest time that the fault `reordered` holds a delivery.
const HELD: Duration = Duration::from_secs(10);
/// What takes less than this counts as nothing in the schedule.
const PROMPT: Duration = Duration::from_secs(1);
/// What the fault `wrong-secret` signs with.
pub(super) const WRONG_SECRET: &str = "whsec_made_up_of_another_subscription";

impl Inner {
    fn reading(&self) -> Reading {
        if self.parts.switches.is(Switch::Attempts, "6") {
            Reading::EveryWait
        } else {
            Reading::FewestAttempts
        }
    }

    /// Begins every attempt whose time has come.
    pub(super) fn begin(self: &Arc<Self>, state: &mut State) {
        if state.stopped {
            return;
        }
        let one_by_one = self.parts.switches.is(Switch::DeliveryOrder, "oneByOne");
        loop {
            let now = self.parts.clock.moment();
            let started = state.begin(now, one_by_one);
            if started.is_empty() {
                break;
            }
            for (due, number) in started {
                // An attempt that begins a moment late counts as started in time, so that the specification's sums of waits hold.
                let late = now.saturating_sub(due);
                let at = if late < PROMPT { due } else { now };
                self.begin_one(state, number, at);
            }
        }
        // Tasks at their end are removed now.
        while state.tasks.try_join_next().is_some() {}
    }

    fn begin_one(self: &Arc<Self>, state: &mut State, number: Number, at: Moment) {
        let clock = &self.parts.clock;
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
        let fresh = || (clock.signing_time().as_i64(), as_millis(clock.offset()));
        let (first, offset) = *delivery.first_signed.get_or_insert_with(fresh);
        let timestamp = if self.parts.switches.is(Switch::RetrySignatures, "first") {
            clock.aged(UnixSeconds::new(first), Duration::from_millis(offset))
        } else {
            clock.signing_time()
        };
        let (event_id, event_type) = (delivery.event_id.clone(), delivery.event_type.clone());
        let body = delivery.body.clone();
        self.tell(Some(delivery));
        let Some(lane) = state.lane(&subscription) else {
            return;
        };
        let wrong = || made(&lane.settings, WRONG_SECRET, &self.route).ok();
        let wrong = (fault == Some(Fault::WrongSecret)).then(wrong).flatten();
        let flight = Flight {
            sender: wrong.unwrap_or_else(|| lane.sender.clone()),
            epoch: state.epoch,
            number,
            at,
            event_id,
            event_type,
            body,
            timestamp,
            fault,
        };
        state.started += 1;
        state.flying.insert((at, number));
        let attempt = Arc::clone(self).attempt(flight);
        state.tasks.spawn_on(attempt, &self.runtime);
    }

    /// Makes an attempt, records its end, and plans the next one.
    async fn attempt(self: Arc<Self>, flight: Flight) {
        let clock = &self.parts.clock;
        let base = clock.base_moment();
        let received_at = clock.signing_time().as_i64();
        let request = flight.request();
        let changed = *request.body() != flight.body;
        let sent = Sent {
            url: request.uri().to_string(),
            headers: headers(request.headers(), KEPT, |_| false),
            body: changed.then(|| request.body().to_vec()),
            received_at,
        };
        let flown = flight.fly(request, SCHEDULE.attempt_timeout()).await;
        // Measured by the emulator's own clock: a clock that a test moves by hand stands still meanwhile.
        let took = clock.base_moment().saturating_sub(base);
        let took = match flown.end {
            AttemptEnd::TimedOut => took.max(SCHEDULE.attempt_timeout()),
            _ if took < PROMPT => Duration::ZERO,
            _ => took,
        };

        let mut state = self.state();
        if state.epoch != flight.epoch {
            return;
        }
        state.flying.remove(&(flight.at, flight.number));
        if let Some(lane) = state.lane(flight.sender.id()) {
            lane.flying = lane.flying.saturating_sub(1);
        }
        let Some(delivery) = state.deliveries.get_mut(&flight.number) else {
            return;
        };
        let weight = delivery.weight();
        let is_answered = flown.answer.is_some();
        delivery.attempts.push(Attempt {
            at: clock.millis_at(flight.at),
            status: flown.end.status(),
            error: (!is_answered).then(|| flown.end.to_string()),
            duration_ms: as_millis(flown.elapsed),
            fault: flight.fault.map(|fault| fault.name().to_owned()),
            request: sent,
            answer: flown.answer.as_ref().map(Answer::of),
        });
        let grown = delivery.weight().saturating_sub(weight);
        let number = u32::try_from(delivery.attempts.len()).unwrap_or(u32::MAX);
        let wait = self.reading().wait_after(&SCHEDULE, number);
        let wait = wait.filter(|_| !delivery.once && delivery.state == DeliveryState::Pending);
        match wait {
            _ if flown.end.is_success() => state.end(flight.number, DeliveryState::Delivered),
            Some(wait) => state.wait_until(flight.number, flight.at + took + wait),
            None => state.end(flight.number, DeliveryState::Discarded),
        }
        self.tell(state.deliveries.get(&flight.number));
        state.grown(grown);
        state.release(flight.sender.id(), flight.number, clock.moment());
        self.begin(&mut state);
        drop(state);
        self.tell_changed();
    }
}
