//! What the layer, `Receiver::handle` and the acceptor promise alike: each test runs once behind
//! each of them.

use std::collections::HashSet;
use std::fmt;
use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use hookgate::{
    Delivery, MemoryStore, Outcome, Receiver, ReceiverBuilder, Secret,
    dedupe::{EventKey, StoreError, StoreErrorKind, StoreFuture},
    layer::VerifiedBody,
    outcome::{Failure, RefusalKind},
    sink::{Accepted, Acceptor, Sink},
};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use tokio::time::{Instant, sleep};
use tower::ServiceExt;
use tower_layer::Layer;

use crate::harness::{HookReports, SECRET, Sent, TokioClock, late_body, pass, stalled_body};
use crate::support::Received;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryPoint {
    Layer,
    Handle,
    Acceptor,
}

const ALL: [EntryPoint; 3] = [EntryPoint::Layer, EntryPoint::Handle, EntryPoint::Acceptor];

/// What a call of the handler, or of the sink, ends with.
#[derive(Clone, Copy)]
enum Work {
    Done,
    Fails,
}

type Working = Pin<Box<dyn Future<Output = Work> + Send>>;

/// The work behind the entry point: by the number of the call.
#[derive(Clone)]
struct Script {
    work: fn(usize) -> Working,
    calls: Arc<AtomicUsize>,
    done: Arc<Mutex<HashSet<EventKey>>>,
}

impl Script {
    /// Returns whether the event was done before, unless the work fails.
    async fn run(self, key: EventKey) -> Result<bool, ()> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        match (self.work)(call).await {
            Work::Done => Ok(!self.done.lock().unwrap().insert(key)),
            Work::Fails => Err(()),
        }
    }

    async fn handle(self, delivery: Delivery) -> StatusCode {
        match self.run(*delivery.key()).await {
            Ok(false) => StatusCode::OK,
            Ok(true) => panic!("an event was handled twice"),
            Err(()) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl Sink for Script {
    fn accept<'a>(&'a self, delivery: &'a Delivery, _: Duration) -> StoreFuture<'a, Accepted> {
        let run = self.clone().run(*delivery.key());
        StoreFuture::boxed(async {
            match run.await {
                Ok(false) => Ok(Accepted::New),
                Ok(true) => Ok(Accepted::Duplicate { same_body: true }),
                Err(()) => Err(StoreError::new(StoreErrorKind::Unavailable)),
            }
        })
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Script")
    }
}

#[derive(Clone)]
enum Guard {
    Receiver(Receiver),
    Acceptor(Acceptor),
}

/// One entry point with its work, in tokio's time.
#[derive(Clone)]
struct Rig {
    entry: EntryPoint,
    guard: Guard,
    /// That of a receiver.
    store: MemoryStore,
    script: Script,
    clock: TokioClock,
    told: HookReports,
}

fn is_not_now(answer: &Received) -> bool {
    answer.status == 503 && answer.headers.contains_key("retry-after")
}

impl Rig {
    fn new(
        entry: EntryPoint,
        settings: fn(ReceiverBuilder) -> ReceiverBuilder,
        work: fn(usize) -> Working,
    ) -> Self {
        let (clock, told) = (TokioClock::start(), HookReports::default());
        let script = Script {
            work,
            calls: Arc::default(),
            done: Arc::default(),
        };
        let builder = Receiver::builder()
            .secret(Secret::new(SECRET).unwrap())
            .clock(clock.clone());
        let builder = settings(told.clone().listen(builder));
        let store = MemoryStore::default().with_clock(clock.clone());
        let guard = if entry == EntryPoint::Acceptor {
            Guard::Acceptor(builder.accept_into(script.clone()).unwrap())
        } else {
            Guard::Receiver(builder.store(store.clone()).build().unwrap())
        };
        Self {
            entry,
            guard,
            store,
            script,
            clock,
            told,
        }
    }

    fn each(
        settings: fn(ReceiverBuilder) -> ReceiverBuilder,
        work: fn(usize) -> Working,
    ) -> impl Iterator<Item = Self> {
        ALL.into_iter()
            .map(move |entry| Self::new(entry, settings, work))
    }

    async fn ask(self, request: Request<Body>) -> Received {
        let (entry, script) = (self.entry, self.script);
        match self.guard {
            Guard::Receiver(receiver) if entry == EntryPoint::Layer => {
                let inner = tower::service_fn(move |request: Request<VerifiedBody>| {
                    let delivery = request.extensions().get::<Delivery>().unwrap().clone();
                    let handled = script.clone().handle(delivery);
                    async move {
                        let mut response = Response::new(Body::empty());
                        *response.status_mut() = handled.await;
                        Ok::<_, std::convert::Infallible>(response)
                    }
                });
                let answer = receiver.layer().layer(inner).oneshot(request).await;
                Received::of(answer.unwrap()).await
            }
            Guard::Receiver(receiver) => {
                let handler = move |delivery: Delivery| script.handle(delivery);
                let answer = receiver.handle(request, handler).await;
                Received::of(answer.map(Full::new)).await
            }
            Guard::Acceptor(acceptor) => {
                Received::of(acceptor.oneshot(request).await.unwrap()).await
            }
        }
    }

    fn send(&self, id: &str) -> impl Future<Output = Received> + Send + use<> {
        let request = Sent::event(id).request(&self.clock);
        self.clone().ask(request)
    }

    /// Sends in a task of its own, and lets it begin.
    async fn begin(&self, id: &str) -> tokio::task::JoinHandle<Received> {
        let task = tokio::spawn(self.send(id));
        pass(0).await;
        task
    }

    fn calls(&self) -> usize {
        self.script.calls.load(Ordering::SeqCst)
    }

    fn done(&self) -> usize {
        self.script.done.lock().unwrap().len()
    }

    fn runs(&self) -> usize {
        match &self.guard {
            Guard::Receiver(receiver) => receiver.runs(),
            Guard::Acceptor(acceptor) => acceptor.runs(),
        }
    }

    async fn drain(self, limit: Duration) -> usize {
        match &self.guard {
            Guard::Receiver(receiver) => receiver.drain(limit).await,
            Guard::Acceptor(acceptor) => acceptor.drain(limit).await,
        }
    }

    /// The outcome of a success.
    fn success(&self) -> Outcome {
        match self.entry {
            EntryPoint::Acceptor => Outcome::Accepted,
            _ => Outcome::Handled,
        }
    }
}

fn unchanged(builder: ReceiverBuilder) -> ReceiverBuilder {
    builder
}

fn done(_: usize) -> Working {
    Box::pin(async { Work::Done })
}

fn done_after_7_s(_: usize) -> Working {
    Box::pin(async {
        sleep(Duration::from_secs(7)).await;
        Work::Done
    })
}

/// What is sent, the status of its answer, and the request.
type Case<'a> = (&'a str, u16, &'a dyn Fn() -> Request<Body>);

#[tokio::test(start_paused = true)]
async fn what_is_refused_never_reaches_the_work_and_is_answered_alike() {
    let rigs: Vec<_> = Rig::each(unchanged, done).collect();
    let sent = Sent::event("evt_1");
    let edited = |edit: &dyn Fn(&mut Request<Body>)| {
        let mut request = sent.request(&rigs[0].clock);
        edit(&mut request);
        request
    };
    let header = |name: &'static str, value: &'static str| {
        edited(&|request| {
            let value = HeaderValue::from_static(value);
            request.headers_mut().insert(name, value);
        })
    };
    let other = |change: fn(&mut Sent)| {
        let mut sent = sent.clone();
        change(&mut sent);
        sent.request(&rigs[0].clock)
    };
    let cases: [Case; 12] = [
        ("another method", 405, &|| {
            edited(&|request| *request.method_mut() = Method::PUT)
        }),
        ("a compressed body", 415, &|| {
            header("content-encoding", "gzip")
        }),
        ("another type of body", 415, &|| {
            header("content-type", "text/plain")
        }),
        ("a large body is announced", 413, &|| {
            header("content-length", "1048577")
        }),
        ("a large body comes", 413, &|| {
            other(|sent| sent.body = "x".repeat((1 << 20) + 1))
        }),
        ("no signature", 401, &|| {
            edited(&|request| drop(request.headers_mut().remove("x-service-signature")))
        }),
        ("another secret", 401, &|| {
            other(|sent| sent.secret = "whsec_made_up_by_a_forger")
        }),
        ("another body", 401, &|| {
            sent.request(&rigs[0].clock).map(|_| Body::from("{}"))
        }),
        ("too old", 401, &|| other(|sent| sent.age = 301)),
        ("a body that stalls", 408, &|| {
            sent.request(&rigs[0].clock).map(|_| stalled_body())
        }),
        ("authentic, but no event", 400, &|| {
            other(|sent| sent.body = "[]".into())
        }),
        ("another id in the header", 400, &|| {
            header("x-service-event-id", "evt_2")
        }),
    ];
    for (what, status, request) in cases {
        let mut first: Option<(Bytes, Outcome)> = None;
        for rig in &rigs {
            let answer = rig.clone().ask(request()).await;
            assert_eq!(answer.status, status, "{what}, {:?}", rig.entry);
            assert!(answer.body.starts_with(br#"{"error":{"#), "{what}");
            let told = (answer.body, rig.told.last_answer());
            assert_eq!(first.get_or_insert_with(|| told.clone()), &told, "{what}");
        }
    }
    for rig in &rigs {
        assert_eq!(
            (rig.calls(), rig.told.settled_late()),
            (0, vec![]),
            "{:?}",
            rig.entry
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_success_is_done_and_its_copy_is_a_replay() {
    for rig in Rig::each(unchanged, done) {
        let answer = rig.send("evt_1").await;
        assert_eq!((answer.status, answer.is_replay()), (200, false));
        assert!(rig.send("evt_1").await.is_replay(), "{:?}", rig.entry);
        assert_eq!((rig.done(), rig.runs()), (1, 0));
        let answers = [rig.success(), Outcome::Replayed { same_body: true }];
        assert_eq!(rig.told.answers(), answers);
        assert_eq!(rig.told.settled_late()[0], (rig.success(), false));
    }
}

#[tokio::test(start_paused = true)]
async fn copies_at_one_moment_are_done_once_and_each_is_answered_2xx() {
    fn done_after_200_ms(_: usize) -> Working {
        Box::pin(async {
            sleep(Duration::from_millis(200)).await;
            Work::Done
        })
    }
    for rig in Rig::each(unchanged, done_after_200_ms) {
        let copies: Vec<_> = (0..5).map(|_| tokio::spawn(rig.send("evt_1"))).collect();
        let mut replays = 0;
        for copy in copies {
            let answer = copy.await.unwrap();
            assert_eq!(answer.status, 200, "{:?}", rig.entry);
            replays += usize::from(answer.is_replay());
        }
        assert_eq!((rig.done(), replays), (1, 4), "{:?}", rig.entry);
        // A sink is asked about each copy.
        let calls = if rig.entry == EntryPoint::Acceptor {
            5
        } else {
            1
        };
        assert_eq!(rig.calls(), calls, "{:?}", rig.entry);
    }
}

#[tokio::test(start_paused = true)]
async fn slow_work_is_answered_503_in_time_and_its_retry_finds_it_done() {
    for rig in Rig::each(unchanged, done_after_7_s) {
        let began = Instant::now();
        assert!(is_not_now(&rig.send("evt_1").await), "{:?}", rig.entry);
        assert_eq!(began.elapsed(), Duration::from_millis(4_500));
        assert_eq!(rig.told.last_answer(), Outcome::RunsOn);
        assert_eq!((rig.runs(), rig.done()), (1, 0));
        pass(3_000).await;
        assert_eq!((rig.runs(), rig.done()), (0, 1));
        assert_eq!(rig.told.settled_late(), [(rig.success(), true)]);
        assert!(rig.told.failed().is_empty(), "nothing was lost");
        // A sink is asked about the copy too, and this one is slow again.
        if rig.entry != EntryPoint::Acceptor {
            assert!(rig.send("evt_1").await.is_replay());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_hangs_up_ends_no_work() {
    for rig in Rig::each(unchanged, done_after_7_s) {
        rig.begin("evt_1").await.abort();
        pass(6_000).await;
        assert_eq!((rig.runs(), rig.done()), (1, 0), "{:?}", rig.entry);
        pass(2_000).await;
        assert_eq!((rig.runs(), rig.done()), (0, 1), "{:?}", rig.entry);
        assert_eq!(rig.told.settled_late(), [(rig.success(), true)]);
        assert!(rig.told.answers().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_failure_or_a_panic_the_retry_works_again() {
    fn done_at_the_third_call(call: usize) -> Working {
        Box::pin(async move {
            match call {
                1 => Work::Fails,
                2 => panic!("made up for this test"),
                _ => Work::Done,
            }
        })
    }
    for rig in Rig::each(unchanged, done_at_the_third_call) {
        for calls in 1..=2 {
            let answer = rig.send("evt_1").await;
            assert!(answer.status >= 500, "{:?}", rig.entry);
            assert_eq!((rig.calls(), rig.done()), (calls, 0));
            assert_eq!(rig.told.failed().len(), calls, "{:?}", rig.entry);
        }
        assert_eq!(rig.send("evt_1").await.status, 200);
        assert_eq!((rig.calls(), rig.done(), rig.runs()), (3, 1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_work_at_a_time_than_there_are_permits() {
    for rig in Rig::each(|builder| builder.max_runs(2), done_after_7_s) {
        for id in ["evt_1", "evt_2"] {
            rig.begin(id).await;
        }
        assert!(is_not_now(&rig.send("evt_3").await), "{:?}", rig.entry);
        let refused = Outcome::Refused(RefusalKind::NoPermitFree);
        assert_eq!((rig.told.last_answer(), rig.calls()), (refused, 2));
        let health = match &rig.guard {
            Guard::Receiver(receiver) => receiver.health(),
            Guard::Acceptor(acceptor) => acceptor.health(),
        };
        assert_eq!(health.reasons().collect::<Vec<_>>(), ["no_permit_free"]);
        pass(8_000).await;
        rig.begin("evt_3").await;
        pass(8_000).await;
        assert_eq!((rig.calls(), rig.done()), (3, 3), "{:?}", rig.entry);
    }
}

#[tokio::test(start_paused = true)]
async fn with_too_little_time_left_no_work_begins() {
    for rig in Rig::each(
        |builder| builder.answer_within(Duration::from_secs(2)),
        done,
    ) {
        let request = Sent::event("evt_1").request(&rig.clock);
        let request = request.map(|body| late_body(Duration::from_millis(1_950), body));
        assert!(
            is_not_now(&rig.clone().ask(request).await),
            "{:?}",
            rig.entry
        );
        let out_of_time = Outcome::Refused(RefusalKind::OutOfTime);
        assert_eq!((rig.told.last_answer(), rig.calls()), (out_of_time, 0));
        assert_eq!(rig.told.failed(), [out_of_time]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_work_and_lets_no_other_in() {
    for rig in Rig::each(unchanged, done_after_7_s) {
        let attached = rig.begin("evt_1").await;
        let drain = tokio::spawn(rig.clone().drain(Duration::from_secs(10)));
        pass(0).await;
        assert!(is_not_now(&rig.send("evt_2").await), "{:?}", rig.entry);
        let refused = Outcome::Refused(RefusalKind::ShuttingDown);
        assert_eq!((rig.told.last_answer(), rig.calls()), (refused, 1));
        assert_eq!(drain.await.unwrap(), 0);
        assert!(is_not_now(&attached.await.unwrap()));
        // Reported before the drain has ended.
        assert_eq!(rig.told.settled_late(), [(rig.success(), true)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_runs_out_of_time_ends_the_work_and_says_so() {
    fn never_done(_: usize) -> Working {
        Box::pin(pending())
    }
    for rig in Rig::each(unchanged, never_done) {
        let attached = rig.begin("evt_1").await;
        let began = Instant::now();
        assert_eq!(rig.clone().drain(Duration::from_secs(2)).await, 1);
        assert_eq!(began.elapsed().as_secs(), 2);
        assert!(is_not_now(&attached.await.unwrap()), "{:?}", rig.entry);
        let cut = Outcome::Failed(Failure::Drained);
        assert_eq!(rig.told.settled_late(), [(cut, false)], "{:?}", rig.entry);
        assert_eq!((rig.told.failed(), rig.runs()), (vec![cut], 0));
        assert_eq!(rig.store.stats().running, 0, "its claim is released");
    }
}
