//! Authentic bodies that are no event, or a strange one: 400 where id and type can't be read, 422
//! where the rest can't.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use hookgate::{Event, EventData, Outcome, Properties, Receiver, layer::Answer, outcome::Failure};
use http::StatusCode;

use crate::support::*;

async fn typed(State(probe): State<Probe>, event: Event<Properties>) -> StatusCode {
    probe.run(serde_json::to_vec(&event).unwrap().into()).await;
    StatusCode::OK
}

fn typed_app(receiver: &Receiver, probe: &Probe) -> Router {
    Router::new()
        .route("/hook", post(typed).layer(receiver.layer()))
        .with_state(probe.clone())
}

/// Returns the status that a typed handler answers for a body, and checks whether the event stays
/// claimable.
async fn status_of(body: impl Into<Vec<u8>>) -> u16 {
    let body = body.into();
    let failed = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&failed);
    let receiver = receiver()
        .on_failed(move |_| *counted.lock().unwrap() += 1)
        .build()
        .unwrap();
    let probe = Probe::new();
    let app = typed_app(&receiver, &probe);
    let first = ask(&app, &Sent::new(body.clone())).await;
    let second = ask(&app, &Sent::new(body.clone())).await;
    let shown = String::from_utf8_lossy(&body);
    if first.status == 200 {
        assert!(second.is_replay() && probe.started() == 1, "{shown}");
    } else {
        // Released, so the retry is told the same.
        assert_eq!(first.status, second.status, "{shown}");
        assert_eq!(probe.started(), 0, "ran: {shown}");
        assert_eq!(*failed.lock().unwrap(), 2, "the operator is told: {shown}");
    }
    first.status
}

fn with_data(data: &str) -> String {
    format!(
        r#"{{"id":"evt_1","type":"page.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{data}}}"#
    )
}

/// A row that was created, with these properties.
fn row_created(properties: &str) -> String {
    let created = format!(r#""properties":{properties},"createdBy""#);
    let event = event("evt_1").replace("row.deleted", "row.created");
    event.replace(r#""deletedBy""#, &created)
}

// fault S2-18: doubled envelope keys that two readers see differently
// fault S2-23: ids empty, blank, with control characters, of 10 KiB, in other case
#[tokio::test]
async fn without_a_usable_id_and_type_a_body_is_refused() {
    let long = "e".repeat(10_240);
    let at_limit = "e".repeat(257);
    for head in [
        r#""type":"row.created""#,
        r#""id":"evt_1""#,
        r#""id":"","type":"a""#,
        r#""id":"  ","type":"a""#,
        r#""id":"evt\n1","type":"a""#,
        r#""id":"evt\u0000","type":"a""#,
        r#""id":"evt\u007f","type":"a""#,
        r#""id":null,"type":"a""#,
        r#""id":1,"type":"a""#,
        r#""id":["evt_1"],"type":"a""#,
        r#""id":{"a":1},"type":"a""#,
        r#""id":"evt_1","type":"""#,
        r#""id":"evt_1","type":7"#,
        r#""id":"evt_1","id":"evt_2","type":"a""#,
        r#""id":"evt_1","\u0069d":"evt_2","type":"a""#,
        r#""id":"\ud800","type":"a""#,
        &format!(r#""id":"{long}","type":"a""#),
        &format!(r#""id":"{at_limit}","type":"a""#),
        &format!(r#""id":"evt_1","type":"{at_limit}""#),
    ] {
        assert_eq!(status_of(format!("{{{head}}}")).await, 400, "{head:.80}");
    }
}

// fault S2-20: nesting, lone surrogates, bad UTF-8, BOM, UTF-16, trailing data, NaN, control characters
#[tokio::test]
async fn what_is_not_a_json_object_is_refused() {
    let whole = event("evt_1");
    let utf16: Vec<u8> = whole.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for body in [
        Vec::new(),
        b" ".to_vec(),
        b"null".to_vec(),
        b"{}".to_vec(),
        b"[]".to_vec(),
        b"\"evt_1\"".to_vec(),
        b"{\"id\"".to_vec(),
        b"id=evt_1&type=a".to_vec(),
        format!("[{whole}]").into_bytes(),
        format!("\u{feff}{whole}").into_bytes(),
        whole.replace('"', "'").into_bytes(),
        utf16,
        "[".repeat(1 << 19).into_bytes(),
        "{\"a\":".repeat(1 << 17).into_bytes(),
        format!("{{\"data\":{}", "[".repeat(1 << 19)).into_bytes(),
    ] {
        let shown = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
        assert_eq!(status_of(body).await, 400, "{shown}");
    }
}

// fault S2-20: nesting, lone surrogates, bad UTF-8, BOM, UTF-16, trailing data, NaN, control characters
#[tokio::test]
async fn a_body_with_an_error_after_its_id_and_type_never_runs_a_typed_handler() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let endless = "[".repeat(1 << 19);
    let numbers = ["", "}", "nul", "NaN", "Infinity", "1e400", "-1e400", "01"];
    let texts = [
        r#""\ud800""#,
        r#""\udc00x""#,
        r#""\x""#,
        "\"\n\"",
        "\"\0\"",
        "\"open",
    ];
    let nested = [
        "[1,]",
        r#"{"a":1,}"#,
        r#"{"a" 1}"#,
        "{a:1}",
        &deep,
        &endless,
    ];
    for data in numbers.iter().chain(&texts).chain(&nested) {
        assert_eq!(status_of(with_data(data)).await, 422, "{data:.40}");
    }
    let whole = event("evt_1");
    let with = |bytes: &[u8], before_end| {
        let (start, end) = whole.as_bytes().split_at(whole.len() - before_end);
        [start, bytes, end].concat()
    };
    for body in [
        with(b"x", 0),
        format!("{whole}{whole}").into_bytes(),
        with(b"\0", 0),
        whole[..whole.len() - 1].to_owned().into_bytes(),
        with(b"\xff", 20),
        with(b"\xc0\xaf", 10),
    ] {
        let shown = String::from_utf8_lossy(&body).into_owned();
        assert_eq!(status_of(body).await, 422, "{shown}");
    }
}

// fault S2-18: doubled envelope keys that two readers see differently
#[tokio::test]
async fn fields_of_the_envelope_must_not_stand_there_twice() {
    let whole = event("evt_1");
    for (field, again) in [
        ("\"type\"", r#""type":"row.created","type""#),
        ("\"data\"", r#""data":{},"data""#),
        ("\"workspaceId\"", r#""workspaceId":"ws_2","workspaceId""#),
        ("\"rowId\"", r#""rowId":"row_2","rowId""#),
    ] {
        let doubled = whole.replacen(field, again, 1);
        let status = status_of(doubled.clone()).await;
        assert!([400, 422].contains(&status), "{status}: {doubled}");
    }
    // Behind id and type the head does not look, so a second id is the whole body's fault.
    let late = whole.replacen("\"data\"", r#""id":"evt_2","data""#, 1);
    assert_eq!(status_of(late).await, 422);
}

// fault S2-19: doubled keys among the properties
#[tokio::test]
async fn the_last_value_of_a_repeated_property_counts() {
    let body = row_created(r#"{"Total":1,"Total":2}"#);
    let receiver = receiver().build().unwrap();
    let seen: Arc<Mutex<Vec<f64>>> = Arc::default();
    #[derive(serde::Deserialize)]
    struct Order(std::collections::HashMap<String, f64>);
    let kept = Arc::clone(&seen);
    let handler = move |event: Event<Order>| async move {
        if let EventData::RowCreated(row) = event.data {
            kept.lock().unwrap().push(row.properties.0["Total"]);
        }
    };
    let app: Router = Router::new().route("/hook", post(handler).layer(receiver.layer()));
    assert_eq!(ask(&app, &Sent::new(body.clone())).await.status, 200);
    assert_eq!(*seen.lock().unwrap(), [2.0]);
    assert_eq!(status_of(body).await, 200, "as properties too");
}

// fault S2-21: big integers lose digits
#[tokio::test]
async fn numbers_keep_every_digit() {
    let digits = "18446744073709551617.10";
    let body = row_created(&format!(r#"{{"Total":{digits}}}"#));
    let receiver = receiver().build().unwrap();
    let probe = Probe::new();
    let answer = ask(&typed_app(&receiver, &probe), &Sent::new(body)).await;
    assert_eq!(answer.status, 200);
    let seen = String::from_utf8(probe.seen()[0].to_vec()).unwrap();
    assert!(seen.contains(digits), "{seen}");
}

// fault S2-22: unknown types refused until they are discarded
// fault S8: one mismatch and the raw payload is gone
#[tokio::test]
async fn what_is_not_known_yet_is_accepted_and_kept() {
    for kind in ["page.created", "member.invited", "row.archived", "x"] {
        let body = with_data(r#"{"anything":[1,2,{"a":null}]}"#).replace("page.created", kind);
        assert_eq!(status_of(body).await, 200, "{kind}");
    }
    let more = event("evt_1").replacen("\"data\"", r#""extra":{"a":[1]},"data""#, 1);
    assert_eq!(status_of(more).await, 200);
    for id in ["e", "EVT_1", "evt_1 ", "ünï", &"e".repeat(256)] {
        assert_eq!(status_of(event(id)).await, 200, "{id}");
    }
}

// fault S2-23: ids empty, blank, with control characters, of 10 KiB, in other case
#[tokio::test]
async fn ids_are_distinguished_by_their_exact_bytes() {
    let guarded = Guarded::by(receiver());
    for id in "evt_1|EVT_1|evt_1 | evt_1|evt_\u{e9}|evt_e\u{301}".split('|') {
        assert_eq!(guarded.status(&Sent::new(event(id))).await, 204, "{id:?}");
    }
    // An escape is another spelling of the same id.
    let escaped = event("evt_1").replace("evt_1", "\\u0065vt_1");
    assert!(guarded.replays(&Sent::new(escaped)).await);
    assert_eq!(guarded.probe.started(), 6);
}

#[tokio::test]
async fn a_type_mismatch_is_reported_to_the_operator_with_its_path_and_not_to_the_sender() {
    let told: Arc<Mutex<Vec<(Outcome, String)>>> = Arc::default();
    let kept = Arc::clone(&told);
    let receiver = receiver()
        .on_answer(move |answer: &Answer| {
            let reason = answer.reason.as_ref().unwrap().to_string();
            kept.lock().unwrap().push((answer.outcome, reason));
        })
        .build()
        .unwrap();
    #[derive(serde::Deserialize)]
    struct Order {
        #[serde(rename = "Total")]
        _total: f64,
    }
    let handler = |_: Event<Order>| async { StatusCode::OK };
    let app: Router = Router::new().route("/hook", post(handler).layer(receiver.layer()));
    let body = row_created(r#"{"Total":"private"}"#);
    let answer = ask(&app, &Sent::new(body)).await;
    assert_eq!(answer.status, 422);
    let answered = String::from_utf8_lossy(&answer.body).into_owned();
    let leaks = answered.contains("Total") || answered.contains("private");
    assert!(!leaks, "{answered}");
    let (outcome, reason) = told.lock().unwrap()[0].clone();
    assert_eq!(outcome, Outcome::Failed(Failure::TypeMismatch));
    assert!(reason.contains("data.properties.Total"), "{reason}");
    assert!(!reason.contains("private"), "{reason}");
}

// fault S2-03: headers name another event than the signed body
// fault S9: the unsigned type decides how the signed body is read
#[tokio::test]
async fn unsigned_headers_that_name_another_event_are_refused_or_ignored_as_set() {
    let sent = Sent::new(event("evt_1"));
    let lying = [
        sent.clone().with("X-Service-Event-Id", "evt_2"),
        sent.clone().with("X-Service-Event-Type", "row.created"),
        sent.clone().with("X-Service-Event-Id", ""),
        sent.clone().with("X-Service-Event-Id", "EVT_1"),
        sent.clone().with("X-Service-Event-Id", b"evt_1\xff"),
    ];
    for (ignored, status) in [(false, 400), (true, 200)] {
        for lie in &lying {
            let probe = Probe::new();
            let receiver = match ignored {
                true => receiver().ignore_header_mismatch(),
                false => receiver(),
            };
            let receiver = receiver.build().unwrap();
            let app = typed_app(&receiver, &probe);
            assert_eq!(ask(&app, lie).await.status, status, "{lie:?}");
            assert_eq!(probe.started(), usize::from(status == 200));
            let honest = ask(&app, &sent).await;
            // By the signed body alone.
            assert_eq!((honest.status, probe.started()), (200, 1));
        }
    }
}
