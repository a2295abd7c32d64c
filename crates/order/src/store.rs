//! The store of the records: two calls.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hookgate::dedupe::StoreFuture;

use super::last::LastHandled;

/// Remembers the newest handled event of each row.
///
/// `row` is a digest of the receiver's scope, the data model and the row: 128 bits of SHA-256.
/// [`MemoryOrderStore`](super::MemoryOrderStore) forgets at a restart; `SqliteStore` and `PostgresStore` (packages
/// `hookgate-sqlite`, `hookgate-postgres`, feature `order`) do not. All of them, and your own, pass [`contract::check`](super::contract::check).
///
/// 1. **A write is one indivisible step** that succeeds only on the record that the writer has read: [`swap`](Self::swap).
/// 2. **A revision is never used twice for one row**, not even after its record has ended, and is never 0. So an unchanged
///    revision means that nothing was written.
/// 3. **A record ends after its retention**, and not before, unless a store in memory is full. An ended record is treated as
///    absent.
/// 4. **An error means unknown**: the write may or may not have taken effect.
pub trait OrderStore: fmt::Debug + Send + Sync + 'static {
    /// Returns the row's record with its revision.
    fn last<'a>(&'a self, row: &'a [u8; 16]) -> StoreFuture<'a, Option<(u64, LastHandled)>>;

    /// Writes the row's record with another revision, and keeps it for `retain` from now, if its present revision is
    /// `revision`: 0 for a row without a record. Returns whether it was written.
    fn swap<'a>(
        &'a self,
        row: &'a [u8; 16],
        revision: u64,
        last: LastHandled,
        retain: Duration,
    ) -> StoreFuture<'a, bool>;
}

/// A shared store is a store.
impl<S: OrderStore + ?Sized> OrderStore for Arc<S> {
    fn last<'a>(&'a self, row: &'a [u8; 16]) -> StoreFuture<'a, Option<(u64, LastHandled)>> {
        (**self).last(row)
    }

    fn swap<'a>(
        &'a self,
        row: &'a [u8; 16],
        revision: u64,
        last: LastHandled,
        retain: Duration,
    ) -> StoreFuture<'a, bool> {
        (**self).swap(row, revision, last, retain)
    }
}
