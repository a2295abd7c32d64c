//! The writer's own tasks: it forgets ids, and it corrects times when the clock is set back.

use rusqlite::{OptionalExtension, Result};

use super::statements::statements;

/// A smaller jump back of the clock is ignored: it makes no entry wait for longer than this, in milliseconds.
const SET_BACK: i64 = 1_000;

statements! {
    Upkeep {
        next_over: "SELECT until FROM entries WHERE state = 2 ORDER BY until LIMIT 1",
        forget: "DELETE FROM entries WHERE id IN
           (SELECT id FROM entries WHERE state = 2 AND until <= ?1 ORDER BY until LIMIT ?2)",
        // Entries whose `since` lies in the future: they wait for their whole original time, counted from now on.
        mend: "UPDATE entries SET until = ?1 + (until - since), since = ?1 WHERE state IN (0, 1) AND since > ?1",
    }
    /// The latest time that the clock has shown. The first time seen counts as set back, so that times of an earlier process are
    /// corrected as well.
    latest: i64 = i64::MAX
}

impl Upkeep<'_> {
    /// Whether there is anything to do at this time.
    pub(super) fn is_due(&mut self, now: i64) -> Result<bool> {
        if self.is_set_back(now) {
            return Ok(true);
        }
        let next: Option<i64> = self.next_over.query_row([], |row| row.get(0)).optional()?;
        Ok(next.is_some_and(|next| next <= now))
    }

    /// Forgets entries that are done and whose retention is over, one chunk.
    pub(super) fn forget(&mut self, now: i64, at_once: usize) -> Result<usize> {
        let at_once = i64::try_from(at_once).unwrap_or(i64::MAX);
        self.forget.execute([now, at_once])
    }

    /// Corrects leases and back-offs that were written by a clock that was ahead: each lasts its original time, counted from
    /// `now`.
    pub(super) fn mend(&mut self, now: i64) -> Result<usize> {
        if self.is_set_back(now) {
            self.mend.execute([now])
        } else {
            Ok(0)
        }
    }

    /// Notes the time after the commit, as the correction is durable only then.
    pub(super) fn seen(&mut self, now: i64) {
        if self.is_set_back(now) {
            self.latest = now;
        } else {
            self.latest = self.latest.max(now);
        }
    }

    fn is_set_back(&self, now: i64) -> bool {
        now.saturating_add(SET_BACK) < self.latest
    }
}
