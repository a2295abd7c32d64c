//! The effect of the handler's answer on an entry, the request that the service gets, and the hooks
//! that are called.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use hookgate::{
    DeadLetter, Event, HandlerError, Outcome,
    dedupe::{StoreError, StoreErrorKind},
    event::EventError,
    layer::{AlreadyHandled, IntoAnswer, Unhandled, VerifiedBody},
    outcome::Failure,
};
use http::{Request, Response};
use http_body::Body as _;
use tower_service::Service;

use super::*;
use crate::Disposition;

/// Returns the report and the entry after one run whose handler gives this answer.
async fn after<A: IntoAnswer + 'static>(
    answer: impl Fn(Delivery) -> A + Clone + Send + 'static,
) -> (AttemptReport, Listed) {
    let bench = Bench::with(&["evt_1"]).await;
    let workers = bench.workers();
    let running = workers
        .start_handler(move |delivery: Delivery| ready(answer(delivery).into_answer()))
        .unwrap();
    sleep(millis(10)).await;
    drop(running);
    let attempt = bench.attempts().remove(0);
    let failed = bench.reports.failed.lock().unwrap().len();
    assert_eq!(
        failed,
        usize::from(matches!(attempt.outcome, Outcome::Failed(_)))
    );
    let dead = bench.reports.dead.lock().unwrap().len();
    assert_eq!(dead, usize::from(attempt.disposition == Disposition::Dead));
    (attempt, bench.listed("evt_1").await)
}

// fault Q8: what a handler found done is run again, or makes a success of a failure
// fault Q16: an event that kills its process does so for ever
#[tokio::test(start_paused = true)]
async fn an_answer_means_to_an_entry_what_it_means_to_the_layer() {
    let retry = Disposition::Retry { after: secs(1) };

    let (attempt, listed) = after(|_| StatusCode::CREATED).await;
    assert_eq!(
        (attempt.outcome, attempt.disposition),
        (Outcome::Handled, Disposition::Done)
    );
    assert_eq!((listed.state, listed.last_error), (EntryState::Done, None));

    let (attempt, listed) = after(|delivery| Unhandled::new(&delivery)).await;
    assert_eq!(
        (attempt.outcome, attempt.disposition),
        (Outcome::Unhandled, Disposition::Done)
    );
    assert!(attempt.reason.unwrap().to_string().contains("row.deleted"));
    assert_eq!(listed.state, EntryState::Done);

    for already in [AlreadyHandled::new(), AlreadyHandled::with_other_body()] {
        let same_body = already.same_body();
        let (attempt, listed) = after(move |_| already).await;
        assert_eq!(
            (attempt.outcome, attempt.disposition),
            (Outcome::Replayed { same_body }, Disposition::Done)
        );
        assert_eq!((listed.state, listed.last_error), (EntryState::Done, None));
    }

    let (attempt, listed) = after(|_| DeadLetter::new("no such\ncustomer")).await;
    assert_eq!(
        (attempt.outcome, attempt.disposition),
        (Outcome::DeadLettered, Disposition::Dead)
    );
    assert_eq!((listed.state, listed.tries), (EntryState::Dead, 1));
    let error = listed.last_error.unwrap();
    assert_eq!(error, "dead_lettered: no such customer");
    let (attempt, _) = after(|_| DeadLetter::new("x\u{1b}\n".repeat(10_000))).await;
    let told = attempt.reason.unwrap().to_string();
    assert!(
        told.len() <= 512 && !told.contains(char::is_control),
        "{told}"
    );

    let (attempt, listed) = after(|_| mismatch()).await;
    assert_eq!(
        (attempt.outcome, attempt.disposition),
        (Outcome::Failed(Failure::TypeMismatch), retry)
    );
    assert!(
        listed
            .last_error
            .unwrap()
            .starts_with("type_mismatch: data.properties.Total does not fit")
    );

    let (attempt, listed) = after(|_| HandlerError::from("the database is down")).await;
    assert_eq!(attempt.outcome, Outcome::Failed(Failure::Status(500)));
    assert_eq!(
        (listed.state, attempt.disposition),
        (EntryState::Queued, retry)
    );
    let error = listed.last_error.unwrap();
    assert_eq!(error, "handler_status 500: the database is down");

    let (attempt, listed) = after(|_| {
        let full = std::io::Error::other("the disk is full");
        Err::<(), _>(HandlerError::from(
            StoreError::new(StoreErrorKind::Full).caused_by(full),
        ))
    })
    .await;
    assert_eq!(attempt.outcome, Outcome::Failed(Failure::Status(503)));
    let error = listed.last_error.unwrap();
    assert!(error.starts_with("handler_status 503: "), "{error}");
    assert!(error.ends_with(": the disk is full"), "{error}");

    let (attempt, _) = after(|_| StatusCode::FOUND).await;
    assert_eq!(attempt.outcome, Outcome::Failed(Failure::Status(302)));
    assert_eq!((attempt.tries, attempt.disposition), (1, retry));
}

fn mismatch() -> EventError {
    let body = br#"{"id":"evt_1","type":"row.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":
        {"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","properties":{"Total":"twelve"}}}"#;
    let mut entry = entry("evt_1");
    (entry.body, entry.event_type) = (body.as_slice().into(), "row.created".to_owned());
    let delivery = entry.into_delivery().unwrap();
    delivery.event::<BTreeMap<String, u32>>().unwrap_err()
}

/// A service that is ready at every second `poll_ready`, and counts the calls without a ready
/// `poll_ready` before them.
#[derive(Default)]
struct Careful {
    asked: usize,
    unasked: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<Request<VerifiedBody>>>>,
}

/// A clone is not ready until its own `poll_ready` says so.
impl Clone for Careful {
    fn clone(&self) -> Self {
        Self {
            asked: 0,
            unasked: Arc::clone(&self.unasked),
            seen: Arc::clone(&self.seen),
        }
    }
}

impl Service<Request<VerifiedBody>> for Careful {
    type Response = Response<()>;
    type Error = Infallible;
    type Future = Ready<Result<Response<()>, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.asked += 1;
        if self.asked < 2 {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<VerifiedBody>) -> Self::Future {
        self.unasked
            .fetch_add(usize::from(self.asked < 2), Ordering::SeqCst);
        self.seen.lock().unwrap().push(request);
        ready(Ok(Response::new(())))
    }
}

#[tokio::test(start_paused = true)]
async fn the_service_is_asked_first_and_gets_what_the_layer_would_pass_on() {
    let bench = Bench::with(&["evt_1", "evt_ä", "evt_3"]).await;
    let service = Careful::default();
    let running = bench.workers().start(service.clone()).unwrap();
    sleep(millis(10)).await;
    drop(running);
    assert_eq!(service.unasked.load(Ordering::SeqCst), 0);
    assert_eq!(bench.stats().await.done, 3);
    let seen = service.seen.lock().unwrap();
    let request = &seen[0];
    assert_eq!(
        (request.method(), request.uri().path()),
        (&http::Method::POST, "/")
    );
    let header = |name: &str| request.headers()[name].to_str().unwrap();
    assert_eq!(header("content-type"), "application/json");
    assert_eq!(header("x-service-timestamp"), "1763690000");
    assert_eq!(header("x-service-webhook-id"), "wh_1");
    assert_eq!(header("x-service-event-id"), "evt_1");
    assert_eq!(header("x-service-event-type"), "row.deleted");
    assert_eq!(header("traceparent"), TRACE);
    assert!(!seen[1].headers().contains_key("traceparent"));
    assert!(!request.headers().contains_key("x-service-signature"));
    let delivery = request.extensions().get::<Delivery>().unwrap();
    assert_eq!(delivery.traceparent(), Some(TRACE));
    assert_eq!(delivery.body(), &entry("evt_1").body);
    assert_eq!(
        request.body().size_hint().exact(),
        Some(delivery.body().len() as u64)
    );
    assert_eq!(delivery.verified().subscription_id(), Some("wh_1"));
    assert_eq!(delivery.verified().key_name(), "current");
    let event: Event = delivery.event().unwrap();
    assert_eq!(event.id.as_str(), "evt_1");
    assert_eq!(
        seen[1].headers()["x-service-event-id"].as_bytes(),
        "evt_ä".as_bytes()
    );
}

/// A service that panics or fails in `poll_ready`, or when it is called.
#[derive(Clone, Debug)]
struct Broken(&'static str);

impl Service<Request<VerifiedBody>> for Broken {
    type Response = Response<()>;
    type Error = ();
    type Future = Ready<Result<Response<()>, ()>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ()>> {
        match self.0 {
            "ready" => Poll::Ready(Err(())),
            "ready panics" => panic!("made-up panic"),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, _: Request<VerifiedBody>) -> Self::Future {
        assert_ne!(self.0, "call panics", "made-up panic");
        ready(Err(()))
    }
}

// fault F30: a handler panics, and the operator learns only that it did, unless the panic hook's output is kept
#[tokio::test(start_paused = true)]
async fn a_broken_service_is_a_failure_each_time() {
    for (broken, failure) in [
        ("ready", Failure::ServiceError),
        ("ready panics", Failure::Panicked),
        ("call", Failure::ServiceError),
        ("call panics", Failure::Panicked),
    ] {
        let bench = Bench::with(&["evt_1"]).await;
        let running = bench.workers().max_tries(2).start(Broken(broken)).unwrap();
        sleep(secs(2)).await;
        drop(running);
        let listed = bench.listed("evt_1").await;
        assert_eq!(
            (listed.state, listed.tries),
            (EntryState::Dead, 2),
            "{broken}"
        );
        let error = listed.last_error.unwrap();
        assert!(error.starts_with(failure.name()), "{broken}: {error}");
        // The operator reads the message of a panic, wherever it happened.
        let is_panic = failure == Failure::Panicked;
        assert_eq!(
            error.contains("made-up panic"),
            is_panic,
            "{broken}: {error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn hooks_that_panic_harm_nothing() {
    let bench = Bench::with(&["evt_1", "evt_2"]).await;
    let workers = Workers::new(&bench.inbox())
        .max_tries(1)
        .on_settled(|_| panic!("made-up panic"))
        .on_failed(|_| panic!("made-up panic"))
        .on_dead_letter(|_| panic!("made-up panic"))
        .on_lost_lease(|_| panic!("made-up panic"));
    let running = bench.start(
        workers,
        async |_, number| if number == 0 { BAD } else { OK },
    );
    sleep(secs(1)).await;
    let stats = bench.stats().await;
    assert_eq!((stats.done, stats.dead), (1, 1));
    assert_eq!(running.shutdown(secs(1)).await, 0);
}

// fault Q14: a dead letter that nobody is told of
#[tokio::test(start_paused = true)]
async fn what_is_not_an_entry_is_dead_lettered_without_its_content() {
    let bench = Bench::new();
    let mut broken = entry("evt_1");
    broken.timestamp = "yesterday, a secret".into();
    bench.accept(broken).await;
    bench.accept(entry("evt_2")).await;
    let running = bench.start(bench.workers(), async |_, _| OK);
    sleep(secs(1)).await;
    drop(running);
    assert_eq!(bench.state("evt_2").await, EntryState::Done);
    let listed = bench.listed("evt_1").await;
    assert_eq!(listed.state, EntryState::Dead);
    let error = listed.last_error.unwrap();
    assert!(!error.contains("secret"));
    // It is reported as every other dead letter is.
    let dead = bench.reports.dead.lock().unwrap();
    assert_eq!(dead.len(), 1);
    assert_eq!(
        (dead[0].id, dead[0].event_id.as_str()),
        (listed.id, "evt_1")
    );
    assert_eq!((dead[0].tries, &dead[0].error), (1, &error));
    assert!(dead[0].delivery.is_none());
}
