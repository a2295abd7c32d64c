//! Tests that are the same for each store in memory.

use std::sync::Arc;
use std::time::Duration;

use hookgate::{
    DedupeStore, MemoryStore,
    clock::ManualClock,
    dedupe::{Capacity, Ownership, StoreStats},
};

use super::{clock, key, now, token};

/// Each of them, on this clock, with its name.
pub(super) fn stores(
    capacity: Capacity,
    clock: &ManualClock,
) -> Vec<(&'static str, Box<dyn DedupeStore>)> {
    let clock = || Arc::new(clock.clone());
    vec![
        (
            "MemoryStore",
            Box::new(MemoryStore::new(capacity).with_clock(clock())),
        ),
        #[cfg(feature = "moka")]
        (
            "MokaStore",
            Box::new(hookgate::dedupe::MokaStore::new(capacity.records()).with_clock(clock())),
        ),
    ]
}

pub(super) fn stats(store: &dyn DedupeStore) -> StoreStats {
    store.observe().expect("a store in memory knows itself")
}

#[test]
fn a_store_says_its_capacity_and_shows_no_record() {
    let capacity = Capacity::new(7);
    for (name, store) in stores(capacity, &clock()) {
        assert_eq!(stats(&*store).capacity, Some(7), "{name}");
        now(store.claim(&key(1), token(), Duration::from_secs(30))).unwrap();
        assert_eq!(
            format!("{store:?}"),
            format!("{name} {{ capacity: {capacity:?}, .. }}")
        );
    }
    let refusing = capacity.refusing_when_full();
    let store = MemoryStore::new(Capacity::new(7).refusing_when_full());
    assert_eq!(store.capacity(), refusing);
    assert_eq!(
        format!("{store:?}"),
        format!("MemoryStore {{ capacity: {refusing:?}, .. }}")
    );
}

/// No call asks for the event again, so only the queue can find out that the last lease has ended;
/// and the queue has been tidied.
#[test]
fn a_renewed_claim_that_nobody_asks_for_is_freed_when_its_last_lease_ends() {
    let clock = clock();
    for (name, store) in stores(Capacity::default(), &clock) {
        let (key, token, seconds) = (key(1), token(), Duration::from_secs);
        now(store.claim(&key, token, seconds(30))).unwrap();
        for _ in 0..500 {
            clock.advance(Duration::from_millis(1));
            let renewed = now(store.renew(&key, token, seconds(30)));
            assert_eq!(renewed.unwrap(), Ownership::Held, "{name}");
        }
        // All leases but the last have ended, and two calls have freed them; then the last one has.
        for (later, running) in [(29_999_500, 1), (0, 1), (500, 0)] {
            clock.advance(Duration::from_micros(later));
            assert_eq!(stats(&*store).running, running, "{name}");
        }
    }
}
