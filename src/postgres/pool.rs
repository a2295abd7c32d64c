//! Connections: a few, made when they are needed, and thrown away when nobody can tell how they stand.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use ::tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use ::tokio_postgres::types::{ToSql, Type};
use ::tokio_postgres::{Config, Row, Socket};
use deadpool_postgres::{
    ClientWrapper, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
    Timeouts,
};
use tokio::time::timeout;

use super::connect::{Connector, Listener, Shared};
use super::failure;
use crate::dedupe::ScopesInUse;
use crate::error::{StoreError, StoreErrorKind};

/// How many connections there are, unless told otherwise.
const CONNECTIONS: usize = 8;
/// No call takes longer, with its wait for a connection: a little less than the second that a store's call gets, so that it
/// ends here, with a reason.
const PATIENCE: Duration = Duration::from_millis(900);
/// How often a statement is asked that had no luck: as often as there are connections, any of which may be the stale one.
const ASKED: u32 = 8;

/// A PostgreSQL database. Clones share its connections.
///
/// Nothing connects before it is asked, so that a program starts while its database is down. A connection that breaks is replaced
/// by the next call that needs one; nothing has to be restarted.
///
/// ```no_run
/// use hookgate::postgres::Postgres;
/// use tokio_postgres::{Config, NoTls};
///
/// let config: Config = std::env::var("DATABASE_URL")?.parse()?;
/// let postgres = Postgres::new(config, NoTls).with_connections(16);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Security
/// `NoTls` is for a database on this machine or on a network that is trusted whole. Elsewhere take a connector, such as that of the crate
/// `tokio-postgres-rustls` or `postgres-native-tls`, and `sslmode=require` in the configuration: without it a server that speaks no TLS is
/// believed.
#[derive(Clone)]
pub struct Postgres {
    pool: Pool,
    /// Absent where the pool is the user's own, which can't be asked how it connects.
    #[cfg_attr(not(feature = "inbox"), allow(dead_code))]
    connector: Option<Arc<Connector>>,
    patience: Duration,
    /// Of the claims in this database, whichever store they are asked of.
    scopes: ScopesInUse,
}

impl Postgres {
    /// Connects by this configuration when it is first asked.
    ///
    /// Every connection is made with a `lock_timeout` of 800 ms, a `statement_timeout` of 5 s and an
    /// `idle_in_transaction_session_timeout` of 10 s, so that the server too lets go of what nobody waits for any more. What the
    /// configuration's `options` set of these stays as it is set there. Where it says nothing of TCP, a connection
    /// is probed after 10 s of silence, and is lost when what was sent stays unacknowledged for 10 s.
    pub fn new<T>(mut config: Config, tls: T) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + Sync,
        T::TlsConnect: Send + Sync,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        super::connect::notice_silence(&mut config);
        let connector = Arc::new(Connector::new(config.clone(), tls));
        let recycled = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let manager = Manager::from_connect(config, Shared(Arc::clone(&connector)), recycled);
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .build();
        match pool {
            Ok(pool) => Self {
                pool,
                connector: Some(connector),
                patience: PATIENCE,
                scopes: ScopesInUse::default(),
            },
            Err(_) => unreachable!("a pool without timeouts needs nothing more"),
        }
    }

    /// Shares the connections of your own pool, with the settings that it makes them with.
    ///
    /// Its `RecyclingMethod::Fast` keeps a call one round trip. An inbox on it polls, since a connection that listens can't be
    /// had from a pool.
    #[must_use]
    pub fn with_pool(pool: Pool) -> Self {
        Self {
            pool,
            connector: None,
            patience: PATIENCE,
            scopes: ScopesInUse::default(),
        }
    }

    /// Makes at most so many connections, and at least one. The default is 8.
    ///
    /// A claim and its commit hold one for a round trip each, so a few serve thousands of events a second. Count them for every
    /// process against the server's `max_connections`.
    #[must_use]
    pub fn with_connections(self, most: usize) -> Self {
        self.pool.resize(most.max(1));
        self
    }

    /// How long a call may take, with its wait for a connection. The default is 900 ms: a receiver waits a second for its store and no longer, and
    /// an acceptor 4.5 s for its inbox, so that more than that is of use only to a program that asks the store itself. Workers wait for their
    /// leases, and operators for their lists, for a time of their own.
    #[must_use]
    pub fn with_timeout(mut self, most: Duration) -> Self {
        self.patience = most;
        self
    }

    pub(super) fn scopes_in_use(&self) -> &ScopesInUse {
        &self.scopes
    }

    /// How long a call may take.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// One statement, prepared once a connection, in one round trip. It may be asked more than once.
    pub(crate) async fn query(
        &self,
        statement: &str,
        types: &[Type],
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        self.query_within(self.patience, statement, types, values)
            .await
    }

    /// The same, for what may take longer than a store's call.
    pub(crate) async fn query_within(
        &self,
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
                match self.asked_once(patience, statement, types, values).await {
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
        patience: Duration,
        statement: &str,
        types: &[Type],
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Asked> {
        let client = self.client_within(patience).await.map_err(Asked::Failed)?;
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
            // The server was started anew, or what lies between has forgotten the connection, and nobody noticed as it lay idle.
            Err(error) if lain_idle && failure::is_broken(&error) => {
                self.drop_idle();
                Err(Asked::InVain(failure::store(error)))
            }
            // Kept, it would fail each call that comes after.
            Err(error) if lain_idle && failure::is_stale(&error) => {
                Err(Asked::InVain(failure::store(error)))
            }
            // The isolation level is the role's or the pool's, which may be stricter than the statements need.
            Err(error) if failure::is_beaten(&error) => {
                client.keep();
                Err(Asked::InVain(failure::store(error)))
            }
            // Those that lie idle lead to the same server.
            Err(error) if failure::is_read_only(&error) => {
                self.drop_idle();
                Err(Asked::Failed(failure::store(error)))
            }
            Err(error) => {
                // The server has answered, so the connection stands.
                if !failure::is_broken(&error) {
                    client.keep();
                }
                Err(Asked::Failed(failure::store(error)))
            }
        }
    }

    /// A connection, also for what takes several statements. It goes back to the pool by [`Lent::keep`] alone.
    pub(crate) async fn client_within(&self, patience: Duration) -> Result<Lent, StoreError> {
        // Waits are bounded here and not by the pool, which may be the user's own.
        let patient = Timeouts {
            wait: None,
            create: None,
            recycle: None,
        };
        match timeout(patience, self.pool.timeout_get(&patient)).await {
            Ok(Ok(object)) => Ok(Lent(Some(object))),
            Ok(Err(PoolError::Backend(error))) => Err(failure::store(error)),
            Ok(Err(error)) => Err(StoreError::new(StoreErrorKind::Unavailable).caused_by(error)),
            Err(_) => Err(StoreError::new(StoreErrorKind::TimedOut)),
        }
    }

    /// A connection of its own that listens on a channel, where connections can be made.
    ///
    /// `None` on a pool of the user's own: then only asking again tells.
    #[cfg_attr(not(feature = "inbox"), allow(dead_code))]
    pub(crate) async fn listen(&self, channel: &str) -> Result<Option<Listener>, StoreError> {
        let Some(connector) = &self.connector else {
            return Ok(None);
        };
        match timeout(self.patience, Listener::open(connector, channel)).await {
            Ok(Ok(listener)) => Ok(Some(listener)),
            Ok(Err(error)) => Err(failure::store(error)),
            Err(_) => Err(StoreError::new(StoreErrorKind::TimedOut)),
        }
    }

    /// Whether somebody waits for a connection: then what can wait does.
    pub(crate) fn is_busy(&self) -> bool {
        let status = self.pool.status();
        status.waiting > 0 || (status.available == 0 && status.size >= status.max_size)
    }

    fn drop_idle(&self) {
        self.pool.retain(|_, _| false);
    }

    /// After a silence, drops what lies idle and has not answered since it began: a connection whose other end is gone without a word
    /// would cost the next call its time as well. Those that answered in the meantime stay, so that a server that is merely slow is not
    /// asked to make all of them anew.
    pub(crate) fn drop_silent(&self, silence: Duration) {
        self.pool.retain(|_, metrics| metrics.last_used() < silence);
    }
}

enum Asked {
    /// To be asked again.
    InVain(StoreError),
    Failed(StoreError),
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.pool.status();
        f.debug_struct("Postgres")
            .field("connections", &status.size)
            .field("at_most", &status.max_size)
            .finish_non_exhaustive()
    }
}

/// A connection in use. Unless it is [kept](Self::keep) it is closed when this is dropped: a statement that was given up, by a timeout
/// or with its future, may still be under way, and the next user would wait for it.
pub(crate) struct Lent(Option<Object>);

impl Lent {
    /// Nothing is under way on it: the next call may have it.
    pub(crate) fn keep(mut self) {
        drop(self.0.take());
    }

    fn lain_idle(&self) -> bool {
        Object::metrics(self.object()).recycle_count > 0
    }

    fn object(&self) -> &Object {
        match &self.0 {
            Some(object) => object,
            None => unreachable!("a connection is taken out where it is given away"),
        }
    }
}

impl Deref for Lent {
    type Target = ClientWrapper;

    fn deref(&self) -> &ClientWrapper {
        self.object()
    }
}

impl std::ops::DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut ClientWrapper {
        match &mut self.0 {
            Some(object) => object,
            None => unreachable!("a connection is taken out where it is given away"),
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            drop(Object::take(object));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tokio_postgres::NoTls;

    #[test]
    fn a_database_shows_neither_password_nor_address() {
        let config: Config = "host=db.example user=app password=made_up_password"
            .parse()
            .unwrap();
        let postgres = Postgres::new(config, NoTls).with_connections(0);
        assert_eq!(
            format!("{postgres:?}"),
            "Postgres { connections: 0, at_most: 1, .. }"
        );
    }
}
