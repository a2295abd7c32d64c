//! The content of row events.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::changes::Changes;
use super::ids::{ActorId, DataModelId, RowId};
use super::json::Fields;
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

impl<R: Serialize> Serialize for RowCreated<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("datamodelId", &self.datamodel_id)?;
        map.serialize_entry("datamodelName", &self.datamodel_name)?;
        map.serialize_entry("rowId", &self.row_id)?;
        map.serialize_entry("properties", &self.properties)?;
        if self.created_by.is_some() || self.actor_is_null {
            map.serialize_entry("createdBy", &self.created_by)?;
        }
        self.extra.write_into(&mut map)?;
        map.end()
    }
}

impl Serialize for RowUpdated {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("datamodelId", &self.datamodel_id)?;
        map.serialize_entry("datamodelName", &self.datamodel_name)?;
        map.serialize_entry("rowId", &self.row_id)?;
        map.serialize_entry("changes", &self.changes)?;
        if self.updated_by.is_some() || self.actor_is_null {
            map.serialize_entry("updatedBy", &self.updated_by)?;
        }
        self.extra.write_into(&mut map)?;
        map.end()
    }
}

impl Serialize for RowDeleted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("datamodelId", &self.datamodel_id)?;
        map.serialize_entry("datamodelName", &self.datamodel_name)?;
        map.serialize_entry("rowId", &self.row_id)?;
        if self.deleted_by.is_some() || self.actor_is_null {
            map.serialize_entry("deletedBy", &self.deleted_by)?;
        }
        self.extra.write_into(&mut map)?;
        map.end()
    }
}

impl Serialize for Actor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("name", &self.name)?;
        if self.email.is_some() || self.email_is_null {
            map.serialize_entry("email", &self.email)?;
        }
        self.extra.write_into(&mut map)?;
        map.end()
    }
}

/// Shows only ids, and nothing of the row's type.
impl<R> fmt::Debug for RowCreated<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowCreated")
            .field("datamodel_id", &self.datamodel_id)
            .field("row_id", &self.row_id)
            .field("created_by", &self.created_by)
            .finish_non_exhaustive()
    }
}

/// Shows only ids and names of properties.
impl fmt::Debug for RowUpdated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowUpdated")
            .field("datamodel_id", &self.datamodel_id)
            .field("row_id", &self.row_id)
            .field("changes", &self.changes)
            .field("updated_by", &self.updated_by)
            .finish_non_exhaustive()
    }
}

/// Shows only ids.
impl fmt::Debug for RowDeleted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowDeleted")
            .field("datamodel_id", &self.datamodel_id)
            .field("row_id", &self.row_id)
            .field("deleted_by", &self.deleted_by)
            .finish_non_exhaustive()
    }
}

/// Shows only the id: the other fields are personal data.
impl fmt::Debug for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Actor")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
