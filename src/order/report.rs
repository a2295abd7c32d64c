//! The reports of a guard.

use super::judge::{GapReason, Order};
use crate::event::{DataModelId, RowId};
use crate::walk::Delivery;

/// An event about a row that was handled.
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
    /// Whether another event of the row was handled and recorded while this one was: the effect of the older one may be the
    /// last. The record is that of the newer one.
    pub has_overlapped: bool,
}

/// The sign that an event of a row was missed, or has not come yet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Gap {
    /// The delivery that shows it.
    pub delivery: Delivery,
    /// The data model of the row.
    pub model: DataModelId,
    /// The row.
    pub row: RowId,
    /// The reason.
    pub reason: GapReason,
}
