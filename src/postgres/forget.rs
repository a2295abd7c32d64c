//! Deletion of ended records, by the program.

use ::tokio_postgres::GenericClient;
use ::tokio_postgres::types::Type;

use super::claims::FORGET_CLAIMS;
use super::effects::FORGET_EFFECTS;
use super::rows::FORGET_ORDER;
use crate::dedupe::StoreError;

/// Deletes events and records of rows whose retention has ended, and claims whose lease or retention has: of each at most `most`,
/// and returns the number deleted in all. Call it again while it returns at least `most`.
///
/// A [`PostgresStore`](super::PostgresStore) deletes them automatically. Without one, call it regularly: every minute from a
/// task, or run [`FORGET_EFFECTS`] and [`FORGET_ORDER`] by `pg_cron`. It skips locked rows, and a row that it deletes can't be claimed in the
/// meantime. If it is never called, the only harm is the disk space used.
///
/// # Errors
/// Those of [`migrate`](super::migrate). Rows that were deleted before the error stay deleted.
pub async fn forget(client: &impl GenericClient, most: u32) -> Result<u64, StoreError> {
    let mut forgotten = 0;
    for statement in [FORGET_CLAIMS, FORGET_EFFECTS, FORGET_ORDER] {
        let row = client
            .query_typed_one(statement, &[(&i64::from(most), Type::INT8)])
            .await?;
        let rows: i64 = row.try_get(0)?;
        forgotten += rows.unsigned_abs();
    }
    Ok(forgotten)
}
