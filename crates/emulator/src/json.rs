//! Objects are read from JSON objects alone: serde would also take an array, for the fields of a struct in their order.

use std::fmt;
use std::marker::PhantomData;

use hookgate::event::from_foreign_json;
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer, de};

/// Reads a text that holds an object.
///
/// # Errors
/// It is not JSON, another JSON value, an object of other fields, or has a key that serde_json reserves for itself.
pub(crate) fn parse<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, serde_json::Error> {
    from_foreign_json::<Object<T>>(text.as_bytes()).map(|object| object.0)
}

/// Reads an object.
///
/// # Errors
/// It is another JSON value, or an object of other fields.
pub(crate) fn object<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_map(AnObject(PhantomData))
}

/// Reads an array of objects.
///
/// # Errors
/// As [`object`].
pub(crate) fn objects<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list = Vec::<Object<T>>::deserialize(deserializer)?;
    Ok(list.into_iter().map(|object| object.0).collect())
}

/// Reads an object, or `null`.
///
/// # Errors
/// As [`object`].
pub(crate) fn object_or_null<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let object = Option::<Object<T>>::deserialize(deserializer)?;
    Ok(object.map(|object| object.0))
}

/// Reads an array of objects, or `null`.
///
/// # Errors
/// As [`object`].
pub(crate) fn objects_or_null<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list = Option::<Vec<Object<T>>>::deserialize(deserializer)?;
    Ok(list.map(|list| list.into_iter().map(|object| object.0).collect()))
}

struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        object(deserializer).map(Self)
    }
}

struct AnObject<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> de::Visitor<'de> for AnObject<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}
