//! The last handled event of each row, in a table that processes share.

use std::time::Duration;

use hookgate::dedupe::{EventKey, StoreFuture};
use hookgate_order::{LastHandled, OrderStore};
use tokio_postgres::types::{ToSql, Type};

use super::claims::PostgresStore;
use super::failure::store_error;
use super::query::micros;

const LAST: &str =
    "SELECT revision, last FROM hookgate_order WHERE key = $1 AND until > clock_timestamp()";

/// The first revision is a time in milliseconds, so that the record that follows a deleted one has
/// another.
const INSERT: &str = "INSERT INTO hookgate_order AS known (key, revision, last, until)
VALUES ($1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, $2, clock_timestamp() + $3 * interval '1 microsecond')
ON CONFLICT (key) DO UPDATE SET revision = known.revision + 1, last = excluded.last, until = excluded.until
WHERE known.until <= clock_timestamp() RETURNING true";

const UPDATE: &str =
    "UPDATE hookgate_order SET revision = revision + 1, last = $2, until = clock_timestamp() + $3 * interval '1 microsecond'
WHERE key = $1 AND until > clock_timestamp() AND revision = $4 RETURNING true";

impl OrderStore for PostgresStore {
    fn last<'a>(&'a self, row: &'a [u8; 16]) -> StoreFuture<'a, Option<(u64, LastHandled)>> {
        StoreFuture::boxed(async move {
            self.sweep_now_and_then();
            let key = EventKey::from_bytes(*row).named(&self.name);
            let types = &[Type::BYTEA];
            let rows = self
                .postgres
                .query(LAST, types, &[&key.as_bytes().as_slice()])
                .await?;
            let Some(row) = rows.first() else {
                return Ok(None);
            };
            let (revision, last): (i64, &[u8]) = (
                row.try_get(0).map_err(store_error)?,
                row.try_get(1).map_err(store_error)?,
            );
            Ok(Some((
                revision.unsigned_abs(),
                LastHandled::from_bytes(last)?,
            )))
        })
    }

    fn swap<'a>(
        &'a self,
        row: &'a [u8; 16],
        revision: u64,
        last: LastHandled,
        retain: Duration,
    ) -> StoreFuture<'a, bool> {
        StoreFuture::boxed(async move {
            let Ok(revision) = i64::try_from(revision) else {
                return Ok(false);
            };
            let key = EventKey::from_bytes(*row).named(&self.name);
            let (key, last, retain) = (key.as_bytes().as_slice(), last.to_bytes(), micros(retain));
            let values: [&(dyn ToSql + Sync); 4] = [&key, &last, &retain, &revision];
            let types = [Type::BYTEA, Type::BYTEA, Type::INT8, Type::INT8];
            let (statement, bound) = if revision == 0 {
                (INSERT, 3)
            } else {
                (UPDATE, 4)
            };
            let (types, values) = (&types[..bound], &values[..bound]);
            // It does not wait for handlers that hold the pool's connections, as a commit does not.
            let rows = self
                .postgres
                .query_for_lease(statement, types, values)
                .await?;
            Ok(!rows.is_empty())
        })
    }
}
