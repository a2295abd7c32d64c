//! Data models and their properties.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A data model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DataModel {
    /// Its id, `dm_…`.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its icon.
    #[serde(default)]
    pub icon: Option<Icon>,
    /// Its description.
    #[serde(default)]
    pub description: Option<String>,
    /// Its properties: in the detail, and in a list with
    /// [`DataModels::details`](crate::DataModels::details).
    #[serde(default)]
    pub properties: Vec<Property>,
    /// The time of its creation, ISO 8601.
    #[serde(default)]
    pub created_at: Option<String>,
    /// The time of its last change, ISO 8601.
    #[serde(default)]
    pub updated_at: Option<String>,
    /// The fields that the specification does not name, the row count among them.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The icon of a data model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Icon {
    /// Its kind, such as `emoji`.
    pub r#type: String,
    /// Its name.
    pub name: String,
}

/// A property: a column of a data model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Property {
    /// Its id, `prop_…`.
    pub id: String,
    /// Its display name.
    pub name: String,
    /// Its type.
    pub r#type: PropertyType,
    /// Its place among the others.
    #[serde(default)]
    pub order: Option<i64>,
    /// Whether it is shown.
    #[serde(default)]
    pub visible: Option<bool>,
    /// The options of a SELECT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<SelectOption>>,
    /// The target of a RELATION.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation_config: Option<RelationConfig>,
}

/// An option of a SELECT.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SelectOption {
    /// The value that rows hold.
    pub value: String,
    /// The text that is shown.
    #[serde(default)]
    pub label: Option<String>,
    /// The colour's name.
    #[serde(default)]
    pub color: Option<String>,
}

/// The target of a RELATION.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RelationConfig {
    /// The data model of the related rows.
    pub target_data_model_id: String,
    /// The type of the relation, such as `MANY_TO_ONE`.
    #[serde(default)]
    pub relationship_type: Option<String>,
}

/// The type of a property: the nine that the specification shows, and any other by its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names of the specification")]
pub enum PropertyType {
    Text,
    Number,
    Date,
    Select,
    MultiSelect,
    Checkbox,
    Relation,
    File,
    Currency,
    /// A type that the specification does not show.
    Other(String),
}

impl PropertyType {
    /// The type's name, such as `MULTI_SELECT`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Text => "TEXT",
            Self::Number => "NUMBER",
            Self::Date => "DATE",
            Self::Select => "SELECT",
            Self::MultiSelect => "MULTI_SELECT",
            Self::Checkbox => "CHECKBOX",
            Self::Relation => "RELATION",
            Self::File => "FILE",
            Self::Currency => "CURRENCY",
            Self::Other(name) => name,
        }
    }
}

impl From<String> for PropertyType {
    fn from(name: String) -> Self {
        match &*name {
            "TEXT" => Self::Text,
            "NUMBER" => Self::Number,
            "DATE" => Self::Date,
            "SELECT" => Self::Select,
            "MULTI_SELECT" => Self::MultiSelect,
            "CHECKBOX" => Self::Checkbox,
            "RELATION" => Self::Relation,
            "FILE" => Self::File,
            "CURRENCY" => Self::Currency,
            _ => Self::Other(name),
        }
    }
}

impl From<PropertyType> for String {
    fn from(r#type: PropertyType) -> Self {
        r#type.as_str().to_owned()
    }
}

impl fmt::Display for PropertyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
