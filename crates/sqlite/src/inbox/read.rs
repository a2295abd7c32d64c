//! The thread that reads: lists and counts do not wait for writes, and writes do not wait for them.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use hookgate::{
    clock::{Clock, SystemClock},
    dedupe::EventKey,
};
use hookgate_inbox::engine::Entry;
use hookgate_inbox::{EntryId, EntryState, InboxStats, Listed, Page, Selection};
use rusqlite::types::Value;
use rusqlite::{
    Connection, Error, ErrorCode, OptionalExtension, Result, Row, Statement, ffi, params_from_iter,
};

use super::row::{self, ENTRY, LISTED};
use crate::header;
use crate::units::unsigned;
use crate::units::{duration, millis, reading};

/// How long each commit of an operator's call waits for the file's lock, as the command does.
pub(super) const OPERATOR_TIMEOUT: Duration = Duration::from_secs(10);

/// A call on the reader's thread, which sends its answer.
pub(super) type Question = Box<dyn FnOnce(&mut Reader<'_>) + Send>;

pub(super) struct Reader<'c> {
    connection: &'c Connection,
    show: Statement<'c>,
    counts: Statement<'c>,
    oldest: Statement<'c>,
    clock: Arc<dyn Clock>,
}

impl<'c> Reader<'c> {
    pub(super) fn prepare(connection: &'c Connection, clock: Arc<dyn Clock>) -> Result<Self> {
        Ok(Self {
            connection,
            show: connection.prepare(&format!(
                "SELECT {ENTRY}, {LISTED} FROM entries LEFT JOIN bodies USING (id) WHERE id = ?1"
            ))?,
            counts: connection.prepare("SELECT what, n FROM counts")?,
            // The numbers of entries follow the order of acceptance.
            oldest: connection.prepare(
                "SELECT accepted_at FROM entries INDEXED BY entries_not_over WHERE state < 2 ORDER BY id LIMIT 1",
            )?,
            clock,
        })
    }

    /// Runs until all senders are dropped.
    pub(super) fn run(&mut self, questions: &Receiver<Question>) {
        while let Ok(question) = questions.recv() {
            question(self);
        }
    }

    pub(super) fn list(&self, which: &Selection, page: Page) -> Result<Vec<Listed>> {
        self.select(LISTED, which, page, row::listed)
    }

    /// Returns the numbers of the entries that an operator has selected, one page.
    pub(super) fn ids(&self, which: &Selection, page: Page) -> Result<Vec<EntryId>> {
        self.select("id", which, page, |row| Ok(EntryId::new(row.get(0)?)))
    }

    /// Returns the number of the last entry, or zero.
    pub(super) fn last(&self) -> Result<EntryId> {
        let last = "SELECT max(id) FROM entries";
        let last: Option<i64> = self.connection.query_row(last, [], |row| row.get(0))?;
        Ok(EntryId::new(last.unwrap_or_default()))
    }

    pub(super) fn show(&mut self, id: EntryId) -> Result<Option<(Listed, Entry)>> {
        let shown = |row: &Row<'_>| Ok((row::listed(row)?, row::entry(row)?));
        self.show.query_row([id.get()], shown).optional()
    }

    fn select<T>(
        &self,
        columns: &str,
        which: &Selection,
        page: Page,
        read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let (statement, values) = self.selection(columns, which, page)?;
        self.connection
            .prepare(&statement)?
            .query_map(params_from_iter(values), read)?
            .collect()
    }

    /// Returns the statement that reads a page of the selected entries, and its values.
    fn selection(
        &self,
        columns: &str,
        which: &Selection,
        page: Page,
    ) -> Result<(String, Vec<Value>)> {
        // Each index gives the order of the ids, so that no list is sorted except that of running
        // entries, which are few.
        let (mut index, state) = match which.state {
            Some(EntryState::Queued) => ("INDEXED BY entries_not_over", "state < 2 AND state = 0"),
            Some(EntryState::Running) => ("INDEXED BY entries_by_time", "state = 1"),
            Some(EntryState::Dead) => ("INDEXED BY entries_by_time", "state = 3 AND until IS NULL"),
            Some(EntryState::Done) => ("NOT INDEXED", "state = 2"),
            None => ("NOT INDEXED", "true"),
        };
        let most = i64::try_from(page.most).unwrap_or(i64::MAX);
        let mut conditions = format!("{state} AND id > ?1");
        let mut values = vec![Value::from(page.after.get()), Value::from(most)];
        let mut also = |condition: &str, value: Value| {
            values.push(value);
            conditions.push_str(&format!(" AND {condition} ?{}", values.len()));
        };
        if let Some(id) = which.id {
            also("id =", id.get().into());
        }
        if let Some(age) = which.older_than {
            let before = reading(self.clock.unix_millis()).saturating_sub(millis(age));
            also("id <=", self.last_before(before)?.into());
            also("accepted_at <=", before.into());
        }
        if let Some(event_id) = &which.event_id {
            also("event_id =", event_id.clone().into());
            // `NULL` is not the number of an entry: the list is never empty.
            let mut ids = String::from("NULL");
            for id in self.ids_of_event(event_id)? {
                ids.push_str(&format!(", {id}"));
            }
            conditions.push_str(&format!(" AND id IN ({ids})"));
            index = "NOT INDEXED";
        }
        let statement = format!(
            "SELECT {columns} FROM entries {index} WHERE {conditions} ORDER BY id LIMIT ?2"
        );
        Ok((statement, values))
    }

    /// Returns the number of the last entry that was accepted by this time, found by halving the
    /// range of numbers: they follow the order of acceptance. So no younger entry is read, however
    /// many there are. If the clock was set back, an entry near that time may be left out as if it
    /// was younger.
    fn last_before(&self, time: i64) -> Result<i64> {
        let mut find = self
            .connection
            .prepare("SELECT id, accepted_at FROM entries WHERE id >= ?1 ORDER BY id LIMIT 1")?;
        // Entries below `low` were accepted by this time, and those from `high` on were not.
        let (mut low, mut high) = (0_i64, self.last()?.get().saturating_add(1));
        while low < high {
            let middle = low.midpoint(high);
            let found = find.query_row([middle], |row| Ok((row.get(0)?, row.get(1)?)));
            let found: Option<(i64, i64)> = found.optional()?;
            match found {
                Some((id, accepted_at)) if id < high && accepted_at <= time => low = id + 1,
                _ => high = middle,
            }
        }
        Ok(low - 1)
    }

    /// Returns the numbers of the entries of an event, one for each scope at most.
    fn ids_of_event(&self, event_id: &str) -> Result<Vec<i64>> {
        let mut find = self
            .connection
            .prepare("SELECT id FROM entries WHERE key = ?1")?;
        let mut scopes = self.connection.prepare("SELECT scope FROM scopes")?;
        let mut scopes = scopes.query([])?;
        let mut ids = Vec::new();
        while let Some(row) = scopes.next()? {
            let scope = String::from_utf8_lossy(row.get_ref(0)?.as_bytes()?);
            let key = EventKey::new(&scope, event_id);
            let id = find.query_row([key.as_bytes()], |row| row.get::<_, i64>(0));
            ids.extend(id.optional()?);
        }
        Ok(ids)
    }

    /// Writes the file anew from what is stored, so that no free page and no gap in a page has
    /// deleted bytes, and empties the log. This connection does it, as the writer's thread goes on
    /// with its calls until the file is locked.
    pub(super) fn overwrite_deleted(&self) -> Result<()> {
        self.connection.execute_batch("PRAGMA query_only = OFF")?;
        let empty_log = || while_busy(|| self.empty_log());
        let vacuumed = while_busy(|| self.connection.execute_batch("VACUUM"));
        let done = vacuumed
            .and_then(|()| while_busy(|| header::go_on_from_copies(self.connection, empty_log)));
        self.connection.execute_batch("PRAGMA query_only = ON")?;
        done
    }

    /// Copies the log into the file and cuts it to zero bytes. SQLite does not wait for another
    /// connection that copies the log at this moment, as each does when it opens the file: it
    /// answers at once that it is busy.
    fn empty_log(&self) -> Result<()> {
        let is_busy: bool =
            self.connection
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        match is_busy {
            true => Err(Error::SqliteFailure(
                ffi::Error::new(ffi::SQLITE_BUSY),
                None,
            )),
            false => Ok(()),
        }
    }

    /// Reads counts and age in one snapshot.
    pub(super) fn stats(&mut self) -> Result<InboxStats> {
        let snapshot = self.connection.unchecked_transaction()?;
        let mut stats = InboxStats::default();
        let mut rows = self.counts.query([])?;
        while let Some(row) = rows.next()? {
            let (what, n): (i64, i64) = (row.get(0)?, row.get(1)?);
            let n = unsigned(n);
            // As in the triggers: twice the number of the state, and 1 for those that are retried.
            match EntryState::of_number(what / 2) {
                Some(EntryState::Queued) => {
                    stats.queued += n;
                    stats.retrying += if what == 1 { n } else { 0 };
                }
                Some(EntryState::Running) => stats.running = n,
                Some(EntryState::Done) => stats.done = n,
                Some(EntryState::Dead) => stats.dead = n,
                None => {}
            }
        }
        drop(rows);
        let oldest: Option<i64> = self.oldest.query_row([], |row| row.get(0)).optional()?;
        snapshot.finish()?;
        let now = reading(self.clock.unix_millis());
        stats.oldest = oldest.map(|oldest| duration(now.saturating_sub(oldest)));
        Ok(stats)
    }
}

/// Repeats the step while other connections keep the file in use, for as long as an operator's call
/// may wait. Each step has this time for itself: a large file is written anew for longer than that.
fn while_busy(mut step: impl FnMut() -> Result<()>) -> Result<()> {
    const PAUSE: Duration = Duration::from_millis(5);
    let begun = SystemClock.monotonic();
    loop {
        match step() {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && SystemClock.monotonic().saturating_since(begun) < OPERATOR_TIMEOUT =>
            {
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbox::schema;
    use hookgate::clock::{ManualClock, UnixSeconds};

    /// Most entries wait, and few are running or old.
    // fault Q28: a list of running entries, by age or by event id reads the whole inbox, and the first accept after a start all that waits
    #[test]
    fn a_list_reads_no_more_than_it_shows() {
        let connection = Connection::open_in_memory().unwrap();
        schema::create(&connection).unwrap();
        let fill = "INSERT INTO entries (key, digest, state, until, since, accepted_at, forget_at, received_at, body_bytes, event_id,
            event_type, timestamp, scope, key_name)
          WITH RECURSIVE n (e) AS (SELECT 1 UNION ALL SELECT e + 1 FROM n WHERE e < 5000)
          SELECT randomblob(16), 0, e % 1000 = 0, 0, 0, iif(e <= 50, 0, 9000000), 0, 0, 0, 'evt_' || e, 'row.created', '1', 'default',
            'default' FROM n";
        connection.execute_batch(fill).unwrap();
        let update = "UPDATE entries SET key = ?1 WHERE event_id = 'evt_7'";
        let key = EventKey::new("default", "evt_7");
        connection.execute(update, [key.as_bytes()]).unwrap();
        let clock = ManualClock::at(UnixSeconds::new(10_000));
        let reader = Reader::prepare(&connection, Arc::new(clock)).unwrap();
        let old = Selection::all().older_than(Duration::from_secs(5_000));
        for (which, count, is_sorted) in [
            (Selection::all().state(EntryState::Running), 5, true),
            (old.clone(), 50, false),
            (old.state(EntryState::Queued), 50, false),
            (Selection::all().event_id("evt_7"), 1, false),
            (Selection::all().event_id("evt_none"), 0, false),
        ] {
            let page = Page::first(1_000);
            assert_eq!(reader.list(&which, page).unwrap().len(), count, "{which:?}");
            let (statement, values) = reader.selection("id", &which, page).unwrap();
            let mut plan = connection
                .prepare(&format!("EXPLAIN QUERY PLAN {statement}"))
                .unwrap();
            let steps = plan
                .query_map(params_from_iter(values.clone()), |row| row.get(3))
                .unwrap();
            let steps: Vec<String> = steps.collect::<Result<_>>().unwrap();
            assert!(steps.iter().all(|step| !step.contains("SCAN")), "{steps:?}");
            let sorts = steps.iter().any(|step| step.contains("TEMP B-TREE"));
            assert_eq!(sorts, is_sorted, "{steps:?}");
            let mut read = connection.prepare(&statement).unwrap();
            let mut rows = read.query(params_from_iter(values)).unwrap();
            while rows.next().unwrap().is_some() {}
            drop(rows);
            let steps = read.get_status(rusqlite::StatementStatus::VmStep);
            assert!(steps < 2_500, "{which:?} takes {steps} steps");
        }
    }
}
