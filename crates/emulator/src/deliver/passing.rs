//! Time that passes: by itself, or by `clock/advance`.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use super::attempts::SCHEDULE;
use super::engine::{Deliveries, Inner, Parts};
use super::record::Number;
use super::state::State;
use crate::time::Moment;

/// What `advance` does next.
enum Step {
    /// Goes on to this time, at which attempts come due.
    To(Moment),
    /// Waits for the end of an attempt.
    Wait,
    /// Nothing comes due any more.
    Done,
}

impl Deliveries {
    /// Makes an engine without subscriptions. It sends on the runtime that this is called on.
    pub(crate) fn new(parts: Parts) -> Self {
        let inner = Arc::new(Inner::new(parts));
        let (weak, wake) = (Arc::downgrade(&inner), Arc::clone(&inner.wake));
        inner.runtime.spawn(watch(weak, wake));
        Self { inner }
    }

    /// Passes time, and makes every attempt that comes due, retries of retries too, in order of
    /// time. Returns the number of attempts. Several calls run one after the other.
    ///
    /// Time goes from one attempt to the next. While attempts are under way it goes on by the
    /// sender's timeout at most, since none lasts longer. Events that are emitted meanwhile have
    /// their first attempt at once, but this does not wait for them.
    pub(crate) async fn advance(&self, by: Duration) -> u64 {
        let inner = &self.inner;
        let _one_at_a_time = inner.advancing.lock().await;
        let clock = &inner.parts.clock;
        let target = clock.moment().saturating_add(by);
        let (epoch, before, started) = {
            let state = inner.state();
            (state.epoch, state.next, state.started)
        };
        loop {
            let mut changed = pin!(inner.changed.notified());
            changed.as_mut().enable();
            {
                let mut state = inner.state();
                if state.epoch != epoch || state.stopped {
                    return state.started - started;
                }
                inner.begin(&mut state);
                match step(&state, before, target) {
                    Step::To(moment) => {
                        clock.pass_to(moment);
                        if clock.moment() >= moment {
                            continue;
                        }
                        // The clock is at its end, some 580 years on: what is due later never
                        // comes.
                        return state.started - started;
                    }
                    Step::Done => {
                        clock.pass_to(target);
                        let attempts = state.started - started;
                        inner.begin(&mut state);
                        inner.wake.notify_one();
                        return attempts;
                    }
                    Step::Wait => {}
                }
            }
            changed.await;
        }
    }

    /// Waits until no attempt is under way.
    pub(crate) async fn settled(&self) {
        loop {
            let mut changed = pin!(self.inner.changed.notified());
            changed.as_mut().enable();
            {
                let mut state = self.inner.state();
                self.inner.begin(&mut state);
                if state.flying.is_empty() {
                    return;
                }
            }
            changed.await;
        }
    }
}

fn step(state: &State, before: Number, target: Moment) -> Step {
    let older = |(_, number): &&(Moment, Number)| *number < before;
    let next = state.due.iter().find(older).map(|(due, _)| *due);
    let next = next.filter(|due| *due <= target);
    let oldest = state.flying.iter().find(older).map(|(start, _)| *start);
    match (next, oldest) {
        (Some(due), Some(start)) if due <= start + SCHEDULE.attempt_timeout() => Step::To(due),
        (_, Some(_)) => Step::Wait,
        _ if state.is_crowded(before) => Step::Wait,
        (Some(due), None) => Step::To(due),
        (None, None) => Step::Done,
    }
}

/// Begins attempts as time passes by itself. Ends with the engine.
async fn watch(engine: Weak<Inner>, wake: Arc<Notify>) {
    let mut by_hand = false;
    loop {
        let (next, before) = {
            let Some(inner) = engine.upgrade() else {
                return;
            };
            let mut state = inner.state();
            if state.stopped {
                return;
            }
            inner.begin(&mut state);
            let clock = &inner.parts.clock;
            let next = state.due.first();
            let next = next.map(|(due, _)| due.saturating_sub(clock.moment()));
            (next, clock.base_moment())
        };
        let Some(next) = next.filter(|_| !by_hand) else {
            wake.notified().await;
            continue;
        };
        tokio::select! {
            () = wake.notified() => continue,
            () = tokio::time::sleep(next) => {}
        }
        // A clock that a test moves by hand has not moved meanwhile: to look again and again would
        // find nothing.
        let Some(inner) = engine.upgrade() else {
            return;
        };
        let moved = inner.parts.clock.base_moment().saturating_sub(before);
        by_hand = moved < next / 2;
    }
}
