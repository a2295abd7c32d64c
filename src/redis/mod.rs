//! Claims that several processes share, on Redis or Valkey.
//!
// Its code is compiled in tests/docs.rs.
#![cfg_attr(not(doctest), doc = include_str!("../../docs/redis.md"))]

mod check;
mod connect;
mod connection;
mod failure;
mod finding;
mod open;
mod record;
mod script;
mod store;
#[cfg(feature = "redis-tls")]
mod tls;

pub use connection::Connection;
pub use finding::{Finding, Findings, Risk};
pub use record::BYTES_PER_RECORD;
pub use store::RedisStore;
