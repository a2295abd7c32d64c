//! An event about a row, reduced to its place in the order.

use hookgate::{
    Delivery, Event, EventData,
    dedupe::EventKey,
    event::{DataModelId, EventError, RowId},
};

use super::known::{Changed, NameHash, ValueHash, of_changes, of_properties};
use super::moment::Moment;

/// An event about a row.
#[derive(Clone, Debug)]
pub(crate) struct RowEvent {
    /// The key of the row's record: 128 bits of SHA-256 over scope, data model and row.
    pub(crate) row_key: [u8; 16],
    pub(crate) model: DataModelId,
    pub(crate) row: RowId,
    /// The key of the event.
    pub(super) event: [u8; 16],
    pub(super) at: Option<Moment>,
    pub(super) change: RowChange,
}

#[derive(Clone, Debug)]
pub(super) enum RowChange {
    Created(Vec<(NameHash, ValueHash)>),
    Updated(Vec<Changed>),
    Deleted,
}

impl RowEvent {
    /// Reads the whole event. `None` if it is not about a row.
    pub(crate) fn read(delivery: &Delivery) -> Result<Option<Self>, EventError> {
        let event: Event = delivery.event()?;
        let (Some(model), Some(row)) = (event.data.datamodel_id(), event.data.row_id()) else {
            return Ok(None);
        };
        let change = match &event.data {
            EventData::RowCreated(row) => RowChange::Created(of_properties(&row.properties)),
            EventData::RowUpdated(row) => RowChange::Updated(of_changes(&row.changes)),
            EventData::RowDeleted(_) => RowChange::Deleted,
            _ => return Ok(None),
        };
        let scope = delivery.verified().scope();
        let key = EventKey::from_names([scope, model.as_str(), row.as_str()]);
        Ok(Some(Self {
            row_key: *key.as_bytes(),
            model: model.clone(),
            row: row.clone(),
            event: *delivery.key().as_bytes(),
            at: Moment::read(event.created_at.as_str()),
            change,
        }))
    }

    pub(crate) fn is_update(&self) -> bool {
        matches!(self.change, RowChange::Updated(_))
    }
}
