//! The health function: the causes that make a receiver unready, and those that can't.

use std::time::Duration;

use hookgate::{
    MemoryStore, Outcome, block_on,
    clock::UnixSeconds,
    dedupe::Capacity,
    outcome::RefusalKind,
    receiver::{Admission, Health},
};

use crate::faulty::{DOWN, Fault, FaultyStore, with_faulty_store};
use crate::harness::*;
use crate::store_proxy::Call;
use crate::support;

fn reasons(health: &Health) -> Vec<&'static str> {
    health.reasons().collect()
}

#[tokio::test(start_paused = true)]
async fn an_idle_receiver_is_ready_and_says_that_nothing_has_come() {
    let harness = Harness::of(in_turn(&[204]));
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
    let harness = Harness::of(in_turn(&[502, 204]));
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
    harness.send(&Sent::event("evt_1").signed_by(FORGER)).await;
    let health = harness.receiver.health();
    assert_eq!(health.last_authentic.unwrap().as_i64(), 1_763_690_010);
    assert_eq!(health.since_last_accepted(), Some(Duration::from_secs(7)));
    // Found done.
    harness.send(&Sent::event("evt_1")).await;
    let health = harness.receiver.health();
    assert_eq!(health.since_last_accepted(), Some(Duration::ZERO));
}

#[tokio::test]
async fn a_clock_that_was_set_back_gives_no_age_before_zero() {
    let clock = support::manual();
    let guarded = support::Guarded::by(support::receiver().clock(clock.clone()));
    let sent = support::Sent::at(support::NOW, support::event("evt_1"));
    assert_eq!(guarded.status(&sent).await, 204);
    clock.set_wall(UnixSeconds::new(support::NOW - 500));
    let age = guarded.receiver.health().since_last_accepted();
    assert_eq!(age, Some(Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_receiver_without_a_free_permit_is_unready_until_a_run_ends() {
    let harness = Harness::new(|builder, _| builder.max_runs(2), |_, _| ok_after(20));
    let first = harness.begin(&Sent::event("evt_1")).await;
    assert!(harness.receiver.health().is_ready());
    let second = harness.begin(&Sent::event("evt_2")).await;
    let health = harness.receiver.health();
    assert_eq!(reasons(&health), ["no_permit_free"]);
    assert_eq!((health.runs, health.max_runs), (2, 2));
    assert_eq!(health.to_string(), "not ready: no_permit_free");
    // It behaves as it reports: the next one is refused.
    assert_eq!(harness.status("evt_3").await, 503);
    let refused = Outcome::Refused(RefusalKind::NoPermitFree);
    assert_eq!(harness.told.last_answer(), refused);
    pass(21_000).await;
    assert!(harness.receiver.health().is_ready());
    let _ = (first.await, second.await);
}

#[tokio::test(start_paused = true)]
async fn a_draining_receiver_is_unready_for_good() {
    let harness = Harness::of(in_turn(&[204]));
    harness.receiver.drain(Duration::from_secs(1)).await;
    let health = harness.receiver.health();
    assert!(health.draining);
    assert_eq!(reasons(&health), ["draining"]);
}

#[tokio::test(start_paused = true)]
async fn unauthentic_deliveries_make_no_receiver_unready() {
    // One permit, and a store that fails every call: neither is touched.
    let harness = Harness::new(
        |builder, clock| {
            let store = FaultyStore::new(clock);
            store.set_all(DOWN);
            builder.store(store).max_runs(1)
        },
        in_turn(&[204]),
    );
    for number in 0..200 {
        let forged = Sent::event("evt_1").signed_by(FORGER);
        harness
            .send(&forged.aged([0, 301, -301, 0][number % 4]))
            .await;
        assert!(harness.receiver.health().is_ready());
    }
    // Bodies that never end, all at once.
    let mut stalled = Vec::new();
    for _ in 0..50 {
        let request = Sent::event("evt_1").request(&harness.clock);
        stalled.push(tokio::spawn(harness.ask(request.map(|_| stalled_body()))));
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
    let (harness, store) = with_faulty_store(in_turn(&[204]));
    store.set_all(DOWN);
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
    store.set_all(Fault::None);
    assert!(!one_more().await);
    store.set_all(DOWN);
    assert!(!one_more().await);
}

// fault F16: a settlement that the database refuses for good holds its worker for ten minutes; a database whose encoding has no room for an id refuses it until the sender gives up
#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_or_is_too_late_is_failing_and_one_that_refuses_is_not() {
    let too_slow = Outcome::Refused(RefusalKind::StoreTooSlow);
    let unavailable = Outcome::Refused(RefusalKind::StoreUnavailable);
    for (fault, times, outcome, fails) in [
        (Fault::Hangs, 3, too_slow, true),
        // The claim lands after its request, and is released.
        (Fault::Slow(1_500), 3, too_slow, true),
        (Fault::Slow(500), 3, Outcome::Handled, false),
        (Fault::Refuses, 9, unavailable, false),
    ] {
        let (harness, store) = with_faulty_store(in_turn(&[204]));
        store.set(Call::Claim, fault);
        for number in 0..times {
            assert!(harness.receiver.health().is_ready(), "{fault:?}");
            let status = harness.status(&format!("evt_{number}")).await;
            assert_eq!(status == 204, outcome == Outcome::Handled, "{fault:?}");
            assert_eq!(harness.told.last_answer(), outcome, "{fault:?}");
            pass(2_000).await;
        }
        let claims_left = usize::from(fault == Fault::Hangs) * times;
        assert_eq!(harness.receiver.runs(), claims_left, "{fault:?}");
        assert_eq!(harness.receiver.health().store_failing, fails, "{fault:?}");
        assert_eq!(harness.receiver.health().is_ready(), !fails, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_is_given_up_on_counts_when_it_is() {
    let (harness, store) = with_faulty_store(in_turn(&[204]));
    store.set(Call::Commit, Fault::Hangs);
    for number in 0..3 {
        assert_eq!(harness.status(&format!("evt_{number}")).await, 204);
    }
    assert!(harness.receiver.health().is_ready());
    pass(31_000).await;
    assert!(harness.receiver.health().store_failing);
}

#[test]
fn commits_and_releases_that_fail_count_without_a_layer_too() {
    let store = FaultyStore::new(&support::manual());
    let receiver = support::receiver().clock(support::manual());
    let receiver = receiver.store(store.clone()).build().unwrap();
    let claim = |id| {
        let sent = support::Sent::at(support::NOW, support::event(id));
        match block_on(receiver.admit(&sent.delivered_to(&receiver))).unwrap() {
            Admission::Fresh(claim) => claim,
            other => panic!("{other:?}"),
        }
    };
    let claims = ["evt_1", "evt_2", "evt_3"].map(claim);
    store.set_all(DOWN);
    let [committed, released, renewed] = claims;
    assert!(block_on(committed.commit()).is_err());
    assert!(block_on(released.release()).is_err());
    assert!(!receiver.health().store_failing);
    assert!(block_on(renewed.renew()).is_err());
    assert!(receiver.health().store_failing);
    // The handler of the first one had succeeded, recorded or not.
    assert!(receiver.health().last_accepted.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_full_store_does_not_count_as_failing() {
    let harness = Harness::new(
        |builder, clock: &TokioClock| {
            let capacity = Capacity::new(1).refusing_when_full();
            builder.store(MemoryStore::new(capacity).with_clock(clock.clone()))
        },
        in_turn(&[204]),
    );
    for number in 0..9 {
        harness.status(&format!("evt_{number}")).await;
    }
    let full = Outcome::Refused(RefusalKind::StoreFull);
    assert_eq!(harness.told.last_answer(), full);
    assert!(harness.receiver.health().is_ready());
}
