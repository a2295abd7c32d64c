//! The content of row events.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::changes::Changes;
use super::fields::Fields;
use super::ids::{ActorId, DataModelId, RowId};
use super::properties::Properties;

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
    /// The user who created it. `None` where `createdBy` is `null` or absent: the specification does not say that it is
    /// always present.
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
    /// The user who changed it. `None` where `updatedBy` is `null` or absent: the specification does not say that it is
    /// always present.
    pub updated_by: Option<Actor>,
    /// Fields that the specification does not name.
    pub extra: Fields,
    /// Whether the actor is present as `null`, so that the row is written again as it was read.
    pub(super) actor_is_null: bool,
}

impl RowUpdated {
    /// Returns the row whose changes were read as its properties, and its actor as its creator.
    pub(super) fn of(row: RowCreated<Changes>) -> Self {
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
    /// The user who deleted it. `None` where `deletedBy` is `null` or absent: the specification does not say that it is
    /// always present.
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

/// Writes the optional field, also where it was `null`, and the fields that the specification does not name.
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
pub(super) use debug;

// Only ids and names of properties, and nothing of the row's type. The other fields are personal data.
debug! { RowCreated<R> { datamodel_id, row_id, created_by } }
debug! { RowUpdated { datamodel_id, row_id, changes, updated_by } }
debug! { RowDeleted { datamodel_id, row_id, deleted_by } }
debug! { Actor { id } }
