//! The axum layer over a Redis that fails: 503 within its budget, no run, and all well again afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use axum::routing::post;
use futures_util::future::join_all;
use hookgate::{DedupeStore, Delivery, Receiver, Secret};
use hookgate_redis::RedisStore;
use hookgate_testing::Signer;
use tower::ServiceExt;

use super::{connected, until};
use crate::support::{Fault, Proxy, RedisServer};

/// The sender gives up after this.
const SENDER_WAITS: Duration = Duration::from_secs(5);
const ROUNDS: u32 = 10;

/// A receiver, and how often its handler ran.
#[derive(Clone)]
pub(super) struct App {
    router: Router,
    signer: Signer,
    runs: Arc<AtomicUsize>,
}

impl App {
    pub(super) fn on(store: impl DedupeStore) -> Self {
        Self::with_handler(store, || {})
    }

    fn with_handler(
        store: impl DedupeStore,
        work: impl Fn() + Clone + Send + Sync + 'static,
    ) -> Self {
        let secret = Secret::new("whsec_made_up_for_this_test").unwrap();
        let receiver = Receiver::builder().secret(secret.clone()).store(store);
        // A claim whose answer was lost holds its event for so long.
        let receiver = receiver.lease(Duration::from_secs(5)).build().unwrap();
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let handler = async move |_: Delivery| {
            counted.fetch_add(1, Ordering::SeqCst);
            work();
            StatusCode::NO_CONTENT
        };
        Self {
            router: Router::new().route("/", post(handler).layer(receiver.layer())),
            signer: Signer::new(secret),
            runs,
        }
    }

    /// Its status; 200 is a duplicate's.
    pub(super) async fn deliver(&self, id: &str) -> StatusCode {
        let body = format!(r#"{{"id":"{id}","type":"page.created"}}"#);
        let request = self.signer.request("/", body).map(Body::from);
        self.router.clone().oneshot(request).await.unwrap().status()
    }

    pub(super) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

/// A receiver on a store with a prefix of its own, which has handled `evt_1`.
async fn handles_once(url: &str) -> App {
    let store = connected(url).await;
    let app = App::on(store.with_prefix(&format!("{url}:")));
    assert_eq!(app.deliver("evt_1").await, StatusCode::NO_CONTENT);
    assert_eq!(app.deliver("evt_1").await, StatusCode::OK);
    app
}

/// Returns how long it took.
async fn refused(app: &App, what: &str) -> Duration {
    let runs = app.runs();
    let before = Instant::now();
    let statuses = (0..3).map(async |event| app.deliver(&format!("{what}-{event}")).await);
    for status in join_all(statuses).await {
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{what}");
    }
    assert_eq!(app.runs(), runs, "{what}");
    before.elapsed()
}

/// The fault comes and goes, until the sender would not have given up: a busy machine may be late
/// once, a call without a limit is late each time.
async fn refused_in_time_and_well_again(app: &App, what: &str, mut fails: impl FnMut(bool)) {
    for round in 0..ROUNDS {
        let what = format!("{what}, {round}");
        fails(true);
        let took = refused(app, &what).await;
        fails(false);
        well_again(app, &what).await;
        if took < SENDER_WAITS {
            return;
        }
    }
    panic!("{what}: the sender has given up each time");
}

/// A refused delivery is handled when it arrives again, once.
async fn well_again(app: &App, what: &str) {
    let runs = app.runs();
    let id = format!("{what}-0");
    let status = until(StatusCode::is_success, || app.deliver(&id)).await;
    assert!(status.is_success());
    // A claim whose answer was lost may have left a lease behind; the event itself is handled.
    assert_eq!(app.deliver(&id).await, StatusCode::OK, "{what}");
    assert!(app.runs() <= runs + 1, "{what}");
}

/// Each fault of the connection, at the same time with a proxy of its own; then the server's own.
#[tokio::test(flavor = "multi_thread")]
async fn answers_503_in_time_and_recovers() {
    let durable = ["--appendonly", "yes", "--appendfsync", "always"];
    let (Some(mut server), Some(paused)) = (RedisServer::start(&durable), RedisServer::start(&[]))
    else {
        return;
    };
    let fails = async |fault: Fault| {
        let proxy = Proxy::before(server.server.address);
        let app = handles_once(&format!("redis://{}", proxy.address)).await;
        let switch = |fails| proxy.set(if fails { fault } else { Fault::None });
        refused_in_time_and_well_again(&app, &format!("{fault:?}"), switch).await;
    };
    let pauses = async {
        let app = handles_once(&paused.url()).await;
        let switch = |fails| paused.server.signal(if fails { "STOP" } else { "CONT" });
        refused_in_time_and_well_again(&app, "paused", switch).await;
    };
    let late = Fault::Delay(Duration::from_secs(3));
    tokio::join!(
        fails(Fault::Refuse),
        fails(Fault::HalfOpen),
        fails(late),
        pauses
    );

    let app = handles_once(&server.url()).await;
    refused_in_time_and_well_again(&app, "down", |fails| {
        if fails {
            server.server.kill();
        } else {
            server.restart();
        }
    })
    .await;
    assert_eq!(app.deliver("evt_1").await, StatusCode::OK);
}

/// The server has recorded it, and the answer that would say so is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_was_lost_is_a_commit() {
    let Some(server) = RedisServer::start(&[]) else {
        return;
    };
    for fault in [Fault::CloseOnReply, Fault::DropReplies] {
        let proxy = Arc::new(Proxy::before(server.server.address));
        let url = format!("redis://{}", proxy.address);
        let store = connected(&url).await;
        let store = store.with_prefix(&format!("{fault:?}:"));
        let switch = Arc::clone(&proxy);
        let app = App::with_handler(store, move || switch.set(fault));
        // The work is done, whatever the store answers.
        assert_eq!(app.deliver("evt_1").await, StatusCode::NO_CONTENT);
        proxy.set(Fault::None);
        let status = until(StatusCode::is_success, || app.deliver("evt_1")).await;
        assert_eq!(status, StatusCode::OK, "{fault:?}");
        assert_eq!(app.runs(), 1, "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_may_start_before_its_redis() {
    let Some(mut server) = RedisServer::start(&[]) else {
        return;
    };
    let mut fastest = Duration::MAX;
    for round in 0..ROUNDS {
        let what = format!("not there yet, {round}");
        server.server.kill();
        let app = App::on(RedisStore::open(&server.url()).unwrap());
        fastest = fastest.min(refused(&app, &what).await);
        server.restart();
        well_again(&app, &what).await;
        if fastest < SENDER_WAITS {
            break;
        }
    }
    assert!(fastest < SENDER_WAITS, "{fastest:?}");
}
