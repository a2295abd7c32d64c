//! The writer's own tasks: it forgets ids, and it corrects times when the clock is set back.

use rusqlite::{OptionalExtension, Result};

use crate::sqlite::statements::statements;

/// A smaller jump back of the clock is ignored: it makes no entry wait for longer than this, in milliseconds.
const SET_BACK: i64 = 1_000;

statements! {
    Upkeep {
        next_over: "SELECT until FROM entries WHERE state = 2 ORDER BY until LIMIT 1",
        forget: "DELETE FROM entries WHERE id IN
           (SELECT id FROM entries WHERE state = 2 AND until <= ?1 ORDER BY until LIMIT ?2)",
        // Entries whose `since` lies in the future: they wait for their whole original time, counted from now on. Entries that are
        // due by now need no correction, and may be very many.
        correct_times: "UPDATE entries SET until = ?1 + (until - since), since = ?1 WHERE state IN (0, 1) AND until > ?1 AND since > ?1",
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
    pub(super) fn correct_times(&mut self, now: i64) -> Result<usize> {
        if self.is_set_back(now) {
            self.correct_times.execute([now])
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

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, StatementStatus};

    use super::*;
    use crate::inbox::sqlite::schema;

    /// Each process corrects times at its first commit, while a delivery waits for it.
    #[test]
    fn entries_that_are_due_are_not_read_to_correct_times() {
        let connection = Connection::open_in_memory().unwrap();
        schema::create(&connection).unwrap();
        let fill = "INSERT INTO entries (key, digest, until, since, accepted_at, forget_at, received_at, body_bytes, event_id, event_type,
            timestamp, scope, key_name)
          WITH RECURSIVE n (e) AS (SELECT 1 UNION ALL SELECT e + 1 FROM n WHERE e < 5000)
          SELECT randomblob(16), 0, e, e, e, 0, 0, 0, 'evt_' || e, 'row.created', '1', 'default', 'default' FROM n";
        connection.execute_batch(fill).unwrap();
        let mut upkeep = Upkeep::prepare(&connection).unwrap();
        assert_eq!(upkeep.correct_times(4_990).unwrap(), 10);
        let steps = upkeep.correct_times.get_status(StatementStatus::VmStep);
        assert!(steps < 2_000, "{steps}");
    }
}
