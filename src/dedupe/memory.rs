//! The store in memory: its promises and its calls. How it keeps its records is in `table.rs` and the files beside it.

mod done;
mod fifo;
mod index;
mod order;
mod steps;
mod table;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use self::table::Table;
use super::capacity::{Capacity, StoreStats};
use super::key::{ClaimToken, EventKey};
use super::scopes::ScopesInUse;
use super::store::{Answer, Claimed, DedupeStore, Ownership};
use crate::clock::{Clock, SystemClock};
use crate::store_error::{StoreError, StoreErrorKind};

/// Remembers in this process, with the standard library only. It is the store for one process, and the reference for every other.
///
/// The events are spread over 64 shards by a hash that is keyed at random for each store, so a sender can't choose ids that lie
/// in one shard, or in one place of it. **All steps of one event happen under the lock of its shard.**
///
/// - **Capacity** is exact. By default, a commit to a full store evicts the record that was committed
///   first; where the retentions of a store differ, to a 4,000th of the capacity and of the retention, as the ages in
///   [`stats`](Self::stats). With [`refusing_when_full`](Capacity::refusing_when_full), ended records and claims free their space; while another
///   thread is about to free one, a claim can still be refused. A store holds at most two billion records.
/// - **Retention.** Except by eviction, no record is forgotten before its end, and each at most a 4,000th of its retention later.
///   Each length of retention has a queue of its own, of some kilobytes: use few, as receivers do.
/// - **Memory.** A remembered event takes about 22 bytes where a million or more are remembered (growth of the resident set of a full
///   store, x86-64 Linux, the allocator of glibc); each commit of the last lease takes 8 more, for its token. The store grows with its
///   records. Size it by `rate × retention`: see [`Capacity`].
/// - **Identity.** A record holds 101 bits of its key: 88 in the record, 6 by its shard and 7 in the index. A false duplicate at
///   10,000 events a second, kept for 48 h, comes once in five billion years: a year brings 3.2 × 10¹¹ claims, each beside
///   1.7 × 10⁹ records, among 2¹⁰¹ values.
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
    /// The number of bytes that a remembered event takes in a store for a million: measured, see the [type's docs](Self).
    pub const BYTES_PER_RECORD: usize = 22;

    /// Returns a store for up to `capacity` done records, at least one: a number, or a [`Capacity`], which says how to size it.
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

    /// Returns the numbers of records held now and of evictions so far. It locks each shard once: call it for a metric, not at
    /// each delivery.
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
        Answer::ready(Ok(self.table.commit(key, token, retain)))
    }

    fn release(&self, key: &EventKey, token: ClaimToken) -> Answer<Ownership> {
        Answer::ready(Ok(self.table.release(key, token)))
    }

    fn observe(&self) -> Option<StoreStats> {
        Some(self.stats())
    }

    fn scopes_in_use(&self) -> Option<&ScopesInUse> {
        Some(&self.scopes)
    }
}
