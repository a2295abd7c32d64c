//! PostgreSQL: claims that processes share, claims and the order of a row's events inside your own transaction, and the inbox's
//! table.
//!
//! The two kinds of claims can be used separately or together:
//!
//! | | [`PostgresStore`] | [`claim_in`] |
//! |---|---|---|
//! | place | in the receiver, before the handler | in the handler's own transaction |
//! | records | *running* with a lease, and *done* | *done*, in the same commit as the effects |
//! | a process that dies in its run | the event runs again when the lease has ended | is rolled back, and runs again |
//! | a process that dies between its effects and their record | **the event runs again** | impossible: both are one commit |
//! | cost | two round trips and two flushes an event | one round trip more in your transaction |
//! | a duplicate | one round trip, read only | the same, once the handler was called |
//!
//! So the store alone is *at least once, and usually once*: a crash between the handler's own commit and the store's leaves no
//! record of the run. With the claim in the transaction it is exactly once, for the writes of the transaction. A store in the
//! layer as well, in memory or here, still prevents concurrent runs of copies, and spares the handler most duplicates.
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
//! use axum::{extract::State, http::StatusCode};
//! use hookgate::{Delivery, HandlerError, postgres::claim_in};
//! use std::time::Duration;
//!
//! const RETAIN: Duration = Duration::from_secs(48 * 60 * 60); // as long as the receiver's own retention, or longer
//!
//! async fn on_event(State(pool): State<deadpool_postgres::Pool>, delivery: Delivery) -> Result<StatusCode, HandlerError> {
//!     let mut client = pool.get().await?; // each error is answered 500 or 503, and the transaction is rolled back
//!     let transaction = client.transaction().await?;
//!     claim_in(&transaction, "orders", &delivery, RETAIN)
//!         .await?
//!         .fresh()?; // 200 for a duplicate, 503 for an event that another transaction holds
//!
//!     let order = "INSERT INTO orders (event_id) VALUES ($1)";
//!     transaction.execute(order, &[&delivery.event_id()]).await?;
//!     transaction.commit().await?;
//!     Ok(StatusCode::NO_CONTENT)
//! }
//! # }
//! ```
//!
//! The example `exactly_once` is a whole program. With sqlx, diesel or SeaORM the statement [`CLAIM_IN`] is run with the
//! [`ClaimValues`] bound; `examples/sqlx` shows it.
//!
//! **Exactly once** applies to the writes of the transaction, in this database. A mail, a call of another service and a row in
//! another database are not included: they happen before the commit, which may fail, or after it, when the process may have died.
//! Write the messages to send into the same transaction (an *outbox*), and let a program send them that tries again on failure.
//!
//! # Isolation levels
//!
//! The claim never waits for another transaction, at any level. An advisory lock of the transaction represents the event until
//! the transaction ends. It is a number of 64 bits, so another event, or an advisory lock of your own, may have the same number:
//! then one of both gets `Held` once, without other harm.
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
//! After `Held` and `Duplicate` the transaction is still valid, and may be used for other work. `Conflict` and `Held` are
//! answered 503: the retry finds the outcome of the other transaction. A claim in a savepoint that is rolled back is rolled back
//! with it.
//!
//! The statements of the store and of the inbox need no more than `READ COMMITTED`, and run at that level whatever the default of
//! the server, the database or the role is: [`Postgres::new`] sets it on its connections. On your own pool, a transaction sets it
//! for each statement, once one was refused at a stricter level; until then nothing is sent in addition.
//!
//! # The order of a row's events
//!
//! [`order_in`] says in the same transaction whether a newer event of the row was handled, and records this one. It locks the row's
//! record until the transaction ends: two transactions of one row go one after the other, and those of two rows do not meet. Call it
//! after `claim_in`, and before the row is written.
//!
//! | another transaction of the row | `READ COMMITTED` | `REPEATABLE READ`, `SERIALIZABLE` |
//! |---|---|---|
//! | is open | waits for its end | waits for its end |
//! | has committed since this one began | its event counts | error `Conflict` |
//! | was rolled back | it leaves nothing | it leaves nothing |
//! | holds the row for longer than `lock_timeout` | error `TimedOut` | error `TimedOut` |
//!
//! A [`PostgresStore`] keeps the same records for an `OrderGuard`, where the handler has no transaction here. With sqlx, diesel or
//! SeaORM the two statements [`LOCK_ROW`] and [`WRITE_ROW`] are run with the [`RowValues`] bound; `examples/sqlx` shows it.
//!
//! # Time-outs to set
//!
//! When a whole host is lost, and not only a process, its connections are not closed: its transaction is open, and its events are
//! `Held`, until the server notices. For the connections of your own pool, set on the server or the role:
//!
//! | setting | to | reason |
//! |---|---|---|
//! | `tcp_keepalives_idle`, `_interval`, `_count` | 10, 3, 3 | a lost host's transaction would stay open for two hours |
//! | `tcp_user_timeout` | 20 s | the same, where data was being sent |
//! | `client_connection_check_interval` | 1 s | a statement would go on for a client that is lost |
//! | `idle_in_transaction_session_timeout` | 30 s | a handler that hangs would hold its event without limit |
//! | `statement_timeout`, `lock_timeout` | below the 4.5 s of the receiver's budget | later the sender no longer waits |
//!
//! The connections that [`Postgres::new`] makes have their own settings. A pool's wait for a connection should be bounded as
//! well.
//!
//! # Durability
//!
//! A claim is as durable as the server's `synchronous_commit`: with `on`, the default, it is flushed before it is answered. With
//! `off` a crash of the **server** may forget the last fraction of a second. Inside a transaction that does not break *exactly
//! once*, since effects and claim are forgotten together, but the sender got a 2xx and won't send the event again: leave it `on`.
//! A standby that is promoted without `synchronous_standby_names` may lack the last commits, with the same effect. Connect the
//! store and the transactions to the primary.
//!
//! The store's leases and all retention use the server's clock. A clock that jumps forward ends leases early, as after a pause of
//! the process; the tokens prevent a late run from undoing a later record. `claim_in` decides nothing by a clock.
//!
//! # Sizes
//!
//! An id takes up to 300 bytes in the store and 200 in a transaction's table, indexes included, on disk (measured, PostgreSQL
//! 15): at 10 events a second and 48 h of retention 0.5 GB and 0.35 GB. Ended records are deleted 512 ids at a time, and their
//! space is used again after `autovacuum` has run. The record of a row with eight properties takes up to 500 bytes (measured in the
//! same way), and 16 for each further property: a million rows that have an event within the retention take 0.5 GB.
//!
//! # Connections
//!
//! | made with | connections of a process, at most |
//! |---|---|
//! | [`Postgres::new`] | [`with_connections`](Postgres::with_connections) (8), two that keep and end leases, and one that listens, with workers |
//! | [`Postgres::with_pool`] | the pool's `max_size`, and two that keep and end leases |
//!
//! Renewals, settlements, commits and releases do not wait for the holders of the other connections: a handler that shares the
//! pool may hold one without a limit, and no lease ends because a connection is missing. Claims, leases and accepted deliveries
//! do wait, and are answered 503 where the wait is too long. Clones of a [`Postgres`] share all of its connections.
//!
//! # TLS
//!
//! With feature `postgres-tls` the URL decides, as for other clients: `?sslmode=verify-full` at its end is TLS by rustls, and
//! `&sslrootcert=provider-ca.pem` names the authorities to trust, if the system does not trust your provider's. The certificate is
//! verified with its host name in every case, for `sslmode=require` too: [`Tls::for_url`] has the table. The feature changes
//! what one URL means: without `sslmode`, a server on another machine is offered TLS, and without the feature it is not.
//!
//! ```no_run
//! use hookgate::postgres::Postgres;
//!
//! let postgres = Postgres::open("postgres://app:made-up-password@db.example/orders?sslmode=verify-full")?;
//! # Ok::<(), hookgate::StoreError>(())
//! ```
//!
//! [`Tls`] is for `tokio_postgres::Config::connect` and for your own pool as well; [`Postgres::new`] takes any other connector. A
//! login that is bound to the certificate (`channel_binding=require`) works. Unix sockets work, and need no TLS.
//!
//! # Encoding
//!
//! The database must be in `UTF8`: each call of [`migrate`] and the first of the [`MIGRATIONS`] refuse any other encoding,
//! `SQL_ASCII` included, and say how to create one: `CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0`. In another
//! encoding an id that can't be stored would be refused for as long as its sender tries. Other permanent errors of PostgreSQL
//! (SQLSTATE classes 22, 23 and 54) are a [`StoreErrorKind::Refused`](crate::StoreErrorKind::Refused): a delivery is answered
//! 503 at once, and a settlement is repeated once with a simpler reason, and then given up.
//!
//! # Names
//!
//! Two programs can use one schema, for example where both connect with the defaults. Each gives its own name to
//! [`PostgresStore::new`], [`claim_in`] and `Inbox::on_postgres`: claims, effects and entries of one name do not affect
//! another. Use one name for all three, of the form that an inbox takes: 1 to 63 ASCII letters, digits, `.`, `_` and `-`. The
//! first two take any text. There is no default, since two programs without a name would make each other's events look handled
//! and run each other's entries, without an error. Replicas of a program have the same name, and share. The name is part of the
//! key of a claim, so that the statements for sqlx and diesel are the same for all names; in the inbox's table it is a column.
//! Records from before names existed belong to `default`.
//!
//! # Schema and rights
//!
//! [`Postgres::migrate`] makes the tables, or [`migrate`] on a client of your own, or your own tool from [`MIGRATIONS`], which are SQL.
//! A step of a deployment that may create tables is a program of one line; where only your tool may, print them once and keep the
//! output with your other steps. Calls may be repeated, and combined. Statements name no schema: the connection's
//! `search_path` selects it, set in its options (`-c search_path=hookgate`) or for its role. The role that migrates needs
//! `CREATE` on the schema; the role that runs needs `USAGE` on it, `SELECT` on `hookgate_migrations` (where it calls `migrate`),
//! and `SELECT`, `INSERT`, `UPDATE` and `DELETE` on `hookgate_claims`, `hookgate_effects` and `hookgate_order`. The store deletes ended
//! records from all three; without rights on one, the server sometimes logs a refusal.
//!
//! Prepared statements are used by the store and the inbox, and prepared again after they were deallocated.
//!
//! # Poolers
//!
//! Through a pooler that keeps a connection of the server for each client (`pool_mode = session`) everything works as without. One
//! that pools **transactions** gives a session to another client after each transaction, with the settings and statements that were
//! left there. Call [`behind_pooler`](Postgres::behind_pooler) then, also for your own pool: nothing is left, and any version works.
//! It is tested with PgBouncer 1.18.
//!
//! ```no_run
//! # fn example() -> Result<(), hookgate::StoreError> {
//! let url = "postgres://app:made-up-password@pooler.example:6432/orders?sslmode=verify-full";
//! let postgres = hookgate::postgres::Postgres::open(url)?.behind_pooler();
//! # Ok(())
//! # }
//! ```
//!
//! Without that call, such a pooler would have to be PgBouncer 1.21 or newer with `max_prepared_statements`, and the time-outs of
//! [`Postgres::new`] would be those of all its clients. Workers poll behind it: for an inbox with few events, connect past the
//! pooler instead, where that is possible.
//!
//! # Security
//!
//! - **Claim inside the transaction of the effects, and answer 2xx after its commit.** A claim that is committed alone marks an
//!   event as done that may never be handled.
//! - A role that can write these tables decides which events run: a row for an id prevents its run. Grant the rights to the
//!   receiver's role alone.
//! - Ids are stored as digests, and bodies are not stored; neither can be read from these tables. The record
//!   of a row has a hash of 8 bytes for each property: a value of which there are few, such as a status, can be guessed from it.
//! - **Ask for TLS by `sslmode=verify-full`** where the server is not on this machine. Without `sslmode` in the URL, a
//!   device in the network path can pretend that the server has no TLS, and read and change everything.

mod claims;
mod connect;
mod effects;
mod failure;
mod forget;
mod migration;
mod order;
mod pool;
mod pooled;
mod query;
mod rows;
mod session;
mod spare;
mod tables;
mod task;
mod tls;
mod url;

pub use crate::effects::{ClaimValues, ClaimedIn, NotFresh};
pub use crate::order::{OrderedIn, RowValues};
pub use claims::PostgresStore;
pub use effects::{CLAIM_IN, claim_in, claim_values_in};
pub use forget::{FORGET_CLAIMS, FORGET_EFFECTS, FORGET_ORDER, forget};
pub use migration::migrate;
pub use order::{LOCK_ROW, WRITE_ROW, order_in};
pub use pool::Postgres;
#[cfg(feature = "inbox")]
pub(crate) use session::at_once;
pub use tables::{MIGRATIONS, Migration};
#[cfg(feature = "inbox")]
pub(crate) use task::Task;
pub use tls::Tls;
