//! Claims inside the transaction that writes the effects: the part that PostgreSQL and SQLite share.

mod claimed;
mod namespace;
mod values;

pub use claimed::{ClaimedIn, NotFresh};
pub(crate) use namespace::Namespace;
pub use values::ClaimValues;
pub(crate) use values::micros;
