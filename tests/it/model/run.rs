//! A run of the handler, as the handler itself knows it.

use std::sync::Arc;

use hookgate::{Outcome, outcome::Failure};
use tokio::time::Instant;

use super::world::World;

#[derive(Debug)]
pub(super) struct RunState {
    pub(super) began: Instant,
    /// The ledger's losses when its claim was granted, its own among them.
    pub(super) losses: usize,
    pub(super) end: Option<RunEnd>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RunEnd {
    Succeeded,
    Failed,
    Panicked,
    LetterKept,
    LetterNotKept,
    CutOff,
}

impl RunEnd {
    pub(super) fn is_success(self) -> bool {
        matches!(self, Self::Succeeded | Self::LetterKept)
    }

    /// Whether a run that ended like this may settle like that.
    pub(super) fn settles_as(self, outcome: Outcome) -> bool {
        match (self, outcome) {
            (Self::Succeeded, Outcome::Handled)
            | (Self::LetterKept, Outcome::DeadLettered)
            | (Self::Succeeded | Self::LetterKept, Outcome::HandledUnrecorded(_)) => true,
            (_, Outcome::Failed(failure)) => {
                failure
                    == match self {
                        Self::Failed => Failure::Status(502),
                        Self::Panicked => Failure::Panicked,
                        Self::LetterNotKept => Failure::DeadLetterFailed,
                        Self::CutOff => Failure::RunLimit,
                        Self::Succeeded | Self::LetterKept => return false,
                    }
            }
            _ => false,
        }
    }
}

/// A run of the handler. Dropped before its end, it was cut off.
pub(super) struct RunGuard {
    pub(super) world: Arc<World>,
    pub(super) event: usize,
    pub(super) number: usize,
    pub(super) open: bool,
}

impl RunGuard {
    pub(super) fn ends(mut self, end: RunEnd) {
        self.open = false;
        self.world.run_ends(self.event, self.number, end);
    }

    /// The dead-letter hook ends it.
    pub(super) fn hands_over(mut self) -> usize {
        self.open = false;
        self.number
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        if self.open {
            self.world.run_ends(self.event, self.number, RunEnd::CutOff);
        }
    }
}
