//! One connection that is made again after it breaks.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hookgate::clock::{Clock, Monotonic, SystemClock};
use redis::aio::ConnectionLike;
use redis::{Client, Cmd, Pipeline, RedisError, RedisFuture, RedisResult, Value};

use crate::connect::{Connecting, Dial, Live};
use crate::failure::ends_connection;

/// The limit for making a connection, its handshake included.
const CONNECT: Duration = Duration::from_millis(500);
/// The limit for an answer.
const RESPONSE: Duration = Duration::from_millis(500);
/// After this many times the limits of a connection and an answer, the connection counts as silent.
/// Connecting is tried several times before its error is reported, and the error must be reported.
const SILENCE: u32 = 5;
/// At most one connection is closed for a new one in this time, so that a server that answers each
/// call with an error does not get many new connections. Where no connection could be made, the
/// next try begins this long after.
const PACE: Duration = Duration::from_millis(250);

/// One multiplexed connection to a server, made again when it is broken. Clones share it.
///
/// A connection is given up when it breaks, when an answer did not come in time, when its server
/// became a replica, or when it could not be made for any reason; the next call connects again.
/// Calls whose own limit is shorter than that of an answer are counted together: when no call was
/// answered for five times as long as connecting and an answer may take, the connection is given
/// up. Tries to connect are shared by all waiting calls. The wait between tries is 50 ms after the
/// first and up to 500 ms, and the tries never end: a server that is back is found within that
/// time, without a restart. A refused login or TLS that can't be established is reported by the
/// first try.
///
/// A call under way when its connection breaks fails. It is not repeated here: only the caller
/// knows whether it may be repeated.
///
/// TLS takes rustls' default provider of crypto, where the program has installed one, otherwise
/// that of this crate's feature. A client with certificates of its own
/// (`redis::Client::build_with_tls`) needs the installed one, since the crate `redis` makes its
/// TLS.
///
/// ```
/// use std::time::Duration;
/// use hookgate_redis::RedisStore;
/// use hookgate_redis::Connection;
///
/// let client = redis::Client::open("redis://localhost:6379")?;
/// let far_away = Connection::new(client)
///     .with_connect_limit(Duration::from_millis(700))
///     .with_response_limit(Duration::from_millis(800));
/// let store = RedisStore::on(far_away);
/// # Ok::<(), redis::RedisError>(())
/// ```
#[derive(Clone)]
pub struct Connection {
    shared: Arc<ConnectionState>,
}

struct ConnectionState {
    dial: Dial,
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    connecting: Option<Connecting>,
    /// Counts the connections, so that only the one that failed is given up.
    generation: u64,
    given_up: Option<Monotonic>,
    /// When no connection could be made, until there is one.
    failed: Option<Monotonic>,
    /// The start of the first unanswered call that was dropped, if no call was answered since.
    silent_since: Option<Monotonic>,
}

impl Connection {
    /// Connects with the first call, which must come from a tokio runtime with I/O and time.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self::with(Dial {
            client,
            connect: CONNECT,
            response: RESPONSE,
            #[cfg(feature = "tls")]
            authorities: None,
        })
    }

    /// Sets how long making a connection may take, with TLS and login: 500 ms unless set.
    #[must_use]
    pub fn with_connect_limit(self, limit: Duration) -> Self {
        let dial = self.shared.dial.clone();
        Self::with(Dial {
            connect: limit,
            ..dial
        })
    }

    /// Sets how long an answer may take before the connection is given up: 500 ms unless set. A
    /// store's call has its own limit as well: see
    /// [`RedisStore::with_call_limit`](crate::RedisStore::with_call_limit).
    #[must_use]
    pub fn with_response_limit(self, limit: Duration) -> Self {
        let dial = self.shared.dial.clone();
        Self::with(Dial {
            response: limit,
            ..dial
        })
    }

    #[cfg(feature = "tls")]
    pub(crate) fn is_tls(&self) -> bool {
        let addr = self.shared.dial.client.get_connection_info().addr();
        matches!(addr, redis::ConnectionAddr::TcpTls { .. })
    }

    /// Trusts these authorities alone.
    #[cfg(feature = "tls")]
    pub(crate) fn with_authorities(&self, authorities: rustls::RootCertStore) -> Self {
        let dial = self.shared.dial.clone();
        Self::with(Dial {
            authorities: Some(Arc::new(authorities)),
            ..dial
        })
    }

    fn with(dial: Dial) -> Self {
        Self {
            shared: Arc::new(ConnectionState {
                dial,
                current: Mutex::default(),
            }),
        }
    }

    /// Begins a call, on a connection that is made where there is none.
    async fn begin(&self) -> RedisResult<(UnderWay<'_>, Live)> {
        let (mut under_way, connecting) = {
            let mut current = self
                .shared
                .current
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let now = SystemClock.monotonic();
            let left = |failed| PACE.saturating_sub(now.saturating_since(failed));
            let wait = current.failed.map_or(Duration::ZERO, left);
            let begin = || self.shared.dial.begin(wait);
            let connecting = current.connecting.get_or_insert_with(begin).clone();
            let under_way = UnderWay {
                connection: self,
                generation: current.generation,
                begun: now,
                end: End::Dropped,
            };
            (under_way, connecting)
        };
        let connected = connecting.await;
        if connected.is_err() {
            under_way.end = End::NotConnected;
        }
        Ok((under_way, connected?))
    }

    /// Returns the server's address, without the user and password that a URL may hold.
    pub(crate) fn address(&self) -> String {
        self.shared
            .dial
            .client
            .get_connection_info()
            .addr()
            .to_string()
    }
}

impl Current {
    /// Makes the next call connect again. Calls on the old connection still end there.
    fn give_up(&mut self) {
        let now = SystemClock.monotonic();
        let paced = |last: Monotonic| now.saturating_since(last) >= PACE;
        if self.given_up.is_none_or(paced) {
            self.given_up = Some(now);
            self.replace();
        }
    }

    /// The reason why one connection could not be made says nothing about the next: no later call
    /// gets it.
    fn not_connected(&mut self) {
        self.failed = Some(SystemClock.monotonic());
        self.replace();
    }

    fn replace(&mut self) {
        self.connecting = None;
        self.generation += 1;
        self.silent_since = None;
    }
}

/// A call, from its start to its answer, or until its future is dropped: by a limit of its caller,
/// or with the request that it served.
///
/// One dropped call does not show that the connection is broken. Several dropped calls without an
/// answer in between are, and no other check would find this: where every caller waits for less
/// time than the connection's own limit, that limit never passes.
struct UnderWay<'a> {
    connection: &'a Connection,
    generation: u64,
    begun: Monotonic,
    end: End,
}

/// How a call ended.
enum End {
    /// Without an answer, as far as is known.
    Dropped,
    NotConnected,
    Answered,
    /// With an answer or an error by which the connection is to be given up.
    Broken,
}

impl UnderWay<'_> {
    fn ended(mut self, answered: Result<&Value, &RedisError>) {
        self.end = if ends_connection(answered) {
            End::Broken
        } else {
            End::Answered
        };
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let ConnectionState { dial, current } = &*self.connection.shared;
        let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.generation != self.generation {
            return;
        }
        match self.end {
            End::NotConnected => current.not_connected(),
            End::Broken => current.give_up(),
            End::Answered => {
                current.failed = None;
                current.silent_since = None;
            }
            End::Dropped => {
                let since = *current.silent_since.get_or_insert(self.begun);
                let silence = dial.connect.saturating_add(dial.response);
                let limit = silence.saturating_mul(SILENCE);
                if SystemClock.monotonic().saturating_since(since) >= limit {
                    current.give_up();
                }
            }
        }
    }
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let (under_way, mut live) = self.begin().await?;
            let answered = live.connection.req_packed_command(cmd).await;
            under_way.ended(answered.as_ref());
            answered
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            let (under_way, mut live) = self.begin().await?;
            let asked = live.connection.req_packed_commands(pipeline, offset, count);
            let answered = asked.await;
            under_way.ended(answered.as_ref().map(|_| &Value::Nil));
            answered
        })
    }

    fn get_db(&self) -> i64 {
        let info = self.shared.dial.client.get_connection_info();
        info.redis_settings().db()
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("address", &self.address())
            .finish_non_exhaustive()
    }
}
