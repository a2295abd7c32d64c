//! SQLite: claims that a restart does not forget, and claims and the order of a row's events inside your own transaction.
//!
#![cfg_attr(any(not(doctest), feature = "axum"), doc = include_str!("../../docs/sqlite.md"))]

pub(crate) mod calls;
mod claims;
pub(crate) mod commits;
mod effects;
pub(crate) mod fault;
pub(crate) mod header;
pub(crate) mod open;
mod open_files;
mod order;
pub(crate) mod reserve;
pub(crate) mod statements;
mod store;
pub(crate) mod thread;
pub(crate) mod units;
pub(crate) mod writer;

#[cfg(test)]
pub(crate) mod tests;

pub use crate::order::{OrderedIn, RowValues};
pub use effects::{CLAIM_IN, SCHEMA, claim_in, claim_values_in, migrate};
pub use order::{LOCK_ROW, WRITE_ROW, order_in};
pub use store::SqliteStore;
