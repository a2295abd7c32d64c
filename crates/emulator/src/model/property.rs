//! Properties: the columns of a data model.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// serde_json's own keys. A value below one would be parsed again and again.
const RESERVED: &str = "$serde_json::private::";

/// A property, as the specification lists its fields.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Property {
    #[serde(default)]
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) r#type: PropertyType,
    #[serde(default)]
    pub(crate) order: Option<i64>,
    #[serde(default = "yes")]
    pub(crate) visible: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) options: Option<Vec<Choice>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) relation_config: Option<RelationConfig>,
}

impl Property {
    /// Checks what the form does not say. Id and name become keys of JSON objects.
    ///
    /// # Errors
    /// The field, and a sentence that states the expected form.
    fn check(&self) -> Result<(), (&'static str, String)> {
        for (field, key) in [("id", &self.id), ("name", &self.name)] {
            if key.starts_with(RESERVED) {
                let message = format!("a text that begins with {RESERVED}, expected another one");
                return Err((field, message));
            }
        }
        let (field, expected) = match self.r#type {
            _ if self.name.is_empty() => ("name", "at least one character"),
            PropertyType::Select if self.options.iter().flatten().next().is_none() => {
                ("options", "at least one option of a SELECT")
            }
            PropertyType::Relation if self.relation_config.is_none() => {
                ("relationConfig", "the data model of a RELATION")
            }
            _ => return Ok(()),
        };
        Err((field, format!("missing, expected {expected}")))
    }
}

/// Checks the properties of one data model. An event has one value for each name.
///
/// # Errors
/// The place and the field of the first wrong one, and a sentence that states the expected form.
pub(crate) fn check_properties(
    properties: &[Property],
) -> Result<(), (usize, &'static str, String)> {
    let mut names = BTreeSet::new();
    for (at, property) in properties.iter().enumerate() {
        let checked = property.check();
        checked.map_err(|(field, message)| (at, field, message))?;
        if !names.insert(&property.name) {
            let message = format!(
                "{:?}, which another property has, expected each name once",
                property.name
            );
            return Err((at, "name", message));
        }
    }
    Ok(())
}

fn yes() -> bool {
    true
}

/// The type names that the specification shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum PropertyType {
    Text,
    Number,
    Date,
    Select,
    MultiSelect,
    Checkbox,
    Relation,
    File,
    Currency,
}

/// An option of a SELECT.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Choice {
    pub(crate) value: String,
    #[serde(default)]
    pub(crate) label: String,
    #[serde(default)]
    pub(crate) color: String,
}

/// The target of a RELATION.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RelationConfig {
    #[serde(default)]
    pub(crate) target_data_model_id: String,
    #[serde(default = "many_to_one")]
    pub(crate) relationship_type: String,
}

/// The one value that the specification shows.
fn many_to_one() -> String {
    "MANY_TO_ONE".to_owned()
}
