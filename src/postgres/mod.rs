//! PostgreSQL: claims that processes share, claims inside your own transaction, and the inbox's table.
//!
//! Two things that can be had apart or together:
//!
//! | | [`PostgresStore`] | [`claim_in`] |
//! |---|---|---|
//! | stands | in the receiver, before the handler | in the handler's own transaction |
//! | keeps | *running* with a lease, and *done* | *done*, in the same commit as the effects |
//! | a process that dies in its run | runs again when the lease has ended | is rolled back, and runs again |
//! | one that dies between its effects and the memory of them | **runs again** | can't: they are one |
//! | costs | two round trips and two flushes an event | one round trip more in your transaction |
//! | a duplicate | one round trip, read only | the same, once the handler was called |
//!
//! So the store alone is *at least once, and usually once*: of a crash between the handler's own commit and the store's, nobody knows. With the
//! claim in the transaction it is exactly once, for what the transaction holds. A store of the layer beside it, in memory or here, still keeps copies
//! from running side by side, and spares the handler most duplicates.
//!
//! ```toml
//! hookgate = { version = "0.1", features = ["axum", "postgres"] }
//! tokio-postgres = "0.7"
//! deadpool-postgres = "0.14" # for transactions of your own, or another pool
//! ```
//!
//! # Exactly once
//!
//! ```no_run
//! # #[cfg(feature = "axum")] {
//! use axum::{extract::State, http::StatusCode, response::{IntoResponse, Response}};
//! use hookgate::{Delivery, FailureReason, PostgresError, postgres::{NotFresh, claim_in}};
//! use std::time::Duration;
//!
//! const RETAIN: Duration = Duration::from_secs(48 * 60 * 60); // as long as the receiver's own retention, or longer
//!
//! async fn on_event(State(pool): State<deadpool_postgres::Pool>, delivery: Delivery) -> Result<StatusCode, Response> {
//!     let mut client = pool.get().await.map_err(|error| FailureReason::new(error).into_response())?;
//!     let transaction = client.transaction().await.map_err(PostgresError::from).map_err(IntoResponse::into_response)?;
//!     let claimed = claim_in(&transaction, "orders", &delivery, RETAIN).await.map_err(IntoResponse::into_response)?;
//!     claimed.fresh().map_err(NotFresh::into_response)?; // 200 for a duplicate, 503 for one that another transaction holds
//!
//!     let order = "INSERT INTO orders (event_id) VALUES ($1)";
//!     transaction.execute(order, &[&delivery.event_id()]).await.map_err(PostgresError::from).map_err(IntoResponse::into_response)?;
//!     transaction.commit().await.map_err(PostgresError::from).map_err(IntoResponse::into_response)?;
//!     Ok(StatusCode::NO_CONTENT)
//! }
//! # }
//! ```
//!
//! With an error type of your own it is shorter: see the example `exactly_once`. With sqlx, diesel or SeaORM the statement [`CLAIM_IN`] is run
//! with the [`ClaimValues`] bound; `examples/sqlx` does.
//!
//! **What is exactly once** is what the transaction writes, in this database. A mail, a call of another service and a row in another
//! database are not: they happen before the commit, which may fail, or after it, when the process may be gone. Write down in the same transaction
//! what is to be sent (an *outbox*), and have it sent by something that tries again.
//!
//! # Isolation levels
//!
//! The claim never waits for another transaction, at any level. An advisory lock of the transaction stands for the event until the transaction
//! ends; it is a number of 64 bits, so that another event, or an advisory lock of your own, may have the same one: then one of both is told
//! `Held` for once, and nothing worse.
//!
//! | | `READ COMMITTED` | `REPEATABLE READ` | `SERIALIZABLE` |
//! |---|---|---|---|
//! | never seen before | `Fresh` | `Fresh` | `Fresh` |
//! | committed before this transaction began | `Duplicate` | `Duplicate` | `Duplicate` |
//! | committed after it began | `Duplicate` | error `Conflict` | error `Conflict` |
//! | claimed by a transaction that is open | `Held` | `Held` | `Held` |
//! | claimed by one that was rolled back | `Fresh` | `Fresh` | `Fresh` |
//! | the commit | succeeds | succeeds | may fail with `Conflict`, also for other events' sake |
//!
//! After `Held` and `Duplicate` the transaction is whole, and may be used for something else. `Conflict` and `Held` are answered 503: the retry finds out
//! how the other one ended. A claim in a savepoint that is rolled back is gone with it.
//!
//! The store's own statements run at the level that its connections have by default, and are asked again where they meet at a stricter one than
//! `READ COMMITTED`.
//!
//! # Time-outs to set
//!
//! A host that is lost, and not merely a process, says no goodbye: its transaction is open, and its events are `Held`, until the server notices. For the
//! connections of your own pool, set on the server or the role:
//!
//! | setting | to | since otherwise |
//! |---|---|---|
//! | `tcp_keepalives_idle`, `_interval`, `_count` | 10, 3, 3 | a lost host's transaction is open for two hours |
//! | `tcp_user_timeout` | 20 s | the same, where something was being sent |
//! | `client_connection_check_interval` | 1 s | a statement goes on for a client that is gone |
//! | `idle_in_transaction_session_timeout` | 30 s | a handler that hangs holds its event as long as it does |
//! | `statement_timeout`, `lock_timeout` | below the 4.5 s of the receiver's budget | the sender has given up |
//!
//! The connections that [`Postgres::new`] makes have their own. A pool's wait for a connection should be bounded as well.
//!
//! # Durability
//!
//! A claim is as durable as the server's `synchronous_commit`: with `on`, the default, it is flushed before it is answered. With `off` a crash of the
//! **server** may forget the last fraction of a second. Inside a transaction that is no harm to *exactly once*, since effects and claim are forgotten
//! together, but the sender has heard a 2xx and won't come again: leave it `on`. A standby that is promoted without `synchronous_standby_names` may lack the last
//! commits, for which the same holds. Point the store and the transactions at the primary.
//!
//! The store's leases and all retention go by the server's clock. One that leaps forward ends leases early, as a paused process sees them end; the tokens
//! keep what is late from undoing what came after. `claim_in` decides nothing by a clock.
//!
//! # Sizes
//!
//! An id takes up to 300 bytes in the store and 200 in a transaction's table, indexes included, on disk (measured, PostgreSQL 15): at 10 events a second and 48 h of
//! retention 0.5 GB and 0.35 GB. What has ended is deleted 512 ids at a time, and its room is used again once `autovacuum` has been there.
//!
//! # Connections
//!
//! | made with | connections of a process, at most |
//! |---|---|
//! | [`Postgres::new`] | [`with_connections`](Postgres::with_connections) (8), two that keep and end leases, and one that listens, with workers |
//! | [`Postgres::with_pool`] | the pool's `max_size`, and two that keep and end leases |
//!
//! Renewals, settlements, commits and releases do not wait for those who hold the other connections: a handler that shares the pool may
//! hold one for as long as it likes, and no lease ends for want of another. Claims, leases and accepted deliveries do wait, and are
//! answered 503 where the wait is too long. Clones of a [`Postgres`] share all of its connections.
//!
//! # Encoding
//!
//! The database is in `UTF8`: [`migrate`] and the first of the [`MIGRATIONS`] refuse any other, `SQL_ASCII` included, and say how to create one:
//! `CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0`. In another encoding an id that it has no room for would be refused for as
//! long as its sender tries. What PostgreSQL refuses for good all the same (SQLSTATE classes 22, 23, 42 and 54, but for a table, a column or a
//! right that is missing) is a [`StoreErrorKind::Refused`](crate::StoreErrorKind::Refused): a delivery is answered 503 at once, and a settlement is
//! told once more with a plainer reason, and then given up.
//!
//! # Names
//!
//! Two programs can use one schema, as where both connect with the defaults. Each gives its own name to [`PostgresStore::new`], [`claim_in`]
//! and `Inbox::on_postgres`: claims, effects and entries of one name are nothing to another. There is no default, since two programs
//! without a name would silence each other's events and run each other's entries without a word. Replicas of a program have the same name, and share.
//! The name is part of the key of a claim, so that the statements for sqlx and diesel are the same for all names; in the inbox's table
//! it is a column. What was kept before there were names is `default`'s.
//!
//! # Schema and rights
//!
//! [`migrate`] makes the tables, or your own tool does from [`MIGRATIONS`], or both. Statements name no schema: what counts is the `search_path` of the
//! connection, set in its options (`-c search_path=hookgate`) or for its role. Whoever migrates needs `CREATE` on the schema; whoever runs
//! needs `USAGE` on it, `SELECT` on `hookgate_migrations` (where it calls `migrate`), and `SELECT`, `INSERT`, `UPDATE` and `DELETE` on `hookgate_claims` and
//! `hookgate_effects`. The store deletes what has ended from both, so that without rights on the second the server logs a refusal now and then.
//!
//! Prepared statements are used by the store alone, and prepared again where somebody has deallocated them. Behind a PgBouncer that pools transactions it needs version 1.21 or newer, with
//! `max_prepared_statements`; the settings made on connecting are then best set on the role, since they would stay with whoever comes next.
//!
//! # Security
//!
//! - **Claim inside the transaction of the effects, and answer 2xx after its commit.** A claim that is committed alone marks an event as done that may never be.
//! - Who can write these tables decides which events run: a row for an id silences it. Grant them to the receiver's role alone.
//! - Ids are stored as digests and bodies not at all; neither can be read from these two tables.
//! - TLS is the connector's: see [`Postgres`].

mod ask;
mod claimed;
mod claims;
mod connect;
mod effects;
mod failure;
mod forget;
mod lent;
mod migration;
mod namespace;
mod pool;
mod spare;
mod task;

use std::time::Duration;

pub use claimed::{ClaimedIn, NotFresh};
pub use claims::{FORGET_CLAIMS, PostgresStore};
pub use effects::{CLAIM_IN, ClaimValues, FORGET_EFFECTS, claim_in, claim_values_in};
pub use forget::forget;
pub use migration::{MIGRATIONS, Migration, migrate};
pub use pool::Postgres;
#[cfg(feature = "inbox")]
pub(crate) use {failure::store as store_error, task::Task};

/// For an interval of the server, which has no more than this hundred years.
fn micros(time: Duration) -> i64 {
    const MOST: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);
    i64::try_from(time.min(MOST).as_micros()).unwrap_or(i64::MAX)
}
