//! Claim and commit against the usual use of moka, in one interleaved run:
//! `cargo bench -p hookgate-benches --bench dedupe`.
//!
//! The peer, *bare moka*, is `entry(id).or_insert_with(…)` on a cache of `String` ids with a time
//! to live, under LRU. It is the measure of cost and does less: an event whose handler fails, or
//! whose process dies, stays marked there. *scc* marks ids in a concurrent hash map that has no
//! limit and forgets nothing. Each round makes new stores and measures all of them in turn, so that
//! every claim of a fresh id is one of a growing store. The measured work of a store is complete:
//! the key is made from the id, the event claimed, the claim committed.
//!
//! ```text
//! cargo bench -p hookgate-benches --bench dedupe -- --sizes             # full stores of 10^3 to 10^6 events: bytes and time of each
//! cargo bench -p hookgate-benches --bench dedupe -- --sizes 10000000    # to 10^7: takes four gigabytes at its worst
//! ```

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)] // A bench prints, and panics on an unexpected result.

use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use hookgate::{
    DedupeStore, MemoryStore,
    clock::{ManualClock, UnixSeconds},
    dedupe::{ClaimToken, Claimed, EventKey, MokaStore, Ownership, StoreFuture},
};

mod support;

use support::{Arguments, Case};

/// The number of events in a round.
const EVENTS: usize = 40_000;
const ROUNDS: usize = 9;
const ROUNDS_OF_SIZES: usize = 3;
const THREADS: [usize; 3] = [1, 2, 8];
const LEASE: Duration = Duration::from_secs(30);
const RETAIN: Duration = Duration::from_secs(48 * 3600);

const BARE: &str = "bare moka";
const MEMORY: &str = "MemoryStore";
const MOKA: &str = "MokaStore";
const SCC: &str = "scc";
const STORES: [&str; 4] = [BARE, MEMORY, MOKA, SCC];

fn main() {
    let arguments = Arguments::read();
    if let Some(store) = arguments.after("--child") {
        let events = arguments.after("--events").unwrap().parse().unwrap();
        let (bytes, nanos) = in_a_full_store(store, events);
        return println!("{bytes} {nanos}");
    }
    println!("CPU: {}", support::cpu());
    if arguments.has("--sizes") {
        let largest = arguments
            .after("--sizes")
            .and_then(|word| word.parse().ok());
        let cases = sizes(largest.unwrap_or(1_000_000));
        arguments.record("dedupe", "bytes; ns", &cases);
    } else {
        arguments.record("dedupe", "ns", &speed());
    }
}

/// A store under measurement.
enum Contestant {
    Bare(moka::sync::Cache<String, ()>),
    /// Marks ids, without a limit or an end.
    Scc(scc::HashMap<String, ()>),
    Ours(Box<dyn DedupeStore>),
}

impl Contestant {
    fn new(name: &str, capacity: usize) -> Self {
        match name {
            BARE => Self::Bare(
                moka::sync::Cache::builder()
                    .eviction_policy(moka::policy::EvictionPolicy::lru())
                    .max_capacity(capacity as u64)
                    .time_to_live(RETAIN)
                    .build(),
            ),
            SCC => Self::Scc(scc::HashMap::new()),
            MOKA => Self::Ours(Box::new(MokaStore::new(capacity))),
            MEMORY => Self::Ours(Box::new(MemoryStore::new(capacity))),
            other => panic!("no store {other}"),
        }
    }

    /// Handles one delivery of this event completely. Returns true if the event was new.
    fn deliver(&self, id: &str) -> bool {
        match self {
            Self::Bare(cache) => {
                let entry = cache.entry_by_ref(id).or_insert_with(|| ());
                entry.is_fresh()
            }
            Self::Scc(map) => map.insert_sync(id.to_owned(), ()).is_ok(),
            Self::Ours(store) => {
                let key = EventKey::new("default", id);
                let token = ClaimToken::new(b"{}");
                match now(store.claim(&key, token, LEASE)) {
                    Claimed::Fresh => {
                        assert_eq!(now(store.commit(&key, token, RETAIN)), Ownership::Held);
                        true
                    }
                    Claimed::Done { .. } => false,
                    running => panic!("{running:?}"),
                }
            }
        }
    }

    /// Returns the nanoseconds a delivery takes.
    fn time(&self, ids: &[String], fresh: bool) -> f64 {
        let start = Instant::now();
        for id in ids {
            assert_eq!(black_box(self.deliver(id)), fresh, "{id}");
        }
        start.elapsed().as_secs_f64() * 1e9 / ids.len() as f64
    }

    /// The same with some threads, each for its part, in wall-clock time.
    fn time_on(&self, threads: usize, ids: &[String], fresh: bool) -> f64 {
        if threads == 1 {
            return self.time(ids, fresh);
        }
        let start = Instant::now();
        thread::scope(|scope| {
            for part in ids.chunks(ids.len() / threads) {
                scope.spawn(move || self.time(part, fresh));
            }
        });
        start.elapsed().as_secs_f64() * 1e9 / ids.len() as f64
    }
}

/// Returns the answer of a store that answers at once.
fn now<T: Unpin>(call: StoreFuture<'_, T>) -> T {
    match pin!(call).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer.unwrap(),
        Poll::Pending => panic!("a store in memory answers at once"),
    }
}

fn speed() -> Vec<Case> {
    println!("{ROUNDS} rounds of {EVENTS} events; ids of 30 bytes");
    let mut cases = THREADS.map(|threads| {
        ["fresh", "duplicates", "fresh in a full store"]
            .map(|case| Case::new(&format!("{case}, threads: {threads}")))
    });
    for round in 0..ROUNDS {
        let ids = |part: usize| -> Vec<String> {
            (0..EVENTS)
                .map(|n| format!("evt_{round:04}_{part}_{n:019}"))
                .collect()
        };
        let (first, second) = (ids(0), ids(1));
        for ([fresh, duplicates, full], threads) in cases.iter_mut().zip(THREADS) {
            for name in STORES {
                let roomy = Contestant::new(name, 4 * EVENTS);
                fresh.add(name, roomy.time_on(threads, &first, true));
                duplicates.add(name, roomy.time_on(threads, &first, false));
                drop(roomy);
                let tight = Contestant::new(name, EVENTS);
                tight.time_on(threads, &first, true);
                full.add(name, tight.time_on(threads, &second, true));
            }
        }
    }
    let cases: Vec<Case> = cases.into_iter().flatten().collect();
    print!("\n{:<34}", "time a delivery, bare moka = 1");
    for name in STORES {
        print!("{name:>13}");
    }
    println!();
    for case in &cases {
        print!("{:<34}", case.name);
        for name in STORES {
            print!("{:>13.2}", case.ratio(name, BARE));
        }
        println!();
    }
    cases
}

/// Measures full stores of a thousand events, ten thousand, and so on up to `largest`, each in a
/// process of its own.
fn sizes(largest: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for events in (3..).map(|power| 10_usize.pow(power)) {
        if events > largest {
            break;
        }
        let mut bytes = Case::new(&format!("bytes an event at {events}"));
        let mut nanos = Case::new(&format!("ns an event at {events}"));
        for _ in 0..ROUNDS_OF_SIZES {
            for name in STORES {
                let child = std::process::Command::new(std::env::current_exe().unwrap())
                    .args(["--child", name, "--events", &events.to_string()])
                    .output()
                    .unwrap();
                assert!(child.status.success(), "{child:?}");
                let printed = String::from_utf8(child.stdout).unwrap();
                let (of_bytes, of_nanos) = printed.trim().split_once(' ').unwrap();
                bytes.add(name, of_bytes.parse().unwrap());
                nanos.add(name, of_nanos.parse().unwrap());
            }
        }
        println!("\n{events} events: bytes of each; time of one more, bare moka = 1");
        for name in STORES {
            let (bytes, ratio) = (bytes.median(name), nanos.ratio(name, BARE));
            println!("  {name:<13} {bytes:>8.1} {ratio:>8.2}");
        }
        cases.extend([bytes, nanos]);
    }
    cases
}

/// Returns the growth of the resident set for each event, in a store for as many, and the
/// nanoseconds that one more takes. The events are spread over most of a retention.
fn in_a_full_store(store: &str, events: usize) -> (f64, f64) {
    let clock = ManualClock::at(UnixSeconds::new(1_763_690_000));
    let store = match store {
        MEMORY => Contestant::Ours(Box::new(MemoryStore::new(events).with_clock(clock.clone()))),
        MOKA => Contestant::Ours(Box::new(MokaStore::new(events).with_clock(clock.clone()))),
        other => Contestant::new(other, events),
    };
    let wait = RETAIN.mul_f64(0.9 / events as f64);
    let before = resident();
    for n in 0..events {
        assert!(store.deliver(&format!("evt_{n:026}")));
        clock.advance(wait);
    }
    let grown = resident() - before;
    // No event may be forgotten at this point.
    assert!(!store.deliver(&format!("evt_{:026}", 0)));
    let more: Vec<String> = (events..events + EVENTS)
        .map(|n| format!("evt_{n:026}"))
        .collect();
    (grown / events as f64, store.time(&more, true))
}

fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc, which only Linux has");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
    kilobytes.parse::<f64>().unwrap() * 1024.0
}
