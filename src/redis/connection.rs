//! One connection that is made again after it breaks.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig};
use ::redis::io::tcp::TcpSettings;
use ::redis::{Client, Cmd, Pipeline, RedisError, RedisFuture, RedisResult, Value};

use super::failure::ends_connection;
use crate::clock::{Clock, Monotonic, SystemClock};
use crate::sync::{Mutex, lock};

/// The limit for making a connection, its handshake included.
const CONNECT: Duration = Duration::from_millis(500);
/// The limit for an answer.
const RESPONSE: Duration = Duration::from_millis(500);
/// Waits between tries to connect grow from the first of these to the second.
const WAITS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));
/// After this many times the limits of a connection and an answer, the connection counts as silent. Connecting is tried several
/// times before its error is reported, and the error must be reported: a wrong password must not look like a slow server.
const SILENCE: u32 = 5;
/// At most one connection is closed for a new one in this time, so that a server that answers each call with an error does not
/// get many new connections.
const PACE: Duration = Duration::from_millis(250);

/// One multiplexed connection to a server, made again when it is broken. Clones share it.
///
/// It is redis' `ConnectionManager`, with the missing cases added. A connection is given up when an answer did not come in time,
/// when its server became a replica, or when it could not be made for any reason; the next call connects again. Calls whose own
/// limit is shorter than that of an answer are counted together: when no call was answered for five times as long as connecting
/// and an answer may take, the connection is given up. Tries to connect are shared by all waiting calls. The wait between tries
/// is 50 ms after the first and up to 500 ms, and the tries never end: a server that is back is found within that time, without a
/// restart.
///
/// A call under way when its connection breaks fails. It is not repeated here: only the caller knows whether it may be repeated.
///
/// ```
/// use std::time::Duration;
/// use hookgate::RedisStore;
/// use hookgate::redis::Connection;
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
    client: Client,
    connect: Duration,
    response: Duration,
    current: Mutex<Current>,
    #[cfg(feature = "redis-tls")]
    handshake: super::handshake::Handshake,
}

#[derive(Default)]
struct Current {
    manager: Option<ConnectionManager>,
    /// Counts the managers, so that only the one that failed is given up.
    generation: u64,
    given_up: Option<Monotonic>,
    /// The start of the first unanswered call that was dropped, if no call was answered since.
    silent_since: Option<Monotonic>,
    has_answered: bool,
}

impl Connection {
    /// Connects with the first call, which must come from a tokio runtime with I/O and time.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self::with(client, CONNECT, RESPONSE)
    }

    /// Sets how long making a connection may take, with TLS and login: 500 ms unless set.
    #[must_use]
    pub fn with_connect_limit(self, limit: Duration) -> Self {
        Self::with(self.shared.client.clone(), limit, self.shared.response)
    }

    /// Sets how long an answer may take before the connection is given up: 500 ms unless set. A store's call has its own limit as
    /// well: see [`RedisStore::with_call_limit`](super::RedisStore::with_call_limit).
    #[must_use]
    pub fn with_response_limit(self, limit: Duration) -> Self {
        Self::with(self.shared.client.clone(), self.shared.connect, limit)
    }

    /// Trusts these authorities alone, whose certificates are in PEM. The URL must ask for TLS.
    #[cfg(feature = "redis-tls")]
    pub(super) fn with_ca(&self, pem: &[u8]) -> RedisResult<Self> {
        let shared = &self.shared;
        let info = shared.client.get_connection_info().clone();
        let certificates = ::redis::TlsCertificates {
            client_tls: None,
            root_cert: Some(pem.to_vec()),
        };
        let client = Client::build_with_tls(info, certificates)?;
        Ok(Self::with(client, shared.connect, shared.response))
    }

    fn with(client: Client, connect: Duration, response: Duration) -> Self {
        Self {
            shared: Arc::new(ConnectionState {
                client,
                connect,
                response,
                current: Mutex::default(),
                #[cfg(feature = "redis-tls")]
                handshake: super::handshake::Handshake::default(),
            }),
        }
    }

    fn begin(&self) -> RedisResult<(UnderWay<'_>, ConnectionManager)> {
        let mut current = lock(&self.shared.current);
        let manager = match &current.manager {
            Some(manager) => manager.clone(),
            None => current.manager.insert(self.shared.manager()?).clone(),
        };
        let under_way = UnderWay {
            connection: self,
            generation: current.generation,
            has_answered: current.has_answered,
            begun: SystemClock.monotonic(),
            ends_connection: None,
        };
        Ok((under_way, manager))
    }

    /// Returns the server's address, without the user and password that a URL may hold.
    pub(super) fn address(&self) -> String {
        self.shared.client.get_connection_info().addr().to_string()
    }
}

impl Current {
    /// Makes the next call connect again. Calls on the old connection still end there.
    fn give_up(&mut self) {
        let now = SystemClock.monotonic();
        let paced = |last: Monotonic| now.saturating_since(last) >= PACE;
        if self.given_up.is_none_or(paced) {
            *self = Self {
                generation: self.generation + 1,
                given_up: Some(now),
                ..Self::default()
            };
        }
    }
}

/// A call, from its start to its answer, or until its future is dropped: by a limit of its caller, or with the request that it
/// served.
///
/// One dropped call is no sign that the connection is broken. Several dropped calls without an answer in between are, and no
/// other check would find this: where every caller waits for less time than the connection's own limit, that limit never passes.
struct UnderWay<'a> {
    connection: &'a Connection,
    generation: u64,
    has_answered: bool,
    begun: Monotonic,
    /// Whether the answer shows that the connection is to be given up. `None` until there is one.
    ends_connection: Option<bool>,
}

impl UnderWay<'_> {
    /// Waits for the answer. On a connection that has not answered yet, the reason why TLS can't be established may come first.
    async fn answer<T>(&self, asked: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
        #[cfg(feature = "redis-tls")]
        if !self.has_answered {
            let shared = &self.connection.shared;
            let refused = shared.handshake.refused(&shared.client, shared.connect);
            let answered = crate::future::first_of(asked, refused).await;
            return answered.unwrap_or_else(Err);
        }
        asked.await
    }

    fn ended(mut self, answered: Result<&Value, &RedisError>) {
        self.has_answered |= answered.is_ok();
        self.ends_connection = Some(ends_connection(answered));
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let shared = &self.connection.shared;
        let mut current = lock(&shared.current);
        if current.generation != self.generation {
            return;
        }
        current.has_answered |= self.has_answered;
        match self.ends_connection {
            Some(true) => current.give_up(),
            Some(false) => current.silent_since = None,
            None => {
                let since = *current.silent_since.get_or_insert(self.begun);
                let silence = shared.connect.saturating_add(shared.response);
                let limit = silence.saturating_mul(SILENCE);
                if SystemClock.monotonic().saturating_since(since) >= limit {
                    current.give_up();
                }
            }
        }
    }
}

impl ConnectionState {
    fn manager(&self) -> RedisResult<ConnectionManager> {
        let settings = self.client.get_connection_info();
        #[cfg(feature = "redis-tls")]
        super::handshake::choose_provider(settings);
        // Many small commands share one connection. If they were held back to be sent together, each would wait for the previous
        // answer.
        let tcp: TcpSettings = settings.tcp_settings().clone().set_nodelay(true);
        let client = Client::open(settings.clone().set_tcp_settings(tcp))?;
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(self.connect))
            .set_response_timeout(Some(self.response))
            .set_min_delay(WAITS.0)
            .set_max_delay(WAITS.1);
        ConnectionManager::new_lazy_with_config(client, config)
    }
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let (under_way, mut manager) = self.begin()?;
            let answered = under_way.answer(manager.send_packed_command(cmd)).await;
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
            let (under_way, mut manager) = self.begin()?;
            let asked = manager.send_packed_commands(pipeline, offset, count);
            let answered = under_way.answer(asked).await;
            under_way.ended(answered.as_ref().map(|_| &Value::Nil));
            answered
        })
    }

    fn get_db(&self) -> i64 {
        let info = self.shared.client.get_connection_info();
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
