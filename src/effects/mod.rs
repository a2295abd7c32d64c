//! Claims inside the transaction that writes the effects: what PostgreSQL and SQLite have in common.

mod claimed;
mod namespace;
mod values;

pub use claimed::{ClaimedIn, NotFresh};
pub(crate) use namespace::Namespace;
pub use values::ClaimValues;
pub(crate) use values::micros;
