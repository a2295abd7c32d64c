//! Claims that several processes share, on Redis or Valkey.
//!
//! Replicas behind a load balancer each get some of the copies of an event. With [`RedisStore`] they share their claims: of all
//! copies, at whichever replica they arrive, one runs, and done events are still known after a restart.
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
//! One handler at a time for each event, and none for one that is done, **as long as the same primary and its memory live**.
//! Redis keeps its data in memory first: writes may be lost when it crashes or when a replica takes over. The sender's retry then
//! runs again. So handlers run *at least once, and nearly always once*; where that is not enough, claim inside a transaction of
//! PostgreSQL.
//!
//! | hazard | effect | action |
//! |---|---|---|
//! | Redis down, slow, out of reach, loading, just demoted | 503 within the delivery's budget; no handler runs, and the sender tries again. Redis is used again without a restart | watch the 503s |
//! | memory full, `noeviction` | fresh events: 503. Duplicates are known, runs under way are recorded | `maxmemory` by the [sizes](#sizes) below |
//! | Redis refuses writes: its snapshots fail, too few replicas follow, a script of another client does not end | 503, for duplicates too; no id is forgotten | `stop-writes-on-bgsave-error`, `min-replicas-to-write` |
//! | memory full, any other policy | **ids are forgotten without an error**, running ones too: events run twice, or twice at once. `volatile-…` is no better: every key here has an expiry | [`check`](RedisStore::check) reports it, [`strict`](Findings::strict) refuses it; [`connect`](RedisStore::connect) writes it to the log or to stderr |
//! | Redis' process ends, no append-only file | **everything is forgotten** | the same |
//! | Redis' process is killed, append-only file | with `appendfsync always` nothing is forgotten; with `everysec` the last writes while its disk was busy, up to two seconds | reported by [`check`](RedisStore::check) |
//! | its machine goes down | with `appendfsync always` nothing, `everysec` a second or two, `no` often half a minute | the same |
//! | a replica takes over | writes that it had not yet received are forgotten. `WAIT` would reduce that, not prevent it | reported by [`check`](RedisStore::check) |
//! | an answer is lost | the call is repeated with its token, and gets the right answer, a commit for one lease (the longest that the store was given): [`DedupeStore`](crate::DedupeStore) | |
//! | the receiver's process ends | its leases end by themselves, 30 s later; the next retry runs | |
//! | the receiver's process is paused beyond its lease, then goes on | another copy may run meanwhile. **The token protects only the record**: the late run can't commit, but its effects elsewhere are not prevented | effects that are idempotent, or in a transaction |
//! | Redis' clock is set forward by an hour | running leases end: a second run may begin beside the first. Done events are remembered for one hour less: 47 h; the sender tries for 27 h | adjust the clock gradually, not in one step |
//! | Redis' clock is set back by an hour | live processes renew, without harm; an event of a process that died is answered 503 for the hour. The sender tries for longer | the same |
//!
//! # Setting up the server
//! ```text
//! maxmemory 512mb                 # by the sizes below
//! maxmemory-policy noeviction     # refuse instead of forgetting
//! appendonly yes                  # remember across restarts
//! appendfsync always              # everysec where two seconds may be forgotten: an event twice, none lost
//! ```
//! A server that other applications use as a cache evicts records: use another server. A user needs only these rights;
//! without the last two, [`check`](RedisStore::check) reports the settings that it could not read:
//! ```text
//! ACL SETUSER hooks on >password ~hookgate:* -@all +set +get +del +pexpire +pttl +evalsha +eval +info +config|get
//! ```
//!
//! # Time limits and recovery
//! A call has 900 ms ([`with_call_limit`](RedisStore::with_call_limit)), an answer 500 ms, connecting 500 ms: a call fits into
//! the second that a receiver gives it. [`Connection`] reconnects after every kind of break, and documents how. A claim whose
//! connection broke is repeated once automatically, so that a restart of Redis costs no delivery one of its few attempts.
//!
//! # TLS
//! With feature `redis-tls`, a URL of `rediss://` is TLS by rustls. The server's certificate is verified, with its host name:
//! against the authorities that the system trusts (`SSL_CERT_FILE` names others), or against your provider's alone.
//! ```toml
//! hookgate = { version = "0.1", features = ["axum", "redis-tls"] }
//! ```
#![cfg_attr(
    feature = "redis-tls",
    doc = r#"
```no_run
# async fn start() -> Result<(), Box<dyn std::error::Error>> {
use hookgate::RedisStore;

let store = RedisStore::connect("rediss://redis.example:6380").await?; // a certificate that the system trusts
let store = RedisStore::open("rediss://redis.example:6380")?.with_ca(&std::fs::read("provider-ca.pem")?)?;
# let _ = store;
# Ok(())
# }
```
"#
)]
//! A certificate that is refused is a [`StoreErrorKind::Unavailable`](crate::StoreErrorKind::Unavailable) whose text says
//! why; each delivery is answered 503. For a certificate of the client, pass a `redis::Client` of your own, made by
//! `redis::Client::build_with_tls`, to [`Connection::new`]. The crypto is the process' provider of rustls where the program has
//! chosen one before the first connection, and ring otherwise.
//!
//! # Other addresses
//! `unix:///run/redis.sock` is a socket on this machine.
//!
//! **Sentinel is not supported**: no URL names one, and a connection that the crate `redis` makes by it stays with the primary of
//! that moment. Use an address that leads to the primary after a failover: the provider's endpoint, or a proxy such as HAProxy
//! that asks for the role. A connection whose server became a replica is given up, and the name is looked up again.
//!
//! # Cluster
//! Feature `cluster-async` of the crate `redis`. Each call is about one key, so it goes to one node. When a node is down, its
//! share of the events is refused until another node has taken over or it is back. [`check`](RedisStore::check) checks every
//! primary; only `appendfsync` is read from one node. A store that connects to one node alone refuses the events of the others;
//! `check` reports it.
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
//! A remembered event takes about 200 bytes of Redis' memory with the default prefix ([`BYTES_PER_RECORD`]; measured on 7.0: 120
//! for key and value by `MEMORY USAGE`, the rest is its place in the tables of keys and of expiries). So `maxmemory` is
//!
//! > events a second × retention in seconds × 200 bytes, and a quarter more, and the other data of the server
//!
//! With the default retention of 48 h: 1 a second 43 MB, 100 a second 4.3 GB. A shorter retention must still cover the sender's
//! [`RetrySchedule`](crate::RetrySchedule); the receiver checks that.
//!
//! # What is stored
//! The key is `hookgate:` and 32 hex digits, as [`EventKey`](crate::EventKey) shows itself. The value is `c` and the claim
//! token's 16 bytes while it runs, `d` and the same 16 bytes when it is done. Each key has an expiry by Redis' own clock, always.
//! `redis-cli --scan --pattern 'hookgate:*'` lists the keys, `PTTL` shows the time left,
//! `DEL` forgets one, so that a copy runs again.
//!
//! # Security
//! - A user or client that can write to this server decides which events run: a *done* record prevents its event from running.
//!   Keep the server off the network, give it a password and TLS, and give its users no more rights than above.
//! - No content of an event can be read from it: keys are digests, and no secret, body or header is ever stored here.
//! - A URL may hold a password. It is in no `Debug` and no error of this module; keep it out of your own logs.

mod check;
mod connection;
mod failure;
mod finding;
#[cfg(feature = "redis-tls")]
mod handshake;
mod open;
mod record;
mod script;
mod store;

pub use connection::Connection;
pub use finding::{Finding, Findings, Risk};
pub use record::BYTES_PER_RECORD;
pub use store::RedisStore;
