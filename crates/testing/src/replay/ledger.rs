//! Records the events inside the app: which runs began and how they ended, and the calls to the store with their answers.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hookgate::{ClaimToken, EventKey};

use super::entry::Named;
use super::plan::{Does, Plan};
use super::report::{CommitReport, RunEnd, RunReport};

/// Names an attempt inside the app. It is only a name: nothing in the receiver reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(pub(super) usize);

/// The observations of one event inside the app.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) named: Option<Named>,
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

/// The ledger of a replay.
#[derive(Default)]
pub(super) struct Ledger {
    pages: Mutex<Pages>,
}

#[derive(Default)]
struct Pages {
    events: HashMap<EventKey, Seen>,
    /// The behaviour of the runs of an event, and of the runs that an attempt begins.
    scripts: HashMap<EventKey, Vec<Does>>,
    slow: Vec<Duration>,
}

/// The place of a run in the ledger.
#[derive(Clone, Copy)]
pub(super) struct Run {
    key: EventKey,
    index: usize,
}

impl Ledger {
    pub(super) fn follow(&self, plan: &mut Plan) {
        self.pages().scripts = std::mem::take(&mut plan.scripts);
    }

    /// Adds an attempt and returns its label.
    pub(super) fn attempt(&self, slow: Duration) -> Label {
        let mut pages = self.pages();
        pages.slow.push(slow);
        Label(pages.slow.len() - 1)
    }

    pub(super) fn run_begins(
        &self,
        named: Named,
        label: Option<Label>,
        process: u32,
    ) -> (Run, Does) {
        let mut pages = self.pages();
        let Pages {
            events,
            scripts,
            slow,
        } = &mut *pages;
        let seen = events.entry(named.key).or_default();
        let index = seen.runs.len();
        let mut does = scripts
            .get(&named.key)
            .and_then(|script| script.get(index))
            .copied()
            .unwrap_or_default();
        let of_attempt = label.and_then(|label| slow.get(label.0));
        does.slow = does.slow.max(of_attempt.copied().unwrap_or_default());
        let key = named.key;
        seen.named.get_or_insert(named);
        seen.runs.push(RunReport {
            attempt: label.map(|label| label.0),
            process,
            end: RunEnd::Unended,
        });
        (Run { key, index }, does)
    }

    pub(super) fn run_ends(&self, run: Run, end: RunEnd) {
        if let Some(seen) = self.pages().events.get_mut(&run.key) {
            seen.runs[run.index].end = end;
        }
    }

    pub(super) fn granted(&self, key: &EventKey, token: ClaimToken) {
        let mut pages = self.pages();
        pages.events.entry(*key).or_default().granted.push(token);
    }

    /// The store remembers an event as done. Where it never answered the commit, this proves that the commit took effect.
    /// Of the claims with this body, the last one is taken, since the earlier ones had ended before it was granted.
    pub(super) fn found_done(&self, key: &EventKey, body_mark: u32, process: u32, after: Duration) {
        let mut pages = self.pages();
        let seen = pages.events.entry(*key).or_default();
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
        let mut pages = self.pages();
        pages
            .events
            .entry(*key)
            .or_default()
            .commit(token, process, after);
    }

    pub(super) fn commit_lost(&self, key: &EventKey) {
        self.pages().events.entry(*key).or_default().lost += 1;
    }

    pub(super) fn commit_unanswered(&self, key: &EventKey) {
        self.pages().events.entry(*key).or_default().unanswered += 1;
    }

    /// Returns all observations.
    pub(super) fn close(&self) -> HashMap<EventKey, Seen> {
        std::mem::take(&mut self.pages().events)
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
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
