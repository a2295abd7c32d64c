//! The mirror: the states of rows, and where they are kept.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hookgate::{
    dedupe::{StoreError, StoreFuture},
    event::{DataModelId, RowId},
};

use super::row_state::RowState;

/// Remembers the state of each row as the handled events and repairs left it.
///
/// A program calls [`feed`](super::feed()) with each handled event. The reconciliation compares the
/// service's rows with these states. [`MemoryMirror`](super::MemoryMirror) forgets at a restart;
/// `SqliteMirror` and `PostgresMirror` (features `sqlite`, `postgres`) do not. All of them pass
/// [`contract::check`](super::contract::check); your own mirror must pass it too.
///
/// 1. **A write is one indivisible step** that succeeds only on the state that the writer has read:
///    [`swap`](Self::swap).
/// 2. **A revision is never used twice for one row**, until the row is [forgotten](Self::forget).
///    So an unchanged revision means that nothing was written.
/// 3. Rows of two data models are two rows, even with the same id.
pub trait Mirror: fmt::Debug + Send + Sync + 'static {
    /// Returns the states of these rows. A row without a state is omitted.
    fn get<'a>(
        &'a self,
        model: &'a DataModelId,
        rows: &'a [RowId],
    ) -> StoreFuture<'a, Vec<(RowId, Mirrored)>>;

    /// Returns the states of at most `limit` rows whose ids are greater than `after`, in the order
    /// of the ids' bytes. Only the last call returns fewer than `limit`.
    fn list<'a>(
        &'a self,
        model: &'a DataModelId,
        after: Option<&'a RowId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(RowId, Mirrored)>>;

    /// Writes the row's state with the revision `revision + 1`, if its present revision is
    /// `revision`. A row without a state has revision 0. Returns whether it was written.
    fn swap<'a>(
        &'a self,
        model: &'a DataModelId,
        row: &'a RowId,
        revision: u64,
        state: RowState,
    ) -> StoreFuture<'a, bool>;

    /// Forgets this data model's [deleted](super::Life::Deleted) rows whose states were written at
    /// least `age` ago, by the mirror's own clock. Returns their number. A forgotten row has no
    /// state, and its next revision is 1.
    ///
    /// [`Reconcile`](super::Reconcile) calls it after each complete pass: see
    /// [`Settings::keep_deleted`](super::Settings::keep_deleted).
    fn forget<'a>(&'a self, model: &'a DataModelId, age: Duration) -> StoreFuture<'a, u64>;

    /// Whether [`swap`](Self::swap) is an error: passes then put no row in doubt. `false` by
    /// default.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Whether to keep the values of rows beside their hashes. Then a finding has the earlier
    /// values, and the mirror has a copy of the data. `false` by default.
    fn keeps_values(&self) -> bool {
        false
    }
}

/// A row's state, with the number of times that it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirrored {
    /// Counts the writes of this row, from 1.
    pub revision: u64,
    /// The state.
    pub state: RowState,
}

pub(super) async fn one(
    mirror: &(impl Mirror + ?Sized),
    model: &DataModelId,
    row: &RowId,
) -> Result<Option<Mirrored>, StoreError> {
    let rows = std::slice::from_ref(row);
    Ok(mirror.get(model, rows).await?.pop().map(|(_, state)| state))
}

impl<M: Mirror + ?Sized> Mirror for Arc<M> {
    fn get<'a>(
        &'a self,
        model: &'a DataModelId,
        rows: &'a [RowId],
    ) -> StoreFuture<'a, Vec<(RowId, Mirrored)>> {
        (**self).get(model, rows)
    }

    fn list<'a>(
        &'a self,
        model: &'a DataModelId,
        after: Option<&'a RowId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(RowId, Mirrored)>> {
        (**self).list(model, after, limit)
    }

    fn swap<'a>(
        &'a self,
        model: &'a DataModelId,
        row: &'a RowId,
        revision: u64,
        state: RowState,
    ) -> StoreFuture<'a, bool> {
        (**self).swap(model, row, revision, state)
    }

    fn forget<'a>(&'a self, model: &'a DataModelId, age: Duration) -> StoreFuture<'a, u64> {
        (**self).forget(model, age)
    }

    fn is_read_only(&self) -> bool {
        (**self).is_read_only()
    }

    fn keeps_values(&self) -> bool {
        (**self).keeps_values()
    }
}
