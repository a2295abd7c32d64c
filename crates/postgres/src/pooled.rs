//! A connection in use, and its return.

use std::ops::Deref;
use std::sync::Arc;

use deadpool::managed;
use deadpool_postgres::{ClientWrapper, Metrics, Object, Pool, PoolError, Timeouts};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row, Statement};

use super::connect::Connector;
use super::session::{Sessions, at_once};

/// A connection in use. Unless it is [kept](Self::keep) it is closed when this is dropped: a
/// statement that was abandoned, by a timeout or with its future, may still be under way, and the
/// next user would wait for it.
pub(crate) struct PooledConnection {
    held: Option<Held>,
    sessions: Arc<Sessions>,
}

/// A statement that can be run on the connection that it was made for.
pub(crate) enum Ready<'a> {
    Prepared(Statement),
    /// Without a name, since the next transaction may have another session.
    Plain(&'a str, &'a [Type]),
}

pub(super) enum Held {
    Pooled(Object),
    Lease(managed::Object<LeaseConnections>),
}

/// Makes the connections that only renew, settle, commit and release: calls that keep a lease must
/// not wait for the holders of the others.
pub(super) enum LeaseConnections {
    /// By the configuration of the pool.
    Own(Connector),
    /// Taken out of the user's pool, which makes others in their place: only the pool knows how it
    /// connects and what its hooks do.
    OfPool(Pool),
}

impl managed::Manager for LeaseConnections {
    type Type = ClientWrapper;
    type Error = PoolError;

    async fn create(&self) -> Result<ClientWrapper, PoolError> {
        match self {
            Self::Own(connector) => {
                let (client, driven) = connector.connected().await?;
                Ok(ClientWrapper::new(client, driven))
            }
            Self::OfPool(pool) => Ok(Object::take(pool.timeout_get(&Timeouts::new()).await?)),
        }
    }

    async fn recycle(
        &self,
        client: &mut ClientWrapper,
        _: &Metrics,
    ) -> managed::RecycleResult<PoolError> {
        match client.is_closed() {
            true => Err(managed::RecycleError::message("the connection is closed")),
            false => Ok(()),
        }
    }
}

impl PooledConnection {
    pub(super) fn new(held: Held, sessions: Arc<Sessions>) -> Self {
        Self {
            held: Some(held),
            sessions,
        }
    }

    /// Prepares the statement, once for each connection, where its session stays.
    pub(crate) async fn ready<'a>(
        &self,
        statement: &'a str,
        types: &'a [Type],
    ) -> Result<Ready<'a>, Error> {
        if self.sessions.is_shared() {
            return Ok(Ready::Plain(statement, types));
        }
        let statement = self.prepare_typed_cached(statement, types).await?;
        Ok(Ready::Prepared(statement))
    }

    /// Runs the statement, in the transaction that is open or in one of its own.
    pub(crate) async fn run(
        &self,
        statement: &Ready<'_>,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        match statement {
            Ready::Prepared(statement) => self.query(statement, values).await,
            Ready::Plain(statement, types) => {
                let values: Vec<_> = values.iter().copied().zip(types.iter().cloned()).collect();
                self.query_typed(statement, &values).await
            }
        }
    }

    /// Runs the statement alone, in one round trip.
    pub(super) async fn run_alone(
        &self,
        statement: &str,
        types: &[Type],
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let statement = self.ready(statement, types).await?;
        if !self.sessions.needs_transaction() {
            return self.run(&statement, values).await;
        }
        let begun = self.begin();
        let rest = at_once(self.run(&statement, values), self.batch_execute("COMMIT"));
        let (begun, (rows, committed)) = at_once(begun, rest).await;
        // After a failed statement the commit is a rollback. Rows count only once they are
        // committed.
        let rows = rows?;
        begun?;
        committed?;
        Ok(rows)
    }

    /// Begins a transaction at the level `READ COMMITTED`, whatever the default is.
    pub(crate) async fn begin(&self) -> Result<(), Error> {
        self.batch_execute(self.sessions.begin()).await
    }

    /// Returns the connection for the next call: nothing is under way on it.
    pub(crate) fn keep(mut self) {
        drop(self.held.take());
    }

    pub(super) fn is_reused(&self) -> bool {
        match self.held() {
            Held::Pooled(object) => Object::metrics(object).recycle_count > 0,
            // One of the user's pool was used there.
            Held::Lease(_) => true,
        }
    }

    fn held(&self) -> &Held {
        match &self.held {
            Some(held) => held,
            None => unreachable!("a connection is taken out where it is given away"),
        }
    }
}

impl Deref for PooledConnection {
    type Target = ClientWrapper;

    fn deref(&self) -> &ClientWrapper {
        match self.held() {
            Held::Pooled(object) => object,
            Held::Lease(object) => object,
        }
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        match self.held.take() {
            Some(Held::Pooled(object)) => drop(Object::take(object)),
            Some(Held::Lease(object)) => drop(managed::Object::take(object)),
            None => {}
        }
    }
}
