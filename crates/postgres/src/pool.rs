//! The pool: a few connections, made when they are needed, and closed when their state is unknown.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use deadpool::managed;
use deadpool_postgres::{
    Manager, ManagerConfig, Pool, PoolError, RecyclingMethod, Runtime, Timeouts,
};
use hookgate::dedupe::{StoreError, StoreErrorKind};
use tokio::time::timeout;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Config, Socket};

use super::connect::Connector;
#[cfg(feature = "inbox")]
use super::connect::Listener;
use super::failure::store_error;
use super::pooled::{Held, LeaseConnections, PooledConnection};
use super::session::Sessions;
use super::task::Task;

/// The default number of connections.
const CONNECTIONS: usize = 8;
/// The default limit of a call, its wait for a connection included: a little less than the second
/// that a store's call gets, so that the call ends here, with a reason.
const CALL_TIMEOUT: Duration = Duration::from_millis(900);
/// The number of connections for leases: two, so that one that hangs does not block the others.
const LEASE_CONNECTIONS: usize = 2;
/// How long a migration waits for a connection.
const TO_MIGRATE: Duration = Duration::from_secs(10);

/// A PostgreSQL database. Clones share its connections.
///
/// It connects at the first call, so that a program starts while its database is down. A connection
/// that breaks is replaced by the next call that needs one; no restart is needed.
///
/// ```no_run
/// use hookgate_postgres::Postgres;
///
/// let postgres = Postgres::open(&std::env::var("DATABASE_URL")?)?.with_connections(16);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Security
/// The URL of a database that is not on this machine needs `sslmode=verify-full`, and the feature
/// `tls`. With [`new`](Self::new) and a connector of your own, the configuration needs
/// `sslmode=require`: without it, a server that speaks no TLS is accepted.
#[derive(Clone)]
pub struct Postgres {
    pub(super) pool: Pool,
    /// The connections of calls that keep or end a lease.
    pub(super) leases: managed::Pool<LeaseConnections>,
    filling: Arc<Task>,
    /// Absent where the pool belongs to the user, since a pool can't be asked how it connects.
    #[cfg_attr(not(feature = "inbox"), allow(dead_code))]
    connector: Option<Connector>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) call_timeout: Duration,
}

impl Postgres {
    /// Returns a database that connects by this URL at the first call, with TLS where the URL asks
    /// for it: `postgres://user:password@host/database?sslmode=verify-full`. The rest is as with
    /// [`new`](Self::new).
    ///
    /// # Errors
    /// Those of [`Tls::for_url`](super::Tls::for_url).
    pub fn open(url: &str) -> Result<Self, StoreError> {
        let (config, tls) = super::Tls::for_url(url)?;
        Ok(Self::new(config, tls))
    }

    /// Returns a database that connects by this configuration at the first call.
    ///
    /// Every connection is made with a `lock_timeout` of 800 ms, a `statement_timeout` of 5 s and
    /// an `idle_in_transaction_session_timeout` of 10 s, so that the server too ends work whose
    /// caller no longer waits, and at the isolation level `READ COMMITTED`, which is enough for
    /// each statement here. Settings of these in the configuration's `options` stay unchanged.
    /// **Through a pooler of transactions they would be left to other clients**: call
    /// [`behind_pooler`](Self::behind_pooler) there. Where the configuration has no TCP settings, a
    /// connection is probed after 10 s of silence, and is lost when sent data stays unacknowledged
    /// for 10 s.
    pub fn new<T>(mut config: Config, tls: T) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + Sync,
        T::TlsConnect: Send + Sync,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        super::connect::set_keepalives(&mut config);
        let options = config.get_options().unwrap_or_default();
        let sessions = Arc::new(Sessions::with_settings(options));
        let connector = Connector::new(config.clone(), tls, Arc::clone(&sessions));
        let recycled = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let manager = Manager::from_connect(config, connector.clone(), recycled);
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .build();
        match pool {
            Ok(pool) => Self::with(pool, Some(connector), sessions),
            Err(_) => unreachable!("{NO_TIMEOUTS}"),
        }
    }

    /// Uses the connections of your own pool, with the pool's settings.
    ///
    /// The first calls from here take two connections out of the pool, and keep them for the calls
    /// that [keep and end leases](super#connections); the pool makes others in their place. If one
    /// of the two breaks, it is replaced by the next connection that the pool gives. So count
    /// `max_size + 2` for every process, and for each `Postgres` made from the pool that is not a
    /// clone of another, against the server's `max_connections`.
    ///
    /// With its `RecyclingMethod::Fast`, a call is one round trip. An inbox on it polls, since a
    /// connection that listens can't be taken from a pool.
    #[must_use]
    pub fn with_pool(pool: Pool) -> Self {
        Self::with(pool, None, Arc::new(Sessions::as_they_are()))
    }

    fn with(pool: Pool, connector: Option<Connector>, sessions: Arc<Sessions>) -> Self {
        let lease_connections = match &connector {
            Some(connector) => LeaseConnections::Own(connector.clone()),
            None => LeaseConnections::OfPool(pool.clone()),
        };
        let leases = managed::Pool::builder(lease_connections).max_size(LEASE_CONNECTIONS);
        let Ok(leases) = leases.build() else {
            unreachable!("{NO_TIMEOUTS}")
        };
        Self {
            pool,
            leases,
            filling: Arc::default(),
            connector,
            sessions,
            call_timeout: CALL_TIMEOUT,
        }
    }

    /// Sets the greatest number of connections, at least one. The default is 8.
    ///
    /// A claim and its commit hold one for a round trip each, so a few serve thousands of events a
    /// second. Where a call that [keeps or ends a lease](super#connections) has waited 100 ms for
    /// one of them, up to two more are opened and kept for these calls alone. Workers open one
    /// more, which listens. So count `most + 3` for every process against the server's
    /// `max_connections`.
    #[must_use]
    pub fn with_connections(self, most: usize) -> Self {
        self.pool.resize(most.max(1));
        self
    }

    /// For connections through a pooler that gives each **transaction** another connection of the
    /// server, such as PgBouncer with `pool_mode = transaction`, a provider's "transaction pooler"
    /// or "pooled" URL: nothing is left in a session that another client gets next. It holds for
    /// all clones. Call it before the first use of any of them.
    ///
    /// - The settings of [`new`](Self::new) are made for each transaction, with `SET LOCAL`, and
    ///   not for the connection.
    /// - Statements have no name, so that the pooler need not know of prepared statements: any
    ///   version works. The server plans each call again, which costs it a fraction of a
    ///   millisecond.
    /// - Nothing listens: workers of an inbox find new entries at their poll interval.
    ///
    /// A call is still one round trip. [`migrate`](super::migrate), [`claim_in`](super::claim_in)
    /// and [`forget`](super::forget) work through such a pooler in any case.
    #[must_use]
    pub fn behind_pooler(self) -> Self {
        self.sessions.share();
        self
    }

    /// Sets how long a call may take, with its wait for a connection. The default is 900 ms: a
    /// receiver waits a second for its store and no longer, and an acceptor 4.5 s for its inbox, so
    /// that a longer time is useful only to a program that calls the store itself. Workers wait for
    /// their leases, and operators for their lists, with separate limits.
    #[must_use]
    pub fn with_timeout(mut self, most: Duration) -> Self {
        self.call_timeout = most;
        self
    }

    /// Makes the tables that are missing, as [`migrate`](super::migrate) does, on a connection of
    /// this database: for a program, or a step of its deployment that runs before it. It waits for
    /// other processes that migrate and for the building of indexes without the time-outs of
    /// [`new`](Self::new), and works behind a pooler.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use hookgate_postgres::Postgres;
    ///
    /// Postgres::open(&std::env::var("DATABASE_URL")?)?.migrate().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`migrate`](super::migrate).
    pub async fn migrate(&self) -> Result<(), StoreError> {
        let client = self.client_within(TO_MIGRATE).await?;
        let begin = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0";
        client.batch_execute(begin).await.map_err(store_error)?;
        super::migrate(&**client).await?;
        client.batch_execute("COMMIT").await.map_err(store_error)?;
        client.keep();
        Ok(())
    }

    /// Returns a connection, also for several statements. It goes back to the pool by
    /// [`PooledConnection::keep`] alone.
    pub(crate) async fn client_within(
        &self,
        limit: Duration,
    ) -> Result<PooledConnection, StoreError> {
        // The wait is bounded here and not by the pool, which may belong to the user.
        match timeout(limit, self.pool.timeout_get(&Timeouts::new())).await {
            Ok(Ok(object)) => Ok(self.pooled(Held::Pooled(object))),
            Ok(Err(error)) => Err(no_client(error)),
            Err(_) => Err(StoreError::new(StoreErrorKind::TimedOut)),
        }
    }

    pub(super) fn pooled(&self, held: Held) -> PooledConnection {
        PooledConnection::new(held, Arc::clone(&self.sessions))
    }

    /// Takes those for leases out of the user's pool, as soon as it has some: later its holders
    /// might keep all.
    pub(super) fn fill_leases(&self) {
        if self.connector.is_some() {
            return;
        }
        self.leases.retain(|client, _| !client.is_closed());
        if self.leases.status().size < LEASE_CONNECTIONS {
            self.filling.run(|| {
                let leases = self.leases.clone();
                async move {
                    // Both at a time, so that two are made.
                    let one = leases.get().await;
                    drop((leases.get().await, one));
                }
            });
        }
    }

    /// Returns a separate connection that listens on a channel and holds this advisory lock, which
    /// others may hold too, where connections can be made.
    ///
    /// `None` on a pool of the user and behind a pooler: then only polling shows new data.
    #[cfg(feature = "inbox")]
    pub(crate) async fn listen(
        &self,
        channel: &str,
        lock: (u32, u32),
    ) -> Result<Option<Listener>, StoreError> {
        let connector = self.connector.as_ref();
        let Some(connector) = connector.filter(|_| !self.sessions.is_shared()) else {
            return Ok(None);
        };
        match timeout(self.call_timeout, Listener::open(connector, channel, lock)).await {
            Ok(listener) => Ok(Some(listener.map_err(store_error)?)),
            Err(_) => Err(StoreError::new(StoreErrorKind::TimedOut)),
        }
    }

    /// Returns whether a task waits for a connection: work that can wait then waits.
    pub(crate) fn is_busy(&self) -> bool {
        let status = self.pool.status();
        status.waiting > 0 || (status.available == 0 && status.size >= status.max_size)
    }

    pub(super) fn drop_idle(&self) {
        self.pool.retain(|_, _| false);
        self.leases.retain(|_, _| false);
    }

    /// After a silence, drops idle connections that have not answered since it began: the next call
    /// would use up its time on a connection whose peer is lost without a sign. Connections that
    /// have answered since stay, so that a server that is merely slow does not have to accept all
    /// of them again.
    pub(crate) fn drop_silent(&self, silence: Duration) {
        self.pool.retain(|_, metrics| metrics.last_used() < silence);
        self.leases
            .retain(|_, metrics| metrics.last_used() < silence);
    }
}

const NO_TIMEOUTS: &str = "a pool without timeouts needs nothing more";

/// The reason why a pool has given no connection.
pub(super) fn no_client(error: PoolError) -> StoreError {
    match error {
        PoolError::Backend(error) => store_error(error),
        error => StoreError::new(StoreErrorKind::Unavailable).caused_by(error),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_postgres::NoTls;

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
