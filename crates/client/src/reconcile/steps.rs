//! The planner's settings, its questions, the answers that it takes, and its report.

use std::time::Duration;

use hookgate::event::{Fields, RowId};

/// The settings of a reconciliation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The rows of a page: 500, the most that the service gives.
    pub page_rows: u64,
    /// The number of rows that a page shares with the page before it: 25. At least one, and at most
    /// half of the page.
    pub overlap: u64,
    /// The number of rows that may always be found as updated, or as deleted, in one pass: 50. But
    /// at most half of the rows may be found as deleted, unless `guard_percent` is 100.
    pub guard_rows: u64,
    /// The percentage of rows that may be found, if this is more than `guard_rows`: 1. With 100 all
    /// rows may be found as deleted.
    pub guard_percent: u64,
    /// The tolerance for stale reads, in microseconds: 5 s. If a row's `updatedAt` is older than
    /// the mirror's by more than this, the row is a stale read. An event's `createdAt` may be a
    /// little later than the row's `updatedAt`.
    pub clock_tolerance: i64,
    /// How long the state of a deleted row is kept, so that a late event does not bring the row
    /// back: 7 days. At least 48 h, because the last retry comes 26 h 36 min after the event, and
    /// at least the time of the last three complete passes.
    pub keep_deleted: Duration,
    /// Copies the rows to the mirror, without findings: for the first pass with an empty mirror,
    /// and after a property was renamed. Deletions are not found.
    pub is_filling: bool,
    /// With `is_filling`: also gives each row to the handler, so that one pass fills your own table
    /// and the mirror. Such a row is not claimed. `false` by default: the handler is not called.
    pub fills_table: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            page_rows: 500,
            overlap: 25,
            guard_rows: 50,
            guard_percent: 1,
            clock_tolerance: 5_000_000,
            keep_deleted: Duration::from_secs(7 * 24 * 60 * 60),
            is_filling: false,
            fills_table: false,
        }
    }
}

/// A page of a data model's rows, as the service listed them.
#[derive(Clone, Debug, Default)]
pub struct PassPage {
    /// The rows, in their order.
    pub rows: Vec<PassRow>,
    /// `meta.total`.
    pub total: Option<u64>,
}

/// A row as the service lists it.
#[derive(Clone, Debug)]
pub struct PassRow {
    /// The row.
    pub id: RowId,
    /// Its values by property id.
    pub data: Fields,
    /// Its `createdAt`.
    pub created_at: String,
    /// Its `updatedAt`.
    pub updated_at: String,
}

/// The planner's next request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The data model's properties: pass them to [`Planner::model`](super::Planner::model).
    Model,
    /// States from [`Mirror::list`](super::Mirror::list): pass them to
    /// [`Planner::listed`](super::Planner::listed).
    List {
        /// After this row.
        after: Option<RowId>,
        /// The greatest number of states.
        limit: usize,
    },
    /// A page of rows: pass it to [`Planner::page`](super::Planner::page).
    Page {
        /// Rows to skip.
        offset: u64,
        /// Rows of the page.
        limit: u64,
    },
    /// The present states of these rows from [`Mirror::get`](super::Mirror::get): pass them to
    /// [`Planner::absent`](super::Planner::absent).
    Absent(Vec<RowId>),
    /// The pass is over. The next step begins another one.
    Done(Pass),
}

/// A pass that is over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pass {
    /// Its number in this planner, from 1.
    pub number: u64,
    /// Whether every row of the list was certainly read, from its beginning. An incomplete pass
    /// counts for no deletion.
    pub is_complete: bool,
    /// The number of requests for pages.
    pub pages: u64,
    /// The number of distinct rows.
    pub rows: u64,
    /// The list's own number of rows, from the last page.
    pub total: Option<u64>,
    /// Rows that differ from the mirror, found or not: for most of them an event is on its way.
    pub differing: u64,
    /// Rows that are in the mirror and were not in the list.
    pub absent: u64,
    /// Findings, without unresolved rows.
    pub found: u64,
    /// Rows that are [unresolved](super::Reconciled::Unresolved).
    pub unresolved: u64,
    /// Names that several properties share. These properties are not compared, because events
    /// identify properties by name.
    pub ambiguous_names: Vec<String>,
}
