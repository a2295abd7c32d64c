//! A lease is counted from when the claim was asked for, however late the answer comes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookgate::{
    MemoryStore, Outcome, block_on,
    clock::ManualClock,
    dedupe::{StoreError, StoreErrorKind, StoreFuture},
    outcome::RefusalKind,
    receiver::Admission,
};
use tokio::time::{Instant, sleep};

use crate::harness::{Harness, OK, Sent, TokioClock, pass, replayed};
use crate::store_proxy::{Call, StoreProxy, store_proxy};
use crate::support;

/// Claims at once, and says so late: the nth claim after the nth of these milliseconds. Notes when
/// it was asked to renew.
#[derive(Debug)]
struct RepliesLate {
    inner: MemoryStore,
    late: Vec<u64>,
    claims: AtomicUsize,
    start: Instant,
    renewals: Mutex<Vec<u128>>,
}

impl RepliesLate {
    fn new(clock: &TokioClock, late: &[u64]) -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryStore::default().with_clock(clock.clone()),
            late: late.to_vec(),
            claims: AtomicUsize::new(0),
            start: Instant::now(),
            renewals: Mutex::default(),
        })
    }

    fn renewals(&self) -> Vec<u128> {
        self.renewals.lock().unwrap().clone()
    }
}

impl StoreProxy for RepliesLate {
    fn pass<'a, T: Send + Unpin + 'static>(
        &'a self,
        call: Call,
        call_inner: impl FnOnce(&'a MemoryStore) -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        if call == Call::Renew {
            let at = self.start.elapsed().as_millis();
            self.renewals.lock().unwrap().push(at);
        }
        let answer = call_inner(&self.inner);
        if call != Call::Claim {
            return answer;
        }
        let nth = self.claims.fetch_add(1, Ordering::SeqCst);
        let late = self.late.get(nth).copied().unwrap_or_default();
        StoreFuture::boxed(async move {
            sleep(Duration::from_millis(late)).await;
            answer.await
        })
    }
}

store_proxy!(RepliesLate);

/// A receiver with this lease whose handler takes so long, before a store that is late like this.
fn late(lease: u64, handler: u64, late: &[u64]) -> (Harness, Arc<RepliesLate>) {
    let mut store = None;
    let harness = Harness::new(
        |builder, clock| {
            let own = RepliesLate::new(clock, late);
            store = Some(Arc::clone(&own));
            builder.store(own).lease(Duration::from_millis(lease))
        },
        move |_, _| async move {
            sleep(Duration::from_millis(handler)).await;
            OK
        },
    );
    (harness, store.unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_comes_when_its_lease_has_ended_runs_nothing() {
    // To the millisecond: a lease granted at 0 has ended at 500.
    for millis in [500, 501, 900] {
        let (harness, _) = late(500, 0, &[millis]);
        let first = harness.begin(&Sent::event("evt_1")).await;
        // Its lease over, a copy may have the event, and has handled it when the first answer
        // comes.
        sleep(Duration::from_millis(499)).await;
        assert_eq!(harness.status("evt_1").await, 204);
        assert_eq!(first.await.unwrap().status(), 503);
        assert_eq!(harness.runs(), 1, "{millis}");
        let answers = harness.told.answers();
        let too_slow = Outcome::Refused(RefusalKind::StoreTooSlow);
        assert!(answers.contains(&Outcome::Handled), "{answers:?}");
        assert!(answers.contains(&too_slow), "{answers:?}");
        // The operator gets the reason, and the copy's record stays.
        assert_eq!(harness.told.failed.lock().unwrap().len(), 1);
        assert!(replayed(&harness.send(&Sent::event("evt_1")).await));
        assert_eq!((harness.runs(), harness.receiver.runs()), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_comes_within_its_lease_runs() {
    let (harness, _) = late(500, 0, &[499]);
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
    assert!(replayed(&harness.send(&Sent::event("evt_1")).await));
    assert_eq!(harness.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_whose_claims_all_come_too_late_is_a_failing_one() {
    let (harness, _) = late(500, 0, &[600, 600, 600]);
    for number in 0..3 {
        assert!(harness.receiver.health().is_ready());
        assert_eq!(harness.status(&format!("evt_{number}")).await, 503);
        pass(1_000).await;
    }
    assert!(harness.receiver.health().store_failing);
    assert_eq!(harness.send(&Sent::event("evt_3")).await.status(), OK);
    assert!(harness.receiver.health().is_ready());
}

#[tokio::test(start_paused = true)]
async fn a_late_claim_is_renewed_a_third_of_its_lease_after_it_was_asked_for() {
    // Asked for at 0, answered at 810: overdue. Renewed at once, and then at each third.
    let (harness, store) = late(900, 1_000, &[810]);
    let first = harness.begin(&Sent::event("evt_1")).await;
    // When the first lease would have ended, a copy finds it held.
    sleep(Duration::from_millis(950)).await;
    assert!(replayed(&harness.send(&Sent::event("evt_1")).await));
    assert_eq!(first.await.unwrap().status(), OK);
    assert_eq!(store.renewals(), [810, 1_110, 1_410, 1_710]);
    assert_eq!(harness.runs(), 1);

    // Answered at 100, the first third ends at 300 and not at 400.
    let (harness, store) = late(900, 450, &[100]);
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
    assert_eq!(store.renewals(), [300]);
}

/// The steps themselves, without a runtime: time passes on the receiver's clock while the store is
/// asked.
#[test]
fn without_a_runtime_too_a_claim_that_comes_too_late_is_released_and_refused() {
    #[derive(Debug)]
    struct Slow(MemoryStore, ManualClock, Duration);
    impl StoreProxy for Slow {
        fn pass<'a, T: Send + Unpin + 'static>(
            &'a self,
            call: Call,
            call_inner: impl FnOnce(&'a MemoryStore) -> StoreFuture<'a, T> + Send + 'a,
        ) -> StoreFuture<'a, T> {
            if call == Call::Claim {
                self.1.advance(self.2);
            }
            call_inner(&self.0)
        }
    }
    store_proxy!(Slow);

    for (millis, held) in [(999, true), (1_000, false)] {
        let clock = support::manual();
        // Its clock is another one: the claim exists there when the answer comes.
        let local = MemoryStore::default().with_clock(support::manual());
        let store = Slow(local.clone(), clock.clone(), Duration::from_millis(millis));
        let builder = support::receiver().store(store).clock(clock);
        let receiver = builder.lease(Duration::from_secs(1)).build().unwrap();
        let sent = support::Sent::at(support::NOW, support::event("evt_1"));
        let admitted = block_on(receiver.admit(&sent.delivered_to(&receiver)));
        assert_eq!(local.stats().running, usize::from(held), "{millis}");
        if held {
            assert!(matches!(admitted, Ok(Admission::Fresh(_))));
            continue;
        }
        let refusal = admitted.unwrap_err();
        assert_eq!(refusal.kind(), RefusalKind::StoreTooSlow);
        let source = std::error::Error::source(&refusal).unwrap();
        let source = source.downcast_ref::<StoreError>().unwrap();
        assert_eq!(source.kind(), StoreErrorKind::TimedOut);
        assert_eq!(receiver.runs(), 0);
    }
}
