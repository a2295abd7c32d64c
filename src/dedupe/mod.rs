//! Once: claims on events.

mod key;
mod store;

pub use key::{ClaimToken, EventKey};
pub use store::{Claimed, DedupeStore, Ownership, StoreFuture};
