//! The changes of an update, property by property.

use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::event_error::EventError;
use super::fields::Fields;
use super::json::Json;
use super::properties::last_of_each;
use super::text::Name;
use super::value::{Value, ValuePath};

const PATH: &str = "data.changes";

/// A property before and after an update.
///
/// Use it in a struct of your own, see [`Changes::to`]. Where a side may be `null` or absent, use an `Option`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Change<T> {
    /// The value before the update.
    pub before: T,
    /// The value after the update.
    pub after: T,
}

/// The changes of a `row.updated`, by property name.
///
/// Each change is an object with `before` and `after`. An absent side is distinguished from a side that is `null`, because a
/// sender may leave out a value that did not exist before. Where a name appears more than once, all are kept and the last is
/// read.
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

    /// Reads all changes as a struct of your own, with an `Option<Change<Option<T>>>` for each property that may have
    /// changed.
    ///
    /// # Errors
    /// `TypeMismatch`, `Missing` or `RepeatedKey`, with the path of the value that does not fit.
    pub fn to<C: DeserializeOwned>(&self) -> Result<C, EventError> {
        super::deserialize::deserialize(&last_of_each(self.0.iter()), || PATH.into())
    }
}

fn change<'a>(name: &'a str, sides: Option<&'a BeforeAndAfter>) -> Change<Value<'a>> {
    let value = |side, json| {
        let place = ValuePath {
            parent: PATH,
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
