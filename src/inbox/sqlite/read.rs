//! The thread that reads: lists and counts do not wait for writes, and writes do not wait for them.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use rusqlite::{Connection, Error, OptionalExtension, Result, Row, Statement, ToSql, ffi};

use super::row::{self, ENTRY, LISTED};
use super::units::{duration, millis, reading};
use crate::clock::Clock;
use crate::inbox::engine::{EntryId, EntryState, InboxStats, Listed, Page, Selection};
use crate::inbox::entry::{Entry, unsigned};

/// A call on the reader's thread, which sends its answer.
pub(super) type Question = Box<dyn FnOnce(&mut Reader<'_>) + Send>;

pub(super) struct Reader<'c> {
    connection: &'c Connection,
    show: Statement<'c>,
    counts: Statement<'c>,
    oldest: Statement<'c>,
    last: Statement<'c>,
    clock: Arc<dyn Clock>,
}

impl<'c> Reader<'c> {
    pub(super) fn prepare(connection: &'c Connection, clock: Arc<dyn Clock>) -> Result<Self> {
        Ok(Self {
            connection,
            show: connection.prepare(&format!(
                "SELECT {LISTED}, {ENTRY} FROM entries LEFT JOIN bodies USING (id) WHERE id = ?1"
            ))?,
            counts: connection.prepare("SELECT what, n FROM counts")?,
            // The numbers of entries follow the order of acceptance.
            oldest: connection.prepare(
                "SELECT accepted_at FROM entries INDEXED BY entries_not_over WHERE state < 2 ORDER BY id LIMIT 1",
            )?,
            last: connection.prepare("SELECT max(id) FROM entries")?,
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
        self.select("id", which, page, |row| Ok(EntryId(row.get(0)?)))
    }

    /// Returns the number of the last entry.
    pub(super) fn last(&mut self) -> Result<EntryId> {
        let last: Option<i64> = self.last.query_row([], |row| row.get(0))?;
        Ok(EntryId(last.unwrap_or_default()))
    }

    pub(super) fn show(&mut self, id: EntryId) -> Result<Option<(Listed, Entry)>> {
        let first = LISTED.split(',').count();
        let shown = |row: &Row<'_>| Ok((row::listed(row)?, row::entry(row, first)?));
        self.show.query_row([id.0], shown).optional()
    }

    fn select<T>(
        &self,
        columns: &str,
        which: &Selection,
        page: Page,
        read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        // Each index gives the order of the ids, so that no list is sorted except that of running entries, which are few.
        let (index, state) = match which.state {
            Some(EntryState::Queued) => ("INDEXED BY entries_not_over", "state < 2 AND state = 0"),
            Some(EntryState::Running) => ("INDEXED BY entries_by_time", "state = 1"),
            Some(EntryState::Dead) => ("INDEXED BY entries_by_time", "state = 3 AND until IS NULL"),
            Some(EntryState::Done) => ("NOT INDEXED", "state = 2"),
            None => ("NOT INDEXED", "true"),
        };
        let after = page.after.map_or(i64::MIN, |after| after.0);
        let most = i64::try_from(page.most).unwrap_or(i64::MAX);
        let before = which
            .older_than
            .map(|age| reading(self.clock.unix_millis()).saturating_sub(millis(age)));
        let id = which.id.map(|id| id.0);
        let mut conditions = format!("{state} AND id > ?1");
        let mut values: Vec<&dyn ToSql> = vec![&after, &most];
        let mut also = |condition: &str, value| {
            values.push(value);
            conditions.push_str(&format!(" AND {condition} ?{}", values.len()));
        };
        if let Some(id) = &id {
            also("id =", id);
        }
        if let Some(event_id) = &which.event_id {
            also("event_id =", event_id);
        }
        if let Some(before) = &before {
            also("accepted_at <=", before);
        }
        self.connection
            .prepare(&format!(
                "SELECT {columns} FROM entries {index} WHERE {conditions} ORDER BY id LIMIT ?2"
            ))?
            .query_map(&values[..], read)?
            .collect()
    }

    /// Writes the file anew from what is stored, so that no free page and no gap in a page has deleted bytes, and empties the log.
    /// This connection does it, as the writer's thread goes on with its calls until the file is locked.
    pub(super) fn overwrite_deleted(&self) -> Result<()> {
        self.connection.execute_batch("PRAGMA query_only = OFF")?;
        let done = self.connection.execute_batch("VACUUM").and_then(|()| {
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
        });
        self.connection.execute_batch("PRAGMA query_only = ON")?;
        done
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
