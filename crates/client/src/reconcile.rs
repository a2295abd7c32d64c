//! Finds the rows that changed without a handled event: [the
//! guide](hookgate::guide::reconciliation) has a whole program, and says when a change is found.
//!
#![cfg_attr(doctest, doc = include_str!("../../../docs/reconciliation.md"))]

mod claims;
mod columns;
pub mod contract;
mod difference;
mod driver;
mod feed;
mod finding;
pub(crate) mod hash;
mod memory;
#[cfg(feature = "metrics")]
mod metrics;
mod mirror;
mod planner;
mod report;
pub(crate) mod row_state;
mod scan;
mod source;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod sql;
mod steps;

pub use columns::Column;
pub use driver::{PassRequests, Reconcile};
pub use feed::{Begun, Fed, begin, feed, is_known};
pub use finding::{Finding, Found, Gone, Reconciled, Unresolved, UnresolvedReason};
pub use hash::RowHash;
pub use memory::MemoryMirror;
pub use mirror::{Mirror, Mirrored};
pub use planner::Planner;
pub use report::{ReconcileError, Report};
pub use row_state::{Life, RowState};
pub use source::RowSource;
#[cfg(feature = "postgres")]
pub use sql::PostgresMirror;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use sql::SqlMirror;
#[cfg(feature = "sqlite")]
pub use sql::SqliteMirror;
pub use steps::{Pass, PassPage, PassRow, Settings, Step};
