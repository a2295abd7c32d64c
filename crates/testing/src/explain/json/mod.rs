//! A body's JSON as tokens, so that it can be written again with only the requested changes.
//!
//! The values of a parser would lose the order of keys, the text of numbers and the escapes of strings. So this code walks over
//! the text and keeps the place of each token.

mod order;
mod walk;

use std::ops::Range;

use super::numbers::Numbers;
use super::strings::{Strings, decoded};
pub(super) use order::Order;
use order::Place;
use walk::{Ending, Kind, Token, Walk};

/// The limit of a written document: this number of times the length of the body, plus a few bytes.
const LONGER: usize = 16;
const FEW_BYTES: usize = 64 << 10;

/// The style in which a document is written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) layout: Layout,
    pub(super) order: Order,
    pub(super) strings: Strings,
    pub(super) numbers: Numbers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    AsIs,
    Compact,
    /// One space after each comma and colon.
    Spaced,
    /// One line for each value, indented by this text for each level.
    Pretty(&'static str),
}

impl Style {
    pub(super) const AS_IS: Self = Self {
        layout: Layout::AsIs,
        order: Order::AsIs,
        strings: Strings::AsIs,
        numbers: Numbers::AsIs,
    };
}

/// JSON, split into tokens.
pub(super) struct Document<'b> {
    source: &'b [u8],
    tokens: Vec<Token>,
}

impl<'b> Document<'b> {
    /// `None` where the body is not JSON text.
    pub(super) fn parse(source: &'b [u8]) -> Option<Self> {
        let (tokens, ending) = Walk::over(source);
        matches!(ending, Ending::Whole).then_some(Self { source, tokens })
    }

    /// Returns the shortest tail that completes a body that breaks off: the quote of a string, and brackets.
    pub(super) fn missing_tail(source: &[u8]) -> Option<Vec<u8>> {
        match Walk::over(source).1 {
            Ending::Short(tail) => Some(tail),
            Ending::Whole | Ending::Wrong => None,
        }
    }

    /// Writes the document in this style. `None` where indentation makes it so much longer that no service sends it: deep and
    /// empty brackets would use all memory.
    pub(super) fn write(&self, style: &Style) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(self.source.len());
        if style.layout == Layout::AsIs && style.order == Order::AsIs {
            let mut written = 0;
            for token in &self.tokens {
                out.extend_from_slice(self.text(written..token.at.start));
                self.write_token(token, style, &mut out);
                written = token.at.end;
            }
            out.extend_from_slice(self.text(written..self.source.len()));
            return Some(out);
        }
        let most = self.source.len().saturating_mul(LONGER) + FEW_BYTES;
        let mut page = Page {
            layout: style.layout,
            depth: 0,
            after_opening: false,
            out,
        };
        for index in self.sequence(style.order) {
            if let Some(token) = self.tokens.get(index) {
                page.before(token.kind);
                self.write_token(token, style, &mut page.out);
                page.after(token.kind);
            }
            if page.out.len() > most {
                return None;
            }
        }
        Some(page.out)
    }

    /// Whether every object has its keys sorted by their text, and some object's keys could be in another order.
    pub(super) fn is_sorted(&self) -> bool {
        let sequence = self.sequence(Order::Sorted);
        let is_comma = |index| self.kind(index) == Some(Kind::Comma);
        // The sorted sequence repeats one comma for a whole object, so commas are not compared.
        let in_place = |(at, &index): (usize, &usize)| at == index || is_comma(index);
        sequence.iter().enumerate().all(in_place) && sequence.iter().any(|&index| is_comma(index))
    }

    /// Returns the text of each number.
    pub(super) fn numbers(&self) -> impl Iterator<Item = &'b [u8]> {
        let numbers = self
            .tokens
            .iter()
            .filter(|token| token.kind == Kind::Number);
        numbers.map(|token| self.text(token.at.clone()))
    }

    fn write_token(&self, token: &Token, style: &Style, out: &mut Vec<u8>) {
        let text = self.text(token.at.clone());
        match token.kind {
            Kind::Text => style.strings.write(text, out),
            Kind::Number => style.numbers.write(text, out),
            _ => out.extend_from_slice(text),
        }
    }

    fn text(&self, at: Range<usize>) -> &'b [u8] {
        self.source.get(at).unwrap_or_default()
    }

    /// The tokens in the order in which they are written.
    fn sequence(&self, order: Order) -> Vec<usize> {
        if order == Order::AsIs {
            return (0..self.tokens.len()).collect();
        }
        let mut sequence = Vec::with_capacity(self.tokens.len());
        self.place(0, order, Place::Envelope, &mut sequence);
        sequence
    }

    fn place(&self, at: usize, order: Order, place: Place, sequence: &mut Vec<usize>) {
        sequence.push(at);
        let Some(Kind::Open(close)) = self.kind(at) else {
            return;
        };
        let is_object = self
            .tokens
            .get(at)
            .is_some_and(|token| self.text(token.at.clone()) == b"{");
        let mut members = self.members(at + 1, close, is_object);
        if is_object {
            members.sort_by(|one, other| order.compare(&one.key, &other.key, place));
        }
        // All commas are equal.
        let comma = members.iter().find_map(|member| member.comma);
        for (number, member) in members.into_iter().enumerate() {
            sequence.extend(comma.filter(|_| number > 0));
            if let Some(key) = member.key_at {
                sequence.extend([key, key + 1]);
            }
            self.place(member.value, order, place.below(&member.key), sequence);
        }
        sequence.push(close);
    }

    /// Returns the values between two brackets, with their keys.
    fn members(&self, mut at: usize, close: usize, is_object: bool) -> Vec<Member> {
        let mut members = Vec::new();
        while at < close {
            let (key_at, value) = if is_object {
                (Some(at), at + 2)
            } else {
                (None, at)
            };
            let end = match self.kind(value) {
                Some(Kind::Open(close)) => close + 1,
                _ => value + 1,
            };
            let key = key_at.and_then(|key| self.tokens.get(key));
            members.push(Member {
                key_at,
                value,
                comma: (end < close).then_some(end),
                key: key.map_or_else(String::new, |key| decoded(self.text(key.at.clone()))),
            });
            at = end + 1;
        }
        members
    }

    fn kind(&self, at: usize) -> Option<Kind> {
        self.tokens.get(at).map(|token| token.kind)
    }
}

struct Member {
    key_at: Option<usize>,
    value: usize,
    comma: Option<usize>,
    key: String,
}

/// Writes white space between tokens.
struct Page {
    layout: Layout,
    depth: usize,
    after_opening: bool,
    out: Vec<u8>,
}

impl Page {
    fn before(&mut self, kind: Kind) {
        if kind == Kind::Close {
            self.depth = self.depth.saturating_sub(1);
        }
        let is_empty = kind == Kind::Close && self.after_opening;
        if !is_empty && (kind == Kind::Close || self.after_opening) {
            self.break_line();
        }
        self.after_opening = false;
    }

    fn after(&mut self, kind: Kind) {
        match (kind, self.layout) {
            (Kind::Open(_), _) => {
                self.depth += 1;
                self.after_opening = true;
            }
            (Kind::Comma, Layout::Pretty(_)) => self.break_line(),
            (Kind::Comma | Kind::Colon, Layout::Spaced) | (Kind::Colon, Layout::Pretty(_)) => {
                self.out.push(b' ')
            }
            _ => {}
        }
    }

    fn break_line(&mut self) {
        if let Layout::Pretty(indent) = self.layout {
            self.out.push(b'\n');
            for _ in 0..self.depth {
                self.out.extend_from_slice(indent.as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#" {"b":1.0,"a":[true,null,[],{}],"c":{"long":"ü","z":"x\/y"}}"#;

    fn written(text: &str, style: Style) -> String {
        let document = Document::parse(text.as_bytes()).unwrap();
        String::from_utf8(document.write(&style).unwrap()).unwrap()
    }

    fn laid_out(layout: Layout) -> String {
        let style = Style {
            layout,
            ..Style::AS_IS
        };
        written(TEXT, style)
    }

    #[test]
    fn a_layout_changes_white_space_alone() {
        assert_eq!(laid_out(Layout::AsIs), TEXT);
        assert_eq!(laid_out(Layout::Compact), TEXT.trim());
        assert_eq!(
            laid_out(Layout::Spaced),
            r#"{"b": 1.0, "a": [true, null, [], {}], "c": {"long": "ü", "z": "x\/y"}}"#
        );
        let pretty = "{\n  \"b\": 1.0,\n  \"a\": [\n    true,\n    null,\n    [],\n    {}\n  ],\n  \"c\": {\n    \"long\": \"ü\",\n    \"z\": \"x\\/y\"\n  }\n}";
        assert_eq!(laid_out(Layout::Pretty("  ")), pretty);
        let compact = Style {
            layout: Layout::Compact,
            ..Style::AS_IS
        };
        assert_eq!(written(pretty, compact), TEXT.trim());
        assert_eq!(written(" 1 ", compact), "1");
    }

    #[test]
    fn an_order_moves_members_whole() {
        let ordered = |text, order| {
            let style = Style {
                order,
                ..Style::AS_IS
            };
            written(text, style)
        };
        assert_eq!(
            ordered(TEXT, Order::Sorted),
            r#"{"a":[true,null,[],{}],"b":1.0,"c":{"long":"ü","z":"x\/y"}}"#
        );
        assert_eq!(
            ordered(r#"{"long":1,"z":{},"ab":[{"b":1,"a":2}]}"#, Order::ByLength),
            r#"{"z":{},"ab":[{"a":2,"b":1}],"long":1}"#
        );
        let sorted = r#"{"createdAt":"x","data":{"datamodelId":"d","createdBy":{"email":"e","id":"i","name":"n"},"properties":{"id":2,"Name":{"type":1,"id":2}},"rowId":"r"},"id":"evt","type":"t","workspaceId":"w"}"#;
        let service = r#"{"id":"evt","type":"t","createdAt":"x","workspaceId":"w","data":{"datamodelId":"d","rowId":"r","properties":{"id":2,"Name":{"id":2,"type":1}},"createdBy":{"id":"i","name":"n","email":"e"}}}"#;
        assert_eq!(ordered(sorted, Order::Service), service);
        assert_eq!(ordered("{}", Order::Sorted), "{}");
        let is_sorted = |text: &'static str| Document::parse(text.as_bytes()).unwrap().is_sorted();
        assert!(is_sorted(r#"{"a":1,"b":{"c":2},"d":[3,2,1]}"#) && !is_sorted(r#"{"b":1,"a":2}"#));
        assert!(!is_sorted("{}"));
    }

    #[test]
    fn strings_and_numbers_are_written_in_place() {
        let style = Style {
            strings: Strings::UnicodeEscaped,
            numbers: Numbers::JavaScript,
            ..Style::AS_IS
        };
        let expected = TEXT.replace("1.0", "1").replace('ü', "\\u00fc");
        assert_eq!(written(TEXT, style), expected);
    }

    #[test]
    fn what_is_not_json_is_left_alone() {
        for text in [
            "",
            " ",
            "{",
            "{]",
            "[1 2]",
            "{\"a\"}",
            "{1:2}",
            "[1,]",
            "{,}",
            "nul",
            "1 2",
            "\"",
            "[}",
            "\u{feff}{}",
            "{\"a\":1,}",
        ] {
            assert!(Document::parse(text.as_bytes()).is_none(), "{text}");
        }
        assert!(Document::parse("[".repeat(100_000).as_bytes()).is_none());
        let deep = [["["; 127].concat(), ["]"; 127].concat()].concat();
        assert_eq!(
            written(
                &deep,
                Style {
                    order: Order::Sorted,
                    ..Style::AS_IS
                }
            ),
            deep
        );
    }

    #[test]
    fn what_breaks_off_is_closed() {
        for (text, tail) in [
            (r#"{"a":{"b":[1"#, "]}}"),
            (r#"{"a":"x"#, "\"}"),
            (r#"{"a":"x","#, "-"),
            (r#"{"a"#, "-"),
            (r#"{"a":1}"#, "-"),
            ("{", "}"),
            ("nonsense", "-"),
        ] {
            let missing = Document::missing_tail(text.as_bytes());
            let missing = missing.map_or("-".into(), |tail| String::from_utf8(tail).unwrap());
            assert_eq!(missing, tail, "{text}");
        }
    }

    #[test]
    fn what_indentation_would_blow_up_is_not_written() {
        let (depth, many) = (120, 50_000);
        let deep = format!(
            "{}{}[]{}",
            "[".repeat(depth),
            "[],".repeat(many),
            "]".repeat(depth)
        );
        let document = Document::parse(deep.as_bytes()).unwrap();
        let laid_out = |layout| {
            document.write(&Style {
                layout,
                ..Style::AS_IS
            })
        };
        assert_eq!(laid_out(Layout::Pretty("    ")), None);
        assert_eq!(laid_out(Layout::Compact).unwrap(), deep.as_bytes());
        // The same depth, but no longer than a real body.
        let few = format!("{}1,2{}", "[".repeat(depth), "]".repeat(depth));
        let few = Document::parse(few.as_bytes()).unwrap();
        let style = Style {
            layout: Layout::Pretty("    "),
            ..Style::AS_IS
        };
        assert!(few.write(&style).is_some());
    }
}
