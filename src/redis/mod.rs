//! Claims that several processes share, on Redis or Valkey.
//!
//! Replicas behind a load balancer each get some of the copies of an event. With [`RedisStore`] they share one memory: of all copies,
//! wherever they arrive, one runs, and what is done is known after a restart.
//!
//! ```no_run
//! use hookgate::{Receiver, RedisStore, Secret};
//!
//! # async fn start() -> Result<(), Box<dyn std::error::Error>> {
//! let store = RedisStore::connect("redis://localhost:6379").await?;
//! // What the server's settings let it forget. To refuse such a server: `.strict()?`.
//! for finding in store.check().await?.iter() {
//!     eprintln!("redis: {finding}");
//! }
//! let receiver = Receiver::builder()
//!     .secret(Secret::from_env("WEBHOOK_SECRET")?)
//!     .store(store)
//!     .build()?;
//! # let _ = receiver;
//! # Ok(())
//! # }
//! ```
//!
//! The example [`shared_claims`](https://docs.rs/crate/hookgate/latest/source/examples/shared_claims.rs) is a whole program.
//! It needs Redis 7.0 or newer, or any Valkey, and a tokio runtime with I/O and time.
//!
//! # What is promised
//! One handler at a time for each event, and none for one that is done, **as long as the same primary and its memory live**. Redis is a
//! memory first: what it was told may be gone when it crashes or when a replica takes over. The sender's retry then runs again. So
//! handlers are *at least once, and nearly always once*; where that is not enough, claim inside a transaction of PostgreSQL.
//!
//! | hazard | what happens | what to do |
//! |---|---|---|
//! | Redis down, slow, out of reach, loading, just demoted | 503 within the delivery's budget; nothing runs, the sender comes again. It is found again without a restart | watch the 503s |
//! | memory full, `noeviction` | fresh events: 503. Duplicates are known, runs under way are recorded | `maxmemory` by the [sizes](#sizes) below |
//! | it refuses writes: its snapshots fail, too few replicas follow, somebody's script does not end | 503, for duplicates too; nothing is forgotten | `stop-writes-on-bgsave-error`, `min-replicas-to-write` |
//! | memory full, any other policy | **ids are forgotten in silence**, running ones too: events run twice, or twice at once. `volatile-…` is no better: every key here has an end | [`check`](RedisStore::check) tells, [`strict`](Findings::strict) refuses |
//! | Redis' process ends, no append-only file | **everything is forgotten** | the same |
//! | Redis' process is killed, append-only file | with `appendfsync always` nothing is forgotten; with `everysec` what it answered while its disk was busy, up to two seconds | told by [`check`](RedisStore::check) |
//! | its machine goes down | with `appendfsync always` nothing, `everysec` a second or two, `no` often half a minute | the same |
//! | a replica takes over | what it had not yet heard of is forgotten. `WAIT` would narrow that, not close it | told by [`check`](RedisStore::check) |
//! | an answer is lost | the call is repeated with its token, and hears the truth: [`DedupeStore`](crate::DedupeStore) | |
//! | the receiver's process ends | its leases end by themselves, 30 s later; the next retry runs | |
//! | the receiver's process stands still beyond its lease, then goes on | another copy may run meanwhile. **The token guards the record alone**: the late run can't commit, but what it does elsewhere it does | effects that are idempotent, or in a transaction |
//! | Redis' clock is set forward by an hour | running leases end: a second run may begin beside the first. What is done is known an hour less long: 47 h, the sender tries for 27 | let it be slewed, not stepped |
//! | Redis' clock is set back by an hour | who lives renews, and all is well; of a process that died, the event is answered 503 for the hour. The sender tries for longer | the same |
//!
//! # Setting up the server
//! ```text
//! maxmemory 512mb                 # by the sizes below
//! maxmemory-policy noeviction     # refuse instead of forgetting
//! appendonly yes                  # remember across restarts
//! appendfsync always              # everysec where two seconds may be forgotten: an event twice, none lost
//! ```
//! A server that is a cache for somebody else evicts by right: take another one. A user needs no more than this; without the last two,
//! [`check`](RedisStore::check) says what it could not read:
//! ```text
//! ACL SETUSER hooks on >password ~hookgate:* -@all +set +get +del +pexpire +pttl +evalsha +eval +info +config|get
//! ```
//!
//! # Time limits and recovery
//! A call has 900 ms ([`with_call_limit`](RedisStore::with_call_limit)), an answer 500 ms, connecting 500 ms: a call fits into the second
//! that a receiver gives it. [`Connection`] comes back from whatever broke it, and says how; so does one that died in silence under callers that
//! wait less. A claim whose connection broke is
//! asked once more by itself, so that a restart of Redis costs no delivery one of its few attempts.
//!
//! # TLS
//! A URL of `rediss://` is TLS, by the features of the crate `redis`, which you name beside this one:
//! ```toml
//! hookgate = { version = "0.1", features = ["redis"] }
//! redis = { version = "1.8", default-features = false, features = ["tokio-rustls-comp"] }
//! ```
//! With an authority of your own, or a certificate for the client:
//! ```no_run
//! use hookgate::RedisStore;
//! use hookgate::redis::Connection;
//!
//! # async fn start() -> Result<(), Box<dyn std::error::Error>> {
//! let client = redis::Client::build_with_tls(
//!     "rediss://redis.internal:6380",
//!     redis::TlsCertificates {
//!         client_tls: None,
//!         root_cert: Some(std::fs::read("authority.pem")?),
//!     },
//! )?;
//! let store = RedisStore::on(Connection::new(client));
//! store.check().await?.strict()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Cluster
//! Feature `cluster-async` of the crate `redis`. Each call is about one key, so it goes to one node; when a node is gone, its share of
//! the events is refused until another has taken over or it is back. [`check`](RedisStore::check) looks at every primary,
//! `appendfsync` alone is read of one; of a store that connects to one node alone, which refuses the events of the others, it says so.
//! ```no_run
//! use std::time::Duration;
//! use hookgate::RedisStore;
//! use redis::cluster::ClusterClient;
//!
//! # async fn start() -> Result<(), Box<dyn std::error::Error>> {
//! let client = ClusterClient::builder(["redis://10.0.0.1:6379", "redis://10.0.0.2:6379"])
//!     .connection_timeout(Duration::from_millis(500))
//!     .response_timeout(Duration::from_millis(500))
//!     .build()?; // and never `.read_from_replicas()`
//! let store = RedisStore::on(client.get_async_connection().await?);
//! # let _ = store;
//! # Ok(())
//! # }
//! ```
//!
//! # Sizes
//! A remembered event takes about 200 bytes of Redis' memory with the default prefix ([`BYTES_PER_RECORD`]; measured on 7.0: 120 for
//! key and value by `MEMORY USAGE`, the rest is its place in the tables of keys and of ends). So `maxmemory` is
//!
//! > events a second × retention in seconds × 200 bytes, and a quarter more, and what else the server holds
//!
//! With the default retention of 48 h: 1 a second 43 MB, 100 a second 4.3 GB. A shorter retention must still cover the sender's
//! [`RetrySchedule`](crate::RetrySchedule); the receiver sees to that.
//!
//! # What is stored
//! `hookgate:` and 32 hex digits, as [`EventKey`](crate::EventKey) shows itself; `c` and the claim's 16 bytes while it runs, `d` and them when
//! it is done; an end by Redis' own clock, always. `redis-cli --scan --pattern 'hookgate:*'` lists them, `PTTL` says how long still,
//! `DEL` forgets one, so that a copy runs again.
//!
//! # Security
//! - Whoever can write to this server decides which events run: a record that says *done* silences one. Keep it off the network,
//!   give it a password and TLS, and its users no more than above.
//! - Nothing of an event can be read from it: keys are digests, and no secret, body or header ever comes here.
//! - A URL may hold a password. It is in no `Debug` and no error of this module; keep it out of your own logs.

mod check;
mod connection;
mod failure;
mod finding;
mod record;
mod script;
mod store;

pub use connection::Connection;
pub use finding::{Finding, Findings, Risk};
pub use record::BYTES_PER_RECORD;
pub use store::RedisStore;
