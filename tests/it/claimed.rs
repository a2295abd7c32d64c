//! The subscription that a refused request claims to come from: shown to the operator, marked as unproven, and never a label.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::post;
use hookgate::{
    KeyRing, MemoryStore, Receiver, Secret, layer::Answer, lookup::Keys, outcome::RefusalKind,
    receiver::RequestHead,
};
use http::StatusCode;
use tower::ServiceExt;

use crate::harness::{Harness, SECRET, Sent, TokioClock};

const FORGER: &str = "whsec_made_up_by_somebody_else";

/// A change of the headers of a request.
type Change = fn(&mut http::HeaderMap);

fn claimed(answer: &axum::response::Response) -> Option<String> {
    let answer = answer.extensions().get::<Answer>().unwrap();
    let claimed = answer.claimed_subscription();
    let shown = claimed.map(|id| id.as_str().to_owned());
    // In the one line too, with its mark.
    let note = shown
        .as_ref()
        .map(|id| format!(" (claimed subscription, unproven: {id})"));
    match note {
        Some(note) => assert!(answer.to_string().ends_with(&note), "{answer}"),
        None => assert!(!answer.to_string().contains("claimed"), "{answer}"),
    }
    shown
}

#[tokio::test(start_paused = true)]
async fn a_refusal_names_the_claimed_subscription_to_the_hooks() {
    let harness = Harness::of(|_, _| async { StatusCode::OK });
    let send = |sent: Sent, change: Change| {
        let mut request = sent.request(&harness.clock);
        change(request.headers_mut());
        let app = harness.app.clone();
        async move { app.oneshot(request).await.unwrap() }
    };
    let sent = || Sent {
        subscription: Some("wh_orders-1"),
        ..Sent::event("evt_1")
    };
    let forged = || Sent {
        secret: FORGER,
        ..sent()
    };
    let cases: [(Sent, Change, u16); 8] = [
        (forged(), |_| (), 401),
        (Sent { age: 400, ..sent() }, |_| (), 401),
        (
            sent(),
            |headers| drop(headers.remove("x-service-signature")),
            401,
        ),
        (
            sent(),
            |headers| drop(headers.insert("x-service-timestamp", "soon".parse().unwrap())),
            401,
        ),
        (
            sent(),
            |headers| drop(headers.insert("content-type", "text/html".parse().unwrap())),
            415,
        ),
        (
            sent(),
            |headers| drop(headers.insert("content-length", "99999999".parse().unwrap())),
            413,
        ),
        (
            Sent {
                body: "{}".into(),
                ..sent()
            },
            |_| (),
            400,
        ),
        (
            sent(),
            |headers| drop(headers.insert("x-service-event-id", "evt_2".parse().unwrap())),
            400,
        ),
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
    let harness = Harness::of(|_, _| async { StatusCode::OK });
    let long = format!("wh_{}", "a".repeat(65));
    for id in [
        "",
        "wh_",
        "orders",
        "wh_a b",
        "wh_\u{7f}",
        "wh_<b>",
        "WH_1",
        &*long,
    ] {
        let mut request = Sent {
            secret: FORGER,
            ..Sent::event("evt_1")
        }
        .request(&harness.clock);
        let Ok(value) = http::HeaderValue::from_bytes(id.as_bytes()) else {
            continue;
        };
        request.headers_mut().insert("x-service-webhook-id", value);
        let answer = harness.app.clone().oneshot(request).await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), claimed(&answer)),
            (401, None),
            "{id}"
        );
    }
    let mut request = Sent::event("evt_1").request(&harness.clock);
    for id in ["wh_1", "wh_2"] {
        request
            .headers_mut()
            .append("x-service-webhook-id", id.parse().unwrap());
    }
    let answer = harness.app.clone().oneshot(request).await.unwrap();
    assert_eq!((answer.status().as_u16(), claimed(&answer)), (401, None));
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
    let app: Router = Router::new().route(
        "/webhooks",
        post(async || StatusCode::OK).layer(receiver.layer()),
    );
    for id in ["wh_1", "wh_3"] {
        let sent = Sent {
            subscription: Some(id),
            ..Sent::event("evt_1")
        };
        app.clone().oneshot(sent.request(&clock)).await.unwrap();
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
    let harness = Harness::of(|_, _| async { StatusCode::OK });
    for id in ["wh_claimed_1", "wh_claimed_2"] {
        let sent = Sent {
            secret: FORGER,
            subscription: Some(id),
            ..Sent::event("evt_1")
        };
        assert_eq!(harness.send(&sent).await.status(), 401);
    }
    drop(guard);
    let seen = recorder.handle().render();
    assert!(seen.contains("signature_mismatch"), "{seen}");
    assert!(!seen.contains("wh_claimed"), "{seen}");
}
