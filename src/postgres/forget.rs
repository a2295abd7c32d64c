//! Deletion of what has ended, by hand.

use ::tokio_postgres::GenericClient;
use ::tokio_postgres::types::Type;

use super::claims::FORGET_CLAIMS;
use super::effects::FORGET_EFFECTS;
use super::failure;
use crate::error::PostgresError;

/// Deletes events whose retention has ended and claims whose lease has: of each at most `most`, and says how many. Call it again
/// while it says as many.
///
/// A [`PostgresStore`](super::PostgresStore) does so by itself, for both. Without one, call it now and then: every minute from a task, or
/// run [`FORGET_EFFECTS`] by `pg_cron`. It waits for nobody, and what it deletes nobody can claim in the meantime. Nothing but room is lost where
/// it is never called.
///
/// # Errors
/// Those of [`migrate`](super::migrate). What was deleted before stays deleted.
pub async fn forget(client: &impl GenericClient, most: u32) -> Result<u64, PostgresError> {
    let mut forgotten = 0;
    for statement in [FORGET_CLAIMS, FORGET_EFFECTS] {
        let row = client
            .query_typed_one(statement, &[(&i64::from(most), Type::INT8)])
            .await
            .map_err(failure::direct)?;
        let rows: i64 = row.try_get(0).map_err(failure::direct)?;
        forgotten += rows.unsigned_abs();
    }
    Ok(forgotten)
}
