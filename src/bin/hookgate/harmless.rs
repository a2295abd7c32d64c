//! Text that somebody else wrote, made harmless for a terminal: nothing of it can move the cursor, change a colour, set a title, reach
//! the clipboard or turn the direction of writing.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with every character escaped that a terminal acts on or that can't be seen: controls, and those that only format.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for char in text.chars() {
        match char {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            char if is_harmful(char) => {
                // A `String` takes whatever is written to it.
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(char));
            }
            char => shown.push(char),
        }
    }
    Cow::Owned(shown)
}

/// The same of bytes that need not be UTF-8: those that are not are shown as `\xff`.
pub(crate) fn harmless_bytes(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        shown.push_str(&harmless(chunk.valid()));
        for byte in chunk.invalid() {
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

/// Controls, and what Unicode calls format characters: joiners, marks of direction, tags, and the separators of lines.
fn is_harmful(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{8e2}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_acts_on_is_escaped() {
        for (text, shown) in [
            ("evt_1", "evt_1"),
            ("Grüße 東京 🧾", "Grüße 東京 🧾"),
            (
                "\u{1b}[2J\u{1b}]0;owned\u{7}",
                "\\u{1b}[2J\\u{1b}]0;owned\\u{7}",
            ),
            ("\u{9b}31mred", "\\u{9b}31mred"),
            ("a\r\nb\tc\u{7f}", "a\\r\\nb\\tc\\u{7f}"),
            ("abc\u{202e}fdp.exe", "abc\\u{202e}fdp.exe"),
            ("one\u{2028}two\u{feff}", "one\\u{2028}two\\u{feff}"),
            ("\u{200d}\u{e0041}", "\\u{200d}\\u{e0041}"),
        ] {
            assert_eq!(harmless(text), shown);
            assert_eq!(harmless_bytes(text.as_bytes()), shown);
        }
        assert!(matches!(harmless("plain"), Cow::Borrowed("plain")));
    }

    #[test]
    fn bytes_that_are_no_text_are_named() {
        assert_eq!(harmless_bytes(b"a\xff\xfe\x1bz"), "a\\xff\\xfe\\u{1b}z");
        // The eighth bit alone makes a control of an older terminal; as UTF-8 it is none.
        assert_eq!(harmless_bytes(b"\x9b31m"), "\\x9b31m");
    }
}
