//! The machine's clock is set by an hour, forward and back, under a process that works.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use axum::http::StatusCode;
use hookgate::{
    Delivery, Receiver,
    sink::{Accepted, Sink},
};
use hookgate_inbox::{Backoff, Inbox, Workers};
use hookgate_sqlite::open_inbox;

use super::{RETAIN, delivery, receiver, until};
use crate::support::{Child, Folder, Skew, given, needed};

const HOUR: u64 = 3_600;

#[test]
fn an_hour_forward_and_back_loses_nothing() {
    if let Some(folder) = given() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build();
        return runtime.unwrap().block_on(work(Path::new(&folder)));
    }
    let folder = Folder::new();
    let skew = needed!(Skew::within(folder.path()));
    let environment = skew.environment(&[]);
    let environment: Vec<_> = environment
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .collect();
    let mut child = Child::start_under(
        &[],
        &environment,
        "clock::an_hour_forward_and_back_loses_nothing",
        folder.path().to_str().unwrap(),
    );
    assert!(child.wait().success());
}

/// How often each event was handled to its end, and at a time.
#[derive(Default)]
struct Runs {
    ended: HashMap<String, u32>,
    running: HashMap<String, u32>,
    at_once: u32,
}

async fn work(folder: &Path) {
    let skew = Skew::within(folder).unwrap();
    let inbox = open_inbox(folder.join("inbox.db")).unwrap();
    let receiver = receiver();
    let runs = Arc::new(Mutex::new(Runs::default()));
    let seen = Arc::clone(&runs);
    let workers = Workers::new(&inbox)
        .concurrency(8)
        .lease(Duration::from_secs(3))
        .poll_interval(Duration::from_millis(500))
        .backoff(Backoff::exponential(
            Duration::from_secs(4),
            Duration::from_secs(4),
        ))
        .start_handler(async move |delivery: Delivery| {
            let id = delivery.event_id().to_owned();
            let failed_before = {
                let mut runs = seen.lock().unwrap();
                let running = runs.running.entry(id.clone()).or_default();
                *running += 1;
                let running = *running;
                runs.at_once = runs.at_once.max(running);
                runs.ended.contains_key(&id)
            };
            // One runs longer than its lease, which is renewed across the jump; the other one waits
            // for its second try by then.
            let time = if id.contains("fails") { 1 } else { 4 };
            tokio::time::sleep(Duration::from_secs(time)).await;
            let mut runs = seen.lock().unwrap();
            *runs.running.get_mut(&id).unwrap() -= 1;
            *runs.ended.entry(id.clone()).or_default() += 1;
            if id.contains("fails") && !failed_before {
                StatusCode::INTERNAL_SERVER_ERROR
            } else {
                StatusCode::OK
            }
        })
        .unwrap();
    for (round, jump) in [0, 3_600, 0, -3_600, 0].into_iter().enumerate() {
        for name in ["works", "fails"] {
            accept(&inbox, &receiver, &format!("evt_{name}_{round}")).await;
        }
        until("one runs, and one has failed", async || {
            let runs = runs.lock().unwrap();
            let runs_now = |name: &str| runs.running.contains_key(&format!("evt_{name}_{round}"));
            runs_now("works") && runs.ended.contains_key(&format!("evt_fails_{round}"))
        })
        .await;
        until("its back-off is written", async || {
            inbox.stats().await.unwrap().retrying > 0
        })
        .await;
        set(&skew, jump);
    }
    until("all are done", async || {
        inbox.stats().await.unwrap().done == 10
    })
    .await;
    workers.shutdown(Duration::MAX).await;
    {
        let runs = runs.lock().unwrap();
        // In one process no jump makes a job run beside itself, whatever its lease is by the clock.
        assert_eq!(runs.at_once, 1);
        for (id, times) in &runs.ended {
            let expected = if id.contains("fails") { 2 } else { 1 };
            assert_eq!(*times, expected, "{id}");
        }
    }
    // A done event is known at any time.
    set(&skew, 3_600);
    for round in 0..5 {
        let again = delivery(&receiver, &format!("evt_works_{round}"));
        let accepted = inbox.accept(&again, RETAIN).await.unwrap();
        assert_eq!(accepted, Accepted::Duplicate { same_body: true });
    }
}

async fn accept(inbox: &Inbox, receiver: &Receiver, id: &str) {
    let accepted = inbox.accept(&delivery(receiver, id), RETAIN).await.unwrap();
    assert_eq!(accepted, Accepted::New);
}

fn set(skew: &Skew, jump: i64) {
    let seconds = || {
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap()
            .as_secs()
    };
    skew.set(0);
    let real = seconds();
    skew.set(jump);
    let (now, expected) = (seconds(), real.checked_add_signed(jump).unwrap());
    assert!(now.abs_diff(expected) < HOUR / 2, "the clock is not set");
}
