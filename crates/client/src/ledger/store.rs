//! Where the entries are kept.

use hookgate::dedupe::StoreFuture;

use super::entry::{Entry, Place};
use crate::reconcile::RowHash;

/// A store of entries. Every store passes the tests in `tests/it/ledger/contract.rs`.
///
/// 1. **A change is one indivisible step** that succeeds only on the revision that was read: [`swap`](Self::swap).
/// 2. Numbers rise, and none is used twice.
pub(super) trait Store: Send + Sync + 'static {
    /// Adds one copy of the entry for each hash in `written`, with revision 1, and removes the entries outside the bounds. Returns the
    /// numbers of the new entries.
    fn add<'a>(
        &'a self,
        entry: &'a Entry,
        written: &'a [RowHash],
        bounds: Bounds,
    ) -> StoreFuture<'a, Vec<i64>>;

    /// Returns the entries at these places, three at most, in the order of their numbers.
    fn find<'a>(&'a self, places: &'a [Place]) -> StoreFuture<'a, Vec<Kept>>;

    /// If the present revision is `revision`, writes `entry` with the next revision, or removes the stored entry where `entry` is `None`.
    /// Returns whether it did so. The writer, the time and the written values of an entry never change.
    fn swap(&self, number: i64, revision: i64, entry: Option<Entry>) -> StoreFuture<'_, bool>;

    #[cfg(feature = "postgres")]
    fn migrate(&self) -> StoreFuture<'_, ()> {
        StoreFuture::ready(Ok(()))
    }
}

/// Which entries are forgotten.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Those that were written before this time.
    pub(super) oldest: i64,
    /// Those that are not among the last `capacity` entries.
    pub(super) capacity: u64,
}

impl Bounds {
    /// The least number that is kept.
    pub(super) fn least(self, last: i64) -> i64 {
        last.saturating_sub_unsigned(self.capacity)
            .saturating_add(1)
    }
}

/// An entry as it is kept.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(super) number: i64,
    pub(super) revision: i64,
    pub(super) entry: Entry,
}
