#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
// The items of clippy.toml. Unit tests may use them.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod contract;
mod event;
#[cfg(feature = "axum")]
mod extract;
mod function;
mod guard;
mod in_transaction;
mod judge;
mod known;
mod memory;
#[cfg(feature = "metrics")]
mod metrics;
mod moment;
mod run;
mod service;
mod store;
mod turns;

pub use guard::OrderGuard;
pub use in_transaction::{OrderedIn, RowValues};
pub use judge::{GapReason, Order, Ordered};
pub use memory::MemoryOrderStore;
pub use service::OrderService;
pub use store::{LastHandled, OrderStore};
