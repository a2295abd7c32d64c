//! Threads that compete for the same events: no runtime, no barriers, as fast as they can.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

use hookgate::{
    DedupeStore, MemoryStore,
    dedupe::{Capacity, Claimed, Ownership, StoreStats},
};

use super::{LEASE, RETAIN, key, now, remembers, token};

const THREADS: usize = 8;
const EVENTS: usize = 20_000;

/// Two thirds of the events are committed by the winner, one third is released each time.
fn race(store: &dyn DedupeStore) {
    let in_run: Vec<_> = (0..EVENTS).map(|_| AtomicBool::new(false)).collect();
    let runs: Vec<_> = (0..EVENTS).map(|_| AtomicUsize::new(0)).collect();
    let line = Barrier::new(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                line.wait();
                for n in 0..EVENTS {
                    let (key, token) = (key(n), token());
                    match now(store.claim(&key, token, LEASE)).unwrap() {
                        Claimed::Fresh => {}
                        Claimed::Running { .. } => continue,
                        Claimed::Done { .. } => {
                            assert_ne!(n % 3, 0, "event {n} was never committed");
                            continue;
                        }
                    }
                    assert!(
                        !in_run[n].swap(true, SeqCst),
                        "event {n} ran twice at a time"
                    );
                    runs[n].fetch_add(1, SeqCst);
                    in_run[n].store(false, SeqCst);
                    let held = if n % 3 == 0 {
                        now(store.release(&key, token))
                    } else {
                        now(store.commit(&key, token, RETAIN))
                    };
                    assert_eq!(held.unwrap(), Ownership::Held, "event {n}");
                }
            });
        }
    });
    for (n, runs) in runs.iter().enumerate() {
        let runs = runs.load(SeqCst);
        assert!(
            if n % 3 == 0 { runs >= 1 } else { runs == 1 },
            "event {n} ran {runs} times"
        );
        assert_eq!(remembers(store, &key(n)), n % 3 != 0, "event {n}");
    }
}

/// The numbers after a race in which no event is evicted.
fn assert_counted(stats: StoreStats) {
    assert_eq!(
        (stats.running, stats.done, stats.evicted),
        (0, EVENTS - EVENTS.div_ceil(3), 0)
    );
}

#[test]
fn threads_have_one_winner_an_event_in_the_memory_store() {
    for store in [
        MemoryStore::default(),
        // The third that is released needs a place for a moment, for each thread.
        MemoryStore::new(Capacity::new(EVENTS - EVENTS.div_ceil(3) + THREADS).refusing_when_full()),
    ] {
        race(&store);
        assert_counted(store.stats());
    }
}

#[cfg(feature = "moka")]
#[test]
fn threads_have_one_winner_an_event_in_the_moka_store() {
    let store = hookgate::dedupe::MokaStore::new(EVENTS);
    race(&store);
    assert_counted(store.stats());
}
