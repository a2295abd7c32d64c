//! Data models: tables with typed properties.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Property, RowData, Rows, value, weight};

/// A data model with its rows.
#[derive(Clone, Debug)]
pub(crate) struct DataModel {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) icon: Icon,
    pub(crate) description: String,
    pub(crate) created_at: Box<str>,
    pub(crate) updated_at: Box<str>,
    pub(crate) properties: Vec<Property>,
    /// Fields of a request that the specification does not show, kept as they came.
    pub(crate) extra: Map<String, Value>,
    pub(crate) rows: Rows,
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

    /// Returns about how many bytes it takes, without its rows.
    pub(crate) fn own_bytes(&self) -> usize {
        let properties = self.properties.iter().map(Property::bytes);
        let texts = [&self.id, &self.title, &self.description, &self.icon.name];
        let texts: usize = texts.iter().map(|text| text.len()).sum();
        texts + self.icon.r#type.len() + properties.sum::<usize>() + weight::of_fields(&self.extra)
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

    /// Returns values by property name, as events carry them. A property whose name another one has too is left out.
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
    value::check(property, value)
}
