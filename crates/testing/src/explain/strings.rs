//! JSON strings, with the escapes of other programs.

use super::cause::{Cause, CauseKind as Kind};

/// The way in which the characters of strings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strings {
    AsIs,
    SlashesUnescaped,
    SlashesEscaped,
    UnicodeUnescaped,
    UnicodeEscaped,
    HtmlUnescaped,
    HtmlEscaped,
    /// Every character as this writer writes it.
    By(Writer),
}

/// A program that writes JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    /// `JSON.stringify`; serde_json and Ruby's `JSON.generate` write the same.
    JavaScript,
    Python,
    Php,
}

impl Strings {
    /// The likeliest first.
    pub(super) const ALL: [Self; 10] = [
        Self::SlashesUnescaped,
        Self::UnicodeUnescaped,
        Self::UnicodeEscaped,
        Self::SlashesEscaped,
        Self::HtmlUnescaped,
        Self::HtmlEscaped,
        Self::By(Writer::JavaScript),
        Self::By(Writer::Python),
        Self::By(Writer::Php),
        Self::AsIs,
    ];

    /// Returns the mistake that is repaired by writing strings in this way.
    pub(super) fn cause(self) -> Option<Cause> {
        Some(match self {
            Self::AsIs => return None,
            Self::SlashesUnescaped => Cause::new(Kind::BodySlashesEscaped),
            Self::SlashesEscaped => Cause::new(Kind::BodySlashesUnescaped),
            Self::UnicodeUnescaped => Cause::new(Kind::BodyUnicodeEscaped),
            Self::UnicodeEscaped => Cause::new(Kind::BodyUnicodeUnescaped),
            Self::HtmlUnescaped => Cause::new(Kind::BodyHtmlEscaped),
            Self::HtmlEscaped => Cause::new(Kind::BodyHtmlUnescaped),
            Self::By(writer) => Cause::with(
                Kind::BodyStringsRewritten,
                format!("the signed body has them as {}", writer.name()),
            ),
        })
    }

    /// Writes a string, its quotes included.
    pub(super) fn write(self, string: &[u8], out: &mut Vec<u8>) {
        if self == Self::AsIs {
            return out.extend_from_slice(string);
        }
        let inner = string.get(1..string.len().saturating_sub(1));
        let mut rest = inner.unwrap_or_default();
        out.push(b'"');
        while let Some(unit) = Unit::first(rest) {
            self.write_unit(&unit, out);
            rest = rest.get(unit.text.len()..).unwrap_or_default();
        }
        out.push(b'"');
    }

    fn write_unit(self, unit: &Unit<'_>, out: &mut Vec<u8>) {
        let form = match self {
            Self::AsIs => Form::AsIs,
            Self::SlashesUnescaped if unit.text == b"\\/" => Form::Raw,
            Self::SlashesEscaped if unit.text == b"/" => Form::Short(b'/'),
            Self::UnicodeUnescaped if unit.is_unicode_escape() && unit.code >= 0x7f => Form::Raw,
            Self::UnicodeEscaped if unit.is_raw() && unit.code >= 0x80 => Form::Unicode,
            Self::HtmlUnescaped if unit.is_unicode_escape() && is_html(unit.code) => {
                match unit.code {
                    0x22 => Form::Short(b'"'),
                    _ => Form::Raw,
                }
            }
            Self::HtmlEscaped if unit.is_raw() && is_go_html(unit.code) => Form::Unicode,
            Self::By(writer) => writer.form(unit.code),
            _ => Form::AsIs,
        };
        form.write(unit, out);
    }
}

impl Writer {
    fn name(self) -> &'static str {
        match self {
            Self::JavaScript => "JavaScript's JSON.stringify writes them",
            Self::Python => "Python's json.dumps writes them",
            Self::Php => "PHP's json_encode writes them",
        }
    }

    fn form(self, code: u32) -> Form {
        let short = match code {
            0x08 => Some(b'b'),
            0x0c => Some(b'f'),
            0x0a => Some(b'n'),
            0x0d => Some(b'r'),
            0x09 => Some(b't'),
            0x22 => Some(b'"'),
            0x5c => Some(b'\\'),
            0x2f if self == Self::Php => Some(b'/'),
            _ => None,
        };
        if let Some(short) = short {
            return Form::Short(short);
        }
        let escaped = code < 0x20
            || (0xd800..0xe000).contains(&code)
            || match self {
                Self::JavaScript => false,
                Self::Python => code >= 0x7f,
                Self::Php => code >= 0x80,
            };
        if escaped { Form::Unicode } else { Form::Raw }
    }
}

/// Characters that some writer escapes so that the text can stand in HTML.
fn is_html(code: u32) -> bool {
    is_go_html(code) || matches!(code, 0x22 | 0x27 | 0x2b | 0x3d | 0x60)
}

fn is_go_html(code: u32) -> bool {
    matches!(code, 0x26 | 0x3c | 0x3e | 0x2028 | 0x2029)
}

/// The form of one character.
enum Form {
    AsIs,
    Raw,
    Short(u8),
    Unicode,
}

impl Form {
    fn write(self, unit: &Unit<'_>, out: &mut Vec<u8>) {
        match (self, char::from_u32(unit.code)) {
            (Self::Raw, Some(char)) => {
                out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            }
            (Self::AsIs | Self::Raw, _) => out.extend_from_slice(unit.text),
            (Self::Short(letter), _) => out.extend_from_slice(&[b'\\', letter]),
            (Self::Unicode, Some(char)) => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
                }
            }
            // One half of a surrogate pair is not a character.
            (Self::Unicode, None) => out.extend_from_slice(unit.text),
        }
    }
}

/// A character of a string, as written.
struct Unit<'s> {
    text: &'s [u8],
    /// Its code point; for a single surrogate the surrogate; above all code points where the byte is not UTF-8.
    code: u32,
}

const NO_CHARACTER: u32 = u32::MAX;

impl<'s> Unit<'s> {
    /// Returns the first character of the text between a string's quotes.
    fn first(rest: &'s [u8]) -> Option<Self> {
        let &byte = rest.first()?;
        let (length, code) = match byte {
            b'\\' => Self::escape(rest),
            0..0x80 => (1, u32::from(byte)),
            _ => {
                let length = match byte {
                    0xf0.. => 4,
                    0xe0.. => 3,
                    _ => 2,
                };
                let text = rest
                    .get(..length)
                    .and_then(|text| std::str::from_utf8(text).ok());
                match text.and_then(|text| text.chars().next()) {
                    Some(char) => (length, u32::from(char)),
                    None => (1, NO_CHARACTER),
                }
            }
        };
        let text = rest.get(..length)?;
        Some(Self { text, code })
    }

    fn escape(rest: &[u8]) -> (usize, u32) {
        let code = match rest.get(1) {
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => 0x0a,
            Some(b'r') => 0x0d,
            Some(b't') => 0x09,
            Some(b'u') => {
                let Some(unit) = hex_unit(rest) else {
                    return (2, NO_CHARACTER);
                };
                let low = rest.get(6..).and_then(hex_unit);
                return match low {
                    Some(low)
                        if (0xd800..0xdc00).contains(&unit) && (0xdc00..0xe000).contains(&low) =>
                    {
                        (12, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00))
                    }
                    _ => (6, unit),
                };
            }
            Some(&other) => u32::from(other),
            None => return (1, NO_CHARACTER),
        };
        (2, code)
    }

    fn is_raw(&self) -> bool {
        self.text.first() != Some(&b'\\')
    }

    fn is_unicode_escape(&self) -> bool {
        self.text.starts_with(b"\\u")
    }
}

/// Returns the number after `\u`.
fn hex_unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_hex)?;
    u32::from_str_radix(digits, 16).ok()
}

/// Returns a string's text, to sort keys by. Bytes that are not characters are left out.
#[expect(clippy::disallowed_methods, reason = "a text is read of it")]
pub(super) fn decoded(string: &[u8]) -> String {
    let mut out = Vec::with_capacity(string.len());
    Strings::By(Writer::JavaScript).write(string, &mut out);
    serde_json::from_slice(&out).unwrap_or_else(|_| String::from_utf8_lossy(string).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(strings: Strings, text: &str) -> String {
        let mut out = Vec::new();
        strings.write(format!("\"{text}\"").as_bytes(), &mut out);
        let text = String::from_utf8(out).unwrap();
        text[1..text.len() - 1].to_owned()
    }

    #[test]
    fn each_way_changes_what_it_is_named_for_and_no_more() {
        let text = r#"a\/b/c\u00e9ü\ud83d\uDE00😀<\u003E&\u0026\n\u000a\"\\'"#;
        for (strings, expected) in [
            (
                Strings::SlashesUnescaped,
                r#"a/b/c\u00e9ü\ud83d\uDE00😀<\u003E&\u0026\n\u000a\"\\'"#,
            ),
            (
                Strings::SlashesEscaped,
                r#"a\/b\/c\u00e9ü\ud83d\uDE00😀<\u003E&\u0026\n\u000a\"\\'"#,
            ),
            (
                Strings::UnicodeUnescaped,
                r#"a\/b/céü😀😀<\u003E&\u0026\n\u000a\"\\'"#,
            ),
            (
                Strings::UnicodeEscaped,
                r#"a\/b/c\u00e9\u00fc\ud83d\uDE00\ud83d\ude00<\u003E&\u0026\n\u000a\"\\'"#,
            ),
            (
                Strings::HtmlUnescaped,
                r#"a\/b/c\u00e9ü\ud83d\uDE00😀<>&&\n\u000a\"\\'"#,
            ),
            (
                Strings::HtmlEscaped,
                r#"a\/b/c\u00e9ü\ud83d\uDE00😀\u003c\u003E\u0026\u0026\n\u000a\"\\'"#,
            ),
            (
                Strings::By(Writer::JavaScript),
                r#"a/b/céü😀😀<>&&\n\n\"\\'"#,
            ),
            (
                Strings::By(Writer::Php),
                r#"a\/b\/c\u00e9\u00fc\ud83d\ude00\ud83d\ude00<>&&\n\n\"\\'"#,
            ),
        ] {
            assert_eq!(written(strings, text), expected, "{strings:?}");
        }
    }

    #[test]
    fn what_is_not_a_character_is_kept() {
        for strings in Strings::ALL {
            assert_eq!(written(strings, r"\ud800x").to_lowercase(), r"\ud800x");
            let mut out = Vec::new();
            strings.write(b"\"\xff\xc3\"", &mut out);
            assert_eq!(out, b"\"\xff\xc3\"", "{strings:?}");
            assert_eq!(written(strings, r"\uzz"), r"\uzz", "{strings:?}");
        }
    }

    #[test]
    fn keys_are_sorted_by_their_text() {
        assert_eq!(decoded(br#""\u0041\/""#), "A/");
        assert_eq!(decoded(br#""\ud800""#), r#""\ud800""#);
    }
}
