//! The properties of the store over moka alone: which records it keeps, to the last one, and its counts.
#![cfg(feature = "moka")]

use std::time::Duration;

use hookgate::{ClaimToken, Claimed, DedupeStore, EventKey, MokaStore, StoreErrorKind, WhenFull};

use super::{LEASE, RETAIN, clock, finish, key, now, remembers, token};

const RECORDS: usize = 1000;

/// Claims events that are done, which leaves no trace in a store that keeps the contract.
fn read(store: &MokaStore, events: std::ops::Range<usize>) {
    for n in events {
        let claimed = now(store.claim(&key(n), token(), LEASE)).unwrap();
        assert!(
            matches!(claimed, Claimed::Done { .. }),
            "event {n}: {claimed:?}"
        );
    }
}

#[test]
fn exactly_the_newest_are_remembered_also_after_each_old_one_was_read() {
    for let_moka_catch_up in [true, false] {
        let store = MokaStore::new(RECORDS);
        for n in 0..RECORDS {
            finish(&store, &key(n), RETAIN);
        }
        read(&store, 0..RECORDS);
        for n in RECORDS..RECORDS * 3 / 2 {
            finish(&store, &key(n), RETAIN);
        }
        for _ in 0..5 {
            read(&store, RECORDS / 2..RECORDS);
        }
        for n in RECORDS * 3 / 2..RECORDS * 2 {
            finish(&store, &key(n), RETAIN);
        }
        if let_moka_catch_up {
            let stats = store.stats();
            assert_eq!((stats.done, stats.evicted), (RECORDS, RECORDS as u64));
        }
        read(&store, RECORDS..RECORDS * 2);
        let forgotten = (0..RECORDS)
            .filter(|n| !remembers(&store, &key(*n)))
            .count();
        assert_eq!(forgotten, RECORDS);
        // Claims of the forgotten ones have evicted none of the others.
        read(&store, RECORDS..RECORDS * 2);
        let stats = store.stats();
        assert_eq!(
            (stats.done, stats.running, stats.evicted),
            (RECORDS, 0, RECORDS as u64)
        );
    }
}

#[test]
fn the_youngest_record_forgotten_is_reported_with_its_age() {
    let clock = clock();
    let store = MokaStore::new(2).with_clock(clock.clone());
    for (n, wait) in [30, 20, 10, 5, 40].into_iter().enumerate() {
        finish(&store, &key(n), RETAIN);
        assert!(store.stats().done <= 2);
        clock.advance(Duration::from_secs(wait));
    }
    // Event 0 went after 50 s, event 1 after 30 s, event 2 after 15 s.
    let stats = store.stats();
    assert_eq!((stats.done, stats.evicted), (2, 3));
    assert_eq!(stats.youngest_evicted, Some(Duration::from_secs(15)));
    assert_eq!(stats.last_evicted, Some(Duration::from_secs(15)));
    assert_eq!(stats.capacity, Some(2));
    // Event 3 is evicted after 45 s: the memory reaches further again, and the lowest value stays.
    finish(&store, &key(5), RETAIN);
    let stats = store.observe().expect("a store in memory knows itself");
    assert_eq!(stats.youngest_evicted, Some(Duration::from_secs(15)));
    assert_eq!(stats.last_evicted, Some(Duration::from_secs(45)));
}

#[test]
fn what_has_ended_is_not_counted_as_evicted() {
    let clock = clock();
    let store = MokaStore::new(RECORDS).with_clock(clock.clone());
    for n in 0..RECORDS {
        finish(&store, &key(n), LEASE);
    }
    clock.advance(LEASE);
    for n in 0..RECORDS * 2 {
        finish(&store, &key(n), LEASE);
        clock.advance(LEASE);
    }
    let stats = store.stats();
    assert_eq!((stats.evicted, stats.youngest_evicted), (0, None));
    assert!(stats.done <= RECORDS);
}

#[test]
fn a_full_store_that_refuses_takes_exactly_as_many_as_have_ended() {
    let clock = clock();
    let store = MokaStore::new(RECORDS)
        .with_when_full(WhenFull::Refuse)
        .with_clock(clock.clone());
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
    let store = MokaStore::new(RECORDS);
    let running: Vec<ClaimToken> = (0..RECORDS).map(|_| token()).collect();
    for (n, token) in running.iter().enumerate() {
        now(store.claim(&key(n), *token, LEASE)).unwrap();
    }
    for n in RECORDS..RECORDS * 3 {
        finish(&store, &key(n), RETAIN);
    }
    let stats = store.stats();
    assert_eq!((stats.running, stats.done), (RECORDS, RECORDS));
    for (n, token) in running.iter().enumerate() {
        let held = now(store.commit(&key(n), *token, RETAIN)).unwrap();
        assert_eq!(held, hookgate::Ownership::Held);
    }
}
