//! PostgreSQL: claims that processes share, claims and the order of a row's events inside your own transaction, the inbox's table.
//!
#![cfg_attr(any(not(doctest), feature = "axum"), doc = include_str!("../../docs/postgres.md"))]

mod claims;
mod connect;
mod effects;
mod failure;
mod forget;
#[cfg(feature = "inbox")]
mod listener;
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

pub use crate::order::{OrderedIn, RowValues};
pub use claims::PostgresStore;
pub use effects::{CLAIM_IN, claim_in, claim_values_in};
pub use forget::{FORGET, forget};
pub use migration::migrate;
pub use order::{LOCK_ROW, WRITE_ROW, order_in};
pub use pool::Postgres;
#[cfg(feature = "inbox")]
pub(crate) use session::at_once;
pub use tables::{MIGRATIONS, Migration};
#[cfg(feature = "inbox")]
pub(crate) use task::Task;
pub use tls::Tls;
