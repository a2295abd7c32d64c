//! The store: each call of the contract as one or two commands.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hookgate::{
    DedupeStore,
    dedupe::{
        ClaimToken, Claimed, EventKey, LongestLease, Ownership, ScopesInUse, StoreError,
        StoreErrorKind, StoreFuture,
    },
};
use redis::aio::ConnectionLike;
use redis::cmd;
use tokio::time::timeout;

use crate::check;
use crate::connection::Connection;
use crate::failure::{broke, store_error};
use crate::finding::Findings;
use crate::record::{self, DONE, PREFIX, RUNNING, millis, value};
use crate::script::{COMMIT, Compared, LOOK, RELEASE, RENEW};

/// The layer gives a call one second; this is less, so that the call's own answer comes first.
const CALL: Duration = Duration::from_millis(900);
/// The greatest number of times that a claim repeats because a record disappears between two of its
/// commands. Each time another claim has committed or released.
const LOOKS: usize = 8;

/// Claims that processes share, on Redis (7.0 or newer) or Valkey. See the [crate](crate) for the
/// guarantees, the server's setup and the sizes.
///
/// ```no_run
/// use hookgate::{Receiver, Secret};
/// use hookgate_redis::RedisStore;
///
/// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
/// let store = RedisStore::connect("redis://localhost:6379").await?;
/// let receiver = Receiver::builder()
///     .secret(Secret::from_env("WEBHOOK_SECRET")?)
///     .store(store)
///     .build()?;
/// # let _ = receiver;
/// # Ok(())
/// # }
/// ```
///
/// Settings, made before the first use:
///
/// ```
/// use std::time::Duration;
/// use hookgate_redis::RedisStore;
///
/// let store = RedisStore::open("redis://:made-up-password@localhost:6379")?
///     .with_prefix("orders:")
///     .with_call_limit(Duration::from_millis(500));
/// // Neither `Debug` nor an error shows a URL's password.
/// assert!(!format!("{store:?}").contains("made-up-password"));
/// # Ok::<(), hookgate::dedupe::StoreError>(())
/// ```
///
/// - **A claim and its commit are one round trip each**; a duplicate of a done event takes one, a
///   copy of a running one two.
/// - **One connection**, which all calls share: commands of concurrent deliveries are sent without
///   waiting for each other, so a pool has no advantage.
/// - **Clones share** the connection. Stores on the same server with the same prefix share their
///   records: give each application its own prefix or server.
#[derive(Clone)]
pub struct RedisStore<C = Connection> {
    pub(crate) connection: C,
    prefix: Arc<str>,
    limit: Duration,
    /// The longest lease of the claims under this prefix.
    longest_lease: Arc<LongestLease>,
    scopes: ScopesInUse,
}

impl<C> RedisStore<C>
where
    C: ConnectionLike + Clone + Send + Sync + 'static,
{
    /// Uses your own connection: a [`Connection`] from a `redis::Client` with certificates, a
    /// cluster's, or any other of the crate `redis`. It connects when the connection does, and
    /// checks no settings: call [`check`](Self::check).
    ///
    /// # Security
    /// The connection must write to the primary and read its own writes: never use one that reads
    /// from replicas.
    #[must_use]
    pub fn on(connection: C) -> Self {
        Self {
            connection,
            prefix: PREFIX.into(),
            limit: CALL,
            longest_lease: Arc::default(),
            scopes: ScopesInUse::default(),
        }
    }

    /// Sets the prefix of its keys: `hookgate:` unless set. Stores of the same prefix on one server
    /// share their records, so applications with other secrets each need their own prefix, or
    /// [scope](hookgate::ReceiverBuilder::scope). On a cluster, braces in the prefix would put all
    /// keys on one node.
    #[must_use]
    pub fn with_prefix(self, prefix: &str) -> Self {
        Self {
            prefix: prefix.into(),
            longest_lease: Arc::default(),
            scopes: ScopesInUse::default(),
            ..self
        }
    }

    /// Sets how long a call may take, including every wait: 900 ms unless set. The layer gives it
    /// no more than a second.
    #[must_use]
    pub fn with_call_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Reads from the server the settings that decide whether ids may be forgotten: its version,
    /// eviction, persistence and role. Makes one claim of a random key and releases it, so that a
    /// user who lacks a right, or has another key pattern, is found now.
    ///
    /// ```no_run
    /// # async fn start() -> Result<(), hookgate::dedupe::StoreError> {
    /// use hookgate_redis::RedisStore;
    ///
    /// let store = RedisStore::connect("redis://localhost:6379").await?;
    /// for finding in store.check().await?.found {
    ///     println!("{finding}");
    /// }
    /// // Or: start only where nothing is forgotten while the server and its disk survive.
    /// store.check().await?.strict()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`Unavailable`](StoreErrorKind::Unavailable): it can't be reached, or refuses the login.
    /// - [`Setting`](StoreErrorKind::Setting): it has no database of the URL's number, or this user
    ///   may not select it.
    /// - [`TooOld`](StoreErrorKind::TooOld): it is older than Redis 7.0.
    pub async fn check(&self) -> Result<Findings, StoreError> {
        check::check(&mut self.connection.clone(), &self.prefix).await
    }

    async fn claim_now(
        &self,
        key: &EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> Result<Claimed, StoreError> {
        let mut connection = self.connection.clone();
        let key = record::key(&self.prefix, key);
        let (running, lease) = (value(RUNNING, token), millis(lease));
        for _ in 0..LOOKS {
            let mut claim = cmd("SET");
            claim.arg(&key).arg(&running[..]);
            claim.arg("NX").arg("GET").arg("PX").arg(lease);
            let claimed: Result<Option<Vec<u8>>, _> = claim.query_async(&mut connection).await;
            let full = match claimed.map_err(store_error) {
                Ok(None) => return Ok(Claimed::Fresh),
                Ok(Some(found)) => {
                    if let (DONE, by) = parse(&found)? {
                        return Ok(done(by));
                    }
                    None
                }
                // Full memory: Redis refuses `SET` even where it would write nothing. `LOOK` finds
                // out whether this is a duplicate.
                Err(error) if error.kind() == StoreErrorKind::Full => Some(error),
                Err(error) => return Err(error),
            };
            // The token and the remaining lease are read together, since a record may change
            // between two commands.
            let lease = lease.to_string();
            let arguments = [&running[..], lease.as_bytes()];
            let looked = LOOK.run(&mut connection, &key, &arguments).await;
            let (found, left): (Option<Vec<u8>>, i64) = looked.map_err(store_error)?;
            match (found, full) {
                (Some(found), _) => {
                    return Ok(match parse(&found)? {
                        (DONE, by) => done(by),
                        (_, by) if by == token => Claimed::Fresh,
                        _ => Claimed::Running {
                            retry_after: Duration::from_millis(
                                u64::try_from(left).unwrap_or(0).max(1),
                            ),
                        },
                    });
                }
                (None, Some(full)) => return Err(full),
                // Released meanwhile, or its lease ended: the event can be claimed.
                (None, None) => {}
            }
        }
        Err(StoreError::new(StoreErrorKind::Unavailable)
            .caused_by("other claims came and went between this one's commands"))
    }

    async fn change(
        &self,
        script: &Compared,
        key: &EventKey,
        arguments: &[&[u8]],
    ) -> Result<Ownership, StoreError> {
        let key = record::key(&self.prefix, key);
        let mut connection = self.connection.clone();
        let changed: Result<i64, _> = script.run(&mut connection, &key, arguments).await;
        Ok(match changed.map_err(store_error)? {
            0 => Ownership::Lost,
            _ => Ownership::Held,
        })
    }

    fn limited<'a, T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        let limit = self.limit;
        StoreFuture::boxed(async move {
            timeout(limit, call)
                .await
                .unwrap_or_else(|_| Err(StoreError::new(StoreErrorKind::TimedOut)))
        })
    }
}

fn done(by: ClaimToken) -> Claimed {
    Claimed::Done {
        body_mark: by.body_mark(),
    }
}

fn parse(found: &[u8]) -> Result<(u8, ClaimToken), StoreError> {
    record::parse(found).ok_or_else(|| {
        StoreError::new(StoreErrorKind::Unavailable)
            .caused_by("something else is stored under this event's key: set a prefix of its own")
    })
}

impl<C> DedupeStore for RedisStore<C>
where
    C: ConnectionLike + Clone + Send + Sync + 'static,
{
    fn claim<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Claimed> {
        self.longest_lease.note(lease);
        self.limited(async move {
            match self.claim_now(key, token, lease).await {
                // After a server restart the next call finds the connection broken, which would
                // cost its delivery one of a few attempts. Whether the first claim arrived or not,
                // the same token may claim again. Commit and release are repeated by their caller.
                Err(error) if broke(&error) => self.claim_now(key, token, lease).await,
                answered => answered,
            }
        })
    }

    fn renew<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Ownership> {
        self.longest_lease.note(lease);
        self.limited(async move {
            let (running, lease) = (value(RUNNING, token), millis(lease).to_string());
            self.change(&RENEW, key, &[&running, lease.as_bytes()])
                .await
        })
    }

    fn commit<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        retain: Duration,
    ) -> StoreFuture<'a, Ownership> {
        self.limited(async move {
            let (running, done) = (value(RUNNING, token), value(DONE, token));
            let times = [retain, self.longest_lease.get()];
            let [retain, lease] = times.map(|time| millis(time).to_string());
            let arguments = [&running[..], &done, retain.as_bytes(), lease.as_bytes()];
            self.change(&COMMIT, key, &arguments).await
        })
    }

    fn release<'a>(&'a self, key: &'a EventKey, token: ClaimToken) -> StoreFuture<'a, Ownership> {
        self.limited(async move {
            let running = value(RUNNING, token);
            self.change(&RELEASE, key, &[&running]).await
        })
    }

    fn scopes_in_use(&self) -> Option<&ScopesInUse> {
        Some(&self.scopes)
    }
}

impl<C: 'static> fmt::Debug for RedisStore<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Another type of connection may hold a password, so nothing of it is shown.
        let connection: &dyn std::any::Any = &self.connection;
        let address = connection.downcast_ref::<Connection>();
        f.debug_struct("RedisStore")
            .field("address", &address.map(Connection::address))
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}
