//! The deliveries that the layer gives to a recorder.

use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use bytes::Bytes;
use hookgate::layer::RequestObserver;
use hookgate::{
    Delivery, HandlerError, MemoryStore, Receiver, Secret, Verifier,
    clock::{Clock, Monotonic, UnixSeconds},
};
use hookgate_record::{LoggedDelivery, record_with};
use hookgate_testing::Signer;
use hookgate_testing::log::LoggedDeliveryExt;
use http::{Request, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::time::sleep;
use tower::ServiceExt;

use crate::harness::{Harness, SECRET, Sent, pass, stalled_body};

const OK: StatusCode = StatusCode::NO_CONTENT;

/// Keeps the deliveries that it gets.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<LoggedDelivery>>>);

impl Collector {
    fn all(&self) -> Vec<LoggedDelivery> {
        self.0.lock().unwrap().clone()
    }

    fn observer(&self) -> impl RequestObserver + use<> {
        let all = Arc::clone(&self.0);
        record_with(move |delivery| all.lock().unwrap().push(delivery))
    }

    fn only(&self) -> LoggedDelivery {
        let mut all = std::mem::take(&mut *self.0.lock().unwrap());
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    /// Status and outcome of the one delivery.
    fn answer(&self) -> (u16, String) {
        let answer = self.only().answer.expect("an answer");
        (answer.status, answer.outcome)
    }
}

fn recording<F, A>(
    script: impl Fn(Delivery, usize) -> F + Clone + Send + Sync + 'static,
) -> (Harness, Collector)
where
    F: Future<Output = A> + Send + 'static,
    A: axum::response::IntoResponse,
{
    let told = Collector::default();
    let observer = told.observer();
    let harness = Harness::new(|builder, _| builder.observer(observer), script);
    (harness, told)
}

async fn send(harness: &Harness, request: Request<Body>) -> StatusCode {
    harness.app.clone().oneshot(request).await.unwrap().status()
}

#[tokio::test(start_paused = true)]
async fn an_authentic_delivery_is_recorded_as_it_came_with_its_answer() {
    let (harness, told) = recording(|_, _| async {
        sleep(Duration::from_millis(120)).await;
        OK
    });
    let sent = Sent::event("evt_1");
    let mut request = sent.request(&harness.clock);
    *request.uri_mut() = "/webhooks?from=test".parse().unwrap();
    let headers = request.headers_mut();
    headers.append("x-forwarded-for", "10.0.0.1".parse().unwrap());
    let odd = http::HeaderValue::from_bytes(b"caf\xe9").unwrap();
    headers.append("x-odd", odd);
    let came: Vec<_> = headers
        .iter()
        .map(|(name, value)| (name.to_string(), Bytes::copy_from_slice(value.as_bytes())))
        .collect();
    assert_eq!(send(&harness, request).await, OK);
    let delivery = told.only();
    assert_eq!(
        (&*delivery.method, &*delivery.target),
        ("POST", "/webhooks?from=test")
    );
    assert_eq!(delivery.headers, came);
    assert_eq!(delivery.body.as_deref(), Some(sent.body.as_bytes()));
    assert_eq!((delivery.cut_off_at, delivery.hung_up_after), (None, None));
    let answer = delivery.answer.as_ref().unwrap();
    assert_eq!((answer.status, &*answer.outcome), (204, "handled"));
    assert_eq!((&answer.reason, answer.attempt), (&None, Some(1)));
    assert_eq!(answer.elapsed, Duration::from_millis(120));
    assert_eq!(answer.scope.as_deref(), Some("default"));
    assert!(answer.key.is_some());
    // The logged delivery verifies at the logged time.
    let verifier = Verifier::new(Secret::new(SECRET).unwrap());
    let head = delivery.head().unwrap();
    let verified = verifier.verify(&head, &sent.body, delivery.received_at);
    assert!(verified.is_ok());
}

#[tokio::test(start_paused = true)]
async fn each_way_to_be_answered_is_recorded_once() {
    let (harness, told) = recording(|_, run| async move {
        let shut = || LedgerShut(std::io::Error::other("no disk"));
        match run {
            1 => Ok(OK),
            2 => Err(HandlerError::from(shut())),
            3 => panic!("in the handler"),
            _ => {
                sleep(Duration::from_secs(7)).await;
                Ok(OK)
            }
        }
    });
    let request = |id: &str| Sent::event(id).request(&harness.clock);
    let shut = Some("the ledger is shut: no disk");
    for (id, status, outcome, reason) in [
        ("evt_1", 204, "handled", None),
        ("evt_1", 200, "replayed", None),
        ("evt_2", 500, "handler_status", shut),
        ("evt_2", 500, "panicked", Some("in the handler")),
    ] {
        assert_eq!(send(&harness, request(id)).await, status);
        let answer = told.only().answer.unwrap();
        assert_eq!((answer.status, &*answer.outcome), (status, outcome));
        if reason.is_some() {
            assert_eq!(answer.reason.as_deref(), reason);
        }
    }
    // A delivery whose run goes on is recorded with its answer, and not again at the run's end.
    assert_eq!(send(&harness, request("evt_2")).await, 503);
    assert_eq!(told.answer(), (503, "runs_on".into()));
    pass(4_000).await;
    assert_eq!(harness.told.settled().len(), 4);
    assert!(told.all().is_empty());
    harness.receiver.drain(Duration::ZERO).await;
    assert_eq!(send(&harness, request("evt_3")).await, 503);
    let delivery = told.only();
    assert_eq!(delivery.answer.unwrap().outcome, "shutting_down");
    assert!(delivery.body.is_some());
}

#[tokio::test(start_paused = true)]
async fn what_is_not_authentic_is_recorded_with_the_bytes_that_did_not_verify() {
    let (harness, told) = recording(|_, _| async { OK });
    let changed = Sent::event("evt_1");
    let (mut parts, _) = changed.request(&harness.clock).into_parts();
    let body = changed.body.replace("row_1", "row_2");
    // In chunks, which the receiver joins.
    let chunks = body.as_bytes().chunks(7).map(Bytes::copy_from_slice);
    let chunks: Vec<_> = chunks.collect();
    let chunks = StreamBody::new(Chunks(chunks.into_iter()));
    for (name, value) in [
        ("authorization", "Bearer made_up_token"),
        ("x-service-webhook-id", "wh_orders"),
    ] {
        parts.headers.insert(name, value.parse().unwrap());
    }
    let request = Request::from_parts(parts, Body::new(chunks));
    assert_eq!(send(&harness, request).await, 401);
    let delivery = told.only();
    assert_eq!(delivery.body.as_deref(), Some(body.as_bytes()));
    let answer = delivery.answer.as_ref().unwrap();
    assert_eq!((answer.status, &*answer.outcome), (401, "not_authentic"));
    let reason = answer.reason.as_deref().unwrap();
    assert!(
        reason.contains("signature is not that of these bytes"),
        "{reason}"
    );
    assert_eq!((&answer.key, &answer.scope), (&None, &None));
    assert_eq!(answer.attempt, None);
    assert_eq!(answer.claimed_subscription.as_deref(), Some("wh_orders"));
    let line = delivery.to_line();
    assert!(!line.contains("made_up_token"), "{line}");
}

/// An error with another one below.
#[derive(Debug, thiserror::Error)]
#[error("the ledger is shut")]
struct LedgerShut(#[source] std::io::Error);

struct Chunks(std::vec::IntoIter<Bytes>);

impl futures_core::Stream for Chunks {
    type Item = Result<Frame<Bytes>, std::io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next().map(|chunk| Ok(Frame::data(chunk))))
    }
}

/// Gives some bytes, and then an error or nothing more.
struct BreaksOff {
    first: Option<Bytes>,
    with_an_error: bool,
}

impl futures_core::Stream for BreaksOff {
    type Item = Result<Frame<Bytes>, std::io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(Frame::data(first)))),
            None if self.with_an_error => Poll::Ready(Some(Err(std::io::Error::other("reset")))),
            None => Poll::Pending,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_was_not_read_or_not_to_its_end_is_none() {
    let (harness, told) = recording(|_, _| async { OK });
    let get = Request::get("/webhooks").body(stalled_body()).unwrap();
    // A method router would refuse it before the layer.
    let guarded = tower::ServiceBuilder::new()
        .layer(harness.receiver.layer())
        .service(tower::service_fn(async |_| {
            Ok::<_, std::convert::Infallible>(http::Response::new(Body::empty()))
        }));
    assert_eq!(guarded.oneshot(get).await.unwrap().status(), 405);
    let delivery = told.only();
    assert_eq!(
        (&*delivery.method, delivery.body, delivery.cut_off_at),
        ("GET", None, None)
    );

    let mut stale = Sent::event("evt_1");
    stale.age = 30 * 24 * 3_600;
    assert_eq!(send(&harness, stale.request(&harness.clock)).await, 401);
    let delivery = told.only();
    assert_eq!((delivery.body, delivery.cut_off_at), (None, None));

    for (with_an_error, first, status, outcome, cut_off_at) in [
        (true, 100, 400, "body_incomplete", 100),
        (false, 100, 408, "body_too_slow", 100),
        (false, (1 << 20) + 1, 413, "body_too_large", 0),
    ] {
        let (parts, _) = Sent::event("evt_1").request(&harness.clock).into_parts();
        let body = StreamBody::new(BreaksOff {
            first: Some(vec![b'x'; first].into()),
            with_an_error,
        });
        let request = Request::from_parts(parts, Body::new(body));
        assert_eq!(send(&harness, request).await, status);
        let delivery = told.only();
        let cut_off = (delivery.body, delivery.cut_off_at);
        assert_eq!(cut_off, (None, Some(cut_off_at)));
        assert_eq!(delivery.answer.unwrap().outcome, outcome);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hang_up_is_recorded_without_an_answer() {
    let (harness, told) = recording(|_, _| async {
        sleep(Duration::from_secs(2)).await;
        OK
    });
    let sent = Sent::event("evt_1");
    let task = harness.begin(&sent).await;
    pass(1_500).await;
    assert!(told.all().is_empty());
    task.abort();
    pass(0).await;
    let delivery = told.only();
    assert_eq!(delivery.body.as_deref(), Some(sent.body.as_bytes()));
    assert_eq!(delivery.answer, None);
    assert_eq!(delivery.hung_up_after, Some(Duration::from_millis(1_500)));
    let read = LoggedDelivery::from_line(delivery.to_line()).unwrap();
    assert_eq!(read, delivery);
    // The run continued, and its end is not the end of an answer.
    pass(1_000).await;
    assert_eq!(harness.told.settled().len(), 1);
    assert!(told.all().is_empty());

    // Before its body was there, too.
    let (parts, _) = Sent::event("evt_2").request(&harness.clock).into_parts();
    let request = Request::from_parts(parts, stalled_body());
    let task = tokio::spawn(harness.app.clone().oneshot(request));
    pass(500).await;
    task.abort();
    pass(0).await;
    let delivery = told.only();
    assert_eq!((delivery.body, delivery.answer), (None, None));
    assert_eq!(delivery.hung_up_after, Some(Duration::from_millis(500)));
}

/// A second later at each reading.
#[derive(Debug, Default)]
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> UnixSeconds {
        UnixSeconds::new(1_763_690_000 + self.0.fetch_add(1, Ordering::SeqCst))
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::default()
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_is_the_very_reading_that_the_age_was_judged_by() {
    let secret = Secret::new(SECRET).unwrap();
    let mut stale = 0;
    // At one of these ages each reading of the clock differs, except the one that judges.
    for age_at_first in 290..306 {
        let told = Collector::default();
        let receiver = Receiver::builder()
            .secret(secret.clone())
            .without_deduplication()
            .clock(Arc::new(Ticking::default()))
            .observer(told.observer())
            .build()
            .unwrap();
        let at = UnixSeconds::new(1_763_690_000 - age_at_first);
        let request = Signer::new(secret.clone()).at(at).request("/", "{}");
        let request = request.map(http_body_util::Full::new);
        let _ = receiver.handle(request, async |_: Delivery| OK).await;
        let delivery = told.only();
        let age = delivery.received_at.since(at).unwrap().as_secs();
        let reason = delivery.answer.unwrap().reason.unwrap();
        assert_eq!(reason.contains("stale"), age > 300, "{age}: {reason}");
        stale += usize::from(age > 300);
    }
    assert!((1..16).contains(&stale), "{stale}");
}

#[tokio::test(start_paused = true)]
async fn a_recorder_that_panics_changes_no_answer() {
    let receiver = |panics: bool| {
        let recorder = move |_: LoggedDelivery| assert!(!panics, "the recorder");
        Receiver::builder()
            .secret(Secret::new(SECRET).unwrap())
            .store(MemoryStore::default())
            .observer(record_with(recorder))
            .build()
            .unwrap()
    };
    for panics in [false, true] {
        let handler = async |_: Delivery| {
            sleep(Duration::from_millis(5)).await;
            OK
        };
        let route = post(handler).layer(receiver(panics).layer());
        let app = Router::new().route("/", route);
        let request = || {
            let body = r#"{"id":"evt_1","type":"page.created"}"#;
            Signer::new(Secret::new(SECRET).unwrap())
                .request("/", body)
                .map(Body::from)
        };
        // Its panic while another one unwinds would end the process.
        let hung_up = tokio::spawn(app.clone().oneshot(request()));
        pass(1).await;
        hung_up.abort();
        pass(10).await;
        let answer = app.clone().oneshot(request()).await.unwrap();
        assert_eq!(answer.status(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn under_two_layers_of_one_receiver_a_delivery_is_recorded_once() {
    let (harness, told) = recording(|_, _| async { OK });
    let app = harness.app.clone().layer(harness.receiver.layer());
    let answer = app
        .oneshot(Sent::event("evt_1").request(&harness.clock))
        .await;
    assert_eq!(answer.unwrap().status(), OK);
    assert_eq!(told.answer(), (204, "handled".into()));
}
