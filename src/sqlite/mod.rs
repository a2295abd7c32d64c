//! SQLite: claims that one machine's process remembers across restarts, and claims inside your own transaction.
//!
//! The two kinds of claims can be used separately or together:
//!
//! | | [`SqliteStore`] | [`claim_in`] |
//! |---|---|---|
//! | place | in the receiver, before the handler | in the handler's own transaction |
//! | file | its own, or that of an inbox | that of your tables |
//! | a process that dies in its run | the event runs again when the lease has ended | is rolled back, and runs again |
//! | a process that dies between its effects and their record | **the event runs again** | impossible: both are one commit |
//! | cost | two flushes an event, which concurrent events share | no flush more than that of your transaction |
//!
//! So the store alone is *at least once, and usually once*. With the claim in the transaction it is **exactly once**, for the writes
//! of the transaction. The store in the layer as well prevents concurrent runs of copies, and spares the handler most duplicates.
//!
//! ```toml
//! hookgate = { version = "0.1", features = ["sqlite"] }
//! rusqlite = "0.40" # for transactions of your own, in the version that `cargo tree -i rusqlite` names
//! ```
//!
//! # Exactly once
//!
//! ```
//! # #[cfg(feature = "axum")] {
//! use axum::{extract::State, http::StatusCode};
//! use hookgate::{Delivery, HandlerError, sqlite::claim_in};
//! use rusqlite::{Connection, TransactionBehavior};
//! use std::sync::{Arc, Mutex, PoisonError};
//! use std::time::Duration;
//!
//! const RETAIN: Duration = Duration::from_secs(48 * 60 * 60); // as long as the receiver's own retention, or longer
//!
//! fn write_order(database: &Mutex<Connection>, delivery: &Delivery) -> Result<(), HandlerError> {
//!     let mut database = database.lock().unwrap_or_else(PoisonError::into_inner);
//!     let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
//!     claim_in(&transaction, "orders", delivery, RETAIN)?.fresh()?; // 200 for a duplicate
//!
//!     let order = "INSERT INTO orders (event_id) VALUES (?1)";
//!     transaction.execute(order, [delivery.event_id()])?; // each error is answered 500 or 503, and the transaction is rolled back
//!     Ok(transaction.commit()?)
//! }
//!
//! async fn on_event(State(database): State<Arc<Mutex<Connection>>>, delivery: Delivery) -> Result<StatusCode, HandlerError> {
//!     tokio::task::spawn_blocking(move || write_order(&database, &delivery)).await??;
//!     Ok(StatusCode::NO_CONTENT)
//! }
//! # }
//! ```
//!
//! The example `remembered_claims` is a whole program. With sqlx the statement [`CLAIM_IN`] is run with the [`ClaimValues`] bound.
//!
//! **Exactly once** applies to the writes of the transaction, in this file. A mail and a call of another service are not included:
//! write the messages to send into the same transaction (an *outbox*), and let a task send them that tries again on failure.
//!
//! # Transactions
//!
//! SQLite lets one transaction write at a time, so a claim never meets another one that is open, and is never
//! [`Held`](ClaimedIn::Held). It waits for the other's end instead, for as long as the `busy_timeout` of your connection: set it
//! below the 4.5 s of the receiver's budget.
//!
//! | | `BEGIN IMMEDIATE` | `BEGIN` (deferred), nothing read before | `BEGIN` (deferred), after a read |
//! |---|---|---|---|
//! | never seen before | `Fresh` | `Fresh` | `Fresh` |
//! | committed before | `Duplicate` | `Duplicate` | `Duplicate` |
//! | committed since the transaction began | impossible | impossible | error `Conflict` |
//! | another transaction writes for longer than `busy_timeout` | `BEGIN` fails: `TimedOut` | error `TimedOut` | error `TimedOut` at once |
//! | claimed by one that was rolled back | `Fresh` | `Fresh` | `Fresh` |
//!
//! Each error is answered 503, by [`HandlerError`](crate::HandlerError) also 500, and the retry finds the outcome. Prefer `BEGIN IMMEDIATE`: it waits where a deferred transaction
//! that has read before fails. A claim is rolled back with its transaction, also with a savepoint that is rolled back.
//!
//! # Durability
//!
//! The store flushes each claim and each commit before it answers (`synchronous=FULL`, read back on its connection). **A claim in
//! your own transaction is as durable as your connection makes it**: `PRAGMA synchronous = FULL` is SQLite's default; with `NORMAL`
//! and a write-ahead log, a power cut may lose the last commits, effects and claims alike, after the sender was answered 2xx.
//!
//! # Security
//! - **Claim inside the transaction of the effects, and answer 2xx after its commit.** A claim that is committed alone marks an
//!   event as done that may never be handled.
//! - A program that can write these tables decides which events run: a row for an id prevents its run.
//! - Ids are stored as digests, and bodies are not stored; neither can be read from these tables.

mod claims;
pub(crate) mod commits;
mod effects;
pub(crate) mod fault;
pub(crate) mod header;
pub(crate) mod open;
mod open_files;
pub(crate) mod reserve;
pub(crate) mod slot;
pub(crate) mod statements;
mod store;
pub(crate) mod thread;
pub(crate) mod units;
mod writer;

#[cfg(test)]
pub(crate) mod tests;

pub use crate::effects::{ClaimValues, ClaimedIn, NotFresh};
pub use effects::{CLAIM_IN, SCHEMA, claim_in, claim_values_in, migrate};
pub use store::SqliteStore;
