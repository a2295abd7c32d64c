//! The records of a store in memory: shards of running claims and done records, and the order of all commits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::done::{DoneRecords, Found, Identity, SHARDS};
use super::index;
use super::order::{First, Order};
use crate::clock::Clock;
use crate::dedupe::capacity::{Capacity, StoreStats};
use crate::dedupe::expiry::{Nanos, nanos, nanos_of};
use crate::dedupe::hash::KeyState;
use crate::dedupe::key::{ClaimToken, EventKey};
use crate::dedupe::running::{Lease, Running};
use crate::dedupe::store::{Claimed, Ownership};
use crate::sync::{AtomicU64, AtomicUsize, Mutex, MutexGuard, lock};

/// The most records of a store: a sixteenth less than the indexes can tell apart, since shards are not quite equally full.
pub(super) const MAX_CAPACITY: usize = SHARDS as usize * (index::POSITIONS as usize / 16 * 15);

/// The greatest number of ended records that a commit frees. More than one, so that a backlog shrinks; bounded, so that no commit
/// frees the whole backlog.
const BATCH: usize = 64;

/// The table of [`DedupeStore`](crate::DedupeStore), for one process.
pub(super) struct Table {
    pub(super) capacity: Capacity,
    pub(super) clock: Arc<dyn Clock>,
    hash: KeyState,
    // Std mutexes: none is held across an await. The order's is taken while a shard's is held, never the other way round.
    shards: [Mutex<Shard>; SHARDS as usize],
    order: Mutex<Order>,
    /// No retention ends before this. Written under the lock of the order.
    next_end: AtomicU64,
    /// The number of done records and running claims, where a full store refuses. Reserved before a claim is admitted.
    held: AtomicUsize,
}

/// The records of some of the events. In cache lines of its own: where one thread writes it, no other thread has to read its neighbours
/// again.
#[derive(Default)]
#[repr(align(128))]
struct Shard {
    running: Running,
    /// The done records, by the length of their retention. A receiver has one length.
    done: BTreeMap<Nanos, DoneRecords>,
}

impl Shard {
    fn find(&self, event: &Identity) -> Option<(&DoneRecords, Found)> {
        let mut done = self.done.values();
        done.find_map(|done| Some((done, done.find(event)?)))
    }
}

impl Table {
    pub(super) fn new(capacity: Capacity, clock: Arc<dyn Clock>) -> Self {
        let capacity = capacity.at_most(MAX_CAPACITY);
        Self {
            capacity,
            clock,
            hash: KeyState::default(),
            shards: std::array::from_fn(|_| Mutex::default()),
            order: Mutex::new(Order::new(capacity.records())),
            next_end: AtomicU64::new(Nanos::MAX),
            held: AtomicUsize::new(0),
        }
    }

    pub(super) fn stats(&self) -> StoreStats {
        let running = (0..SHARDS).map(|shard| self.enter(shard).0.running.len());
        let running = running.sum();
        self.free_done(self.now());
        let order = lock(&self.order);
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
        let event = Identity::new(key, &self.hash);
        loop {
            let (mut shard, now) = self.enter(event.shard);
            let lease = || Lease::new(token, now, lease);
            let running = shard.running.claim_again(key, lease());
            let claimed = running.or_else(|| match shard.find(&event) {
                Some((_, Found { body_mark, .. })) => Some(Claimed::Done { body_mark }),
                None => self.reserve().then(|| shard.running.claim(key, lease())),
            });
            drop(shard);
            // Records whose retention has ended leave later. Only here they could change the answer.
            let has_changed = match claimed {
                None => self.sweep(),
                Some(Claimed::Done { .. }) => self.free_done(now),
                Some(_) => false,
            };
            if !has_changed {
                return claimed;
            }
        }
    }

    pub(super) fn renew(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Ownership {
        let (mut shard, now) = self.enter(Identity::new(key, &self.hash).shard);
        shard.running.renew(key, Lease::new(token, now, lease))
    }

    pub(super) fn commit(&self, key: &EventKey, token: ClaimToken, retain: Duration) -> Ownership {
        let event = Identity::new(key, &self.hash);
        let (mut shard, now) = self.enter(event.shard);
        let Some(lease) = shard.running.release(key, token) else {
            let found = shard.find(&event);
            let is_repeated = found.is_some_and(|(done, found)| done.is_by(found, token, now));
            return Ownership::held(is_repeated);
        };
        // Where space is counted, the space of the claim passes to the record.
        let retention = nanos_of(retain);
        let done = shard.done.entry(retention).or_insert_with(|| {
            DoneRecords::new(self.capacity.records().div_ceil(self.shards.len()))
        });
        let repeatable = now.saturating_add(lease.min(retention));
        done.push(&event, token, now, repeatable, &self.hash);
        let mut order = lock(&self.order);
        // Before the new record is pushed: it is never the one that is evicted.
        let is_full = !self.refuses() && order.len() >= self.capacity.records();
        let evicted = is_full.then(|| order.evict(now)).flatten();
        order.push(retention, event.shard, now);
        let end = now.saturating_add(retention);
        if end < self.next_end.load(Ordering::Relaxed) {
            self.next_end.store(end, Ordering::Relaxed);
        }
        drop((order, shard));
        // Until they have left their shards, the store remembers a few records more, which does no harm.
        if let Some(first) = evicted {
            self.forget(&first);
        }
        self.free_done(now);
        Ownership::Held
    }

    pub(super) fn release(&self, key: &EventKey, token: ClaimToken) -> Ownership {
        let (mut shard, _) = self.enter(Identity::new(key, &self.hash).shard);
        let is_held = shard.running.release(key, token).is_some();
        self.give_back(usize::from(is_held));
        Ownership::held(is_held)
    }

    fn shard(&self, number: u8) -> &Mutex<Shard> {
        &self.shards[usize::from(number % SHARDS)]
    }

    fn now(&self) -> Nanos {
        nanos(self.clock.monotonic())
    }

    /// Locks a shard, reads the time, and frees the ended claims in it. The time is read under the lock, so that the steps on an event
    /// and the readings have one order.
    fn enter(&self, shard: u8) -> (MutexGuard<'_, Shard>, Nanos) {
        let mut shard = lock(self.shard(shard));
        let now = self.now();
        self.give_back(shard.running.free(now));
        (shard, now)
    }

    /// Frees some records whose retention has ended. Returns whether there was one.
    fn free_done(&self, now: Nanos) -> bool {
        if now < self.next_end.load(Ordering::Relaxed) {
            return false;
        }
        for number in 0..BATCH {
            let mut order = lock(&self.order);
            let Some(first) = order.pop_ended(now) else {
                self.next_end.store(order.next_end(), Ordering::Relaxed);
                return number > 0;
            };
            drop(order);
            self.forget(&first);
        }
        true
    }

    /// Removes the record that was committed first, of those of this retention in this shard.
    fn forget(&self, first: &First) {
        let mut shard = lock(self.shard(first.shard));
        if let Some(done) = shard.done.get_mut(&first.retention) {
            done.pop(&self.hash);
            if done.is_empty() {
                shard.done.remove(&first.retention);
            }
            self.give_back(1);
        }
    }

    /// Frees the ended claims in every shard, one lock at a time, and some ended records. Returns false where none has ended.
    fn sweep(&self) -> bool {
        let mut freed = 0;
        for shard in &self.shards {
            let ended = lock(shard).running.free(self.now());
            self.give_back(ended);
            freed += ended;
        }
        self.free_done(self.now()) || freed > 0
    }

    fn refuses(&self) -> bool {
        self.capacity.refuses_when_full()
    }

    /// Reserves the space for a claim and for the record that it becomes. Returns false where there is none.
    fn reserve(&self) -> bool {
        let most = self.capacity.records();
        let next = |held| (held < most).then_some(held + 1);
        let relaxed = Ordering::Relaxed;
        !self.refuses() || self.held.fetch_update(relaxed, relaxed, next).is_ok()
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
            .filter(|key| Identity::new(key, &table.hash).shard == 7)
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
        let capacity = Capacity::new(2 * BATCH).refusing_when_full();
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
