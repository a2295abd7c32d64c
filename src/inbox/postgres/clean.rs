//! Forgets what was handled and whose retention is over: a little at a time, beside the work.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::tokio_postgres::types::Type;
use tokio::time::sleep;

use crate::clock::{Clock, Monotonic, SystemClock};
use crate::error::StoreError;
use crate::postgres::{Postgres, Task};

/// Each process looks so often, where it has workers.
const INTERVAL: Duration = Duration::from_secs(5);
/// So many rows are deleted at a time, so that nobody waits for long and no transaction is large.
const CHUNK: i64 = 1_000;
/// Between two chunks: the work goes first.
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

    /// In the background, where it is time for it.
    pub(super) fn clean(&self) {
        if !self.is_time() {
            return;
        }
        self.task.run(|| {
            let (postgres, name) = (self.postgres.clone(), Arc::clone(&self.name));
            async move {
                // An error ends it: the next time is soon enough.
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

/// Forgets a chunk, and says whether it was the last.
async fn forget(postgres: &Postgres, name: &str) -> Result<bool, StoreError> {
    let forgotten = postgres
        .query(FORGET, &[Type::INT8, Type::TEXT], &[&CHUNK, &name])
        .await?;
    Ok(forgotten.len() < usize::try_from(CHUNK).unwrap_or_default())
}
