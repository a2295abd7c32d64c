//! The records of a store in memory: shards, and one queue over all of them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::clock::Clock;
use crate::dedupe::capacity::{Capacity, StoreStats, WhenFull};
use crate::dedupe::expiry::{BATCH, ExpiryQueue, Nanos, nanos, nanos_of};
use crate::dedupe::hash::{KeyState, SHARDS};
use crate::dedupe::key::{ClaimToken, EventKey};
use crate::dedupe::running::Running;
use crate::dedupe::store::{Claimed, Ownership};
use crate::sync::{AtomicUsize, Mutex, MutexGuard, lock};

/// The table of [`DedupeStore`](crate::DedupeStore), for one process.
pub(super) struct Table {
    pub(super) capacity: Capacity,
    pub(super) clock: Arc<dyn Clock>,
    hash: KeyState,
    // Std mutexes: each is held for a few map operations, never across an await and never with another.
    shards: [CachePadded<Mutex<Shard>>; SHARDS],
    retentions: CachePadded<Mutex<Retentions>>,
    /// The number of done records and running claims, where a full store refuses. Reserved before a claim is admitted.
    held: AtomicUsize,
}

/// In cache lines of its own: where one thread writes it, no other thread has to read its neighbours again.
#[derive(Default)]
#[repr(align(128))]
struct CachePadded<T>(T);

/// The records of some of the events.
#[derive(Default)]
struct Shard {
    running: Running,
    done: HashMap<EventKey, Done, KeyState>,
}

struct Done {
    by: ClaimToken,
    /// The end of the retention.
    end: Nanos,
}

/// The done records of all shards.
#[derive(Default)]
struct Retentions {
    /// An event that was claimed again after its retention had ended leaves its old entry behind, until its turn comes.
    queue: ExpiryQueue<Committed>,
    /// Only the fields about evictions are used.
    evictions: StoreStats,
}

struct Committed {
    key: EventKey,
    at: Nanos,
}

impl Retentions {
    /// Removes the record whose retention ends first, and counts it.
    fn evict_first(&mut self, now: Nanos) -> Option<(Nanos, Committed)> {
        let (end, record) = self.queue.pop_first()?;
        self.evictions.count_eviction(record.at, end, now);
        Some((end, record))
    }
}

impl Table {
    pub(super) fn new(capacity: Capacity, clock: Arc<dyn Clock>) -> Self {
        Self {
            capacity,
            clock,
            hash: KeyState::default(),
            shards: std::array::from_fn(|_| CachePadded::default()),
            retentions: CachePadded::default(),
            held: AtomicUsize::new(0),
        }
    }

    pub(super) fn stats(&self) -> StoreStats {
        let entered = self.shards.iter().map(|shard| self.enter(&shard.0).0);
        let running = entered.map(|shard| shard.running.len()).sum();
        self.free_done(self.now());
        let retentions = lock(&self.retentions.0);
        StoreStats {
            running,
            done: retentions.queue.len(),
            capacity: Some(self.capacity.records()),
            ..retentions.evictions
        }
    }

    /// Claims the event. Returns `None` where there is no space for a fresh event.
    pub(super) fn claim(
        &self,
        key: &EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> Option<Claimed> {
        loop {
            let claimed = self.try_claim(key, token, lease);
            // Ended records in other shards are freed only when there is no space.
            if claimed.is_some() || !self.sweep() {
                return claimed;
            }
        }
    }

    pub(super) fn renew(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Ownership {
        let (mut shard, now) = self.enter(self.shard(key));
        shard.running.renew(key, token, now, lease)
    }

    pub(super) fn commit(&self, key: &EventKey, token: ClaimToken, retain: Duration) -> Ownership {
        let (mut shard, now) = self.enter(self.shard(key));
        if shard.running.release(key, token, now) == Ownership::Lost {
            return match shard.done.get(key) {
                Some(done) if done.by == token && done.end > now => Ownership::Held,
                _ => Ownership::Lost,
            };
        }
        // Where space is counted, the space of the claim passes to the record.
        let end = now.saturating_add(nanos_of(retain));
        shard.done.insert(*key, Done { by: token, end });
        drop(shard);
        self.remember(*key, now, end);
        Ownership::Held
    }

    pub(super) fn release(&self, key: &EventKey, token: ClaimToken) -> Ownership {
        let (mut shard, now) = self.enter(self.shard(key));
        let released = shard.running.release(key, token, now);
        self.give_back(usize::from(released == Ownership::Held));
        released
    }

    fn shard(&self, key: &EventKey) -> &Mutex<Shard> {
        &self.shards[self.hash.shard(key)].0
    }

    fn now(&self) -> Nanos {
        nanos(self.clock.monotonic())
    }

    /// Locks a shard, frees some ended claims in it, and reads the time. The time is read under the lock, so that the steps on an
    /// event and the readings have one order.
    fn enter<'a>(&self, shard: &'a Mutex<Shard>) -> (MutexGuard<'a, Shard>, Nanos) {
        let mut shard = lock(shard);
        let now = self.now();
        self.give_back(shard.running.free(now));
        (shard, now)
    }

    /// Claims the event, without a look for ended records in other shards.
    fn try_claim(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Option<Claimed> {
        let (mut shard, now) = self.enter(self.shard(key));
        if let Some(claimed) = shard.running.claim_again(key, token, now, lease) {
            return Some(claimed);
        }
        // An ended record leaves its space to the next claim. That claim may still find none, so free the space first.
        self.give_back(usize::from(shard.running.free_one(key, now)));
        match shard.done.get(key) {
            Some(done) if done.end > now => return Some(Claimed::Done { by: done.by }),
            Some(_) => {
                shard.done.remove(key);
                self.give_back(1);
            }
            None => {}
        }
        self.reserve()
            .then(|| shard.running.claim(key, token, now, lease))
    }

    /// Enters a new done record into the queue, and frees the records that have to go. The record's shard is not locked: until the
    /// records that go have left their shards, the store remembers one or two more, which does no harm.
    fn remember(&self, key: EventKey, now: Nanos, end: Nanos) {
        let mut retentions = lock(&self.retentions.0);
        // Before the new record is pushed: it is never the one that is evicted, however short its retention.
        let is_full = !self.refuses() && retentions.queue.len() >= self.capacity.records();
        let evicted = is_full.then(|| retentions.evict_first(now)).flatten();
        retentions.queue.push(end, Committed { key, at: now });
        let has_ended = retentions.queue.has_ended(now);
        drop(retentions);
        if let Some((end, record)) = evicted {
            self.forget(&record.key, end);
        }
        if has_ended {
            self.free_done(now);
        }
    }

    /// Frees some records whose retention has ended. Returns whether there was one in the queue.
    fn free_done(&self, now: Nanos) -> bool {
        for number in 0..BATCH {
            let ended = lock(&self.retentions.0).queue.pop_ended(now);
            let Some((end, record)) = ended else {
                return number > 0;
            };
            self.forget(&record.key, end);
        }
        true
    }

    /// Removes the done record of this end. The event may have been claimed again since its retention ended.
    fn forget(&self, key: &EventKey, end: Nanos) {
        let mut shard = lock(self.shard(key));
        if let Entry::Occupied(done) = shard.done.entry(*key)
            && done.get().end == end
        {
            done.remove();
            self.give_back(1);
        }
    }

    /// Frees some ended records in every shard, one lock at a time. Returns false where none has ended.
    fn sweep(&self) -> bool {
        let mut swept = false;
        for CachePadded(shard) in &self.shards {
            let now = self.now();
            let mut shard = lock(shard);
            swept |= shard.running.has_ended(now);
            self.give_back(shard.running.free(now));
        }
        self.free_done(self.now()) || swept
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

    fn give_back(&self, spaces: usize) {
        if spaces > 0 && self.refuses() {
            self.held.fetch_sub(spaces, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{ManualClock, UnixSeconds};

    const LEASE: Duration = Duration::from_secs(30);

    fn keys_of_one_shard(table: &Table) -> impl Iterator<Item = EventKey> {
        (0..)
            .map(|number: u32| EventKey::new("default", &number.to_string()))
            .filter(|key| std::ptr::eq(table.shard(key), &raw const table.shards[7].0))
    }

    /// A call frees at most one batch of ended records. The remaining ended records do not count as live.
    #[test]
    fn a_lease_that_ended_behind_many_others_lets_a_successor_in() {
        let clock = ManualClock::at(UnixSeconds::new(0));
        let table = Table::new(Capacity::default(), Arc::new(clock.clone()));
        let keys: Vec<_> = keys_of_one_shard(&table).take(4 * BATCH).collect();
        let (first, second) = (ClaimToken::new(b"{}"), ClaimToken::new(b"{}"));
        let claim = |key, token| table.claim(key, token, LEASE).unwrap();
        assert!(keys.iter().all(|key| claim(key, first) == Claimed::Fresh));
        clock.advance(LEASE);
        let [.., before, last] = &keys[..] else {
            panic!("keys are many")
        };
        assert_eq!(table.renew(before, first, LEASE), Ownership::Lost);
        assert_eq!(claim(last, second), Claimed::Fresh);
        assert!(matches!(claim(last, first), Claimed::Running { .. }));
    }

    /// The entries of renewed claims stand before those that free a space.
    #[test]
    fn a_full_store_that_refuses_finds_the_space_behind_any_number_of_old_entries() {
        let clock = ManualClock::at(UnixSeconds::new(0));
        let capacity = Capacity::new(2 * BATCH).with_when_full(WhenFull::Refuse);
        let table = Table::new(capacity, Arc::new(clock.clone()));
        let keys: Vec<_> = keys_of_one_shard(&table).take(2 * BATCH + 1).collect();
        let token = ClaimToken::new(b"{}");
        let [renewed @ .., last, one_too_many] = &keys[..] else {
            panic!("keys are many")
        };
        for key in renewed {
            assert_eq!(table.claim(key, token, LEASE), Some(Claimed::Fresh));
            assert_eq!(table.renew(key, token, 3 * LEASE), Ownership::Held);
        }
        assert_eq!(table.claim(last, token, LEASE), Some(Claimed::Fresh));
        assert_eq!(table.claim(one_too_many, token, LEASE), None);
        clock.advance(LEASE);
        assert_eq!(
            table.claim(one_too_many, token, LEASE),
            Some(Claimed::Fresh)
        );
        assert_eq!(table.claim(last, token, LEASE), None);
    }

    #[test]
    fn the_shards_of_other_stores_hold_other_events() {
        let table = || {
            Table::new(
                Capacity::default(),
                Arc::new(ManualClock::at(UnixSeconds::new(0))),
            )
        };
        let (one, other) = (table(), table());
        let first = |table: &Table| keys_of_one_shard(table).take(8).collect::<Vec<_>>();
        assert_ne!(first(&one), first(&other));
    }
}
