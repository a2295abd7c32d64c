//! The records of a store in memory: shards of running claims and done records, and the order of all commits.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::done::{DoneRecords, Found, Identity, SHARDS};
use super::index;
use super::order::{First, Order};
use crate::clock::Clock;
use crate::dedupe::capacity::{Capacity, StoreStats, WhenFull};
use crate::dedupe::hash::KeyHasher;
use crate::dedupe::key::{ClaimToken, EventKey};
use crate::dedupe::nanos::{Nanos, nanos, nanos_of};
use crate::dedupe::running::Running;
use crate::dedupe::store::{Claimed, Ownership};
use crate::sync::{AtomicUsize, Mutex, MutexGuard, lock};

/// The most records of a store: a sixteenth less than the indexes can tell apart, since shards are not quite equally full.
pub(super) const MOST: usize = SHARDS as usize * (index::MOST as usize / 16 * 15);

/// The greatest number of ended records that a call frees. More than one, so that a backlog shrinks; bounded, so that no single
/// call frees the whole backlog.
const BATCH: usize = 64;

/// The table of [`DedupeStore`](crate::DedupeStore), for one process.
pub(super) struct Table {
    pub(super) capacity: Capacity,
    pub(super) clock: Arc<dyn Clock>,
    /// For the shard and the tag of an event.
    hash: KeyHasher,
    /// For the place of a record in its shard. A sender does not know the two, and so can't choose ids that fill one place.
    places: KeyHasher,
    // Std mutexes: none is held across an await. The order's is taken while a shard's is held, never the other way round.
    shards: [CachePadded<Mutex<Shard>>; SHARDS as usize],
    order: CachePadded<Mutex<Order>>,
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
    /// The done records, by the length of their retention. A receiver has one length.
    done: Vec<DoneRecords>,
}

impl Shard {
    fn find(&mut self, event: &Identity, now: Nanos) -> Option<Found> {
        let mut done = self.done.iter_mut();
        done.find_map(|done| done.find(event, now))
    }

    fn of_retention(&self, retention: Nanos) -> Option<usize> {
        let mut done = self.done.iter();
        done.position(|done| done.retention == retention)
    }
}

impl Table {
    pub(super) fn new(capacity: Capacity, clock: Arc<dyn Clock>) -> Self {
        let records = capacity.records().min(MOST);
        let capacity = Capacity::new(records).with_when_full(capacity.when_full());
        Self {
            capacity,
            clock,
            hash: KeyHasher::default(),
            places: KeyHasher::default(),
            shards: std::array::from_fn(|_| CachePadded::default()),
            order: CachePadded(Mutex::new(Order::new(records))),
            held: AtomicUsize::new(0),
        }
    }

    pub(super) fn stats(&self) -> StoreStats {
        let (_, running) = self.free_claims();
        self.free_done(self.now());
        let order = lock(&self.order.0);
        StoreStats {
            running,
            done: order.len,
            capacity: Some(self.capacity.records()),
            ..order.evictions
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
            // Ended records are freed only when there is no space.
            let is_over =
                claimed.is_some() || (self.free_claims().0 == 0 && !self.free_done(self.now()));
            if is_over {
                return claimed;
            }
        }
    }

    pub(super) fn renew(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Ownership {
        let (mut shard, now, _) = self.enter(key);
        shard.running.renew(key, token, now, lease)
    }

    pub(super) fn commit(&self, key: &EventKey, token: ClaimToken, retain: Duration) -> Ownership {
        let (mut shard, now, event) = self.enter(key);
        let Some(lease) = shard.running.release(key, token, now) else {
            let found = shard.find(&event, now);
            return Ownership::held(found.is_some_and(|found| found.by == Some(token)));
        };
        // Where space is counted, the space of the claim passes to the record.
        let retention = nanos_of(retain);
        let at = shard.of_retention(retention).unwrap_or_else(|| {
            let records = self.capacity.records().div_ceil(self.shards.len());
            shard.done.push(DoneRecords::new(retention, records));
            shard.done.len() - 1
        });
        if let Some(done) = shard.done.get_mut(at) {
            done.push(&event, token, now, lease, &self.places);
        }
        let mut order = lock(&self.order.0);
        // Before the new record is pushed: it is never the one that is evicted.
        let is_full = !self.refuses() && order.len >= self.capacity.records();
        let evicted = is_full.then(|| order.evict(now)).flatten();
        order.push(retention, event.shard, now);
        let may_have_ended = order.may_have_ended(now);
        drop((order, shard));
        // Until they have left their shards, the store remembers a few records more, which does no harm.
        if let Some(first) = evicted {
            self.forget(&first);
        }
        if may_have_ended {
            self.free_done(now);
        }
        Ownership::Held
    }

    pub(super) fn release(&self, key: &EventKey, token: ClaimToken) -> Ownership {
        let (mut shard, now, _) = self.enter(key);
        let is_held = shard.running.release(key, token, now).is_some();
        self.give_back(usize::from(is_held));
        Ownership::held(is_held)
    }

    fn shard(&self, number: u8) -> &Mutex<Shard> {
        &self.shards[usize::from(number % SHARDS)].0
    }

    fn now(&self) -> Nanos {
        nanos(self.clock.monotonic())
    }

    /// Locks the shard of an event, and reads the time: under the lock, so that the steps on an event and the readings have one
    /// order.
    fn enter(&self, key: &EventKey) -> (MutexGuard<'_, Shard>, Nanos, Identity) {
        let event = Identity::new(key, self.hash.hash_one(key), &self.places);
        let mut shard = lock(self.shard(event.shard));
        let now = self.now();
        self.give_back(shard.running.tidy(now));
        (shard, now, event)
    }

    /// Claims the event, without a look for ended records elsewhere.
    fn try_claim(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Option<Claimed> {
        let (mut shard, now, event) = self.enter(key);
        if let Some(claimed) = shard.running.claim_again(key, token, now, lease) {
            return Some(claimed);
        }
        // An ended claim leaves its space to the next one. That may still find none, so free the space first.
        self.give_back(usize::from(shard.running.free_one(key, now)));
        if let Some(Found { body_mark, .. }) = shard.find(&event, now) {
            return Some(Claimed::Done { body_mark });
        }
        self.reserve()
            .then(|| shard.running.claim(key, token, now, lease))
    }

    /// Frees some records whose retention has ended. Returns whether there was one.
    fn free_done(&self, now: Nanos) -> bool {
        for number in 0..BATCH {
            let ended = lock(&self.order.0).pop_ended(now);
            let Some(first) = ended else {
                return number > 0;
            };
            self.forget(&first);
        }
        true
    }

    /// Removes the record that was committed first, of those of this retention in this shard.
    fn forget(&self, first: &First) {
        let mut shard = lock(self.shard(first.shard));
        if let Some(at) = shard.of_retention(first.retention)
            && let Some(done) = shard.done.get_mut(at)
        {
            done.pop(&self.places);
            if done.is_empty() {
                shard.done.swap_remove(at);
            }
            self.give_back(1);
        }
    }

    /// Frees the ended claims in every shard, one lock at a time. Returns their number, and the number of the others.
    fn free_claims(&self) -> (usize, usize) {
        let (mut freed, mut running) = (0, 0);
        for CachePadded(shard) in &self.shards {
            let mut shard = lock(shard);
            let ended = shard.running.free(self.now());
            self.give_back(ended);
            freed += ended;
            running += shard.running.len();
        }
        (freed, running)
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
            .filter(|key| table.enter(key).2.shard == 7)
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
