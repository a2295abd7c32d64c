//! PostgreSQL: claims that processes share, claims inside your own transaction, and the inbox's table.

#![allow(dead_code)] // until the store and the inbox stand

mod connect;
mod failure;
mod migration;
mod pool;

pub use migration::{MIGRATIONS, Migration, migrate};
pub use pool::Postgres;
