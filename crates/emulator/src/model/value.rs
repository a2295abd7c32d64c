//! Checks a value against the type of its property.

use hookgate::event::Date;
use serde_json::Value;

use super::form::described;
use super::{Property, PropertyType};

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
