//! Reads a value of the body as a type, and finds the place of a mismatch. No value of the body
//! gets into an error.

use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::DeserializeSeed;
use serde_json::error::Category;
use serde_path_to_error::{Path, Segment, Track};

use super::event_error::{EventError, EventErrorKind as Kind, Position};
use super::scan;

/// The maximum length of a path in characters, and of the text that a type says it expected.
const MAX_CHARS: usize = 256;

/// Reads a value of the body as a type of the user's. An error has the path of the value that does
/// not fit.
pub(super) fn deserialize<'a, T: Deserialize<'a>>(
    text: &'a str,
    prefix: impl FnOnce() -> String,
) -> Result<T, EventError> {
    // The text of an event has been checked. But these types can be read from any JSON, and `T` may
    // be `serde_json::Value`.
    if text.starts_with(['{', '['])
        && let Err(error) = scan::check(text.as_bytes())
    {
        return Err(EventError::new(error.kind()).at_path(prefix()));
    }
    // The path costs an allocation per key, so it is tracked only after the value did not fit.
    let read = serde_json::from_str(text);
    read.or_else(|_| track(text, PhantomData, prefix()).map_err(|(error, _)| error))
}

/// Adds a name to a path, escaped, and cut off where the path gets too long.
pub(super) fn push_name(path: &mut String, name: &str) {
    let dot = (!path.is_empty()).then_some('.');
    push_capped(path, dot.into_iter().chain(name.escape_debug()));
}

pub(super) fn push_capped(path: &mut String, text: impl Iterator<Item = char>) {
    let mut room = MAX_CHARS.saturating_sub(path.chars().count());
    for char in text {
        if room <= 1 {
            if room == 1 {
                path.push('…');
            }
            return;
        }
        path.push(char);
        room -= 1;
    }
}

pub(super) type Tracked<T> = Result<T, (EventError, serde_json::Error)>;

/// Reads a text that is JSON, and finds the path of the value that does not fit.
pub(super) fn track<'a, S: DeserializeSeed<'a>>(
    text: &'a str,
    seed: S,
    mut path: String,
) -> Tracked<S::Value> {
    let mut track = Track::new();
    let mut json = serde_json::Deserializer::from_str(text);
    let json = serde_path_to_error::Deserializer::new(&mut json, &mut track);
    seed.deserialize(json).map_err(|cause| {
        append(&mut path, &track.path());
        let error = error_of(&cause, path);
        // The text is JSON. serde_json calls a value malformed that goes on behind an integer of
        // 128 bits, as `3.5` does.
        let error = match error.kind() {
            Kind::Syntax | Kind::NumberOutOfRange => error.into_mismatch(),
            _ => error,
        };
        (error, cause)
    })
}

fn append(path: &mut String, inner: &Path) {
    for segment in inner {
        match segment {
            Segment::Seq { index } => push_capped(path, format!("[{index}]").chars()),
            Segment::Map { key } => push_name(path, key),
            Segment::Enum { variant } => push_name(path, variant),
            Segment::Unknown => push_name(path, "?"),
        }
    }
}

/// Returns the position of an error in the whole text. The error was found in this part of it.
pub(super) fn place(text: &str, part: &str, error: &serde_json::Error) -> Option<Position> {
    // The part is a slice of the whole text, so the distance of their starts is its offset.
    let offset = part.as_ptr().addr().wrapping_sub(text.as_ptr().addr());
    let start = scan::position(text, offset);
    match error.line() {
        0 => None,
        1 => Some(Position {
            line: start.line,
            column: start.column - 1 + error.column(),
        }),
        line => Some(Position {
            line: start.line + line - 1,
            column: error.column(),
        }),
    }
}

/// Returns an error with the parts of a serde error that may be shown: its kind, and words that
/// come from the type and never from the body.
///
/// A message such as ``invalid type: string "jane@example.com", expected f64`` repeats the input.
/// So no message is shown unchanged. The forms that serde and serde_json write are known, and of
/// each form only the parts from the type are kept. A message of any other form, such as one from a
/// user's own code, is left out.
pub(super) fn error_of(cause: &serde_json::Error, mut path: String) -> EventError {
    let message = cause.to_string();
    let position = format!(" at line {} column {}", cause.line(), cause.column());
    let message = message.strip_suffix(&position).unwrap_or(&message);
    let (kind, field, reason) = match cause.classify() {
        Category::Data => parts(message),
        // The messages about the grammar are constants.
        _ if message == "number out of range" => (Kind::NumberOutOfRange, None, None),
        _ => (Kind::Syntax, None, Some(message.into())),
    };
    if let Some(field) = field {
        push_name(&mut path, field);
    }
    let missing = field.filter(|_| kind == Kind::Missing);
    EventError::new(kind)
        .at_path(path)
        .because(reason)
        .without(missing)
}

/// Returns the kind of the error, the name of the field that is missing or repeated, and the
/// reason.
fn parts(message: &str) -> (Kind, Option<&str>, Option<String>) {
    let field = |prefix: &str| {
        let name = message.strip_prefix(prefix)?.strip_suffix('`')?;
        (!name.contains('`')).then_some(name)
    };
    if let Some(name) = field("missing field `") {
        (Kind::Missing, Some(name), None)
    } else if let Some(name) = field("duplicate field `") {
        (Kind::RepeatedKey, Some(name), None)
    } else {
        (Kind::TypeMismatch, None, mismatch(message))
    }
}

/// The messages of chrono's types about a text. They are constants.
const CHRONO: [&str; 6] = [
    "input is out of range",
    "no possible date and time matching input",
    "input is not enough for unique date and time",
    "input contains invalid characters",
    "premature end of input",
    "trailing input",
];

/// Returns the kind found and the kind expected, in words that come from the type.
fn mismatch(message: &str) -> Option<String> {
    const NO_VARIANT: &str = "data did not match any variant of untagged enum ";
    if let Some(name) = message.strip_prefix(NO_VARIANT) {
        let is_ident = name
            .chars()
            .all(|char| char.is_alphanumeric() || char == '_');
        return is_ident.then(|| format!("found no match for any variant of {name}"));
    }
    if CHRONO.contains(&message) {
        return Some(message.into());
    }
    // The input may hold the separator too. The expected kind comes last.
    let (found, expected) = message.rsplit_once(", expected ")?;
    let found = if let Some(value) = found.strip_prefix("invalid type: ") {
        describe(value)?.to_owned()
    } else if let Some(value) = found.strip_prefix("invalid value: ") {
        format!("{} that does not fit", describe(value)?)
    } else if let Some(length) = found.strip_prefix("invalid length ") {
        length.parse::<u64>().ok()?;
        "another length".into()
    } else {
        let kind = ["variant", "field"]
            .into_iter()
            .find(|kind| found.starts_with(&format!("unknown {kind} `")))?;
        let is_quoted = found.ends_with('`') && expected.ends_with('`');
        is_quoted.then(|| format!("an unknown {kind}"))?
    };
    let mut reason = format!("found {found}, expected ");
    push_capped(&mut reason, expected.chars());
    Some(reason)
}

/// Returns the kind of the value that serde's words describe.
fn describe(value: &str) -> Option<&str> {
    let quoted = |prefix: &str, end: char| {
        value
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.ends_with(end))
    };
    match value {
        "null" | "unit value" => Some("null"),
        "map" => Some("an object"),
        "sequence" => Some("an array"),
        // Of `DateAs`.
        "a date-time"
        | "a date without a time"
        | "a date out of range"
        | "a string that does not fit" => Some(value),
        _ if quoted("string \"", '"') => Some("a string"),
        _ if quoted("boolean `", '`') => Some("a boolean"),
        _ if quoted("integer `", '`') => Some("an integer"),
        _ if quoted("floating point `", '`') => Some("a decimal number"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_type_says_is_kept() {
        for (message, reason) in [
            (
                r#"invalid type: string "SECRET", expected f64"#,
                Some("found a string, expected f64"),
            ),
            (
                r#"invalid type: string "SECRET, expected SECRET", expected f64"#,
                Some("found a string, expected f64"),
            ),
            (
                "invalid value: integer `77`, expected u8",
                Some("found an integer that does not fit, expected u8"),
            ),
            (
                "invalid type: null, expected a map",
                Some("found null, expected a map"),
            ),
            (
                "invalid length 77, expected a pair",
                Some("found another length, expected a pair"),
            ),
            (
                "unknown variant `SECRET`, expected `a` or `b`",
                Some("found an unknown variant, expected `a` or `b`"),
            ),
            (
                "unknown variant `S, expected SECRET`, there are no variants",
                None,
            ),
            (
                "data did not match any variant of untagged enum Size",
                Some("found no match for any variant of Size"),
            ),
            (
                "data did not match any variant of untagged enum Size: SECRET",
                None,
            ),
            (
                "invalid type: a date-time, expected a date without a time",
                Some("found a date-time, expected a date without a time"),
            ),
            (
                "no possible date and time matching input",
                Some("no possible date and time matching input"),
            ),
            ("no possible date and time matching input: SECRET", None),
            ("invalid value: SECRET, expected SECRET", None),
            ("SECRET", None),
            ("SECRET, expected SECRET", None),
            ("", None),
        ] {
            assert_eq!(mismatch(message).as_deref(), reason, "{message}");
        }
    }

    #[test]
    fn missing_and_repeated_fields_are_named() {
        let missing = (Kind::Missing, Some("rowId"), None);
        assert_eq!(parts("missing field `rowId`"), missing);
        let repeated = (Kind::RepeatedKey, Some("id"), None);
        assert_eq!(parts("duplicate field `id`"), repeated);
    }

    #[test]
    fn paths_are_escaped_and_cut_off() {
        let mut path = "data".to_owned();
        push_name(&mut path, "a\nb");
        assert_eq!(path, "data.a\\nb");
        push_name(&mut path, &"é".repeat(1000));
        assert_eq!(path.chars().count(), 256);
        assert!(path.ends_with('…'));
        push_name(&mut path, "more");
        assert_eq!(path.chars().count(), 256);
        // The dot counts too, at every position.
        for length in 250..260 {
            let mut path = "d".repeat(length.min(255));
            push_name(&mut path, &"n".repeat(length));
            push_name(&mut path, "more");
            assert_eq!(path.chars().count(), 256, "{length}");
        }
    }
}
