//! Deletes handled entries after their retention: a few at a time, beside the work.

use std::sync::Arc;
use std::time::Duration;

use hookgate::dedupe::StoreError;
use tokio::time::sleep;
use tokio_postgres::types::Type;

use super::table::Table;
use crate::Postgres;

/// The number of rows that are deleted at a time, so that no call waits for long and no transaction is large.
pub(super) const CHUNK: i64 = 1_000;
/// The pause between two chunks, as the workers' calls have priority.
const PAUSE: Duration = Duration::from_millis(50);

const FORGET: &str = "DELETE FROM hookgate_inbox WHERE id = ANY (ARRAY (
  SELECT id FROM hookgate_inbox WHERE namespace = $2 AND state = 2 AND forget_at <= statement_timestamp()
  ORDER BY forget_at LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING 1";

impl Table {
    /// Cleans in the background from now on, at once and after each interval.
    pub(super) fn clean(&self) {
        self.cleaning.run(|| {
            let (postgres, name) = (self.postgres.clone(), Arc::clone(&self.name));
            let interval = self.clean_interval;
            async move {
                loop {
                    // One chunk is deleted also while all connections are in use: in a process that is always busy, no id would
                    // ever be forgotten. After an error the next attempt is made when the interval is over.
                    while forget(&postgres, &name).await.is_ok_and(|all| !all)
                        && !postgres.is_busy()
                    {
                        sleep(PAUSE).await;
                    }
                    sleep(interval).await;
                }
            }
        });
    }
}

/// Deletes a chunk, and returns whether it was the last.
async fn forget(postgres: &Postgres, name: &str) -> Result<bool, StoreError> {
    let types = [Type::INT8, Type::TEXT];
    let forgotten = if postgres.is_busy() {
        // The connections that renew leases are free most of the time.
        postgres
            .query_for_lease(FORGET, &types, &[&CHUNK, &name])
            .await?
    } else {
        postgres.query(FORGET, &types, &[&CHUNK, &name]).await?
    };
    Ok(forgotten.len() < usize::try_from(CHUNK).unwrap_or_default())
}
