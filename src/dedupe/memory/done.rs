//! The done records, in a moka cache that is read without being told so.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moka::notification::RemovalCause;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::clock::{Clock, Monotonic};
use crate::dedupe::capacity::{Capacity, StoreStats, WhenFull};
use crate::dedupe::key::{ClaimToken, EventKey};

/// What is remembered of a finished event.
///
/// It is the cache's **key**, with nothing as the value: two records of one event are the same key, and what else a record
/// says is read off the stored key while the cache compares. See [`Done::look`].
#[derive(Clone, Copy, Debug)]
struct Record {
    key: EventKey,
    by: ClaimToken,
    /// Nanoseconds of the clock's monotonic reading: half the size of a [`Monotonic`], enough for 584 years.
    committed: u64,
    end: u64,
    /// How many commits came before it.
    place: u64,
}

impl Record {
    fn end(&self) -> Monotonic {
        // What was cut off above 584 years stays without an end.
        Monotonic::new(if self.end == u64::MAX {
            Duration::MAX
        } else {
            Duration::from_nanos(self.end)
        })
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Record {}

impl Hash for Record {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

/// Finds the record of an event and keeps what it saw.
struct Lookup<'a> {
    key: &'a EventKey,
    seen: Cell<Option<Record>>,
}

impl Hash for Lookup<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl moka::Equivalent<Record> for Lookup<'_> {
    fn equivalent(&self, stored: &Record) -> bool {
        let equal = *self.key == stored.key;
        if equal {
            self.seen.set(Some(*stored));
        }
        equal
    }
}

/// What a look-up found.
pub(super) enum Seen {
    Nothing,
    /// The event is remembered.
    Done {
        by: ClaimToken,
    },
    /// A record whose time is over: [`Done::forget`] gives it back.
    Over,
}

/// The done records of a store.
pub(super) struct Done {
    records: Cache<Record, ()>,
    /// The number of records kept when the oldest are evicted; `None` where new claims are refused instead.
    newest: Option<u64>,
    commits: AtomicU64,
    evictions: Arc<Evictions>,
}

#[derive(Debug)]
struct Evictions {
    count: AtomicU64,
    youngest: AtomicU64,
}

impl Done {
    pub(super) fn new(capacity: Capacity, clock: Arc<dyn Clock>) -> Self {
        let evictions = Arc::new(Evictions {
            count: AtomicU64::new(0),
            youngest: AtomicU64::new(u64::MAX),
        });
        let newest = match capacity.when_full() {
            WhenFull::EvictOldest => Some(u64::try_from(capacity.records()).unwrap_or(u64::MAX)),
            WhenFull::Refuse => None,
        };
        // Never the default policy: TinyLFU drops ids seen once in favour of ids seen twice, which is to say that a full
        // cache forgets each fresh event at once. No time to live either: moka measures it by a clock of its own.
        let mut records = Cache::builder().eviction_policy(EvictionPolicy::lru());
        if let Some(newest) = newest {
            let evictions = Arc::clone(&evictions);
            // This runs inside a commit, under the lock of a shard: it must not touch the store. It must not panic either,
            // since moka then calls it no more.
            records = records.max_capacity(newest).eviction_listener(
                move |record: Arc<Record>, (), cause| {
                    if cause == RemovalCause::Size {
                        evictions.count(&record, nanos(clock.monotonic()));
                    }
                },
            );
        }
        Self {
            records: records.build(),
            newest,
            commits: AtomicU64::new(0),
            evictions,
        }
    }

    /// What is remembered of the event.
    ///
    /// `Cache::get` would count as a use and make the record the last to be evicted, so that duplicates of old events would push
    /// out new ones. `Cache::contains_key` is documented not to, but returns no content: the look-up keeps the key it met.
    pub(super) fn look(&self, key: &EventKey, now: Monotonic) -> Seen {
        let lookup = Lookup {
            key,
            seen: Cell::new(None),
        };
        if !self.records.contains_key(&lookup) {
            return Seen::Nothing;
        }
        match lookup.seen.get() {
            Some(record) if record.end() > now && !self.overtaken(&record) => {
                Seen::Done { by: record.by }
            }
            _ => Seen::Over,
        }
    }

    /// Whether as many commits as the store remembers have followed. moka evicts in batches, some hundred commits late at
    /// most; with this, what is remembered does not depend on when it does.
    fn overtaken(&self, record: &Record) -> bool {
        let following = self
            .commits
            .load(Ordering::Relaxed)
            .saturating_sub(record.place + 1);
        self.newest.is_some_and(|newest| following >= newest)
    }

    /// Remembers the event. The caller has [forgotten](Self::forget) what was there before: a record is never overwritten, so
    /// that it has one place in moka's order.
    pub(super) fn insert(
        &self,
        key: EventKey,
        by: ClaimToken,
        now: Monotonic,
        retain: Duration,
    ) -> Monotonic {
        let record = Record {
            key,
            by,
            committed: nanos(now),
            end: nanos(now.saturating_add(retain)),
            place: self.commits.fetch_add(1, Ordering::Relaxed),
        };
        self.records.insert(record, ());
        record.end()
    }

    /// Gives back a record that is no longer remembered. True where there was one.
    pub(super) fn forget(&self, key: &EventKey, now: Monotonic) -> bool {
        let lookup = Lookup {
            key,
            seen: Cell::new(None),
        };
        let removed = self.records.remove(&lookup).is_some();
        if removed
            && let Some(record) = lookup.seen.get()
            && record.end() > now
        {
            // Overtaken, and moka had not come to it yet.
            self.evictions.count(&record, nanos(now));
        }
        removed
    }

    /// Lets moka catch up, then reads the numbers off.
    pub(super) fn stats(&self) -> StoreStats {
        self.records.run_pending_tasks();
        let youngest = self.evictions.youngest.load(Ordering::Relaxed);
        StoreStats {
            done: usize::try_from(self.records.entry_count()).unwrap_or(usize::MAX),
            evicted: self.evictions.count.load(Ordering::Relaxed),
            youngest_evicted: (youngest != u64::MAX).then(|| Duration::from_nanos(youngest)),
            ..StoreStats::default()
        }
    }
}

impl Evictions {
    fn count(&self, record: &Record, now: u64) {
        if record.end > now {
            self.count.fetch_add(1, Ordering::Relaxed);
            self.youngest
                .fetch_min(now.saturating_sub(record.committed), Ordering::Relaxed);
        }
    }
}

fn nanos(reading: Monotonic) -> u64 {
    u64::try_from(reading.since_start().as_nanos()).unwrap_or(u64::MAX)
}
