//! The health function: the causes that make a receiver unready, and those that can't.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use hookgate::{
    MemoryStore, Outcome, Receiver, Secret, block_on,
    clock::ManualClock,
    dedupe::{Capacity, StoreError, StoreErrorKind, StoreFuture},
    outcome::RefusalKind,
    receiver::Health,
};
use http::StatusCode;
use tokio::time::sleep;

use crate::harness::{Harness, SECRET, Sent, TokioClock, pass, stalled_body};
use crate::store_proxy::{Call, StoreProxy, store_proxy};
use crate::support;

const OK: StatusCode = StatusCode::NO_CONTENT;

fn reasons(health: &Health) -> Vec<&'static str> {
    health.reasons().collect()
}

/// A `MemoryStore` that can be set to fail.
#[derive(Clone, Debug, Default)]
struct SwitchableStore(Arc<(MemoryStore, AtomicU8)>);

const WELL: u8 = 0;
const DOWN: u8 = 1;
const HANGING: u8 = 2;

impl SwitchableStore {
    fn is_now(&self, mood: u8) {
        self.0.1.store(mood, Ordering::SeqCst);
    }
}

impl StoreProxy for SwitchableStore {
    fn pass<'a, T: Send + Unpin + 'static>(
        &'a self,
        _: Call,
        call_inner: impl FnOnce(&'a MemoryStore) -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        match self.0.1.load(Ordering::SeqCst) {
            DOWN => StoreFuture::ready(Err(StoreError::new(StoreErrorKind::Unavailable))),
            HANGING => StoreFuture::boxed(std::future::pending()),
            _ => call_inner(&self.0.0),
        }
    }
}

store_proxy!(SwitchableStore);

fn moody() -> (SwitchableStore, Harness) {
    let store = SwitchableStore::default();
    let own = store.clone();
    let harness = Harness::new(move |builder, _| builder.store(own), |_, _| async { OK });
    (store, harness)
}

#[tokio::test(start_paused = true)]
async fn an_idle_receiver_is_ready_and_says_that_nothing_has_come() {
    let harness = Harness::of(|_, _| async { OK });
    pass(3_600_000).await;
    let health = harness.receiver.health();
    assert!(health.is_ready());
    assert_eq!(health.last_authentic, None);
    assert_eq!(health.since_last_accepted(), None);
    assert_eq!(health.started.as_i64(), 1_763_690_000);
    assert_eq!(health.now.as_i64(), 1_763_693_600);
}

#[tokio::test(start_paused = true)]
async fn the_last_accepted_delivery_has_an_age() {
    let harness = Harness::of(|_, run| async move {
        if run == 1 {
            StatusCode::BAD_GATEWAY
        } else {
            OK
        }
    });
    pass(10_000).await;
    // Failed: authentic, and not accepted.
    harness.send(&Sent::event("evt_1")).await;
    let health = harness.receiver.health();
    assert_eq!(health.last_authentic.unwrap().as_i64(), 1_763_690_010);
    assert_eq!(health.last_accepted, None);
    // Handled.
    harness.send(&Sent::event("evt_1")).await;
    pass(7_000).await;
    let health = harness.receiver.health();
    assert_eq!(health.since_last_accepted(), Some(Duration::from_secs(7)));
    // Forged: neither.
    let forged = Sent {
        secret: "whsec_made_up_by_somebody_else",
        ..Sent::event("evt_1")
    };
    harness.send(&forged).await;
    let health = harness.receiver.health();
    assert_eq!(health.last_authentic.unwrap().as_i64(), 1_763_690_010);
    assert_eq!(health.since_last_accepted(), Some(Duration::from_secs(7)));
    // Found done.
    harness.send(&Sent::event("evt_1")).await;
    let health = harness.receiver.health();
    assert_eq!(health.since_last_accepted(), Some(Duration::ZERO));
}

#[test]
fn a_clock_that_was_set_back_gives_no_age_before_zero() {
    let clock = support::manual();
    let receiver = support::receiver().clock(clock.clone()).build().unwrap();
    let probe = support::Probe::new();
    let app = support::app(&receiver, &probe);
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let sent = support::Sent::at(support::NOW, support::event("evt_1"));
    runtime.block_on(support::ask(&app, &sent));
    clock.set_wall(hookgate::clock::UnixSeconds::new(support::NOW - 500));
    assert_eq!(
        receiver.health().since_last_accepted(),
        Some(Duration::ZERO)
    );
}

#[tokio::test(start_paused = true)]
async fn a_receiver_without_a_free_permit_is_unready_until_a_run_ends() {
    let harness = Harness::new(
        |builder, _| builder.max_runs(2),
        |_, _| async {
            sleep(Duration::from_secs(20)).await;
            OK
        },
    );
    let first = harness.begin(&Sent::event("evt_1")).await;
    assert!(harness.receiver.health().is_ready());
    let second = harness.begin(&Sent::event("evt_2")).await;
    let health = harness.receiver.health();
    assert_eq!(reasons(&health), ["no_permit_free"]);
    assert_eq!((health.runs, health.max_runs), (2, 2));
    assert_eq!(health.to_string(), "not ready: no_permit_free");
    // It behaves as it reports: the next one is refused.
    let third = harness.send(&Sent::event("evt_3")).await;
    assert_eq!(third.status(), 503);
    assert_eq!(
        harness.told.last_answer(),
        Outcome::Refused(RefusalKind::NoPermitFree)
    );
    pass(21_000).await;
    assert!(harness.receiver.health().is_ready());
    let _ = (first.await, second.await);
}

#[tokio::test(start_paused = true)]
async fn a_draining_receiver_is_unready_for_good() {
    let harness = Harness::of(|_, _| async { OK });
    harness.receiver.drain(Duration::from_secs(1)).await;
    let health = harness.receiver.health();
    assert!(health.draining);
    assert_eq!(reasons(&health), ["draining"]);
}

#[tokio::test(start_paused = true)]
async fn unauthentic_deliveries_make_no_receiver_unready() {
    // One permit, and a store that fails every call: neither is touched.
    let store = SwitchableStore::default();
    store.is_now(DOWN);
    let harness = Harness::new(
        move |builder, _| builder.store(store).max_runs(1),
        |_, _| async { OK },
    );
    for number in 0..200 {
        let sent = Sent {
            secret: "whsec_made_up_by_somebody_else",
            age: [0, 301, -301, 0][number % 4],
            ..Sent::event("evt_1")
        };
        harness.send(&sent).await;
        assert!(harness.receiver.health().is_ready());
    }
    // Bodies that never end, all at once.
    let mut stalled = Vec::new();
    for _ in 0..50 {
        let request = Sent::event("evt_1").request(&harness.clock);
        let request = request.map(|_| stalled_body());
        let answer = tower::ServiceExt::oneshot(harness.app.clone(), request);
        stalled.push(tokio::spawn(answer));
    }
    pass(100).await;
    let health = harness.receiver.health();
    assert!(health.is_ready());
    assert_eq!(health.runs, 0);
    assert_eq!(health.last_authentic, None);
    for request in stalled {
        request.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_fails_after_three_failures_in_a_row_and_for_thirty_seconds() {
    let (store, harness) = moody();
    store.is_now(DOWN);
    let mut number = 0;
    let mut one_more = async || {
        number += 1;
        harness.send(&Sent::event(&format!("evt_{number}"))).await;
        harness.receiver.health().store_failing
    };
    assert!(!one_more().await);
    assert!(!one_more().await);
    assert!(one_more().await);
    assert_eq!(reasons(&harness.receiver.health()), ["store_failing"]);
    // A replica that gets no deliveries any more must become ready again by itself.
    pass(29_000).await;
    assert!(harness.receiver.health().store_failing);
    pass(1_500).await;
    assert!(harness.receiver.health().is_ready());
    // Still down: the first failure shows it at once.
    assert!(one_more().await);
    // Back: the first success shows it at once.
    store.is_now(WELL);
    assert!(!one_more().await);
    store.is_now(DOWN);
    assert!(!one_more().await);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_is_failing_too() {
    let (store, harness) = moody();
    store.is_now(HANGING);
    for number in 0..3 {
        assert!(harness.receiver.health().is_ready());
        let answer = harness.send(&Sent::event(&format!("evt_{number}"))).await;
        assert_eq!(answer.status(), 503);
    }
    assert_eq!(reasons(&harness.receiver.health()), ["store_failing"]);
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_is_given_up_on_counts_when_it_is() {
    let store = SwitchableStore::default();
    let [own, handlers] = [store.clone(), store.clone()];
    let harness = Harness::new(
        move |builder, _| builder.store(own),
        move |_, _| {
            handlers.is_now(HANGING);
            async { OK }
        },
    );
    for number in 0..3 {
        store.is_now(WELL);
        let answer = harness.send(&Sent::event(&format!("evt_{number}"))).await;
        assert_eq!(answer.status(), 204);
    }
    assert!(harness.receiver.health().is_ready());
    pass(31_000).await;
    assert!(harness.receiver.health().store_failing);
}

#[test]
fn commits_and_releases_that_fail_count_without_a_layer_too() {
    let store = SwitchableStore::default();
    let receiver = Receiver::builder()
        .secret(Secret::new(SECRET).unwrap())
        .store(store.clone())
        .clock(ManualClock::at(hookgate::clock::UnixSeconds::new(
            support::NOW,
        )))
        .build()
        .unwrap();
    let claim = |id| {
        store.is_now(WELL);
        let delivery = recognise(&receiver, id);
        let Ok(hookgate::receiver::Admission::Fresh(claim)) = block_on(receiver.admit(&delivery))
        else {
            panic!("not fresh");
        };
        claim
    };
    let claims = ["evt_1", "evt_2", "evt_3"].map(claim);
    store.is_now(DOWN);
    let [committed, released, renewed] = claims;
    assert!(block_on(committed.commit()).is_err());
    assert!(block_on(released.release()).is_err());
    assert!(!receiver.health().store_failing);
    assert!(block_on(renewed.renew()).is_err());
    assert!(receiver.health().store_failing);
    // The handler of the first one had succeeded, recorded or not.
    assert!(receiver.health().last_accepted.is_some());
}

fn recognise(receiver: &Receiver, id: &str) -> hookgate::Delivery {
    let secret = Secret::new(SECRET).unwrap();
    let timestamp =
        hookgate::verify::Timestamp::at(hookgate::clock::UnixSeconds::new(support::NOW)).unwrap();
    let body = support::event(id);
    let signature =
        hookgate::verify::Signature::sign(&secret, &timestamp, body.as_bytes()).to_header_value();
    let headers = [
        ("x-service-timestamp", timestamp.as_str()),
        ("x-service-signature", &signature),
    ];
    let head = hookgate::receiver::RequestHead::new("POST", headers);
    let mut received = receiver.check_head(&head).unwrap();
    received.push(body.into()).unwrap();
    receiver.verify(received, &head).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_full_store_does_not_count_as_failing() {
    let harness = Harness::new(
        |builder, clock: &TokioClock| {
            let capacity = Capacity::new(1).refusing_when_full();
            builder.store(MemoryStore::new(capacity).with_clock(clock.clone()))
        },
        |_, _| async { OK },
    );
    for number in 0..9 {
        harness.send(&Sent::event(&format!("evt_{number}"))).await;
    }
    assert_eq!(
        harness.told.last_answer(),
        Outcome::Refused(RefusalKind::StoreFull)
    );
    assert!(harness.receiver.health().is_ready());
}

/// A store that refuses each claim for good, as a database does with a text that its encoding has no room for.
#[derive(Debug)]
struct Refusing;

impl StoreProxy for Refusing {
    fn pass<'a, T: Send + Unpin + 'static>(
        &'a self,
        _: Call,
        _: impl FnOnce(&'a MemoryStore) -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        StoreFuture::ready(Err(StoreError::new(StoreErrorKind::Refused)))
    }
}

store_proxy!(Refusing);

// fault F16: a settlement that the database refuses for good holds its worker for ten minutes; a database whose encoding has no room for an id refuses it until the sender gives up
#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_some_events_for_good_does_not_count_as_failing() {
    let harness = Harness::new(
        |builder, _: &TokioClock| builder.store(Refusing),
        |_, _| async { OK },
    );
    for number in 0..9 {
        let sent = Sent::event(&format!("evt_{number}"));
        assert_eq!(harness.send(&sent).await.status(), 503);
    }
    assert_eq!(
        harness.told.last_answer(),
        Outcome::Refused(RefusalKind::StoreUnavailable)
    );
    assert!(harness.receiver.health().is_ready());
}

/// A `MemoryStore` behind a slow wire: its claims come after this many milliseconds, and hold.
#[derive(Debug)]
struct Slow(MemoryStore, u64);

impl StoreProxy for Slow {
    fn pass<'a, T: Send + Unpin + 'static>(
        &'a self,
        call: Call,
        call_inner: impl FnOnce(&'a MemoryStore) -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        if call != Call::Claim {
            return call_inner(&self.0);
        }
        StoreFuture::boxed(async move {
            sleep(Duration::from_millis(self.1)).await;
            call_inner(&self.0).await
        })
    }
}

store_proxy!(Slow);

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_too_late_does_not_say_that_the_store_is_well() {
    for (millis, status, fails) in [(1_500, 503, true), (500, 204, false)] {
        let harness = Harness::new(
            |builder, clock| {
                let local = MemoryStore::default().with_clock(clock.clone());
                builder.store(Slow(local, millis))
            },
            |_, _| async { OK },
        );
        for number in 0..3 {
            assert!(harness.receiver.health().is_ready());
            let answer = harness.send(&Sent::event(&format!("evt_{number}"))).await;
            assert_eq!(answer.status(), status);
            // The claim lands, and is released.
            pass(2_000).await;
        }
        assert_eq!(harness.receiver.health().store_failing, fails, "{millis}");
        assert_eq!(harness.receiver.runs(), 0);
    }
}
