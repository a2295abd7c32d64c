#![doc = include_str!("../README.md")]
//!
#![doc = include_str!("../docs/sqlite.md")]
//!
#![cfg_attr(feature = "inbox", doc = include_str!("../docs/inbox.md"))]
#![forbid(unsafe_code)]
// The items of clippy.toml. Unit tests may use them.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod calls;
mod claims;
mod commits;
mod effects;
mod fault;
mod header;
#[cfg(feature = "inbox")]
mod inbox;
mod open;
mod open_files;
#[cfg(feature = "order")]
mod order;
mod reserve;
mod statements;
mod store;
mod thread;
mod units;
mod writer;

#[cfg(test)]
mod tests;

pub use effects::{CLAIM_IN, SCHEMA, claim_in, claim_values_in, migrate};
pub use fault::store_error;
#[cfg(feature = "inbox")]
#[cfg_attr(docsrs, doc(cfg(feature = "inbox")))]
pub use inbox::{InboxOptions, open_inbox};
#[cfg(feature = "order")]
#[cfg_attr(docsrs, doc(cfg(feature = "order")))]
pub use order::{LOCK_ROW, WRITE_ROW, order_in};
pub use store::SqliteStore;
