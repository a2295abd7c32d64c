//! The thread that reads: lists and counts do not wait for writes, and writes do not wait for them.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use rusqlite::{Connection, OptionalExtension, Result, Statement, ToSql};

use super::command::Reply;
use super::fault::{ended, failed};
use super::row::{self, ENTRY, LISTED};
use super::units::{duration, millis, reading, state_number, unsigned};
use crate::caught::caught;
use crate::clock::Clock;
use crate::inbox::engine::{EntryId, EntryState, InboxStats, Listed, Page, Selection};
use crate::inbox::entry::Entry;

pub(super) enum Question {
    List {
        which: Selection,
        page: Page,
        reply: Reply<Vec<Listed>>,
    },
    /// The numbers of the entries that an operator has selected, one page.
    Ids {
        which: Selection,
        page: Page,
        reply: Reply<Vec<EntryId>>,
    },
    /// The number of the last entry.
    Last {
        reply: Reply<EntryId>,
    },
    Show {
        id: EntryId,
        reply: Reply<Option<(Listed, Entry)>>,
    },
    Stats {
        reply: Reply<InboxStats>,
    },
}

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
            match question {
                Question::List { which, page, reply } => {
                    answer(reply, || self.select(LISTED, &which, page, row::listed));
                }
                Question::Ids { which, page, reply } => answer(reply, || {
                    self.select("id", &which, page, |row| Ok(EntryId(row.get(0)?)))
                }),
                Question::Last { reply } => answer(reply, || {
                    let last: Option<i64> = self.last.query_row([], |row| row.get(0))?;
                    Ok(EntryId(last.unwrap_or_default()))
                }),
                Question::Show { id, reply } => answer(reply, || {
                    let shown = |row: &rusqlite::Row<'_>| {
                        Ok((
                            row::listed(row)?,
                            row::entry(row, LISTED.split(',').count())?,
                        ))
                    };
                    self.show.query_row([id.0], shown).optional()
                }),
                Question::Stats { reply } => answer(reply, || self.stats()),
            }
        }
    }

    fn select<T>(
        &self,
        columns: &str,
        which: &Selection,
        page: Page,
        read: impl FnMut(&rusqlite::Row<'_>) -> Result<T>,
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

    /// Reads counts and age in one snapshot.
    fn stats(&mut self) -> Result<InboxStats> {
        let snapshot = self.connection.unchecked_transaction()?;
        let mut stats = InboxStats::default();
        let mut rows = self.counts.query([])?;
        while let Some(row) = rows.next()? {
            let (what, n): (i64, i64) = (row.get(0)?, row.get(1)?);
            let n = unsigned(n);
            match what {
                0 => stats.queued += n,
                1 => {
                    stats.queued += n;
                    stats.retrying = n;
                }
                what if what == 2 * state_number(EntryState::Running) => stats.running = n,
                what if what == 2 * state_number(EntryState::Done) => stats.done = n,
                what if what == 2 * state_number(EntryState::Dead) => stats.dead = n,
                _ => {}
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

fn answer<T>(reply: Reply<T>, read: impl FnOnce() -> Result<T>) {
    if reply.is_closed() {
        return;
    }
    // A clock that panics fails this answer, and does not end the thread.
    let read = caught(read).map_err(|_| ended());
    let read = read.and_then(|read| read.map_err(failed));
    // A caller that no longer waits needs no answer.
    drop(reply.send(read));
}
