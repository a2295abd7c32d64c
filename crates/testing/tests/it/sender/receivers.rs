//! Receivers in this process: one that only answers, and one with a gate.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use hookgate::{
    Delivery, MemoryStore, Receiver, Secret,
    clock::UnixSeconds,
    verify::{VerifyError, VerifyErrorKind},
};
use hookgate_testing::sender::{Sender, SenderBuilder, Subscription};
use hookgate_testing::{InProcess, TokioClock, Transport};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};

pub const START: UnixSeconds = UnixSeconds::new(1_763_690_000);

type Answer = Pin<Box<dyn Future<Output = StatusCode> + Send>>;
type Script = dyn Fn(usize) -> Answer + Send + Sync;

/// A service that verifies nothing, keeps every request, and answers as its script says.
#[derive(Clone)]
pub struct Plain {
    script: Arc<Script>,
    requests: Arc<Mutex<Vec<Request<Bytes>>>>,
    hung_up: Arc<AtomicUsize>,
}

impl Plain {
    pub fn new<F: Future<Output = StatusCode> + Send + 'static>(
        script: impl Fn(usize) -> F + Send + Sync + 'static,
    ) -> Self {
        Self {
            script: Arc::new(move |run| Box::pin(script(run))),
            requests: Arc::default(),
            hung_up: Arc::default(),
        }
    }

    pub fn answering(status: u16) -> Self {
        Self::scripted(move |_| status)
    }

    /// Counts its requests from 1.
    pub fn scripted(script: impl Fn(usize) -> u16 + Send + Sync + 'static) -> Self {
        Self::new(move |run| std::future::ready(StatusCode::from_u16(script(run)).unwrap()))
    }

    pub fn way(&self) -> impl Transport {
        InProcess::new(self.clone())
    }

    pub fn requests(&self) -> Vec<Request<Bytes>> {
        self.requests.lock().unwrap().clone()
    }

    /// How many requests were dropped before they were answered.
    pub fn hung_up(&self) -> usize {
        self.hung_up.load(Ordering::SeqCst)
    }
}

impl tower::Service<Request<Full<Bytes>>> for Plain {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let run = {
                let mut requests = this.requests.lock().unwrap();
                requests.push(Request::from_parts(parts, body));
                requests.len()
            };
            let guard = HangsUp(Some(&this.hung_up));
            let status = (this.script)(run).await;
            guard.answered();
            let mut response = Response::new(Full::default());
            *response.status_mut() = status;
            let next = "http://elsewhere.example/next".parse().unwrap();
            response.headers_mut().insert("location", next);
            Ok(response)
        })
    }
}

struct HangsUp<'a>(Option<&'a AtomicUsize>);

impl HangsUp<'_> {
    fn answered(mut self) {
        self.0 = None;
    }
}

impl Drop for HangsUp<'_> {
    fn drop(&mut self) {
        if let Some(count) = self.0 {
            count.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// A receiver of this crate, in the sender's time.
#[derive(Clone)]
pub struct Gate {
    pub clock: TokioClock,
    app: Router,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    runs: HashMap<String, usize>,
    handled: HashMap<String, usize>,
    answers: usize,
    stale: usize,
    /// Requests that are in the gate, by event, and the most that ever were.
    within: HashMap<String, (usize, usize)>,
}

impl Gate {
    /// Before a handler that is given the number of its run of this event, from 1.
    pub fn new<F: Future<Output = StatusCode> + Send + 'static>(
        handler: impl Fn(usize) -> F + Clone + Send + Sync + 'static,
    ) -> Self {
        let clock = TokioClock::starting_at(START);
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let answered = Arc::clone(&seen);
        let receiver = Receiver::builder()
            .secret(Secret::new(super::SECRET).unwrap())
            .store(MemoryStore::default().with_clock(clock))
            .clock(clock)
            .on_answer(move |answer| {
                let mut seen = answered.lock().unwrap();
                seen.answers += 1;
                let error = answer.verify_error().map(VerifyError::kind);
                seen.stale += usize::from(matches!(error, Some(VerifyErrorKind::Stale(_))));
            })
            .build()
            .unwrap();
        let runs = Arc::clone(&seen);
        let on_delivery = move |delivery: Delivery| {
            let (seen, handler) = (runs.clone(), handler.clone());
            let id = delivery.event_id().to_owned();
            async move {
                let run = {
                    let mut seen = seen.lock().unwrap();
                    let run = seen.runs.entry(id.clone()).or_default();
                    *run += 1;
                    *run
                };
                let status = handler(run).await;
                if status.is_success() {
                    *seen.lock().unwrap().handled.entry(id).or_default() += 1;
                }
                status
            }
        };
        let app = Router::new().route("/webhooks", post(on_delivery).layer(receiver.layer()));
        let within = Arc::clone(&seen);
        let app = app.layer(axum::middleware::from_fn(
            move |request: axum::extract::Request, next: axum::middleware::Next| {
                let within = Arc::clone(&within);
                async move {
                    let id = request.headers()["x-service-event-id"].to_str();
                    let id = id.unwrap().to_owned();
                    let change = |by: isize| {
                        let mut seen = within.lock().unwrap();
                        let (now, most) = seen.within.entry(id.clone()).or_default();
                        *now = now.saturating_add_signed(by);
                        *most = (*most).max(*now);
                    };
                    change(1);
                    let response = next.run(request).await;
                    change(-1);
                    response
                }
            },
        ));
        Self { clock, app, seen }
    }

    /// One that delivers here.
    pub fn sender(&self) -> SenderBuilder {
        let secret = Secret::new(super::SECRET).unwrap();
        let way = InProcess::new(self.app.clone());
        let subscription = Subscription::new("wh_1", "/webhooks", secret, way).unwrap();
        Sender::builder()
            .subscription(subscription)
            .clock(self.clock)
    }

    /// How often the handler ran for this event.
    pub fn runs(&self, id: &str) -> usize {
        let seen = self.seen.lock().unwrap();
        seen.runs.get(id).copied().unwrap_or(0)
    }

    /// How often it answered 2xx.
    pub fn handled(&self, id: &str) -> usize {
        let seen = self.seen.lock().unwrap();
        seen.handled.get(id).copied().unwrap_or(0)
    }

    pub fn answers(&self) -> usize {
        self.seen.lock().unwrap().answers
    }

    pub fn stale(&self) -> usize {
        self.seen.lock().unwrap().stale
    }

    /// How many copies of this event were in the gate at the same time, at most.
    pub fn most_at_once(&self, id: &str) -> usize {
        let seen = self.seen.lock().unwrap();
        seen.within.get(id).map_or(0, |(_, most)| *most)
    }
}
