//! For handlers that take longer than the sender waits, or that must survive a deploy: a delivery is verified, **stored**, and
//! answered 2xx only once it is durable. Workers handle it afterwards.
//!
//! What stores it is a [`Sink`]: one operation, so that a queue that you run already can be one. What asks it is an [`Acceptor`], which
//! [`ReceiverBuilder::accept_into`](crate::ReceiverBuilder::accept_into) makes.
//!
#![cfg_attr(feature = "inbox", doc = include_str!("workers.md"))]

mod acceptor;
mod sink;

#[cfg(all(test, feature = "inbox"))]
mod contract;
#[cfg(feature = "inbox")]
mod durable;
#[cfg(feature = "inbox")]
mod engine;
#[cfg(feature = "inbox")]
mod entry;
#[cfg(feature = "inbox")]
mod line;
#[cfg(all(test, feature = "inbox"))]
mod memory;
#[cfg(feature = "inbox")]
mod operate;
#[cfg(all(feature = "inbox", feature = "postgres"))]
mod postgres;
#[cfg(feature = "inbox")]
mod sqlite;
#[cfg(feature = "inbox")]
mod workers;

pub use acceptor::Acceptor;
#[cfg(all(feature = "inbox", feature = "postgres"))]
pub(crate) use postgres::{FIRST_LEASE_MIGRATION, MIGRATION as POSTGRES_MIGRATION};
pub use sink::{Accepted, Sink};
#[cfg(feature = "inbox")]
#[cfg_attr(docsrs, doc(cfg(feature = "inbox")))]
pub use {
    durable::Inbox,
    engine::{EntryId, EntryState, InboxStats, Listed, Page, Selection},
    operate::StoredEntry,
    sqlite::InboxOptions,
    workers::{Backoff, DeadEntry, Fate, Jitter, LostLease, RunningWorkers, Tried, Workers},
};
