//! A body's JSON as a tree of its own text, so that it can be written again with only the requested
//! changes.
//!
//! The values of a parser would lose the order of keys, the text of numbers and the escapes of
//! strings.

use std::cmp::Ordering;

use serde::de::IgnoredAny;

use super::writer::Writer;

/// The limit of a written document: this number of times the length of the body, plus a few bytes.
const LONGER: usize = 16;
const FEW_BYTES: usize = 64 << 10;

/// The style in which a document is written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) layout: Layout,
    pub(super) order: Order,
    /// Writes the texts. `None` leaves them as they are.
    pub(super) strings: Option<Writer>,
    /// Writes the numbers. `None` leaves them as they are.
    pub(super) numbers: Option<Writer>,
}

impl Style {
    /// Without white space, the rest as it is.
    pub(super) const COMPACT: Self = Self {
        layout: Layout::Compact,
        order: Order::AsIs,
        strings: None,
        numbers: None,
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Compact,
    /// One space after each comma and colon.
    Spaced,
    /// One line for each value, indented by this text for each level.
    Indented(&'static str),
}

/// The order in which an object's keys are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    AsIs,
    /// The order of the service's specification; names of properties keep their order.
    Service,
    Sorted,
}

/// The keys of the service's own objects, in the order of its specification. No two lists have the
/// same keys in different orders.
const SERVICE_ORDER: [&str; 18] = [
    "id",
    "type",
    "createdAt",
    "workspaceId",
    "data",
    "datamodelId",
    "datamodelName",
    "rowId",
    "properties",
    "changes",
    "createdBy",
    "updatedBy",
    "deletedBy",
    "name",
    "email",
    "before",
    "after",
    "url",
];

/// JSON, split into the text of its values.
pub(super) enum Node<'b> {
    /// A text with its quotes, a number or a word.
    Scalar(&'b [u8]),
    List(Vec<Node<'b>>),
    Object(Vec<(&'b [u8], Node<'b>)>),
}

impl<'b> Node<'b> {
    /// `None` where the body is not JSON text.
    #[expect(clippy::disallowed_methods, reason = "nothing is read of it")]
    pub(super) fn parse(body: &'b [u8]) -> Option<Self> {
        // It also limits the depth.
        serde_json::from_slice::<IgnoredAny>(body).ok()?;
        Self::first(&mut &*body)
    }

    /// Takes the first value off valid JSON.
    fn first(rest: &mut &'b [u8]) -> Option<Self> {
        *rest = rest.trim_ascii_start();
        let (&first, behind) = rest.split_first()?;
        if !b"[{".contains(&first) {
            return Some(Self::Scalar(scalar(rest)?));
        }
        *rest = behind.trim_ascii_start();
        let (mut list, mut members) = (Vec::new(), Vec::new());
        while !matches!(rest.first()?, b']' | b'}') {
            if first == b'{' {
                let key = scalar(rest)?;
                *rest = rest
                    .trim_ascii_start()
                    .strip_prefix(b":")?
                    .trim_ascii_start();
                members.push((key, Self::first(rest)?));
            } else {
                list.push(Self::first(rest)?);
            }
            *rest = rest.trim_ascii_start();
            *rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
        }
        *rest = rest.get(1..)?;
        Some(match first {
            b'{' => Self::Object(members),
            _ => Self::List(list),
        })
    }

    /// Writes the document in this style. `None` where indentation makes it so much longer that no
    /// service sends it: deep and empty brackets would use all memory.
    pub(super) fn write(&self, style: &Style, length: usize) -> Option<Vec<u8>> {
        let mut page = Page {
            style,
            most: length.saturating_mul(LONGER) + FEW_BYTES,
            depth: 0,
            out: Vec::with_capacity(length),
        };
        page.node(self, Place::Envelope)?;
        Some(page.out)
    }

    /// Whether every object has its keys sorted by their text, and some object's keys could be in
    /// another order.
    pub(super) fn is_sorted(&self) -> bool {
        let mut sorted = (true, false);
        self.each(&mut |node| {
            if let Self::Object(members) = node {
                sorted.0 &= members.is_sorted_by(|one, other| one.0 <= other.0);
                sorted.1 |= members.len() > 1;
            }
        });
        sorted == (true, true)
    }

    /// Whether a number is one of these.
    pub(super) fn has_number(&self, is_one: impl Fn(&[u8]) -> bool) -> bool {
        let mut found = false;
        self.each(&mut |node| {
            if let Self::Scalar(text @ [b'-' | b'0'..=b'9', ..]) = node {
                found |= is_one(text);
            }
        });
        found
    }

    fn each(&self, visit: &mut impl FnMut(&Self)) {
        visit(self);
        match self {
            Self::Scalar(_) => {}
            Self::List(list) => list.iter().for_each(|node| node.each(visit)),
            Self::Object(members) => members.iter().for_each(|(_, node)| node.each(visit)),
        }
    }
}

/// Takes a text with its quotes, a number or a word off valid JSON.
fn scalar<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let mut end = 1;
    if rest.first() == Some(&b'"') {
        while *rest.get(end)? != b'"' {
            end += if rest.get(end) == Some(&b'\\') { 2 } else { 1 };
        }
        end += 1;
    } else {
        let is_behind = |byte: &u8| byte.is_ascii_whitespace() || b",:]}".contains(byte);
        end = rest.iter().position(is_behind).unwrap_or(rest.len());
    }
    let (scalar, behind) = rest.split_at_checked(end)?;
    *rest = behind;
    Some(scalar)
}

/// The kind of an object in a delivery.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Envelope,
    /// `properties` and `changes`: the users choose their keys.
    Names,
    Values,
}

impl Place {
    fn below(self, key: &[u8]) -> Self {
        match (self, key) {
            (Self::Envelope, b"\"properties\"" | b"\"changes\"") => Self::Names,
            (Self::Names, _) => Self::Values,
            (place, _) => place,
        }
    }
}

impl Order {
    fn compare(self, one: &[u8], other: &[u8], place: Place) -> Ordering {
        match self {
            Self::AsIs => Ordering::Equal,
            Self::Sorted => one.cmp(other),
            Self::Service if place == Place::Names => Ordering::Equal,
            Self::Service => rank(one).cmp(&rank(other)),
        }
    }
}

fn rank(key: &[u8]) -> usize {
    let key = key.get(1..key.len().saturating_sub(1));
    let known = |known: &&str| Some(known.as_bytes()) == key;
    let known = SERVICE_ORDER.iter().position(known);
    known.unwrap_or(SERVICE_ORDER.len())
}

struct Page<'s> {
    style: &'s Style,
    most: usize,
    depth: usize,
    out: Vec<u8>,
}

impl Page<'_> {
    fn node(&mut self, node: &Node<'_>, place: Place) -> Option<()> {
        match node {
            Node::Scalar(text) => self.scalar(text),
            Node::List(list) => {
                let values = list.iter().map(|value| (None, value, place));
                self.values(b"[]", values)?;
            }
            Node::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                let order = self.style.order;
                members.sort_by(|one, other| order.compare(one.0, other.0, place));
                let values = members.into_iter();
                let values = values.map(|(key, value)| (Some(*key), value, place.below(key)));
                self.values(b"{}", values)?;
            }
        }
        (self.out.len() <= self.most).then_some(())
    }

    fn values<'n, 'b: 'n>(
        &mut self,
        [open, close]: &[u8; 2],
        values: impl Iterator<Item = (Option<&'b [u8]>, &'n Node<'b>, Place)>,
    ) -> Option<()> {
        self.out.push(*open);
        self.depth += 1;
        let mut any = false;
        for (key, value, place) in values {
            if any {
                self.out.push(b',');
                self.out
                    .extend((self.style.layout == Layout::Spaced).then_some(b' '));
            }
            any = true;
            self.break_line();
            if let Some(key) = key {
                self.scalar(key);
                self.out.push(b':');
                self.out
                    .extend((self.style.layout != Layout::Compact).then_some(b' '));
            }
            self.node(value, place)?;
        }
        self.depth -= 1;
        if any {
            self.break_line();
        }
        self.out.push(*close);
        Some(())
    }

    fn scalar(&mut self, text: &[u8]) {
        let is_string = text.first() == Some(&b'"');
        match (self.style.strings, self.style.numbers) {
            (Some(writer), _) if is_string => writer.string(text, &mut self.out),
            (_, Some(writer)) if !is_string => writer.number(text, &mut self.out),
            _ => self.out.extend_from_slice(text),
        }
    }

    fn break_line(&mut self) {
        if let Layout::Indented(by) = self.style.layout {
            self.out.push(b'\n');
            (0..self.depth).for_each(|_| self.out.extend_from_slice(by.as_bytes()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#" {"b":1.0,"a":[true,null,[],{}],"c":{"long":"ü","z":"x\/y,\""}}"#;

    fn written(text: &str, style: Style) -> String {
        let document = Node::parse(text.as_bytes()).unwrap();
        String::from_utf8(document.write(&style, text.len()).unwrap()).unwrap()
    }

    #[test]
    fn a_layout_changes_white_space_alone() {
        let laid_out = |text: &str, layout| {
            let style = Style {
                layout,
                ..Style::COMPACT
            };
            written(text, style)
        };
        assert_eq!(laid_out(TEXT, Layout::Compact), TEXT.trim());
        assert_eq!(
            laid_out(TEXT, Layout::Spaced),
            r#"{"b": 1.0, "a": [true, null, [], {}], "c": {"long": "ü", "z": "x\/y,\""}}"#
        );
        let indented = "{\n  \"b\": 1.0,\n  \"a\": [\n    true,\n    null,\n    [],\n    {}\n  ],\n  \"c\": {\n    \"long\": \"ü\",\n    \"z\": \"x\\/y,\\\"\"\n  }\n}";
        assert_eq!(laid_out(TEXT, Layout::Indented("  ")), indented);
        assert_eq!(laid_out(indented, Layout::Compact), TEXT.trim());
        assert_eq!(laid_out(" 1 ", Layout::Spaced), "1");
    }

    #[test]
    fn an_order_moves_members_whole() {
        let ordered = |text, order| {
            written(
                text,
                Style {
                    order,
                    ..Style::COMPACT
                },
            )
        };
        assert_eq!(
            ordered(TEXT, Order::Sorted),
            r#"{"a":[true,null,[],{}],"b":1.0,"c":{"long":"ü","z":"x\/y,\""}}"#
        );
        let sorted = r#"{"createdAt":"x","data":{"datamodelId":"d","createdBy":{"email":"e","id":"i","name":"n"},"properties":{"id":2,"Name":{"type":1,"id":2}},"rowId":"r"},"id":"evt","type":"t","workspaceId":"w"}"#;
        let service = r#"{"id":"evt","type":"t","createdAt":"x","workspaceId":"w","data":{"datamodelId":"d","rowId":"r","properties":{"id":2,"Name":{"id":2,"type":1}},"createdBy":{"id":"i","name":"n","email":"e"}}}"#;
        assert_eq!(ordered(sorted, Order::Service), service);
        assert_eq!(ordered("{}", Order::Sorted), "{}");
        let is_sorted = |text: &'static str| Node::parse(text.as_bytes()).unwrap().is_sorted();
        assert!(is_sorted(r#"{"a":1,"b":{"c":2},"d":[3,2,1]}"#) && !is_sorted(r#"{"b":1,"a":2}"#));
        assert!(!is_sorted("{}"));
    }

    #[test]
    fn what_is_not_json_is_not_written_again() {
        for text in [
            "",
            "{",
            "[1 2]",
            "{1:2}",
            "[1,]",
            "nul",
            "1 2",
            "\"",
            "[}",
            "\u{feff}{}",
        ] {
            assert!(Node::parse(text.as_bytes()).is_none(), "{text}");
        }
        assert!(Node::parse("[".repeat(100_000).as_bytes()).is_none());
        let deep = [["["; 127].concat(), ["]"; 127].concat()].concat();
        assert_eq!(written(&deep, Style::COMPACT), deep);
    }

    #[test]
    fn what_indentation_would_blow_up_is_not_written() {
        let deep = format!(
            "{}{}[]{}",
            "[".repeat(120),
            "[],".repeat(50_000),
            "]".repeat(120)
        );
        let document = Node::parse(deep.as_bytes()).unwrap();
        let layout = Layout::Indented("    ");
        let indented = Style {
            layout,
            ..Style::COMPACT
        };
        assert_eq!(document.write(&indented, deep.len()), None);
        assert_eq!(
            document.write(&Style::COMPACT, deep.len()).unwrap(),
            deep.as_bytes()
        );
        // The same depth, but no longer than a real body.
        let few = format!("{}1,2{}", "[".repeat(120), "]".repeat(120));
        let document = Node::parse(few.as_bytes()).unwrap();
        assert!(document.write(&indented, few.len()).is_some());
    }
}
