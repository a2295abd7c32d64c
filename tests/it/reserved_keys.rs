//! Bodies with a key that serde_json reserves for itself: refused before serde_json reads them as
//! `serde_json::Value`, which would overflow the stack and abort this process.

use std::time::Duration;

use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use hookgate::{
    Delivery, Event, EventData, EventRouter, Outcome, Properties, Receiver,
    event::{Changes, EventError, EventErrorKind as Kind, Json},
    outcome::Failure,
    sink::{Accepted, Sink},
};
use hookgate_inbox::{Inbox, Workers};
use hookgate_sqlite::open_inbox;
use hookgate_testing::{delivery, event};
use http::StatusCode;
use proptest::prelude::*;
use serde_json::Value;

use crate::support::{Folder, Sent, ask, secret};

const RAW: &str = "$serde_json::private::RawValue";
/// That of a worker of tokio's, unless its builder says otherwise.
const STACK: usize = 2 << 20;

/// JSON in a string in JSON in a string, with many lists around each: as deep as 12,000 lists for a
/// reader that also parses the strings.
fn nested() -> String {
    let mut json = "1".to_owned();
    for _ in 0..100 {
        // In this form a quote grows by five bytes with each text around it, and not to twice its
        // length.
        let text = json.replace('\\', "\\u005c").replace('"', "\\u0022");
        let object = format!("{{\"{RAW}\":\"{text}\"}}");
        json = format!("{}{object}{}", "[".repeat(118), "]".repeat(118));
    }
    assert!((100_000..130_000).contains(&json.len()), "{}", json.len());
    json
}

fn nested_member() -> String {
    let text = nested().replace('\\', "\\u005c").replace('"', "\\u0022");
    format!("\"{RAW}\":\"{text}\"")
}

fn body(event_type: &str, data: &str) -> String {
    format!(
        r#"{{"id":"evt_1","type":"{event_type}","createdAt":"2025-11-21T01:53:20Z","workspaceId":"ws_1","data":{data}}}"#
    )
}

fn row(event_type: &str, content: &str) -> String {
    let actor = match event_type {
        "row.created" => "createdBy",
        "row.updated" => "updatedBy",
        _ => "deletedBy",
    };
    let row = r#""datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1""#;
    body(
        event_type,
        &format!(r#"{{{row},{content},"{actor}":{{"id":"usr_1","name":"Ada"}}}}"#),
    )
}

/// Bodies with this member in every place where an event may have one.
fn in_every_place(member: &str) -> Vec<String> {
    let created = |content: &str| row("row.created", content);
    let updated = |content: &str| row("row.updated", content);
    let plain = created(r#""properties":{}"#);
    vec![
        created(&format!(r#""properties":{{{member}}}"#)),
        created(&format!(r#""properties":{{"Total":1,{member}}}"#)),
        created(&format!(
            r#""properties":{{"Rows":[[{{"a":{{{member}}}}}]]}}"#
        )),
        created(&format!(r#""properties":{{}},{member}"#)),
        updated(&format!(r#""changes":{{{member}}}"#)),
        updated(&format!(
            r#""changes":{{"Total":{{"before":{{{member}}}}}}}"#
        )),
        updated(&format!(r#""changes":{{"Total":{{{member}}}}}"#)),
        row("row.deleted", &format!(r#""soft":{{{member}}}"#)),
        plain.replace(r#""name":"Ada""#, &format!(r#""name":"Ada",{member}"#)),
        plain.replace(r#""id":"evt_1""#, &format!(r#""id":"evt_1",{member}"#)),
        plain.replace(r#"{"id":"evt_1""#, &format!(r#"{{{member},"id":"evt_1""#)),
        body("page.created", &format!("{{{member}}}")),
        body("member.invited", &format!("[{{{member}}}]")),
        body("row.restored", &format!(r#"{{"row":{{{member}}}}}"#)),
        format!(
            r#"{{"data":{{{member}}},"id":"evt_1","type":"page.created","createdAt":"","workspaceId":"ws_1"}}"#
        ),
    ]
}

/// Reads on a thread with a worker's stack.
fn on_a_workers_stack<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(STACK);
    thread.spawn(read).unwrap().join().unwrap()
}

/// A handler that reads all data as a `Value`.
fn as_values(event: &Event<Value>) -> Result<Value, EventError> {
    match &event.data {
        EventData::RowCreated(row) => Ok(row.properties.clone()),
        EventData::RowUpdated(row) => row.changes.to(),
        EventData::Other(other) => other.data.to(),
        _ => Ok(serde_json::to_value(event).unwrap()),
    }
}

// fault F1: a signed body of nested `$serde_json::private::RawValue` keys overflows the stack, or such a key replaces a row's properties
#[test]
fn a_reserved_key_is_refused_in_every_place_and_spelling() {
    for key in [
        RAW,
        r"\u0024serde_json::private::RawValue",
        r"$serde_json::privat\u0065::RawValue",
        r"$serde_json\u003a\u003A\u0070rivate::RawValue",
        "$serde_json::private::Number",
        "$serde_json::private::",
    ] {
        for value in ["1", "\"1\"", r#""{\"a\":2}""#, "{}"] {
            for body in in_every_place(&format!("\"{key}\" : {value}")) {
                let at = body.find(key).unwrap();
                let place = Err((Kind::ReservedKey, Some(1), Some(at)));
                let of = |error: EventError| (error.kind(), error.line(), error.column());
                assert_eq!(event::<Value>(&body).map(drop).map_err(of), place, "{body}");
                let typed = event::<Properties>(&body).map(drop).map_err(of);
                assert_eq!(typed, place, "{body}");
                let handed = delivery(&body).unwrap().event::<Value>();
                assert_eq!(handed.map(drop).map_err(of), place, "{body}");
            }
        }
    }
}

// fault F1: a signed body of nested `$serde_json::private::RawValue` keys overflows the stack, or such a key replaces a row's properties
#[test]
fn nested_reserved_keys_overflow_no_stack() {
    for body in in_every_place(&nested_member()) {
        for body in [body.replace('$', r"\u0024"), body] {
            let kind = on_a_workers_stack(move || {
                event(body)
                    .and_then(|event| as_values(&event))
                    .map_err(|error| error.kind())
            });
            assert_eq!(kind, Err(Kind::ReservedKey));
        }
    }
}

// fault F1: a signed body of nested `$serde_json::private::RawValue` keys overflows the stack, or such a key replaces a row's properties
#[test]
fn values_that_were_read_from_elsewhere_are_refused_too() {
    let refused = on_a_workers_stack(|| {
        let object = format!(r#"{{"a":{}}}"#, nested());
        let json: Json = serde_json::from_str(&object).unwrap();
        let properties: Properties = serde_json::from_str(&object).unwrap();
        let changes = object.replacen("{\"a\":", "{\"a\":{\"before\":", 1) + "}";
        let changes: Changes = serde_json::from_str(&changes).unwrap();
        [
            json.to::<Value>(),
            properties.to::<Value>(),
            properties.value("a").to::<Value>().map(|_| Value::Null),
            changes.to::<Value>(),
            changes.before("a").to::<Value>().map(|_| Value::Null),
        ]
        .map(|read| read.map_err(|error| (error.kind(), error.path().map(str::to_owned))))
    });
    let at = |path: &str| Err((Kind::ReservedKey, Some(path.to_owned())));
    assert_eq!(
        refused,
        [
            Err((Kind::ReservedKey, None)),
            at("data.properties"),
            at("data.properties.a"),
            at("data.changes"),
            at("data.changes.a.before"),
        ]
    );
}

// fault F1: a signed body of nested `$serde_json::private::RawValue` keys overflows the stack, or such a key replaces a row's properties
#[test]
fn a_reserved_key_replaces_no_properties() {
    let body = row(
        "row.created",
        &format!(r#""properties":{{"{RAW}":"{{\"Total\":0}}"}}"#),
    );
    let error = event::<Value>(&body).unwrap_err();
    assert_eq!(error.kind(), Kind::ReservedKey);
    assert!(
        error
            .to_string()
            .starts_with("the body has a key that begins with `$serde_json::private::`, at line 1"),
        "{error}"
    );
}

// fault F1: a signed body of nested `$serde_json::private::RawValue` keys overflows the stack, or such a key replaces a row's properties
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_takes_an_event_is_answered_422_and_one_that_takes_bytes_gets_them() {
    async fn on_event(event: Event<Value>) -> Result<StatusCode, EventError> {
        as_values(&event).map(|_| StatusCode::NO_CONTENT)
    }
    async fn on_bytes(delivery: Delivery) -> Bytes {
        delivery.body().clone()
    }
    let receiver = Receiver::builder().secret(secret());
    let receiver = receiver.without_deduplication().build().unwrap();
    let events = EventRouter::new()
        .on_rows("dm_1", on_event)
        .fallback(on_event);
    let app: Router = Router::new()
        .route("/router", events.build().unwrap())
        .route("/event", post(on_event))
        .route("/bytes", post(on_bytes))
        .layer(receiver.layer());
    for body in in_every_place(&nested_member()) {
        for path in ["/router", "/event"] {
            let got = ask(&app, &Sent::new(body.clone()).to(path)).await;
            assert_eq!(got.status, 422, "{path} {}", &body[..200]);
        }
        let got = ask(&app, &Sent::new(body.clone()).to("/bytes")).await;
        assert!(got.status == 200 && got.body == body);
        let request = Sent::new(body).request();
        assert_eq!(receiver.handle(request, on_event).await.status(), 422);
    }
}

async fn accept(inbox: &Inbox, body: &str) {
    let delivery = delivery(body).unwrap();
    let day = Duration::from_secs(86_400);
    assert_eq!(inbox.accept(&delivery, day).await.unwrap(), Accepted::New);
}

// fault F1: a signed body of nested `$serde_json::private::RawValue` keys overflows the stack, or such a key replaces a row's properties
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_of_an_inbox_fails_at_a_reserved_key_and_goes_on() {
    let folder = Folder::new("reserved");
    let inbox = open_inbox(folder.file("inbox.db")).unwrap();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let workers = Workers::new(&inbox)
        .max_tries(1)
        .on_settled(move |tried| tell.send(tried.outcome).unwrap())
        .start_handler(|event: Event<Value>| async move {
            as_values(&event).map(|_| StatusCode::NO_CONTENT)
        })
        .unwrap();
    let hostile = row(
        "row.created",
        &format!(r#""properties":{{{}}}"#, nested_member()),
    );
    accept(&inbox, &hostile).await;
    let mismatch = Outcome::Failed(Failure::TypeMismatch);
    assert_eq!(told.recv().await, Some(mismatch));
    let next = row("row.created", r#""properties":{"Total":1}"#).replace("evt_1", "evt_2");
    accept(&inbox, &next).await;
    assert_eq!(told.recv().await, Some(Outcome::Handled));
    workers.shutdown(Duration::from_secs(60)).await;
    inbox.close().await;
}

prop_compose! {
    /// Keys that are near the reserved ones, and any other.
    fn keys()(
        start in prop_oneof![Just(""), Just("$"), Just("$serde_json"), Just("$serde_json::private:"), Just("$serde_json::private::")],
        rest in prop_oneof!["[:$sRa]{0,3}", ".{0,8}"],
        escaped in any::<u64>(),
    ) -> (String, String) {
        let key = format!("{start}{rest}");
        let mut spelt = String::new();
        for (at, char) in key.chars().enumerate() {
            let must = char.is_control() || matches!(char, '"' | '\\');
            if must || escaped.rotate_right(at as u32) & 1 == 1 {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    spelt.push_str(&format!("\\u{unit:04x}"));
                }
            } else {
                spelt.push(char);
            }
        }
        (key, spelt)
    }
}

proptest! {
    // fault F1: a signed body of nested `$serde_json::private::RawValue` keys overflows the stack, or such a key replaces a row's properties
    #[test]
    fn no_key_but_a_reserved_one_is_refused((key, spelt) in keys(), value in "[a-z$]{0,3}") {
        let body = row("row.created", &format!(r#""properties":{{"{spelt}":"{value}$serde_json::private::"}}"#));
        let read = event::<Properties>(&body);
        if key.starts_with("$serde_json::private::") {
            prop_assert_eq!(read.unwrap_err().kind(), Kind::ReservedKey);
        } else {
            let EventData::RowCreated(row) = read.unwrap().data else { panic!() };
            prop_assert!(row.properties.contains(&key));
        }
    }
}
