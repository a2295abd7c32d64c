//! A row's properties by name.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer as _};

use super::date::Date;
use super::deserialize::deserialize;
use super::event_error::EventError;
use super::fields::Fields;
use super::ids::RowId;
use super::number::Number;
use super::text::Name;
use super::value::{Field, File, Value, ValuePath, for_each_format, read};

const PATH: &str = "data.properties";

/// The properties of a row, by name: the default content of a `row.created`.
///
/// Values stay as they were written until a getter reads one, so a property of an unexpected kind is an error only for the
/// code that reads it. Where a name appears more than once, all are kept and the last one is read. (A struct of your own as
/// row type refuses a repeated name, because serde's derive does.)
///
/// `Debug` shows the names and no value, because a row may hold names and e-mail addresses.
///
/// ```
/// use hookgate::Properties;
///
/// let properties: Properties = serde_json::from_str(
///     r#"{"Name":"Ada","Total":12.50,"Due":"2026-11-21","Tags":["a","b"],"Paid":null}"#,
/// )?;
/// assert_eq!(properties.text("Name")?.into_option().as_deref(), Some("Ada"));
/// assert_eq!(properties.required().currency("Total")?.as_str(), "12.50");
/// assert!(properties.required().date("Due")?.is_date_only());
/// assert_eq!(properties.required().multi_select("Tags")?, ["a", "b"]);
/// assert!(properties.required().checkbox("Paid").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Properties(Fields);

impl Properties {
    /// Returns the value of a name, to be read as any type.
    #[must_use]
    pub fn value<'a>(&'a self, name: &'a str) -> Value<'a> {
        Value::new(place(name), self.0.find(name))
    }

    /// Returns the same getters for required properties: absence and `null` are errors that name the path.
    #[must_use]
    pub fn required(&self) -> Required<'_> {
        Required(self)
    }

    /// Returns whether the name is present, also with `null`.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.0.find(name).is_some()
    }

    /// Names and values as they were written, repeated names included.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, Value<'_>)> + ExactSizeIterator {
        self.0
            .iter()
            .map(|(name, json)| (name, Value::new(place(name), Some(json))))
    }

    /// The number of properties.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no properties.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads all properties as a type of your own. For one URL that takes several data models: check the model first, then
    /// read.
    ///
    /// # Errors
    /// `TypeMismatch`, `Missing` or `RepeatedKey`, with the path of the value that does not fit.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, EventError> {
        deserialize(&last_of_each(self.0.iter()), || PATH.into())
    }
}

/// The getters of [`Properties`] for required properties. Made by [`Properties::required`].
#[derive(Clone, Copy, Debug)]
pub struct Required<'p>(&'p Properties);

impl<'a> Required<'a> {
    /// Reads the value as a type of your own, which may borrow from the event.
    ///
    /// # Errors
    /// `Missing` for an absent value, `TypeMismatch` for `null` and for a value of another kind.
    pub fn to<T: Deserialize<'a>>(&self, name: &str) -> Result<T, EventError> {
        place(name).required(read(self.0.0.find(name), place(name))?)
    }
}

macro_rules! property_getters {
    ($($name:ident: $wire:ty => $out:ty, $convert:expr, $summary:literal;)*) => {
        #[allow(clippy::needless_lifetimes)] // some of the macro's types borrow, some do not
        impl Properties {
            $(
                #[doc = $summary]
                ///
                /// # Errors
                /// `TypeMismatch`, with the path.
                pub fn $name<'a>(&'a self, name: &str) -> Result<Field<$out>, EventError> {
                    Ok(read::<$wire>(self.0.find(name), place(name))?.map($convert))
                }
            )*
        }

        impl<'a> Required<'a> {
            $(
                #[doc = $summary]
                ///
                /// # Errors
                /// `Missing` for an absent value, `TypeMismatch` for `null` and for a value of another kind.
                pub fn $name(&self, name: &str) -> Result<$out, EventError> {
                    place(name).required(self.0.$name(name)?)
                }
            )*
        }
    };
}
for_each_format!(property_getters);

fn place(name: &str) -> ValuePath<'_> {
    ValuePath {
        parent: PATH,
        name,
        side: None,
    }
}

/// Returns an object's text with only the last of each name, because a derived type refuses repeated names.
pub(super) fn last_of_each<'a, V: Serialize + 'a>(
    entries: impl DoubleEndedIterator<Item = (&'a str, V)>,
) -> String {
    let mut seen = HashSet::new();
    let mut last: Vec<_> = entries
        .rev()
        .filter(|(name, _)| seen.insert(*name))
        .collect();
    last.reverse();
    let mut text = Vec::new();
    let written = serde_json::Serializer::new(&mut text).collect_map(last);
    // Names and raw values can always be written. If this failed, the empty text would fit no type, and that error would be
    // reported.
    let text = written.ok().and_then(|()| String::from_utf8(text).ok());
    text.unwrap_or_default()
}
