//! JSON that is kept as it was written.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::deserialize::deserialize;
use super::event_error::EventError;

/// A number of this size or more may be rounded as a 64-bit float, so it is not taken for an integer.
const EXACT_INTEGERS: f64 = 9_007_199_254_740_992.0;

/// One JSON value, kept as the text it was written in: numbers keep their digits, objects their order.
///
/// Inside an event the text has been checked like the rest of the body: every escape stands for a character, nesting ends at
/// 127 levels and numbers stay within a 64-bit float's range. `Debug` shows only the length.
///
/// It can be read from serde_json only, and not below `#[serde(flatten)]` or in an untagged enum: they do not keep the text.
///
/// ```
/// use hookgate::event::Json;
///
/// let json: Json = serde_json::from_str("[1.10, 18446744073709551617]")?;
/// assert_eq!(json.as_str(), "[1.10, 18446744073709551617]");
/// assert_eq!(json.to::<(f64, f64)>().unwrap().0, 1.1);
/// assert_eq!(format!("{json:?}"), "Json(28 bytes)");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    pub(super) fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    /// The value's text, without white space around it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Returns whether the value is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.as_str() == "null"
    }

    /// Reads the value as a type of your own, which may borrow from it.
    ///
    /// # Errors
    /// `TypeMismatch`, `Missing` or `RepeatedKey`, with the path inside this value.
    pub fn to<'a, T: Deserialize<'a>>(&'a self) -> Result<T, EventError> {
        deserialize(self.as_str(), String::new)
    }

    /// Returns the value as JSON in one form, for a comparison by meaning: values of the same meaning have the same text. `1.50`
    /// is written as `1.5`, the fields of an object in the order of their names, and no text with more escapes than it needs.
    /// Texts, dates included, and the order of an array do count.
    ///
    /// It is not the form of RFC 8785. A value that cannot be read, since it is nested too deep, is returned as it was written.
    ///
    /// ```
    /// use hookgate::event::Json;
    ///
    /// let canonical = |text| serde_json::from_str::<Json>(text).map(|json| json.canonical());
    /// assert_eq!(canonical(r#"{ "b": [1e2, null], "a": 12.50 }"#)?, r#"{"a":12.5,"b":[100,null]}"#);
    /// assert_ne!(canonical("12.5")?, canonical("\"12.5\"")?);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn canonical(&self) -> String {
        match self.to::<Value>() {
            Ok(mut value) => {
                write_alike(&mut value);
                value.sort_all_objects();
                value.to_string()
            }
            // Nested too deep, or with a name that serde_json reserves.
            Err(_) => self.as_str().to_owned(),
        }
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.as_str().len())
    }
}

/// Writes each integer as one, in whatever form it was read.
#[expect(clippy::cast_possible_truncation, reason = "an integer that fits")]
fn write_alike(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let integer = |float: &f64| float.fract() == 0.0 && float.abs() < EXACT_INTEGERS;
            if let Some(float) = number.as_f64().filter(integer) {
                *number = (float as i64).into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(write_alike),
        Value::Object(fields) => fields.values_mut().for_each(write_alike),
        _ => {}
    }
}
