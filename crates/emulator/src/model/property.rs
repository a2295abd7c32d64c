//! Properties: the columns of a data model, and the check of a value against the type of its
//! property.

use hookgate::event::Date;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::form::{Misfit, Step, described, subject};

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
    /// Whether it is a relation to this data model.
    pub(crate) fn is_to(&self, model: &str) -> bool {
        let target = self.relation_config.as_ref();
        target.is_some_and(|target| target.target_data_model_id == model)
    }

    /// Checks what the form does not say. Id and name become keys of JSON objects.
    ///
    /// # Errors
    /// The first wrong part. The message has its value and the expected form, and does not name the
    /// property.
    fn check(&self, is_model: impl Fn(&str) -> bool) -> Result<(), Misfit> {
        for (field, key) in [("id", &self.id), ("name", &self.name)] {
            if key.starts_with(RESERVED) {
                let told = format!(
                    "`{field}` is a text that begins with {RESERVED}, expected another one"
                );
                return Err(Misfit::new([Step::Field(field)], told));
            }
        }
        let missing = |field, expected| {
            let told = format!("`{field}` is missing, expected {expected}");
            Err(Misfit::new([Step::Field(field)], told))
        };
        match self.r#type {
            PropertyType::Select if self.options.iter().flatten().next().is_none() => {
                return missing("options", "at least one option of a SELECT");
            }
            PropertyType::Relation if self.relation_config.is_none() => {
                return missing("relationConfig", "the data model of a RELATION");
            }
            _ => {}
        }
        let options = self.options.as_deref().unwrap_or_default();
        for (at, option) in options.iter().enumerate() {
            let before = options[..at].iter().map(|other| &*other.value);
            check_distinct("value", "option", &option.value, before).map_err(|told| {
                let path = [Step::Field("options"), Step::Item(at), Step::Field("value")];
                Misfit::new(path, format!("`options` item {at}: {told}"))
            })?;
        }
        let target = self.relation_config.as_ref();
        match target.map(|target| &target.target_data_model_id) {
            Some(target) if !is_model(target) => {
                let path = ["relationConfig", "targetDataModelId"];
                let told = format!(
                    "`relationConfig` names the data model {target:?}, which does not exist, expected one that does"
                );
                Err(Misfit::new(path.map(Step::Field), told))
            }
            _ => Ok(()),
        }
    }
}

/// Checks properties that are added to these of a data model. An event has one value for each name.
///
/// # Errors
/// The first wrong one.
pub(crate) fn check_properties(
    kept: &[Property],
    added: &[Property],
    is_model: impl Fn(&str) -> bool,
) -> Result<(), Misfit> {
    for (at, property) in added.iter().enumerate() {
        let before = kept.iter().chain(&added[..at]);
        let before = before.map(|other| &*other.name);
        let name = check_distinct("name", "property", &property.name, before);
        let name = name.map_err(|told| Misfit::new([Step::Field("name")], told));
        name.and_then(|()| property.check(&is_model))
            .map_err(|mut misfit| {
                misfit.path.insert(0, Step::Item(at));
                let subject = subject(at, Some(&property.name));
                misfit.message.insert_str(0, &format!("{subject}: "));
                misfit
            })?;
    }
    Ok(())
}

/// Checks a text that a person tells from those of the others: by more than white space around.
///
/// # Errors
/// The sentence names the text and the expected form.
fn check_distinct<'a>(
    field: &str,
    kind: &str,
    text: &str,
    mut others: impl Iterator<Item = &'a str>,
) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err(format!(
            "`{field}` is {text:?}, expected more than white space"
        ));
    }
    match others.find(|other| other.trim() == text.trim()) {
        None => Ok(()),
        Some(other) if other == text => Err(format!(
            "`{field}` is {text:?}, which another {kind} has, expected each {field} once"
        )),
        Some(other) => Err(format!(
            "`{field}` is {text:?}, and another {kind} has {other:?}, expected more than white space to differ"
        )),
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
    pub(crate) target_data_model_id: String,
    #[serde(default = "many_to_one")]
    pub(crate) relationship_type: String,
}

/// The one value that the specification shows. It does not say that there is no other, so any text
/// is taken.
fn many_to_one() -> String {
    "MANY_TO_ONE".to_owned()
}

/// Checks a value. `null` clears a property of any type.
///
/// # Errors
/// A sentence that names the property and the expected form.
pub(crate) fn check(property: &Property, value: &Value) -> Result<(), String> {
    if value.is_null() || is_of(property, value) {
        return Ok(());
    }
    let (id, name) = (&property.id, &property.name);
    let (expected, got) = (expected(property), got(property, value));
    Err(format!(
        "property `{id}` ({name}) expects {expected}, got {got}"
    ))
}

fn is_of(property: &Property, value: &Value) -> bool {
    let strings = |value: &Value| {
        let items = value.as_array();
        items.is_some_and(|items| items.iter().all(Value::is_string))
    };
    match property.r#type {
        PropertyType::Text => value.is_string(),
        PropertyType::Number | PropertyType::Currency => value.is_number(),
        PropertyType::Date => value.as_str().is_some_and(|text| Date::parse(text).is_ok()),
        PropertyType::Select => {
            let options = property.options.as_deref().unwrap_or_default();
            options.iter().any(|option| value == option.value.as_str())
        }
        PropertyType::MultiSelect | PropertyType::Relation => strings(value),
        PropertyType::Checkbox => value.is_boolean(),
        PropertyType::File => {
            let is_file = |file: &Value| file["url"].is_string() && file["name"].is_string();
            let files = value.as_array();
            files.is_some_and(|files| files.iter().all(is_file))
        }
    }
}

fn expected(property: &Property) -> String {
    let text = match property.r#type {
        PropertyType::Text => "a string",
        PropertyType::Number | PropertyType::Currency => "a number",
        PropertyType::Date => "a date (YYYY-MM-DD) or a date-time with zone, in ISO 8601",
        PropertyType::Select => {
            let options = property.options.as_deref().unwrap_or_default();
            let values: Vec<_> = options.iter().map(|option| &*option.value).collect();
            return format!("one of its options ({})", values.join(", "));
        }
        PropertyType::MultiSelect => "an array of strings",
        PropertyType::Checkbox => "a boolean",
        PropertyType::Relation => "an array of row ids",
        PropertyType::File => "an array of objects with url and name",
    };
    text.to_owned()
}

/// Describes a wrong value. In an array it describes the first wrong item.
fn got(property: &Property, value: &Value) -> String {
    let Value::Array(items) = value else {
        return described(value);
    };
    let wrong = items.iter().enumerate().find_map(|(at, item)| {
        let wrong = match property.r#type {
            PropertyType::MultiSelect | PropertyType::Relation if !item.is_string() => {
                described(item)
            }
            PropertyType::File if !item.is_object() => described(item),
            PropertyType::File => {
                let is_missing = |name: &&str| !item[*name].is_string();
                let missing = ["url", "name"].into_iter().find(is_missing)?;
                format!("an object without the string {missing}")
            }
            _ => return None,
        };
        Some(format!("an array whose item {at} is {wrong}"))
    });
    wrong.unwrap_or_else(|| described(value))
}
