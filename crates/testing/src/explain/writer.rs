//! How other programs write the texts and numbers of JSON.

/// A program that writes JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    /// `JSON.stringify`, the service, Jackson, serde_json and Ruby.
    JavaScript,
    Python,
    Go,
    Php,
    /// Gson, which escapes for HTML.
    Java,
}

impl Writer {
    /// The likeliest first.
    pub(super) const ALL: [Self; 5] = [
        Self::JavaScript,
        Self::Python,
        Self::Go,
        Self::Php,
        Self::Java,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::JavaScript => "JavaScript's JSON.stringify",
            Self::Python => "Python's json.dumps",
            Self::Go => "Go's json.Marshal",
            Self::Php => "PHP's json_encode",
            Self::Java => "Java's Gson",
        }
    }

    /// Writes a text that has its quotes. One that is not UTF-8 or has half a surrogate pair stays
    /// as it is.
    #[expect(clippy::disallowed_methods, reason = "a text is read of it")]
    pub(super) fn string(self, quoted: &[u8], out: &mut Vec<u8>) {
        let Ok(text) = serde_json::from_slice::<String>(quoted) else {
            return out.extend_from_slice(quoted);
        };
        out.push(b'"');
        for char in text.chars() {
            self.char(char, out);
        }
        out.push(b'"');
    }

    fn char(self, char: char, out: &mut Vec<u8>) {
        let short = match char {
            '\u{8}' => b'b',
            '\u{c}' => b'f',
            '\n' => b'n',
            '\r' => b'r',
            '\t' => b't',
            '"' | '\\' => char as u8,
            '/' if self == Self::Php => b'/',
            _ => 0,
        };
        let is_html = match self {
            Self::Go => matches!(char, '<' | '>' | '&' | '\u{2028}' | '\u{2029}'),
            Self::Java => matches!(char, '<' | '>' | '&' | '=' | '\'' | '\u{2028}' | '\u{2029}'),
            _ => false,
        };
        let is_foreign = match self {
            Self::Python => char >= '\u{7f}',
            Self::Php => char >= '\u{80}',
            _ => false,
        };
        if short > 0 {
            out.extend([b'\\', short]);
        } else if char < ' ' || is_html || is_foreign {
            for unit in char.encode_utf16(&mut [0; 2]) {
                out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
            }
        } else {
            out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    /// Writes a number. What is not a number stays as it is.
    pub(super) fn number(self, number: &[u8], out: &mut Vec<u8>) {
        match self.rewritten(number) {
            Some(text) => out.extend_from_slice(text.as_bytes()),
            None => out.extend_from_slice(number),
        }
    }

    fn rewritten(self, number: &[u8]) -> Option<String> {
        let text = std::str::from_utf8(number).ok()?;
        let value: f64 = text.parse().ok()?;
        let keeps_integers = matches!(self, Self::Python | Self::Java);
        if !value.is_finite() || (keeps_integers && !text.contains(['.', 'e', 'E'])) {
            return None;
        }
        let scientific = format!("{value:e}");
        let (mantissa, exponent) = scientific.split_once('e')?;
        let exponent: i32 = exponent.parse().ok()?;
        let point = if mantissa.contains('.') { "" } else { ".0" };
        // `{value:?}` has a point or an exponent, and `{value}` neither where it is whole.
        Some(match (self, exponent) {
            (Self::Python, -4..=15) if value.fract() == 0.0 => format!("{value}.0"),
            (Self::Java, -3..=6) if value.fract() == 0.0 => format!("{value}.0"),
            (Self::Python, -4..=15) | (Self::Java, -3..=6) => value.to_string(),
            (Self::Python, _) => format!("{mantissa}e{exponent:+03}"),
            (Self::Java, _) => format!("{mantissa}{point}E{exponent}"),
            _ if value == 0.0 => "0".into(),
            (_, -6..=20) => value.to_string(),
            _ => format!("{mantissa}e{exponent:+}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(writer: Writer, text: &str) -> String {
        let mut out = Vec::new();
        writer.string(format!("\"{text}\"").as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    /// The output of node, python3, go, php and Gson for this text.
    #[test]
    fn texts_are_written_as_their_writers_do() {
        let text = r#"a\/b/c\u00e9ü\ud83d\uDE00😀<\u003E&=\n\u000a\"\\'"#;
        for (writer, expected) in [
            (Writer::JavaScript, r#"a/b/céü😀😀<>&=\n\n\"\\'"#),
            (
                Writer::Python,
                r#"a/b/c\u00e9\u00fc\ud83d\ude00\ud83d\ude00<>&=\n\n\"\\'"#,
            ),
            (Writer::Go, r#"a/b/céü😀😀\u003c\u003e\u0026=\n\n\"\\'"#),
            (
                Writer::Php,
                r#"a\/b\/c\u00e9\u00fc\ud83d\ude00\ud83d\ude00<>&=\n\n\"\\'"#,
            ),
            (
                Writer::Java,
                r#"a/b/céü😀😀\u003c\u003e\u0026\u003d\n\n\"\\\u0027"#,
            ),
        ] {
            assert_eq!(
                string(writer, text),
                format!("\"{expected}\""),
                "{writer:?}"
            );
        }
    }

    #[test]
    fn what_is_not_a_character_is_kept() {
        for writer in Writer::ALL {
            assert_eq!(string(writer, r"\ud800x"), r#""\ud800x""#);
            let mut out = Vec::new();
            writer.string(b"\"\xff\xc3\"", &mut out);
            assert_eq!(out, b"\"\xff\xc3\"", "{writer:?}");
        }
    }

    /// The output of node, python3 and Java's `Double.toString` for these numbers.
    #[test]
    fn numbers_are_written_as_their_writers_do() {
        for (text, javascript, python, java) in [
            ("1", "1", "1", "1"),
            ("1.0", "1", "1.0", "1.0"),
            ("-0.0", "0", "-0.0", "-0.0"),
            ("1e3", "1000", "1000.0", "1000.0"),
            ("1.50", "1.5", "1.5", "1.5"),
            ("12.25e1", "122.5", "122.5", "122.5"),
            ("12345678.5", "12345678.5", "12345678.5", "1.23456785E7"),
            ("0.000001", "0.000001", "1e-06", "1.0E-6"),
            ("0.0001", "0.0001", "0.0001", "1.0E-4"),
            ("0.00000012", "1.2e-7", "1.2e-07", "1.2E-7"),
            ("1e20", "100000000000000000000", "1e+20", "1.0E20"),
            ("1e21", "1e+21", "1e+21", "1.0E21"),
            ("1e15", "1000000000000000", "1000000000000000.0", "1.0E15"),
            (
                "9007199254740993",
                "9007199254740992",
                "9007199254740993",
                "9007199254740993",
            ),
            ("-12.5", "-12.5", "-12.5", "-12.5"),
            ("1e999", "1e999", "1e999", "1e999"),
            ("null", "null", "null", "null"),
        ] {
            let written = |writer: Writer| {
                let mut out = Vec::new();
                writer.number(text.as_bytes(), &mut out);
                String::from_utf8(out).unwrap()
            };
            assert_eq!(written(Writer::JavaScript), javascript, "{text}");
            assert_eq!(written(Writer::Python), python, "{text}");
            assert_eq!(written(Writer::Java), java, "{text}");
        }
    }
}
