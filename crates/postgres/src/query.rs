//! One statement: its connection, its retries and its time limit.

use std::time::Duration;

use deadpool::managed;
use deadpool_postgres::Timeouts;
use hookgate::dedupe::{StoreError, StoreErrorKind};
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::failure;
use super::failure::store_error;
use super::pool::{Postgres, no_client};
use super::pooled::{Held, PooledConnection};

/// How often a failed statement is tried: as often as the pool has connections by default, any of
/// which may have lost its prepared statement. Broken connections need fewer tries, since the first
/// that fails drops all that are idle.
const ASKED: u32 = 8;

/// How long a call that keeps or ends a lease waits for a connection of the pool before it takes
/// one of its own.
const POOL_WAIT: Duration = Duration::from_millis(100);

const NONE_FREE: &str = "no connection for a renewal, a settlement, a commit or a release: all of the pool's are held, and none of the two kept for these calls was free or could be opened; the server's max_connections must allow for two more";

impl Postgres {
    /// Runs one statement, prepared once for each connection, in one round trip. It may be run more
    /// than once.
    pub(crate) async fn query(
        &self,
        statement: &str,
        types: &[Type],
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        self.query_within(self.call_timeout, statement, types, values)
            .await
    }

    /// As `query`, with a limit of its own, for statements that may take longer than a store's
    /// call.
    pub(crate) async fn query_within(
        &self,
        limit: Duration,
        statement: &str,
        types: &[Type],
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        self.run(false, limit, statement, types, values).await
    }

    /// The same, for statements that keep or end a lease: it does not wait for the holders of the
    /// pool's connections.
    pub(crate) async fn query_for_lease(
        &self,
        statement: &str,
        types: &[Type],
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        let limit = self.call_timeout;
        self.run(true, limit, statement, types, values).await
    }

    /// Runs one statement, and repeats it after a failure that may pass.
    async fn run(
        &self,
        is_for_lease: bool,
        limit: Duration,
        statement: &str,
        types: &[Type],
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        self.fill_leases();
        let asked = async {
            let mut left = ASKED;
            loop {
                left -= 1;
                let client = if is_for_lease {
                    self.client_for_lease(limit).await?
                } else {
                    self.client_within(limit).await?
                };
                let is_reused = client.is_reused();
                let error = match client.run_alone(statement, types, values).await {
                    Ok(rows) => {
                        client.keep();
                        return Ok(rows);
                    }
                    Err(error) => error,
                };
                let is_broken = failure::is_broken(&error);
                let is_stale = is_reused && failure::is_stale(&error);
                let is_read_only = failure::is_read_only(&error);
                if is_read_only || (is_reused && is_broken) {
                    // The idle connections lead to the same server: it is a standby, or it was
                    // restarted, or a device in between has dropped them, which was not noticed.
                    self.drop_idle();
                } else if !is_broken && !is_stale {
                    // The server has answered, so the connection works. On one that is stale every
                    // later call would fail.
                    client.keep();
                }
                if failure::is_refused_for_level(&error) {
                    // The level is that of the role or the pool. From now on each statement chooses
                    // its own.
                    self.sessions.note_strict();
                }
                // Every statement here may be repeated.
                let may_pass = (is_reused && is_broken) || is_stale || failure::is_conflict(&error);
                if !may_pass || left == 0 {
                    return Err(store_error(error));
                }
            }
        };
        match timeout(limit, asked).await {
            Ok(answer) => answer,
            Err(_) => {
                self.drop_silent(limit);
                Err(StoreError::new(StoreErrorKind::TimedOut))
            }
        }
    }

    /// Returns a connection of the pool, or where none is free soon, one of those that only these
    /// calls use.
    async fn client_for_lease(&self, limit: Duration) -> Result<PooledConnection, StoreError> {
        if let Ok(Ok(client)) = timeout(POOL_WAIT, self.client_within(limit)).await {
            return Ok(client);
        }
        // A little less than the whole limit of the call, so that it ends with a reason.
        let wait = (limit / 8 * 7).saturating_sub(POOL_WAIT);
        match timeout(wait, self.leases.timeout_get(&Timeouts::new())).await {
            Ok(Ok(object)) => Ok(self.pooled(Held::Lease(object))),
            Ok(Err(managed::PoolError::Backend(error))) => Err(no_client(error)),
            Ok(Err(error)) => Err(StoreError::new(StoreErrorKind::Unavailable).caused_by(error)),
            Err(_) => Err(StoreError::saying(StoreErrorKind::TimedOut, NONE_FREE)),
        }
    }
}

/// Returns microseconds, limited to a hundred years, which the server can add to its time.
pub(crate) fn micros(time: Duration) -> i64 {
    const MAX: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);
    i64::try_from(time.min(MAX).as_micros()).unwrap_or(i64::MAX)
}
