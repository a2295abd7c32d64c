#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
// The items of clippy.toml. Unit tests may use them.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod check;
mod connect;
mod connection;
mod failure;
mod finding;
mod open;
mod record;
mod script;
mod store;
#[cfg(feature = "tls")]
mod tls;

pub use connection::Connection;
pub use finding::{Finding, Findings, Risk};
pub use record::BYTES_PER_RECORD;
pub use store::RedisStore;
