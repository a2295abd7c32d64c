//! Whole events: accepted or refused as by the obvious reader, for every requested type, and
//! without loss.

use hookgate::{
    Event, EventData,
    event::{EventError, EventErrorKind, EventHead, Field, Number, Value},
};
use serde::de::IgnoredAny;

use super::super::choices::Choices;
use super::super::made;
use super::super::obvious::event::{Body, Faults, body as check_body, faults};
use super::super::obvious::json::{Json, Reader};
use super::{MAX_BODY, verified};

pub fn run(input: &[u8]) {
    let mut choices = Choices(input);
    let pinned = choices.once_in(4).then_some("ws_1");
    let body = made::body(&mut choices);
    if body.len() > MAX_BODY {
        return;
    }
    let verified = verified(&body, pinned);
    let event = Event::<hookgate::Properties>::from_verified(&verified);
    let ignoring = Event::<IgnoredAny>::from_verified(&verified).map(drop);
    let loose = Event::<serde_json::Value>::from_verified(&verified).map(drop);
    let shown = || String::from_utf8_lossy(&body).into_owned();
    let json = match check_body(&body) {
        Body::Fine(json) => json,
        Body::Faulty(kinds) => {
            for error in [event.map(drop), ignoring, loose].map(|read| read.expect_err(&shown())) {
                assert!(
                    kinds.contains(&&*format!("{:?}", error.kind())),
                    "{error:?}: {}",
                    shown()
                );
                assert!(
                    !format!("{error} {error:?}").contains(made::MARK),
                    "{error:?}"
                );
            }
            return;
        }
    };
    let is_foreign = pinned.is_some_and(|pinned| {
        let named = json.all("workspaceId");
        !named
            .iter()
            .all(|id| matches!(id, Json::Text(text) if text.text == pinned))
    });
    judge(
        &event.as_ref().map(drop).map_err(Clone::clone),
        &faults(&json, true),
        is_foreign,
        &json,
    );
    for read in [ignoring, loose] {
        judge(&read, &faults(&json, false), is_foreign, &json);
    }
    let Ok(event) = event else { return };
    let head = EventHead::from_verified(&verified).expect("what is an event has a head");
    assert_eq!(
        (&head.id, head.event_type.as_str()),
        (&event.id, event.event_type())
    );
    getters(&event, &json);
    let written = serde_json::to_vec(&event).unwrap();
    let again = Reader::whole(&written).expect("what is written is JSON");
    assert_eq!(again.sorted(), json.sorted(), "{}", shown());
}

/// Accepted where there is no fault; refused for one of the faults.
fn judge(read: &Result<(), EventError>, faults: &Faults, is_foreign: bool, json: &Json) {
    let Err(error) = read else {
        assert_eq!(*faults, [], "accepted: {json:?}");
        assert!(!is_foreign, "accepted from elsewhere: {json:?}");
        return;
    };
    if error.kind() == EventErrorKind::WorkspaceMismatch {
        assert!(is_foreign, "{json:?}");
        return;
    }
    let fault = (
        &*format!("{:?}", error.kind()),
        error.path().unwrap_or_default(),
    );
    let is_known = faults.iter().any(|(kind, path)| {
        // Unusual names are shown escaped.
        let is_plain = path
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || char == '.');
        *kind == fault.0 && (path == fault.1 || !is_plain)
    });
    assert!(is_known, "{error:?}, but {faults:?}: {json:?}");
    let marked_name = json.everything().into_iter().any(|value| match value {
        Json::Object(members) => members
            .iter()
            .any(|(name, _)| name.text.contains(made::MARK)),
        _ => false,
    });
    let shown = format!("{error} {error:?}");
    // The model's id is reported on purpose.
    let model = error
        .model()
        .is_some_and(|model| model.as_str().contains(made::MARK));
    assert!(
        marked_name || model || !shown.contains(made::MARK),
        "{shown}"
    );
}

/// Each getter answers for its own kinds of JSON, and for no other.
fn getters(event: &Event, json: &Json) {
    let Some(data) = json.all("data").first().copied() else {
        return;
    };
    match &event.data {
        EventData::RowCreated(row) => {
            let Json::Object(members) = data.all("properties")[0] else {
                unreachable!()
            };
            assert_eq!(row.properties.len(), members.len());
            for ((name, value), (text, json)) in row.properties.iter().zip(members) {
                assert_eq!(name, text.text);
                looks(value, json);
            }
        }
        EventData::RowUpdated(row) => {
            let Json::Object(members) = data.all("changes")[0] else {
                unreachable!()
            };
            for ((name, change), (text, json)) in row.changes.iter().zip(members) {
                assert_eq!(name, text.text);
                for (value, side) in [(change.before, "before"), (change.after, "after")] {
                    match json.all(side)[..] {
                        [] => assert!(value.is_absent()),
                        [json] => looks(value, json),
                        _ => unreachable!(),
                    }
                }
            }
        }
        _ => {}
    }
}

fn looks(value: Value<'_>, json: &Json) {
    assert!(!value.is_absent());
    assert_eq!(value.is_null(), *json == Json::Null);
    let text = match json {
        Json::Text(text) => Ok(Field::Present(text.text.as_str())),
        Json::Null => Ok(Field::Null),
        _ => Err(EventErrorKind::TypeMismatch),
    };
    let read = value.text();
    assert_eq!(
        read.as_ref()
            .map(|text| text.clone().map(|text| text.into_owned()))
            .map_err(EventError::kind),
        text.map(|text| text.map(str::to_owned))
    );
    match (value.number(), json) {
        (Ok(Field::Present(number)), Json::Number(text)) => {
            assert_eq!(number.as_str(), text);
            numbers(&number);
        }
        (Ok(Field::Null), Json::Null) => {}
        (Err(error), _) => {
            assert!(!matches!(json, Json::Number(_) | Json::Null), "{json:?}");
            assert_eq!(error.kind(), EventErrorKind::TypeMismatch);
        }
        (read, json) => panic!("{read:?} of {json:?}"),
    }
    match (value.checkbox(), json) {
        (Ok(Field::Present(checked)), Json::Bool(bool)) => assert_eq!(checked, *bool),
        (Ok(Field::Null), Json::Null) => {}
        (Err(_), json) => assert!(!matches!(json, Json::Bool(_) | Json::Null), "{json:?}"),
        (read, json) => panic!("{read:?} of {json:?}"),
    }
    let texts = match json {
        Json::Array(items) => items
            .iter()
            .map(|item| {
                if let Json::Text(text) = item {
                    Some(text.text.clone())
                } else {
                    None
                }
            })
            .collect::<Option<Vec<_>>>(),
        _ => None,
    };
    let options = value.multi_select().ok().and_then(Field::into_option);
    assert_eq!(options, texts, "{json:?}");
    // No panic, for any text.
    let _ = (
        value.date(),
        value.files(),
        value.relation(),
        value.currency(),
    );
}

/// No conversion of a number rounds without an error.
fn numbers(number: &Number) {
    if let Some(integer) = number.to_i64() {
        assert_eq!(number.to_f64_lossy(), integer as f64, "{number:?}");
    }
    if let Some(integer) = number.to_u64() {
        assert_eq!(number.to_f64_lossy(), integer as f64, "{number:?}");
    }
    if let Ok(integer) = number.as_str().parse::<i64>() {
        assert_eq!(number.to_i64(), Some(integer));
    }
    if let Some(float) = number.to_f64() {
        assert_eq!(float, number.as_str().parse::<f64>().unwrap());
    }
}
