//! `RedisStore` on a Redis of its own, which each test starts on a free loopback port and stops.
//!
//! Where Redis is missing, its tests print that and are left out; `scripts/test` installs it, and
//! sets `HOOKGATE_REQUIRE_TOOLS`, with which no test is left out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // a failed expectation must stop the test
#![allow(unreachable_pub, missing_debug_implementations)] // a test has no API
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // The numbers are the tests' own.
#![cfg(unix)]

use std::fmt::Debug;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hookgate::DedupeStore;
use hookgate::dedupe::{ClaimToken, Claimed, EventKey, StoreError, StoreErrorKind};
use hookgate_redis::{Connection, RedisStore};
use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, RedisResult};

mod calls;
mod check;
mod clock;
mod cluster;
mod conformance;
mod example;
mod faults;
mod layer;
mod memory;
mod race;
mod scopes;
mod tls;

// Shared with the tests of the library.
#[allow(dead_code)]
#[path = "../../../../tests/it/process.rs"]
mod process;
#[allow(dead_code)]
mod support;

use support::RedisServer;

/// Of leases and retentions that no test outlasts.
const LONG: Duration = Duration::from_secs(600);

fn key(id: &str) -> EventKey {
    EventKey::new("default", id)
}

/// For tests in which time plays no part: a busy machine neither makes a connection nor answers a
/// call within the usual limits.
fn patient(url: &str) -> RedisStore {
    const PATIENCE: Duration = Duration::from_secs(60);
    let connection = Connection::new(redis::Client::open(url).unwrap());
    let connection = connection.with_connect_limit(PATIENCE);
    RedisStore::on(connection.with_response_limit(PATIENCE)).with_call_limit(PATIENCE)
}

/// A store with the usual limits, which a busy machine may need more than once to connect in.
async fn connected(url: &str) -> RedisStore {
    let connected = until(Result::is_ok, || RedisStore::connect(url)).await;
    connected.unwrap()
}

/// The error of such a store, once the machine keeps within the limits.
async fn not_connected(url: &str) -> StoreError {
    let connect = async || RedisStore::connect(url).await.unwrap_err();
    until(
        |error: &StoreError| error.kind() != StoreErrorKind::TimedOut,
        connect,
    )
    .await
}

/// A server with these settings, a patient store on it, and a connection past the store.
async fn started(settings: &[&str]) -> Option<(RedisServer, RedisStore, Direct)> {
    let server = RedisServer::start(settings)?;
    let (store, direct) = (patient(&server.url()), Direct::to(&server.url()).await);
    Some((server, store, direct))
}

/// What a claim under another token finds.
async fn found(store: &impl DedupeStore, event: &EventKey) -> Claimed {
    store.claim(event, token(), LONG).await.unwrap()
}

/// The error of a claim.
async fn refusal(store: &impl DedupeStore) -> StoreErrorKind {
    let claimed = store.claim(&key("event"), token(), LONG).await;
    claimed.unwrap_err().kind()
}

/// A token for a body of its own, so that the mark in a done record tells which token committed it.
fn token() -> ClaimToken {
    static BODIES: AtomicU64 = AtomicU64::new(0);
    ClaimToken::new(&BODIES.fetch_add(1, Ordering::Relaxed).to_le_bytes())
}

/// Sends a command to the server itself, past the store: `CONFIG SET maxmemory 1`, for instance.
struct Direct(MultiplexedConnection);

impl Direct {
    async fn to(url: &str) -> Self {
        let client = redis::Client::open(url).unwrap();
        let config = redis::AsyncConnectionConfig::new()
            .set_connection_timeout(Some(Duration::from_secs(20)))
            .set_response_timeout(Some(Duration::from_secs(20)));
        let connected = client.get_multiplexed_async_connection_with_config(&config);
        Self(connected.await.unwrap())
    }

    async fn say<T: FromRedisValue>(&mut self, words: &str) -> T {
        self.ask(words).await.unwrap()
    }

    async fn tell(&mut self, words: &str) {
        self.say(words).await
    }

    /// As `say`, for a server that may not be ready.
    async fn ask<T: FromRedisValue>(&mut self, words: &str) -> RedisResult<T> {
        let mut words = words.split(' ');
        let mut command = redis::cmd(words.next().unwrap());
        for word in words {
            command.arg(word);
        }
        command.query_async(&mut self.0).await
    }
}

/// Repeats the query until the answer is as wanted: generous, since these machines are busy.
async fn until<T, F>(wanted: impl Fn(&T) -> bool, ask: impl Fn() -> F) -> T
where
    T: Debug,
    F: Future<Output = T>,
{
    let end = Instant::now() + Duration::from_secs(120);
    loop {
        let answer = ask().await;
        if wanted(&answer) {
            return answer;
        }
        assert!(Instant::now() < end, "not in time: {answer:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
