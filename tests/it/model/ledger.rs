//! The reference: the answers that a store must give for one event, by the table of `DedupeStore`,
//! and the rules that follow.

use std::time::Duration;

use hookgate::dedupe::{ClaimToken, Claimed, Ownership};

/// The record of an event. Times are readings of the store's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Record {
    #[default]
    Absent,
    Running {
        token: ClaimToken,
        ends: Duration,
        lease: Duration,
    },
    Done {
        by: ClaimToken,
        ends: Duration,
        /// The end of the time in which the commit can be repeated.
        repeatable: Duration,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Free,
    Running,
    Done,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    record: Record,
    /// Commits that took effect.
    pub(super) commits: usize,
    /// Claims and done records that ended by the clock and were followed by another claim. Nothing
    /// else may explain a second run beside the first, or after its success.
    pub(super) losses: usize,
    /// When the last claim ended, was given up or committed.
    ended_at: Duration,
}

impl Ledger {
    pub(super) fn state(&self, now: Duration) -> State {
        match self.record {
            Record::Running { ends, .. } if ends > now => State::Running,
            Record::Done { ends, .. } if ends > now => State::Done,
            _ => State::Free,
        }
    }

    /// Whether a claim was running at some time since `then`.
    pub(super) fn was_running_since(&self, then: Duration, now: Duration) -> bool {
        match self.record {
            Record::Running { ends, .. } => ends > then,
            _ => self.state(now) == State::Running || self.ended_at >= then,
        }
    }

    pub(super) fn holds(&self, by: ClaimToken, now: Duration) -> bool {
        matches!(self.record, Record::Running { token, ends, .. } if token == by && ends > now)
    }

    pub(super) fn claim(&mut self, by: ClaimToken, lease: Duration, now: Duration) -> Claimed {
        match self.record {
            Record::Running { token, ends, .. } if ends > now && token != by => {
                return Claimed::Running {
                    retry_after: ends - now,
                };
            }
            Record::Done { by, ends, .. } if ends > now => {
                return Claimed::Done {
                    body_mark: by.body_mark(),
                };
            }
            Record::Running { token, .. } if token != by => self.losses += 1,
            Record::Done { .. } => self.losses += 1,
            _ => {}
        }
        let ends = now + lease;
        self.record = Record::Running {
            token: by,
            ends,
            lease,
        };
        Claimed::Fresh
    }

    pub(super) fn renew(&mut self, by: ClaimToken, lease: Duration, now: Duration) -> Ownership {
        if !self.holds(by, now) {
            return Ownership::Lost;
        }
        let ends = now + lease;
        self.record = Record::Running {
            token: by,
            ends,
            lease,
        };
        Ownership::Held
    }

    pub(super) fn commit(&mut self, by: ClaimToken, retain: Duration, now: Duration) -> Ownership {
        match self.record {
            Record::Running { token, ends, lease } if token == by && ends > now => {
                self.commits += 1;
                self.ended_at = now;
                self.record = Record::Done {
                    by,
                    ends: now + retain,
                    repeatable: now + lease,
                };
                Ownership::Held
            }
            Record::Done {
                by: other,
                ends,
                repeatable,
            } if other == by && ends.min(repeatable) > now => Ownership::Held,
            _ => Ownership::Lost,
        }
    }

    pub(super) fn release(&mut self, by: ClaimToken, now: Duration) -> Ownership {
        if !self.holds(by, now) {
            return Ownership::Lost;
        }
        self.ended_at = now;
        self.record = Record::Absent;
        Ownership::Held
    }
}
