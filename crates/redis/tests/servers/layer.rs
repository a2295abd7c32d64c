//! The axum layer over a Redis that fails: 503 within its budget, no run, and all well again
//! afterwards.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hookgate_redis::RedisStore;

use super::{connected, until};
use crate::support::{App, Fault, Proxy, RedisServer, needed, once_within};

/// The sender gives up after this.
const SENDER_WAITS: Duration = Duration::from_secs(5);

/// A receiver on a store with a prefix of its own, which has handled `evt_1`.
async fn handles_once(url: &str) -> App {
    let store = connected(url).await;
    let app = App::on(store.with_prefix(&format!("{url}:")));
    assert_eq!(app.deliver("evt_1").await, 204);
    assert_eq!(app.deliver("evt_1").await, 200);
    app
}

/// Returns how long it took.
async fn refused(app: &App, what: &str) -> Duration {
    let runs = app.runs();
    let before = Instant::now();
    let statuses = (0..3).map(async |event| app.deliver(&format!("{what}-{event}")).await);
    for status in join_all(statuses).await {
        assert_eq!(status, 503, "{what}");
    }
    assert_eq!(app.runs(), runs, "{what}");
    before.elapsed()
}

/// The fault comes and goes, until the sender would not have given up.
async fn refused_in_time_and_well_again(app: &App, what: &str, mut fails: impl FnMut(bool)) {
    once_within(SENDER_WAITS, what, async |round| {
        let what = format!("{what}, {round}");
        fails(true);
        let took = refused(app, &what).await;
        fails(false);
        well_again(app, &what).await;
        took
    })
    .await;
}

/// A refused delivery is handled when it arrives again, once.
async fn well_again(app: &App, what: &str) {
    let runs = app.runs();
    let id = format!("{what}-0");
    until(|status| *status / 100 == 2, || app.deliver(&id)).await;
    // A claim whose answer was lost may have left a lease behind; the event itself is handled.
    assert_eq!(app.deliver(&id).await, 200, "{what}");
    assert!(app.runs() <= runs + 1, "{what}");
}

/// Each fault of the connection, at the same time with a proxy of its own; then the server's own.
#[tokio::test(flavor = "multi_thread")]
async fn answers_503_in_time_and_recovers() {
    let durable = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut server = needed!(RedisServer::start(&durable));
    let paused = needed!(RedisServer::start(&[]));
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
    let switch = |fails| match fails {
        true => server.server.kill(),
        false => server.restart(),
    };
    refused_in_time_and_well_again(&app, "down", switch).await;
    assert_eq!(app.deliver("evt_1").await, 200);
}

/// The server has recorded it, and the answer that would say so is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_was_lost_is_a_commit() {
    let server = needed!(RedisServer::start(&[]));
    for fault in [Fault::CloseOnReply, Fault::DropReplies] {
        let proxy = Arc::new(Proxy::before(server.server.address));
        let url = format!("redis://{}", proxy.address);
        let store = connected(&url).await.with_prefix(&format!("{fault:?}:"));
        let switch = Arc::clone(&proxy);
        let app = App::with_handler(store, move || switch.set(fault));
        // The work is done, whatever the store answers.
        assert_eq!(app.deliver("evt_1").await, 204);
        proxy.set(Fault::None);
        let status = until(|status| *status / 100 == 2, || app.deliver("evt_1")).await;
        assert_eq!(status, 200, "{fault:?}");
        assert_eq!(app.runs(), 1, "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_may_start_before_its_redis() {
    let mut server = needed!(RedisServer::start(&[]));
    once_within(SENDER_WAITS, "not there yet", async |round| {
        let what = format!("not there yet, {round}");
        server.server.kill();
        let app = App::on(RedisStore::open(&server.url()).unwrap());
        let took = refused(&app, &what).await;
        server.restart();
        well_again(&app, &what).await;
        took
    })
    .await;
}
