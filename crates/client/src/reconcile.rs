//! Finds the rows that changed without a handled event.
//!
#![doc = include_str!("../docs/reconciliation.md")]

mod columns;
pub mod contract;
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
#[cfg(feature = "sqlite")]
mod sqlite;

pub use columns::Column;
pub use driver::{Reconcile, ReconcileError, Report, RowSource};
pub use finding::{Doubt, Finding, Found, Gone, Reconciled, Unresolved};
pub use hash::RowHash;
pub use memory::MemoryMirror;
pub use mirror::{Fed, Life, Mirror, MirrorFuture, Mirrored, RowState, feed, is_known};
pub use planner::{Pass, PassPage, PassRow, Planner, Settings, Step};
#[cfg(feature = "postgres")]
pub use postgres::PostgresMirror;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteMirror;
