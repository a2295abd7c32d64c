//! The form of the parts of a data model in JSON. The messages have the service's words, where
//! serde's have this program's types.

use serde_json::Value;

/// One step from a value to a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    Field(&'a str),
    Item(usize),
}

/// A part of a data model that the service would refuse.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// From the value that was checked to the part.
    pub(crate) path: Vec<Step<'static>>,
    /// The sentence for the user: it names the part and the expected form.
    pub(crate) message: String,
}

impl Misfit {
    pub(super) fn new<const N: usize>(path: [Step<'static>; N], message: String) -> Self {
        let path = path.to_vec();
        Self { path, message }
    }
}

/// The type names that the specification shows.
const TYPES: [&str; 9] = [
    "TEXT",
    "NUMBER",
    "DATE",
    "SELECT",
    "MULTI_SELECT",
    "CHECKBOX",
    "RELATION",
    "FILE",
    "CURRENCY",
];

const ICON: &[Field] = &[
    Field("type", Form::Text, Needed::No),
    Field("name", Form::Text, Needed::No),
];

const PROPERTY: &[Field] = &[
    Field("id", Form::Text, Needed::No),
    Field("name", Form::Text, Needed::Always),
    Field("type", Form::Type, Needed::Always),
    Field("order", Form::Integer, Needed::OrNull),
    Field("visible", Form::Flag, Needed::No),
    Field("options", Form::List(OPTION), Needed::OrNull),
    Field("relationConfig", Form::Object(RELATION), Needed::OrNull),
];

const OPTION: &[Field] = &[
    Field("value", Form::Text, Needed::Always),
    Field("label", Form::Text, Needed::No),
    Field("color", Form::Text, Needed::No),
];

const RELATION: &[Field] = &[
    Field("targetDataModelId", Form::Text, Needed::Always),
    Field("relationshipType", Form::Text, Needed::No),
];

enum Form {
    Text,
    Integer,
    Flag,
    Type,
    Object(&'static [Field]),
    /// An array of such objects.
    List(&'static [Field]),
}

/// A field of an object: its name, its form, and whether it may be left out.
struct Field(&'static str, Form, Needed);

enum Needed {
    Always,
    No,
    /// It may be null too.
    OrNull,
}

/// Names a property in a message: by its name, or by its place where it has none.
pub(super) fn subject(at: usize, name: Option<&str>) -> String {
    match name.filter(|name| !name.trim().is_empty()) {
        Some(name) => format!("property {name:?}"),
        None => format!("property {at}"),
    }
}

/// Checks the form of an array of properties, which has this name in the request.
///
/// # Errors
/// The first part of another form.
pub(crate) fn check_properties_form(field: &str, value: &Value) -> Result<(), Misfit> {
    let Value::Array(items) = value else {
        let message = format!(
            "`{field}` is {}, expected an array of properties",
            described(value)
        );
        return Err(Misfit::new([], message));
    };
    for (at, item) in items.iter().enumerate() {
        let subject = subject(at, item.get("name").and_then(Value::as_str));
        let mut path = vec![Step::Item(at)];
        let checked = check_object(&subject, PROPERTY, item, &mut path);
        checked.map_err(|message| Misfit { path, message })?;
    }
    Ok(())
}

/// Checks the form of an icon.
///
/// # Errors
/// The first part of another form.
pub(crate) fn check_icon(value: &Value) -> Result<(), Misfit> {
    let mut path = Vec::new();
    let checked = check_object("`icon`", ICON, value, &mut path);
    checked.map_err(|message| Misfit { path, message })
}

fn check_object(
    subject: &str,
    fields: &'static [Field],
    value: &Value,
    path: &mut Vec<Step<'static>>,
) -> Result<(), String> {
    let known: Vec<_> = fields.iter().map(|Field(name, ..)| *name).collect();
    let names = known.join(", ");
    let Value::Object(object) = value else {
        let got = described(value);
        return Err(format!("{subject} is {got}, expected an object of {names}"));
    };
    let is_other = |name: &&String| !known.contains(&name.as_str());
    if let Some(other) = object.keys().find(is_other) {
        let other: String = other.chars().take(40).collect();
        return Err(format!(
            "{subject}: unknown field {other:?}, expected one of {names}"
        ));
    }
    for Field(field, form, needed) in fields {
        path.push(Step::Field(field));
        let name = format!("{subject}: `{field}`");
        match (object.get(*field), needed) {
            (None, Needed::Always) => {
                return Err(format!("{name} is missing, expected {}", form.told()));
            }
            (None, _) | (Some(Value::Null), Needed::OrNull) => {}
            (Some(value), _) => form.check(&name, value, path)?,
        }
        path.pop();
    }
    Ok(())
}

impl Form {
    fn check(
        &self,
        subject: &str,
        value: &Value,
        path: &mut Vec<Step<'static>>,
    ) -> Result<(), String> {
        let fits = match (self, value) {
            (Self::Object(fields), value) => return check_object(subject, fields, value, path),
            (Self::List(fields), Value::Array(items)) => {
                for (at, item) in items.iter().enumerate() {
                    path.push(Step::Item(at));
                    check_object(&format!("{subject} item {at}"), fields, item, path)?;
                    path.pop();
                }
                true
            }
            (Self::Text, Value::String(_)) | (Self::Flag, Value::Bool(_)) => true,
            (Self::Integer, value) => value.as_i64().is_some(),
            (Self::Type, Value::String(name)) => TYPES.contains(&name.as_str()),
            _ => false,
        };
        if fits {
            return Ok(());
        }
        let (got, expected) = (described(value), self.told());
        Err(format!("{subject} is {got}, expected {expected}"))
    }

    fn told(&self) -> String {
        match self {
            Self::Text => "a string".to_owned(),
            Self::Integer => "an integer".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Type => format!("one of {}", TYPES.join(", ")),
            Self::Object(_) => "an object".to_owned(),
            Self::List(_) => "an array of objects".to_owned(),
        }
    }
}

/// A value in a message.
pub(super) fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(_) => "a number".to_owned(),
        Value::String(text) if text.chars().count() <= 40 => format!("the string {text:?}"),
        Value::String(_) => "a long string".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::{Icon, Property, PropertyType};

    #[test]
    fn the_types_are_those_of_a_property() {
        for name in TYPES {
            let parsed: PropertyType = serde_json::from_value(json!(name)).unwrap();
            assert_eq!(json!(parsed), name);
        }
        let other = serde_json::from_value::<PropertyType>(json!("EMOJI")).unwrap_err();
        assert_eq!(other.to_string().matches('`').count(), 2 + 2 * TYPES.len());
    }

    /// The check accepts exactly the values that serde reads, but for arrays: serde reads an array
    /// as an object.
    #[test]
    fn the_form_is_that_which_is_read() {
        let values = [
            json!(null),
            json!(true),
            json!(7),
            json!(1.5),
            json!(u64::MAX),
            json!("TEXT"),
            json!([]),
            json!(["x"]),
            json!([{}]),
            json!([{ "value": "a" }]),
            json!([{ "value": 1 }]),
            json!([{ "value": "a", "label": null }]),
            json!({}),
            json!({ "targetDataModelId": "dm_1", "relationshipType": "X" }),
            json!({ "targetDataModelId": 1 }),
        ];
        let mut refused = 0;
        let names = PROPERTY.iter().map(|Field(name, ..)| *name);
        for name in names.chain(["other"]) {
            for value in values.iter().map(Some).chain([None]) {
                let mut property = json!({ "name": "N", "type": "TEXT" });
                match value {
                    Some(value) => property[name] = value.clone(),
                    None => drop(property.as_object_mut().unwrap().remove(name)),
                }
                let list = json!([property]);
                let checked = check_properties_form("add", &list);
                let read = serde_json::from_value::<Vec<Property>>(list.clone());
                let is_array = read.is_ok() && value.is_some_and(Value::is_array);
                let fits = checked.is_ok() || is_array;
                assert_eq!(fits, read.is_ok(), "{list} {checked:?}");
                refused += usize::from(checked.is_err());
            }
        }
        assert!(refused > 60, "{refused}");
        for value in values.into_iter().chain([json!({ "type": 1 })]) {
            let checked = check_icon(&value);
            let is_array = value.is_array();
            let read = serde_json::from_value::<Icon>(value);
            let fits = checked.is_ok() || is_array && read.is_ok();
            assert_eq!(fits, read.is_ok(), "{checked:?}");
        }
    }
}
