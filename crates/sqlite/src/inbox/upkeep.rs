//! The writer's own tasks: it forgets ids, and it corrects times when the clock is set back.

use hookgate_inbox::EntryState;
use rusqlite::{OptionalExtension, Result, Rows};

use crate::statements::statements;

/// How many entries one commit reads to correct their times, so that no delivery waits for it.
const READ_AT_ONCE: i64 = 500;
const QUEUED: i64 = EntryState::Queued as i64;
const RUNNING: i64 = EntryState::Running as i64;

statements! {
    Upkeep {
        next_over: "SELECT until FROM entries WHERE state = 2 ORDER BY until LIMIT 1",
        forget: "DELETE FROM entries WHERE id IN
           (SELECT id FROM entries WHERE state = 2 AND until <= ?1 ORDER BY until LIMIT ?2)",
        // Entries that are due by now need no correction. Both they and those that wait may be very
        // many. Two statements for the latter, as SQLite would pass over all entries of one time
        // that are before the number.
        same_time: "SELECT id, until, since FROM entries WHERE state = ?1 AND until = ?2 AND id > ?3 ORDER BY id LIMIT ?4",
        later: "SELECT id, until, since FROM entries WHERE state = ?1 AND until > ?2 ORDER BY until, id LIMIT ?3",
        correct: "UPDATE entries SET until = ?2 + (until - since), since = ?2 WHERE id = ?1",
    }
    progress: Progress = Progress::default()
}

/// How far times are corrected.
#[derive(Default)]
struct Progress {
    /// Entries from here on may have a time that lies too far ahead.
    unread: Option<Place>,
    /// The value of `unread` after the commit, as a correction is durable only then.
    next: Option<Place>,
    has_corrected: bool,
    /// Whether the next chunk may follow without a wait: not after a failure.
    at_once: bool,
}

/// A place in the order of state, time and number. All entries after it are read later.
#[derive(Clone, Copy)]
struct Place {
    state: i64,
    until: i64,
    id: i64,
}

impl Place {
    /// Before all entries that are not due at this time: the running ones, and after them the
    /// queued ones.
    fn first(state: i64, now: i64) -> Self {
        Self {
            state,
            until: now,
            id: i64::MAX,
        }
    }

    /// Goes on to the last of these entries, and returns their count. The numbers of those with a
    /// time that lies ahead are added.
    fn go_on(&mut self, mut entries: Rows<'_>, now: i64, ahead: &mut Vec<i64>) -> Result<i64> {
        let mut count = 0;
        while let Some(entry) = entries.next()? {
            (self.id, self.until) = (entry.get(0)?, entry.get(1)?);
            if entry.get::<_, i64>(2)? > now {
                ahead.push(self.id);
            }
            count += 1;
        }
        Ok(count)
    }
}

impl Upkeep<'_> {
    /// Whether there is anything to do at this time.
    pub(super) fn is_due(&mut self, now: i64) -> Result<bool> {
        if self.has_unread() {
            return Ok(true);
        }
        let next: Option<i64> = self.next_over.query_row([], |row| row.get(0)).optional()?;
        Ok(next.is_some_and(|next| next <= now))
    }

    /// Whether times are still to be corrected, after those of the last commit.
    pub(super) fn has_unread(&self) -> bool {
        self.progress.unread.is_some()
    }

    /// Whether the next chunk of times is to be corrected without a wait.
    pub(super) fn goes_on(&mut self) -> bool {
        std::mem::take(&mut self.progress.at_once)
    }

    /// Forgets entries that are done and whose retention is over, one chunk.
    pub(super) fn forget(&mut self, now: i64, at_once: usize) -> Result<usize> {
        let at_once = i64::try_from(at_once).unwrap_or(i64::MAX);
        self.forget.execute([now, at_once])
    }

    /// Corrects leases and back-offs that were written by a clock that was ahead: each lasts its
    /// original time, counted from `now`. Reads one chunk of those that wait, the first ones in
    /// time.
    pub(super) fn correct_times(&mut self, now: i64, is_set_back: bool) -> Result<usize> {
        let place = if is_set_back {
            Some(Place::first(RUNNING, now))
        } else {
            self.progress.unread
        };
        self.progress.next = None;
        let Some(mut place) = place else {
            return Ok(0);
        };
        let (mut left, mut corrected) = (READ_AT_ONCE, 0);
        loop {
            let Place { state, until, id } = place;
            let mut ahead = Vec::new();
            let rows = self.same_time.query([state, until, id, left])?;
            left -= place.go_on(rows, now, &mut ahead)?;
            let rows = self.later.query([state, until, left])?;
            left -= place.go_on(rows, now, &mut ahead)?;
            for id in ahead {
                corrected += self.correct.execute([id, now])?;
            }
            if left == 0 {
                self.progress.next = Some(place);
                break;
            }
            if state == QUEUED {
                break;
            }
            place = Place::first(QUEUED, now);
        }
        self.progress.has_corrected |= corrected > 0;
        Ok(corrected)
    }

    /// Notes after the commit how far times are corrected. Returns true with the last chunk, if
    /// some times were wrong.
    pub(super) fn committed(&mut self) -> bool {
        self.progress.unread = self.progress.next.take();
        self.progress.at_once = self.has_unread();
        !self.has_unread() && std::mem::take(&mut self.progress.has_corrected)
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, StatementStatus};

    use super::*;
    use crate::inbox::schema;

    /// `until` and `since` are terms in `e`, which counts from 1.
    fn filled(entries: u32, until: &str, since: &str) -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        schema::create(&connection).unwrap();
        let fill = format!(
            "INSERT INTO entries (key, digest, until, since, accepted_at, forget_at, received_at, body_bytes, event_id, event_type,
               timestamp, scope, key_name)
             WITH RECURSIVE n (e) AS (SELECT 1 UNION ALL SELECT e + 1 FROM n WHERE e < {entries})
             SELECT randomblob(16), 0, {until}, {since}, e, 0, 0, 0, 'evt_' || e, 'row.created', '1', 'default', 'default' FROM n"
        );
        connection.execute_batch(&fill).unwrap();
        connection
    }

    fn steps(upkeep: &Upkeep<'_>) -> i32 {
        let statements = [&upkeep.same_time, &upkeep.later];
        let steps = statements.map(|statement| statement.get_status(StatementStatus::VmStep));
        steps.iter().sum()
    }

    /// Each process corrects times at its first commit, while a delivery waits for it.
    // fault Q28: a list of running entries, by age or by event id reads the whole inbox, and the first accept after a start all that waits
    #[test]
    fn entries_that_are_due_are_not_read_to_correct_times() {
        let connection = filled(5_000, "e", "e");
        let mut upkeep = Upkeep::prepare(&connection).unwrap();
        assert_eq!(upkeep.correct_times(4_990, true).unwrap(), 10);
        assert!(steps(&upkeep) < 2_000, "{}", steps(&upkeep));
        assert!(upkeep.committed());
        assert!(!upkeep.is_due(4_990).unwrap());
    }

    /// After a long outage of the handlers' database all entries are in back-off, many of them
    /// until the same time.
    // fault Q38: after a long outage all entries are in back-off, and the first accept after a start waits until the times of all are corrected
    #[test]
    fn one_commit_reads_few_of_the_entries_in_back_off_to_correct_times() {
        const NOW: i64 = 1_000_000;
        const ENTRIES: u32 = 20_000;
        let until = format!("{NOW} + 10000 * iif(e < 100, 1, iif(e < 19000, 2, e))");
        for (since, wrong) in [("e", 0), ("1000001 + e % 2", ENTRIES)] {
            let connection = filled(ENTRIES, &until, since);
            connection
                .execute_batch("UPDATE entries SET state = 1 WHERE id % 3 = 0")
                .unwrap();
            let mut upkeep = Upkeep::prepare(&connection).unwrap();
            let (mut commits, mut corrected, mut read) = (0, 0, 0);
            loop {
                corrected += upkeep.correct_times(NOW, commits == 0).unwrap();
                let so_far = steps(&upkeep);
                assert!(
                    so_far - read < 10_000,
                    "{} in commit {commits}",
                    so_far - read
                );
                read = so_far;
                commits += 1;
                let some_were_wrong = upkeep.committed();
                assert_eq!(some_were_wrong, wrong > 0 && !upkeep.has_unread());
                if !upkeep.has_unread() {
                    break;
                }
            }
            assert_eq!((commits, corrected), (41, wrong as usize));
            let is_whole =
                "SELECT count(*) FROM entries WHERE since <= 1000000 AND until >= 1009000";
            let whole: u32 = connection
                .query_row(is_whole, [], |row| row.get(0))
                .unwrap();
            assert_eq!(whole, ENTRIES);
        }
    }

    /// A commit that fails corrects nothing, and the next one begins at the same entry.
    // fault Q38: after a long outage all entries are in back-off, and the first accept after a start waits until the times of all are corrected
    #[test]
    fn times_of_a_commit_that_failed_are_corrected_by_the_next_one() {
        let connection = filled(1_200, "9000 + e", "5000");
        let mut upkeep = Upkeep::prepare(&connection).unwrap();
        let mut is_set_back = true;
        for (commits, corrected) in [
            (false, 500),
            (true, 500),
            (false, 500),
            (true, 500),
            (true, 200),
        ] {
            connection.execute_batch("BEGIN").unwrap();
            assert_eq!(upkeep.correct_times(1_000, is_set_back).unwrap(), corrected);
            connection
                .execute_batch(if commits { "COMMIT" } else { "ROLLBACK" })
                .unwrap();
            if commits {
                upkeep.committed();
                is_set_back = false;
            }
        }
        assert!(!upkeep.has_unread());
        let wrong = "SELECT count(*) FROM entries WHERE since > 1000 OR until <> 5000 + id";
        let wrong: u32 = connection.query_row(wrong, [], |row| row.get(0)).unwrap();
        assert_eq!(wrong, 0);
    }
}
