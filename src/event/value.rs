//! Typed access to one value: the value formats of the specification.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use super::date::Date;
use super::deserialize::{deserialize, push_name};
use super::event_error::EventError;
use super::ids::{Name, RowId};
use super::json::{Json, Number};

/// The value of a name: absent, `null`, or present. The three differ in an event: an absent
/// property was not sent, and a property that is `null` was emptied.
///
/// ```
/// use hookgate::{Properties, event::Field};
///
/// let properties: Properties = serde_json::from_str(r#"{"Note":null,"Name":"Ada"}"#)?;
/// assert_eq!(properties.text("Name")?, Field::Present("Ada".into()));
/// assert_eq!(properties.text("Note")?, Field::Null);
/// assert_eq!(properties.text("Size")?.into_option(), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<T> {
    /// The name is not present.
    Absent,
    /// The name is present, with `null`.
    Null,
    /// A value of the requested kind.
    Present(T),
}

impl<T> Field<T> {
    /// Returns the value, where there is one.
    #[must_use]
    pub fn into_option(self) -> Option<T> {
        match self {
            Self::Present(value) => Some(value),
            Self::Absent | Self::Null => None,
        }
    }

    /// Returns the same field with another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Field<U> {
        match self {
            Self::Absent => Field::Absent,
            Self::Null => Field::Null,
            Self::Present(value) => Field::Present(change(value)),
        }
    }
}

/// Reads a property that may be absent or null as its type's default. For `#[serde(default,
/// deserialize_with = "hookgate::event::or_default")]`: `default` is for an absent property, this
/// function for one that is null.
///
/// # Errors
/// A value is there, and does not fit the type.
///
/// ```
/// use hookgate::{Properties, event::or_default};
///
/// #[derive(serde::Deserialize)]
/// struct Order {
///     #[serde(rename = "Customer", default, deserialize_with = "or_default")]
///     customer: String,
///     #[serde(rename = "Tags", default, deserialize_with = "or_default")]
///     tags: Vec<String>,
/// }
///
/// for row in [r#"{"Customer":null,"Tags":null}"#, "{}"] {
///     let order: Order = serde_json::from_str::<Properties>(row)?.to()?;
///     assert!(order.customer.is_empty() && order.tags.is_empty());
/// }
/// let order: Order = serde_json::from_str::<Properties>(r#"{"Customer":"Ada"}"#)?.to()?;
/// assert_eq!(order.customer, "Ada");
///
/// let misfit = serde_json::from_str::<Properties>(r#"{"Customer":7}"#)?.to::<Order>();
/// assert_eq!(misfit.err().unwrap().path(), Some("data.properties.Customer"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn or_default<'de, T, D>(json: D) -> Result<T, D::Error>
where
    T: Deserialize<'de> + Default,
    D: Deserializer<'de>,
{
    Option::deserialize(json).map(Option::unwrap_or_default)
}

/// One item of a FILE value.
#[derive(Clone, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[non_exhaustive]
pub struct File {
    /// The URL of the file.
    pub url: String,
    /// Its name.
    pub name: String,
}

/// Shows neither field: the URL may give access to the file.
impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File").finish_non_exhaustive()
    }
}

/// Calls a macro once, with every value format: name, type to read, type to return, conversion
/// between them.
macro_rules! for_each_format {
    ($emit:ident) => {
        $emit! {
            text: Name<'a> => Cow<'a, str>, |name: Name<'a>| name.0, "A TEXT value.";
            number: Number => Number, |number| number, "A NUMBER value.";
            date: Date => Date, |date| date, "A DATE value: a date, or a date-time with its zone.";
            select: Name<'a> => Cow<'a, str>, |name: Name<'a>| name.0, "A SELECT value: one option.";
            multi_select: Vec<String> => Vec<String>, |options| options, "A MULTI_SELECT value: options.";
            checkbox: bool => bool, |checked| checked, "A CHECKBOX value.";
            relation: Vec<RowId> => Vec<RowId>, |rows| rows, "A RELATION value: ids of related rows.";
            files: Vec<File> => Vec<File>, |files| files, "A FILE value: files with address and name.";
            currency: Number => Number, |amount| amount, "A CURRENCY value: a bare number; its currency is not part of it.";
        }
    };
}
pub(super) use for_each_format;

/// A value of an event with its path, not yet read as any type.
///
/// Each getter returns a [`Field`], or the error `TypeMismatch` with the path of a value of another
/// kind.
///
/// ```
/// use hookgate::event::{Changes, EventErrorKind};
///
/// let changes: Changes = serde_json::from_str(r#"{"Total":{"before":1.50,"after":"much"}}"#)?;
/// assert_eq!(changes.before("Total").number()?.into_option().unwrap().as_str(), "1.50");
///
/// let error = changes.after("Total").number().unwrap_err();
/// assert_eq!(error.kind(), EventErrorKind::TypeMismatch);
/// assert_eq!(error.path(), Some("data.changes.Total.after"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Value<'a> {
    place: ValuePath<'a>,
    json: Option<&'a Json>,
}

/// The place of a value. The path is only built when it is needed.
#[derive(Clone, Copy)]
pub(super) struct ValuePath<'n> {
    pub(super) parent: &'static str,
    pub(super) name: &'n str,
    pub(super) side: Option<&'static str>,
}

impl ValuePath<'_> {
    pub(super) fn path(self) -> String {
        let mut path = self.parent.to_owned();
        push_name(&mut path, self.name);
        if let Some(side) = self.side {
            push_name(&mut path, side);
        }
        path
    }
}

impl<'a> Value<'a> {
    pub(super) fn new(place: ValuePath<'a>, json: Option<&'a Json>) -> Self {
        Self { place, json }
    }

    /// Returns the path, such as `data.properties.Total`. Escaped, and cut off at 256 characters.
    #[must_use]
    pub fn path(&self) -> String {
        self.place.path()
    }

    /// The value as it was written; `None` where the name is absent.
    #[must_use]
    pub fn json(&self) -> Option<&'a Json> {
        self.json
    }

    /// Returns whether the name is absent.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.json.is_none()
    }

    /// Returns whether the value is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.json.is_some_and(Json::is_null)
    }

    /// Reads the value as a type of your own, which may borrow from the event.
    ///
    /// # Errors
    /// `TypeMismatch`, `Missing` or `RepeatedKey`, with the path of the value that does not fit.
    pub fn to<T: Deserialize<'a>>(&self) -> Result<Field<T>, EventError> {
        read(self.json, self.place)
    }
}

macro_rules! value_getters {
    ($($name:ident: $wire:ty => $out:ty, $convert:expr, $summary:literal;)*) => {
        impl<'a> Value<'a> {
            $(
                #[doc = $summary]
                ///
                /// # Errors
                /// `TypeMismatch`.
                pub fn $name(&self) -> Result<Field<$out>, EventError> {
                    Ok(self.to::<$wire>()?.map($convert))
                }
            )*
        }
    };
}
for_each_format!(value_getters);

/// Shows only the path.
impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Value")
            .field(&format_args!("{}", self.path()))
            .finish()
    }
}

/// Reads a value as a type. All getters use this function.
pub(super) fn read<'a, T: Deserialize<'a>>(
    json: Option<&'a Json>,
    place: ValuePath<'_>,
) -> Result<Field<T>, EventError> {
    match json {
        None => Ok(Field::Absent),
        Some(json) if json.is_null() => Ok(Field::Null),
        Some(json) => deserialize(json.as_str(), || place.path()).map(Field::Present),
    }
}
