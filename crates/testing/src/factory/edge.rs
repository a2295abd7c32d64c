//! Values and events that often break receivers: at the limits of JSON and of the specification.

use std::fmt;

use bytes::Bytes;

use super::{EventFactory, JsonText, SampleEvent};

/// A property value that often breaks receivers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EdgeValue {
    /// A short description.
    pub name: &'static str,
    /// The value.
    pub json: JsonText,
    /// The answer of a receiver of hookgate with default settings to a row.created with this value. The handler takes any
    /// [`Event`](hookgate::Event) and answers 204.
    pub answer: u16,
}

/// A whole body that often breaks receivers.
#[derive(Clone)]
#[non_exhaustive]
pub struct EdgeEvent {
    /// A short description.
    pub name: String,
    /// The body, to be signed unchanged.
    pub body: Bytes,
    /// The answer of a receiver of hookgate, as in [`EdgeValue::answer`].
    pub answer: u16,
}

const HANDLED: u16 = 204;
const UNUSABLE: u16 = 400;
const TOO_LARGE: u16 = 413;
const TYPE_MISMATCH: u16 = 422;

impl EdgeValue {
    /// Returns all of them.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let text = |name, text: &str| value(name, JsonText::text(text), HANDLED);
        let raw = |name, json: &str| value(name, JsonText::raw(json), HANDLED);
        let bad = |name, json: &str| value(name, JsonText::raw(json), TYPE_MISMATCH);
        vec![
            raw("an empty text", r#""""#),
            text("emoji, one of them of several code points", "🚀 👩‍👩‍👧‍👦 é"),
            raw("emoji as escaped surrogates", r#""\ud83d\ude80""#),
            raw("a slash that is escaped", r#""a\/b""#),
            raw("letters that are escaped", r#""\u0041\u00e9\u000a""#),
            text("line breaks of Windows", "one\r\ntwo\r\n"),
            text("a byte order mark amid the text", "a\u{feff}b"),
            text("a byte order mark before the text", "\u{feff}a"),
            raw("a zero byte, escaped", r#""\u0000""#),
            text("the line separators of JavaScript", "a\u{2028}b\u{2029}c"),
            text("letters from right to left", "שלום \u{202e}abc"),
            text("what looks like HTML", "</script><b>&amp;"),
            text("white space around it", "  a\t"),
            raw("2^53 + 1, which no double has", "9007199254740993"),
            raw("2^64 + 1, which no 64 bits hold", "18446744073709551617"),
            raw("a number with zeros at its end", "12.50"),
            raw("minus zero", "-0"),
            raw("a number with an exponent", "1E+2"),
            raw(
                "more digits than a double has",
                "0.10000000000000000000000001",
            ),
            raw("null", "null"),
            raw("an empty list", "[]"),
            raw("an empty object", "{}"),
            raw("a list of nothing", "[null]"),
            raw("an object with a name twice", r#"{"a":1,"a":2}"#),
            raw("white space inside", "[ 1 ,\t2 ]"),
            raw("nested a hundred levels deep", &nested(100)),
            text("half a mebibyte of text", &"x".repeat(512 << 10)),
            value(
                "a mebibyte of text, over the limit with the rest of the event",
                JsonText::text(&"x".repeat(1 << 20)),
                TOO_LARGE,
            ),
            bad("half a surrogate pair", r#""\ud83d""#),
            bad("the other half of a surrogate pair", r#""\ude80""#),
            bad("surrogates in the wrong order", r#""\ude80\ud83d""#),
            bad("nested two hundred levels deep", &nested(200)),
            bad("a number beyond the range of a double", "1e400"),
            bad("no number", "NaN"),
            bad("a number that begins with zero", "007"),
            bad("a line break that is not escaped", "\"a\nb\""),
            bad("an escape that JSON does not know", r#""\x41""#),
            bad("a comma behind the last item", "[1,]"),
            bad("quotes of another kind", "'a'"),
            bad("a comment", "1/*one*/"),
        ]
    }
}

impl EventFactory {
    /// Makes unusual events: a row.created with each [`EdgeValue`], and bodies that are unusual as a whole. Each has the
    /// answer of a receiver of hookgate, so that you can check your receiver against the table.
    ///
    /// ```
    /// use hookgate_testing::factory::EventFactory;
    ///
    /// for edge in EventFactory::new().edges() {
    ///     let event = hookgate_testing::event::<hookgate::Properties>(&edge.body);
    ///     assert_eq!(event.is_ok(), matches!(edge.answer, 204 | 413), "{}", edge.name);
    /// }
    /// ```
    #[must_use]
    pub fn edges(&self) -> Vec<EdgeEvent> {
        let with_value = |value: EdgeValue| EdgeEvent {
            name: format!("as a property: {}", value.name),
            body: self.row_created().property("Edge", value.json).body(),
            answer: value.answer,
        };
        let mut edges: Vec<_> = EdgeValue::all().into_iter().map(with_value).collect();
        edges.extend(self.odd_names());
        edges.extend(self.odd_envelopes());
        edges.extend(self.odd_bodies());
        edges
    }

    fn odd_names(&self) -> Vec<EdgeEvent> {
        let one = || JsonText::number(1);
        let created = |name: &str| self.row_created().property(name, one());
        let half = self.row_created().body();
        let half = replaced(&half, r#""Customer""#, r#""\ud83dCustomer""#);
        vec![
            sample("a property without a name", created(""), HANDLED),
            sample("a property called emoji", created("🚀"), HANDLED),
            sample(
                "a dot in a property's name",
                created("No. of parcels"),
                HANDLED,
            ),
            sample("a quote in a property's name", created("a\"b"), HANDLED),
            sample(
                "a property twice",
                with_repeated_key(self.row_created(), "data.properties.Total", "2"),
                HANDLED,
            ),
            sample(
                "no properties",
                self.row_created().without_properties(),
                HANDLED,
            ),
            edge(
                "half a surrogate pair in a property's name",
                half,
                TYPE_MISMATCH,
            ),
        ]
    }

    fn odd_envelopes(&self) -> Vec<EdgeEvent> {
        let created = || self.row_created();
        let without = |path: &str| created().without(path).unwrap_or_else(|_| created());
        let set = |path: &str, json: &str| {
            let set = created().set_json(path, JsonText::raw(json));
            set.unwrap_or_else(|_| created())
        };
        let bare = |event_type: &str| {
            let whole = || self.of_type(event_type);
            whole().without("data").unwrap_or_else(|_| whole())
        };
        vec![
            sample(
                "a field that is yet to be invented",
                set("region", r#""eu""#),
                HANDLED,
            ),
            sample(
                "a type that is yet to be invented",
                self.of_type("row.restored"),
                HANDLED,
            ),
            sample(
                "an id as long as may be",
                created().id(&"e".repeat(256)),
                HANDLED,
            ),
            sample("an id of emoji", created().id("🚀"), HANDLED),
            sample(
                "an actor without an address",
                without("data.createdBy.email"),
                HANDLED,
            ),
            sample(
                "an actor whose address is null",
                set("data.createdBy.email", "null"),
                HANDLED,
            ),
            sample("no actor", without("data.createdBy"), HANDLED),
            sample(
                "an actor that is null",
                set("data.createdBy", "null"),
                HANDLED,
            ),
            sample(
                "an unknown type without data",
                bare("row.restored"),
                HANDLED,
            ),
            sample("a page event without data", bare("page.created"), HANDLED),
            sample(
                "a key that serde_json reserves",
                set(
                    "data.properties",
                    r#"{"$serde_json::private::RawValue":"1"}"#,
                ),
                TYPE_MISMATCH,
            ),
            sample(
                "an id that is too long",
                created().id(&"e".repeat(257)),
                UNUSABLE,
            ),
            sample("an empty id", created().id(""), UNUSABLE),
            sample("a blank id", created().id("  "), UNUSABLE),
            sample("a line break in the id", created().id("evt\n1"), UNUSABLE),
            sample("an id that is a number", set("id", "1"), UNUSABLE),
            sample("no id", without("id"), UNUSABLE),
            sample("no type", without("type"), UNUSABLE),
            sample("a type that is null", set("type", "null"), UNUSABLE),
            sample("no createdAt", without("createdAt"), TYPE_MISMATCH),
            sample("no data of a row", without("data"), TYPE_MISMATCH),
            sample("no row's id", without("data.rowId"), TYPE_MISMATCH),
            sample("data that is a list", set("data", "[]"), TYPE_MISMATCH),
            sample(
                "a second workspace",
                with_repeated_key(created(), "workspaceId", r#""ws_2""#),
                TYPE_MISMATCH,
            ),
            sample(
                "a second id behind the data",
                with_repeated_key(created(), "id", r#""evt_x""#),
                TYPE_MISMATCH,
            ),
        ]
    }

    fn odd_bodies(&self) -> Vec<EdgeEvent> {
        let json = || self.row_created().to_json();
        let around = |before: &str, after: &str| format!("{before}{}{after}", json());
        let mut cut = json();
        cut.truncate(cut.len() - 1);
        let mut no_text = json().into_bytes();
        let at = no_text.iter().rposition(|byte| *byte == b'@');
        no_text[at.unwrap_or_default()] = 0xff;
        let spaced = json().replace("\":", "\" : ").replace(",\"", " ,\r\n\t\"");
        let data_first = self.data_first();
        let second_id = replaced(
            &self.row_created().body(),
            r#""type""#,
            r#""id":"evt_x","type""#,
        );
        vec![
            edge("a line break at the end", around("", "\n"), HANDLED),
            edge("white space around it", around(" \r\n\t", " "), HANDLED),
            edge("white space in it", spaced, HANDLED),
            edge("data before id and type", data_first, HANDLED),
            edge("a second id before the type", second_id, UNUSABLE),
            edge(
                "a byte order mark before it",
                around("\u{feff}", ""),
                UNUSABLE,
            ),
            edge("a list of one event", around("[", "]"), UNUSABLE),
            edge(
                "a text with an event in it",
                super::quoted(&json()),
                UNUSABLE,
            ),
            edge("nothing at all", Bytes::new(), UNUSABLE),
            edge("broken off before its last byte", cut, TYPE_MISMATCH),
            edge(
                "a second event behind it",
                around("", &json()),
                TYPE_MISMATCH,
            ),
            edge("a byte that is not UTF-8", no_text, TYPE_MISMATCH),
        ]
    }

    fn data_first(&self) -> String {
        let event = self.row_created();
        let field = |name: &str| {
            let value = event.get(name).unwrap_or_default();
            format!("{}:{value}", super::quoted(name))
        };
        let fields = ["data", "workspaceId", "createdAt", "type", "id"].map(field);
        format!("{{{}}}", fields.join(","))
    }
}

fn value(name: &'static str, json: JsonText, answer: u16) -> EdgeValue {
    EdgeValue { name, json, answer }
}

fn sample(name: &str, event: SampleEvent, answer: u16) -> EdgeEvent {
    edge(name, event.body(), answer)
}

fn edge(name: &str, body: impl Into<Bytes>, answer: u16) -> EdgeEvent {
    EdgeEvent {
        name: name.to_owned(),
        body: body.into(),
        answer,
    }
}

fn with_repeated_key(event: SampleEvent, path: &str, json: &str) -> SampleEvent {
    let kept = event.clone();
    event.repeat_key(path, JsonText::raw(json)).unwrap_or(kept)
}

fn replaced(body: &[u8], what: &str, with: &str) -> String {
    String::from_utf8_lossy(body).replacen(what, with, 1)
}

fn nested(levels: usize) -> String {
    "[".repeat(levels) + &"]".repeat(levels)
}

impl fmt::Debug for EdgeEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EdgeEvent")
            .field("name", &self.name)
            .field("body_bytes", &self.body.len())
            .field("answer", &self.answer)
            .finish()
    }
}
