//! Other senders than the Workspace Data Service: their logs are replayed, and their refusals are
//! explained.

use axum::Router;
use axum::routing::post;
use hookgate::{
    ConfigErrorKind, Delivery, MemoryStore, Receiver, Scheme, Secret, Verifier,
    clock::UnixSeconds,
    scheme::Place,
    verify::{Timestamp, VerifyErrorKind, Window, sign},
};
use hookgate_record::{LoggedAnswer, LoggedDelivery, Redaction};
use hookgate_testing::explain::{CauseKind, Explainer, Explanation};
use hookgate_testing::log::LoggedDeliveryExt;
use hookgate_testing::replay::{ReplayError, Report};
use hookgate_testing::{DeliveryLog, Faults, Harness, Replay, Signer};
use http::StatusCode;

const NOW: i64 = 1_763_690_000;
/// Of the form that each scheme takes.
const SECRET: &str = "whsec_bWFkZSB1cCBmb3IgdGhlc2UgdGVzdHM=";
const OTHERS: [Scheme; 3] = [Scheme::STANDARD_WEBHOOKS, Scheme::STRIPE, Scheme::GITHUB];

fn secret() -> Secret {
    Secret::new(SECRET).unwrap()
}

fn body(id: &str) -> String {
    format!(r#"{{"id":"{id}","type":"invoice.paid"}}"#)
}

/// As its sender signed it, with an id of its own in the header, where the scheme has one there.
fn logged(scheme: &Scheme, secret: &Secret, id: &str, after: i64) -> LoggedDelivery {
    let at = Timestamp::at(UnixSeconds::new(NOW + after)).unwrap();
    let body = body(id);
    let headers = sign(
        scheme,
        secret,
        &at,
        &format!("msg_of_{id}"),
        body.as_bytes(),
    )
    .unwrap();
    let mut logged = LoggedDelivery::new(UnixSeconds::new(NOW + after), headers, body);
    logged.target = "/webhooks".into();
    let mut answer = LoggedAnswer::new(204, "handled");
    (answer.key, answer.scope) = (Some("primary".into()), Some("default".into()));
    logged.answer = Some(answer);
    logged
}

/// Three events, a copy of the second a minute later, and a forged delivery.
fn log(scheme: &Scheme) -> DeliveryLog {
    let forger = Secret::new("whsec_bWFkZSB1cCBieSBhIGZvcmdlcg==").unwrap();
    let mut copy = logged(scheme, &secret(), "evt_2", 60);
    copy.answer = Some(LoggedAnswer::new(200, "replayed"));
    let mut forged = logged(scheme, &forger, "evt_9", 70);
    forged.answer = Some(LoggedAnswer::new(401, "not_authentic"));
    let events = [("evt_1", 0), ("evt_2", 5), ("evt_3", 65)];
    let events = events.map(|(id, after)| logged(scheme, &secret(), id, after));
    events.into_iter().chain([copy, forged]).collect()
}

fn app(scheme: Scheme, harness: &Harness) -> Result<Router, ReplayError> {
    let store = MemoryStore::default().with_clock(harness.clock());
    let mut builder = Receiver::builder().scheme(scheme).store(store);
    if !scheme.has_timestamp() {
        builder = builder.without_window();
    }
    let guard = harness.layer(builder)?;
    let handler = async |_: Delivery| StatusCode::NO_CONTENT;
    Ok(Router::new().route("/webhooks", post(handler).layer(guard)))
}

fn assert_each_once(scheme: Scheme, report: &Report) {
    let name = scheme.name();
    assert!(report.each_event_committed_once(), "{name}: {report}");
    assert_eq!((report.events().len(), report.runs()), (3, 3), "{name}");
    assert!(report.others.iter().all(|other| other.runs == 0));
}

#[tokio::test(start_paused = true)]
async fn a_log_of_each_scheme_is_replayed_as_recorded_and_signed_again() {
    for scheme in OTHERS {
        let replay = || Replay::of(log(&scheme)).scheme(scheme).secret(secret());
        let report = replay().against(|harness| app(scheme, &harness)).await;
        assert_each_once(scheme, &report.unwrap());
        let faults = Faults::seeded(7).duplicate().reorder();
        let again = replay().resigned().with(faults);
        let report = again.against(|harness| app(scheme, &harness)).await;
        assert_each_once(scheme, &report.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_is_not_authentic_under_another_scheme() {
    let replay = Replay::of(log(&Scheme::STRIPE)).secret(secret());
    let refused = replay.against(|harness| app(Scheme::WORKSPACE, &harness));
    assert!(refused.await.is_err(), "the log says that it was authentic");
}

#[tokio::test(start_paused = true)]
async fn redacted_deliveries_are_signed_again_under_their_recorded_id() {
    let scheme = Scheme::STANDARD_WEBHOOKS;
    let redaction = Redaction::new().key("type");
    let redacted: DeliveryLog = log(&scheme)
        .deliveries()
        .iter()
        .map(|logged| logged.clone().redacted(&redaction))
        .collect();
    let replay = Replay::of(redacted).scheme(scheme).secret(secret());
    let report = replay.resign_unverifiable();
    let report = report
        .against(|harness| app(scheme, &harness))
        .await
        .unwrap();
    assert_each_once(scheme, &report);
    assert!(report.event("msg_of_evt_2").is_some(), "{report}");
}

#[test]
fn what_a_delivery_says_of_itself_is_read_by_its_scheme() {
    // A row of a user, with fields of other names.
    let acme = Scheme::STRIPE
        .with_name("acme")
        .event_id(Place::Json("number"))
        .event_type(Place::JsonIfPresent("topic"));
    for (scheme, id, kind, age) in [
        (
            Scheme::STANDARD_WEBHOOKS,
            "msg_of_evt_1",
            Some("invoice.paid"),
            Some(9),
        ),
        (Scheme::STRIPE, "evt_1", Some("invoice.paid"), Some(9)),
        (Scheme::GITHUB, "sha256:", None, None),
        (Scheme::WORKSPACE, "evt_1", Some("invoice.paid"), Some(9)),
        (acme, "no_1", Some("a.b"), Some(9)),
    ] {
        let mut logged = logged(&scheme, &secret(), "evt_1", 0);
        if scheme == acme {
            let body = r#"{"id":"evt_1","type":"x","number":"no_1","topic":"a.b"}"#;
            logged = LoggedDelivery::new(logged.received_at, [("", "")], body);
            let signer = Signer::new(secret()).scheme(acme);
            logged = logged.resigned(&signer.at(UnixSeconds::new(NOW))).unwrap();
        }
        logged.received_at = UnixSeconds::new(NOW + 9);
        let head = logged.read_by(scheme);
        let read = head.event_id.clone().unwrap();
        assert!(read.starts_with(id), "{read}");
        assert_eq!(head.event_type.as_deref(), kind);
        assert_eq!((head.age, head.is_verifiable), (age, true));
        // A receiver names it the same.
        let verdict = logged.verdict_by(scheme, secret().into(), Window::default());
        let delivery = verdict.unwrap().unwrap();
        assert_eq!(delivery.event_id(), read);
        assert_eq!(delivery.event_type(), kind.unwrap_or("untyped"));
        logged.headers.clear();
        assert!(!logged.read_by(scheme).is_verifiable);
    }
}

fn explain(scheme: Scheme, held: &str, delivery: &LoggedDelivery) -> Explanation {
    let explainer = Explainer::new().scheme(scheme).secret("KEY", held);
    let explainer = explainer.other_secret("OLD", "whsec_YW4gb2xkIG9uZSBvZiBhIHRlc3Q=");
    explainer.explain(delivery)
}

fn kinds(explanation: &Explanation) -> Vec<CauseKind> {
    explanation.causes().iter().map(|it| it.kind()).collect()
}

#[test]
fn the_mistakes_of_secret_and_body_are_proven_for_each_scheme() {
    for scheme in OTHERS {
        let sound = logged(&scheme, &secret(), "evt_1", 0);
        let explanation = explain(scheme, SECRET, &sound);
        assert!(explanation.is_authentic(), "{explanation}");
        assert_eq!(explanation.key_name(), Some("KEY"));
        let is_called_fresh = explanation.conclusion().contains("fresh");
        assert_eq!(is_called_fresh, scheme.has_timestamp(), "{explanation}");

        let quoted = explain(scheme, &format!("\"{SECRET}\"\n"), &sound);
        assert!(
            kinds(&quoted).contains(&CauseKind::SecretQuoted),
            "{quoted}"
        );

        let old = Secret::new("whsec_YW4gb2xkIG9uZSBvZiBhIHRlc3Q=").unwrap();
        let of_old = explain(scheme, SECRET, &logged(&scheme, &old, "evt_1", 0));
        assert_eq!(kinds(&of_old), [CauseKind::SecretOfAnother], "{of_old}");

        let mut indented = sound.clone();
        indented.body = Some(body("evt_1").replace(',', ", ").replace(':', ": ").into());
        let indented = explain(scheme, SECRET, &indented);
        assert_eq!(kinds(&indented), [CauseKind::BodyIndented], "{indented}");

        let mut forged = sound.clone();
        forged.body = Some(body("evt_2").into());
        let forged = explain(scheme, SECRET, &forged);
        assert!(forged.none_fits(), "{forged}");
        let error = forged.refusal().and_then(|it| it.verify_error()).unwrap();
        assert_eq!(error.kind(), VerifyErrorKind::SignatureMismatch);

        let mut got = sound.clone();
        got.method = "GET".into();
        let got = explain(scheme, SECRET, &got);
        assert_eq!(kinds(&got), [CauseKind::RequestMethod], "{got}");
    }
}

#[test]
fn an_age_and_a_missing_header_are_named_for_each_scheme() {
    for scheme in OTHERS {
        let mut late = logged(&scheme, &secret(), "evt_1", 0);
        late.received_at = UnixSeconds::new(NOW + 1_000);
        let late = explain(scheme, SECRET, &late);
        match scheme.has_timestamp() {
            true => assert_eq!(kinds(&late), [CauseKind::ClockStale], "{late}"),
            false => assert!(late.is_authentic(), "{late}"),
        }
        let mut bare = logged(&scheme, &secret(), "evt_1", 0);
        bare.headers.retain(|(name, _)| !name.contains("signature"));
        let bare = explain(scheme, SECRET, &bare);
        // Without `--scheme` it says whose headers they are.
        let of_service = Scheme::WORKSPACE;
        let other = explain(of_service, SECRET, &logged(&scheme, &secret(), "evt_1", 0));
        let hints = other.hints().iter().map(ToString::to_string);
        let said = hints.filter(|hint| hint.contains(scheme.name())).count();
        assert_eq!(said, 1, "{other}");
        let error = bare.refusal().and_then(|it| it.verify_error()).unwrap();
        assert!(
            matches!(error.kind(), VerifyErrorKind::HeaderMissing(_)),
            "{bare}"
        );
    }
}

#[test]
fn the_signer_writes_an_id_and_a_subscription_that_a_receiver_takes() {
    let accepted = |scheme: Scheme, headers: &[(&'static str, String)], body: &str| {
        let verifier = match scheme.has_timestamp() {
            true => Verifier::for_scheme(scheme, secret()),
            false => Verifier::without_window(scheme, secret()),
        };
        let pairs = headers.iter().map(|(name, value)| (*name, value));
        verifier.unwrap().verify_now(pairs, body).is_ok()
    };
    let id_in = |headers: &[(&'static str, String)]| {
        let mut named = headers.iter().filter(|(name, _)| *name == "webhook-id");
        named.next().unwrap().1.clone()
    };
    let signer = Signer::new(secret()).scheme(Scheme::STANDARD_WEBHOOKS);
    for (body, id) in [
        (r#"{"id":"evt_1"}"#, "evt_1"),
        // A dot ends a signed id, so no id has one.
        (r#"{"id":"evt.1"}"#, "msg_"),
        (r#"{"id":"an id"}"#, "msg_"),
        ("{}", "msg_"),
    ] {
        let headers = signer.headers(body);
        assert!(id_in(&headers).starts_with(id), "{headers:?}");
        assert!(accepted(Scheme::STANDARD_WEBHOOKS, &headers, body));
    }
    let headers = signer.event_id("msg_7").headers("{}");
    assert_eq!(id_in(&headers), "msg_7");
    assert!(accepted(Scheme::STANDARD_WEBHOOKS, &headers, "{}"));
    let now = Timestamp::at(UnixSeconds::new(NOW)).unwrap();
    for id in ["", "evt.1", "an id", "id\n"] {
        let signed = sign(&Scheme::STANDARD_WEBHOOKS, &secret(), &now, id, b"{}");
        assert_eq!(signed.unwrap_err().kind(), ConfigErrorKind::UnusableName);
    }

    let headers = Signer::new(secret()).scheme(Scheme::GITHUB);
    let headers = headers.subscription("77").headers("{}");
    assert!(headers.contains(&("x-github-hook-id", "77".to_owned())));
    assert!(accepted(Scheme::GITHUB, &headers, "{}"));
}
