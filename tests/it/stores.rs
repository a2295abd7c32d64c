//! The stores of this crate: tests that the conformance suite can't contain. The suite itself is
//! run by the tests of `hookgate-testing`.

mod both;
mod capacity;
mod races;
mod random;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hookgate::{
    DedupeStore, MemoryStore,
    clock::{ManualClock, UnixSeconds},
    dedupe::{
        Capacity, ClaimToken, Claimed, EventKey, Ownership, StoreError, StoreErrorKind,
        StoreFuture, StoreStats,
    },
};

const LEASE: Duration = Duration::from_secs(30);
const RETAIN: Duration = Duration::from_secs(48 * 3600);

fn clock() -> ManualClock {
    ManualClock::at(UnixSeconds::new(1_763_690_000))
}

/// Each process draws tokens that no other one draws.
// fault F6: two processes draw the same claim tokens
#[test]
fn processes_draw_different_tokens() {
    const ASKED: &str = "HOOKGATE_TEST_DRAWS_A_TOKEN";
    let drawn = || format!("{:?}", ClaimToken::new(b"{}"));
    if std::env::var_os(ASKED).is_some() {
        println!("\n{}", drawn());
        return;
    }
    let child = || {
        let this = std::env::current_exe().unwrap();
        let ran = std::process::Command::new(this)
            .args(["--exact", "stores::processes_draw_different_tokens"])
            .arg("--nocapture")
            .env(ASKED, "1")
            .output()
            .unwrap();
        let said = String::from_utf8(ran.stdout).unwrap();
        let token = said.lines().find(|line| line.starts_with("ClaimToken("));
        token.expect(&said).to_owned()
    };
    let tokens = [drawn(), child(), child()];
    assert_ne!(tokens[0], tokens[1]);
    assert_ne!(tokens[0], tokens[2]);
    assert_ne!(tokens[1], tokens[2]);
}

fn key(number: usize) -> EventKey {
    EventKey::new("default", &format!("evt_{number}"))
}

/// A token for a body of its own, so that the mark in a done record tells which token committed it.
fn token() -> ClaimToken {
    static BODIES: AtomicU64 = AtomicU64::new(0);
    ClaimToken::new(&BODIES.fetch_add(1, Ordering::Relaxed).to_le_bytes())
}

/// The answer of a store that answers at once.
fn now<T: Unpin>(call: StoreFuture<'_, T>) -> Result<T, StoreError> {
    match pin!(call).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("a store in memory answers at once"),
    }
}

fn finish(store: &dyn DedupeStore, key: &EventKey, retain: Duration) -> ClaimToken {
    let token = token();
    assert_eq!(now(store.claim(key, token, LEASE)).unwrap(), Claimed::Fresh);
    assert_eq!(
        now(store.commit(key, token, retain)).unwrap(),
        Ownership::Held
    );
    token
}

/// Whether the event is remembered, without leaving a claim behind.
fn remembers(store: &dyn DedupeStore, key: &EventKey) -> bool {
    let token = token();
    match now(store.claim(key, token, LEASE)).unwrap() {
        Claimed::Done { .. } => true,
        Claimed::Fresh => {
            assert_eq!(now(store.release(key, token)).unwrap(), Ownership::Held);
            false
        }
        running => panic!("{running:?}"),
    }
}

// fault S2-28: an authentic flood fills memory
#[test]
fn the_record_that_was_committed_first_is_evicted_whatever_its_retention() {
    let clock = clock();
    let store = MemoryStore::new(3).with_clock(Arc::new(clock.clone()));
    finish(&store, &key(0), RETAIN);
    clock.advance(Duration::from_secs(10));
    finish(&store, &key(1), Duration::from_secs(60));
    clock.advance(Duration::from_secs(1));
    finish(&store, &key(2), RETAIN);
    clock.advance(Duration::from_secs(6));
    finish(&store, &key(3), RETAIN);
    assert_eq!(
        (0..4)
            .map(|n| remembers(&store, &key(n)))
            .collect::<Vec<_>>(),
        [false, true, true, true]
    );
    let stats = store.stats();
    assert_eq!((stats.done, stats.running, stats.evicted), (3, 0, 1));
    assert_eq!(stats.youngest_evicted, Some(Duration::from_secs(17)));
    finish(&store, &key(4), RETAIN);
    let stats = store.observe().expect("a store in memory knows itself");
    assert_eq!(stats.youngest_evicted, Some(Duration::from_secs(7)));
    assert_eq!(stats.last_evicted, Some(Duration::from_secs(7)));
    assert_eq!(stats.capacity, Some(3));
    assert!(!remembers(&store, &key(1)));
}

#[test]
fn claims_that_nobody_ends_are_freed_when_their_lease_is_over() {
    let clock = clock();
    let store = MemoryStore::default().with_clock(Arc::new(clock.clone()));
    for n in 0..1000 {
        now(store.claim(&key(n), token(), LEASE)).unwrap();
    }
    assert_eq!(store.stats().running, 1000);
    clock.advance(LEASE);
    while store.stats().running > 0 {}
    let capacity = Some(store.capacity().records());
    let mut empty = StoreStats::default();
    empty.capacity = capacity;
    assert_eq!(store.stats(), empty);
}

#[test]
fn a_stepped_wall_clock_changes_nothing() {
    for step in [-3600, 3600, i64::MIN / 2, i64::MAX / 2] {
        let clock = clock();
        for (_, store) in both::stores(Capacity::default(), &clock) {
            let (running, holder) = (key(1), token());
            finish(&*store, &key(0), RETAIN);
            now(store.claim(&running, holder, LEASE)).unwrap();
            clock.set_wall(UnixSeconds::new(1_763_690_000_i64.saturating_add(step)));
            assert!(remembers(&*store, &key(0)), "{store:?}, {step} s");
            assert_eq!(
                now(store.claim(&running, token(), LEASE)).unwrap(),
                Claimed::Running { retry_after: LEASE },
                "{store:?}, {step} s"
            );
            clock.advance(LEASE);
            assert_eq!(
                now(store.commit(&running, holder, RETAIN)).unwrap(),
                Ownership::Lost
            );
            clock.advance(RETAIN - LEASE);
            assert!(!remembers(&*store, &key(0)), "{store:?}, {step} s");
        }
    }
}

#[test]
fn a_store_for_no_record_holds_one() {
    let store = MemoryStore::new(0);
    finish(&store, &key(0), RETAIN);
    assert!(remembers(&store, &key(0)));
    let refusing = MemoryStore::new(Capacity::new(0).refusing_when_full());
    finish(&refusing, &key(0), RETAIN);
    let refused = now(refusing.claim(&key(1), token(), LEASE)).unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Full);
}

#[test]
fn a_lease_or_retention_without_end_has_none() {
    let clock = clock();
    let store = MemoryStore::default().with_clock(Arc::new(clock.clone()));
    now(store.claim(&key(0), token(), Duration::MAX)).unwrap();
    finish(&store, &key(1), Duration::MAX);
    clock.advance(Duration::from_secs(u64::from(u32::MAX)));
    assert_eq!((store.stats().running, store.stats().done), (1, 1));
}
