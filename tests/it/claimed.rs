//! The subscription that a refused request claims to come from: shown to the operator, marked as
//! unproven, and never a label.

use std::sync::{Arc, Mutex};

use hookgate::{
    Delivery, KeyRing, MemoryStore, Receiver, Secret, layer::Answer, lookup::Keys,
    outcome::RefusalKind, receiver::RequestHead,
};
use http::StatusCode;

use crate::harness::{FORGER, Harness, SECRET, Sent, TokioClock, in_turn};

/// A change of the headers of a request.
type Change = fn(&mut http::HeaderMap);

fn claimed(answer: &axum::response::Response) -> Option<String> {
    let answer = answer.extensions().get::<Answer>().unwrap();
    let claimed = answer.claimed_subscription();
    let shown = claimed.map(|id| id.as_str().to_owned());
    // In the one line too, with its mark.
    let line = answer.to_string();
    match &shown {
        Some(id) => assert!(line.ends_with(&format!(" (claimed subscription, unproven: {id})"))),
        None => assert!(!line.contains("claimed"), "{line}"),
    }
    shown
}

#[tokio::test(start_paused = true)]
async fn a_refusal_names_the_claimed_subscription_to_the_hooks() {
    let harness = Harness::of(in_turn(&[200]));
    let send = |sent: Sent, change: Change| {
        let mut request = sent.request(&harness.clock);
        change(request.headers_mut());
        harness.ask(request)
    };
    fn set(headers: &mut http::HeaderMap, name: &'static str, value: &str) {
        headers.insert(name, value.parse().unwrap());
    }
    let sent = || Sent::event("evt_1").of("wh_orders-1");
    let forged = || sent().signed_by(FORGER);
    #[rustfmt::skip] // a row a case
    let cases: [(Sent, Change, u16); 8] = [
        (forged(), |_| (), 401),
        (sent().aged(400), |_| (), 401),
        (sent(), |headers| drop(headers.remove("x-service-signature")), 401),
        (sent(), |headers| set(headers, "x-service-timestamp", "soon"), 401),
        (sent(), |headers| set(headers, "content-type", "text/html"), 415),
        (sent(), |headers| set(headers, "content-length", "99999999"), 413),
        (sent().with_body("{}"), |_| (), 400),
        (sent(), |headers| set(headers, "x-service-event-id", "evt_2"), 400),
    ];
    for (sent, change, status) in cases {
        let answer = send(sent, change).await;
        assert_eq!(answer.status(), status);
        assert_eq!(claimed(&answer).as_deref(), Some("wh_orders-1"), "{status}");
    }
    // The sender hears nothing of it.
    let answer = send(forged(), |_| ()).await;
    let (parts, body) = answer.into_parts();
    let body = axum::body::to_bytes(body, 999).await.unwrap();
    assert!(!format!("{:?} {body:?}", parts.headers).contains("wh_orders"));
    // Nor does a delivery that is handled name one: its scope and key are proven.
    let answer = send(sent(), |_| ()).await;
    assert_eq!((answer.status(), claimed(&answer)), (StatusCode::OK, None));
}

#[tokio::test(start_paused = true)]
async fn an_id_of_another_form_or_twice_is_not_named() {
    let harness = Harness::of(in_turn(&[200]));
    let long = format!("wh_{}", "a".repeat(65));
    let mut cases: Vec<_> = ["", "wh_", "orders", "wh_a b", "wh_<b>", "WH_1", &long]
        .map(|id| vec![id])
        .to_vec();
    cases.push(vec!["wh_1", "wh_2"]);
    for ids in cases {
        let mut request = Sent::event("evt_1")
            .signed_by(FORGER)
            .request(&harness.clock);
        for id in &ids {
            let headers = request.headers_mut();
            headers.append("x-service-webhook-id", id.parse().unwrap());
        }
        let answer = harness.ask(request).await;
        let (status, claimed) = (answer.status().as_u16(), claimed(&answer));
        assert_eq!((status, claimed), (401, None), "{ids:?}");
    }
}

fn keys() -> Keys {
    let ring = |name: &str| KeyRing::new(Secret::new(&format!("{SECRET}_{name}")).unwrap());
    Keys::by_subscription([("wh_1", ring("1")), ("wh_2", ring("2"))]).unwrap()
}

/// With many subscriptions: one that is not known, and one whose secret is wrong.
#[tokio::test(start_paused = true)]
async fn the_operator_learns_which_of_many_subscriptions_is_refused() {
    let clock = TokioClock::start();
    let told = Arc::new(Mutex::new(Vec::new()));
    let tells = Arc::clone(&told);
    let receiver = Receiver::builder()
        .keys(keys())
        .store(MemoryStore::default())
        .clock(clock.clone())
        .ignore_header_mismatch()
        .on_answer(move |answer| {
            let claimed = answer.claimed_subscription().cloned();
            tells.lock().unwrap().push((answer.status, claimed));
        })
        .build()
        .unwrap();
    for id in ["wh_1", "wh_3"] {
        let request = Sent::event("evt_1").of(id).request(&clock);
        receiver.handle(request, async |_: Delivery| ()).await;
        let (status, claimed) = told.lock().unwrap().pop().unwrap();
        assert_eq!((status, claimed.unwrap().as_str()), (401, id));
    }
}

/// A server without the layer gets it from the refusal.
#[test]
fn the_steps_without_the_layer_name_it_too() {
    let receiver = Receiver::builder()
        .keys(keys())
        .without_deduplication()
        .build()
        .unwrap();
    let named = |kind, error: hookgate::Refusal| {
        assert_eq!(error.kind(), kind);
        error.claimed_subscription().unwrap().as_str().to_owned()
    };
    let head = RequestHead::new("POST", [("X-Service-Webhook-Id", "wh_1")]);
    let error = receiver.check_head(&head).unwrap_err();
    assert_eq!(named(RefusalKind::NotAuthentic, error), "wh_1");
    let head = RequestHead::new("GET", [("X-Service-Webhook-Id", "wh_9")]);
    let error = receiver.check_head(&head).unwrap_err();
    assert_eq!(named(RefusalKind::MethodNotAllowed, error), "wh_9");
}

/// Any client can send any number of ids, so they are no labels.
#[cfg(feature = "metrics")]
#[tokio::test(start_paused = true)]
async fn no_label_of_a_metric_holds_a_claimed_id() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let guard = metrics::set_default_local_recorder(&recorder);
    let harness = Harness::of(in_turn(&[200]));
    for id in ["wh_claimed_1", "wh_claimed_2"] {
        let sent = Sent::event("evt_1").signed_by(FORGER).of(id);
        assert_eq!(harness.send(&sent).await.status(), 401);
    }
    drop(guard);
    let seen = recorder.handle().render();
    assert!(seen.contains("signature_mismatch"), "{seen}");
    assert!(!seen.contains("wh_claimed"), "{seen}");
}
