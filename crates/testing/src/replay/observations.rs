//! The observations inside the app: which runs began and how they ended, and the calls of the store with their answers.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hookgate::dedupe::{ClaimToken, EventKey};

use super::entry::EventIdentity;
use super::plan::{Plan, RunPlan};
use super::report::{CommitReport, RunEnd, RunReport};

/// The number of an attempt, carried through the app. The receiver does not read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AttemptNumber(pub(super) usize);

/// The observations of one event inside the app.
#[derive(Default)]
pub(super) struct EventObservations {
    pub(super) event: Option<EventIdentity>,
    pub(super) runs: Vec<RunReport>,
    pub(super) commits: Vec<CommitReport>,
    /// The number of commits to which the store answered that the claim was lost.
    pub(super) lost: u32,
    /// The number of commits that the store failed to answer.
    pub(super) unanswered: u32,
    /// The store answered *done* for a body that no claim of this replay had.
    pub(super) done_before: bool,
    granted: Vec<ClaimToken>,
    committed: HashSet<ClaimToken>,
}

/// The observations of a replay.
#[derive(Default)]
pub(super) struct Observations {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    events: HashMap<EventKey, EventObservations>,
    /// The behaviour of the runs of an event, and of the runs that an attempt begins.
    run_plans: HashMap<EventKey, Vec<RunPlan>>,
    handler_delays: Vec<Duration>,
}

/// A run: its event, and its index there.
#[derive(Clone, Copy)]
pub(super) struct Run {
    key: EventKey,
    index: usize,
}

impl Observations {
    pub(super) fn set_run_plans(&self, plan: &mut Plan) {
        self.lock().run_plans = std::mem::take(&mut plan.run_plans);
    }

    /// Adds an attempt and returns its number.
    pub(super) fn add_attempt(&self, handler_delay: Duration) -> AttemptNumber {
        let mut state = self.lock();
        state.handler_delays.push(handler_delay);
        AttemptNumber(state.handler_delays.len() - 1)
    }

    pub(super) fn begin_run(
        &self,
        event: EventIdentity,
        attempt: Option<AttemptNumber>,
        process: u32,
    ) -> (Run, RunPlan) {
        let mut state = self.lock();
        let State {
            events,
            run_plans,
            handler_delays,
        } = &mut *state;
        let seen = events.entry(event.key).or_default();
        let index = seen.runs.len();
        let mut run_plan = run_plans
            .get(&event.key)
            .and_then(|script| script.get(index))
            .copied()
            .unwrap_or_default();
        let of_attempt = attempt.and_then(|attempt| handler_delays.get(attempt.0));
        run_plan.delay = run_plan.delay.max(of_attempt.copied().unwrap_or_default());
        let key = event.key;
        seen.event.get_or_insert(event);
        seen.runs.push(RunReport {
            attempt: attempt.map(|attempt| attempt.0),
            process,
            end: RunEnd::Unended,
        });
        (Run { key, index }, run_plan)
    }

    pub(super) fn end_run(&self, run: Run, end: RunEnd) {
        if let Some(seen) = self.lock().events.get_mut(&run.key) {
            seen.runs[run.index].end = end;
        }
    }

    pub(super) fn granted(&self, key: &EventKey, token: ClaimToken) {
        let mut state = self.lock();
        state.events.entry(*key).or_default().granted.push(token);
    }

    /// The store remembers an event as done. Where it never answered the commit, this proves that the commit took effect.
    /// Of the claims with this body, the last one is taken, since the earlier ones had ended before it was granted.
    pub(super) fn found_done(&self, key: &EventKey, body_mark: u32, process: u32, after: Duration) {
        let mut state = self.lock();
        let seen = state.events.entry(*key).or_default();
        let mut granted = seen.granted.iter().rev();
        if let Some(by) = granted
            .find(|token| token.body_mark() == body_mark)
            .copied()
        {
            seen.commit(by, process, after);
        } else {
            seen.done_before = true;
        }
    }

    pub(super) fn committed(
        &self,
        key: &EventKey,
        token: ClaimToken,
        process: u32,
        after: Duration,
    ) {
        let mut state = self.lock();
        state
            .events
            .entry(*key)
            .or_default()
            .commit(token, process, after);
    }

    pub(super) fn commit_lost(&self, key: &EventKey) {
        self.lock().events.entry(*key).or_default().lost += 1;
    }

    pub(super) fn commit_unanswered(&self, key: &EventKey) {
        self.lock().events.entry(*key).or_default().unanswered += 1;
    }

    /// Returns all observations.
    pub(super) fn take(&self) -> HashMap<EventKey, EventObservations> {
        std::mem::take(&mut self.lock().events)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventObservations {
    /// A commit may be repeated until its answer arrives: one claim token counts as one commit.
    fn commit(&mut self, token: ClaimToken, process: u32, after: Duration) {
        if self.committed.insert(token) {
            self.commits.push(CommitReport {
                process,
                after_ms: millis(after),
            });
        }
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
