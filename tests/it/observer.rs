//! The observers that a program sets: what they are told of each request, in which order, and that
//! they harm nothing.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use hookgate::{
    Outcome, Receiver, Secret,
    clock::{Clock, UnixSeconds},
    dedupe::Attempt,
    layer::{Answer, ObservedRequest, RequestObserver},
    sink::Accepted,
};
use http::Request;
use http::request::Parts;
use http_body::Frame;
use http_body_util::StreamBody;
use tower::ServiceExt;

use crate::faulty::FixedSink;
use crate::harness::*;

/// Writes down what it is told. Does not observe a request of the method GET.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

struct Noting(Notes);

impl Notes {
    fn note(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl RequestObserver for Notes {
    fn begin(&self, head: &Parts, clock: &dyn Clock) -> Option<Box<dyn ObservedRequest>> {
        if head.method == "GET" {
            return None;
        }
        self.note(format!("{} at {}", head.uri, clock.now().as_i64()));
        Some(Box::new(Noting(self.clone())))
    }
}

impl ObservedRequest for Noting {
    fn age_checked(&mut self, now: UnixSeconds) {
        self.0.note(format!("age at {}", now.as_i64()));
    }

    fn body_read(&mut self, body: &Bytes) {
        self.0.note(format!("body of {}", body.len()));
    }

    fn body_broke_off(&mut self, bytes: usize) {
        self.0.note(format!("broke off after {bytes}"));
    }

    fn answered(self: Box<Self>, answer: &Answer, attempt: Option<Attempt>) {
        let (status, outcome) = (answer.status, answer.outcome.name());
        let attempt = attempt.map(|attempt| attempt.number);
        self.0.note(format!("{status} {outcome} {attempt:?}"));
    }

    fn hung_up(self: Box<Self>, after: Duration) {
        self.0.note(format!("hung up after {after:?}"));
    }
}

/// Panics in each method.
struct Panics;

impl RequestObserver for Panics {
    fn begin(&self, head: &Parts, _: &dyn Clock) -> Option<Box<dyn ObservedRequest>> {
        assert!(head.uri != "/begin", "made up");
        Some(Box::new(Self))
    }
}

impl ObservedRequest for Panics {
    fn age_checked(&mut self, _: UnixSeconds) {
        panic!("made up");
    }

    fn body_read(&mut self, _: &Bytes) {
        panic!("made up");
    }

    fn body_broke_off(&mut self, _: usize) {
        panic!("made up");
    }

    fn answered(self: Box<Self>, _: &Answer, _: Option<Attempt>) {
        panic!("made up");
    }

    fn hung_up(self: Box<Self>, _: Duration) {
        panic!("made up");
    }
}

fn observed() -> (Harness, Notes) {
    let notes = Notes::default();
    let observer = notes.clone();
    let harness = Harness::new(|builder, _| builder.observer(observer), |_, _| ok_after(2));
    (harness, notes)
}

/// The status of the layer's answer, over a service that has no routes.
async fn through_the_layer(harness: &Harness, request: Request<Body>) -> u16 {
    let service =
        tower::service_fn(async |_| Ok::<_, Infallible>(http::Response::new(Body::empty())));
    let guarded = tower::Layer::layer(&harness.receiver.layer(), service);
    guarded.oneshot(request).await.unwrap().status().as_u16()
}

/// Gives these bytes, and then an error.
fn broken_body(first: &str) -> Body {
    let frame: Result<_, std::io::Error> =
        Ok(Frame::data(Bytes::copy_from_slice(first.as_bytes())));
    let frames = [frame, Err(std::io::Error::other("reset"))];
    Body::new(StreamBody::new(Frames(frames.into())))
}

struct Frames(std::collections::VecDeque<Result<Frame<Bytes>, std::io::Error>>);

impl futures_core::Stream for Frames {
    type Item = Result<Frame<Bytes>, std::io::Error>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.pop_front())
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_is_told_each_step_in_order() {
    let (harness, notes) = observed();
    let sent = Sent::event("evt_1");
    let body = format!("body of {}", sent.body.len());
    assert_eq!(harness.send(&sent).await.status(), OK);
    let (begun, age) = ("/webhooks at 1763690000", "age at 1763690000");
    assert_eq!(notes.taken(), [begun, age, &body, "204 handled Some(1)"]);

    let forged = harness.send(&sent.clone().signed_by(FORGER)).await;
    assert_eq!(forged.status(), 401);
    let (begun, age) = ("/webhooks at 1763690002", "age at 1763690002");
    assert_eq!(notes.taken(), [begun, age, &body, "401 not_authentic None"]);

    let (parts, _) = sent.request(&harness.clock).into_parts();
    let broken = Request::from_parts(parts, broken_body(&sent.body[..100]));
    let answer = harness.ask(broken).await;
    assert_eq!(answer.status(), 400);
    let broke_off = "broke off after 100";
    let answer = "400 body_incomplete None";
    assert_eq!(notes.taken(), [begun, age, broke_off, answer]);

    // A head without a signature is refused before an age is known.
    let mut request = sent.request(&harness.clock);
    request.headers_mut().remove("x-service-signature");
    let answer = harness.ask(request).await;
    assert_eq!(answer.status(), 401);
    assert_eq!(notes.taken(), [begun, "401 not_authentic None"]);

    let hung_up = harness.begin(&Sent::event("evt_2")).await;
    pass(500).await;
    hung_up.abort();
    pass(0).await;
    assert_eq!(notes.taken(), [begun, age, &body, "hung up after 500ms"]);

    let (parts, _) = sent.request(&harness.clock).into_parts();
    let stalled = Request::from_parts(parts, stalled_body());
    let hung_up = tokio::spawn(harness.ask(stalled));
    pass(300).await;
    hung_up.abort();
    pass(0).await;
    assert_eq!(notes.taken(), [begun, age, "hung up after 300ms"]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_an_observer_does_not_follow_is_not_told() {
    let (harness, notes) = observed();
    let mut request = Sent::event("evt_1").request(&harness.clock);
    *request.method_mut() = http::Method::GET;
    assert_eq!(through_the_layer(&harness, request).await, 405);
    assert_eq!(notes.taken(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn further_observers_are_called_in_their_order_and_after_the_hooks() {
    let notes = Notes::default();
    let (hook, first, last) = (notes.clone(), Arc::new(notes.clone()), notes.clone());
    let harness = Harness::new(
        |builder, _| {
            let builder = builder.on_answer(move |_| hook.note("hook"));
            builder.observer(first).observer(Panics).observer(last)
        },
        |_, _| async { OK },
    );
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
    let told = notes.taken();
    assert_eq!(told.len(), 9, "{told:?}");
    for pair in [&told[..6], &told[7..]].concat().chunks(2) {
        assert_eq!(pair[0], pair[1], "{told:?}");
    }
    assert_eq!(told[6], "hook");
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_harms_nothing() {
    let harness = Harness::new(|builder, _| builder.observer(Panics), |_, _| ok_after(1));
    let sent = Sent::event("evt_1");
    // Its panic while another one unwinds would end the process.
    let hung_up = harness.begin(&sent).await;
    hung_up.abort();
    pass(2_000).await;
    assert_eq!(harness.send(&sent).await.status(), 200);
    let (parts, _) = sent.request(&harness.clock).into_parts();
    let broken = Request::from_parts(parts, broken_body("{"));
    let answer = harness.ask(broken).await;
    assert_eq!(answer.status(), 400);
    let mut request = Sent::event("evt_2").request(&harness.clock);
    *request.uri_mut() = "/begin".parse().unwrap();
    assert_eq!(through_the_layer(&harness, request).await, 200);
    let handled = Outcome::Handled;
    assert_eq!(harness.told.settled(), [handled, handled]);
}

#[tokio::test(start_paused = true)]
async fn an_acceptor_tells_its_observers_as_a_receiver_does() {
    let (notes, clock) = (Notes::default(), TokioClock::start());
    let acceptor = Receiver::builder()
        .secret(Secret::new(SECRET).unwrap())
        .clock(clock.clone())
        .observer(notes.clone())
        .accept_into(FixedSink(Ok(Accepted::New)))
        .unwrap();
    let sent = Sent::event("evt_1");
    let answer = acceptor.oneshot(sent.request(&clock)).await.unwrap();
    assert_eq!(answer.status(), 200);
    let body = format!("body of {}", sent.body.len());
    let (begun, age) = ("/webhooks at 1763690000", "age at 1763690000");
    assert_eq!(notes.taken(), [begun, age, &body, "200 accepted Some(1)"]);
}

#[tokio::test(start_paused = true)]
async fn under_two_layers_of_one_receiver_one_value_is_told_the_end() {
    let (harness, notes) = observed();
    let app = harness.app.clone().layer(harness.receiver.layer());
    let sent = Sent::event("evt_1");
    let answer = app.oneshot(sent.request(&harness.clock)).await.unwrap();
    assert_eq!(answer.status(), OK);
    let begun = "/webhooks at 1763690000";
    let (age, body) = ("age at 1763690000", format!("body of {}", sent.body.len()));
    let end = "204 handled Some(1)";
    assert_eq!(notes.taken(), [begun, age, &body, begun, end]);
}
