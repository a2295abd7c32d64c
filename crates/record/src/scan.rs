//! One pass over a body's JSON that replaces some of its values and keeps all other bytes.

#![expect(
    clippy::disallowed_methods,
    reason = "redaction reads the JSON of a body, and decides about no delivery"
)]

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::redaction::{REDACTED, Redaction};

/// Returns the body without the values to remove, and the body itself where it has none of them.
/// `None` where it is not JSON, so that no value can be found in it.
pub(crate) fn redact_body<'t>(body: &'t [u8], redaction: &Redaction) -> Option<Cow<'t, [u8]>> {
    let text = std::str::from_utf8(body).ok()?;
    // The whole text is checked first, so that the pass below reads only valid JSON.
    let _: &RawValue = serde_json::from_str(text).ok()?;
    let mut scanner = Scanner {
        text,
        redaction,
        at: 0,
        depth: 0,
        names: Vec::new(),
        redacted_from: None,
        redacted: Vec::new(),
        copied_to: 0,
    };
    scanner.run()?;
    if scanner.copied_to == 0 {
        return Some(Cow::Borrowed(body));
    }
    let mut redacted = scanner.redacted;
    redacted.extend_from_slice(&body[scanner.copied_to..]);
    Some(Cow::Owned(redacted))
}

struct Scanner<'t, 'r> {
    text: &'t str,
    redaction: &'r Redaction,
    at: usize,
    /// The number of open objects and arrays.
    depth: usize,
    /// The current name in each open object.
    names: Vec<Cow<'t, str>>,
    /// The number of open objects and arrays around the one whose values are all removed.
    redacted_from: Option<usize>,
    redacted: Vec<u8>,
    /// The offset in the text up to which it has been copied or replaced.
    copied_to: usize,
}

impl Scanner<'_, '_> {
    /// Returns `None` where a name can't be decoded, for example because of half a surrogate pair:
    /// it might be a name to remove.
    fn run(&mut self) -> Option<()> {
        while let Some(byte) = self.text.as_bytes().get(self.at) {
            match byte {
                b'{' | b'[' => {
                    if self.redacted_from.is_none() && self.is_redacted() {
                        self.redacted_from = Some(self.depth);
                    }
                    if *byte == b'{' {
                        self.names.push(Cow::Borrowed(""));
                    }
                    self.depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    if *byte == b'}' {
                        self.names.pop();
                    }
                    self.depth -= 1;
                    self.at += 1;
                    if self.redacted_from == Some(self.depth) {
                        self.redacted_from = None;
                    }
                }
                b'"' => self.string()?,
                b' ' | b'\t' | b'\r' | b'\n' | b':' | b',' => self.at += 1,
                _ => self.literal(),
            }
        }
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        let start = self.at;
        self.at = end_of_string(self.text.as_bytes(), start + 1);
        let rest = self.text[self.at..].trim_start_matches([' ', '\t', '\r', '\n']);
        // A name, and no value, is followed by a colon.
        if rest.starts_with(':')
            && let Some(name) = self.names.last_mut()
        {
            let quoted = &self.text[start..self.at];
            *name = if quoted.contains('\\') {
                Cow::Owned(serde_json::from_str(quoted).ok()?)
            } else {
                Cow::Borrowed(&quoted[1..quoted.len() - 1])
            };
        } else if self.is_redacted() {
            self.replace(start, &format!("\"{REDACTED}\""));
        }
        Some(())
    }

    fn literal(&mut self) {
        let start = self.at;
        let rest = &self.text[start..];
        let ends = |c: char| matches!(c, ',' | '}' | ']' | ' ' | '\t' | '\r' | '\n');
        self.at += rest.find(ends).unwrap_or(rest.len());
        if self.is_redacted() {
            match rest.as_bytes()[0] {
                b'n' => {} // `null` holds no value to remove
                b't' | b'f' => self.replace(start, "false"),
                _ => self.replace(start, "0"),
            }
        }
    }

    /// Returns whether the value that begins here is removed.
    fn is_redacted(&self) -> bool {
        self.redacted_from.is_some() || self.redaction.covers(&self.names)
    }

    fn replace(&mut self, start: usize, by: &str) {
        let untouched = &self.text.as_bytes()[self.copied_to..start];
        self.redacted.extend_from_slice(untouched);
        self.redacted.extend_from_slice(by.as_bytes());
        self.copied_to = self.at;
    }
}

/// Returns the offset after the closing quote. Valid JSON has one.
fn end_of_string(text: &[u8], mut at: usize) -> usize {
    loop {
        match text.get(at) {
            None => return text.len(),
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn redacted_text(body: &str, redaction: &Redaction) -> Option<String> {
        Some(match redact_body(body.as_bytes(), redaction)? {
            Cow::Borrowed(untouched) => {
                assert_eq!(untouched, body.as_bytes());
                "untouched".into()
            }
            Cow::Owned(redacted_text) => String::from_utf8(redacted_text).unwrap(),
        })
    }

    #[test]
    fn what_is_not_taken_out_stays_byte_for_byte() {
        let redaction = Redaction::new().field("a.b").key("Secret");
        for (body, expected) in [
            (r#"{"a":{"b":"x"}}"#, r#"{"a":{"b":"[redacted]"}}"#),
            (
                "\r\n{ \"a\" :\t{\"c\":1E+2,\"b\" : -1.50e3 } }\n",
                "\r\n{ \"a\" :\t{\"c\":1E+2,\"b\" : 0 } }\n",
            ),
            (
                r#"{"a":{"b":{"x":[1,"2",true,null,{"y":false}]},"c":"\u00e9\/"}}"#,
                r#"{"a":{"b":{"x":[0,"[redacted]",false,null,{"y":false}]},"c":"\u00e9\/"}}"#,
            ),
            (
                r#"{"a":[{"b":1},{"c":2},[{"b":"3"}]],"b":4}"#,
                r#"{"a":[{"b":0},{"c":2},[{"b":"[redacted]"}]],"b":4}"#,
            ),
            (
                r#"{"z":[{"sEcReT":"x\"}","d":18446744073709551617}]}"#,
                r#"{"z":[{"sEcReT":"[redacted]","d":18446744073709551617}]}"#,
            ),
            (
                r#"{"A":{"\u0062":"x","b":"y"}}"#,
                r#"{"A":{"\u0062":"[redacted]","b":"[redacted]"}}"#,
            ),
            (
                r#"{"a":{"b":"x","b":"y"},"a":"b"}"#,
                r#"{"a":{"b":"[redacted]","b":"[redacted]"},"a":"b"}"#,
            ),
            (r#"{"secret":{},"x":"secret"}"#, "untouched"),
            (r#"{"b":{"a":1},"a":{"bb":1,"c":{"b":2}}}"#, "untouched"),
            (r#""a""#, "untouched"),
            ("7", "untouched"),
        ] {
            assert_eq!(
                redacted_text(body, &redaction).as_deref(),
                Some(expected),
                "{body}"
            );
        }
    }

    #[test]
    fn case_makes_no_difference_in_any_language() {
        let redaction = Redaction::new()
            .field("DATA.größe")
            .key("MÜLLER")
            .key("key");
        for name in [
            "\"Müller\"",
            "\"m\\u00fcller\"",
            "\"\u{212a}ey\"",
            "\"\\u212AEY\"",
        ] {
            assert_eq!(
                redacted_text(&format!("{{{name}:\"x\"}}"), &redaction).unwrap(),
                format!("{{{name}:\"[redacted]\"}}")
            );
        }
        for name in ["GRÖßE", "GRÖSSE", "grösse"] {
            let body = format!(r#"{{"data":{{"{name}":1,"x":1}}}}"#);
            let expected = format!(r#"{{"data":{{"{name}":0,"x":1}}}}"#);
            assert_eq!(redacted_text(&body, &redaction).unwrap(), expected);
        }
        let other = r#"{"Muller":"x","kéy":1}"#;
        assert_eq!(redacted_text(other, &redaction).unwrap(), "untouched");
    }

    #[test]
    fn a_star_fits_any_name_and_everything_redacts_each_value() {
        let redaction = Redaction::new().field("data.*.total");
        assert_eq!(
            redacted_text(
                r#"{"data":{"a":{"total":1},"b":{"total":2,"x":3},"total":4}}"#,
                &redaction
            )
            .unwrap(),
            r#"{"data":{"a":{"total":0},"b":{"total":0,"x":3},"total":4}}"#
        );
        assert_eq!(
            redacted_text(
                r#"{"id":"evt_1","data":{"a":"b","c":[1]},"e":"f"}"#,
                &Redaction::everything()
            )
            .unwrap(),
            r#"{"id":"evt_1","data":{"a":"[redacted]","c":[0]},"e":"f"}"#
        );
    }

    // fault F42: a body whose name of a property is long, and has many values under it, keeps the thread of a recorder that redacts busy for minutes
    #[test]
    fn a_long_name_around_many_values_costs_no_more_than_a_short_one() {
        let redaction = Redaction::people().key("Iban").field("a.b");
        let values = r#"1,{"b":2},"#.repeat(20_000);
        let named = |name: &str| {
            let body = format!(r#"{{"{name}":[{values}3]}}"#);
            let begun = std::time::Instant::now();
            assert_eq!(redacted_text(&body, &redaction).unwrap(), "untouched");
            begun.elapsed()
        };
        // The best of several, in turns: what else the machine does must not count. A name that is
        // read at each value costs some hundred times as much.
        let name = "é".repeat(100_000);
        let (mut long, mut short) = (Duration::MAX, Duration::MAX);
        for _ in 0..5 {
            short = short.min(named("é"));
            long = long.min(named(&name));
        }
        assert!(long < 10 * short, "{long:?}, {short:?}");
    }

    #[test]
    fn nothing_is_found_in_what_is_not_json() {
        let redaction = Redaction::new().key("a");
        for body in [
            "",
            "{",
            r#"{"a":1}x"#,
            "\u{feff}{}",
            r#"{"\ud800":1}"#,
            "{'a':1}",
        ] {
            assert_eq!(redacted_text(body, &redaction), None, "{body}");
        }
        assert_eq!(redact_body(b"\"\xff\"", &redaction), None);
        // So deep that a recursive function would overflow the stack.
        let deep = "[".repeat(200_000) + &"]".repeat(200_000);
        assert_eq!(redacted_text(&deep, &redaction).unwrap(), "untouched");
    }
}
