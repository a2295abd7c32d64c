//! The content of row events.

use std::fmt;

use serde::Serialize;

use super::changes::Changes;
use super::fields::Fields;
use super::ids::{ActorId, DataModelId, RowId};
use super::properties::Properties;

/// A row was first created. `R` is the type of its properties, by default [`Properties`].
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Actor>,
    /// Fields that the specification does not name, and `createdBy` where it is `null`.
    #[serde(flatten)]
    pub extra: Fields,
}

/// A row's properties changed.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<Actor>,
    /// Fields that the specification does not name, and `updatedBy` where it is `null`.
    #[serde(flatten)]
    pub extra: Fields,
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
        }
    }
}

/// A row was deleted.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted_by: Option<Actor>,
    /// Fields that the specification does not name, and `deletedBy` where it is `null`.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The user who caused an event.
#[derive(Clone, Serialize)]
#[non_exhaustive]
pub struct Actor {
    /// The user's id.
    pub id: ActorId,
    /// The user's name.
    pub name: String,
    /// The user's e-mail address. Never present in a `row.deleted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Fields that the specification does not name, and `email` where it is `null`.
    #[serde(flatten)]
    pub extra: Fields,
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
