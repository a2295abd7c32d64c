//! A store on the cache of the crate moka.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::{cell::Cell, fmt, sync::Arc, time::Duration};

use moka::{notification::RemovalCause, policy::EvictionPolicy, sync::Cache};

use super::running::{Lease, Nanos, Running, nanos, nanos_of};
use super::store_contract::{Answer, Claimed, DedupeStore, LongestLease, Ownership};
use super::{Capacity, ClaimToken, EventKey, ScopesInUse, StoreStats};
use crate::clock::{Clock, SystemClock};
use crate::sync::{Mutex, MutexGuard, lock};

/// Remembers done events in a [`moka`] cache. [`MemoryStore`](crate::MemoryStore) is faster,
/// smaller, and needs no dependency.
///
/// Running claims live in a map beside it, where nothing evicts them. Each call is one step under
/// one lock. A restart forgets all.
///
/// # What moka must not do
/// - Its default policy, TinyLFU, keeps entries that are read often: a full cache that has been
///   read *forgets fresh ids at once*. This store uses LRU, and its look-ups do not count as uses:
///   where duplicates count as uses, they evict new events.
/// - Its `entry().or_insert()` lets two concurrent claims of one event succeed. Here a claim is one
///   step under the lock.
/// - Its time to live is measured by a clock of its own. Here each record has its deadline on the
///   store's [`Clock`].
/// - Its maintenance is deferred, so it may hold some hundred records more than the capacity until
///   [`stats`](Self::stats) is called.
///
/// # Terms
/// - **Memory.** About 340 bytes for each remembered event (growth of the resident set over a
///   million commits, x86-64 Linux, the allocator of glibc). A record whose retention has ended
///   keeps its memory until newer records need it.
/// - **At capacity** the oldest commits are forgotten, and counted when moka evicts them. This
///   store can't refuse instead.
/// - **Housekeeping** is moka's, inside some commits. If the commits are far ahead of it, a commit
///   sleeps for 50 µs at a time.
///
/// ```
/// let store = hookgate::dedupe::MokaStore::new(10 * 48 * 3600); // ten events a second for 48 h
/// assert_eq!(store.clone().stats().evicted, 0);
/// ```
#[derive(Clone)]
pub struct MokaStore {
    capacity: Capacity,
    clock: Arc<dyn Clock>,
    running: Arc<Mutex<Running>>,
    hasher: RandomState,
    done: Cache<Keyed<Done>, ()>,
    longest_lease: Arc<LongestLease>,
    evictions: Arc<Mutex<StoreStats>>,
    scopes: ScopesInUse,
}

impl MokaStore {
    /// The approximate number of bytes that a remembered event takes: measured, see the [type's
    /// docs](Self).
    pub const BYTES_PER_RECORD: usize = 340;

    /// Returns a store for this many done records, at least one. [`Capacity`] says how to size it.
    #[must_use]
    pub fn new(records: usize) -> Self {
        Self::with(Capacity::new(records), Arc::new(SystemClock))
    }

    fn with(capacity: Capacity, clock: Arc<dyn Clock>) -> Self {
        let evictions: Arc<Mutex<StoreStats>> = Arc::default();
        let (now, counts) = (Arc::clone(&clock), Arc::clone(&evictions));
        let count = move |record: Arc<Keyed<Done>>, (), why| {
            if why == RemovalCause::Size {
                let Done { committed, end, .. } = record.with;
                lock(&counts).count_eviction(committed, end, nanos(now.monotonic()));
            }
        };
        Self {
            capacity,
            clock,
            running: Arc::default(),
            hasher: RandomState::new(),
            done: Cache::builder()
                .eviction_policy(EvictionPolicy::lru())
                .max_capacity(u64::try_from(capacity.records()).unwrap_or(u64::MAX))
                .eviction_listener(count)
                .build(),
            longest_lease: Arc::default(),
            evictions,
            scopes: ScopesInUse::default(),
        }
    }

    /// Returns an empty store on this clock.
    #[must_use]
    pub fn with_clock(self, clock: impl Clock) -> Self {
        Self::with(self.capacity, Arc::new(clock))
    }

    /// Returns the numbers of records and evictions, after moka's housekeeping: for a metric, not
    /// at each delivery.
    #[must_use]
    pub fn stats(&self) -> StoreStats {
        let (running, _) = self.lock_and_free();
        self.done.run_pending_tasks();
        StoreStats {
            running: running.len(),
            done: usize::try_from(self.done.entry_count()).unwrap_or(usize::MAX),
            capacity: Some(self.capacity.records()),
            ..*lock(&self.evictions)
        }
    }

    fn lock_and_free(&self) -> (MutexGuard<'_, Running>, Nanos) {
        let mut running = lock(&self.running);
        let now = nanos(self.clock.monotonic());
        running.free(now, &self.hasher);
        (running, now)
    }

    /// Returns the done record. `get` would count as a use and `contains_key` does not, so the
    /// look-up takes the record out of the comparison. A record that has ended is removed, since
    /// moka keeps the old one of two equal keys.
    fn find(&self, key: &EventKey, now: Nanos) -> Option<Done> {
        let lookup = Keyed {
            key: *key,
            with: Cell::new(None),
        };
        let found = self.done.contains_key(&lookup).then(|| lookup.with.get());
        let done: Done = found??;
        if done.end <= now {
            self.done.invalidate(&lookup);
        }
        (done.end > now).then_some(done)
    }
}

impl fmt::Debug for MokaStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MokaStore {{ capacity: {:?}, .. }}", self.capacity)
    }
}

impl DedupeStore for MokaStore {
    fn claim(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Answer<Claimed> {
        self.longest_lease.note(lease);
        let (mut running, now) = self.lock_and_free();
        let lease = Lease::new(token, now, lease);
        let hash = self.hasher.hash_one(key);
        let claimed = running.claim_running(hash, key, lease);
        Answer::ready(Ok(claimed.unwrap_or_else(|| match self.find(key, now) {
            Some(done) => Claimed::Done {
                body_mark: done.token.body_mark(),
            },
            None => running.insert(hash, *key, lease, &self.hasher),
        })))
    }

    fn renew(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Answer<Ownership> {
        self.longest_lease.note(lease);
        let (mut running, now) = self.lock_and_free();
        let lease = Lease::new(token, now, lease);
        Answer::ready(Ok(running.renew(self.hasher.hash_one(key), key, lease)))
    }

    fn commit(&self, key: &EventKey, token: ClaimToken, retain: Duration) -> Answer<Ownership> {
        let (mut running, now) = self.lock_and_free();
        if running.remove(self.hasher.hash_one(key), key, token) {
            let (key, with) = (*key, Done::new(token, now, retain));
            self.done.insert(Keyed { key, with }, ());
            return Answer::ready(Ok(Ownership::Held));
        }
        let lease = nanos_of(self.longest_lease.get());
        let is_repeated =
            |done: Done| done.token == token && now.saturating_sub(done.committed) < lease;
        let is_held = self.find(key, now).is_some_and(is_repeated);
        Answer::ready(Ok(Ownership::from_held(is_held)))
    }

    fn release(&self, key: &EventKey, token: ClaimToken) -> Answer<Ownership> {
        let (mut running, _) = self.lock_and_free();
        let is_held = running.remove(self.hasher.hash_one(key), key, token);
        Answer::ready(Ok(Ownership::from_held(is_held)))
    }

    fn observe(&self) -> Option<StoreStats> {
        Some(self.stats())
    }

    fn scopes_in_use(&self) -> Option<&ScopesInUse> {
        Some(&self.scopes)
    }
}

/// A key of the cache, with its done record or a place for the one that a look-up finds. Compared
/// and hashed by the event alone.
struct Keyed<T> {
    key: EventKey,
    with: T,
}

#[derive(Clone, Copy)]
struct Done {
    token: ClaimToken,
    committed: Nanos,
    end: Nanos,
}

impl Done {
    fn new(token: ClaimToken, committed: Nanos, retain: Duration) -> Self {
        Self {
            token,
            committed,
            end: committed.saturating_add(nanos_of(retain)),
        }
    }
}

impl PartialEq for Keyed<Done> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Keyed<Done> {}

impl<T> Hash for Keyed<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl moka::Equivalent<Keyed<Done>> for Keyed<Cell<Option<Done>>> {
    fn equivalent(&self, stored: &Keyed<Done>) -> bool {
        if self.key == stored.key {
            self.with.set(Some(stored.with));
        }
        self.key == stored.key
    }
}
