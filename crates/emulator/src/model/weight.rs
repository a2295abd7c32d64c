//! About how much memory JSON takes, so that a workspace is bounded.

use serde_json::{Map, Value};

/// A value or a place of a map, without the texts in it.
const NODE: usize = 48;

/// Returns about how many bytes a value takes.
pub(crate) fn of_value(value: &Value) -> usize {
    NODE + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(of_value).sum(),
        Value::Object(fields) => of_fields(fields),
    }
}

/// Returns about how many bytes the fields of an object take.
pub(crate) fn of_fields(fields: &Map<String, Value>) -> usize {
    of_pairs(fields.iter())
}

/// Returns about how many bytes these names and values take.
pub(crate) fn of_pairs<'a>(pairs: impl Iterator<Item = (&'a String, &'a Value)>) -> usize {
    let each = pairs.map(|(name, value)| NODE + name.len() + of_value(value));
    each.sum()
}
