//! The choice of the deliveries that are shown: by words, and by the types of their events.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hookgate::internal::from_foreign_json;
use hookgate_record::LoggedDelivery;
use hookgate_testing::log::LoggedDeliveryExt;
use serde_json::Value;
use tokio::sync::Notify;

use super::item::Item;
use crate::event_types::is_of_type;

/// Words that must all fit. A word in double quotes may have blanks; `\"` is a quote in it.
/// `type:row.`, `outcome:refused` and `status:500` search one field of the delivery,
/// `data.properties.Customer:"Ada"` one of its body, and any other word is searched everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter(Vec<Word>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Type(String),
    Outcome(String),
    /// The names that lead to the value, its text, and the word as it was written: it may be a text
    /// with a colon.
    Field(Vec<String>, String, String),
    Anywhere(String),
}

impl Filter {
    pub(crate) fn parse(text: &str) -> Self {
        let mut words = Vec::new();
        let mut chars = text.chars().peekable();
        while let Some(&first) = chars.peek() {
            if first.is_whitespace() {
                chars.next();
            } else {
                words.push(word(&mut chars));
            }
        }
        Self(words)
    }

    pub(crate) fn takes(&self, item: &Item) -> bool {
        self.0.iter().all(|word| match word {
            Word::Type(part) => item.event_type.to_lowercase().contains(part),
            Word::Outcome(part) => {
                item.outcome.contains(part)
                    || item.status.to_string().starts_with(part)
                    || item.verdict.word().starts_with(part)
            }
            Word::Field(names, text, written) => {
                anywhere(item, written)
                    || from_foreign_json(item.body()).is_ok_and(|body| has(&body, names, text))
            }
            Word::Anywhere(part) => anywhere(item, part),
        })
    }
}

/// Whether this text occurs, also as JSON writes it.
fn anywhere(item: &Item, text: &str) -> bool {
    item.contains(text) || text.contains('"') && item.contains(&text.replace('"', "\\\""))
}

/// Reads one word, up to a blank outside quotes.
fn word(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Word {
    let (mut names, mut text, mut written) = (Vec::new(), String::new(), String::new());
    let (mut is_field, mut quoted) = (false, false);
    while let Some(char) = chars.next_if(|char| quoted || !char.is_whitespace()) {
        let mut is_quote = char == '"';
        match char {
            '\\' if chars.next_if_eq(&'"').is_some() => {
                is_quote = true;
                text.push('"');
                written.push('"');
            }
            '"' => quoted = !quoted,
            '.' if !quoted && !is_field => names.push(std::mem::take(&mut text)),
            ':' if !quoted && !is_field => {
                names.push(std::mem::take(&mut text));
                is_field = true;
            }
            char => text.extend(char.to_lowercase()),
        }
        if !is_quote {
            written.extend(char.to_lowercase());
        }
    }
    // An address and a time of the day have a colon too.
    let is_number = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
    is_field &= !text.starts_with("//") && !names.first().is_some_and(is_number);
    match &*names {
        [name] if is_field && name == "type" => Word::Type(text),
        [name] if is_field && name == "outcome" => Word::Outcome(text),
        // A number: a column of rows is often named so too.
        [name] if is_field && name == "status" && text.parse::<u16>().is_ok() => {
            Word::Outcome(text)
        }
        _ if is_field => Word::Field(names, text, written),
        _ => Word::Anywhere(written),
    }
}

/// Whether the value that these names lead to, from here or from a place within, has this text.
/// Arrays are no step.
fn has(value: &Value, names: &[String], text: &str) -> bool {
    let within = |value: &Value| has(value, names, text);
    leads(value, names, text)
        || match value {
            Value::Object(fields) => fields.values().any(within),
            Value::Array(items) => items.iter().any(within),
            _ => false,
        }
}

fn leads(value: &Value, names: &[String], text: &str) -> bool {
    match (names, value) {
        (_, Value::Array(items)) => items.iter().any(|item| leads(item, names, text)),
        ([], Value::Object(fields)) => {
            text.is_empty() || fields.values().any(|value| leads(value, names, text))
        }
        ([], Value::String(found)) => found.to_lowercase().contains(text),
        ([], Value::Number(number)) => {
            let wanted = text.parse().ok();
            text.is_empty() || wanted.is_some() && wanted == number.as_f64()
        }
        ([], other) => other.to_string().starts_with(text),
        ([name, rest @ ..], Value::Object(fields)) => fields
            .iter()
            .any(|(other, value)| other.to_lowercase() == *name && leads(value, rest, text)),
        _ => false,
    }
}

/// The types of `--events`; none are all. `row.*` are all that begin with `row.`.
#[derive(Clone, Debug)]
pub(crate) struct EventTypes {
    wanted: Arc<[String]>,
    left_out: Arc<(AtomicU64, Notify)>,
}

impl EventTypes {
    pub(crate) fn new(types: &[String]) -> Self {
        Self {
            wanted: types.into(),
            left_out: Arc::default(),
        }
    }

    pub(crate) fn take(&self, event_type: &str) -> bool {
        self.wanted.is_empty()
            || self
                .wanted
                .iter()
                .any(|wanted| is_of_type(wanted, event_type))
    }

    /// Counts one more that is not shown. Returns whether it is the first.
    pub(crate) fn leave_out(&self) -> bool {
        let (count, leaves_out) = &*self.left_out;
        let before = count.fetch_add(1, Ordering::Relaxed);
        leaves_out.notify_one();
        before == 0
    }

    /// The number of those that were not shown.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out.0.load(Ordering::Relaxed)
    }

    /// Waits until another one is not shown.
    pub(crate) async fn leaves_out(&self) {
        self.left_out.1.notified().await;
    }

    /// Returns whether a delivery is shown. One that is not authentic is always shown, since
    /// nothing proves its type.
    pub(crate) fn show(&self, delivery: &LoggedDelivery) -> bool {
        let answer = delivery.answer.as_ref();
        let is_authentic = answer.is_some_and(|answer| answer.key.is_some());
        self.wanted.is_empty()
            || !is_authentic
            || self.take(&delivery.event_type().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::super::item::tests::{delivery, handled};
    use super::*;

    #[test]
    fn words_must_all_fit() {
        let done = Item::new(1, handled("evt_1"));
        let refused = Item::new(2, delivery("{}", 401, "not_authentic"));
        for (text, both) in [
            ("", (true, true)),
            ("  ", (true, true)),
            ("evt_1", (true, false)),
            ("EVT_1 row", (true, false)),
            ("evt_1 page", (false, false)),
            ("type:row.", (true, false)),
            ("type:Row.Deleted", (true, false)),
            ("outcome:handled", (true, false)),
            ("outcome:refused", (false, true)),
            ("outcome:4", (false, true)),
            ("status:204", (true, false)),
            ("status:500", (false, false)),
            ("outcome:204 type:row", (true, false)),
            ("evt_header", (false, true)),
        ] {
            let filter = Filter::parse(text);
            assert_eq!(
                (filter.takes(&done), filter.takes(&refused)),
                both,
                "{text}"
            );
        }
    }

    #[test]
    fn phrases_and_fields_of_the_body_are_found() {
        let body = r#"{"id":"evt_1","type":"row.created","data":{"rowId":"row_a","properties":{
            "Customer":"Ada Lovelace","Agent":"Bo \"Quote\" Lind","http":"//x","12":40,"Total":12.50,"Paid":true,"First name":"Bo","Tags":["new","vip"],"Note":"at 12:30"},
            "changes":{"Status":{"before":"open","after":"closed"}}}}"#;
        let item = Item::new(1, delivery(body, 204, "handled"));
        for (text, fits) in [
            (r#""Ada Lovelace""#, true),
            (r#""Lovelace Ada""#, false),
            ("Lovelace Ada", true),
            (r#"data.properties.Customer:"Ada""#, true),
            (r#"data.properties.Customer:"ada lovelace""#, true),
            ("data.properties.Customer:Bo", false),
            ("customer:ada total:12.5", true),
            ("Total:12.50", true),
            ("Total:12", false),
            ("Paid:true", true),
            (r#"data.properties."First name":bo"#, true),
            ("Tags:vip", true),
            ("changes.Status:open", true),
            ("Status.after:open", false),
            ("properties.Paid:", true),
            ("properties.None:", false),
            ("12:30", true),
            (r#""at 12:30" type:row"#, true),
            ("\"at 12", true),
            (r#"Agent:"Bo \"Quote\" Lind""#, true),
            (r#""bo \"quote\" "#, true),
            (r#"\"quote\""#, true),
            (r#""bo \"quotes\" ""#, false),
            // No field of this name and value.
            ("http://x", false),
            ("12:40", false),
            ("http:x", true),
        ] {
            assert_eq!(Filter::parse(text).takes(&item), fits, "{text}");
        }
        let no_json = Item::new(1, delivery("Customer=Ada", 401, "not_authentic"));
        assert!(!Filter::parse("Customer:Ada").takes(&no_json));
    }

    #[test]
    fn types_are_whole_or_beginnings_and_the_unproven_is_shown() {
        let types = EventTypes::new(&["row.created".to_owned(), "page.*".to_owned()]);
        for (event_type, taken) in [
            ("row.created", true),
            ("row.created.x", false),
            ("row.deleted", false),
            ("page.updated", true),
            ("page", false),
        ] {
            assert_eq!(types.take(event_type), taken, "{event_type}");
        }
        assert!(EventTypes::new(&[]).take("row.deleted"));
        assert!(!types.show(&handled("evt_1")));
        assert!(types.show(&delivery(r#"{"type":"row.deleted"}"#, 401, "not_authentic")));
    }
}
