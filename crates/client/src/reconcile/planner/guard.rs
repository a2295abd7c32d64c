//! The guards against findings that are too many to be true.

use super::Planner;

impl Planner {
    /// Whether the mirror has less than one of a hundred of so many rows, and they are more than the guard's.
    pub(in super::super) fn is_unfilled(&self, rows: u64) -> bool {
        let is_too_few = self.states.saturating_mul(100) < rows;
        is_too_few && rows > self.settings.guard_rows && !self.settings.is_filling
    }

    /// The most rows of so many that may be found at once.
    pub(super) fn most(&self, rows: u64) -> u64 {
        let share = rows.saturating_mul(self.settings.guard_percent) / 100;
        share.max(self.settings.guard_rows)
    }
}
