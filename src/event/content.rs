//! An event and its content.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::date::DateText;
use super::fields::Fields;
use super::ids::{DataModelId, EventId, EventType, RowId, WorkspaceId};
use super::json::Json;
use super::properties::Properties;
use super::row::{RowCreated, RowDeleted, RowUpdated, debug};

/// One event, from bytes that were verified as authentic. See the [module docs](super).
///
/// ```compile_fail
/// let forged: hookgate::Event = serde_json::from_str("{}").unwrap();
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Event<R = Properties> {
    /// The event's id.
    pub id: EventId,
    /// The time of the event, as the service sent it.
    pub created_at: DateText,
    /// The workspace of the event.
    pub workspace_id: WorkspaceId,
    /// The content of the event: `data`, by `type`.
    pub data: EventData<R>,
    /// Fields of the envelope that the specification does not name.
    pub extra: Fields,
}

/// The content of an event: `data`, by `type`.
#[derive(Clone)]
#[non_exhaustive]
pub enum EventData<R = Properties> {
    /// `row.created`.
    RowCreated(RowCreated<R>),
    /// `row.updated`.
    RowUpdated(RowUpdated),
    /// `row.deleted`.
    RowDeleted(RowDeleted),
    /// Any other type. The specification shows no payload of `page.*` and `member.*`.
    Other(Other),
}

/// An event of a type whose payload this crate does not know.
#[derive(Clone)]
#[non_exhaustive]
pub struct Other {
    /// The event's type.
    pub event_type: EventType,
    /// Its payload as it was written, or `null` where it is missing: the specification shows no payload of these types, so a
    /// missing one is not an error.
    pub data: Json,
    /// Whether the payload is missing, so that the event is written again as it was read.
    pub(super) data_is_absent: bool,
}

impl<R> Event<R> {
    /// The event's type, such as `row.created`.
    #[must_use]
    pub fn event_type(&self) -> &str {
        self.data.event_type()
    }

    /// The data model of the event's row, if the event is about a row.
    #[must_use]
    pub fn datamodel_id(&self) -> Option<&DataModelId> {
        self.data.datamodel_id()
    }
}

impl<R> EventData<R> {
    /// The event's type, such as `row.created`.
    #[must_use]
    pub fn event_type(&self) -> &str {
        match self {
            Self::RowCreated(_) => "row.created",
            Self::RowUpdated(_) => "row.updated",
            Self::RowDeleted(_) => "row.deleted",
            Self::Other(other) => other.event_type.as_str(),
        }
    }

    /// The data model of the event's row, if the event is about a row.
    #[must_use]
    pub fn datamodel_id(&self) -> Option<&DataModelId> {
        self.row().map(|(model, _)| model)
    }

    /// The event's row, if the event is about a row.
    #[must_use]
    pub fn row_id(&self) -> Option<&RowId> {
        self.row().map(|(_, row)| row)
    }

    fn row(&self) -> Option<(&DataModelId, &RowId)> {
        match self {
            Self::RowCreated(row) => Some((&row.datamodel_id, &row.row_id)),
            Self::RowUpdated(row) => Some((&row.datamodel_id, &row.row_id)),
            Self::RowDeleted(row) => Some((&row.datamodel_id, &row.row_id)),
            Self::Other(_) => None,
        }
    }
}

impl<R: Serialize> Serialize for Event<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("type", self.event_type())?;
        map.serialize_entry("createdAt", &self.created_at)?;
        map.serialize_entry("workspaceId", &self.workspace_id)?;
        match &self.data {
            EventData::RowCreated(row) => map.serialize_entry("data", row)?,
            EventData::RowUpdated(row) => map.serialize_entry("data", row)?,
            EventData::RowDeleted(row) => map.serialize_entry("data", row)?,
            EventData::Other(other) if other.data_is_absent => {}
            EventData::Other(other) => map.serialize_entry("data", &other.data)?,
        }
        for (name, value) in self.extra.iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

debug! { Event<R> { id, created_at, workspace_id, data, extra } }
debug! { Other { event_type, data } }

impl<R> fmt::Debug for EventData<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RowCreated(row) => row.fmt(f),
            Self::RowUpdated(row) => row.fmt(f),
            Self::RowDeleted(row) => row.fmt(f),
            Self::Other(other) => other.fmt(f),
        }
    }
}
