//! The table of the last handled event of each row, and its statements.

use std::time::Duration;

use rusqlite::{OptionalExtension, Result, params};

use super::claims::CHUNK;
use super::statements::statements;
use super::units::millis;
use crate::dedupe::EventKey;

/// The table, in a store's file and in a file of the user.
macro_rules! table {
    () => {
        "CREATE TABLE IF NOT EXISTS hookgate_order (
  key BLOB PRIMARY KEY,
  revision INTEGER NOT NULL,
  last BLOB NOT NULL,
  until INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS hookgate_order_by_time ON hookgate_order (until);"
    };
}

pub(super) use table;

pub(super) const TABLE: &str = table!();

/// A record, with its revision.
pub(super) type Known = (i64, Vec<u8>);

/// A record to write.
pub(super) struct Swap {
    /// That of the record that was read. 0: there was none.
    pub(super) revision: i64,
    pub(super) last: Vec<u8>,
    pub(super) retain: Duration,
}

statements! {
    Rows {
        last: "SELECT revision, last FROM hookgate_order WHERE key = ?1 AND until > ?2",
        // The first revision is a time, so that the record that follows a deleted one has another.
        insert: "INSERT INTO hookgate_order AS known (key, revision, last, until) VALUES (?1, max(?3, 1), ?2, ?3 + ?4)
          ON CONFLICT (key) DO UPDATE SET revision = known.revision + 1, last = excluded.last, until = excluded.until
          WHERE known.until <= ?3",
        update: "UPDATE hookgate_order SET revision = revision + 1, last = ?2, until = ?3 + ?4
          WHERE key = ?1 AND until > ?3 AND revision = ?5",
        has_ended: "SELECT EXISTS (SELECT 1 FROM hookgate_order WHERE until <= ?1)",
        delete_ended: "DELETE FROM hookgate_order WHERE rowid IN
          (SELECT rowid FROM hookgate_order WHERE until <= ?1 LIMIT ?2)",
    }
}

impl Rows<'_> {
    pub(super) fn last(&mut self, key: &EventKey, now: i64) -> Result<Option<Known>> {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        self.last
            .query_row(params![key.as_bytes(), now], read)
            .optional()
    }

    pub(super) fn swap(&mut self, key: &EventKey, swap: &Swap, now: i64) -> Result<bool> {
        let (key, retain) = (key.as_bytes(), millis(swap.retain));
        let written = match swap.revision {
            0 => self.insert.execute(params![key, swap.last, now, retain])?,
            revision => self
                .update
                .execute(params![key, swap.last, now, retain, revision])?,
        };
        Ok(written > 0)
    }

    pub(super) fn has_ended(&mut self, now: i64) -> Result<bool> {
        self.has_ended.query_row([now], |row| row.get(0))
    }

    /// Deletes ended records, one chunk.
    pub(super) fn delete_ended(&mut self, now: i64) -> Result<()> {
        self.delete_ended.execute([now, CHUNK]).map(drop)
    }
}
