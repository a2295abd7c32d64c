//! JSON that is kept as it was written.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::deserialize::deserialize;
use super::error::EventError;

/// One JSON value, kept as the text it was written in: numbers keep their digits, objects their order.
///
/// Inside an event the text has been checked like the rest of the body: every escape stands for a character, nesting ends at
/// 127 levels and numbers stay within a 64-bit float's range. `Debug` shows only the length.
///
/// It can be read from serde_json only, and not below `#[serde(flatten)]` or in an untagged enum: they do not keep the text.
///
/// ```
/// use hookgate::Json;
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
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.as_str().len())
    }
}
