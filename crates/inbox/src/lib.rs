#![doc = include_str!("../README.md")]
//!
#![doc = include_str!("../docs/workers.md")]
#![forbid(unsafe_code)]
// The items of clippy.toml. Unit tests may use them.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(test, feature = "contract"))]
#[cfg_attr(docsrs, doc(cfg(feature = "contract")))]
pub mod contract;
pub mod engine;
mod entry;
mod inbox;
mod operate;
mod selection;
mod workers;

#[cfg(test)]
use contract::{cases, memory};

pub use engine::{InboxStats, Listed};
pub use entry::{EntryId, EntryState};
pub use inbox::Inbox;
pub use operate::StoredEntry;
pub use selection::{Page, Selection};
pub use workers::{
    AttemptReport, Backoff, DeadEntry, Disposition, Jitter, LostLease, RunningWorkers, Workers,
};
