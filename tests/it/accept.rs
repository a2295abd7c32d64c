//! The acceptor: verify, store, answer. Each row of the outcomes table that applies, in virtual
//! time, with scripted sinks.

use std::collections::HashMap;
use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::Response;
use axum::routing::post_service;
use hookgate::{
    ConfigErrorKind, Delivery, MemoryStore, Outcome, Receiver, ReceiverBuilder, Secret,
    dedupe::{EventKey, StoreError, StoreErrorKind, StoreFuture},
    layer::Answer,
    outcome::RefusalKind,
    sink::{Accepted, Acceptor, Sink},
};
use http::Request;
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

use crate::harness::{FORGER, HookReports, SECRET, Sent, TokioClock, pass, replayed};

type Said = Result<Accepted, StoreError>;
type Saying = Pin<Box<dyn Future<Output = Said> + Send>>;

/// A sink that answers by its script, by the number of the call.
struct Scripted {
    script: Box<dyn Fn(Delivery, usize) -> Saying + Send + Sync>,
    calls: AtomicUsize,
    /// Calls that were given up before they had an answer.
    dropped: Arc<AtomicUsize>,
    retained: Mutex<Vec<Duration>>,
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scripted")
    }
}

impl Sink for Scripted {
    fn accept<'a>(&'a self, delivery: &'a Delivery, retain: Duration) -> StoreFuture<'a, Accepted> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        self.retained.lock().unwrap().push(retain);
        let saying = (self.script)(delivery.clone(), call);
        let mut given_up = GivenUp(Some(Arc::clone(&self.dropped)));
        StoreFuture::boxed(async move {
            let said = saying.await;
            given_up.ended();
            said
        })
    }
}

/// Counts a call that is dropped before its end.
struct GivenUp(Option<Arc<AtomicUsize>>);

impl GivenUp {
    fn ended(&mut self) {
        self.0 = None;
    }
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        if let Some(count) = &self.0 {
            count.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// An acceptor behind a route of axum.
struct Rig {
    acceptor: Acceptor,
    sink: Arc<Scripted>,
    app: Router,
    clock: TokioClock,
    told: HookReports,
}

impl Rig {
    fn new<F>(
        settings: impl FnOnce(ReceiverBuilder) -> ReceiverBuilder,
        script: impl Fn(Delivery, usize) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Said> + Send + 'static,
    {
        let (clock, told) = (TokioClock::start(), HookReports::default());
        let sink = Arc::new(Scripted {
            script: Box::new(move |delivery, call| Box::pin(script(delivery, call))),
            calls: AtomicUsize::new(0),
            dropped: Arc::default(),
            retained: Mutex::default(),
        });
        let builder = told.clone().listen(builder().clock(clock.clone()));
        let acceptor = settings(builder).accept_into(Arc::clone(&sink)).unwrap();
        let app = Router::new().route("/webhooks", post_service(acceptor.clone()));
        Self {
            acceptor,
            sink,
            app,
            clock,
            told,
        }
    }

    fn of<F: Future<Output = Said> + Send + 'static>(
        script: impl Fn(Delivery, usize) -> F + Send + Sync + 'static,
    ) -> Self {
        Self::new(|builder| builder, script)
    }

    fn send(&self, sent: &Sent) -> impl Future<Output = Response> + Send + use<> {
        self.ask(sent.request(&self.clock))
    }

    fn ask(&self, request: Request<Body>) -> impl Future<Output = Response> + Send + use<> {
        let answer = self.app.clone().oneshot(request);
        async { answer.await.unwrap() }
    }

    async fn begin(&self, sent: &Sent) -> tokio::task::JoinHandle<Response> {
        let task = tokio::spawn(self.send(sent));
        pass(0).await;
        task
    }

    fn given_up(&self) -> usize {
        self.sink.dropped.load(Ordering::SeqCst)
    }
}

fn builder() -> ReceiverBuilder {
    Receiver::builder().secret(Secret::new(SECRET).unwrap())
}

async fn is_empty(response: Response) -> bool {
    let body = axum::body::to_bytes(response.into_body(), 1_000).await;
    body.unwrap().is_empty()
}

fn not_now(response: &Response) -> bool {
    response.status() == 503 && response.headers().contains_key("retry-after")
}

/// The answers of a correct sink, from the bodies that it has stored.
#[derive(Clone, Default)]
struct StoredBodies(Arc<Mutex<HashMap<EventKey, Bytes>>>);

impl StoredBodies {
    fn keep(&self, delivery: &Delivery) -> Accepted {
        let mut kept = self.0.lock().unwrap();
        match kept.get(delivery.key()) {
            Some(before) => Accepted::Duplicate {
                same_body: before == delivery.body(),
            },
            None => {
                kept.insert(*delivery.key(), delivery.body().clone());
                Accepted::New
            }
        }
    }
}

const REPLAY: Outcome = Outcome::Replayed { same_body: true };
const TOO_SLOW: Outcome = Outcome::Refused(RefusalKind::StoreTooSlow);
const UNAVAILABLE: Outcome = Outcome::Refused(RefusalKind::StoreUnavailable);

#[tokio::test(start_paused = true)]
async fn what_the_sink_has_is_answered_200_and_its_copies_are_replays() {
    let kept = StoredBodies::default();
    let keeping = kept.clone();
    let rig = Rig::of(move |delivery, _| {
        let accepted = keeping.keep(&delivery);
        async move { Ok(accepted) }
    });
    let sent = Sent::event("evt_1");
    let answer = rig.send(&sent).await;
    assert_eq!(answer.status(), 200);
    assert!(!replayed(&answer));
    let told: &Answer = answer.extensions().get().unwrap();
    assert_eq!((told.outcome, told.status), (Outcome::Accepted, 200));
    assert!(is_empty(answer).await);
    let copy = rig.send(&sent).await;
    assert!(replayed(&copy) && is_empty(copy).await);
    let other = sent.clone().with_body(format!("{} ", sent.body));
    assert!(replayed(&rig.send(&other).await));
    let outcomes = [
        Outcome::Accepted,
        REPLAY,
        Outcome::Replayed { same_body: false },
    ];
    assert_eq!(rig.told.answers(), outcomes);
    assert_eq!(
        rig.told.settled_late(),
        outcomes.map(|outcome| (outcome, false))
    );
    assert!(rig.told.failed().is_empty());
    let stored = kept.0.lock().unwrap();
    assert_eq!(stored.values().collect::<Vec<_>>(), [&sent.body]);
    let health = rig.acceptor.health();
    assert!(health.is_ready() && health.last_accepted.is_some());
}

#[tokio::test(start_paused = true)]
async fn each_call_of_the_sink_has_the_retention() {
    let days = |days: u64| Duration::from_secs(days * 86_400);
    for (set, passed) in [(None, days(2)), (Some(days(7)), days(7))] {
        let rig = Rig::new(
            |builder| match set {
                Some(retention) => builder.retention(retention),
                None => builder,
            },
            |_, _| async { Ok(Accepted::New) },
        );
        rig.send(&Sent::event("evt_1")).await;
        assert_eq!(*rig.sink.retained.lock().unwrap(), [passed]);
    }
}

// fault Q2: the answer goes before the commit
#[tokio::test(start_paused = true)]
async fn no_2xx_before_the_sink_has_said_durable() {
    let rig = Rig::of(|_, _| async {
        sleep(Duration::from_secs(3)).await;
        Ok(Accepted::New)
    });
    let asked = rig.begin(&Sent::event("evt_1")).await;
    pass(2_900).await;
    assert!(!asked.is_finished());
    pass(200).await;
    assert!(asked.is_finished());
    assert_eq!(asked.await.unwrap().status(), 200);
    assert_eq!(rig.told.settled_late(), [(Outcome::Accepted, false)]);
}

// fault Q9: a delivery is acknowledged that could not be stored
#[tokio::test(start_paused = true)]
async fn a_sink_that_fails_is_503_by_its_kind_and_the_retry_is_accepted() {
    for (error, kind) in [
        (StoreErrorKind::Unavailable, RefusalKind::StoreUnavailable),
        (StoreErrorKind::TimedOut, RefusalKind::StoreTooSlow),
        (StoreErrorKind::Full, RefusalKind::StoreFull),
        (StoreErrorKind::Refused, RefusalKind::StoreUnavailable),
    ] {
        let rig = Rig::of(move |_, call| async move {
            if call == 1 {
                return Err(StoreError::new(error).caused_by("made-up fault of the disk"));
            }
            Ok(Accepted::New)
        });
        let sent = Sent::event("evt_1");
        assert!(not_now(&rig.send(&sent).await), "{kind:?}");
        let refused = Outcome::Refused(kind);
        assert_eq!(rig.told.failed(), [refused]);
        let failed = rig.told.failed.lock().unwrap()[0].clone();
        assert_eq!(failed.delivery.unwrap().body(), &sent.body);
        let reason: &(dyn std::error::Error + 'static) = &*failed.reason.unwrap();
        let cause = std::iter::successors(Some(reason), |error| error.source()).last();
        assert_eq!(cause.unwrap().to_string(), "made-up fault of the disk");
        assert_eq!(rig.send(&sent).await.status(), 200);
        assert_eq!(rig.told.answers(), [refused, Outcome::Accepted]);
        assert_eq!(
            rig.told.settled_late(),
            [(refused, false), (Outcome::Accepted, false)]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_panics_is_503_and_the_retry_is_accepted() {
    let rig = Rig::of(|_, call| {
        assert_ne!(call, 1, "made-up panic of the call");
        async move {
            assert!(call > 3, "made-up panic of the future");
            Ok(Accepted::New)
        }
    });
    let is_ready = || rig.acceptor.health().is_ready();
    for call in 1..=3 {
        assert!(not_now(&rig.send(&Sent::event("evt_1")).await));
        assert_eq!(is_ready(), call < 3);
    }
    assert_eq!(rig.send(&Sent::event("evt_1")).await.status(), 200);
    assert!(is_ready());
    assert_eq!(rig.told.answers()[..3], [UNAVAILABLE; 3]);
    assert_eq!(rig.told.answers()[3..], [Outcome::Accepted]);
    assert_eq!(rig.told.failed(), [UNAVAILABLE; 3]);
    assert_eq!(rig.acceptor.runs(), 0);
}

/// It may have been the last attempt.
#[tokio::test(start_paused = true)]
async fn a_sink_that_fails_after_its_request_is_reported_to_the_operator() {
    for hangs_up in [false, true] {
        let rig = Rig::of(|_, _| async {
            sleep(Duration::from_secs(7)).await;
            Err(StoreError::new(StoreErrorKind::Unavailable))
        });
        let asked = rig.begin(&Sent::event("evt_1")).await;
        if hangs_up {
            asked.abort();
        } else {
            assert!(not_now(&asked.await.unwrap()));
        }
        pass(2_000).await;
        assert_eq!(rig.told.failed(), [], "{hangs_up}");
        pass(6_000).await;
        assert_eq!(rig.told.failed(), [UNAVAILABLE], "{hangs_up}");
        assert_eq!(rig.told.settled_late(), [(UNAVAILABLE, true)]);
        assert_eq!(
            (rig.told.answers().is_empty(), rig.given_up()),
            (hangs_up, 0)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_never_answers_is_given_up_after_30_s() {
    let rig = Rig::of(|_, _| pending());
    assert!(not_now(&rig.send(&Sent::event("evt_1")).await));
    pass(25_400).await;
    assert_eq!((rig.acceptor.runs(), rig.given_up()), (1, 0));
    pass(200).await;
    assert_eq!((rig.acceptor.runs(), rig.given_up()), (0, 1));
    assert_eq!(rig.told.settled_late(), [(TOO_SLOW, true)]);
    assert_eq!(rig.told.failed(), [TOO_SLOW]);
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_runs_is_a_limit_for_sinks() {
    let rig = Rig::new(
        |builder| builder.run_limit(Duration::from_secs(1)),
        |_, _| pending(),
    );
    let began = Instant::now();
    assert!(not_now(&rig.send(&Sent::event("evt_1")).await));
    assert_eq!(began.elapsed(), Duration::from_secs(1));
    assert_eq!(rig.told.answers(), [TOO_SLOW]);
    assert_eq!(rig.told.settled_late(), [(TOO_SLOW, false)]);
    assert_eq!((rig.told.failed(), rig.given_up()), (vec![TOO_SLOW], 1));
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_fails_or_hangs_makes_the_receiver_unready_until_it_answers() {
    let mood = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&mood);
    let rig = Rig::of(move |_, _| {
        let mood = now.load(Ordering::SeqCst);
        async move {
            match mood {
                0 => Ok(Accepted::New),
                1 => Err(StoreError::new(StoreErrorKind::Unavailable)),
                2 => Err(StoreError::new(StoreErrorKind::Full)),
                _ => pending().await,
            }
        }
    });
    for (mode, ready) in [(1, false), (0, true), (2, true), (3, false), (0, true)] {
        mood.store(mode, Ordering::SeqCst);
        for _ in 0..3 {
            rig.send(&Sent::event("evt_1")).await;
        }
        assert_eq!(rig.acceptor.health().is_ready(), ready, "{mode}");
    }
}

#[tokio::test(start_paused = true)]
async fn handle_is_the_same_for_servers_without_tower() {
    let kept = StoredBodies::default();
    let rig = Rig::of(move |delivery, _| {
        let accepted = kept.keep(&delivery);
        async move { Ok(accepted) }
    });
    let sent = Sent::event("evt_1");
    let ask = || rig.acceptor.handle(sent.request(&rig.clock));
    let answer = ask().await;
    assert_eq!((answer.status().as_u16(), answer.body().len()), (200, 0));
    assert!(answer.headers().is_empty());
    assert_eq!(ask().await.headers()["idempotent-replayed"], "true");
    let forged = sent.clone().signed_by(FORGER).request(&rig.clock);
    let answer = rig.acceptor.handle(forged).await;
    assert_eq!(answer.status(), 401);
    assert!(answer.body().starts_with(b"{\"error\":"));
    // Dropped half way, and yet not cut off.
    let rig = Rig::of(|_, _| async {
        sleep(Duration::from_secs(1)).await;
        Ok(Accepted::New)
    });
    let dropped = rig.acceptor.handle(sent.request(&rig.clock));
    let dropped = tokio::time::timeout(Duration::from_millis(100), dropped).await;
    assert!(dropped.is_err());
    pass(2_000).await;
    assert_eq!(rig.told.settled_late(), [(Outcome::Accepted, true)]);
}

#[tokio::test(start_paused = true)]
async fn a_store_beside_the_sink_is_an_error_and_so_is_a_short_retention() {
    let sink = || Arc::clone(&Rig::of(|_, _| pending()).sink);
    let kind = |builder: ReceiverBuilder| builder.accept_into(sink()).unwrap_err().kind();
    let short = Duration::from_secs(3_600);
    let stored = builder().store(MemoryStore::default());
    for builder in [stored, builder().without_deduplication()] {
        assert_eq!(kind(builder), ConfigErrorKind::StoreUnused);
    }
    assert_eq!(kind(Receiver::builder()), ConfigErrorKind::NoSecret);
    assert!(matches!(
        kind(builder().retention(short)),
        ConfigErrorKind::RetentionTooShort { given, .. } if given == short
    ));
}

#[cfg(feature = "testing")]
#[tokio::test(start_paused = true)]
async fn the_log_names_what_became_of_it() {
    let logged = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&logged);
    let rig = Rig::new(
        |builder| {
            let record = move |delivery| log.lock().unwrap().push(delivery);
            builder.observer(hookgate_record::record_with(record))
        },
        |_, _| async { Ok(Accepted::New) },
    );
    let sent = Sent::event("evt_1");
    rig.send(&sent).await;
    let logged = logged.lock().unwrap();
    let answer = logged[0].answer.as_ref().unwrap();
    assert_eq!((answer.status, &*answer.outcome), (200, "accepted"));
    assert_eq!(logged[0].body.as_deref(), Some(sent.body.as_bytes()));
}
