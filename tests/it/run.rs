//! A delivery that comes back from a queue is run through a handler, without a receiver and without
//! a request.

use std::future::{pending, ready};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use hookgate::{
    DeadLetter, Delivery, Event, HandlerError, Outcome,
    clock::UnixSeconds,
    dangerous,
    dedupe::{StoreError, StoreErrorKind},
    layer::{AlreadyHandled, IntoAnswer, Unhandled, handler_service},
    outcome::Failure,
    receiver::StoredDelivery,
    run::{Run, RunReport},
};
use http::StatusCode;
use tower::Layer;

use crate::support::*;

fn of_body(body: String) -> Delivery {
    let restored = dangerous::restore(&StoredDelivery {
        body: body.into(),
        timestamp: NOW.to_string(),
        signature: None,
        event_id: "evt_1".into(),
        event_type: "row.deleted".into(),
        received_at: UnixSeconds::new(NOW),
        scope: "orders".into(),
        key_name: "primary".into(),
        subscription_id: Some("wh_1".into()),
        pinned_workspace: None,
        traceparent: None,
        scheme: "workspace".into(),
    });
    restored.unwrap()
}

fn delivery() -> Delivery {
    of_body(event("evt_1"))
}

async fn answered<A: IntoAnswer + 'static>(answer: fn(Delivery) -> A) -> RunReport {
    let handler = move |delivery| ready(answer(delivery).into_answer());
    Run::new(&delivery()).handler(handler).await
}

#[tokio::test(start_paused = true)]
async fn an_answer_means_to_a_run_what_it_means_to_the_layer() {
    let ran = answered(|_| StatusCode::CREATED).await;
    assert_eq!(
        (ran.outcome, &*ran.to_string()),
        (Outcome::Handled, "handled")
    );
    let ran = answered(|delivery| Unhandled::new(&delivery)).await;
    assert_eq!(ran.outcome, Outcome::Unhandled);
    let ran = answered(|_| AlreadyHandled::with_other_body()).await;
    assert_eq!(ran.outcome, Outcome::Replayed { same_body: false });
    let ran = answered(|_| DeadLetter::new("no such\ncustomer")).await;
    assert_eq!(ran.outcome, Outcome::DeadLettered);
    assert_eq!(ran.to_string(), "dead_lettered: no such customer");
    let ran = answered(|_| {
        let full = StoreError::new(StoreErrorKind::Full).caused_by("no space left");
        Err::<(), HandlerError>(full.into())
    })
    .await;
    assert_eq!(ran.outcome, Outcome::Failed(Failure::Status(503)));
    let said = "handler_status 503: the store is full and refuses new events: no space left";
    assert_eq!(ran.to_string(), said);

    async fn panics(_: Delivery) {
        panic!("made-up panic");
    }
    let ran = Run::new(&delivery()).handler(panics).await;
    assert_eq!(ran.to_string(), "panicked: made-up panic");
    let ran = Run::new(&of_body("{}".into())).handler(async |_: Event| ());
    let mismatch = Outcome::Failed(Failure::TypeMismatch);
    assert_eq!(ran.await.outcome, mismatch);
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_at_its_limit_or_when_it_is_aborted_and_says_how_long_it_took() {
    let second = Duration::from_secs(1);
    let run = || Run::new(&delivery());
    let sleeps = async move |_: Delivery| tokio::time::sleep(second).await;
    let ran = run().limit(2 * second).handler(sleeps).await;
    assert_eq!((ran.outcome, ran.elapsed), (Outcome::Handled, second));
    let ran = run().limit(second / 2).handler(sleeps).await;
    let limited = Outcome::Failed(Failure::RunLimit);
    assert_eq!((ran.outcome, ran.elapsed), (limited, second / 2));
    let aborted = run().limit(2 * second).abort_on(ready(()));
    let ran = aborted
        .handler(async |_: Delivery| pending::<()>().await)
        .await;
    let drained = Outcome::Failed(Failure::Drained);
    assert_eq!((ran.outcome, ran.elapsed), (drained, Duration::ZERO));
    let endless = run().limit(Duration::MAX).handler(sleeps).await;
    assert_eq!(endless.outcome, Outcome::Handled);
}

#[tokio::test]
async fn a_route_gets_a_body_of_any_size_with_its_delivery() {
    let size = 3 << 20;
    let body = event("evt_1").replace("Orders", &"x".repeat(size));
    let route = Router::new().route(
        "/",
        post(async move |delivery: Delivery, body: Bytes| {
            assert_eq!((delivery.event_id(), delivery.body()), ("evt_1", &body));
            assert!(body.len() > size);
            StatusCode::NO_CONTENT
        }),
    );
    let ran = Run::new(&of_body(body)).service(route).await;
    assert_eq!(ran.outcome, Outcome::Handled, "{ran}");
}

#[tokio::test]
async fn a_handler_function_is_a_service_for_the_layer() {
    let service = handler_service(async |event: Event| assert_eq!(event.id, "evt_1"));
    let receiver = receiver().clock(manual()).build().unwrap();
    let guarded = receiver.layer().layer(service);
    let request = Sent::at(NOW, event("evt_1")).request();
    let answer = tower::ServiceExt::oneshot(guarded, request).await.unwrap();
    assert_eq!(answer.status(), 200);
}
