//! A row's event, in the form of entries.

use hookgate::{Event, EventData, dedupe::EventKey};

use super::entry::{Entry, Place};
use crate::reconcile::hash::{NameHash, ValueHash, name_hash, value_hash};
use crate::reconcile::{RowHash, row_state};

pub(super) struct Seen {
    pub(super) id: [u8; 16],
    pub(super) at: Option<i64>,
    /// The places of entries that may be the cause.
    pub(super) places: Vec<Place>,
    values: Values,
}

enum Values {
    Created(RowHash),
    /// The values after the update; `None` for an empty one.
    Updated(Vec<(NameHash, Option<ValueHash>)>),
    Deleted,
}

impl Seen {
    /// `None` for an event that is not about a row.
    pub(super) fn of(event: &Event) -> Option<Self> {
        let model = event.data.datamodel_id()?.as_str();
        let row_id = event.data.row_id()?.as_str();
        let (places, values) = match &event.data {
            EventData::RowCreated(row) => {
                let values = RowHash::of(&row.properties);
                let places = vec![
                    Place::created(model, row_id),
                    Place::creating(model),
                    Place::maybe_created(model, &values),
                ];
                (places, Values::Created(values))
            }
            EventData::RowUpdated(row) => {
                let changes = row.changes.iter().map(|(name, sides)| {
                    let after = sides.after.json();
                    (
                        name_hash(name),
                        after.and_then(|json| value_hash(name, json)),
                    )
                });
                let place = Place::updated(model, row_id);
                (vec![place], Values::Updated(changes.collect()))
            }
            EventData::RowDeleted(_) => (vec![Place::deleted(model, row_id)], Values::Deleted),
            _ => return None,
        };
        Some(Self {
            id: *EventKey::new(event.workspace_id.as_str(), event.id.as_str()).as_bytes(),
            at: row_state::micros(event.created_at.as_str()),
            places,
            values,
        })
    }

    /// Whether the event may carry the values of an answer that has not come: an update has no
    /// property that was not written.
    pub(super) fn may_carry(&self, entry: &Entry) -> bool {
        match &self.values {
            Values::Updated(changes) => {
                let mut changes = changes.iter();
                changes.len() > 0 && changes.all(|(name, _)| entry.written.knows(*name))
            }
            Values::Created(_) | Values::Deleted => true,
        }
    }

    /// Whether the event carries the values that were written or answered. A new row has all of
    /// them; an update has no other, and those that the row had before are not changes.
    pub(super) fn carries(&self, entry: &Entry) -> bool {
        let fits = |name, value| {
            let answered = entry.answered.as_ref();
            entry.written.value(name) == value
                || answered.is_some_and(|answered| answered.value(name) == value)
        };
        match &self.values {
            Values::Created(values) => {
                let mut names = values.names().chain(entry.written.names());
                names.all(|name| fits(name, values.value(name)))
            }
            Values::Updated(changes) => {
                let mut changes = changes.iter();
                self.may_carry(entry) && changes.all(|&(name, value)| fits(name, value))
            }
            Values::Deleted => true,
        }
    }
}
