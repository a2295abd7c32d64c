//! Claims that several processes share, on Redis or Valkey.

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
