//! A guarded route in virtual time: deliveries in, answers, outcomes and runs out.

use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use hookgate::{
    Delivery, MemoryStore, Outcome, Receiver, ReceiverBuilder, Secret,
    clock::{Clock, Monotonic, UnixSeconds},
    layer::{Failed, Settled},
    verify::{Signature, Timestamp},
};
use http::{Request, StatusCode};
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

pub const SECRET: &str = "whsec_made_up_for_these_tests";
/// The secret of somebody else.
pub const FORGER: &str = "whsec_made_up_by_somebody_else";
/// What a handler answers that has done its work.
pub const OK: StatusCode = StatusCode::NO_CONTENT;

/// Wall and monotonic time from tokio's clock, which tests pause and move.
#[derive(Clone, Debug)]
pub struct TokioClock(Instant);

impl TokioClock {
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for TokioClock {
    fn now(&self) -> UnixSeconds {
        UnixSeconds::new(1_763_690_000 + self.0.elapsed().as_secs() as i64)
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::new(self.0.elapsed())
    }
}

/// A delivery to send.
#[derive(Clone)]
pub struct Sent {
    pub body: String,
    pub secret: &'static str,
    pub subscription: Option<&'static str>,
    pub age: i64,
}

impl Sent {
    pub fn event(id: &str) -> Self {
        let body = format!(
            r#"{{"id":"{id}","type":"row.deleted","createdAt":"2025-11-21T01:53:20Z","workspaceId":"ws_1","data":{{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","deletedBy":{{"id":"usr_1","name":"Ada"}}}}}}"#
        );
        Self {
            body,
            secret: SECRET,
            subscription: None,
            age: 0,
        }
    }

    /// Of a row that was created, with these properties.
    pub fn row_created(id: &str, properties: &str) -> Self {
        let properties = format!(r#""properties":{properties},"rowId""#);
        let body = Self::event(id).body.replace("row.deleted", "row.created");
        let body = body.replace("deletedBy", "createdBy");
        Self::event(id).with_body(body.replace(r#""rowId""#, &properties))
    }

    pub fn with_body(self, body: impl Into<String>) -> Self {
        let body = body.into();
        Self { body, ..self }
    }

    pub fn signed_by(self, secret: &'static str) -> Self {
        Self { secret, ..self }
    }

    pub fn of(self, subscription: &'static str) -> Self {
        let subscription = Some(subscription);
        Self {
            subscription,
            ..self
        }
    }

    /// Signed so many seconds ago.
    pub fn aged(self, age: i64) -> Self {
        Self { age, ..self }
    }

    pub fn request(&self, clock: &TokioClock) -> Request<Body> {
        let seconds = UnixSeconds::new(clock.now().as_i64() - self.age);
        let timestamp = Timestamp::at(seconds).unwrap();
        let secret = Secret::new(self.secret).unwrap();
        let signature = Signature::sign(&secret, &timestamp, self.body.as_bytes());
        let mut request = Request::post("/webhooks")
            .header("content-type", "application/json")
            .header("x-service-timestamp", timestamp.as_str())
            .header("x-service-signature", signature.to_header_value());
        if let Some(id) = self.subscription {
            request = request.header("x-service-webhook-id", id);
        }
        request.body(self.body.clone().into()).unwrap()
    }
}

/// The future of a handler.
pub trait Handling: Future<Output: IntoResponse> + Send + 'static {}

impl<F: Future<Output: IntoResponse> + Send + 'static> Handling for F {}

#[derive(Clone)]
pub struct Harness {
    pub receiver: Receiver,
    pub clock: TokioClock,
    pub app: Router,
    runs: Arc<AtomicUsize>,
    pub told: HookReports,
}

/// The reports that the hooks got.
#[derive(Clone, Default)]
pub struct HookReports {
    pub answers: Arc<Mutex<Vec<Outcome>>>,
    pub settled: Arc<Mutex<Vec<Settled>>>,
    pub failed: Arc<Mutex<Vec<Failed>>>,
}

impl Harness {
    /// A receiver with a `MemoryStore` in tokio's time, changed by `settings`, before the handler
    /// `script`.
    pub fn new<F: Handling>(
        settings: impl FnOnce(ReceiverBuilder, &TokioClock) -> ReceiverBuilder,
        script: impl Fn(Delivery, usize) -> F + Clone + Send + Sync + 'static,
    ) -> Self {
        Self::without_store(
            |builder, clock| {
                let store = MemoryStore::default().with_clock(clock.clone());
                settings(builder.store(store), clock)
            },
            script,
        )
    }

    /// As [`new`](Self::new); the store, or that there is none, is left to `settings`.
    pub fn without_store<F: Handling>(
        settings: impl FnOnce(ReceiverBuilder, &TokioClock) -> ReceiverBuilder,
        script: impl Fn(Delivery, usize) -> F + Clone + Send + Sync + 'static,
    ) -> Self {
        let secret = Secret::new(SECRET).unwrap();
        Self::from_builder(Receiver::builder().secret(secret), settings, script)
    }

    /// As [`new`](Self::new); the keys are left to `settings`.
    #[allow(dead_code)] // used where keys are looked up
    pub fn without_secret<F: Handling>(
        settings: impl FnOnce(ReceiverBuilder, &TokioClock) -> ReceiverBuilder,
        script: impl Fn(Delivery, usize) -> F + Clone + Send + Sync + 'static,
    ) -> Self {
        Self::from_builder(
            Receiver::builder(),
            |builder, clock| {
                let store = MemoryStore::default().with_clock(clock.clone());
                settings(builder.store(store), clock)
            },
            script,
        )
    }

    fn from_builder<F: Handling>(
        builder: ReceiverBuilder,
        settings: impl FnOnce(ReceiverBuilder, &TokioClock) -> ReceiverBuilder,
        script: impl Fn(Delivery, usize) -> F + Clone + Send + Sync + 'static,
    ) -> Self {
        let clock = TokioClock::start();
        let told = HookReports::default();
        let builder = told.clone().listen(builder.clock(clock.clone()));
        let receiver = settings(builder, &clock).build().unwrap();
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let handler = move |delivery: Delivery| {
            let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
            script(delivery, run)
        };
        let app = Router::new().route("/webhooks", post(handler).layer(receiver.layer()));
        Self {
            receiver,
            clock,
            app,
            runs,
            told,
        }
    }

    /// With default settings.
    pub fn of<F: Handling>(
        script: impl Fn(Delivery, usize) -> F + Clone + Send + Sync + 'static,
    ) -> Self {
        Self::new(|builder, _| builder, script)
    }

    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    pub fn send(&self, sent: &Sent) -> impl Future<Output = Response> + Send + use<> {
        self.ask(sent.request(&self.clock))
    }

    pub fn ask(&self, request: Request<Body>) -> impl Future<Output = Response> + Send + use<> {
        let answer = self.app.clone().oneshot(request);
        async { answer.await.unwrap() }
    }

    pub async fn status(&self, id: &str) -> u16 {
        self.send(&Sent::event(id)).await.status().as_u16()
    }

    pub async fn replays(&self, id: &str) -> bool {
        replayed(&self.send(&Sent::event(id)).await)
    }

    /// Sends in a task of its own, and lets it begin.
    pub async fn begin(&self, sent: &Sent) -> tokio::task::JoinHandle<Response> {
        let task = tokio::spawn(self.send(sent));
        pass(0).await;
        task
    }
}

impl HookReports {
    pub fn listen(self, builder: ReceiverBuilder) -> ReceiverBuilder {
        let Self {
            answers,
            settled,
            failed,
        } = self;
        builder
            .on_answer(move |answer| answers.lock().unwrap().push(answer.outcome))
            .on_settled(move |run| settled.lock().unwrap().push(run.clone()))
            .on_failed(move |failure| failed.lock().unwrap().push(failure.clone()))
    }

    pub fn last_answer(&self) -> Outcome {
        *self.answers.lock().unwrap().last().expect("an answer")
    }

    pub fn settled(&self) -> Vec<Outcome> {
        let settled = self.settled.lock().unwrap();
        settled.iter().map(|run| run.outcome).collect()
    }

    /// As [`settled`](Self::settled), each with whether it was late.
    pub fn settled_late(&self) -> Vec<(Outcome, bool)> {
        let settled = self.settled.lock().unwrap();
        settled.iter().map(|run| (run.outcome, run.late)).collect()
    }

    pub fn answers(&self) -> Vec<Outcome> {
        self.answers.lock().unwrap().clone()
    }

    pub fn failed(&self) -> Vec<Outcome> {
        let failed = self.failed.lock().unwrap();
        failed.iter().map(|failed| failed.outcome).collect()
    }
}

/// A handler that answers so at its runs, and with the last of these at all later ones.
pub fn in_turn(
    statuses: &'static [u16],
) -> impl Fn(Delivery, usize) -> Ready<StatusCode> + Clone + Send + Sync + 'static {
    move |_, run| {
        let status = statuses[run.min(statuses.len()) - 1];
        ready(StatusCode::from_u16(status).unwrap())
    }
}

/// A handler's work that takes so long.
pub async fn ok_after(seconds: u64) -> StatusCode {
    sleep(Duration::from_secs(seconds)).await;
    OK
}

/// Lets virtual time pass, and everything that is due happen.
pub async fn pass(millis: u64) {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    sleep(Duration::from_millis(millis)).await;
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

pub fn replayed(response: &Response) -> bool {
    response.status() == 200 && response.headers().get("idempotent-replayed").is_some()
}

/// A body that gives nothing and does not end.
pub fn stalled_body() -> Body {
    struct Stalled;

    impl futures_core::Stream for Stalled {
        type Item = Result<bytes::Bytes, std::convert::Infallible>;

        fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            Poll::Pending
        }
    }

    Body::from_stream(Stalled)
}

/// The same body, after a while.
pub fn late_body(after: Duration, body: Body) -> Body {
    struct Late {
        wait: Pin<Box<tokio::time::Sleep>>,
        body: Body,
    }

    impl http_body::Body for Late {
        type Data = bytes::Bytes;
        type Error = axum::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<http_body::Frame<bytes::Bytes>, axum::Error>>> {
            std::task::ready!(self.wait.as_mut().poll(context));
            Pin::new(&mut self.body).poll_frame(context)
        }
    }

    Body::new(Late {
        wait: Box::pin(sleep(after)),
        body,
    })
}
