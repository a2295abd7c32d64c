//! One statement: its connection, its retries and its time limit.

use std::time::Duration;

use hookgate::dedupe::{StoreError, StoreErrorKind};
use tokio::time::{sleep, timeout};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::call::first_of;
use super::failure;
use super::failure::store_error;
use super::pool::Postgres;
use super::pooled::{Held, PooledConnection};
use super::spare::POOL_WAIT;

/// How often a failed statement is tried: as often as the pool has connections by default, any of which may have lost its prepared
/// statement. Broken connections need fewer tries, since the first that fails drops all that are idle, the two spare ones too.
const ASKED: u32 = 8;

const NONE_FREE: &str = "no connection for a renewal, a settlement, a commit or a release: all of the pool's are held, and none of the two kept for these calls was free or could be opened; the server's max_connections must allow for two more";

impl Postgres {
    /// Runs one statement, prepared once for each connection, in one round trip. It may be run more than once.
    pub(crate) async fn query(
        &self,
        statement: &str,
        types: &[Type],
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        self.query_within(self.call_timeout, statement, types, values)
            .await
    }

    /// As `query`, with a limit of its own, for statements that may take longer than a store's call.
    pub(crate) async fn query_within(
        &self,
        limit: Duration,
        statement: &str,
        types: &[Type],
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        self.run(false, limit, statement, types, values).await
    }

    /// The same, for statements that keep or end a lease: it does not wait for the holders of the pool's connections.
    pub(crate) async fn query_for_lease(
        &self,
        statement: &str,
        types: &[Type],
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        let limit = self.call_timeout;
        self.run(true, limit, statement, types, values).await
    }

    /// Runs one statement, and repeats it after a failure that may pass. If `may_take_spare` is set, it may use a spare connection: it puts
    /// it back after the statement.
    async fn run(
        &self,
        may_take_spare: bool,
        limit: Duration,
        statement: &str,
        types: &[Type],
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        let asked = async {
            let mut left = ASKED;
            loop {
                left -= 1;
                let client = if may_take_spare {
                    self.spare_within(limit).await?
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
                    // The idle connections lead to the same server: it is a standby, or it was restarted, or a device in between
                    // has dropped them, which was not noticed.
                    self.drop_idle();
                } else if !is_broken && !is_stale {
                    // The server has answered, so the connection works. On one that is stale every later call would fail.
                    client.keep();
                }
                if failure::is_refused_for_level(&error) {
                    // The level is that of the role or the pool. From now on each statement chooses its own.
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

    /// Returns a spare connection, or one of the pool: that which is free first.
    async fn spare_within(&self, limit: Duration) -> Result<PooledConnection, StoreError> {
        if let Some(spare) = self.spares.take() {
            return Ok(self.pooled(Held::Spare(spare)));
        }
        self.spares.refill(&self.pool);
        let (mut unopened, mut failed) = (None, None);
        let spare = async { self.pooled(Held::Spare(self.spares.wait(&mut unopened).await)) };
        let pool = self.client_while_spares_are_used(limit, &mut failed);
        // A little less than the whole limit of the call, so that it ends with a reason.
        match timeout(limit / 8 * 7, first_of(spare, pool)).await {
            Ok(Ok(lent)) => Ok(lent),
            Ok(Err(lent)) => lent,
            Err(_) => {
                let none = StoreError::saying(StoreErrorKind::TimedOut, NONE_FREE);
                Err(match unopened.map(store_error).or(failed) {
                    Some(source) => none.caused_by(source),
                    None => none,
                })
            }
        }
    }

    /// Returns a connection of the pool. Where the pool fails and there are spare ones, which are soon put back, the wait goes on; the
    /// error is written to `failed`.
    async fn client_while_spares_are_used(
        &self,
        limit: Duration,
        failed: &mut Option<StoreError>,
    ) -> Result<PooledConnection, StoreError> {
        loop {
            match self.client_within(limit).await {
                Err(error) if self.spares.count() > 0 => *failed = Some(error),
                lent => return lent,
            }
            // The pool is asked again only when a connection was returned to it, so that this call opens no further ones.
            sleep(POOL_WAIT).await;
            while self.pool.status().available == 0 {
                sleep(POOL_WAIT).await;
            }
        }
    }
}
