//! Races for the claim, under a scheduler that chooses the next thread at every lock and counter.
//!
//! `scripts/races` runs them: shuttle, random schedules and schedules with few changes of threads,
//! `HOOKGATE_SCHEDULES` of each kind. Only this crate's own code is explored: `MemoryStore` whole;
//! of `MokaStore` the order of its steps with moka. The scheduler must not stop inside moka: each
//! call of moka is made under the store's lock, so it is one step.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner, thread};

use super::{
    Capacity, ClaimToken, Claimed, DedupeStore, EventKey, Ownership, StoreFuture, StoreStats,
};
use crate::MemoryStore;
use crate::clock::{Clock, ManualClock, UnixSeconds};
use crate::store_error::{StoreError, StoreErrorKind};
use crate::sync::{AtomicBool, AtomicUsize};

const LEASE: Duration = Duration::from_secs(30);
const RETAIN: Duration = Duration::from_secs(48 * 3_600);

/// Runs a race under many schedules. A failing schedule is printed, with the input that replays it.
pub(crate) fn explore(race: impl Fn() + Send + Sync + 'static) {
    let schedules = std::env::var("HOOKGATE_SCHEDULES");
    let schedules = schedules.map_or(1_000, |number| number.parse().unwrap());
    let race = Arc::new(race);
    let again = Arc::clone(&race);
    let mut config = Config::new();
    // moka's builder is on the stack for a moment.
    config.stack_size = 1 << 20;
    Runner::new(RandomScheduler::new(schedules), config.clone()).run(move || race());
    Runner::new(PctScheduler::new(3, schedules), config).run(move || again());
}

type Store = Arc<dyn DedupeStore>;

/// Each kind of store, with its statistics.
fn each_store(
    capacity: Capacity,
    race: impl Fn(Store, &dyn Fn() -> StoreStats, ManualClock) + Copy + Send + Sync + 'static,
) {
    let clock = || ManualClock::at(UnixSeconds::new(1_763_690_000));
    explore(move || {
        let clock = clock();
        let store = MemoryStore::new(capacity).with_clock(clock.clone());
        race(Arc::new(store.clone()), &|| store.stats(), clock);
    });
    #[cfg(feature = "moka")]
    if !capacity.refuses_when_full() {
        explore(move || {
            let clock = clock();
            let store = super::MokaStore::new(capacity.records()).with_clock(clock.clone());
            race(Arc::new(store.clone()), &|| store.stats(), clock);
        });
    }
}

/// Both policies, with this capacity.
fn each_policy(
    records: usize,
    race: impl Fn(Store, &dyn Fn() -> StoreStats, ManualClock) + Copy + Send + Sync + 'static,
) {
    let capacity = Capacity::new(records);
    for capacity in [capacity, capacity.refusing_when_full()] {
        each_store(capacity, race);
    }
}

fn now<T: Unpin>(call: StoreFuture<'_, T>) -> Result<T, StoreError> {
    crate::block_on(call)
}

fn claim(store: &Store, key: &EventKey, token: ClaimToken) -> Claimed {
    now(store.claim(key, token, LEASE)).unwrap()
}

/// A token for a body of its own, so that the mark in a done record tells which token committed it.
fn token() -> ClaimToken {
    static BODIES: AtomicU64 = AtomicU64::new(0);
    ClaimToken::new(&BODIES.fetch_add(1, SeqCst).to_le_bytes())
}

fn key(number: usize) -> EventKey {
    EventKey::new("default", &format!("evt_{number}"))
}

/// Copies compete, with handlers that succeed and fail: never two runs at a time, one commit, and
/// it stays.
#[test]
fn one_copy_wins_and_its_commit_stays() {
    each_policy(4, |store, stats, _| {
        let in_run = Arc::new(AtomicBool::new(false));
        let commits = Arc::new(AtomicUsize::new(0));
        let copies: Vec<_> = (0..3)
            .map(|_| {
                let (store, in_run, commits) = (
                    Arc::clone(&store),
                    Arc::clone(&in_run),
                    Arc::clone(&commits),
                );
                thread::spawn(move || {
                    for _ in 0..2 {
                        let token = token();
                        match claim(&store, &key(1), token) {
                            Claimed::Fresh => {}
                            Claimed::Running { .. } => continue,
                            Claimed::Done { .. } => {
                                assert_eq!(commits.load(SeqCst), 1, "done before its commit");
                                continue;
                            }
                        }
                        assert!(!in_run.swap(true, SeqCst), "two runs at a time");
                        assert_eq!(commits.load(SeqCst), 0, "a run after the commit");
                        let succeeds = thread_rng().gen_bool(0.5);
                        in_run.store(false, SeqCst);
                        let held = if succeeds {
                            commits.fetch_add(1, SeqCst);
                            now(store.commit(&key(1), token, RETAIN))
                        } else {
                            now(store.release(&key(1), token))
                        };
                        assert_eq!(held.unwrap(), Ownership::Held);
                    }
                })
            })
            .collect();
        copies.into_iter().for_each(|copy| copy.join().unwrap());
        let committed = commits.load(SeqCst);
        let stats = stats();
        assert_eq!(
            (stats.running, stats.done, stats.evicted),
            (0, committed, 0)
        );
        let is_done = matches!(claim(&store, &key(1), token()), Claimed::Done { .. });
        assert_eq!(is_done, committed == 1, "a lost commit");
    });
}

/// A lease ends while its run continues: one later claim succeeds, and the first commit of the two
/// stays recorded.
#[test]
fn the_end_of_a_lease_lets_one_successor_in_and_a_stale_token_changes_nothing() {
    each_policy(4, |store, stats, clock| {
        let late = ClaimToken::new(b"late");
        assert_eq!(claim(&store, &key(1), late), Claimed::Fresh);
        let successors = Arc::new(AtomicUsize::new(0));
        let mut threads: Vec<_> = (0..2)
            .map(|_| {
                let (store, successors) = (Arc::clone(&store), Arc::clone(&successors));
                thread::spawn(move || {
                    let token = token();
                    if claim(&store, &key(1), token) != Claimed::Fresh {
                        return None;
                    }
                    assert_eq!(successors.fetch_add(1, SeqCst), 0, "a second successor");
                    // The late run must not have removed the claim.
                    assert_eq!(
                        now(store.renew(&key(1), token, LEASE)).unwrap(),
                        Ownership::Held
                    );
                    assert_eq!(
                        now(store.commit(&key(1), token, RETAIN)).unwrap(),
                        Ownership::Held
                    );
                    Some(token)
                })
            })
            .collect();
        threads.push({
            let (store, clock) = (Arc::clone(&store), clock.clone());
            let way = thread_rng().gen_range(0..3);
            thread::spawn(move || match way {
                // After the lease has ended, with or without a new claim since.
                0 => {
                    while clock.monotonic().since_start() < LEASE {
                        thread::yield_now();
                    }
                    assert_eq!(
                        now(store.renew(&key(1), late, LEASE)).unwrap(),
                        Ownership::Lost
                    );
                    assert_eq!(now(store.release(&key(1), late)).unwrap(), Ownership::Lost);
                    None
                }
                _ => {
                    let is_renewed = way == 2
                        && now(store.renew(&key(1), late, LEASE)).unwrap() == Ownership::Held;
                    let ended = now(store.commit(&key(1), late, RETAIN)).unwrap();
                    assert!(
                        way == 1 || is_renewed || ended == Ownership::Lost,
                        "lost, then held"
                    );
                    (ended == Ownership::Held).then_some(late)
                }
            })
        });
        let time = thread::spawn(move || clock.advance(LEASE));
        let winners: Vec<_> = threads
            .into_iter()
            .filter_map(|thread| thread.join().unwrap())
            .collect();
        time.join().unwrap();
        assert!(winners.len() <= 1, "committed twice");
        let stays = match claim(&store, &key(1), token()) {
            Claimed::Done { body_mark } => Some(body_mark),
            _ => None,
        };
        assert_eq!(
            stays,
            winners.first().map(ClaimToken::body_mark),
            "a commit was lost or undone"
        );
        assert_eq!(stats().done, winners.len());
    });
}

/// A full store that refuses never has more claims than its capacity.
#[test]
fn places_are_not_exceeded() {
    let two = Capacity::new(2).refusing_when_full();
    each_store(two, |store, stats, _| {
        let inside = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..3)
            .map(|number| {
                let (store, inside) = (Arc::clone(&store), Arc::clone(&inside));
                thread::spawn(move || {
                    for _ in 0..2 {
                        let token = token();
                        match now(store.claim(&key(number), token, LEASE)) {
                            Ok(claimed) => assert_eq!(claimed, Claimed::Fresh),
                            Err(error) => {
                                assert_eq!(error.kind(), StoreErrorKind::Full);
                                continue;
                            }
                        }
                        assert!(inside.fetch_add(1, SeqCst) < 2, "a place too many");
                        inside.fetch_sub(1, SeqCst);
                        let released = now(store.release(&key(number), token));
                        assert_eq!(released.unwrap(), Ownership::Held);
                    }
                })
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        assert_eq!(stats().running, 0);
    });
}

/// The space of a claim is freed however the claim ends, and whenever its lease ends: none is lost,
/// none is added.
#[test]
fn places_are_neither_lost_nor_duplicated() {
    let two = Capacity::new(2).refusing_when_full();
    each_store(two, |store, stats, clock| {
        let threads: Vec<_> = (0..3)
            .map(|number| {
                let (store, clock) = (Arc::clone(&store), clock.clone());
                thread::spawn(move || {
                    for _ in 0..2 {
                        let (key, token) = (key(number % 2), token());
                        if !matches!(now(store.claim(&key, token, LEASE)), Ok(Claimed::Fresh)) {
                            continue;
                        }
                        // Whether the claim is still held depends on how often the clock was
                        // advanced.
                        match thread_rng().gen_range(0..4) {
                            0 => drop(now(store.commit(&key, token, LEASE))),
                            1 => drop(now(store.release(&key, token))),
                            2 => drop(now(store.renew(&key, token, LEASE))),
                            _ => clock.advance(LEASE),
                        }
                    }
                })
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        clock.advance(LEASE);
        for number in 100..102 {
            let claimed = now(store.claim(&key(number), token(), LEASE));
            assert_eq!(claimed.ok(), Some(Claimed::Fresh), "a place was lost");
        }
        let third = now(store.claim(&key(102), token(), LEASE));
        assert!(third.is_err(), "a place was made up");
        assert_eq!(stats().running, 2);
    });
}

/// A full store that evicts: each committed event is remembered until two others have followed.
#[test]
fn the_newest_are_remembered_in_every_order_of_claims() {
    each_store(Capacity::new(2), |store, stats, _| {
        let threads: Vec<_> = (0..3)
            .map(|number| {
                let store = Arc::clone(&store);
                thread::spawn(move || {
                    let token = token();
                    assert_eq!(claim(&store, &key(number), token), Claimed::Fresh);
                    let held = now(store.commit(&key(number), token, RETAIN));
                    assert_eq!(held.unwrap(), Ownership::Held);
                })
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        // moka evicts late, unless the numbers are asked for.
        assert_eq!(stats().evicted, 1);
        let mut remembered = 0;
        for number in 0..3 {
            let token = token();
            match claim(&store, &key(number), token) {
                Claimed::Done { .. } => remembered += 1,
                _ => drop(now(store.release(&key(number), token))),
            }
        }
        assert_eq!(remembered, 2);
    });
}
