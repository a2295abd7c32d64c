//! A row's properties by name, and the changes of an update.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer as _};

use super::date::Date;
use super::deserialize::deserialize;
use super::event_error::{EventError, EventErrorKind};
use super::fields::Fields;
use super::ids::{Name, RowId};
use super::json::{Json, Number};
use super::similar_name::name_similar;
use super::value::{Field, File, Value, ValuePath, for_each_format, read};

pub(super) const PROPERTIES: &str = "data.properties";
const CHANGES: &str = "data.changes";

/// The properties of a row, by name: the default content of a `row.created`.
///
/// Values stay as they were written until a getter reads one, so a property of an unexpected kind
/// is an error only for the code that reads it. Where a name appears more than once, all are kept
/// and the last one is read. (A struct of your own as row type refuses a repeated name, because
/// serde's derive does.)
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

    /// Returns the same getters for required properties: absence and `null` are errors that name
    /// the path.
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

    /// Reads all properties as a type of your own. For one URL that takes several data models:
    /// check the model first, then read.
    ///
    /// # Errors
    /// `TypeMismatch`, `Missing` or `RepeatedKey`, with the path of the value that does not fit.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, EventError> {
        let read = deserialize(&last_of_each(self.0.iter()), || PROPERTIES.into());
        read.map_err(|error| name_similar(error, PROPERTIES, &self.0))
    }

    /// Returns the value of a required property.
    fn present<T>(&self, name: &str, field: Field<T>) -> Result<T, EventError> {
        let error = match field {
            Field::Present(value) => return Ok(value),
            Field::Null => EventError::new(EventErrorKind::TypeMismatch)
                .because(Some("found null, expected a value".into())),
            Field::Absent => EventError::new(EventErrorKind::Missing).without(Some(name)),
        };
        let error = error.at_path(place(name).path());
        Err(name_similar(error, PROPERTIES, &self.0))
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
        self.0
            .present(name, read(self.0.0.find(name), place(name))?)
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
                /// `Missing` for an absent value, `TypeMismatch` for `null` and for a value of
                /// another kind.
                pub fn $name(&self, name: &str) -> Result<$out, EventError> {
                    self.0.present(name, self.0.$name(name)?)
                }
            )*
        }
    };
}
for_each_format!(property_getters);

/// A property before and after an update.
///
/// Use it in a struct of your own, see [`Changes::to`]. Where a side may be `null` or absent, use
/// an `Option`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Change<T> {
    /// The value before the update.
    pub before: T,
    /// The value after the update.
    pub after: T,
}

/// The changes of a `row.updated`, by property name.
///
/// Each change is an object with `before` and `after`. An absent side is distinguished from a side
/// that is `null`, because a sender may leave out a value that did not exist before. Where a name
/// appears more than once, all are kept and the last is read.
///
/// ```
/// use hookgate::event::{Change, Changes};
/// use serde::Deserialize;
///
/// let changes: Changes = serde_json::from_str(
///     r#"{"Total":{"before":1.5,"after":2.5},"Note":{"before":null,"after":"paid"}}"#,
/// )?;
///
/// // By name …
/// assert!(changes.before("Note").is_null());
/// assert_eq!(changes.after("Note").text()?.into_option().as_deref(), Some("paid"));
/// assert!(!changes.contains("Name"));
///
/// // … or into a struct: an option for each property that may have changed, and one for each side that may be null, as
/// // `before` is where a property is filled for the first time.
/// #[derive(Deserialize)]
/// struct OrderChanges {
///     #[serde(rename = "Total")]
///     total: Option<Change<Option<f64>>>,
///     #[serde(rename = "Note")]
///     note: Option<Change<Option<String>>>,
///     #[serde(rename = "Name")]
///     name: Option<Change<Option<String>>>,
/// }
/// let order: OrderChanges = changes.to()?;
/// assert_eq!(order.total, Some(Change { before: Some(1.5), after: Some(2.5) }));
/// assert_eq!(order.note, Some(Change { before: None, after: Some("paid".into()) }));
/// assert_eq!(order.name, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Changes(Fields<BeforeAndAfter>);

#[derive(Clone, Default, Serialize)]
struct BeforeAndAfter {
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Json>,
    #[serde(flatten)]
    extra: Fields,
}

impl Changes {
    /// The value of the property before the update. Absent where it did not change.
    #[must_use]
    pub fn before<'a>(&'a self, name: &'a str) -> Value<'a> {
        change(name, self.0.find(name)).before
    }

    /// The value of the property after the update. Absent where it did not change.
    #[must_use]
    pub fn after<'a>(&'a self, name: &'a str) -> Value<'a> {
        change(name, self.0.find(name)).after
    }

    /// Returns whether the property changed.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.0.find(name).is_some()
    }

    /// The names of the properties that changed.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator {
        self.0.iter().map(|(name, _)| name)
    }

    /// Names and both sides as they were written, repeated names included.
    pub fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = (&str, Change<Value<'_>>)> + ExactSizeIterator {
        let entries = self.0.iter();
        entries.map(|(name, sides)| (name, change(name, Some(sides))))
    }

    /// The number of properties that changed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether no property changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads all changes as a struct of your own, with an `Option<Change<Option<T>>>` for each
    /// property that may have changed.
    ///
    /// # Errors
    /// `TypeMismatch`, `Missing` or `RepeatedKey`, with the path of the value that does not fit.
    pub fn to<C: DeserializeOwned>(&self) -> Result<C, EventError> {
        let read = deserialize(&last_of_each(self.0.iter()), || CHANGES.into());
        read.map_err(|error| name_similar(error, CHANGES, &self.0))
    }
}

fn change<'a>(name: &'a str, sides: Option<&'a BeforeAndAfter>) -> Change<Value<'a>> {
    let value = |side, json| {
        let place = ValuePath {
            parent: CHANGES,
            name,
            side: Some(side),
        };
        Value::new(place, json)
    };
    Change {
        before: value("before", sides.and_then(|sides| sides.before.as_ref())),
        after: value("after", sides.and_then(|sides| sides.after.as_ref())),
    }
}

impl<'de> Deserialize<'de> for BeforeAndAfter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SidesVisitor)
    }
}

struct SidesVisitor;

impl<'de> Visitor<'de> for SidesVisitor {
    type Value = BeforeAndAfter;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with before and after")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<BeforeAndAfter, A::Error> {
        let mut sides = BeforeAndAfter::default();
        while let Some(name) = map.next_key::<Name<'_>>()? {
            let (side, known) = match &*name.0 {
                "before" => (&mut sides.before, "before"),
                "after" => (&mut sides.after, "after"),
                _ => {
                    sides.extra.push(name.0, map.next_value()?);
                    continue;
                }
            };
            if side.is_some() {
                return Err(A::Error::duplicate_field(known));
            }
            *side = Some(map.next_value()?);
        }
        Ok(sides)
    }
}

fn place(name: &str) -> ValuePath<'_> {
    ValuePath {
        parent: PROPERTIES,
        name,
        side: None,
    }
}

/// Returns an object's text with only the last of each name, because a derived type refuses
/// repeated names.
fn last_of_each<'a, V: Serialize + 'a>(
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
    // Names and raw values can always be written. If this failed, the empty text would fit no type,
    // and that error would be reported.
    let text = written.ok().and_then(|()| String::from_utf8(text).ok());
    text.unwrap_or_default()
}
