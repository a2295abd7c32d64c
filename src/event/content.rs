//! An event and its content: the rows of the service, and any other payload as raw JSON.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::date::DateText;
use super::fields::Fields;
use super::ids::{ActorId, DataModelId, EventId, EventType, RowId, WorkspaceId};
use super::json::Json;
use super::properties::{Changes, Properties};

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
    /// Its payload as it was written, or `null` where it is missing: the specification shows no
    /// payload of these types, so a missing one is not an error.
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

/// A row was first created. `R` is the type of its properties, by default [`Properties`].
#[derive(Clone)]
#[non_exhaustive]
pub struct RowCreated<R = Properties> {
    /// The data model that the row belongs to.
    pub datamodel_id: DataModelId,
    /// That data model's name.
    pub datamodel_name: String,
    /// The row.
    pub row_id: RowId,
    /// Its properties, by name.
    pub properties: R,
    /// The user who created it. `None` where `createdBy` is `null` or absent: the specification
    /// does not say that it is always present.
    pub created_by: Option<Actor>,
    /// Fields that the specification does not name.
    pub extra: Fields,
    /// Whether the actor is present as `null`, so that the row is written again as it was read.
    pub(super) actor_is_null: bool,
}

/// A row's properties changed.
#[derive(Clone)]
#[non_exhaustive]
pub struct RowUpdated {
    /// The data model that the row belongs to.
    pub datamodel_id: DataModelId,
    /// That data model's name.
    pub datamodel_name: String,
    /// The row.
    pub row_id: RowId,
    /// The changes, by property name.
    pub changes: Changes,
    /// The user who changed it. `None` where `updatedBy` is `null` or absent: the specification
    /// does not say that it is always present.
    pub updated_by: Option<Actor>,
    /// Fields that the specification does not name.
    pub extra: Fields,
    /// Whether the actor is present as `null`, so that the row is written again as it was read.
    pub(super) actor_is_null: bool,
}

impl RowUpdated {
    /// Returns the row whose changes were read as its properties, and its actor as its creator.
    pub(super) fn from_created(row: RowCreated<Changes>) -> Self {
        Self {
            datamodel_id: row.datamodel_id,
            datamodel_name: row.datamodel_name,
            row_id: row.row_id,
            changes: row.properties,
            updated_by: row.created_by,
            extra: row.extra,
            actor_is_null: row.actor_is_null,
        }
    }
}

/// A row was deleted.
#[derive(Clone)]
#[non_exhaustive]
pub struct RowDeleted {
    /// The data model that the row belonged to.
    pub datamodel_id: DataModelId,
    /// That data model's name.
    pub datamodel_name: String,
    /// The row.
    pub row_id: RowId,
    /// The user who deleted it. `None` where `deletedBy` is `null` or absent: the specification
    /// does not say that it is always present.
    pub deleted_by: Option<Actor>,
    /// Fields that the specification does not name.
    pub extra: Fields,
    /// Whether the actor is present as `null`, so that the row is written again as it was read.
    pub(super) actor_is_null: bool,
}

/// The user who caused an event.
#[derive(Clone)]
#[non_exhaustive]
pub struct Actor {
    /// The user's id.
    pub id: ActorId,
    /// The user's name.
    pub name: String,
    /// The user's e-mail address. Never present in a `row.deleted`.
    pub email: Option<String>,
    /// Fields that the specification does not name.
    pub extra: Fields,
    /// Whether the address is present as `null`, so that the actor is written again as it was read.
    pub(super) email_is_null: bool,
}

/// Implements `Serialize` for a row with its content, if it has one, and its actor.
macro_rules! serialize_row {
    ($type:ident $(<$row:ident>)?, $($content:ident,)? $key:literal: $actor:ident) => {
        impl $(<$row: Serialize>)? Serialize for $type $(<$row>)? {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("datamodelId", &self.datamodel_id)?;
                map.serialize_entry("datamodelName", &self.datamodel_name)?;
                map.serialize_entry("rowId", &self.row_id)?;
                $(map.serialize_entry(stringify!($content), &self.$content)?;)?
                end(map, $key, &self.$actor, self.actor_is_null, &self.extra)
            }
        }
    };
}
serialize_row! { RowCreated<R>, properties, "createdBy": created_by }
serialize_row! { RowUpdated, changes, "updatedBy": updated_by }
serialize_row! { RowDeleted, "deletedBy": deleted_by }

impl Serialize for Actor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("name", &self.name)?;
        end(map, "email", &self.email, self.email_is_null, &self.extra)
    }
}

/// Writes the optional field, also where it was `null`, and the fields that the specification does
/// not name.
fn end<M: SerializeMap, T: Serialize>(
    mut map: M,
    key: &'static str,
    value: &Option<T>,
    is_null: bool,
    extra: &Fields,
) -> Result<M::Ok, M::Error> {
    if value.is_some() || is_null {
        map.serialize_entry(key, value)?;
    }
    for (name, value) in extra.iter() {
        map.serialize_entry(name, value)?;
    }
    map.end()
}

/// Implements `Debug` with these fields only.
macro_rules! debug {
    ($type:ident $(<$row:ident>)? { $($field:ident),+ }) => {
        impl $(<$row>)? fmt::Debug for $type $(<$row>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($type))
                    $(.field(stringify!($field), &self.$field))+
                    .finish_non_exhaustive()
            }
        }
    };
}
// Only ids and names of properties, and nothing of the row's type. The other fields are personal
// data.
debug! { RowCreated<R> { datamodel_id, row_id, created_by } }
debug! { RowUpdated { datamodel_id, row_id, changes, updated_by } }
debug! { RowDeleted { datamodel_id, row_id, deleted_by } }
debug! { Actor { id } }
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
