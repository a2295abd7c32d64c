//! For handlers that take longer than the sender waits, or that must survive a deploy: a delivery is verified, **stored**, and
//! answered 2xx only once it is durable. Workers handle it afterwards.
//!
//! What stores it is a [`Sink`]: one operation, so that a queue that you run already can be one.

mod sink;

#[cfg(all(test, feature = "inbox"))]
#[allow(dead_code)] // until an engine runs it
mod contract;
#[cfg(feature = "inbox")]
mod durable;
#[cfg(feature = "inbox")]
mod engine;
#[cfg(feature = "inbox")]
mod entry;
#[cfg(all(test, feature = "inbox"))]
mod memory;
#[cfg(feature = "inbox")]
mod workers;

#[cfg(all(feature = "inbox", feature = "postgres"))]
mod postgres;

#[cfg(all(feature = "inbox", feature = "postgres"))]
pub(crate) use postgres::MIGRATION as POSTGRES_MIGRATION;
pub use sink::{Accepted, Sink};
#[cfg(feature = "inbox")]
#[cfg_attr(docsrs, doc(cfg(feature = "inbox")))]
pub use {
    durable::Inbox,
    engine::{EntryId, EntryState, InboxStats, Listed},
    workers::{Backoff, DeadEntry, Fate, Jitter, LostLease, RunningWorkers, Tried, Workers},
};
