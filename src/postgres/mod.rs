//! PostgreSQL: claims that processes share, claims inside your own transaction, and the inbox's table.

mod pool;

pub use pool::Postgres;
