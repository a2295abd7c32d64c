//! Finds the rows that changed without a handled event.
//!
#![doc = include_str!("../docs/reconciliation.md")]

mod columns;
pub mod contract;
mod difference;
mod driver;
mod finding;
mod hash;
mod memory;
#[cfg(feature = "metrics")]
mod metrics;
mod mirror;
mod planner;
#[cfg(feature = "postgres")]
mod postgres;
mod scan;
mod source;
#[cfg(feature = "sqlite")]
mod sqlite;
mod steps;

pub use columns::Column;
pub use driver::{Reconcile, ReconcileError, Report, RowSource};
pub use finding::{Doubt, Finding, Found, Gone, Reconciled, Unresolved};
pub use hash::RowHash;
pub use memory::MemoryMirror;
pub use mirror::{Fed, Life, Mirror, MirrorFuture, Mirrored, RowState, feed, is_known};
pub use planner::Planner;
#[cfg(feature = "postgres")]
pub use postgres::PostgresMirror;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteMirror;
pub use steps::{Pass, PassPage, PassRow, Settings, Step};
