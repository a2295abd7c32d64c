//! The store in memory: running claims in a map, done records in a queue of commits with a map of
//! their places, by shard.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hashbrown::HashTable;

use super::capacity::{Capacity, StoreStats};
use super::key::{ClaimToken, EventKey};
use super::running::{Lease, Nanos, Running, nanos, nanos_of};
use super::scopes::ScopesInUse;
use super::store_contract::{Answer, Claimed, DedupeStore, LongestLease, Ownership};
use crate::clock::{Clock, SystemClock};
use crate::store_error::{StoreError, StoreErrorKind};
use crate::sync::{AtomicUsize, Mutex, MutexGuard, lock};

/// Remembers in this process, with the standard library and the crate `hashbrown`. It is the store
/// for one process, and the reference for every other.
///
/// The events are spread over shards by a hash that is keyed at random for each store, so a sender
/// can't choose ids that lie in one shard, or in one place of it. **All steps of one event happen
/// under the lock of its shard.** A store for fewer than 16,384 records has one shard; a larger one
/// has one for each 8,192 records, at most 64.
///
/// - **Capacity.** The newest `capacity` events are always remembered, until their retention ends.
///   By default, a commit to a full shard evicts the record in it that was committed first. With
///   one shard the capacity is exact. With several, each takes its share plus an eighth, so the
///   store may hold an eighth more. One of the newest would be forgotten early only if more than a
///   share and an eighth of them fell into one shard: the probability is below 10⁻²⁴ at each
///   commit, and no sender can raise it. With [`refusing_when_full`](Capacity::refusing_when_full)
///   the capacity is exact at every size; while another thread is about to free a place, a claim
///   can still be refused.
/// - **Retention.** Except by eviction, no record is forgotten before its end; one that has ended
///   no longer counts. Each length of retention has a queue of its own in each shard: use few, as
///   receivers do.
/// - **Memory.** A remembered event takes at most [`BYTES_PER_RECORD`](Self::BYTES_PER_RECORD)
///   bytes in a store for 10,000 or more, 63 in one for a million (growth of the resident set of a
///   full store, x86-64 Linux, the allocator of glibc). The store grows with its records. Size it
///   by `rate × retention`: see [`Capacity`].
/// - **Identity.** A record holds the 128 bits of its key.
/// - **Per process.** Replicas share nothing, and nothing survives a restart: after one, a copy of
///   a finished event runs again.
/// - **The work is done when the method is called**, and the future it returns is ready. A call
///   whose future is never polled has taken effect all the same.
/// - **Monotonic time only.** A stepped wall clock neither frees a running claim nor forgets a
///   finished event.
/// - Clones share their records.
///
/// ```
/// # use std::time::Duration;
/// use std::sync::Arc;
/// use hookgate::{
///     DedupeStore, MemoryStore, block_on,
///     clock::{ManualClock, UnixSeconds},
///     dedupe::{ClaimToken, Claimed, EventKey, Ownership},
/// };
///
/// let clock = ManualClock::at(UnixSeconds::new(1_763_690_000));
/// let store = MemoryStore::default().with_clock(clock.clone());
///
/// let key = EventKey::new("default", "evt_1");
/// let (first, copy) = (ClaimToken::new(b"{}"), ClaimToken::new(b"{}"));
/// let (lease, retain) = (Duration::from_secs(30), Duration::from_secs(48 * 3600));
/// assert_eq!(block_on(store.claim(&key, first, lease))?, Claimed::Fresh);
/// assert_eq!(block_on(store.claim(&key, copy, lease))?, Claimed::Running { retry_after: lease });
/// assert_eq!(block_on(store.commit(&key, first, retain))?, Ownership::Held);
/// assert_eq!(block_on(store.claim(&key, copy, lease))?, Claimed::Done { body_mark: first.body_mark() });
///
/// clock.advance(retain);
/// assert_eq!(block_on(store.claim(&key, copy, lease))?, Claimed::Fresh);
/// # Ok::<(), hookgate::dedupe::StoreError>(())
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    table: Arc<Table>,
    scopes: ScopesInUse,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new(Capacity::default())
    }
}

impl MemoryStore {
    /// The number of bytes that a remembered event takes in a full store: measured, see the [type's
    /// docs](Self).
    pub const BYTES_PER_RECORD: usize = 72;

    /// Returns a store for `capacity` done records, at least one: a number, or a [`Capacity`],
    /// which says how to size it.
    #[must_use]
    pub fn new(capacity: impl Into<Capacity>) -> Self {
        Self::with(capacity.into(), Arc::new(SystemClock))
    }

    fn with(capacity: Capacity, clock: Arc<dyn Clock>) -> Self {
        Self {
            table: Arc::new(Table::new(capacity, clock)),
            scopes: ScopesInUse::default(),
        }
    }

    /// Returns an empty store on this clock.
    #[must_use]
    pub fn with_clock(self, clock: impl Clock) -> Self {
        Self::with(self.capacity(), Arc::new(clock))
    }

    /// Returns the capacity.
    #[must_use]
    pub fn capacity(&self) -> Capacity {
        self.table.capacity
    }

    /// Returns the numbers of records held now and of evictions so far. It locks each shard once:
    /// call it for a metric, not at each delivery.
    #[must_use]
    pub fn stats(&self) -> StoreStats {
        self.table.stats()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("capacity", &self.capacity())
            .finish_non_exhaustive()
    }
}

impl DedupeStore for MemoryStore {
    fn claim(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Answer<Claimed> {
        let claimed = self.table.claim(key, token, lease);
        Answer::ready(claimed.ok_or_else(|| StoreError::new(StoreErrorKind::Full)))
    }

    fn renew(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Answer<Ownership> {
        Answer::ready(Ok(self.table.renew(key, token, lease)))
    }

    fn commit(&self, key: &EventKey, token: ClaimToken, retain: Duration) -> Answer<Ownership> {
        let is_held = self.table.commit(key, token, retain);
        Answer::ready(Ok(Ownership::from_held(is_held)))
    }

    fn release(&self, key: &EventKey, token: ClaimToken) -> Answer<Ownership> {
        let is_held = self.table.release(key, token);
        Answer::ready(Ok(Ownership::from_held(is_held)))
    }

    fn observe(&self) -> Option<StoreStats> {
        Some(self.stats())
    }

    fn scopes_in_use(&self) -> Option<&ScopesInUse> {
        Some(&self.scopes)
    }
}

const MAX_SHARDS: usize = 64;

/// The least share of a shard, where there are several. So large that an eighth of it is eleven
/// standard deviations of the number of the newest events that fall into one shard: by Chernoff's
/// bound, more fall into a given one with a probability below e⁻⁶¹.
const MIN_SHARE: usize = 8_192;

/// The greatest number of ended records that a call frees, so that no call frees a whole backlog.
const BATCH: usize = 64;

/// The records, by shards.
struct Table {
    capacity: Capacity,
    clock: Arc<dyn Clock>,
    /// Std mutexes: none is held across an await, and no two at a time.
    shards: Box<[Mutex<Shard>]>,
    /// The most done records of a shard, where a full store evicts.
    share: usize,
    hasher: RandomState,
    longest_lease: LongestLease,
    /// The number of done records and running claims, where a full store refuses. Reserved before a
    /// claim is admitted.
    reserved: AtomicUsize,
    /// Only the fields about evictions are used. Locked after a shard, for an eviction.
    evictions: Mutex<StoreStats>,
}

impl Table {
    fn new(capacity: Capacity, clock: Arc<dyn Clock>) -> Self {
        let shards = (capacity.records() / MIN_SHARE).clamp(1, MAX_SHARDS);
        let share = capacity.records().div_ceil(shards);
        Self {
            capacity,
            clock,
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            share: if shards == 1 {
                share
            } else {
                share + share / 8
            },
            hasher: RandomState::new(),
            longest_lease: LongestLease::default(),
            reserved: AtomicUsize::new(0),
            evictions: Mutex::default(),
        }
    }

    fn stats(&self) -> StoreStats {
        let mut stats = StoreStats {
            capacity: Some(self.capacity.records()),
            ..*lock(&self.evictions)
        };
        for shard in &self.shards {
            let (shard, _) = self.lock_and_free(shard);
            stats.running += shard.running.len();
            stats.done += shard.done();
        }
        stats
    }

    /// Claims the event. Returns `None` where there is no place for a fresh event.
    fn claim(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Option<Claimed> {
        self.longest_lease.note(lease);
        self.try_claim(key, token, lease).or_else(|| {
            // Ended claims and records in other shards may hold places.
            for shard in &self.shards {
                drop(self.lock_and_free(shard));
            }
            self.try_claim(key, token, lease)
        })
    }

    fn try_claim(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Option<Claimed> {
        let hash = self.hasher.hash_one(key);
        let (mut shard, now) = self.lock_and_free(self.shard(hash));
        let lease = Lease::new(token, now, lease);
        if let Some(claimed) = shard.running.claim_running(hash, key, lease) {
            return Some(claimed);
        }
        if let Some(done) = shard.find(hash, key, now) {
            let body_mark = done.token.body_mark();
            return Some(Claimed::Done { body_mark });
        }
        self.reserve()
            .then(|| shard.running.insert(hash, *key, lease, &self.hasher))
    }

    fn renew(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Ownership {
        self.longest_lease.note(lease);
        let hash = self.hasher.hash_one(key);
        let (mut shard, now) = self.lock_and_free(self.shard(hash));
        shard
            .running
            .renew(hash, key, Lease::new(token, now, lease))
    }

    /// Returns whether this token held the claim, or has committed the record within the longest
    /// lease.
    fn commit(&self, key: &EventKey, token: ClaimToken, retain: Duration) -> bool {
        let hash = self.hasher.hash_one(key);
        let (mut shard, now) = self.lock_and_free(self.shard(hash));
        if !shard.running.remove(hash, key, token) {
            let lease = nanos_of(self.longest_lease.get());
            let is_repeated =
                |done: &Done| done.token == token && now.saturating_sub(done.committed) < lease;
            return shard.find(hash, key, now).is_some_and(is_repeated);
        }
        // The place that was reserved for the claim passes to the record.
        if !self.capacity.refuses_when_full() && shard.done() >= self.share {
            shard.evict(now, &self.hasher, &mut lock(&self.evictions));
        }
        let done = Done {
            key: *key,
            token,
            committed: now,
        };
        shard.push(nanos_of(retain), hash, done, &self.hasher);
        true
    }

    fn release(&self, key: &EventKey, token: ClaimToken) -> bool {
        let hash = self.hasher.hash_one(key);
        let (mut shard, _) = self.lock_and_free(self.shard(hash));
        let is_held = shard.running.remove(hash, key, token);
        self.give_back(usize::from(is_held));
        is_held
    }

    /// Returns the shard of this hash. By other bits than those that the map of places takes: the
    /// lowest and the highest.
    #[allow(clippy::cast_possible_truncation)] // the lower half of what is left is enough
    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        &self.shards[(hash >> 32) as usize % self.shards.len()]
    }

    /// Locks a shard, reads the time, and frees the ended claims and some ended records in it. The
    /// time is read under the lock, so that the steps on an event and the readings have one order.
    fn lock_and_free<'a>(&self, shard: &'a Mutex<Shard>) -> (MutexGuard<'a, Shard>, Nanos) {
        let mut shard = lock(shard);
        let now = nanos(self.clock.monotonic());
        let freed = shard.running.free(now, &self.hasher) + shard.free_done(now, &self.hasher);
        self.give_back(freed);
        (shard, now)
    }

    /// Reserves the place for a claim and for the record that it becomes. Returns false where there
    /// is none.
    fn reserve(&self) -> bool {
        let next = |reserved| (reserved < self.capacity.records()).then_some(reserved + 1);
        let relaxed = Ordering::Relaxed;
        !self.capacity.refuses_when_full()
            || self.reserved.fetch_update(relaxed, relaxed, next).is_ok()
    }

    fn give_back(&self, places: usize) {
        if places > 0 && self.capacity.refuses_when_full() {
            self.reserved.fetch_sub(places, Ordering::Relaxed);
        }
    }
}

/// The running claims and the done records of some of the events.
#[derive(Default)]
struct Shard {
    running: Running,
    /// One for each length of retention, of which a receiver has one. None is empty.
    queues: Vec<Queue>,
}

impl Shard {
    /// Returns the number of done records.
    fn done(&self) -> usize {
        self.queues.iter().map(|queue| queue.records.len()).sum()
    }

    fn find(&self, hash: u64, key: &EventKey, now: Nanos) -> Option<&Done> {
        let mut queues = self.queues.iter();
        queues.find_map(|queue| queue.find(hash, key, now))
    }

    fn push(&mut self, retention: Nanos, hash: u64, done: Done, hasher: &RandomState) {
        let mut queues = self.queues.iter();
        let at = queues.position(|queue| queue.retention == retention);
        let at = at.unwrap_or_else(|| {
            self.queues.push(Queue::new(retention));
            self.queues.len() - 1
        });
        self.queues[at].push(hash, done, hasher);
    }

    /// Forgets the record that was committed first, and counts it. Called after `free_done`: no
    /// first record of a queue has ended.
    fn evict(&mut self, now: Nanos, hasher: &RandomState, evictions: &mut StoreStats) {
        let queues = self.queues.iter_mut();
        if let Some(queue) = queues.min_by_key(|queue| queue.first_commit()) {
            evictions.count_eviction(queue.first_commit(), queue.first_end(), now);
            queue.pop(hasher);
        }
        self.queues.retain(|queue| !queue.records.is_empty());
    }

    /// Frees some records whose retention has ended, and returns their number.
    fn free_done(&mut self, now: Nanos, hasher: &RandomState) -> usize {
        let mut freed = 0;
        for queue in &mut self.queues {
            while freed < BATCH && !queue.records.is_empty() && queue.first_end() <= now {
                queue.pop(hasher);
                freed += 1;
            }
        }
        if freed > 0 {
            self.queues.retain(|queue| !queue.records.is_empty());
        }
        freed
    }
}

/// The done records of one length of retention, in the order of their commits, which is the order
/// in which they end.
struct Queue {
    retention: Nanos,
    records: VecDeque<Done>,
    /// The number of the first record in the queue, and of the next one: counted from the first one
    /// ever, and wrapping.
    first: u32,
    next: u32,
    /// The numbers of the records, by the hashes of their keys: half the bytes of an index of 64
    /// bits.
    places: HashTable<u32>,
}

/// A finished event. Its end is the commit's time plus the retention of its queue.
struct Done {
    key: EventKey,
    token: ClaimToken,
    committed: Nanos,
}

impl Queue {
    fn new(retention: Nanos) -> Self {
        Self {
            retention,
            records: VecDeque::new(),
            first: 0,
            next: 0,
            places: HashTable::new(),
        }
    }

    /// Finds the record of this event, unless it has ended: an ended one may still stand before
    /// another one of the same event.
    fn find(&self, hash: u64, key: &EventKey, now: Nanos) -> Option<&Done> {
        let record = |number: &u32| &self.records[index(self.first, *number)];
        let is_it = |done: &Done| done.key == *key && now < self.end(done);
        let number = self.places.find(hash, |number| is_it(record(number)))?;
        Some(record(number))
    }

    fn push(&mut self, hash: u64, done: Done, hasher: &RandomState) {
        // By a quarter: `VecDeque` would double its buffer, and leave up to half of it empty.
        if self.records.len() == self.records.capacity() {
            self.records.reserve_exact(self.records.len() / 4 + 4);
        }
        self.records.push_back(done);
        let rehash = |number: &u32| hasher.hash_one(self.records[index(self.first, *number)].key);
        self.places.insert_unique(hash, self.next, rehash);
        self.next = self.next.wrapping_add(1);
    }

    /// Removes the record that was committed first.
    fn pop(&mut self, hasher: &RandomState) {
        if let Some(done) = self.records.pop_front() {
            let hash = hasher.hash_one(done.key);
            if let Ok(place) = self.places.find_entry(hash, |number| *number == self.first) {
                place.remove();
            }
            self.first = self.first.wrapping_add(1);
        }
    }

    /// Returns the time of the first record's commit.
    fn first_commit(&self) -> Nanos {
        let first = self.records.front();
        first.map_or(Nanos::MAX, |done| done.committed)
    }

    /// Returns the end of the first record.
    fn first_end(&self) -> Nanos {
        let first = self.records.front();
        first.map_or(Nanos::MAX, |done| self.end(done))
    }

    fn end(&self, done: &Done) -> Nanos {
        done.committed.saturating_add(self.retention)
    }
}

/// Returns where the record of this number stands in a queue that begins with the number `first`.
fn index(first: u32, number: u32) -> usize {
    number.wrapping_sub(first) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{ManualClock, UnixSeconds};

    const LEASE: Duration = Duration::from_secs(30);
    const RETAIN: Duration = Duration::from_secs(48 * 3_600);

    fn table(capacity: Capacity) -> (Table, ManualClock) {
        let clock = ManualClock::at(UnixSeconds::new(0));
        (Table::new(capacity, Arc::new(clock.clone())), clock)
    }

    /// Distinct keys that lie in this shard, of the given number of shards.
    fn keys_of_shard(table: &Table, shard: usize) -> impl Iterator<Item = EventKey> {
        (0_u32..)
            .map(|number| EventKey::new("default", &number.to_string()))
            .filter(move |key| {
                let hash = table.hasher.hash_one(key);
                std::ptr::eq(table.shard(hash), &raw const table.shards[shard])
            })
    }

    fn finish(table: &Table, key: &EventKey) {
        let token = ClaimToken::new(b"{}");
        assert_eq!(table.claim(key, token, LEASE), Some(Claimed::Fresh));
        assert!(table.commit(key, token, RETAIN));
    }

    fn remembers(table: &Table, key: &EventKey) -> bool {
        let hash = table.hasher.hash_one(key);
        let (shard, now) = table.lock_and_free(table.shard(hash));
        shard.find(hash, key, now).is_some()
    }

    /// The bound of the docs, to the last record: a shard takes its share and an eighth of the
    /// newest events.
    #[test]
    fn a_shard_takes_its_share_and_an_eighth_of_the_newest_events() {
        let capacity = 2 * MIN_SHARE;
        let (table, _) = table(Capacity::new(capacity));
        let most = MIN_SHARE + MIN_SHARE / 8;
        let many: Vec<_> = keys_of_shard(&table, 0).take(most + 1).collect();
        let few: Vec<_> = keys_of_shard(&table, 1).take(capacity - most).collect();
        // The newest `capacity` events, as unevenly as the bound allows.
        for key in many[..most].iter().chain(&few) {
            finish(&table, key);
        }
        assert!(
            many[..most]
                .iter()
                .chain(&few)
                .all(|key| remembers(&table, key))
        );
        assert_eq!(table.stats().evicted, 0);
        // One more in the full shard: the first one of it is forgotten, and no other.
        finish(&table, &many[most]);
        assert!(!remembers(&table, &many[0]));
        assert!(
            many[1..]
                .iter()
                .chain(&few)
                .all(|key| remembers(&table, key))
        );
        assert_eq!(table.stats().evicted, 1);
    }

    #[test]
    fn a_small_store_has_one_shard_and_a_large_one_at_most_64() {
        for (capacity, shards, share) in [
            (1, 1, 1),
            (2 * MIN_SHARE - 1, 1, 2 * MIN_SHARE - 1),
            (2 * MIN_SHARE, 2, MIN_SHARE + MIN_SHARE / 8),
            (Capacity::DEFAULT_RECORDS, 32, MIN_SHARE + MIN_SHARE / 8),
            (100_000_000, 64, 1_562_500 + 195_312),
        ] {
            let (table, _) = table(Capacity::new(capacity));
            assert_eq!(
                (table.shards.len(), table.share),
                (shards, share),
                "{capacity}"
            );
        }
    }

    /// A call frees at most one batch. The ended records that are left do not count.
    #[test]
    fn an_ended_record_behind_a_backlog_is_forgotten_and_its_event_can_come_again() {
        let (table, clock) = table(Capacity::default());
        let keys: Vec<_> = keys_of_shard(&table, 7).take(4 * BATCH).collect();
        keys.iter().for_each(|key| finish(&table, key));
        clock.advance(RETAIN);
        let last = &keys[4 * BATCH - 1];
        finish(&table, last);
        assert!(remembers(&table, last));
        // The backlog ends, and the record of the second commit stays.
        while table.stats().done > 1 {}
        assert!(remembers(&table, last));
        clock.advance(RETAIN);
        assert!(!remembers(&table, last));
    }

    #[test]
    fn a_full_store_that_refuses_finds_the_places_in_other_shards() {
        let capacity = Capacity::new(2 * MIN_SHARE).refusing_when_full();
        let (table, clock) = table(capacity);
        let token = ClaimToken::new(b"{}");
        for key in keys_of_shard(&table, 0).take(2 * MIN_SHARE) {
            assert_eq!(table.claim(&key, token, LEASE), Some(Claimed::Fresh));
        }
        let other = keys_of_shard(&table, 1).next().unwrap();
        assert_eq!(table.claim(&other, token, LEASE), None);
        clock.advance(LEASE);
        assert_eq!(table.claim(&other, token, LEASE), Some(Claimed::Fresh));
    }

    #[test]
    fn numbers_that_wrap_change_nothing() {
        let hasher = RandomState::new();
        let mut queue = Queue::new(10);
        (queue.first, queue.next) = (u32::MAX - 2, u32::MAX - 2);
        let key = |number: u64| EventKey::new("default", &number.to_string());
        let is_found = |queue: &Queue, number| {
            let key = key(number);
            queue.find(hasher.hash_one(key), &key, 0).is_some()
        };
        for committed in 0..1_000 {
            let token = ClaimToken::new(b"{}");
            let done = Done {
                key: key(committed),
                token,
                committed,
            };
            queue.push(hasher.hash_one(done.key), done, &hasher);
            if committed >= 5 {
                queue.pop(&hasher);
            }
            let kept = committed.saturating_sub(4)..=committed;
            assert!((0..=committed).all(|n| is_found(&queue, n) == kept.contains(&n)));
        }
        assert_eq!(queue.places.len(), 5);
    }

    #[test]
    fn the_shards_of_other_stores_hold_other_events() {
        let first = || {
            let (table, _) = table(Capacity::default());
            keys_of_shard(&table, 7).take(8).collect::<Vec<_>>()
        };
        assert_ne!(first(), first());
    }
}
