//! The inbox, for handlers that take longer than the sender waits, or whose events must survive a deploy. A delivery is verified,
//! **stored**, and answered 2xx only once it is durable. Workers handle it afterwards.
//!
//! A [`Sink`] stores deliveries. It has one operation, so that a queue that you run already can be a sink, if it keeps the sink's
//! rules. An [`Acceptor`] calls the sink; [`ReceiverBuilder::accept_into`](crate::ReceiverBuilder::accept_into) makes the acceptor.
//!
#![cfg_attr(feature = "inbox", doc = include_str!("workers.md"))]

mod accept;
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
#[cfg(feature = "inbox")]
mod operate;
#[cfg(all(feature = "inbox", feature = "postgres"))]
mod postgres;
#[cfg(feature = "inbox")]
mod selection;
#[cfg(feature = "inbox")]
mod signal;
#[cfg(feature = "inbox")]
mod sqlite;
#[cfg(feature = "inbox")]
mod workers;

#[cfg(all(test, feature = "inbox"))]
use contract::{cases, memory};

pub use acceptor::Acceptor;
pub use sink::{Accepted, Sink};
#[cfg(feature = "inbox")]
#[cfg_attr(docsrs, doc(cfg(feature = "inbox")))]
pub use {
    durable::Inbox,
    engine::{InboxStats, Listed},
    entry::{EntryId, EntryState},
    operate::StoredEntry,
    selection::{Page, Selection},
    sqlite::InboxOptions,
    workers::{
        AttemptReport, Backoff, DeadEntry, Disposition, Jitter, LostLease, RunningWorkers, Workers,
    },
};
