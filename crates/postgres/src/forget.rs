//! Deletion of ended records, by the program.

use hookgate::dedupe::StoreError;
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use super::failure::store_error;

/// Rows that are locked are in use.
macro_rules! forget {
    ($table:literal) => {
        concat!(
            "WITH forgotten AS (
  DELETE FROM ",
            $table,
            " WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM ",
            $table,
            " WHERE until <= now() ORDER BY until LIMIT $1 FOR UPDATE SKIP LOCKED))
  RETURNING 1
) SELECT count(*) FROM forgotten"
        )
    };
}

/// Three statements, which delete claims whose lease or retention has ended, and events and records of rows whose retention has.
/// Each deletes at most `$1` (`bigint`), skips rows that are locked, and returns the number deleted (`bigint`).
///
/// For a schedule of your own; a [`PostgresStore`](super::PostgresStore) on the same database runs them automatically.
pub const FORGET: [&str; 3] = [
    forget!("hookgate_claims"),
    forget!("hookgate_effects"),
    forget!("hookgate_order"),
];

/// Deletes events and records of rows whose retention has ended, and claims whose lease or retention has: of each at most `most`,
/// and returns the number deleted in all. Call it again while it returns at least `most`.
///
/// A [`PostgresStore`](super::PostgresStore) deletes them automatically. Without one, call it regularly: every minute from a
/// task, or run the statements of [`FORGET`] by `pg_cron`. It skips locked rows, and a row that it deletes can't be
/// claimed in the meantime. If it is never called, the only harm is the disk space used.
///
/// # Errors
/// Those of [`migrate`](super::migrate). Rows that were deleted before the error stay deleted.
pub async fn forget(client: &impl GenericClient, most: u32) -> Result<u64, StoreError> {
    let mut forgotten = 0;
    for statement in FORGET {
        let row = client
            .query_typed_one(statement, &[(&i64::from(most), Type::INT8)])
            .await
            .map_err(store_error)?;
        let rows: i64 = row.try_get(0).map_err(store_error)?;
        forgotten += rows.unsigned_abs();
    }
    Ok(forgotten)
}
