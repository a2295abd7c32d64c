#![doc = include_str!("../README.md")]
//!
#![doc = include_str!("../docs/postgres.md")]
//!
#![cfg_attr(feature = "inbox", doc = include_str!("../docs/inbox.md"))]
#![forbid(unsafe_code)]
// The items of clippy.toml. Unit tests may use them.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod claims;
mod connect;
mod effects;
mod failure;
#[cfg(feature = "tls")]
mod handshake;
#[cfg(feature = "inbox")]
mod inbox;
mod migration;
#[cfg(feature = "order")]
mod order;
mod pool;
mod pooled;
mod query;
#[cfg(feature = "order")]
mod rows;
mod session;
mod tables;
mod task;
mod tls;
mod url;

pub use claims::{FORGET, PostgresStore, forget};
pub use effects::{CLAIM_IN, claim_in, claim_values_in};
pub use failure::store_error;
pub use migration::migrate;
#[cfg(feature = "order")]
#[cfg_attr(docsrs, doc(cfg(feature = "order")))]
pub use order::{LOCK_ROW, WRITE_ROW, order_in};
pub use pool::Postgres;
pub use tables::{MIGRATIONS, Migration};
pub use tls::Tls;
