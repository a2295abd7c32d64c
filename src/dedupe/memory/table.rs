//! The records of a store in memory: shards of running claims and done records, and the order of all commits.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::done::{DoneRecords, Found, Identity, SHARDS};
use super::index;
use super::order::{First, Order};
use crate::clock::Clock;
use crate::dedupe::capacity::{Capacity, StoreStats, WhenFull};
use crate::dedupe::expiry::{BATCH, Nanos, nanos, nanos_of};
use crate::dedupe::hash::KeyState;
use crate::dedupe::key::{ClaimToken, EventKey};
use crate::dedupe::running::Running;
use crate::dedupe::store::{Claimed, Ownership};
use crate::sync::{AtomicUsize, Mutex, MutexGuard, lock};

/// The most records of a store: a sixteenth less than the indexes can tell apart, since shards are not quite equally full.
pub(super) const MOST: usize = SHARDS as usize * (index::MOST as usize / 16 * 15);

/// The table of [`DedupeStore`](crate::DedupeStore), for one process.
pub(super) struct Table {
    pub(super) capacity: Capacity,
    pub(super) clock: Arc<dyn Clock>,
    /// For the shard and the tag of an event.
    hash: KeyState,
    /// For the place of a record in its shard. A sender does not know the two, and so can't choose ids that fill one place.
    places: KeyState,
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
    fn find(&mut self, event: &Identity, now: Nanos) -> Option<(&DoneRecords, Found)> {
        self.done.iter_mut().find_map(|done| {
            let found = done.find(event, now)?;
            Some((&*done, found))
        })
    }

    fn of_retention(&self, retention: Nanos) -> Option<usize> {
        let mut done = self.done.iter();
        done.position(|done| done.retention == retention)
    }
}

impl Table {
    pub(super) fn new(capacity: Capacity, clock: Arc<dyn Clock>) -> Self {
        let capacity = capacity.at_most(MOST);
        Self {
            capacity,
            clock,
            hash: KeyState::default(),
            places: KeyState::default(),
            shards: std::array::from_fn(|_| CachePadded::default()),
            order: CachePadded(Mutex::new(Order::new(capacity.records()))),
            held: AtomicUsize::new(0),
        }
    }

    pub(super) fn stats(&self) -> StoreStats {
        let entered = self.shards.iter().map(|shard| self.enter(&shard.0).0);
        let running = entered.map(|shard| shard.running.len()).sum();
        self.free_done(self.now());
        let order = lock(&self.order.0);
        StoreStats {
            running,
            done: order.len(),
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
            if claimed.is_some() || !self.sweep() {
                return claimed;
            }
        }
    }

    pub(super) fn renew(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Ownership {
        let (mut shard, now, _) = self.enter(self.shard(shard_of(self.hash(key))));
        shard.running.renew(key, token, now, lease)
    }

    pub(super) fn commit(&self, key: &EventKey, token: ClaimToken, retain: Duration) -> Ownership {
        let hash = self.hash(key);
        let (event, number) = (Identity::new(key, hash, &self.places), shard_of(hash));
        let (mut shard, now, _) = self.enter(self.shard(number));
        let Some(lease) = shard.running.release(key, token, now) else {
            let found = shard.find(&event, now);
            let is_repeated = found.is_some_and(|(done, found)| done.is_by(found, token, now));
            return Ownership::held(is_repeated);
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
        let is_full = !self.refuses() && order.len() >= self.capacity.records();
        let evicted = is_full.then(|| order.evict(now)).flatten();
        order.push(retention, number, now);
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
        let (mut shard, now, _) = self.enter(self.shard(shard_of(self.hash(key))));
        let is_held = shard.running.release(key, token, now).is_some();
        self.give_back(usize::from(is_held));
        Ownership::held(is_held)
    }

    fn hash(&self, key: &EventKey) -> u64 {
        self.hash.hash(u128::from_le_bytes(*key.as_bytes()))
    }

    fn shard(&self, number: u8) -> &Mutex<Shard> {
        &self.shards[usize::from(number % SHARDS)].0
    }

    fn now(&self) -> Nanos {
        nanos(self.clock.monotonic())
    }

    /// Locks a shard, reads the time, and frees some ended claims in it. Returns whether a lease had ended, too. The time is read under
    /// the lock, so that the steps on an event and the readings have one order.
    fn enter<'a>(&self, shard: &'a Mutex<Shard>) -> (MutexGuard<'a, Shard>, Nanos, bool) {
        let mut shard = lock(shard);
        let now = self.now();
        let has_ended = shard.running.has_ended(now);
        if has_ended {
            self.give_back(shard.running.free(now));
        }
        (shard, now, has_ended)
    }

    /// Claims the event, without a look for ended records elsewhere.
    fn try_claim(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Option<Claimed> {
        let hash = self.hash(key);
        let (event, number) = (Identity::new(key, hash, &self.places), shard_of(hash));
        let (mut shard, now, _) = self.enter(self.shard(number));
        if let Some(claimed) = shard.running.claim_again(key, token, now, lease) {
            return Some(claimed);
        }
        // An ended claim leaves its space to the next one. That may still find none, so free the space first.
        self.give_back(usize::from(shard.running.free_one(key, now)));
        if let Some((_, Found { body_mark, .. })) = shard.find(&event, now) {
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

    /// Frees some ended records in every shard, one lock at a time. Returns false where none has ended.
    fn sweep(&self) -> bool {
        let mut swept = false;
        for CachePadded(shard) in &self.shards {
            swept |= self.enter(shard).2;
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

/// Returns the number of the shard of an event with this hash of its key.
fn shard_of(hash: u64) -> u8 {
    hash.to_le_bytes()[5] % SHARDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{ManualClock, UnixSeconds};

    const LEASE: Duration = Duration::from_secs(30);

    fn keys_of_one_shard(table: &Table) -> impl Iterator<Item = EventKey> {
        (0..)
            .map(|number: u32| EventKey::new("default", &number.to_string()))
            .filter(|key| shard_of(table.hash(key)) == 7)
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
