//! A body made readable without changing its meaning.

use std::fmt::Write as _;

use crate::printable::printable;

/// The deepest indent: a megabyte of brackets must not become a square of blanks.
const DEEPEST: usize = 64;

/// The lines of a body: JSON with an indent, in its own order and with its own digits and escapes;
/// other text as it is; anything else as bytes. Every line is safe to print on a terminal.
#[expect(clippy::disallowed_methods, reason = "nothing is made of it")]
pub(crate) fn lines(body: &[u8], raw: bool) -> Vec<String> {
    let Ok(text) = std::str::from_utf8(body) else {
        return hex(body);
    };
    if !raw && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
        return indented(text);
    }
    // A carriage return is shown, since it is one of the things that break signatures.
    text.split('\n')
        .map(|line| printable(line).into_owned())
        .collect()
}

/// Valid JSON, with a line for each field and item. White space between tokens is replaced and
/// nothing else.
fn indented(json: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut depth = 0;
    let mut rest = json.char_indices().peekable();
    let mut end_line = |line: &mut String, depth: usize| {
        lines.push(std::mem::take(line));
        line.extend(std::iter::repeat_n("  ", depth.min(DEEPEST)));
    };
    while let Some((at, char)) = rest.next() {
        match char {
            ' ' | '\t' | '\n' | '\r' => {}
            '"' => {
                let mut end = at + 1;
                while let Some((at, char)) = rest.next() {
                    end = at + 1;
                    match char {
                        '\\' => drop(rest.next()),
                        '"' => break,
                        _ => {}
                    }
                }
                line.push_str(&printable(&json[at..end]));
            }
            '{' | '[' => {
                line.push(char);
                while rest
                    .next_if(|(_, char)| char.is_ascii_whitespace())
                    .is_some()
                {}
                let closed =
                    |(_, next): &(usize, char)| matches!((char, next), ('{', '}') | ('[', ']'));
                if let Some((_, close)) = rest.next_if(closed) {
                    line.push(close);
                } else {
                    depth += 1;
                    end_line(&mut line, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                end_line(&mut line, depth);
                line.push(char);
            }
            ',' => {
                line.push(char);
                end_line(&mut line, depth);
            }
            ':' => line.push_str(": "),
            char => line.push(char),
        }
    }
    lines.push(line);
    lines
}

/// Formats sixteen bytes a line: their offset, their hex digits, and the same bytes as ASCII.
fn hex(bytes: &[u8]) -> Vec<String> {
    let line = |(number, bytes): (usize, &[u8])| {
        let mut line = format!("{:08x} ", number * 16);
        for at in 0..16 {
            let _ = match bytes.get(at) {
                Some(byte) => write!(line, " {byte:02x}"),
                None => write!(line, "   "),
            };
        }
        line.push_str("  ");
        let shown = |&byte: &u8| {
            if byte.is_ascii_graphic() || byte == b' ' {
                byte.into()
            } else {
                '.'
            }
        };
        line.extend(bytes.iter().map(shown));
        line
    };
    bytes.chunks(16).enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_its_order_its_digits_and_its_escapes() {
        let body = r#"{"b":12.50,"a":[1e2,{}, [] ,"x\"{,}\\"],"u":"\u001b\/","n":{"k" :null}}"#;
        let shown = [
            "{",
            r#"  "b": 12.50,"#,
            r#"  "a": ["#,
            "    1e2,",
            "    {},",
            "    [],",
            r#"    "x\"{,}\\""#,
            "  ],",
            r#"  "u": "\u001b\/","#,
            r#"  "n": {"#,
            r#"    "k": null"#,
            "  }",
            "}",
        ];
        assert_eq!(lines(body.as_bytes(), false), shown);
        assert_eq!(lines(body.as_bytes(), true), [body]);
    }

    #[test]
    fn all_that_is_left_out_is_white_space() {
        let without_space = |text: &str| text.replace([' ', '\n', '\t', '\r'], "");
        for body in [
            r#" { "a b" : [ 1 , 2 ] , "c" : "d  e" } "#,
            "[]",
            " 7 ",
            r#""a""#,
            "[[[]],{}]",
        ] {
            let shown = lines(body.as_bytes(), false).concat();
            assert_eq!(without_space(&shown), without_space(body));
            serde_json::from_str::<serde_json::Value>(&shown).unwrap();
        }
    }

    #[test]
    fn a_body_of_brackets_does_not_grow_by_the_square() {
        let deep = "[".repeat(1 << 17) + &"]".repeat(1 << 17);
        let shown: usize = lines(deep.as_bytes(), false).iter().map(String::len).sum();
        assert!(shown < 50 << 20, "{shown}");
    }

    #[test]
    fn what_is_not_json_is_shown_as_it_is() {
        assert_eq!(lines(b"{\"a\":\r\n", false), ["{\"a\":\\r", ""]);
        assert_eq!(lines("\u{feff}{}".as_bytes(), false), ["\\u{feff}{}"]);
        assert_eq!(lines(b"", false), [""]);
        assert_eq!(
            lines(b"{\"a\":\"\x1b[2J\"}", false),
            ["{\"a\":\"\\u{1b}[2J\"}"]
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_dumped() {
        let body = b"{\"a\":\"\xff\x1b and more than a line\"}";
        assert_eq!(
            lines(body, false),
            [
                "00000000  7b 22 61 22 3a 22 ff 1b 20 61 6e 64 20 6d 6f 72  {\"a\":\".. and mor",
                "00000010  65 20 74 68 61 6e 20 61 20 6c 69 6e 65 22 7d     e than a line\"}",
            ]
        );
        assert_eq!(lines(body, true), lines(body, false));
    }
}
