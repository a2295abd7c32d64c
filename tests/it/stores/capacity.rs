//! The records that a store in memory keeps when it is full, to the last one, and its counts.

use std::time::Duration;

use hookgate::{
    DedupeStore, MemoryStore,
    dedupe::{Capacity, ClaimToken, Claimed, EventKey, StoreErrorKind},
};

use super::both::{stats, stores};
use super::{LEASE, RETAIN, clock, finish, key, now, remembers, token};

const RECORDS: usize = 1000;

/// Claims events that are done, which leaves no trace in a store that keeps the contract.
fn read(store: &dyn DedupeStore, events: std::ops::Range<usize>) {
    for n in events {
        let claimed = now(store.claim(&key(n), token(), LEASE)).unwrap();
        assert!(
            matches!(claimed, Claimed::Done { .. }),
            "event {n}: {claimed:?}"
        );
    }
}

/// moka evicts late, unless the numbers are asked for first.
// fault S2-07: a replay after silent eviction from a full store
// fault S2-28: an authentic flood fills memory
#[test]
fn exactly_the_newest_are_remembered_also_after_each_old_one_was_read() {
    for is_asked in [true, false] {
        for (name, store) in stores(Capacity::new(RECORDS), &clock()) {
            if name == "MokaStore" && !is_asked {
                continue;
            }
            for n in 0..RECORDS {
                finish(&*store, &key(n), RETAIN);
            }
            read(&*store, 0..RECORDS);
            for n in RECORDS..RECORDS * 3 / 2 {
                finish(&*store, &key(n), RETAIN);
            }
            for _ in 0..5 {
                read(&*store, RECORDS * 3 / 4..RECORDS);
            }
            for n in RECORDS * 3 / 2..RECORDS * 2 {
                finish(&*store, &key(n), RETAIN);
            }
            if is_asked {
                let stats = stats(&*store);
                assert_eq!((stats.done, stats.evicted), (RECORDS, RECORDS as u64));
            }
            read(&*store, RECORDS..RECORDS * 2);
            let forgotten = (0..RECORDS)
                .filter(|n| !remembers(&*store, &key(*n)))
                .count();
            assert_eq!(forgotten, RECORDS, "{name}");
            // Claims of the forgotten ones have evicted none of the others.
            read(&*store, RECORDS..RECORDS * 2);
            let stats = stats(&*store);
            assert_eq!(
                (stats.done, stats.running, stats.evicted),
                (RECORDS, 0, RECORDS as u64),
                "{name}"
            );
        }
    }
}

/// With one shard exactly the capacity, with several up to an eighth more: the newest are
/// remembered at every moment.
#[test]
fn the_newest_are_remembered_at_small_and_large_capacities() {
    for records in [1, 2, 7, 100, 16_383, 16_384, 50_000, 100_000] {
        let store = MemoryStore::new(records);
        let commits = 2 * records + records / 2;
        for n in 0..commits {
            finish(&store, &key(n), RETAIN);
            let looks = n % (records / 3).max(1) == 0 || n + 1 == commits;
            if looks {
                read(&store, (n + 1).saturating_sub(records)..n + 1);
            }
        }
        let stats = store.stats();
        let most = if records < 16_384 {
            records
        } else {
            records + records / 8 + 64
        };
        assert!(
            (records..=most).contains(&stats.done),
            "{records}: {stats:?}"
        );
        assert_eq!(stats.evicted, (commits - stats.done) as u64, "{records}");
        // What is held beside the newest is remembered, too.
        let old = (0..commits - records).filter(|n| remembers(&store, &key(*n)));
        assert_eq!(old.count(), stats.done - records, "{records}");
    }
}

// fault S2-07: a replay after silent eviction from a full store
#[test]
fn the_youngest_record_forgotten_is_reported_with_its_age() {
    let clock = clock();
    for (name, store) in stores(Capacity::new(2), &clock) {
        for (n, wait) in [30, 20, 10, 5, 40].into_iter().enumerate() {
            finish(&*store, &key(n), RETAIN);
            assert!(stats(&*store).done <= 2);
            clock.advance(Duration::from_secs(wait));
        }
        // Event 0 went after 50 s, event 1 after 30 s, event 2 after 15 s.
        let counted = stats(&*store);
        assert_eq!((counted.done, counted.evicted), (2, 3), "{name}");
        assert_eq!(counted.youngest_evicted, Some(Duration::from_secs(15)));
        assert_eq!(counted.last_evicted, Some(Duration::from_secs(15)));
        assert_eq!(counted.capacity, Some(2));
        // Event 3 is evicted after 45 s: the memory reaches further again, and the lowest value
        // stays.
        finish(&*store, &key(5), RETAIN);
        let counted = stats(&*store);
        assert_eq!(counted.youngest_evicted, Some(Duration::from_secs(15)));
        assert_eq!(
            counted.last_evicted,
            Some(Duration::from_secs(45)),
            "{name}"
        );
    }
}

#[test]
fn what_has_ended_is_not_counted_as_evicted() {
    let clock = clock();
    for (name, store) in stores(Capacity::new(RECORDS), &clock) {
        for n in 0..RECORDS {
            finish(&*store, &key(n), LEASE);
        }
        clock.advance(LEASE);
        for n in 0..RECORDS * 2 {
            finish(&*store, &key(n), LEASE);
            clock.advance(LEASE);
        }
        let stats = stats(&*store);
        assert_eq!((stats.evicted, stats.youngest_evicted), (0, None), "{name}");
        assert!(stats.done <= RECORDS);
    }
}

/// A record that is removed when its retention has ended was not forgotten too early, to the
/// nanosecond.
#[test]
fn a_record_whose_retention_has_just_ended_counts_as_no_eviction() {
    let clock = clock();
    for (name, store) in stores(Capacity::new(1), &clock) {
        finish(&*store, &key(1), LEASE);
        clock.advance(LEASE);
        finish(&*store, &key(2), LEASE);
        let counted = stats(&*store);
        assert_eq!((counted.done, counted.evicted), (1, 0), "{name}");
        finish(&*store, &key(3), LEASE);
        let counted = stats(&*store);
        assert_eq!((counted.done, counted.evicted), (1, 1), "{name}");
    }
}

// fault S2-28: an authentic flood fills memory
#[test]
fn a_full_store_that_refuses_takes_exactly_as_many_as_have_ended() {
    let clock = clock();
    let store =
        MemoryStore::new(Capacity::new(RECORDS).refusing_when_full()).with_clock(clock.clone());
    let refused = || {
        let key = EventKey::new("default", "one too many");
        let claim = now(store.claim(&key, token(), LEASE));
        claim.is_err_and(|error| error.kind() == StoreErrorKind::Full)
    };
    // A part is kept, a part ends soon, and a part was claimed and never ended.
    for n in 0..RECORDS - 500 {
        finish(&store, &key(n), RETAIN);
    }
    for n in RECORDS - 500..RECORDS - 200 {
        finish(&store, &key(n), LEASE);
    }
    for n in RECORDS - 200..RECORDS {
        now(store.claim(&key(n), token(), LEASE)).unwrap();
    }
    assert!(refused());
    clock.advance(LEASE - Duration::from_nanos(1));
    assert!(refused());
    clock.advance(Duration::from_nanos(1));
    for n in RECORDS..RECORDS + 500 {
        finish(&store, &key(n), RETAIN);
    }
    assert!(refused());
    assert!((0..RECORDS - 500).all(|n| remembers(&store, &key(n))));
    assert!((RECORDS..RECORDS + 500).all(|n| remembers(&store, &key(n))));
    let stats = store.stats();
    assert_eq!((stats.done, stats.running, stats.evicted), (RECORDS, 0, 0));
}

#[test]
fn running_claims_are_held_beside_the_done_ones() {
    for (name, store) in stores(Capacity::new(RECORDS), &clock()) {
        let running: Vec<ClaimToken> = (0..RECORDS).map(|_| token()).collect();
        for (n, token) in running.iter().enumerate() {
            now(store.claim(&key(n), *token, LEASE)).unwrap();
        }
        for n in RECORDS..RECORDS * 3 {
            finish(&*store, &key(n), RETAIN);
        }
        let stats = stats(&*store);
        assert_eq!((stats.running, stats.done), (RECORDS, RECORDS), "{name}");
        for (n, token) in running.iter().enumerate() {
            let held = now(store.commit(&key(n), *token, RETAIN)).unwrap();
            assert_eq!(held, hookgate::dedupe::Ownership::Held);
        }
    }
}
