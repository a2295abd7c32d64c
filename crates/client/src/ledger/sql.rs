//! Entries in a file of SQLite or in a table of PostgreSQL.

use hookgate::dedupe::{StoreError, StoreFuture};

use super::entry::{Bounds, Entry, Kept, Place, Store};
use crate::reconcile::RowHash;
use crate::sql::{Engine, MOST_VALUES, Row, Value, damaged, places};

/// `AUTOINCREMENT`: the number of an entry that was removed is not used again.
#[cfg(feature = "sqlite")]
pub(super) const SQLITE_SCHEMA: &str = "CREATE TABLE IF NOT EXISTS hookgate_ledger (
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

#[cfg(feature = "postgres")]
pub(super) const POSTGRES_SCHEMA: &str = "CREATE TABLE IF NOT EXISTS hookgate_ledger (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  revision bigint NOT NULL,
  place bytea NOT NULL,
  writer text NOT NULL,
  written_at bigint NOT NULL,
  open_until bigint NOT NULL,
  event_since bigint NOT NULL,
  event_until bigint NOT NULL,
  written bytea NOT NULL,
  answered bytea,
  event bytea
);
CREATE INDEX IF NOT EXISTS hookgate_ledger_by_place ON hookgate_ledger (place)";

/// Makes room for `$1` fewer entries than are kept, and removes the first ones that were written
/// before `$2`.
const FORGET: &str = "DELETE FROM hookgate_ledger WHERE number <= (SELECT max(number) FROM hookgate_ledger) - $1
  OR number < COALESCE((SELECT number FROM hookgate_ledger WHERE written_at >= $2 ORDER BY number LIMIT 1), 9223372036854775807)";
const ADD: &str = "INSERT INTO hookgate_ledger (place, writer, written_at, open_until, event_since, event_until, revision, written) VALUES ";
const CHANGE: &str = "UPDATE hookgate_ledger SET revision = $2 + 1, place = $3, open_until = $4, event_since = $5, event_until = $6,
  answered = $7, event = $8 WHERE number = $1 AND revision = $2 RETURNING 1";
const REMOVE: &str = "DELETE FROM hookgate_ledger WHERE number = $1 AND revision = $2 RETURNING 1";

pub(super) struct Sql<E>(pub(super) E);

impl<E: Engine> Store for Sql<E> {
    fn add<'a>(
        &'a self,
        entry: &'a Entry,
        written: &'a [RowHash],
        bounds: Bounds,
    ) -> StoreFuture<'a, Vec<i64>> {
        StoreFuture::boxed(async move {
            // Of too many rows the first are not added: their number is 0, which no entry has.
            let most = usize::try_from(bounds.capacity).unwrap_or(usize::MAX);
            let (beyond, written) = written.split_at(written.len().saturating_sub(most));
            let others = i64::try_from(most - written.len()).unwrap_or(i64::MAX);
            // Before the new entries, so that none is left where this fails and the write is not
            // sent.
            let values = vec![others.into(), bounds.oldest.into()];
            self.0.run(FORGET.to_owned(), values).await?;
            let mut numbers = Vec::with_capacity(written.len());
            for written in written.chunks(MOST_VALUES) {
                let rows = (7..7 + written.len()).map(|at| format!("({}, 1, ${at})", places(1, 6)));
                let rows: Vec<_> = rows.collect();
                let sql = format!("{ADD}{} RETURNING number", rows.join(", "));
                let mut values = vec![
                    entry.place.0.to_vec().into(),
                    entry.writer.as_str().into(),
                    entry.written_at.into(),
                    entry.open_until.into(),
                    entry.since.into(),
                    entry.until.into(),
                ];
                values.extend(written.iter().map(|written| written.to_bytes().into()));
                for mut row in self.0.run(sql, values).await? {
                    numbers.push(row.int()?);
                }
            }
            // They were given in the order of the rows.
            numbers.sort_unstable();
            numbers.splice(0..0, beyond.iter().map(|_| 0));
            Ok(numbers)
        })
    }

    fn find<'a>(&'a self, at: &'a [Place]) -> StoreFuture<'a, Vec<Kept>> {
        StoreFuture::boxed(async move {
            let sql = format!(
                "SELECT number, revision, place, writer, written_at, open_until, event_since, event_until, written, answered, event
                FROM hookgate_ledger WHERE place IN ({}) ORDER BY number",
                places(1, at.len())
            );
            let values = at.iter().map(|place| place.0.to_vec().into()).collect();
            let rows = self.0.run(sql, values).await?;
            rows.into_iter().map(kept).collect()
        })
    }

    fn swap(&self, number: i64, revision: i64, entry: Option<Entry>) -> StoreFuture<'_, bool> {
        StoreFuture::boxed(async move {
            let mut values = vec![number.into(), revision.into()];
            let mut sql = REMOVE;
            if let Some(entry) = entry {
                sql = CHANGE;
                values.extend([
                    entry.place.0.to_vec().into(),
                    entry.open_until.into(),
                    entry.since.into(),
                    entry.until.into(),
                    Value::Bytes(entry.answered.map(|answered| answered.to_bytes())),
                    Value::Bytes(entry.taken.map(|taken| taken.to_vec())),
                ]);
            }
            Ok(!self.0.run(sql.to_owned(), values).await?.is_empty())
        })
    }

    #[cfg(feature = "postgres")]
    fn migrate(&self) -> StoreFuture<'_, ()> {
        self.0.migrate(POSTGRES_SCHEMA)
    }
}

fn kept(mut row: Row) -> Result<Kept, StoreError> {
    let hash = |bytes: Vec<u8>| RowHash::from_bytes(&bytes).ok_or_else(damaged);
    let digest = |bytes: Vec<u8>| bytes.try_into().map_err(|_| damaged());
    Ok(Kept {
        number: row.int()?,
        revision: row.int()?,
        entry: Entry {
            place: Place(digest(row.bytes()?)?),
            writer: row.text()?,
            written_at: row.int()?,
            open_until: row.int()?,
            since: row.int()?,
            until: row.int()?,
            written: hash(row.bytes()?)?,
            answered: row.bytes_or_null()?.map(hash).transpose()?,
            taken: row.bytes_or_null()?.map(digest).transpose()?,
        },
    })
}
