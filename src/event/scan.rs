//! Checks that serde_json omits for values that it skips or keeps raw.
//!
//! serde_json only skims a value that is not read: its escapes may be half surrogate pairs, its nesting has no limit and its
//! numbers have no range. Whether a body is accepted must not depend on the type it is read as. So this module searches the
//! text itself for these three faults, and for the [keys](super::reserved) that serde_json reserves. Cheap passes that search
//! for suspicious bytes clear nearly every body; only the other bodies are walked. The walk is a loop, so it has no depth
//! limit of its own.

use super::error::{EventError, EventErrorKind as Kind, Position};
use super::reserved::{self, hex_escape};

/// The maximum number of levels of objects and arrays, the body's own included. serde_json has the same limit.
const MAX_DEPTH: usize = 127;

/// A number without an exponent and with fewer digits is far from the end of the range, which has 309 digits.
const FEW_DIGITS: usize = 192;

/// The size of a piece: small enough that a `u8` can count its bytes.
const PIECE: usize = 128;

/// Checks that a body is UTF-8, once, and that its text has none of the four faults.
pub(crate) fn check(body: &[u8]) -> Result<&str, EventError> {
    let text = std::str::from_utf8(body)?;
    let is_marked = has_reserved_key_or_unicode_escape(body);
    if is_marked && let Some(at) = reserved::find(body) {
        let error = EventError::new(Kind::ReservedKey);
        return Err(error.at_position(Some(position(text, at))));
    }
    if is_marked || is_suspicious(body) {
        walk(text)?;
    }
    Ok(text)
}

/// Returns whether a text holds a key that serde_json reserves, in any spelling.
pub(super) fn has_reserved_key(text: &str) -> bool {
    let text = text.as_bytes();
    has_reserved_key_or_unicode_escape(text) && reserved::find(text).is_some()
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

/// Returns whether a text without `\uXXXX` needs a walk. The result may be `true` without a fault, but is never `false` with
/// a fault.
///
/// Each check is a separate loop without an early exit inside a piece, so that the compiler checks many bytes at once: three
/// such loops are faster than one loop with all checks.
fn is_suspicious(body: &[u8]) -> bool {
    openings(body) > MAX_DEPTH || has_large_exponent(body) || has_long_number(body)
}

fn openings(body: &[u8]) -> usize {
    let in_piece = |piece: &[u8]| {
        // `[` and `{` differ only in this bit. A `u8` can count the openings of a piece.
        let openings = piece.iter().map(|byte| u8::from(byte | 0x20 == b'{'));
        usize::from(openings.sum::<u8>())
    };
    let (pieces, rest) = body.as_chunks::<PIECE>();
    pieces.iter().map(|piece| in_piece(piece)).sum::<usize>() + in_piece(rest)
}

/// Returns whether there may be a reserved key, or half a surrogate pair. Such a key holds `$s`, unless a character of it is
/// escaped.
fn has_reserved_key_or_unicode_escape(body: &[u8]) -> bool {
    // One loop for each byte: the compiler checks many bytes at once in each, and one byte at a time in a loop for both.
    let has = |piece: &[u8], wanted: u8| any(piece.iter().map(|&byte| byte == wanted));
    let is_marked = |piece: &[u8]| has(piece, b'\\') | has(piece, b'$');
    let (pieces, rest) = body.as_chunks::<PIECE>();
    let marked = pieces.iter().any(|piece| is_marked(piece)) || is_marked(rest);
    // Many texts have one of these bytes, and few have one of these pairs.
    let has_pair = |wanted: [u8; 2]| {
        any(pairs(body).map(|(first, second)| (first == wanted[0]) & (second == wanted[1])))
    };
    marked && (has_pair(*b"\\u") || has_pair(*b"$s"))
}

/// Returns whether a number may have an exponent of three digits. With fewer digits than `FEW_DIGITS` before it, a smaller
/// exponent can't exceed the range.
fn has_large_exponent(body: &[u8]) -> bool {
    let next = body.get(1..).unwrap_or_default();
    // `0xF0` also takes some other characters for digits, which only costs a second check.
    let may_be = |firsts: &[u8], seconds: &[u8]| {
        let pairs = firsts.iter().zip(seconds);
        any(pairs.map(|(first, second)| (first & 0xF0 == 0x30) & (second | 0x20 == b'e')))
    };
    let (firsts, first_rest) = body[..next.len()].as_chunks::<PIECE>();
    let (seconds, second_rest) = next.as_chunks::<PIECE>();
    let found = |start: usize, length: usize| {
        (start..start + length).any(|at| is_large_exponent(body, at + 1))
    };
    let mut pieces = firsts.iter().zip(seconds).enumerate();
    pieces.any(|(n, (firsts, seconds))| may_be(firsts, seconds) && found(n * PIECE, PIECE))
        || may_be(first_rest, second_rest) && found(firsts.len() * PIECE, first_rest.len())
}

/// Returns whether an exponent of three digits begins here, in a possible number and not in a part of a word, such as an id
/// of hex digits.
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

fn pairs(body: &[u8]) -> impl Iterator<Item = (u8, u8)> {
    let next = body.get(1..).unwrap_or_default();
    body.iter().copied().zip(next.iter().copied())
}

/// Like `Iterator::any`, without an early exit.
fn any(found: impl Iterator<Item = bool>) -> bool {
    found.fold(false, |any, found| any | found)
}

/// Returns whether there can be a run of `FEW_DIGITS` digits: such a run covers three multiples of a third of it.
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

/// Returns the offset after the string's closing quote, or as an error that of an escape that is half a surrogate pair.
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

fn skip_number(bytes: &[u8], at: usize) -> usize {
    let length = bytes[at..].iter().position(|byte| !is_number_byte(byte));
    length.map_or(bytes.len(), |length| at + length)
}

fn is_number_byte(byte: &u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

/// Returns whether this number is too large for a 64-bit float, or for serde_json, which rounds in another way and refuses a
/// few numbers next to the largest float. A text that is no number is refused by the parser.
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
            // Numbers near the largest float. The standard library alone recognizes all but the last two. The parser would
            // refuse the third and fourth only for readers of an `f64`, so they are refused for all readers.
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
    fn what_is_suspicious_is_seen_wherever_it_lies() {
        for at in (0..3 * PIECE).chain([10_000]) {
            let around =
                |part: &str, rest: usize| format!("{}{part}{}", "x".repeat(at), "x".repeat(rest));
            for rest in [0, 1, PIECE] {
                for (pair, is_marked) in
                    [("\\u", true), ("$s", true), ("\\n", false), ("$1", false)]
                {
                    assert_eq!(
                        has_reserved_key_or_unicode_escape(around(pair, rest).as_bytes()),
                        is_marked,
                        "{pair} {at} {rest}"
                    );
                }
                assert!(
                    has_large_exponent(around(":1e309", rest).as_bytes()),
                    "{at} {rest}"
                );
                assert!(
                    !has_large_exponent(around("-a1e309", rest).as_bytes()),
                    "{at} {rest}"
                );
                assert!(
                    !has_large_exponent(around(":1e99", rest).as_bytes()),
                    "{at} {rest}"
                );
                assert_eq!(openings(around("[{[", rest).as_bytes()), 3, "{at} {rest}");
            }
        }
        assert_eq!(openings("[".repeat(1_000).as_bytes()), 1_000);
    }

    #[test]
    fn ids_of_hex_digits_are_not_worth_a_walk() {
        let body = r#"{"id":"3e4001e2-55e6-4e77-8e99-1e309e309e30","total":1.5e3}"#;
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
}
