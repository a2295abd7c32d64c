//! Checks that serde_json omits for values that it skips or keeps raw.
//!
//! serde_json only skims a value that is not read: its escapes may be half surrogate pairs, its
//! nesting has no limit and its numbers have no range. Whether a body is accepted must not depend
//! on the type it is read as. So this module searches the text itself for these three faults, and
//! for keys that serde_json reserves. One cheap pass that searches for suspicious bytes clears
//! nearly every body; only the other bodies are walked. The walk is a loop, so it has no depth
//! limit of its own.
//!
//! serde_json passes a raw value or a number between its own types as an object with one key.
//! `serde_json::Value` treats the same key in a text as such an object: it reads the string under
//! `$serde_json::private::RawValue` as JSON, with a new depth limit. Texts nested in this way
//! overflow the stack, which aborts the process. A property with that name also replaces the object
//! that it is in. The service has no reason to send such a key, so a body with one is refused.

use memchr::{memchr, memchr_iter, memchr2_iter};
use serde::Deserialize;
use serde::de::Error as _;

use super::event_error::{EventError, EventErrorKind as Kind, Position};
use super::ids::Name;

/// The beginning of the reserved keys.
const RESERVED: &str = "$serde_json::private::";

/// The maximum number of levels of objects and arrays, the body's own included. serde_json has the
/// same limit.
const MAX_DEPTH: usize = 127;

/// A number without an exponent and with fewer digits is far from the end of the range, which has
/// 309 digits.
const FEW_DIGITS: usize = 192;

/// Checks that a body is UTF-8, once, and that its text has none of the four faults.
pub(crate) fn check(body: &[u8]) -> Result<&str, EventError> {
    let text = std::str::from_utf8(body)?;
    if is_suspicious(body) {
        walk(text)?;
    }
    Ok(text)
}

/// Reads JSON from outside: a type with a `serde_json::Value` in it may be read of it too.
///
/// # Errors
/// The text is not UTF-8 or not JSON, does not fit `T`, or has a key that serde_json reserves for
/// itself.
///
/// ```
/// use hookgate::internal::from_foreign_json;
///
/// let value: serde_json::Value = from_foreign_json(br#"{"a":[1]}"#)?;
/// assert_eq!(value["a"][0], 1);
///
/// let reserved = br#"{"a":{"$serde_json::private::RawValue":"[]"},"b":1e999}"#;
/// let refused = from_foreign_json::<serde_json::Value>(reserved).unwrap_err();
/// assert!(refused.to_string().starts_with("a key begins with $serde_json::private::"));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn from_foreign_json<'t, T: Deserialize<'t>>(text: &'t [u8]) -> Result<T, serde_json::Error> {
    let text = std::str::from_utf8(text).map_err(serde_json::Error::custom)?;
    if has_reserved_key(text) {
        let message = format!("a key begins with {RESERVED}, which serde_json reserves");
        return Err(serde_json::Error::custom(message));
    }
    serde_json::from_str(text)
}

/// Returns whether a key of this text, in any spelling, is one that serde_json reserves for itself.
/// A text with such a key must not be read as a `serde_json::Value`. What else is in the text does
/// not matter: a fault in front of the key or behind it hides none.
///
#[must_use]
pub fn has_reserved_key(text: &str) -> bool {
    let bytes = text.as_bytes();
    if !may_have_reserved_key(bytes) {
        return false;
    }
    let mut at = 0;
    while let Some(quote) = memchr(b'"', &bytes[at..]) {
        let start = at + quote;
        at = string_end(bytes, start + 1);
        if is_reserved_key(text, start, at) {
            return true;
        }
    }
    false
}

/// Returns the position of a byte of the text.
pub(super) fn position(text: &str, offset: usize) -> Position {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line_start = before
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1);
    Position {
        line: before.iter().filter(|&&byte| byte == b'\n').count() + 1,
        column: offset - line_start + 1,
    }
}

/// Returns whether a text needs a walk. The result may be `true` without a fault, but is never
/// `false` with a fault.
fn is_suspicious(body: &[u8]) -> bool {
    // Without an early exit, so that the compiler checks many bytes at once.
    let pairs = body.iter().zip(body.iter().skip(1));
    let has_exponent = pairs.fold(false, |any, (first, second)| {
        any | (first.is_ascii_digit() & (second | 0x20 == b'e'))
    });
    may_have_reserved_key(body)
        || memchr2_iter(b'{', b'[', body).nth(MAX_DEPTH).is_some()
        || has_exponent && (0..body.len()).any(|at| is_large_exponent(body, at))
        || has_long_number(body)
}

/// A reserved key holds `$s`, unless a character of it is escaped.
fn may_have_reserved_key(body: &[u8]) -> bool {
    let has_pair = |first, second| {
        let mut firsts = memchr_iter(first, body);
        firsts.any(|at| body.get(at + 1) == Some(&second))
    };
    has_pair(b'\\', b'u') || has_pair(b'$', b's')
}

/// Returns whether an exponent of three digits begins here, in a possible number and not in a part
/// of a word, such as an id of hex digits.
fn is_large_exponent(body: &[u8], at: usize) -> bool {
    let (before, rest) = body.split_at(at);
    let [b'e' | b'E', digits @ ..] = rest else {
        return false;
    };
    let digits = digits.strip_prefix(b"+").unwrap_or(digits);
    let is_large = digits.len() >= 3 && digits[..3].iter().all(u8::is_ascii_digit);
    is_large && {
        let mut number = before.iter().rev().take(FEW_DIGITS + 1);
        let in_front = number.find(|byte| !is_number_byte(byte));
        in_front.is_none_or(|byte| b":,[ \t\n\r".contains(byte))
    }
}

/// Returns whether there can be a run of `FEW_DIGITS` digits: such a run covers three multiples of
/// a third of it.
fn has_long_number(body: &[u8]) -> bool {
    let mut run = 0;
    body.iter().step_by(FEW_DIGITS / 3).any(|byte| {
        run = if byte.is_ascii_digit() { run + 1 } else { 0 };
        run == 3
    })
}

fn walk(text: &str) -> Result<(), EventError> {
    let bytes = text.as_bytes();
    let found = |kind, at| Err(EventError::new(kind).at_position(Some(position(text, at))));
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => match skip_string(bytes, at + 1) {
                Ok(end) if is_reserved_key(text, at, end) => return found(Kind::ReservedKey, at),
                Ok(end) => at = end,
                Err(lone) => return found(Kind::LoneSurrogate, lone),
            },
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return found(Kind::TooDeep, at);
                }
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let end = skip_number(bytes, at);
                if is_out_of_range(&text[at..end]) {
                    return found(Kind::NumberOutOfRange, at);
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    Ok(())
}

/// Returns whether the string from here to there is a reserved key. Only a key is followed by a
/// colon.
fn is_reserved_key(text: &str, start: usize, end: usize) -> bool {
    let behind = text.get(end..).unwrap_or_default();
    matches!(text.as_bytes().get(start + 1), Some(b'$' | b'\\'))
        && behind.trim_ascii_start().starts_with(':')
        && serde_json::from_str::<Name<'_>>(&text[start..end])
            .is_ok_and(|Name(key)| key.starts_with(RESERVED))
}

/// Returns the offset after the string's closing quote.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    bytes.len()
}

/// Returns the offset after the string's closing quote, or as an error that of an escape that is
/// half a surrogate pair.
fn skip_string(bytes: &[u8], mut at: usize) -> Result<usize, usize> {
    while let Some(&byte) = bytes.get(at) {
        at += match byte {
            b'"' => return Ok(at + 1),
            b'\\' => match hex_escape(bytes, at) {
                Some(0xD800..=0xDBFF) => {
                    if !matches!(hex_escape(bytes, at + 6), Some(0xDC00..=0xDFFF)) {
                        return Err(at);
                    }
                    12
                }
                Some(0xDC00..=0xDFFF) => return Err(at),
                Some(_) => 6,
                None => 2,
            },
            _ => 1,
        };
    }
    Ok(at)
}

/// Returns the code unit of the `\uXXXX` at this offset.
fn hex_escape(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, &digit| {
        Some(unit << 4 | char::from(digit).to_digit(16)?)
    })
}

fn skip_number(bytes: &[u8], at: usize) -> usize {
    let length = bytes[at..].iter().position(|byte| !is_number_byte(byte));
    length.map_or(bytes.len(), |length| at + length)
}

fn is_number_byte(byte: &u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

/// Returns whether this number is too large for a 64-bit float, or for serde_json, which rounds in
/// another way and refuses a few numbers next to the largest float. A text that is not a number is
/// refused by the parser.
fn is_out_of_range(number: &str) -> bool {
    number.parse::<f64>().is_ok_and(|float| {
        float.is_infinite() || float.abs() > 1e308 && serde_json::from_str::<f64>(number).is_err()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Option<Kind> {
        check(text.as_bytes()).err().map(|error| error.kind())
    }

    #[test]
    fn surrogates_count_only_as_pairs() {
        for (text, lone) in [
            (r#"{"a":"\ud83d\ude00"}"#, false),
            (r#"{"a":"\u00e9"}"#, false),
            (r#"{"a":"\\ud83d"}"#, false),
            (r#"{"a":"\ud83d"}"#, true),
            (r#"{"a":"\ude00"}"#, true),
            (r#"{"a":"\ude00\ud83d"}"#, true),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, true),
            (r#"{"\uD83D":1}"#, true),
            (r#"{"a":"\ud83d\\ude00"}"#, true),
        ] {
            assert_eq!(kind(text), lone.then_some(Kind::LoneSurrogate), "{text}");
        }
    }

    #[test]
    fn depth_is_counted_outside_strings_and_levels_not_brackets() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert_eq!(kind(&nested(127)), None);
        assert_eq!(kind(&nested(128)), Some(Kind::TooDeep));
        assert_eq!(kind(&format!("{{\"a\":\"{}\"}}", "[".repeat(500))), None);
        assert_eq!(kind(&format!("[{}]", vec!["{}"; 500].join(","))), None);
        // The parser has the same limit.
        assert!(serde_json::from_str::<serde_json::Value>(&nested(127)).is_ok());
        assert!(serde_json::from_str::<serde_json::Value>(&nested(128)).is_err());
    }

    #[test]
    fn numbers_end_where_a_float_ends() {
        let digits = |count: usize| format!("[{}]", "9".repeat(count));
        for (text, out) in [
            ("[1e308]".into(), false),
            ("[1e-400]".into(), false),
            ("[\"1e400\"]".into(), false),
            ("[1e400]".into(), true),
            ("[-1E+400]".into(), true),
            ("[0.1e00310]".into(), true),
            ("[1e99]".into(), false),
            ("{\"a\":1E400}".into(), true),
            ("[0,1e400]".into(), true),
            ("[ 1e400]".into(), true),
            (format!("[{}e120]", "9".repeat(190)), true),
            (format!("[{}1e400]", "-".repeat(300)), false), // refused by the parser
            ("[\"4e123\",\"a4e400\"]".into(), false),
            (digits(308), false),
            (digits(309), true),
            (format!("[{}e150]", "9".repeat(180)), true),
            // Numbers near the largest float. The standard library alone recognizes all but the
            // last two. The parser would refuse the third and fourth only for readers of an `f64`,
            // so they are refused for all readers.
            ("[1.7976931348623157e308]".into(), false),
            ("[17976931348623157e292]".into(), false),
            ("[1.7976931348623158e308]".into(), true),
            ("[-17976931348623158e292]".into(), true),
            ("[1.7976931348623159e308]".into(), true),
            ("[179769313486231590e291]".into(), true),
        ] {
            assert_eq!(kind(&text), out.then_some(Kind::NumberOutOfRange), "{text}");
        }
    }

    /// Pieces, the ends of pieces and the bytes after the last piece are checked in the same way.
    #[test]
    fn a_suspicious_part_is_found_at_any_place() {
        for at in (128..3 * 128).chain([10_000]) {
            for rest in [0, 1, 128] {
                for (part, is_seen) in [
                    ("\\u", true),
                    ("$s", true),
                    (":1e309", true),
                    ("\\n", false),
                    ("$1", false),
                    ("-a1e309", false),
                    (":1e99", false),
                    (&*"[".repeat(128), true),
                    (&*"{".repeat(60), false),
                ] {
                    let text = format!("{}{part}{}", "x".repeat(at), "x".repeat(rest));
                    assert_eq!(is_suspicious(text.as_bytes()), is_seen, "{text}");
                }
            }
        }
    }

    #[test]
    fn ids_of_hex_digits_are_not_worth_a_walk() {
        let body = r#"{"id":"3e4001e2-55e6-4e77-8e99-1e309e309e30","total":1.5e3}"#.repeat(3);
        assert!(!is_suspicious(body.as_bytes()));
    }

    #[test]
    fn broken_text_is_left_to_the_parser() {
        for text in [
            "", "\"", "\"\\", "\"\\u", "\"\\ud83", "]]]", "[1e", "-", "1e5e5",
        ] {
            assert_eq!(kind(text), None, "{text}");
        }
    }

    #[test]
    fn positions_count_lines_and_bytes() {
        let error = check(b"{\n \"a\": \"\\udc00\"}").unwrap_err();
        assert_eq!((error.line(), error.column()), (Some(2), Some(8)));
    }

    /// `walk` stops at the first fault. A reader of a part of the text does not.
    #[test]
    fn a_reserved_key_is_found_beside_any_other_fault() {
        let deep = format!("{}1{}", "[".repeat(300), "]".repeat(300));
        for fault in [
            "1e999",
            r#""\ud800""#,
            r#""\udc00\"""#,
            &deep,
            "nul",
            "\"\\u12",
        ] {
            for key in [
                "$serde_json::private::RawValue",
                r"\u0024serde_json::private::Number",
            ] {
                let text = format!(r#"{{"{key}" : "1", "a": {fault}}}"#);
                assert!(has_reserved_key(&text), "{text}");
                assert!(from_foreign_json::<serde_json::Value>(text.as_bytes()).is_err());
            }
        }
        for fault in ["1e999", r#""\ud800""#, r#""\udc00\"""#, &deep] {
            let text = format!(r#"{{"a": {fault}, "$serde_json::private::RawValue": "1"}}"#);
            assert!(has_reserved_key(&text), "{text}");
            let text = format!(r#"{{"a": {fault}, "b": "$serde_json::private::RawValue"}}"#);
            assert!(!has_reserved_key(&text), "{text}");
        }
    }

    #[test]
    fn every_other_text_is_left_alone() {
        for text in [
            r#"{"$serde_json::private:":1}"#,
            r#"{"$serde_json":1,"private::RawValue":2}"#,
            r#"{" $serde_json::private::RawValue":1}"#,
            r#"{"\\u0024serde_json::private::RawValue":1}"#,
            r#"{"\"$serde_json::private::RawValue":1}"#,
            r#"{"$Serde_json::private::RawValue":1}"#,
            r#"{"$\serde_json::private::RawValue":1}"#,
            r#"{"a":"$serde_json::private::RawValue"}"#,
            r#"["$serde_json::private::RawValue",":"]"#,
            r#"{"a":"\"$serde_json::private::RawValue\":1"}"#,
            r#"{"$serde_json::private::RawValue"#,
            r#"{"$serde_json::private::RawValue\"#,
            r#""\"#,
            "\"",
            "",
        ] {
            assert_eq!(kind(text), None, "{text}");
            assert!(!has_reserved_key(text), "{text}");
        }
    }
}
