//! Entries in a table of PostgreSQL.

use deadpool_postgres::Pool;
use hookgate::dedupe::{StoreError, StoreErrorKind, StoreFuture};
use hookgate_postgres::store_error;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::entry::{Entry, Place};
use super::store::{Bounds, Kept, Store};
use crate::fault::Fault;
use crate::postgres_pool::{migrate, query};
use crate::reconcile::RowHash;

pub(super) const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS hookgate_ledger (
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
/// One statement, so that a write that is refused leaves no entry. The new entries, which the deletion does not see, are kept.
const ADD: &str = "WITH added AS (
  INSERT INTO hookgate_ledger (revision, place, writer, written_at, open_until, event_since, event_until, written)
  SELECT 1, $1, $2, $3, $4, $5, $6, written FROM unnest($7) WITH ORDINALITY AS new (written, at) ORDER BY at RETURNING number
), forgotten AS (
  DELETE FROM hookgate_ledger WHERE number < GREATEST((SELECT max(number) FROM added) - $8 + 1,
    COALESCE((SELECT number FROM hookgate_ledger WHERE written_at >= $9 ORDER BY number LIMIT 1), (SELECT min(number) FROM added)))
)
SELECT number FROM added ORDER BY number";
const FIND: &str = "SELECT * FROM hookgate_ledger WHERE place = ANY ($1) ORDER BY number";
const CHANGE: &str = "UPDATE hookgate_ledger SET revision = $2 + 1, place = $3, open_until = $4, event_since = $5, event_until = $6,
  answered = $7, event = $8 WHERE number = $1 AND revision = $2 RETURNING true";
const REMOVE: &str =
    "DELETE FROM hookgate_ledger WHERE number = $1 AND revision = $2 RETURNING true";

pub(super) struct Postgres(pub(super) Pool);

impl Store for Postgres {
    fn add<'a>(
        &'a self,
        entry: &'a Entry,
        written: &'a [RowHash],
        bounds: Bounds,
    ) -> StoreFuture<'a, Vec<i64>> {
        StoreFuture::boxed(async move {
            // The statement deletes no row that it adds. So of too many rows the first are not added: their number is 0, which no entry has.
            let kept = usize::try_from(bounds.capacity).unwrap_or(usize::MAX);
            let (beyond, written) = written.split_at(written.len().saturating_sub(kept));
            let capacity = i64::try_from(bounds.capacity).unwrap_or(i64::MAX);
            let written: Vec<_> = written.iter().map(RowHash::to_bytes).collect();
            let rows = query(
                &self.0,
                ADD,
                &[
                    (&entry.place.0.as_slice(), Type::BYTEA),
                    (&entry.writer, Type::TEXT),
                    (&entry.written_at, Type::INT8),
                    (&entry.open_until, Type::INT8),
                    (&entry.since, Type::INT8),
                    (&entry.until, Type::INT8),
                    (&written, Type::BYTEA_ARRAY),
                    (&capacity, Type::INT8),
                    (&bounds.oldest, Type::INT8),
                ],
            )
            .await?;
            let beyond = beyond.iter().map(|_| Ok(0));
            let numbers = beyond.chain(rows.iter().map(|row| row.try_get(0).map_err(store_error)));
            numbers.collect()
        })
    }

    fn find<'a>(&'a self, places: &'a [Place]) -> StoreFuture<'a, Vec<Kept>> {
        StoreFuture::boxed(async move {
            let places: Vec<_> = places.iter().map(|place| place.0.as_slice()).collect();
            let rows = query(&self.0, FIND, &[(&places, Type::BYTEA_ARRAY)]).await?;
            let rows: Result<Vec<_>, Fault> = rows.iter().map(kept).collect();
            Ok(rows?)
        })
    }

    fn swap(&self, number: i64, revision: i64, entry: Option<Entry>) -> StoreFuture<'_, bool> {
        StoreFuture::boxed(async move {
            let Some(entry) = &entry else {
                let bound = [(&number as _, Type::INT8), (&revision as _, Type::INT8)];
                return Ok(!query(&self.0, REMOVE, &bound).await?.is_empty());
            };
            let answered = entry.answered.as_ref().map(RowHash::to_bytes);
            let taken = entry.taken.as_ref().map(<[u8; 16]>::as_slice);
            let rows = query(
                &self.0,
                CHANGE,
                &[
                    (&number, Type::INT8),
                    (&revision, Type::INT8),
                    (&entry.place.0.as_slice(), Type::BYTEA),
                    (&entry.open_until, Type::INT8),
                    (&entry.since, Type::INT8),
                    (&entry.until, Type::INT8),
                    (&answered, Type::BYTEA),
                    (&taken, Type::BYTEA),
                ],
            )
            .await?;
            Ok(!rows.is_empty())
        })
    }

    fn migrate(&self) -> StoreFuture<'_, ()> {
        StoreFuture::boxed(migrate(&self.0, SCHEMA))
    }
}

fn kept(row: &Row) -> Result<Kept, Fault> {
    let damaged = || StoreError::new(StoreErrorKind::Corrupt);
    let hash = |bytes: &[u8]| RowHash::from_bytes(bytes).ok_or_else(damaged);
    let digest = |bytes: &[u8]| bytes.try_into().map_err(|_| damaged());
    let answered: Option<&[u8]> = row.try_get("answered")?;
    let taken: Option<&[u8]> = row.try_get("event")?;
    Ok(Kept {
        number: row.try_get("number")?,
        revision: row.try_get("revision")?,
        entry: Entry {
            place: Place(digest(row.try_get("place")?)?),
            writer: row.try_get("writer")?,
            written_at: row.try_get("written_at")?,
            open_until: row.try_get("open_until")?,
            since: row.try_get("event_since")?,
            until: row.try_get("event_until")?,
            written: hash(row.try_get("written")?)?,
            answered: answered.map(hash).transpose()?,
            taken: taken.map(digest).transpose()?,
        },
    })
}
