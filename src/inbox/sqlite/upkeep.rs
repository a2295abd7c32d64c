//! What the writer does of its own accord: ids are forgotten, and times are mended when the clock is set back.

use rusqlite::{Connection, OptionalExtension, Result, Statement, params};

pub(super) struct Upkeep<'c> {
    next_over: Statement<'c>,
    forget: Statement<'c>,
    mend: Statement<'c>,
    at_once: i64,
    /// The latest that the clock has shown.
    latest: i64,
}

/// A clock that is set back by less is not looked at: nothing waits for longer than this because of it.
const SET_BACK: i64 = 1_000;

impl<'c> Upkeep<'c> {
    pub(super) fn prepare(connection: &'c Connection, at_once: usize) -> Result<Self> {
        Ok(Self {
            next_over: connection.prepare(
                "SELECT until FROM entries WHERE state = 2 ORDER BY until LIMIT 1",
            )?,
            forget: connection.prepare(
                "DELETE FROM entries WHERE id IN
                   (SELECT id FROM entries WHERE state = 2 AND until <= ?1 ORDER BY until LIMIT ?2)",
            )?,
            // Where it was set lies ahead: it waits from now on for as long as it was to wait then.
            mend: connection.prepare(
                "UPDATE entries SET until = ?1 + (until - since), since = ?1 WHERE state IN (0, 1) AND since > ?1",
            )?,
            at_once: i64::try_from(at_once).unwrap_or(i64::MAX),
            // Also what an earlier process has written by a clock that has been set back since.
            latest: i64::MAX,
        })
    }

    /// Whether there is anything to do at this time.
    pub(super) fn is_due(&mut self, now: i64) -> Result<bool> {
        if self.is_set_back(now) {
            return Ok(true);
        }
        let next: Option<i64> = self.next_over.query_row([], |row| row.get(0)).optional()?;
        Ok(next.is_some_and(|next| next <= now))
    }

    /// Forgets done entries whose retention is over, a chunk of them.
    pub(super) fn forget(&mut self, now: i64) -> Result<usize> {
        self.forget.execute(params![now, self.at_once])
    }

    /// Leases and back-offs that a clock has written that was ahead end as if it had not been.
    pub(super) fn mend(&mut self, now: i64) -> Result<usize> {
        if self.is_set_back(now) {
            self.mend.execute([now])
        } else {
            Ok(0)
        }
    }

    /// After the commit: what was mended is mended.
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
