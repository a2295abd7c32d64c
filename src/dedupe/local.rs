//! The reference store: one lock, one map, the standard library.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::capacity::{Capacity, StoreStats, WhenFull};
use super::error::{StoreError, StoreErrorKind};
use super::expiry::{BATCH, ExpiryQueue};
use super::hash::KeyState;
use super::key::{ClaimToken, EventKey};
use super::scopes::ScopesInUse;
use super::store::{Claimed, DedupeStore, Ownership, StoreFuture};
use crate::clock::{Clock, Monotonic, SystemClock};
use crate::sync::{Mutex, MutexGuard};

/// Remembers in this process, with the standard library only. It is the reference for every other store, and a good choice up to
/// some thousand events a second.
///
/// It implements the table of [`DedupeStore`] as plainly as possible: one map behind one lock, so that each call is one step,
/// and two queues of the leases and the retentions that end next. Calls are amortised O(1); each frees a few records that
/// have ended. The capacity of done records is exact. A remembered event takes about 190 bytes (growth of the resident set over a
/// million commits, x86-64 Linux, the allocator of glibc); nothing is reserved up front.
///
/// - **Per process.** Replicas share nothing, and nothing survives a restart: after one, a copy of a finished event runs again.
/// - **The work is done when the method is called**, and the future it returns is ready. A call whose future is never polled
///   has taken effect all the same.
/// - **Monotonic time only.** A stepped wall clock neither frees a running claim nor forgets a finished event.
/// - Clones share their records.
///
/// ```
/// # use std::time::Duration;
/// use std::sync::Arc;
/// use hookgate::{
///     ClaimToken, Claimed, DedupeStore, EventKey, LocalStore, ManualClock, Ownership, UnixSeconds, block_on,
/// };
///
/// let clock = ManualClock::at(UnixSeconds::new(1_763_690_000));
/// let store = LocalStore::default().with_clock(clock.clone());
///
/// let key = EventKey::new("default", "evt_1");
/// let (first, copy) = (ClaimToken::new(b"{}"), ClaimToken::new(b"{}"));
/// let (lease, retain) = (Duration::from_secs(30), Duration::from_secs(48 * 3600));
/// assert_eq!(block_on(store.claim(&key, first, lease))?, Claimed::Fresh);
/// assert_eq!(block_on(store.claim(&key, copy, lease))?, Claimed::Running { retry_after: lease });
/// assert_eq!(block_on(store.commit(&key, first, retain))?, Ownership::Held);
/// assert_eq!(block_on(store.claim(&key, copy, lease))?, Claimed::Done { by: first });
///
/// clock.advance(retain);
/// assert_eq!(block_on(store.claim(&key, copy, lease))?, Claimed::Fresh);
/// # Ok::<(), hookgate::StoreError>(())
/// ```
///
/// Settings, made before the first use:
///
/// ```
/// use hookgate::{LocalStore, WhenFull};
///
/// let store = LocalStore::new(100_000).with_when_full(WhenFull::Refuse);
/// assert_eq!(store.capacity().records(), 100_000);
/// assert_eq!(store.stats().done, 0);
/// ```
#[derive(Clone)]
pub struct LocalStore {
    capacity: Capacity,
    clock: Arc<dyn Clock>,
    // A std mutex: it is held for a few map operations and never across an await.
    table: Arc<Mutex<Table>>,
    scopes: ScopesInUse,
}

impl Default for LocalStore {
    fn default() -> Self {
        Self::with(Capacity::default(), Arc::new(SystemClock))
    }
}

impl LocalStore {
    /// The approximate number of bytes that a remembered event takes: measured, see the [type's docs](Self).
    pub const BYTES_PER_RECORD: usize = 190;

    /// Returns a store for up to `capacity` done records, at least one: a number, or a [`Capacity`], which says how to size it.
    #[must_use]
    pub fn new(capacity: impl Into<Capacity>) -> Self {
        Self::with(capacity.into(), Arc::new(SystemClock))
    }

    fn with(capacity: Capacity, clock: Arc<dyn Clock>) -> Self {
        Self {
            capacity,
            clock,
            table: Arc::default(),
            scopes: ScopesInUse::default(),
        }
    }

    /// Returns an empty store with this behaviour when it is full.
    #[must_use]
    pub fn with_when_full(self, when_full: WhenFull) -> Self {
        Self::with(self.capacity.with_when_full(when_full), self.clock)
    }

    /// Returns an empty store on this clock.
    #[must_use]
    pub fn with_clock(self, clock: impl Clock) -> Self {
        Self::with(self.capacity, Arc::new(clock))
    }

    /// Returns the capacity.
    #[must_use]
    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Returns the numbers of records held now and of evictions so far.
    #[must_use]
    pub fn stats(&self) -> StoreStats {
        StoreStats {
            capacity: Some(self.capacity.records()),
            ..self.enter().0.stats
        }
    }

    /// Locks the table, frees some ended records, and reads the time. The time is read under the lock, so that the steps of the
    /// store and the readings have one order.
    fn enter(&self) -> (MutexGuard<'_, Table>, Monotonic) {
        // Every step leaves the table consistent, so it stays usable after a panic elsewhere (in a clock, for example).
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.monotonic();
        table.free(now);
        (table, now)
    }
}

impl fmt::Debug for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalStore")
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

impl DedupeStore for LocalStore {
    fn claim<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Claimed> {
        let (mut table, now) = self.enter();
        let lease_end = now.saturating_add(lease);
        StoreFuture::ready(Ok(match table.find(key, now) {
            Some(Record::Running { token: by, .. }) if by == token => {
                table.run(*key, token, lease_end);
                Claimed::Fresh
            }
            Some(Record::Running { end, .. }) => Claimed::Running {
                retry_after: end.saturating_since(now),
            },
            Some(Record::Done { by, .. }) => Claimed::Done { by },
            None if table.refuses(self.capacity) => {
                return StoreFuture::ready(Err(StoreError::new(StoreErrorKind::Full)));
            }
            None => {
                table.run(*key, token, lease_end);
                Claimed::Fresh
            }
        }))
    }

    fn renew<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Ownership> {
        let (mut table, now) = self.enter();
        StoreFuture::ready(Ok(match table.find(key, now) {
            Some(Record::Running { token: by, .. }) if by == token => {
                table.run(*key, token, now.saturating_add(lease));
                Ownership::Held
            }
            _ => Ownership::Lost,
        }))
    }

    fn commit<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        retain: Duration,
    ) -> StoreFuture<'a, Ownership> {
        let (mut table, now) = self.enter();
        StoreFuture::ready(Ok(match table.find(key, now) {
            Some(Record::Running { token: by, .. }) if by == token => {
                table.finish(*key, token, now, retain, self.capacity);
                Ownership::Held
            }
            Some(Record::Done { by, .. }) if by == token => Ownership::Held,
            _ => Ownership::Lost,
        }))
    }

    fn release<'a>(&'a self, key: &'a EventKey, token: ClaimToken) -> StoreFuture<'a, Ownership> {
        let (mut table, now) = self.enter();
        StoreFuture::ready(Ok(match table.find(key, now) {
            Some(Record::Running { token: by, .. }) if by == token => {
                table.remove(key);
                Ownership::Held
            }
            _ => Ownership::Lost,
        }))
    }

    fn observe(&self) -> Option<StoreStats> {
        Some(self.stats())
    }

    fn scopes_in_use(&self) -> Option<&ScopesInUse> {
        Some(&self.scopes)
    }
}

#[derive(Default)]
struct Table {
    records: HashMap<EventKey, Record, KeyState>,
    leases: ExpiryQueue,
    retentions: ExpiryQueue,
    /// Kept beside the map, so that neither a full store nor a reader of the numbers has to count.
    stats: StoreStats,
}

#[derive(Clone, Copy)]
enum Record {
    Running {
        token: ClaimToken,
        end: Monotonic,
    },
    Done {
        by: ClaimToken,
        committed: Monotonic,
        end: Monotonic,
    },
}

impl Record {
    fn end(&self) -> Monotonic {
        let (Self::Running { end, .. } | Self::Done { end, .. }) = self;
        *end
    }
}

impl Table {
    /// Returns the record, unless it has ended. A record that has ended is removed, whether the queues have reached it or not.
    fn find(&mut self, key: &EventKey, now: Monotonic) -> Option<Record> {
        let record = *self.records.get(key)?;
        if record.end() <= now {
            self.remove(key);
            return None;
        }
        Some(record)
    }

    /// Returns whether the commit of one more claim could find no space. Running claims count, since each has its space reserved.
    fn refuses(&self, capacity: Capacity) -> bool {
        capacity.when_full() == WhenFull::Refuse
            && self.stats.done + self.stats.running >= capacity.records()
    }

    /// Claims, or renews a claim.
    fn run(&mut self, key: EventKey, token: ClaimToken, end: Monotonic) {
        match self.records.insert(key, Record::Running { token, end }) {
            // The queue has an entry with the same end already.
            Some(old) if old.end() == end => return,
            Some(_) => {}
            None => self.stats.running += 1,
        }
        self.leases.push(end, key);
        let records = &self.records;
        self.leases.tidy(self.stats.running, |end, key| {
            matches!(records.get(key), Some(Record::Running { end: other, .. }) if *other == end)
        });
    }

    fn finish(
        &mut self,
        key: EventKey,
        by: ClaimToken,
        now: Monotonic,
        retain: Duration,
        capacity: Capacity,
    ) {
        self.remove(&key);
        // Before the new record is inserted: it is never the one that is evicted, however short its retention.
        while self.stats.done >= capacity.records() && self.evict_first(now) {}
        let end = now.saturating_add(retain);
        let committed = now;
        self.records
            .insert(key, Record::Done { by, committed, end });
        self.retentions.push(end, key);
        self.stats.done += 1;
    }

    /// Evicts the done record whose retention ends first. Returns false where there is none.
    fn evict_first(&mut self, now: Monotonic) -> bool {
        while let Some((end, key)) = self.retentions.pop_first() {
            if let Some(Record::Done {
                committed,
                end: other,
                ..
            }) = self.records.get(&key)
                && *other == end
            {
                if end > now {
                    let age = now.saturating_since(*committed);
                    self.stats.evicted += 1;
                    self.stats.last_evicted = Some(age);
                    let youngest = self.stats.youngest_evicted.unwrap_or(age);
                    self.stats.youngest_evicted = Some(youngest.min(age));
                }
                self.remove(&key);
                return true;
            }
        }
        false
    }

    /// Frees some ended records.
    fn free(&mut self, now: Monotonic) {
        for _ in 0..BATCH {
            let (lease, retention) = (self.leases.pop_ended(now), self.retentions.pop_ended(now));
            if lease.is_none() && retention.is_none() {
                return;
            }
            for (_, key) in [lease, retention].into_iter().flatten() {
                // The entry may be an old one of a record that is still live.
                self.find(&key, now);
            }
        }
    }

    fn remove(&mut self, key: &EventKey) {
        match self.records.remove(key) {
            Some(Record::Running { .. }) => self.stats.running -= 1,
            Some(Record::Done { .. }) => self.stats.done -= 1,
            None => {}
        }
    }
}
