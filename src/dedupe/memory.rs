//! The TTL cache for one process: running claims in sharded maps, done records in moka.

mod done;
mod evictions;
mod shard;
#[cfg(all(test, not(shuttle)))]
mod tests;

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use self::done::{Done, Seen};
use self::shard::Shard;
use super::capacity::{Capacity, StoreStats, WhenFull};
use super::error::{StoreError, StoreErrorKind};
use super::expiry::BATCH;
use super::key::{ClaimToken, EventKey};
use super::scopes::ScopesInUse;
use super::store::{Claimed, DedupeStore, Ownership, StoreFuture};
use crate::clock::{Clock, Monotonic, SystemClock};
use crate::sync::{AtomicUsize, Mutex, MutexGuard};

/// Remembers in this process, for many threads at once: the TTL cache of feature `moka`.
///
/// Running claims live in 64 maps, each behind its own lock, where nothing evicts them; done records live in a
/// [`moka`] cache. **All steps of one event happen under the lock of its map**, so the cache never sees two writers of one event.
///
/// # What moka must not do
/// Three of moka's defaults would break deduplication, so none is used:
/// - its policy, TinyLFU, keeps entries that are read often: a full cache that has been read *forgets fresh ids at once*. This
///   store asks for LRU.
/// - a `get` counts as a use: duplicates of old events would evict new ones. This store looks up without being counted, so
///   that **the newest events are remembered at capacity, also after each old one was read**.
/// - `entry().or_insert()` lets two concurrent claims of one event succeed. This store decides under its own lock.
///
/// # Capacity
/// [`EvictOldest`](WhenFull::EvictOldest) evicts in the order of commits: an event is evicted only after as many other events as
/// the store holds were committed since. With one retention for all events, as the receiver uses, this is the record whose
/// retention ends first. A record whose retention has ended is forgotten at once, but its memory is used until newer records
/// need it: memory is bounded by the capacity, not by the retention. Evictions and their ages are counted by one of the next 16
/// commits, or by [`stats`](Self::stats).
///
/// With [`Refuse`](WhenFull::Refuse), records and running claims are counted exactly, and ended ones free their space.
///
/// # Memory
/// About 355 bytes for each remembered event, 370 with `Refuse` (growth of the resident set over a million commits,
/// x86-64 Linux, the allocator of glibc); nothing is reserved up front. So the default capacity is about 90 MiB once it is full.
/// Size it by `rate × retention`: see [`Capacity`].
///
/// # Caveats
/// - **Per process.** Replicas share nothing, and nothing survives a restart: after one, a copy of a done event runs again.
/// - **The work is done when the method is called**: a call whose future is never polled has taken effect all the same.
/// - moka does its housekeeping inside some commits. A commit that is far ahead of the housekeeping sleeps for 50 µs at a time
///   until moka has finished it.
/// - **Monotonic time only**, from this store's clock and never moka's. Clones share their records.
///
/// # Example
/// ```
/// use hookgate::{MemoryStore, WhenFull};
///
/// // Ten events a second for 48 h, and rather a 503 than a forgotten event.
/// let store = MemoryStore::new(10 * 48 * 3600).with_when_full(WhenFull::Refuse);
/// assert_eq!(store.clone().stats().evicted, 0); // clones share their records
/// ```
#[derive(Clone)]
pub struct MemoryStore(Arc<Inner>);

struct Inner {
    capacity: Capacity,
    clock: Arc<dyn Clock>,
    shards: [Mutex<Shard>; SHARDS],
    done: Done,
    /// The number of done records and running claims, where a full store refuses. Reserved before a claim is admitted.
    held: AtomicUsize,
    scopes: ScopesInUse,
}

/// The number of threads that can use the store before they often wait for each other.
const SHARDS: usize = 64;

impl Default for MemoryStore {
    fn default() -> Self {
        Self::with(Capacity::default(), Arc::new(SystemClock))
    }
}

impl MemoryStore {
    /// The approximate number of bytes that a remembered event takes: measured, see the [type's docs](Self).
    pub const BYTES_PER_RECORD: usize = 355;

    /// Returns a store for up to `capacity` done records, at least one: a number, or a [`Capacity`], which says how to size it.
    #[must_use]
    pub fn new(capacity: impl Into<Capacity>) -> Self {
        Self::with(capacity.into(), Arc::new(SystemClock))
    }

    fn with(capacity: Capacity, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner {
            capacity,
            done: Done::new(capacity),
            clock,
            shards: std::array::from_fn(|_| Mutex::default()),
            held: AtomicUsize::new(0),
            scopes: ScopesInUse::default(),
        }))
    }

    /// Returns an empty store with this behaviour when it is full.
    #[must_use]
    pub fn with_when_full(self, when_full: WhenFull) -> Self {
        Self::with(
            self.0.capacity.with_when_full(when_full),
            Arc::clone(&self.0.clock),
        )
    }

    /// Returns an empty store on this clock.
    #[must_use]
    pub fn with_clock(self, clock: impl Clock) -> Self {
        Self::with(self.0.capacity, Arc::new(clock))
    }

    /// Returns the capacity.
    #[must_use]
    pub fn capacity(&self) -> Capacity {
        self.0.capacity
    }

    /// Returns the numbers of records held now and of evictions so far. moka does its housekeeping first: call this for a metric,
    /// not at each delivery.
    #[must_use]
    pub fn stats(&self) -> StoreStats {
        let mut stats = StoreStats {
            capacity: Some(self.0.capacity.records()),
            ..StoreStats::default()
        };
        for shard in &self.0.shards {
            stats.running += self.0.enter_shard(shard).0.running.len();
        }
        let now = self.0.clock.monotonic();
        self.0.done.add_evictions_to(&mut stats, now);
        stats.done = self.0.done.count();
        stats
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("capacity", &self.0.capacity)
            .finish_non_exhaustive()
    }
}

impl DedupeStore for MemoryStore {
    fn claim<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Claimed> {
        // Ended records in other shards are freed only when there is no space, and with no lock held.
        let claimed = self.0.claim(key, token, lease).or_else(|| {
            self.0.sweep();
            self.0.claim(key, token, lease)
        });
        StoreFuture::ready(claimed.ok_or_else(|| StoreError::new(StoreErrorKind::Full)))
    }

    fn renew<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Ownership> {
        let (mut shard, now) = self.0.enter(key);
        StoreFuture::ready(Ok(if shard.holds(key, token, now) {
            shard.run(*key, token, now.saturating_add(lease));
            Ownership::Held
        } else {
            Ownership::Lost
        }))
    }

    fn commit<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        retain: Duration,
    ) -> StoreFuture<'a, Ownership> {
        let (mut shard, now) = self.0.enter(key);
        StoreFuture::ready(Ok(if shard.holds(key, token, now) {
            // Where space is counted, the space of the claim passes to the record.
            let end = self.0.done.insert(*key, token, now, retain);
            if self.0.refuses() {
                shard.retentions.push(end, *key);
            }
            shard.running.remove(key);
            Ownership::Held
        } else {
            match self.0.done.look(key, now) {
                Seen::Done { by } if by == token => Ownership::Held,
                _ => Ownership::Lost,
            }
        }))
    }

    fn release<'a>(&'a self, key: &'a EventKey, token: ClaimToken) -> StoreFuture<'a, Ownership> {
        let (mut shard, now) = self.0.enter(key);
        StoreFuture::ready(Ok(if shard.holds(key, token, now) {
            shard.running.remove(key);
            self.0.give_back();
            Ownership::Held
        } else {
            Ownership::Lost
        }))
    }

    fn observe(&self) -> Option<StoreStats> {
        Some(self.stats())
    }

    fn scopes_in_use(&self) -> Option<&ScopesInUse> {
        Some(&self.0.scopes)
    }
}

impl Inner {
    /// Claims the event. Returns `None` where there is no space for a fresh event.
    fn claim(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Option<Claimed> {
        let (mut shard, now) = self.enter(key);
        match shard.running.get(key) {
            Some(running) if running.end > now => {
                if running.token != token {
                    return Some(Claimed::Running {
                        retry_after: running.end.saturating_since(now),
                    });
                }
                shard.run(*key, token, now.saturating_add(lease));
                return Some(Claimed::Fresh);
            }
            // A lease that has ended leaves its space to the next claim. That claim may still find none, so free the space first.
            Some(_) => {
                shard.running.remove(key);
                self.give_back();
            }
            None => {}
        }
        match self.done.look(key, now) {
            Seen::Done { by } => return Some(Claimed::Done { by }),
            Seen::Over => self.forget(key),
            Seen::Nothing => {}
        }
        self.reserve().then(|| {
            shard.run(*key, token, now.saturating_add(lease));
            Claimed::Fresh
        })
    }

    /// Locks the event's shard, frees some ended records in it, and reads the time. The time is read under the lock, so that the
    /// steps on an event and the readings have one order.
    fn enter(&self, key: &EventKey) -> (MutexGuard<'_, Shard>, Monotonic) {
        // Any byte is suitable, since the key is a digest.
        self.enter_shard(&self.shards[usize::from(key.as_bytes()[0]) % SHARDS])
    }

    fn enter_shard<'a>(&self, shard: &'a Mutex<Shard>) -> (MutexGuard<'a, Shard>, Monotonic) {
        // Every step leaves a shard consistent, so it stays usable after a panic elsewhere (in a clock, for example).
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.monotonic();
        self.free(&mut shard, now);
        (shard, now)
    }

    fn free(&self, shard: &mut Shard, now: Monotonic) {
        for _ in 0..BATCH {
            let lease = shard.leases.pop_ended(now);
            let retention = shard.retentions.pop_ended(now);
            if lease.is_none() && retention.is_none() {
                return;
            }
            // Either entry may be an old one of a record that is still live.
            if let Some((_, key)) = lease
                && shard
                    .running
                    .get(&key)
                    .is_some_and(|running| running.end <= now)
            {
                shard.running.remove(&key);
                self.give_back();
            }
            if let Some((_, key)) = retention
                && matches!(self.done.look(&key, now), Seen::Over)
            {
                self.forget(&key);
            }
        }
    }

    fn forget(&self, key: &EventKey) {
        if self.done.forget(key) {
            self.give_back();
        }
    }

    /// Frees some ended records in every shard, one lock at a time.
    fn sweep(&self) {
        for shard in &self.shards {
            drop(self.enter_shard(shard));
        }
    }

    fn refuses(&self) -> bool {
        self.capacity.when_full() == WhenFull::Refuse
    }

    /// Reserves the space for a claim and for the record that it becomes. Returns false where there is none.
    fn reserve(&self) -> bool {
        let most = self.capacity.records();
        !self.refuses()
            || self
                .held
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                    (held < most).then_some(held + 1)
                })
                .is_ok()
    }

    fn give_back(&self) {
        if self.refuses() {
            self.held.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
