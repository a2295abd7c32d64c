//! Text from others, made printable for a terminal: no part of it can move the cursor, change a
//! colour, set a title, reach the clipboard or change the direction of writing.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with every character escaped that a terminal acts on or that can't be seen: controls,
/// and those that only format.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts_on_terminal) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for char in text.chars() {
        match char {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            char if acts_on_terminal(char) => {
                // A `String` takes whatever is written to it.
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(char));
            }
            char => shown.push(char),
        }
    }
    Cow::Owned(shown)
}

/// The text, or its beginning and a mark where it continues. The longest text that is shown whole
/// is the id of an event.
pub(crate) fn beginning(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 256;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// One row of a table. A cell that is longer than its column moves the rest to the right: no text
/// is cut off that a user may have to copy.
pub(crate) fn table_row<const N: usize>(cells: &[&str; N], widths: [usize; N]) -> String {
    let mut row = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        let _ = write!(row, "{:<width$}  ", printable(cell));
    }
    row.truncate(row.trim_end().len());
    row
}

/// The same for bytes that need not be UTF-8: invalid bytes are shown as `\xff`.
pub(crate) fn printable_bytes(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        shown.push_str(&printable(chunk.valid()));
        for byte in chunk.invalid() {
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

/// The same for several lines: line breaks stay.
pub(crate) fn printable_lines(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(printable).collect();
    lines.join("\n")
}

/// The same for JSON in one line. The JSON keeps its meaning: harmful characters that are not
/// escaped in it stand in strings only.
pub(crate) fn printable_json(json: &str) -> Cow<'_, str> {
    if !json.chars().any(acts_on_terminal) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len() + 8);
    for char in json.chars() {
        if acts_on_terminal(char) {
            for unit in char.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(char);
        }
    }
    Cow::Owned(shown)
}

/// Whether a terminal would act on these bytes, or show something else in their place. Line breaks
/// and tabs are part of normal text.
pub(crate) fn has_control_characters(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(text) => text
            .replace("\r\n", "\n")
            .chars()
            .any(|char| acts_on_terminal(char) && !matches!(char, '\n' | '\t')),
        Err(_) => true,
    }
}

/// Control characters, and those that Unicode calls format characters: joiners, marks of direction,
/// tags, and line separators.
fn acts_on_terminal(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{8e2}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// A reason without the parts that repeat its outcome.
pub(crate) fn short_reason(reason: &str) -> &str {
    let mut short = reason;
    for known in ["delivery refused: ", "not authentic or not fresh: "] {
        short = short.strip_prefix(known).unwrap_or(short);
    }
    short
}

/// The note about a refused delivery, after its reason. The id comes from a header that is not
/// signed.
pub(crate) fn claimed_subscription(id: &str) -> String {
    format!(" (claimed subscription, unproven: {id})")
}

/// The beginning and the text, with further lines where it is wider than this, each below the
/// beginning of the text.
pub(crate) fn hanging(begin: &str, text: &str, columns: usize) -> String {
    let indent = begin.chars().count();
    // A terminal that has no room for it breaks the lines itself.
    let room = columns.saturating_sub(indent);
    if room < 20 {
        return format!("{begin}{text}");
    }
    let (mut shown, mut used) = (begin.to_owned(), 0);
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > room {
            shown.push('\n');
            shown.push_str(&" ".repeat(indent));
            used = 0;
        } else if used > 0 {
            shown.push(' ');
            used += 1;
        }
        shown.push_str(word);
        used += length;
    }
    shown
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
            assert_eq!(printable(text), shown);
            assert_eq!(printable_bytes(text.as_bytes()), shown);
        }
        assert!(matches!(printable("plain"), Cow::Borrowed("plain")));
    }

    #[test]
    fn a_long_text_is_shown_in_part() {
        let id = "é".repeat(256);
        assert!(matches!(beginning(&id), Cow::Borrowed(whole) if whole == id));
        assert_eq!(beginning(&format!("{id}x")), format!("{id}…"));
    }

    #[test]
    fn json_says_the_same_and_acts_on_nothing() {
        let value =
            serde_json::json!({ "\u{9b}31m": ["\u{7f}\u{1b}[2J", "\u{202e}\u{e0041}", "東京"] });
        let written = value.to_string();
        let shown = printable_json(&written);
        assert!(
            shown.contains("東京") && !shown.chars().any(acts_on_terminal),
            "{shown}"
        );
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
            value
        );
        assert!(matches!(printable_json("{}"), Cow::Borrowed("{}")));
    }

    #[test]
    fn text_may_be_shown_as_it_is_and_the_rest_may_not() {
        for text in ["", "{\"a\":\r\n\t\"東京\"}\n"] {
            assert!(!has_control_characters(text.as_bytes()), "{text:?}");
        }
        for bytes in [
            &b"\x1b[2J"[..],
            b"a\rb",
            b"\xff",
            "\u{9b}".as_bytes(),
            "\u{202e}".as_bytes(),
        ] {
            assert!(has_control_characters(bytes), "{bytes:?}");
        }
        assert_eq!(printable_lines("a\x1b\nb\n"), "a\\u{1b}\nb\n");
    }

    #[test]
    fn bytes_that_are_no_text_are_named() {
        assert_eq!(printable_bytes(b"a\xff\xfe\x1bz"), "a\\xff\\xfe\\u{1b}z");
        // The eighth bit alone makes a control of an older terminal; as UTF-8 it is none.
        assert_eq!(printable_bytes(b"\x9b31m"), "\\x9b31m");
    }

    #[test]
    fn a_long_line_goes_on_below_the_beginning_of_its_text() {
        let text = "remember for 26 h 46 min 30 s or longer: .retention(…) in the receiver's builder, and --retention here";
        let shown = hanging("to fix        retention  ", text, 80);
        let lines: Vec<_> = shown.lines().collect();
        assert!(
            lines.len() == 2 && lines.iter().all(|line| line.chars().count() <= 80),
            "{shown}"
        );
        assert!(lines[1].starts_with(&" ".repeat(25)), "{shown}");
        let words: Vec<_> = shown.split_whitespace().skip(3).collect();
        assert_eq!(words.join(" "), text);
        // Where there is no room, and in a pipe, it is one line.
        for columns in [30, usize::MAX] {
            assert_eq!(
                hanging("to fix        retention  ", text, columns)
                    .lines()
                    .count(),
                1
            );
        }
    }
}
