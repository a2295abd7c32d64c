//! JSON from the service: bounded trust, and types of the user's.

#![expect(
    clippy::disallowed_methods,
    reason = "the texts are searched for reserved keys first"
)]

use hookgate::internal::has_reserved_key;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::error::{Error, ErrorKind, shown};

/// serde_json's own keys. Read as a `serde_json::Value`, a value below one is parsed again and
/// again, until the stack overflows.
const RESERVED: &str = "$serde_json::private::";

/// Reads an answer.
pub(crate) fn read<T: DeserializeOwned>(headers: &HeaderMap, body: &[u8]) -> Result<T, Error> {
    let wrong = |why: String| Error::new(ErrorKind::Answer, format!("the answer {why}"));
    let text = std::str::from_utf8(body).map_err(|_| wrong(no_json(headers, body)))?;
    if has_reserved_key(text) {
        return Err(wrong(format!("has a key that begins with {RESERVED}")));
    }
    serde_json::from_str(text).map_err(|error| {
        if !error.is_data() {
            return wrong(no_json(headers, body));
        }
        // The error's own text may repeat a value.
        let (line, column) = (error.line(), error.column());
        wrong(format!(
            "is not in the form of the specification, at line {line} column {column}"
        ))
    })
}

/// Says what an answer is that is not JSON: it comes from a proxy, from another server than the
/// service's, or is incomplete.
fn no_json(headers: &HeaderMap, body: &[u8]) -> String {
    let encoding = headers.get(CONTENT_ENCODING);
    let encoding = encoding.and_then(|encoding| encoding.to_str().ok());
    let what = match encoding {
        Some(encoding) if encoding != "identity" => {
            format!("not JSON, but compressed ({})", shown(encoding))
        }
        _ if body.trim_ascii_start().starts_with(b"<") => "not JSON, but HTML or XML".to_owned(),
        _ => "not JSON".to_owned(),
    };
    format!("is {what}: is the URL that of the service's API, without a proxy's page before it?")
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

/// Reads a row's values by name as a type of the user's. No error repeats a value.
pub(crate) fn row<R: DeserializeOwned>(
    row: &str,
    values: &[(&str, &RawValue)],
) -> Result<R, Error> {
    let (text, ends) = object(values);
    if has_reserved_key(&text) {
        let message = format!("row {row}: a key begins with {RESERVED}");
        return Err(Error::new(ErrorKind::Row, message));
    }
    serde_json::from_str(&text).map_err(|error| mismatch(row, &error, values, &ends))
}

/// Writes an object. Returns where each value ends, too.
fn object(values: &[(&str, &RawValue)]) -> (String, Vec<usize>) {
    let mut text = String::from("{");
    let mut ends = Vec::with_capacity(values.len());
    for (name, value) in values {
        if !ends.is_empty() {
            text.push(',');
        }
        // A text can always be written.
        text.push_str(&serde_json::to_string(name).unwrap_or_default());
        text.push(':');
        text.push_str(value.get());
        ends.push(text.len());
    }
    text.push('}');
    (text, ends)
}

/// Says which property does not fit, and what the type expects: of serde's message only the parts
/// that come from the type.
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
