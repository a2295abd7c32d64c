//! JSON that is kept as it was written: any value, and a number.

use std::fmt;
use std::str::FromStr;

use serde::de::value::MapDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize, forward_to_deserialize_any};
use serde_json::Value;
use serde_json::value::RawValue;

use super::deserialize::deserialize;
use super::event_error::EventError;
use super::ids::Name;

/// A number of this size or more may be rounded as a 64-bit float, so it is not taken for an
/// integer.
const EXACT_INTEGERS: f64 = 9_007_199_254_740_992.0;

/// The maximum length of an integer that fits 128 bits, with its sign. An exponent that needs more
/// zeros is not written out.
const LONGEST_INTEGER: usize = 40;

/// One JSON value, kept as the text it was written in: numbers keep their digits, objects their
/// order.
///
/// Inside an event the text has been checked like the rest of the body: every escape stands for a
/// character, nesting ends at 127 levels and numbers stay within a 64-bit float's range. `Debug`
/// shows only the length.
///
/// Below `#[serde(flatten)]` and in an enum that is untagged or has its tag among its fields, serde
/// reads a value into a buffer first. There the text is written anew, with numbers as [`Number`]
/// describes.
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
#[derive(Clone, Serialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        text_of(json).map(Self)
    }
}

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

    /// Returns the value as JSON in one form, for a comparison by meaning: values of the same
    /// meaning have the same text. `1.50` is written as `1.5`, the fields of an object in the order
    /// of their names, and no text with more escapes than it needs. Texts, dates included, and the
    /// order of an array do count.
    ///
    /// It is not the form of RFC 8785. A value that cannot be read, since it is nested too deep, is
    /// returned as it was written.
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
            } else if let Some(shortest) = number.as_f64().and_then(serde_json::Number::from_f64) {
                // A program with serde_json's `arbitrary_precision` has the text as it was written.
                *number = shortest;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(write_alike),
        Value::Object(fields) => fields.values_mut().for_each(write_alike),
        _ => {}
    }
}

/// A JSON number in the text it was written in. No conversion rounds silently.
///
/// The reason is amounts of money: `0.1` has no exact 64-bit float, and `18446744073709551617` no
/// 64-bit integer. Give [`as_str`](Self::as_str) to a decimal type, or use one of the conversions,
/// which return `None` rather than another number.
///
/// You can use it in a row type of your own. Below `#[serde(flatten)]` and in an enum that is
/// untagged or has its tag among its fields, serde reads a number into a buffer first. There an
/// integer of up to 64 bits keeps its digits, and any other number has the shortest text of its
/// 64-bit float: `12.50` is `12.5`.
///
/// ```
/// use hookgate::event::Number;
///
/// let number = |text| serde_json::from_str::<Number>(text).unwrap();
/// assert_eq!(number("1.10").as_str(), "1.10");
/// assert_eq!(number("1.10").to_f64(), Some(1.1));
/// assert_eq!(number("1e3").to_i64(), Some(1000));
/// assert_eq!(number("1.5").to_i64(), None);
/// assert_eq!(number("18446744073709551617").to_u64(), None);
/// assert_eq!(number("18446744073709551617").to_f64(), None); // would be …616
/// ```
///
/// Two numbers are equal where their texts are: `1.0` is not `1`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Number(Box<str>);

impl Number {
    /// The number as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the number, where it is an integer in range. `1.0` and `1e3` are integers.
    #[must_use]
    pub fn to_i64(&self) -> Option<i64> {
        self.to_integer()
    }

    /// Returns the number, where it is an integer in range that is not negative.
    #[must_use]
    pub fn to_u64(&self) -> Option<u64> {
        self.to_integer()
    }

    /// Returns the 64-bit float that prints as exactly this number, where there is one: the
    /// conversion and its reverse lose no digit. `0.1` has such a float, 2⁵³ + 1 has none.
    #[must_use]
    pub fn to_f64(&self) -> Option<f64> {
        let float = self.to_f64_lossy();
        (normal_form(&format!("{float:e}"))? == normal_form(&self.0)?).then_some(float)
    }

    /// Returns the nearest 64-bit float, rounded where necessary.
    #[must_use]
    pub fn to_f64_lossy(&self) -> f64 {
        // The text is a JSON number, which Rust can always parse.
        self.0.parse().unwrap_or(f64::NAN)
    }

    fn to_integer<T: FromStr>(&self) -> Option<T> {
        let (mantissa, exponent) = normal_form(&self.0)?;
        let zeros = usize::try_from(exponent).ok()?;
        let is_short = mantissa.len().saturating_add(zeros) <= LONGEST_INTEGER;
        is_short.then(|| (mantissa + &"0".repeat(zeros)).parse().ok())?
    }
}

/// Returns the mantissa and the exponent of `mantissa × 10^exponent`, the same for all equal
/// numbers: an integer with no zeros at either end. `None` where the exponent does not fit 64 bits:
/// it is out of range for every conversion.
fn normal_form(text: &str) -> Option<(String, i64)> {
    let (sign, text) = text
        .strip_prefix('-')
        .map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_end_matches('0');
    if digits.is_empty() {
        return Some(("0".into(), 0));
    }
    let exponent = exponent
        .parse::<i64>()
        .ok()?
        .checked_add(i64::try_from(all.len() - digits.len()).ok()?)?
        .checked_sub(i64::try_from(fraction.len()).ok()?)?;
    Some((
        format!("{sign}{}", digits.trim_start_matches('0')),
        exponent,
    ))
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Number({self})")
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        // serde_json takes the text of a number only as a raw value.
        serde_json::from_str::<&RawValue>(&self.0)
            .map_err(S::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = text_of(deserializer)?;
        // The first byte shows the kind of a JSON value.
        let found = match raw.get().as_bytes().first() {
            Some(b'-' | b'0'..=b'9') => return Ok(Self(raw.get().into())),
            Some(b'"') => Unexpected::Str(""),
            Some(b'{') => Unexpected::Map,
            Some(b'[') => Unexpected::Seq,
            Some(b'n') => Unexpected::Unit,
            _ => Unexpected::Bool(true),
        };
        Err(D::Error::invalid_type(found, &"a number"))
    }
}

/// The only name in the map that serde_json makes of a number, where the program has its feature
/// `arbitrary_precision` on. Of the names in a sender's text, an event refuses this one.
const NUMBER: &str = "$serde_json::private::Number";

/// Reads the text of a value: the very text from serde_json, and a new one from serde's buffer.
fn text_of<'de, D: Deserializer<'de>>(json: D) -> Result<Box<RawValue>, D::Error> {
    Deserialize::deserialize(MaybeBuffered(json))
}

/// Reads a [`RawValue`], which asks serde_json for the text by the name of a newtype. serde's
/// buffer does not know this name and offers its value.
struct MaybeBuffered<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for MaybeBuffered<D> {
    type Error = D::Error;

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = MaybeBufferedVisitor { name, visitor };
        self.0.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct MaybeBufferedVisitor<V> {
    name: &'static str,
    visitor: V,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for MaybeBufferedVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(map)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, json: D) -> Result<V::Value, D::Error> {
        let mut text = String::new();
        Writer(&mut text).deserialize(json)?;
        let text = std::iter::once((self.name, text));
        self.visitor.visit_map(MapDeserializer::new(text))
    }
}

/// Writes a value as JSON.
struct Writer<'t>(&'t mut String);

impl Writer<'_> {
    fn write<E: Error>(self, value: impl Serialize) -> Result<(), E> {
        let text = serde_json::to_string(&value).map_err(E::custom)?;
        self.0.push_str(&text);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Writer<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Writer<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.write(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.write(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.write(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.write(value)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.write(value)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.write(())
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.write(())
    }

    fn visit_some<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let start = self.0.len() + 1;
        self.0.push('[');
        while items.next_element_seed(Writer(self.0))?.is_some() {
            self.0.push(',');
        }
        close(self.0, start, ']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let start = self.0.len() + 1;
        self.0.push('{');
        while let Some(Name(name)) = fields.next_key()? {
            if name == NUMBER {
                let Name(number) = fields.next_value()?;
                let is_alone = self.0.len() == start && fields.next_key::<IgnoredAny>()?.is_none();
                if !is_alone || !is_number(&number) {
                    return Err(A::Error::invalid_type(Unexpected::Map, &self));
                }
                self.0.pop();
                self.0.push_str(&number);
                return Ok(());
            }
            Writer(self.0).write(name)?;
            self.0.push(':');
            fields.next_value_seed(Writer(self.0))?;
            self.0.push(',');
        }
        close(self.0, start, '}');
        Ok(())
    }
}

/// Writes the end of an array or object over the comma behind its last item.
fn close(text: &mut String, start: usize, end: char) {
    if text.len() > start {
        text.pop();
    }
    text.push(end);
}

fn is_number(text: &str) -> bool {
    text.starts_with(|char: char| char == '-' || char.is_ascii_digit())
        && serde_json::from_str::<&RawValue>(text).is_ok_and(|raw| raw.get() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn integers_are_exact_or_nothing() {
        for (text, signed, unsigned) in [
            ("0", Some(0), Some(0)),
            ("-0", Some(0), Some(0)),
            ("0e999999999999999999999", Some(0), Some(0)),
            ("-0.0", Some(0), Some(0)),
            ("1.0", Some(1), Some(1)),
            ("100", Some(100), Some(100)),
            ("1e3", Some(1000), Some(1000)),
            ("1.5e1", Some(15), Some(15)),
            ("1500e-2", Some(15), Some(15)),
            ("1.5", None, None),
            ("1e-1", None, None),
            ("-7", Some(-7), None),
            ("9223372036854775807", Some(i64::MAX), Some(i64::MAX as u64)),
            ("-9223372036854775808", Some(i64::MIN), None),
            ("9223372036854775808", None, Some(9_223_372_036_854_775_808)),
            ("18446744073709551615", None, Some(u64::MAX)),
            ("18446744073709551617", None, None),
            ("1e400", None, None),
            ("1e999999999999999999999", None, None),
            ("1e-9223372036854775808", None, None),
        ] {
            assert_eq!(number(text).to_i64(), signed, "{text}");
            assert_eq!(number(text).to_u64(), unsigned, "{text}");
        }
    }

    #[test]
    fn floats_print_back_or_are_nothing() {
        for (text, float) in [
            ("0", Some(0.0)),
            ("0.1", Some(0.1)),
            ("1.10", Some(1.1)),
            ("-2.50e1", Some(-25.0)),
            ("1e23", Some(1e23)),
            ("9007199254740992", Some(9_007_199_254_740_992.0)),
            ("9007199254740993", None),
            ("0.1000000000000000055511151231257827", None),
            ("1e400", None),
            ("1e-400", None),
        ] {
            assert_eq!(number(text).to_f64(), float, "{text}");
        }
        assert_eq!(
            number("9007199254740993").to_f64_lossy(),
            9_007_199_254_740_992.0
        );
    }

    #[test]
    fn only_numbers_are_numbers_and_their_text_survives() {
        assert_eq!(
            serde_json::to_string(&number("1.10e+2")).unwrap(),
            "1.10e+2"
        );
        for other in ["\"1\"", "null", "true", "{}", "[1]"] {
            assert!(serde_json::from_str::<Number>(other).is_err(), "{other}");
        }
    }

    /// What serde buffers below `flatten`, and what is made of it.
    #[test]
    fn a_buffered_value_has_its_text_written_anew() {
        #[derive(Deserialize)]
        struct Outer<T> {
            #[serde(flatten)]
            inner: Inner<T>,
        }
        #[derive(Deserialize)]
        struct Inner<T> {
            value: T,
        }
        fn buffered<T: serde::de::DeserializeOwned>(value: &str) -> serde_json::Result<T> {
            let text = format!(r#"{{"value":{value}}}"#);
            serde_json::from_str::<Outer<T>>(&text).map(|outer| outer.inner.value)
        }

        let own = r#"{"$serde_json::private::Number":"12.50"}"#;
        for (value, written) in [
            ("null", "null"),
            ("true", "true"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("18446744073709551615", "18446744073709551615"),
            ("18446744073709551616", "1.8446744073709552e+19"),
            ("12.50", "12.5"),
            ("3.0", "3.0"),
            ("1e3", "1000.0"),
            ("1e300", "1e+300"),
            (r#""a\"\u00e9\n""#, r#""a\"é\n""#),
            ("[ ]", "[]"),
            ("{ }", "{}"),
            ("[1, [], {}]", "[1,[],{}]"),
            (
                r#"{"b":[1.0,{"a":null}],"a":{}}"#,
                r#"{"b":[1.0,{"a":null}],"a":{}}"#,
            ),
            (own, "12.50"),
            (
                &*format!("[{own},{{\"a\":{own}}}]"),
                r#"[12.50,{"a":12.50}]"#,
            ),
        ] {
            let json = buffered::<Json>(value).unwrap();
            assert_eq!(json.as_str(), written, "{value}");
            let is_number = written.parse::<f64>().is_ok();
            let number = buffered::<Number>(value).ok();
            let number = number.as_ref().map(Number::as_str);
            assert_eq!(number, is_number.then_some(written), "{value}");
        }
        for value in [
            r#"{"$serde_json::private::Number":12.5}"#,
            r#"{"$serde_json::private::Number":"12.5 "}"#,
            r#"{"$serde_json::private::Number":"\"a\""}"#,
            r#"{"$serde_json::private::Number":"[1]"}"#,
            r#"{"$serde_json::private::Number":"1","a":2}"#,
            r#"{"a":2,"$serde_json::private::Number":"1"}"#,
        ] {
            assert!(buffered::<Number>(value).is_err(), "{value}");
            assert!(buffered::<Json>(value).is_err(), "{value}");
        }
    }
}
