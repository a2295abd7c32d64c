//! The service's own log of recent deliveries, in the forms that it may have.

use hookgate::{Secret, Verifier, clock::UnixSeconds};
use hookgate_testing::log::{LogErrorKind, LoggedDeliveryExt};
use hookgate_testing::{DeliveryLog, Signer};

use crate::harness::SECRET;

const PAYLOAD: &str = r#"{"id": "evt_1",  "type":"page.created", "n":1.50, "data":{}}"#;

#[test]
fn every_form_of_the_list_gives_the_same_delivery() {
    let quoted = serde_json::to_string(PAYLOAD).unwrap();
    let camel = format!(
        r#"{{"eventId":"evt_1","eventType":"page.created","requestTime":"2025-11-21T01:53:20Z","responseStatus":503,"retryCount":2,"payload":{PAYLOAD}}}"#
    );
    let snake = format!(
        r#"{{"event_id":"evt_1","event_type":"page.created","request_time":1763690000,"response_status":"503","retry_count":"2","payload":{quoted}}}"#
    );
    let titled = format!(
        r#"{{"Event ID":"evt_1","Event Type":"page.created","Request Time":"2025-11-21 02:53:20+01:00","Response Status":503,"Retry Count":2,"Payload":{PAYLOAD}}}"#
    );
    let millis = format!(
        r#"{{"id":"evt_1","type":"page.created","timestamp":1763690000123,"status":503,"retries":2,"body":{quoted},"latency":null}}"#
    );
    for text in [
        camel.clone(),
        snake.clone(),
        titled.clone(),
        millis.clone(),
        format!("[{camel}]"),
        format!("\u{feff}\n[\n{snake}\n]\n"),
        format!(r#"{{"total":1,"deliveries":[{titled}]}}"#),
        format!(r#"{{"data":[{millis}],"next":null}}"#),
    ] {
        let log = DeliveryLog::import(&text).unwrap();
        assert_eq!(log.len(), 1, "{text}");
        let delivery = &log.deliveries()[0];
        assert_eq!(
            delivery.received_at,
            UnixSeconds::new(1_763_690_000),
            "{text}"
        );
        assert_eq!(delivery.body.as_deref(), Some(PAYLOAD.as_bytes()), "{text}");
        assert_eq!(delivery.event_id().as_deref(), Some("evt_1"));
        assert_eq!(
            delivery.header("x-service-event-type").unwrap(),
            "page.created"
        );
        let answer = delivery.answer.as_ref().unwrap();
        assert_eq!(
            (answer.status, &*answer.outcome, answer.attempt),
            (503, "imported", Some(3))
        );
        assert!(delivery.unverifiable && !delivery.is_verifiable());
    }
    let lines = DeliveryLog::import(format!("{camel}\r\n\r\n{snake}\n{titled}")).unwrap();
    assert_eq!(lines.len(), 3);
}

#[test]
fn bare_events_are_their_own_payload() {
    let event = r#"{"id":"evt_7","type":"row.deleted","createdAt":"2025-11-21T01:53:20.250Z","workspaceId":"ws_1","data":{}}"#;
    let log = DeliveryLog::import(format!("{event}\n{event}\n")).unwrap();
    assert_eq!(log.len(), 2);
    let delivery = &log.deliveries()[1];
    assert_eq!(delivery.body.as_deref(), Some(event.as_bytes()));
    assert_eq!(delivery.received_at, UnixSeconds::new(1_763_690_000));
    assert_eq!(delivery.answer, None);
    // Without a time of its own, a record has its event's.
    let record = DeliveryLog::import(format!(r#"{{"payload":{event}}}"#)).unwrap();
    assert_eq!(
        record.deliveries()[0].received_at,
        UnixSeconds::new(1_763_690_000)
    );
}

#[test]
fn signed_again_it_verifies_with_the_headers_that_the_service_sends() {
    let text =
        format!(r#"[{{"eventType":"page.created","requestTime":1763690000,"payload":{PAYLOAD}}}]"#);
    let log = DeliveryLog::import(text).unwrap();
    let secret = Secret::new(SECRET).unwrap();
    let now = UnixSeconds::new(1_795_000_000);
    let signer = Signer::new(secret.clone()).subscription("wh_1").at(now);
    let signed = log.deliveries()[0].resigned(&signer).unwrap();
    assert!(signed.is_verifiable());
    let verifier = Verifier::new(secret);
    assert!(
        verifier
            .verify(&signed.head().unwrap(), PAYLOAD, now)
            .is_ok()
    );
    for name in [
        "content-type",
        "user-agent",
        "x-service-event-id",
        "x-service-event-type",
        "x-service-webhook-id",
    ] {
        let count = signed
            .headers
            .iter()
            .filter(|(other, _)| other == name)
            .count();
        assert_eq!(count, 1, "{name}");
    }
}

#[test]
fn signing_again_keeps_the_order_of_headers_and_takes_doubles_out() {
    let headers = [
        ("x-first", "1"),
        ("X-Service-Signature", "sha256=no"),
        ("x-second", "2"),
        ("x-service-timestamp", "1"),
        ("x-service-signature", "again"),
        ("x-service-webhook-id", "wh_old"),
    ];
    let logged = hookgate_record::LoggedDelivery::new(UnixSeconds::new(1), headers, PAYLOAD);
    assert!(!logged.is_verifiable());
    let signer = Signer::new(Secret::new(SECRET).unwrap());
    let signed = logged.resigned(&signer).unwrap();
    let names: Vec<_> = signed.headers.iter().map(|(name, _)| &**name).collect();
    let order = [
        "x-first",
        "x-service-signature",
        "x-second",
        "x-service-timestamp",
        "x-service-webhook-id",
    ];
    assert_eq!(names, order);
    assert_eq!(signed.header("x-service-webhook-id").unwrap(), "wh_old");
    assert!(signed.is_verifiable());
    assert_eq!(signed.age(), Some(0));
    assert_eq!(logged.age(), Some(0));
}

#[test]
fn what_is_no_such_list_is_an_error_that_names_the_delivery() {
    let good = format!(r#"{{"time":1,"payload":{PAYLOAD}}}"#);
    for (text, number) in [
        ("no JSON".to_owned(), None),
        (format!("[{good},"), None),
        (format!("[{good},7]"), Some(2)),
        (format!(r#"[{good},{{"time":1}}]"#), Some(2)),
        (
            format!(r#"{{"time":"yesterday","payload":{PAYLOAD}}}"#),
            Some(1),
        ),
        (format!(r#"{{"payload":{PAYLOAD}}}"#), Some(1)),
    ] {
        let error = DeliveryLog::import(&text).unwrap_err();
        assert_eq!(
            (error.kind(), error.line()),
            (LogErrorKind::BadImport, number),
            "{text}"
        );
        let told = format!("{error} {error:?}");
        assert!(!told.contains("evt_1"), "{told}");
    }
    assert!(DeliveryLog::import("").unwrap().is_empty());
    assert!(DeliveryLog::import("[]").unwrap().is_empty());
}

#[test]
fn no_time_is_too_long_ago_to_be_read() {
    for (time, second) in [
        ("-9223372036854775808", -9_223_372_036_854_776),
        ("9223372036854775807", 9_223_372_036_854_775),
        ("-99999999999", -99_999_999_999),
    ] {
        let text = format!(r#"{{"time":{time},"payload":{PAYLOAD}}}"#);
        let log = DeliveryLog::import(text).unwrap();
        assert_eq!(log.deliveries()[0].received_at.as_i64(), second, "{time}");
    }
}
