//! Entries in a file of SQLite.

use std::path::Path;

use hookgate::dedupe::{StoreError, StoreErrorKind, StoreFuture};
use rusqlite::{Row, params};

use super::entry::{Entry, Place};
use super::store::{Bounds, Kept, Store};
use crate::fault::Fault;
use crate::reconcile::RowHash;
use crate::sqlite_file::SqliteFile;

/// `AUTOINCREMENT`: the number of an entry that was removed is not used again.
const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS hookgate_ledger (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  revision INTEGER NOT NULL,
  place BLOB NOT NULL,
  writer TEXT NOT NULL,
  written_at INTEGER NOT NULL,
  open_until INTEGER NOT NULL,
  event_since INTEGER NOT NULL,
  event_until INTEGER NOT NULL,
  written BLOB NOT NULL,
  answered BLOB,
  event BLOB
) STRICT;
CREATE INDEX IF NOT EXISTS hookgate_ledger_by_place ON hookgate_ledger (place)";
const ADD: &str = "INSERT INTO hookgate_ledger
  (revision, place, writer, written_at, open_until, event_since, event_until, written) VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7)";
/// The entry that was just added ends the search for the oldest one to keep.
const FORGET: &str = "DELETE FROM hookgate_ledger WHERE number < max(?1,
  (SELECT number FROM hookgate_ledger WHERE written_at >= ?2 ORDER BY number LIMIT 1))";
const FIND: &str = "SELECT * FROM hookgate_ledger WHERE place IN (?1, ?2, ?3) ORDER BY number";
const CHANGE: &str = "UPDATE hookgate_ledger SET revision = ?2 + 1, place = ?3, open_until = ?4, event_since = ?5, event_until = ?6,
  answered = ?7, event = ?8 WHERE number = ?1 AND revision = ?2";
const REMOVE: &str = "DELETE FROM hookgate_ledger WHERE number = ?1 AND revision = ?2";

pub(super) struct Sqlite(SqliteFile);

impl Sqlite {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self(SqliteFile::open(path, SCHEMA)?))
    }
}

impl Store for Sqlite {
    fn add<'a>(
        &'a self,
        entry: &'a Entry,
        written: &'a [RowHash],
        bounds: Bounds,
    ) -> StoreFuture<'a, Vec<i64>> {
        let (entry, written) = (entry.clone(), written.to_vec());
        self.0.call(move |connection| {
            // It begins with a write, so it waits for other writers.
            let transaction = connection.unchecked_transaction()?;
            let mut numbers = Vec::with_capacity(written.len());
            let mut add = transaction.prepare(ADD)?;
            for written in &written {
                numbers.push(add.insert(params![
                    entry.place.0,
                    entry.writer,
                    entry.written_at,
                    entry.open_until,
                    entry.since,
                    entry.until,
                    written.to_bytes(),
                ])?);
            }
            drop(add);
            if let Some(last) = numbers.last() {
                let mut forget = transaction.prepare(FORGET)?;
                forget.execute(params![bounds.least(*last), bounds.oldest])?;
            }
            transaction.commit()?;
            Ok(numbers)
        })
    }

    fn find<'a>(&'a self, places: &'a [Place]) -> StoreFuture<'a, Vec<Kept>> {
        let places = [0, 1, 2].map(|at| places.get(at).map(|place| place.0));
        self.0.call(move |connection| {
            let mut find = connection.prepare(FIND)?;
            find.query_and_then(places, kept)?.collect()
        })
    }

    fn swap(&self, number: i64, revision: i64, entry: Option<Entry>) -> StoreFuture<'_, bool> {
        self.0.call(move |connection| {
            let changed = match entry {
                None => connection
                    .prepare(REMOVE)?
                    .execute(params![number, revision])?,
                Some(entry) => connection.prepare(CHANGE)?.execute(params![
                    number,
                    revision,
                    entry.place.0,
                    entry.open_until,
                    entry.since,
                    entry.until,
                    entry.answered.map(|answered| answered.to_bytes()),
                    entry.taken,
                ])?,
            };
            Ok(changed == 1)
        })
    }
}

fn kept(row: &Row<'_>) -> Result<Kept, Fault> {
    let hash = |bytes: Vec<u8>| {
        RowHash::from_bytes(&bytes).ok_or_else(|| StoreError::new(StoreErrorKind::Corrupt))
    };
    let answered: Option<Vec<u8>> = row.get("answered")?;
    Ok(Kept {
        number: row.get("number")?,
        revision: row.get("revision")?,
        entry: Entry {
            place: Place(row.get("place")?),
            writer: row.get("writer")?,
            written_at: row.get("written_at")?,
            open_until: row.get("open_until")?,
            since: row.get("event_since")?,
            until: row.get("event_until")?,
            written: hash(row.get("written")?)?,
            answered: answered.map(hash).transpose()?,
            taken: row.get("event")?,
        },
    })
}
