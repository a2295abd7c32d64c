//! The done records, in a moka cache whose look-ups are not counted as uses.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use super::evictions::Evictions;
use crate::clock::Monotonic;
use crate::dedupe::capacity::{Capacity, StoreStats, WhenFull};
use crate::dedupe::hash::KeyState;
use crate::dedupe::key::{ClaimToken, EventKey};
use crate::sync::{Mutex, MutexGuard};

/// The done record of an event.
///
/// It is the cache's **key**, and the value is empty. Two records of one event are equal keys. The other fields of a
/// record are read from the stored key while the cache compares. See [`Done::look`].
#[derive(Clone, Copy, Debug)]
struct Record {
    key: EventKey,
    by: ClaimToken,
    /// Nanoseconds of the clock's monotonic reading: half the size of a [`Monotonic`], enough for 584 years.
    end: u64,
    /// The number of commits before it.
    place: u64,
}

impl Record {
    fn end(&self) -> Monotonic {
        // An end above 584 years was cut off, so it counts as no end.
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

/// A key for a look-up: finds the record of an event and keeps the record that it was compared with.
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

/// The result of a look-up.
pub(super) enum Seen {
    Nothing,
    /// The event is remembered.
    Done {
        by: ClaimToken,
    },
    /// A record whose retention is over: [`Done::forget`] frees it.
    Over,
}

/// The done records of a store.
pub(super) struct Done {
    records: Cache<Record, (), KeyState>,
    /// The number of records kept when the oldest are evicted; `None` where new claims are refused instead.
    newest: Option<u64>,
    commits: AtomicU64,
    /// A commit is listed by its place and not by its event's shard: a sender can choose ids that lie in one shard.
    evictions: [Mutex<Evictions>; LISTS],
}

/// A power of two, so that the remainder of a place is computed quickly.
const LISTS: usize = 16;

impl Done {
    pub(super) fn new(capacity: Capacity) -> Self {
        let newest = match capacity.when_full() {
            WhenFull::EvictOldest => Some(u64::try_from(capacity.records()).unwrap_or(u64::MAX)),
            WhenFull::Refuse => None,
        };
        // Never the default policy: TinyLFU drops ids seen once in favour of ids seen twice, so a full cache forgets each fresh
        // event at once. No time to live either: moka measures it by its own clock.
        // No eviction listener either: for a listener moka locks the key at each insert and removal, which is a third of the
        // cost of a commit. Evictions follow from the order of commits, see `Evictions`.
        let mut records = Cache::builder().eviction_policy(EvictionPolicy::lru());
        if let Some(newest) = newest {
            records = records.max_capacity(newest);
        }
        Self {
            records: records.build_with_hasher(KeyState::default()),
            newest,
            commits: AtomicU64::new(0),
            evictions: std::array::from_fn(|_| Mutex::default()),
        }
    }

    /// Looks up the event's record.
    ///
    /// `Cache::get` would count as a use and make the record the last to be evicted, so that duplicates of old events would evict
    /// new ones. `Cache::contains_key` is documented not to count, but returns no content: the look-up keeps the key it compared
    /// with.
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

    /// Returns whether as many commits as the store remembers have followed. moka evicts in batches, at most some hundred
    /// commits late. With this check, the remembered events do not depend on when moka evicts.
    fn overtaken(&self, record: &Record) -> bool {
        self.first_remembered()
            .is_some_and(|first| record.place < first)
    }

    /// Returns the place of the oldest commit that is remembered; `None` where none is forgotten.
    fn first_remembered(&self) -> Option<u64> {
        let commits = self.commits.load(Ordering::Relaxed);
        Some(commits.saturating_sub(self.newest?))
    }

    /// Inserts the record of an event. The caller has [removed](Self::forget) the old record: a record is never overwritten, so
    /// that it has one position in moka's order.
    pub(super) fn insert(
        &self,
        key: EventKey,
        by: ClaimToken,
        now: Monotonic,
        retain: Duration,
    ) -> Monotonic {
        let place = self.commits.fetch_add(1, Ordering::Relaxed);
        let record = Record {
            key,
            by,
            end: nanos(now.saturating_add(retain)),
            place,
        };
        if let Some(first) = self.first_remembered() {
            let list = usize::try_from(place % LISTS as u64).unwrap_or(0);
            let mut evictions = lock(&self.evictions[list]);
            evictions.committed(place, nanos(now), nanos(Monotonic::new(retain)));
            evictions.count_before(first, nanos(now));
        }
        self.records.insert(record, ());
        record.end()
    }

    /// Counts the evictions up to now, and adds all evictions that were counted.
    pub(super) fn add_evictions_to(&self, stats: &mut StoreStats, now: Monotonic) {
        let mut last = None;
        for list in &self.evictions {
            let mut evictions = lock(list);
            if let Some(first) = self.first_remembered() {
                evictions.count_before(first, nanos(now));
            }
            evictions.add_to(stats, &mut last);
        }
    }

    /// Returns the room for noted commits, in entries.
    #[cfg(all(test, not(shuttle)))]
    pub(super) fn room(&self) -> usize {
        self.evictions.iter().map(|list| lock(list).room()).sum()
    }

    /// Removes a record that is no longer remembered. Returns true where there was one.
    pub(super) fn forget(&self, key: &EventKey) -> bool {
        let lookup = Lookup {
            key,
            seen: Cell::new(None),
        };
        self.records.remove(&lookup).is_some()
    }

    /// Returns the number of records, after moka's housekeeping.
    pub(super) fn count(&self) -> usize {
        self.records.run_pending_tasks();
        usize::try_from(self.records.entry_count()).unwrap_or(usize::MAX)
    }
}

fn lock(list: &Mutex<Evictions>) -> MutexGuard<'_, Evictions> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

fn nanos(reading: Monotonic) -> u64 {
    u64::try_from(reading.since_start().as_nanos()).unwrap_or(u64::MAX)
}
