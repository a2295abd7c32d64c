//! Data models: tables with typed properties.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::property::check as check_of_type;
use super::{Property, RowData, Rows};

/// A data model with its rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DataModel {
    pub(crate) id: String,
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) icon: Icon,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) created_at: Box<str>,
    #[serde(default)]
    pub(crate) updated_at: Box<str>,
    #[serde(default)]
    pub(crate) properties: Vec<Property>,
    #[serde(default)]
    pub(crate) rows: Rows,
    /// Fields of a request that the specification does not show, kept as they came.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) extra: Map<String, Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Icon {
    pub(crate) r#type: String,
    pub(crate) name: String,
}

impl Default for Icon {
    fn default() -> Self {
        Self {
            r#type: "emoji".to_owned(),
            name: "box".to_owned(),
        }
    }
}

impl DataModel {
    /// Returns the data model as the API shows it.
    pub(crate) fn shown(&self, with_properties: bool, with_row_count: bool) -> Value {
        let mut shown = self.extra.clone();
        let mut set = |name: &str, value: Value| shown.insert(name.to_owned(), value);
        set("id", json!(self.id));
        set("title", json!(self.title));
        set("icon", json!(self.icon));
        set("description", json!(self.description));
        set("createdAt", json!(self.created_at));
        set("updatedAt", json!(self.updated_at));
        if with_properties {
            set("properties", json!(self.properties));
        }
        if with_row_count {
            set("rowCount", json!(self.rows.len()));
        }
        Value::Object(shown)
    }

    /// Sets what a seed has left out.
    pub(crate) fn fill(&mut self, now: &str) {
        if self.created_at.is_empty() {
            self.created_at = now.into();
        }
        if self.updated_at.is_empty() {
            self.updated_at = self.created_at.clone();
        }
        for (property, place) in self.properties.iter_mut().zip(1..) {
            property.order.get_or_insert(place);
        }
        self.rows.fill(&self.created_at);
    }

    pub(crate) fn property(&self, id: &str) -> Option<&Property> {
        self.properties.iter().find(|property| property.id == id)
    }

    /// Checks the values of a request, by property id.
    ///
    /// # Errors
    /// A sentence that names the property.
    pub(crate) fn check(&self, values: &RowData) -> Result<(), String> {
        values
            .iter()
            .try_for_each(|(id, value)| check_value(&self.id, &self.properties, id, value))
    }

    /// Returns values by property name, as events carry them.
    pub(crate) fn by_name<'a>(&'a self, data: &'a RowData) -> BTreeMap<&'a str, &'a Value> {
        let named = data.iter().filter_map(|(id, value)| {
            let property = self.property(id)?;
            Some((&*property.name, value))
        });
        named.collect()
    }
}

/// Checks a value for the property with this id.
///
/// # Errors
/// A sentence that names the property.
pub(crate) fn check_value(
    model: &str,
    properties: &[Property],
    id: &str,
    value: &Value,
) -> Result<(), String> {
    let Some(property) = properties.iter().find(|property| property.id == id) else {
        let known: Vec<_> = properties.iter().map(|known| &*known.id).collect();
        let known = known.join(", ");
        return Err(format!(
            "property `{id}` does not exist in data model `{model}`, expected one of: {known}"
        ));
    };
    check_of_type(property, value)
}
