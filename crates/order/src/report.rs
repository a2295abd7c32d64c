//! The report of a guard.

use hookgate::{
    Delivery,
    event::{DataModelId, RowId},
};

use super::judge::{GapReason, Order};

/// A handled event about a row.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ordered {
    /// The delivery.
    pub delivery: Delivery,
    /// The data model of the row.
    pub model: DataModelId,
    /// The row.
    pub row: RowId,
    /// The order that the handler was told.
    pub order: Order,
    /// Whether another event of the row was handled and recorded at the same time, by another process or another guard: the handler of
    /// the older event may have written last. The record belongs to the newer event.
    pub has_overlapped: bool,
    /// The sign that another event of the row was missed, or has not come yet.
    pub gap: Option<GapReason>,
}
