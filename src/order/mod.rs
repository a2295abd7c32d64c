//! The order of the events of a row.

pub mod contract;
mod event;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod in_transaction;
mod judge;
mod known;
mod last;
mod memory;
mod moment;
mod store;

#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use in_transaction::{OrderedIn, RowValues};
pub use judge::{GapReason, Order};
pub use last::LastHandled;
pub use memory::MemoryOrderStore;
pub use store::OrderStore;
