//! JSON from the service: bounded trust, and types of the user's.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::{Error, ErrorKind};

/// serde_json's own keys. Read as a `serde_json::Value`, a value below one is parsed again and again, until the stack overflows.
const RESERVED: &str = "$serde_json::private::";

/// Reads an answer's body.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    let wrong = |why: String| Error::new(ErrorKind::Answer, why);
    let text = std::str::from_utf8(body).map_err(|_| wrong("the answer is not UTF-8".into()))?;
    if has_reserved_key(text) {
        return Err(wrong(format!(
            "the answer has a key that begins with {RESERVED}"
        )));
    }
    serde_json::from_str(text).map_err(|error| {
        // The error's own text may repeat a value.
        let (line, column) = (error.line(), error.column());
        let what = if error.is_data() {
            "not in the form of the specification"
        } else {
            "not JSON"
        };
        wrong(format!(
            "the answer is {what}, at line {line} column {column}"
        ))
    })
}

/// Code and message of `{"error": {"code", "message"}}`.
pub(crate) fn error_of(body: &[u8]) -> (Option<String>, Option<String>) {
    #[derive(Deserialize)]
    struct Envelope {
        error: Told,
    }
    #[derive(Deserialize)]
    struct Told {
        code: Option<String>,
        message: Option<String>,
    }
    match serde_json::from_slice::<Envelope>(body) {
        Ok(Envelope { error }) => (error.code, error.message),
        Err(_) => (None, None),
    }
}

/// Returns whether a key, in whatever way it is escaped, is one of serde_json's own.
pub(crate) fn has_reserved_key(text: &str) -> bool {
    let may_have = text.contains("$serde_json") || text.contains("\\u");
    may_have && matches!(serde_json::from_str(text), Ok(Keys { reserved: true }))
}

struct Keys {
    reserved: bool,
}

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(KeysVisitor)
    }
}

struct KeysVisitor;

impl<'de> Visitor<'de> for KeysVisitor {
    type Value = Keys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
        let mut reserved = false;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            reserved |= key.starts_with(RESERVED);
            reserved |= map.next_value::<Keys>()?.reserved;
        }
        Ok(Keys { reserved })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Keys, A::Error> {
        let mut reserved = false;
        while let Some(keys) = seq.next_element::<Keys>()? {
            reserved |= keys.reserved;
        }
        Ok(Keys { reserved })
    }

    fn visit_bool<E>(self, _: bool) -> Result<Keys, E> {
        Ok(Keys { reserved: false })
    }

    fn visit_i64<E>(self, _: i64) -> Result<Keys, E> {
        Ok(Keys { reserved: false })
    }

    fn visit_u64<E>(self, _: u64) -> Result<Keys, E> {
        Ok(Keys { reserved: false })
    }

    fn visit_f64<E>(self, _: f64) -> Result<Keys, E> {
        Ok(Keys { reserved: false })
    }

    fn visit_str<E>(self, _: &str) -> Result<Keys, E> {
        Ok(Keys { reserved: false })
    }

    fn visit_unit<E>(self) -> Result<Keys, E> {
        Ok(Keys { reserved: false })
    }
}

/// Reads a row's values by name as a type of the user's. Integers may be written with a fraction or an exponent, such as 3.0, as in an
/// event of hookgate: what does not fit is read a second time, with such numbers written without. No error repeats a value.
pub(crate) fn row<R: DeserializeOwned>(
    row: &str,
    values: &[(&str, &RawValue)],
) -> Result<R, Error> {
    let (text, ends) = object(values, Cow::Borrowed);
    if has_reserved_key(&text) {
        let message = format!("row {row}: a key begins with {RESERVED}");
        return Err(Error::new(ErrorKind::Row, message));
    }
    serde_json::from_str(&text).or_else(|error| {
        let (integers, _) = object(values, with_integer);
        let second = serde_json::from_str(&integers);
        second.map_err(|_| mismatch(row, &error, values, &ends))
    })
}

/// Writes an object. Returns where each value ends, too.
fn object<'v>(
    values: &[(&str, &'v RawValue)],
    change: impl Fn(&'v str) -> Cow<'v, str>,
) -> (String, Vec<usize>) {
    let mut text = String::from("{");
    let mut ends = Vec::with_capacity(values.len());
    for (name, value) in values {
        if !ends.is_empty() {
            text.push(',');
        }
        // A text can always be written.
        text.push_str(&serde_json::to_string(name).unwrap_or_default());
        text.push(':');
        text.push_str(&change(value.get()));
        ends.push(text.len());
    }
    text.push('}');
    (text, ends)
}

fn with_integer(value: &str) -> Cow<'_, str> {
    let whole = value
        .contains(['.', 'e', 'E'])
        .then(|| whole(value))
        .flatten();
    whole.map_or(Cow::Borrowed(value), Cow::Owned)
}

/// Writes a number without fraction and exponent, where it is an integer by its digits: `3.0`, `1.5e1`, `-2e3`.
fn whole(number: &str) -> Option<String> {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", number),
    };
    if !digits.starts_with(|char: char| char.is_ascii_digit()) {
        return None; // no number
    }
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let exponent: i32 = exponent.parse().ok()?;
    let (before, behind) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let behind = behind.trim_end_matches('0');
    // No type of Rust holds an integer with more digits than this.
    let zeros = usize::try_from(exponent.checked_sub(i32::try_from(behind.len()).ok()?)?).ok()?;
    let digits = format!("{before}{behind}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some("0".to_owned());
    }
    (digits.len().checked_add(zeros)? <= 39).then(|| format!("{sign}{digits}{}", "0".repeat(zeros)))
}

/// Says which property does not fit, and what the type expects: of serde's message only the parts that come from the type.
fn mismatch(
    row: &str,
    error: &serde_json::Error,
    values: &[(&str, &RawValue)],
    ends: &[usize],
) -> Error {
    let told = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let told = told.strip_suffix(&position).unwrap_or(&told);
    let is_of_fields = ["missing field", "duplicate field"]
        .iter()
        .any(|start| told.starts_with(start));
    let message = if is_of_fields {
        format!("row {row}: {told}")
    } else {
        // The text was written in one line.
        let at = ends.iter().position(|end| error.column() <= *end);
        let (name, kind) = match at.and_then(|at| values.get(at)) {
            Some((name, value)) => (*name, kind(value.get())),
            None => ("", "an object"),
        };
        let is_of_type = [
            "invalid type: ",
            "invalid value: ",
            "invalid length ",
            "unknown variant ",
        ]
        .iter()
        .any(|start| told.starts_with(start));
        let expected = told.rsplit_once(", expected ").filter(|_| is_of_type);
        let expected = expected.map_or("another value", |(_, expected)| expected);
        format!("row {row}: the property {name:?} is {kind}, expected {expected}")
    };
    Error::new(ErrorKind::Row, message)
}

fn kind(value: &str) -> &'static str {
    match value.as_bytes().first() {
        Some(b'"') => "a text",
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}
