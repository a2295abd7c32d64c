//! Properties: the columns of a data model.

use serde::{Deserialize, Serialize};

use crate::json;

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
    #[serde(
        default,
        deserialize_with = "json::objects_or_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) options: Option<Vec<Choice>>,
    #[serde(
        default,
        deserialize_with = "json::object_or_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) relation_config: Option<RelationConfig>,
}

impl Property {
    /// Checks what the form does not say. Id and name become keys of JSON objects.
    ///
    /// # Errors
    /// The field, and a sentence that states the expected form.
    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        for (field, key) in [("id", &self.id), ("name", &self.name)] {
            if key.starts_with(RESERVED) {
                let message = format!("a text that begins with {RESERVED}, expected another one");
                return Err((field, message));
            }
        }
        Ok(())
    }

    /// Returns about how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        let choices = self.options.iter().flatten();
        let choices = choices.map(|choice| {
            size_of::<Choice>() + choice.value.len() + choice.label.len() + choice.color.len()
        });
        let target = self.relation_config.as_ref();
        let target = target.map_or(0, |target| {
            target.target_data_model_id.len() + target.relationship_type.len()
        });
        size_of::<Self>() + self.id.len() + self.name.len() + choices.sum::<usize>() + target
    }
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
