//! Numbers of a row in a program with serde_json's `arbitrary_precision`, as docs/properties.md
//! says.
#![cfg(test)]
#![allow(clippy::disallowed_methods)] // A test parses what it has written itself.

use std::collections::HashMap;

use hookgate::Properties;
use hookgate::event::{Date, EventError, Json, Number, RowId};
use serde::Deserialize;
use serde::de::DeserializeOwned;

#[derive(Deserialize)]
struct Plain<T> {
    value: T,
}

#[derive(Deserialize)]
struct Flattened<T> {
    #[serde(flatten, bound = "T: DeserializeOwned")]
    inner: Plain<T>,
}

#[derive(Deserialize)]
struct FlattenedOption<T> {
    #[serde(flatten, bound = "T: DeserializeOwned")]
    inner: Option<Plain<T>>,
}

#[derive(Deserialize)]
struct FlattenedMap<T> {
    #[serde(flatten, bound = "T: DeserializeOwned")]
    rest: HashMap<String, T>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Untagged<T> {
    Plain(Plain<T>),
}

#[derive(Deserialize)]
#[serde(tag = "kind")]
enum Tagged<T> {
    Plain { value: T },
}

fn row<R: DeserializeOwned>(value: &str) -> Result<R, EventError> {
    // The tag is behind the value, so that serde buffers the value first.
    let json = format!(r#"{{"value":{value},"kind":"Plain"}}"#);
    serde_json::from_str::<Properties>(&json).unwrap().to()
}

/// Reads a value in a field, where serde buffers nothing.
fn in_a_field<T: DeserializeOwned>(value: &str) -> Result<T, EventError> {
    row::<Plain<T>>(value).map(|row| row.value)
}

/// Reads a value in each of the four places where serde buffers it.
fn in_each_buffer<T: DeserializeOwned>(value: &str) -> [Result<T, EventError>; 4] {
    let map = format!(r#"{{"value":{value}}}"#);
    let map = serde_json::from_str::<Properties>(&map).unwrap();
    let map = map.to::<FlattenedMap<T>>();
    [
        row::<Flattened<T>>(value).map(|row| row.inner.value),
        map.map(|mut row| row.rest.remove("value").unwrap()),
        row::<Untagged<T>>(value).map(|Untagged::Plain(row)| row.value),
        row::<Tagged<T>>(value).map(|Tagged::Plain { value }| value),
    ]
}

#[test]
fn the_feature_is_on_in_this_program() {
    let value: serde_json::Value = serde_json::from_str("1.50").unwrap();
    assert_eq!(value.to_string(), "1.50");
}

#[test]
fn a_number_has_all_digits_wherever_serde_buffers_it() {
    for text in [
        "7",
        "-9223372036854775808",
        "18446744073709551615",
        "18446744073709551617",
        "12.50",
        "3.0",
        "1e2",
        "0.1000000000000000055",
    ] {
        assert_eq!(in_a_field::<Number>(text).unwrap().as_str(), text);
        // serde_json writes an exponent with its sign.
        let written = text.replace("1e2", "1e+2");
        for number in in_each_buffer::<Number>(text) {
            assert_eq!(number.unwrap().as_str(), written);
        }
        for number in in_each_buffer::<Option<Number>>(text) {
            assert_eq!(number.unwrap().unwrap().as_str(), written);
        }
        for json in in_each_buffer::<Json>(text) {
            assert_eq!(json.unwrap().as_str(), written);
        }
        let money = row::<FlattenedOption<Number>>(text).unwrap().inner.unwrap();
        assert_eq!(money.value.as_str(), written);
    }
}

#[test]
fn a_primitive_is_refused_where_serde_buffers_a_fraction_or_an_exponent() {
    for text in ["1.5", "2.0", "1e2"] {
        assert!(in_a_field::<f64>(text).is_ok());
        for float in in_each_buffer::<f64>(text) {
            assert!(float.is_err(), "{text}");
        }
        for integer in in_each_buffer::<i64>(text) {
            assert!(integer.is_err(), "{text}");
        }
        let error = row::<Flattened<f64>>(text).err().unwrap().to_string();
        assert!(error.contains("found an object, expected f64"), "{error}");
        // serde reads this error as an absent value.
        assert!(row::<FlattenedOption<f64>>(text).unwrap().inner.is_none());
    }
    assert_eq!(in_a_field::<i64>("7").unwrap(), 7);
    for integer in in_each_buffer::<i64>("7") {
        assert_eq!(integer.unwrap(), 7);
    }
    for float in in_each_buffer::<f64>("7") {
        assert!((float.unwrap() - 7.0).abs() < f64::EPSILON);
    }
}

#[test]
fn values_that_are_no_numbers_are_read_as_without_the_feature() {
    for date in in_each_buffer::<Date>(r#""2026-11-21""#) {
        assert!(date.unwrap().is_date_only());
    }
    for id in in_each_buffer::<RowId>(r#""row_1""#) {
        assert_eq!(id.unwrap(), "row_1");
    }
}

/// An event of the service's own form and a copy with other spellings of its numbers mean the same.
#[test]
fn one_number_in_two_forms_is_the_same_canonical_text() {
    let canonical = |text| serde_json::from_str::<Json>(text).unwrap().canonical();
    for (one, other) in [("12.50", "12.5"), ("1e2", "100"), ("[2.0]", "[2]")] {
        assert_eq!(canonical(one), canonical(other));
    }
    assert_ne!(canonical("12.5"), canonical("12.6"));
}
