//! One statement: its connection, its retries and its time limit.

use std::time::Duration;

use ::tokio_postgres::Row;
use ::tokio_postgres::types::{ToSql, Type};
use tokio::time::timeout;

use super::failure;
use super::pool::Postgres;
use crate::dedupe::{StoreError, StoreErrorKind};

/// How often a failed statement is tried: as often as the pool has connections by default, any of which may have lost its prepared
/// statement. Broken connections need fewer tries, since the first that fails drops all that are idle, the two spare ones too.
const ASKED: u32 = 8;

/// The connection that a statement takes.
#[derive(Clone, Copy)]
enum From {
    Pool,
    /// A spare one, which is held no longer than such a statement takes, or one of the pool.
    Spares,
}

enum Asked {
    /// The statement failed and is to be tried again.
    InVain(StoreError),
    Failed(StoreError),
}

impl Postgres {
    /// Runs one statement, prepared once for each connection, in one round trip. It may be run more than once.
    pub(crate) async fn query(
        &self,
        statement: &str,
        types: &[Type],
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        self.query_within(self.patience(), statement, types, values)
            .await
    }

    /// As `query`, with a limit of its own, for statements that may take longer than a store's call.
    pub(crate) async fn query_within(
        &self,
        patience: Duration,
        statement: &str,
        types: &[Type],
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        self.ask(From::Pool, patience, statement, types, values)
            .await
    }

    /// The same, for statements that keep or end a lease: it does not wait for the holders of the pool's connections.
    pub(crate) async fn query_for_lease(
        &self,
        statement: &str,
        types: &[Type],
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        self.ask(From::Spares, self.patience(), statement, types, values)
            .await
    }

    async fn ask(
        &self,
        from: From,
        patience: Duration,
        statement: &str,
        types: &[Type],
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        let asked = async {
            // Every statement here may be repeated.
            let mut left = ASKED;
            loop {
                left -= 1;
                match self
                    .asked_once(from, patience, statement, types, values)
                    .await
                {
                    Err(Asked::InVain(_)) if left > 0 => {}
                    Err(Asked::InVain(error) | Asked::Failed(error)) => return Err(error),
                    Ok(rows) => return Ok(rows),
                }
            }
        };
        match timeout(patience, asked).await {
            Ok(answer) => answer,
            Err(_) => {
                self.drop_silent(patience);
                Err(StoreError::new(StoreErrorKind::TimedOut))
            }
        }
    }

    async fn asked_once(
        &self,
        from: From,
        patience: Duration,
        statement: &str,
        types: &[Type],
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Asked> {
        let client = match from {
            From::Pool => self.client_within(patience).await,
            From::Spares => self.spare_within(patience).await,
        };
        let client = client.map_err(Asked::Failed)?;
        let lain_idle = client.lain_idle();
        let asked = async {
            let statement = client.prepare_typed_cached(statement, types).await?;
            client.query(&statement, values).await
        };
        match asked.await {
            Ok(rows) => {
                client.keep();
                Ok(rows)
            }
            // The server was restarted, or a device in between has dropped the connection, and this was not noticed while it was
            // idle.
            Err(error) if lain_idle && failure::is_broken(&error) => {
                self.drop_idle();
                Err(Asked::InVain(error.into()))
            }
            // If it were kept, every later call on it would fail.
            Err(error) if lain_idle && failure::is_stale(&error) => {
                Err(Asked::InVain(error.into()))
            }
            // The isolation level is that of the role or the pool, which may be stricter than the statements need.
            Err(error) if failure::is_beaten(&error) => {
                client.keep();
                Err(Asked::InVain(error.into()))
            }
            // The idle connections lead to the same server.
            Err(error) if failure::is_read_only(&error) => {
                self.drop_idle();
                Err(Asked::Failed(error.into()))
            }
            Err(error) => {
                // The server has answered, so the connection works.
                if !failure::is_broken(&error) {
                    client.keep();
                }
                Err(Asked::Failed(error.into()))
            }
        }
    }
}
