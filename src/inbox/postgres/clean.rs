//! Deletes handled entries after their retention: a few at a time, beside the work.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::tokio_postgres::types::Type;
use tokio::time::sleep;

use crate::clock::{Clock, Monotonic, SystemClock};
use crate::dedupe::StoreError;
use crate::postgres::{Postgres, Task};

/// The time between two cleanings, in each process with workers.
const INTERVAL: Duration = Duration::from_secs(5);
/// The number of rows that are deleted at a time, so that no call waits for long and no transaction is large.
const CHUNK: i64 = 1_000;
/// The pause between two chunks, as the workers' calls have priority.
const PAUSE: Duration = Duration::from_millis(50);

const FORGET: &str = "DELETE FROM hookgate_inbox WHERE id = ANY (ARRAY (
  SELECT id FROM hookgate_inbox WHERE namespace = $2 AND state = 2 AND forget_at <= statement_timestamp()
  ORDER BY forget_at LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING 1";

pub(super) struct Cleaner {
    postgres: Postgres,
    name: Arc<str>,
    last: Mutex<Option<Monotonic>>,
    task: Task,
}

impl Cleaner {
    pub(super) fn new(postgres: Postgres, name: Arc<str>) -> Self {
        Self {
            postgres,
            name,
            last: Mutex::new(None),
            task: Task::default(),
        }
    }

    /// Cleans in the background, if the interval is over.
    pub(super) fn clean(&self) {
        if !self.is_time() {
            return;
        }
        self.task.run(|| {
            let (postgres, name) = (self.postgres.clone(), Arc::clone(&self.name));
            async move {
                // An error ends the loop; it runs again after the interval.
                while !postgres.is_busy() && forget(&postgres, &name).await.is_ok_and(|all| !all) {
                    sleep(PAUSE).await;
                }
            }
        });
    }

    fn is_time(&self) -> bool {
        let now = SystemClock.monotonic();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_time = last.is_none_or(|last| now.saturating_since(last) >= INTERVAL);
        if is_time {
            *last = Some(now);
        }
        is_time
    }
}

/// Deletes a chunk, and returns whether it was the last.
async fn forget(postgres: &Postgres, name: &str) -> Result<bool, StoreError> {
    let forgotten = postgres
        .query(FORGET, &[Type::INT8, Type::TEXT], &[&CHUNK, &name])
        .await?;
    Ok(forgotten.len() < usize::try_from(CHUNK).unwrap_or_default())
}
