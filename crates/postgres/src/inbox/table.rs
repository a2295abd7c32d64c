//! The inbox of one name in the table that programs share. It deletes handled entries after their
//! retention: a few at a time, beside the work.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookgate::dedupe::{ScopesInUse, StoreError};
use tokio::time::sleep;
use tokio_postgres::types::Type;

use super::notify::Notifier;
use crate::Postgres;
use crate::task::Task;

/// The number of rows that are deleted at a time, so that no call waits for long and no transaction
/// is large.
pub(super) const CHUNK: i64 = 1_000;
/// The pause between two chunks, as the workers' calls have priority.
const PAUSE: Duration = Duration::from_millis(50);

const FORGET: &str = "DELETE FROM hookgate_inbox WHERE id = ANY (ARRAY (
  SELECT id FROM hookgate_inbox WHERE namespace = $2 AND state = 2 AND forget_at <= statement_timestamp()
  ORDER BY forget_at LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING 1";

pub(super) struct Table {
    pub(super) postgres: Postgres,
    /// The name of the inbox.
    pub(super) name: Arc<str>,
    /// The notifications between the processes that share the table.
    pub(super) notifier: Notifier,
    /// The time between two cleanings, in each process with workers.
    pub(super) clean_interval: Duration,
    pub(super) cleaning: Task,
    pub(super) scopes: ScopesInUse,
    /// The row after which the next search from row to row begins, so that each row has its turn.
    pub(super) after_row: Mutex<Vec<u8>>,
}

impl Table {
    pub(super) fn new(postgres: Postgres, name: &str) -> Self {
        let name: Arc<str> = name.into();
        Self {
            notifier: Notifier::new(postgres.clone(), &name),
            clean_interval: Duration::from_secs(5),
            cleaning: Task::default(),
            scopes: ScopesInUse::default(),
            postgres,
            name,
            after_row: Mutex::default(),
        }
    }

    /// Cleans in the background from now on, at once and after each interval.
    pub(super) fn clean(&self) {
        self.cleaning.run(|| {
            let (postgres, name) = (self.postgres.clone(), Arc::clone(&self.name));
            let interval = self.clean_interval;
            async move {
                loop {
                    // One chunk is deleted also while all connections are in use: in a process that
                    // is always busy, no id would ever be forgotten. After an error the next
                    // attempt is made when the interval is over.
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
