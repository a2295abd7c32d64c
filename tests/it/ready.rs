//! The contract of `poll_ready`: kept over, under and between the limits of tower.

use std::convert::Infallible;
use std::future::{Ready, poll_fn, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::body::Body;
use hookgate::Receiver;
use http::{Request, Response};
use http_body::Body as _;
use tower::buffer::BufferLayer;
use tower::limit::{ConcurrencyLimit, ConcurrencyLimitLayer};
use tower::load_shed::LoadShedLayer;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

use crate::support::*;

/// A service that panics when it is called without having been asked first, as the contract allows.
/// A clone starts unasked.
#[derive(Debug, Default)]
struct Strict {
    asked: bool,
    open: Arc<AtomicBool>,
    calls: Arc<AtomicUsize>,
}

impl Strict {
    fn open() -> Self {
        let strict = Self::default();
        strict.open.store(true, Ordering::SeqCst);
        strict
    }
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        Self {
            asked: false,
            open: Arc::clone(&self.open),
            calls: Arc::clone(&self.calls),
        }
    }
}

impl<B> Service<Request<B>> for Strict {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if !self.open.load(Ordering::SeqCst) {
            return Poll::Pending;
        }
        self.asked = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        assert!(
            std::mem::take(&mut self.asked),
            "poll_ready must be called first"
        );
        self.calls.fetch_add(1, Ordering::SeqCst);
        ready(Ok(Response::new(String::new())))
    }
}

fn built() -> Receiver {
    receiver().clock(manual()).build().unwrap()
}

fn good(id: &str) -> Request<Body> {
    Sent::at(NOW, event(id)).request()
}

fn forged() -> Request<Body> {
    Sent::at(NOW, event("evt_forged"))
        .without("X-Service-Signature")
        .request()
}

/// Waits until a request may come.
async fn is_ready(service: &mut impl Service<Request<Body>>) -> bool {
    poll_fn(|context| service.poll_ready(context)).await.is_ok()
}

/// Good and refused requests in turn, on one service.
async fn answers<S, R>(service: S)
where
    S: Service<Request<Body>, Response = Response<R>, Error: std::fmt::Debug>,
{
    let mut service = service;
    for round in 0..5 {
        let id = format!("evt_{round}");
        for (request, status) in [(good(&id), 200), (forged(), 401), (good(&id), 200)] {
            assert!(is_ready(&mut service).await);
            assert_eq!(service.call(request).await.unwrap().status(), status);
        }
    }
}

// fault R8: a clone is called that nobody asked whether it was ready
#[tokio::test]
async fn the_inner_service_is_asked_before_each_call() {
    let strict = Strict::open();
    let calls = Arc::clone(&strict.calls);
    answers(built().layer().layer(strict)).await;
    assert_eq!(calls.load(Ordering::SeqCst), 5);
}

// fault R8: a clone is called that nobody asked whether it was ready
#[tokio::test]
async fn limits_buffers_and_load_shedding_work_inside_the_layer() {
    let layer = || built().layer();
    answers(layer().layer(ConcurrencyLimitLayer::new(1).layer(Strict::open()))).await;
    answers(layer().layer(LoadShedLayer::new().layer(Strict::open()))).await;
    let buffered = ServiceBuilder::new().buffer(2).service(Strict::open());
    answers(layer().layer(buffered)).await;
    let all = ServiceBuilder::new()
        .load_shed()
        .concurrency_limit(1)
        .buffer(1)
        .service(Strict::open());
    answers(layer().layer(all)).await;
}

// fault R8: a clone is called that nobody asked whether it was ready
#[tokio::test]
async fn limits_buffers_and_load_shedding_work_outside_the_layer() {
    let layer = || built().layer();
    answers(ConcurrencyLimitLayer::new(1).layer(layer().layer(Strict::open()))).await;
    answers(LoadShedLayer::new().layer(layer().layer(Strict::open()))).await;
    answers(BufferLayer::new(2).layer(layer().layer(Strict::open()))).await;
    let all = ServiceBuilder::new()
        .load_shed()
        .buffer(1)
        .concurrency_limit(1)
        .layer(layer());
    answers(all.service(Strict::open())).await;
}

#[tokio::test]
async fn a_refused_request_gives_its_permit_back() {
    let limited = ConcurrencyLimit::new(Strict::open(), 1);
    let mut service = built().layer().layer(limited);
    for _ in 0..3 {
        assert!(is_ready(&mut service).await);
        let answer = service.call(forged());
        // The permit is the request's until it is refused.
        let mut other = service.clone();
        let mut context = Context::from_waker(Waker::noop());
        assert!(Service::<Request<Body>>::poll_ready(&mut other, &mut context).is_pending());
        assert_eq!(answer.await.unwrap().status(), 401);
        let free = tokio::time::timeout(PATIENCE, is_ready(&mut other)).await;
        assert!(free.expect("the permit"));
    }
}

#[tokio::test]
async fn a_dropped_request_gives_its_permit_back() {
    let limited = ConcurrencyLimit::new(Strict::open(), 1);
    let mut service = built().layer().layer(limited);
    assert!(is_ready(&mut service).await);
    drop(service.call(good("evt_1")));
    let free = tokio::time::timeout(PATIENCE, is_ready(&mut service)).await;
    assert!(free.expect("the permit"));
}

#[tokio::test]
async fn readiness_is_the_inner_services_own() {
    let strict = Strict::default();
    let open = Arc::clone(&strict.open);
    let mut service = built().layer().layer(strict);
    let mut context = Context::from_waker(Waker::noop());
    let mut is_ready =
        || Service::<Request<Body>>::poll_ready(&mut service, &mut context).is_ready();
    assert!(!is_ready());
    open.store(true, Ordering::SeqCst);
    assert!(is_ready());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_always_ready_does_not_keep_its_worker() {
    struct Endless;
    impl http_body::Body for Endless {
        type Data = bytes::Bytes;
        type Error = Infallible;
        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<http_body::Frame<bytes::Bytes>, Infallible>>> {
            Poll::Ready(Some(Ok(http_body::Frame::data(bytes::Bytes::new()))))
        }
    }
    let other = tokio::spawn(tokio::time::sleep(Duration::from_secs(3)));
    let request = Sent::at(NOW, event("evt_1")).request_with(Endless);
    assert!(!request.body().is_end_stream());
    let asked = tokio::spawn(built().layer().layer(Strict::open()).oneshot(request));
    // Paused time moves only where every task waits; this body never does. So it is moved by hand.
    for _ in 0..40 {
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    assert_eq!(asked.await.unwrap().unwrap().status(), 408);
    other.await.unwrap();
}
