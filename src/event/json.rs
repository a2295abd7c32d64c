//! JSON that is kept as it was written.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::deserialize::deserialize;
use super::error::EventError;
use super::named::Named;

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

/// Names and their JSON values, in the order they were written in.
///
/// The fields of an object that this crate does not know are kept in this type, so that nothing is lost when the object is
/// written again. A name that appears twice is kept twice. [`Fields::find`] and everything built on it take the last one, as
/// nearly every JSON reader does.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fields(Named<Json>);

impl Fields {
    /// The value of this name, the last one where there are several.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Json> {
        self.0.find(name)
    }

    /// Names and values as they were written, repeated names included.
    pub fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = (&str, &Json)> + ExactSizeIterator + Clone {
        self.0.iter()
    }

    /// The number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn push(&mut self, name: Cow<'_, str>, value: Json) {
        self.0.push(name, value);
    }

    /// Writes the fields into an object that is being written.
    pub(super) fn write_into<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.iter()
            .try_for_each(|(name, value)| map.serialize_entry(name, value))
    }
}

/// Shows only the names.
impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.iter().map(|(name, _)| name))
            .finish()
    }
}

/// A text, borrowed where it has no escapes. (`Cow` itself never borrows when deserialised.)
pub(super) struct Name<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A derived implementation would hide the names of fields from the path tracker.
        deserializer.deserialize_str(NameVisitor).map(Self)
    }
}

struct NameVisitor;

impl<'de> Visitor<'de> for NameVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}
