//! Attempts: each begins at its time, and its end decides about the next one.

use std::sync::Arc;
use std::time::Duration;

use hookgate::dedupe::RetrySchedule;
use hookgate_testing::sender::{AttemptEnd, Attempted, Reading, Subscription};

use super::engine::Inner;
use super::flight::Flight;
use super::record::{Answer, Attempt, DeliveryState, KEPT, Number, Sent};
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

/// What is known of an attempt when it begins.
struct StartedAttempt {
    epoch: u64,
    number: Number,
    subscription: String,
    at: Moment,
    fault: Option<Fault>,
}

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
        state.started += 1;
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
        let started = StartedAttempt {
            epoch,
            number,
            subscription,
            at,
            fault,
        };
        let inner = Arc::clone(self);
        state
            .tasks
            .spawn_on(inner.attempt(started, flight), &self.runtime);
    }

    fn signing(
        &self,
        sender: Subscription,
        fault: Option<Fault>,
        state: &mut State,
        subscription: &str,
    ) -> Subscription {
        if fault != Some(Fault::WrongSecret) {
            return sender;
        }
        let url = state
            .lane(subscription)
            .map(|lane| lane.settings.url.clone());
        let url = url.unwrap_or_default();
        made(subscription, &url, WRONG_SECRET, &self.route).unwrap_or(sender)
    }

    async fn attempt(self: Arc<Self>, started: StartedAttempt, flight: Option<Flight>) {
        let clock = &self.parts.clock;
        let base = clock.base_moment();
        let Some(flight) = flight else {
            let sent = Sent {
                url: String::new(),
                headers: Vec::new(),
                body: None,
                received_at: clock.signing_time().as_i64(),
            };
            let end = AttemptEnd::Failed("the subscription has no URL".to_owned());
            return self.ended(&started, Duration::ZERO, &end, Duration::ZERO, sent, None);
        };
        let received_at = clock.signing_time().as_i64();
        let request = flight.request();
        let changed = *request.body() != flight.body;
        let sent = Sent {
            url: request.uri().to_string(),
            headers: headers(request.headers(), KEPT, |_| false),
            body: changed.then(|| request.body().to_vec()),
            received_at,
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
            _ if took < PROMPT => Duration::ZERO,
            _ => took,
        };
        let answer = answer.as_ref().map(Answer::of);
        self.ended(&started, took, &end, elapsed, sent, answer);
    }

    /// Records the end of an attempt, and plans the next one.
    fn ended(
        self: &Arc<Self>,
        started: &StartedAttempt,
        took: Duration,
        end: &AttemptEnd,
        elapsed: Duration,
        request: Sent,
        answer: Option<Answer>,
    ) {
        let clock = &self.parts.clock;
        let mut state = self.state();
        if state.epoch != started.epoch {
            return;
        }
        state.flying.remove(&(started.at, started.number));
        if let Some(lane) = state.lane(&started.subscription) {
            lane.flying = lane.flying.saturating_sub(1);
        }
        let Some(delivery) = state.deliveries.get_mut(&started.number) else {
            return;
        };
        let weight = delivery.weight();
        let error = match end {
            AttemptEnd::Answered(_) => None,
            other => Some(other.to_string()),
        };
        delivery.attempts.push(Attempt {
            at: clock.millis_at(started.at),
            status: end.status(),
            error,
            duration_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            fault: started.fault.map(|fault| fault.name().to_owned()),
            request,
            answer,
        });
        let grown = delivery.weight().saturating_sub(weight);
        let number = u32::try_from(delivery.attempts.len()).unwrap_or(u32::MAX);
        let wait = self.reading().wait_after(&SCHEDULE, number);
        let wait = wait.filter(|_| !delivery.once && delivery.state == DeliveryState::Pending);
        let over = started.at + took;
        match wait {
            _ if end.is_success() => state.end(started.number, DeliveryState::Delivered),
            Some(wait) => state.wait_until(started.number, over + wait),
            None => state.end(started.number, DeliveryState::Discarded),
        }
        self.tell(state.deliveries.get(&started.number));
        state.grown(grown);
        state.release(&started.subscription, started.number, clock.moment());
        self.begin(&mut state);
        drop(state);
        self.tell_changed();
    }
}
