//! What tells two deliveries apart, and two logs.

use std::collections::BTreeMap;

use serde_json::Value;

use super::entry::LoggedDelivery;
use super::file::DeliveryLog;
use crate::event::checked;

/// How many times longer than its body a delivery's paths may be, besides a few bytes, for bodies to be compared path by path.
const LONGER: usize = 64;
const FEW_BYTES: usize = 1 << 20;

/// One thing in which two deliveries differ.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// What it is: `method`, `headers.x-service-timestamp`, `body.data.properties.Total`, `answer.status`.
    pub path: String,
    /// What it was; `None` where it was not there.
    pub before: Option<String>,
    /// What it is now; `None` where it is not there any more.
    pub after: Option<String>,
}

/// An event whose deliveries were answered differently in two logs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangedEvent {
    /// The event's id.
    pub event_id: String,
    /// What its deliveries were answered, in their order: status and outcome.
    pub before: Vec<String>,
    /// The same in the other log.
    pub after: Vec<String>,
}

impl LoggedDelivery {
    /// In what another delivery differs from this one: head, body and answer. The time of day and how long the answer took are no
    /// difference.
    ///
    /// Bodies are compared as JSON, path by path: neither white space, nor the order of names, nor how a character is escaped makes a
    /// difference there; one whose paths together are far longer than itself is compared as a text. But a signature covers the bytes, so where they differ and nothing else does, that is said as `body (bytes)`.
    ///
    /// ```
    /// use hookgate::UnixSeconds;
    /// use hookgate::testing::LoggedDelivery;
    ///
    /// let now = UnixSeconds::new(1_763_690_000);
    /// let first = LoggedDelivery::new(now, [("x-a", "1")], r#"{"id":"evt_1","n":[1,2]}"#);
    /// let other = LoggedDelivery::new(now, [("x-a", "1")], r#"{"n":[1,3],"id":"evt_1"}"#);
    /// let differences = first.differences(&other);
    /// assert_eq!(differences.len(), 1);
    /// assert_eq!(differences[0].path, "body.n[1]");
    /// assert_eq!((differences[0].before.as_deref(), differences[0].after.as_deref()), (Some("2"), Some("3")));
    /// ```
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let [mut before, mut after] = [self, other].map(parts);
        let bodies = (&self.body, &other.body);
        if let (Some(one), Some(another)) = bodies
            && one != another
            && before == after
        {
            for (parts, body) in [(&mut before, one), (&mut after, another)] {
                parts.insert("body (bytes)".into(), shown_bytes(body));
            }
        }
        let mut paths: Vec<_> = before.keys().chain(after.keys()).cloned().collect();
        paths.sort();
        paths.dedup();
        let differences = paths.into_iter().filter_map(|path| {
            let (before, after) = (before.remove(&path), after.remove(&path));
            (before != after).then_some(Difference {
                path,
                before,
                after,
            })
        });
        differences.collect()
    }
}

impl DeliveryLog {
    /// Which events were answered differently in another log, by their ids: before and after a change, for instance. An event that only
    /// one of them has is among them; a delivery without an id is not compared.
    #[must_use]
    pub fn changed_events(&self, other: &Self) -> Vec<ChangedEvent> {
        let [mut before, mut after] = [self, other].map(answers_by_event);
        let mut ids: Vec<_> = before.keys().chain(after.keys()).cloned().collect();
        ids.sort();
        ids.dedup();
        let changed = ids.into_iter().filter_map(|event_id| {
            let before = before.remove(&event_id).unwrap_or_default();
            let after = after.remove(&event_id).unwrap_or_default();
            (before != after).then_some(ChangedEvent {
                event_id,
                before,
                after,
            })
        });
        changed.collect()
    }
}

fn answers_by_event(log: &DeliveryLog) -> BTreeMap<String, Vec<String>> {
    let mut events = BTreeMap::<_, Vec<_>>::new();
    for delivery in log {
        if let Some(id) = delivery.event_id() {
            let answer = match &delivery.answer {
                Some(answer) => format!("{} {}", answer.status, answer.outcome),
                None if delivery.hung_up_after.is_some() => "hung up".into(),
                None => "not answered".into(),
            };
            events.entry(id).or_default().push(answer);
        }
    }
    events
}

fn parts(delivery: &LoggedDelivery) -> BTreeMap<String, String> {
    let mut parts = BTreeMap::new();
    let mut put = |path: String, value: String| {
        // Doubled headers, in their order.
        parts
            .entry(path)
            .and_modify(|all: &mut String| {
                all.push_str(", ");
                all.push_str(&value);
            })
            .or_insert(value);
    };
    put("method".into(), delivery.method.clone());
    put("target".into(), delivery.target.clone());
    for (name, value) in &delivery.headers {
        put(format!("headers.{name}"), shown_bytes(value));
    }
    if let Some(answer) = &delivery.answer {
        put("answer.status".into(), answer.status.to_string());
        put("answer.outcome".into(), answer.outcome.clone());
        let texts = [
            ("reason", answer.reason.clone()),
            ("key", answer.key.clone()),
            ("scope", answer.scope.clone()),
            ("attempt", answer.attempt.map(|attempt| attempt.to_string())),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                put(format!("answer.{name}"), text);
            }
        }
    }
    if delivery.hung_up_after.is_some() {
        put("answer".into(), "none: the sender hung up".into());
    }
    let Some(body) = delivery.body.as_deref() else {
        return parts;
    };
    // A logged body need not have been signed: it is checked before it is read as a `Value`.
    let json = checked(body)
        .ok()
        .and_then(|text| serde_json::from_str(text).ok());
    let json = json.filter(|json| {
        let most = body.len().saturating_mul(LONGER) + FEW_BYTES;
        fits(json, "body".len(), &mut { most })
    });
    match json {
        Some(json) => walk("body".into(), &json, &mut put),
        None => put("body".into(), shown_bytes(body)),
    }
    parts
}

/// Whether all paths together are no longer than what is left: each leaf has one of its own, and long names above many leaves would
/// take all memory.
fn fits(value: &Value, path: usize, left: &mut usize) -> bool {
    match value {
        Value::Object(fields) if !fields.is_empty() => fields
            .iter()
            .all(|(name, value)| fits(value, path + 1 + name.len(), left)),
        Value::Array(items) if !items.is_empty() => items.iter().enumerate().all(|(at, item)| {
            let digits = at.checked_ilog10().map_or(1, |log| log as usize + 1);
            fits(item, path + 2 + digits, left)
        }),
        _ => match left.checked_sub(path) {
            Some(rest) => {
                *left = rest;
                true
            }
            None => false,
        },
    }
}

/// Each leaf by its path. serde_json stops at 128 levels, so this does too.
fn walk(path: String, value: &Value, put: &mut impl FnMut(String, String)) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                walk(format!("{path}.{name}"), value, put);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                walk(format!("{path}[{at}]"), item, put);
            }
        }
        leaf => put(path, leaf.to_string()),
    }
}

/// Text as it is; what is none, by its length and with what can't be shown left out.
fn shown_bytes(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => format!(
            "{} ({} bytes, not UTF-8)",
            String::from_utf8_lossy(bytes),
            bytes.len()
        ),
    }
}
