//! `Receiver::handle`: all steps as one call, with everything that the layer promises, for servers
//! without tower.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hookgate::{
    DeadLetter, Delivery, Event, EventData, HandlerError, Outcome, Properties,
    event::EventError,
    layer::{Answer, FromDelivery, Unhandled, VerifiedBody},
    outcome::Failure,
};
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::StreamBody;
use tokio::time::{Instant, sleep};
use tower::ServiceExt;
use tower_layer::Layer;

use crate::harness::{Harness, OK, Sent, in_turn};

/// The harness's own handler must never be called: these tests pass theirs to `handle`.
fn harness() -> Harness {
    Harness::of(in_turn(&[418]))
}

fn is_replay(answer: &Response<Bytes>) -> bool {
    answer.status() == 200 && answer.headers().get("idempotent-replayed").is_some()
}

#[tokio::test(start_paused = true)]
async fn whatever_a_handler_answers_decides_over_the_claim() {
    let harness = Harness::new(
        |builder, _| builder.on_dead_letter(async |_, _| Ok(())),
        in_turn(&[418]),
    );
    let receiver = &harness.receiver;
    let request = |id| Sent::event(id).request(&harness.clock);

    let status = async |_: Delivery| StatusCode::BAD_GATEWAY;
    let answer = receiver.handle(request("evt_1"), status).await;
    assert_eq!(answer.status(), 502);
    // Released, so the next one runs. It panics before it has a future, and the one after that
    // inside of it.
    let early = |_: Delivery| -> std::future::Ready<StatusCode> { panic!("at once") };
    assert_eq!(receiver.handle(request("evt_1"), early).await.status(), 500);
    let late = async |_: Delivery| -> StatusCode {
        sleep(Duration::from_millis(1)).await;
        panic!("later")
    };
    assert_eq!(receiver.handle(request("evt_1"), late).await.status(), 500);
    let reason = async |_: Delivery| Err::<StatusCode, _>(HandlerError::from("the ledger is shut"));
    let answer = receiver.handle(request("evt_1"), reason).await;
    assert_eq!((answer.status().as_u16(), answer.body().len()), (500, 0));
    let own = async |_: Delivery| Response::new(Bytes::from_static(b"thanks"));
    let answer = receiver.handle(request("evt_1"), own).await;
    assert_eq!(
        (answer.status().as_u16(), &**answer.body()),
        (200, &b"thanks"[..])
    );
    assert!(is_replay(&receiver.handle(request("evt_1"), own).await));
    let dead = async |_: Delivery| Err::<StatusCode, _>(DeadLetter::new("no such customer"));
    assert_eq!(receiver.handle(request("evt_2"), dead).await.status(), 200);
    let typed = async |event: Event| {
        assert!(matches!(event.data, EventData::RowDeleted(row) if row.row_id == "row_1"));
    };
    let answer = receiver.handle(request("evt_4"), typed).await;
    assert_eq!(answer.status(), 200);
    let told = answer.extensions().get::<Answer>().expect("an answer");
    assert_eq!(told.outcome, Outcome::Handled);
    let nobody = async |delivery: Delivery| Unhandled::new(&delivery);
    let answer = receiver.handle(request("evt_3"), nobody).await;
    assert_eq!(answer.status(), 204);

    let failed = harness.told.failed.lock().unwrap().clone();
    let told = failed.iter().filter_map(|failed| failed.reason.as_ref());
    let told: Vec<_> = told.map(ToString::to_string).collect();
    assert_eq!(told, ["at once", "later", "the ledger is shut"]);
    let failure = |failure| Outcome::Failed(failure);
    assert_eq!(
        harness.told.settled(),
        [
            failure(Failure::Status(502)),
            failure(Failure::Panicked),
            failure(Failure::Panicked),
            failure(Failure::Status(500)),
            Outcome::Handled,
            Outcome::DeadLettered,
            Outcome::Handled,
            Outcome::Unhandled,
        ]
    );
}

/// An argument that never fits.
struct TypeMismatch;

impl FromDelivery for TypeMismatch {
    fn from_delivery(delivery: &Delivery) -> Result<Self, EventError> {
        let json = r#"{"id":"evt_1","type":"row.deleted","data":7}"#;
        delivery.event::<Properties>()?;
        Err(hookgate_testing::event::<Properties>(json).unwrap_err())
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_is_422_with_the_reason_for_the_operator_alone() {
    let harness = harness();
    let request = || Sent::event("evt_1").request(&harness.clock);
    let mismatch = async |_: TypeMismatch| OK;
    let answer = harness.receiver.handle(request(), mismatch).await;
    assert_eq!(answer.status(), 422);
    let text = r#"{"error":{"code":"VALIDATION_ERROR","message":"the delivery is not an event that is handled here"}}"#;
    assert_eq!(answer.body(), text);
    // A part that does not fit and is asked for later gets the same answer.
    let part = async |delivery: Delivery| {
        let event = delivery.event::<Properties>()?;
        let EventData::RowDeleted(row) = event.data else {
            return Ok(OK);
        };
        assert_eq!(row.row_id, "row_1");
        TypeMismatch::from_delivery(&delivery).map(|_| OK)
    };
    let answer = harness.receiver.handle(request(), part).await;
    assert_eq!(
        (answer.status().as_u16(), &**answer.body()),
        (422, text.as_bytes())
    );
    let mismatch = Outcome::Failed(Failure::TypeMismatch);
    assert_eq!(harness.told.settled(), [mismatch; 2]);
    assert!(harness.told.failed.lock().unwrap()[0].reason.is_some());
}

/// A body that counts its polls, and that must not leave its thread.
struct Local {
    asked: Rc<AtomicUsize>,
}

impl Body for Local {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Poll::Pending
    }
}

#[tokio::test(start_paused = true)]
async fn the_head_is_refused_before_the_body_is_asked_for_and_a_slow_body_in_time() {
    let harness = harness();
    let asked = Rc::new(AtomicUsize::new(0));
    let local = || Local {
        asked: Rc::clone(&asked),
    };
    let never = async |_: Delivery| OK;
    let get = Request::get("/webhooks").body(local()).unwrap();
    assert_eq!(harness.receiver.handle(get, never).await.status(), 405);
    let bare = Request::post("/webhooks").body(local()).unwrap();
    assert_eq!(harness.receiver.handle(bare, never).await.status(), 401);
    let (parts, _) = Sent::event("evt_1").request(&harness.clock).into_parts();
    let mut long = Request::from_parts(parts.clone(), local());
    let length = "1048577".parse().unwrap();
    long.headers_mut().insert("content-length", length);
    let leave = "100-continue".parse().unwrap();
    long.headers_mut().insert("expect", leave);
    assert_eq!(harness.receiver.handle(long, never).await.status(), 413);
    assert_eq!(asked.load(Ordering::SeqCst), 0);

    let began = Instant::now();
    let slow = Request::from_parts(parts, local());
    assert_eq!(harness.receiver.handle(slow, never).await.status(), 408);
    assert_eq!(began.elapsed().as_secs(), 2);
    assert!(asked.load(Ordering::SeqCst) > 0);
}

/// As the payload of a server that keeps each connection on its own thread.
struct LocalChunks(Rc<Vec<Bytes>>, usize);

impl futures_core::Stream for LocalChunks {
    type Item = Result<Frame<Bytes>, std::io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let chunk = self.0.get(self.1).cloned();
        self.1 += 1;
        Poll::Ready(chunk.map(|chunk| Ok(Frame::data(chunk))))
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stays_on_its_thread_is_read_in_its_chunks() {
    let harness = harness();
    let sent = Sent::event("evt_1");
    let (parts, _) = sent.request(&harness.clock).into_parts();
    let chunks = sent.body.as_bytes().chunks(7).map(Bytes::copy_from_slice);
    let body = StreamBody::new(LocalChunks(Rc::new(chunks.collect()), 0));
    let exact = sent.body.clone();
    let handler = move |delivery: Delivery| {
        assert_eq!(delivery.body(), exact.as_bytes());
        std::future::ready(OK)
    };
    let request = Request::from_parts(parts, body);
    assert_eq!(harness.receiver.handle(request, handler).await.status(), OK);
}

/// It would wait for its own claim otherwise.
#[tokio::test(start_paused = true)]
async fn inside_a_layer_of_the_same_receiver_it_only_calls() {
    let harness = harness();
    let receiver = harness.receiver.clone();
    let inner = tower::service_fn(move |request: Request<VerifiedBody>| {
        let answer = receiver.handle(request, async |_: Delivery| OK);
        async { Ok::<_, std::convert::Infallible>(answer.await) }
    });
    let request = Sent::event("evt_1").request(&harness.clock);
    let guarded = harness.receiver.layer().layer(inner);
    assert_eq!(guarded.oneshot(request).await.unwrap().status(), OK);
    assert_eq!(harness.told.settled(), [Outcome::Handled]);
}
