//! The order of the events of a row.

pub mod contract;
mod event;
mod judge;
mod known;
mod last;
mod memory;
mod moment;
mod store;

pub use judge::{GapReason, Order};
pub use last::LastHandled;
pub use memory::MemoryOrderStore;
pub use store::OrderStore;
