//! Both stores keep the contract, in the time of a manual clock and in real time.

use std::sync::Arc;
use std::time::Duration;

use hookgate::{
    DedupeStore, MemoryStore,
    clock::{Clock, ManualClock, SystemClock},
    dedupe::Capacity,
};
use hookgate_testing::{StoreConformance, StoreUnderTest};

use crate::stalls::{ATTEMPTS, Stalls};

/// Opens a store, if it can have this capacity.
pub(super) type Open = fn(Capacity, Arc<dyn Clock>) -> Option<Arc<dyn DedupeStore>>;

pub(super) fn memory(capacity: Capacity, clock: Arc<dyn Clock>) -> Option<Arc<dyn DedupeStore>> {
    Some(Arc::new(MemoryStore::new(capacity).with_clock(clock)))
}

fn moka(capacity: Capacity, clock: Arc<dyn Clock>) -> Option<Arc<dyn DedupeStore>> {
    if capacity.refuses_when_full() {
        return None;
    }
    let store = hookgate::dedupe::MokaStore::new(capacity.records());
    Some(Arc::new(store.with_clock(clock)))
}

pub(super) struct InManualTime<F>(pub(super) F, pub(super) ManualClock);

impl<F> StoreUnderTest for InManualTime<F>
where
    F: Fn(Capacity, Arc<dyn Clock>) -> Option<Arc<dyn DedupeStore>> + Send + Sync + 'static,
{
    async fn open(&self, capacity: Option<Capacity>) -> Option<Arc<dyn DedupeStore>> {
        (self.0)(capacity.unwrap_or_default(), Arc::new(self.1.clone()))
    }

    async fn advance(&self, time: Duration) {
        self.1.advance(time);
    }
}

struct InRealTime(Open);

/// The unit of leases and retentions, in real time.
const UNIT: Duration = Duration::from_millis(150);

impl StoreUnderTest for InRealTime {
    async fn open(&self, capacity: Option<Capacity>) -> Option<Arc<dyn DedupeStore>> {
        (self.0)(capacity.unwrap_or_default(), Arc::new(SystemClock))
    }

    async fn advance(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    fn unit(&self) -> Duration {
        UNIT
    }
}

async fn keeps_the_contract(open: Open) {
    let manual = StoreConformance::new(InManualTime(open, super::clock()));
    manual.run().await.assert_kept();
    // Where the machine stalls for half a lease of the suite, leases end early: then the result
    // does not count.
    for attempt in 1.. {
        let stalls = Stalls::watch();
        let report = StoreConformance::new(InRealTime(open)).run().await;
        let longest = stalls.longest();
        if report.broken().next().is_none() || longest < UNIT / 2 || attempt == ATTEMPTS {
            return report.assert_kept();
        }
        println!("attempt {attempt} met a stall of {longest:?}:\n{report}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_memory_store_keeps_the_contract() {
    keeps_the_contract(memory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_moka_store_keeps_the_contract() {
    keeps_the_contract(moka).await;
}

#[tokio::test]
#[should_panic(expected = "multi-thread runtime")]
async fn a_suite_that_could_not_race_says_so() {
    let suite = StoreConformance::new(InManualTime(memory, super::clock()));
    let _ = suite.run().await;
}
