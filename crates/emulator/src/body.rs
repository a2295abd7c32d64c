//! The JSON body of a request, and headers as text.

use hookgate::internal::from_foreign_json;
use http::{HeaderMap, HeaderName};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::answer::ApiError;
use crate::model::RowData;

const LONGEST_NAME: usize = 1_000;

/// Reads a body that has to be an object.
pub(crate) fn object(body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    let value = from_foreign_json(body)
        .map_err(|error| ApiError::validation(format!("the body is not JSON: {error}")))?;
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(ApiError::validation("the body is not a JSON object")),
    }
}

/// Reads a body that may be left out.
pub(crate) fn object_or_nothing(body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    if body.is_empty() {
        Ok(Map::new())
    } else {
        object(body)
    }
}

/// Takes values by property id.
pub(crate) fn values(name: &str, value: Value) -> Result<RowData, ApiError> {
    match value {
        Value::Object(values) => Ok(values.into_iter().collect()),
        _ => {
            let message = format!("{name} is not an object of values by property id");
            Err(ApiError::validation(message))
        }
    }
}

/// Returns a value with the fields of a patch in place of its own.
pub(crate) fn patched<T: Serialize + DeserializeOwned>(
    before: &T,
    patch: &Map<String, Value>,
) -> Result<T, serde_json::Error> {
    let mut whole = serde_json::to_value(before)?;
    for (name, value) in patch {
        whole[name] = value.clone();
    }
    serde_json::from_value(whole)
}

/// What serde says of a value in another form, in the word of the other answers.
pub(crate) fn told(error: &serde_json::Error) -> String {
    let told = error.to_string();
    match told.strip_prefix("unknown variant ") {
        Some(rest) => format!("unknown value {rest}"),
        None => told,
    }
}

/// Takes a text that has to be there.
pub(crate) fn text(object: &Map<String, Value>, name: &str) -> Result<String, ApiError> {
    optional_text(object, name)?
        .ok_or_else(|| ApiError::validation(format!("`{name}` is missing, expected a string")))
}

/// Takes a name that has to be there. It is bounded, since many are kept.
pub(crate) fn name(object: &Map<String, Value>, field: &str) -> Result<String, ApiError> {
    let name = text(object, field)?;
    if name.is_empty() || name.chars().count() > LONGEST_NAME {
        let message = format!("`{field}` has to have 1 to {LONGEST_NAME} characters");
        return Err(ApiError::validation(message));
    }
    Ok(name)
}

pub(crate) fn optional_text(
    object: &Map<String, Value>,
    name: &str,
) -> Result<Option<String>, ApiError> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(ApiError::validation(format!("`{name}` is not a string"))),
    }
}

/// Refuses fields that no such request has.
pub(crate) fn only(object: &Map<String, Value>, known: &[&str]) -> Result<(), ApiError> {
    match object.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let message = format!(
                "unknown field `{name}`, expected one of {}",
                known.join(", ")
            );
            Err(ApiError::validation(message))
        }
    }
}

/// Returns headers as text, up to `most` bytes of names and values. Hidden values are left out.
pub(crate) fn headers(
    headers: &HeaderMap,
    most: usize,
    hides: impl Fn(&HeaderName) -> bool,
) -> Vec<(String, String)> {
    let mut rest = most;
    let pairs = headers.iter().map(|(name, value)| {
        let value = match hides(name) {
            true => "(hidden)".into(),
            false => String::from_utf8_lossy(value.as_bytes()),
        };
        (name.as_str().to_owned(), value.into_owned())
    });
    let fits = |(name, value): &(String, String)| {
        let left = rest.checked_sub(name.len() + value.len());
        rest = left.unwrap_or_default();
        left.is_some()
    };
    pairs.take_while(fits).collect()
}

/// Returns whether two texts are equal, in a time that depends on their lengths alone.
pub(crate) fn is_same(one: &[u8], other: &[u8]) -> bool {
    let pairs = one.iter().zip(other);
    let differences = pairs.fold(0, |found, (one, other)| found | (one ^ other));
    std::hint::black_box(differences) == 0 && one.len() == other.len()
}
