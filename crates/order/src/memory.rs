//! The store in memory.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hookgate::{
    clock::{Clock, Monotonic, SystemClock},
    dedupe::StoreFuture,
};

use super::store::{LastHandled, OrderStore};

/// A store in the memory of this process, for a limited number of rows. A restart deletes all
/// records: the next event of a row is then [`Newest`](super::Order::Newest), however old it is.
///
/// When it is full, it evicts the row whose record is oldest. A row takes about 250 bytes, and 16
/// for each property that its events have named, at most 256 properties. Clones share their
/// records.
///
/// ```
/// use hookgate_order::{MemoryOrderStore, OrderStore};
///
/// let store = MemoryOrderStore::new(10_000);
/// assert!(hookgate::block_on(store.last(&[7; 16]))?.is_none());
/// assert_eq!(store.evicted(), 0);
/// # Ok::<(), hookgate::dedupe::StoreError>(())
/// ```
#[derive(Clone)]
pub struct MemoryOrderStore {
    records: Arc<Mutex<Records>>,
    most: usize,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct Records {
    rows: HashMap<[u8; 16], Record>,
    /// By revision, which counts the writes of all rows.
    written: BTreeMap<u64, [u8; 16]>,
    revisions: u64,
    evicted: u64,
}

struct Record {
    revision: u64,
    ends: Monotonic,
    last: LastHandled,
}

/// For 65,536 rows.
impl Default for MemoryOrderStore {
    fn default() -> Self {
        Self::new(1 << 16)
    }
}

impl MemoryOrderStore {
    /// Returns a store for up to `rows` rows, at least one.
    #[must_use]
    pub fn new(rows: usize) -> Self {
        Self {
            records: Arc::default(),
            most: rows.max(1),
            clock: Arc::new(SystemClock),
        }
    }

    /// Returns an empty store on this clock.
    #[must_use]
    pub fn with_clock(self, clock: impl Clock) -> Self {
        Self {
            clock: Arc::new(clock),
            ..Self::new(self.most)
        }
    }

    /// Returns the number of rows that were forgotten before their retention ended, to make room
    /// for others.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.records().evicted
    }

    /// Every step leaves the records consistent, so they stay usable after a panic elsewhere (in a
    /// clock, for example).
    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Records {
    /// The row's record, unless it has ended.
    fn live(&self, row: &[u8; 16], now: Monotonic) -> Option<&Record> {
        self.rows.get(row).filter(|record| record.ends > now)
    }

    fn forget(&mut self, row: &[u8; 16]) {
        if let Some(record) = self.rows.remove(row) {
            self.written.remove(&record.revision);
        }
    }

    /// Removes records in the order in which they were written, until the first one has not ended
    /// and there is room for one more.
    fn make_room(&mut self, most: usize, now: Monotonic) {
        while let Some((_, row)) = self.written.first_key_value() {
            let row = *row;
            let has_ended = self.rows.get(&row).is_none_or(|record| record.ends <= now);
            if !has_ended {
                if self.rows.len() < most {
                    return;
                }
                self.evicted += 1;
            }
            self.forget(&row);
        }
    }
}

impl OrderStore for MemoryOrderStore {
    fn last<'a>(&'a self, row: &'a [u8; 16]) -> StoreFuture<'a, Option<(u64, LastHandled)>> {
        let now = self.clock.monotonic();
        let records = self.records();
        let last = records
            .live(row, now)
            .map(|record| (record.revision, record.last.clone()));
        StoreFuture::ready(Ok(last))
    }

    fn swap<'a>(
        &'a self,
        row: &'a [u8; 16],
        revision: u64,
        last: LastHandled,
        retain: Duration,
    ) -> StoreFuture<'a, bool> {
        let now = self.clock.monotonic();
        let mut records = self.records();
        let present = records.live(row, now).map_or(0, |record| record.revision);
        let is_unchanged = present == revision;
        if is_unchanged {
            records.forget(row);
            records.make_room(self.most, now);
            records.revisions += 1;
            let revision = records.revisions;
            let ends = now.saturating_add(retain);
            records.written.insert(revision, *row);
            let record = Record {
                revision,
                ends,
                last,
            };
            records.rows.insert(*row, record);
        }
        StoreFuture::ready(Ok(is_unchanged))
    }
}

/// Shows no row.
impl fmt::Debug for MemoryOrderStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryOrderStore")
            .field("most", &self.most)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::contract;
    use super::*;
    use hookgate::{
        block_on,
        clock::{ManualClock, UnixSeconds},
    };

    #[tokio::test(flavor = "multi_thread")]
    async fn memory_keeps_the_contract() {
        let clock = ManualClock::at(UnixSeconds::new(1_763_690_000));
        let store = MemoryOrderStore::default().with_clock(clock.clone());
        contract::check(Arc::new(store), async |time| clock.advance(time))
            .await
            .unwrap();
    }

    #[test]
    fn a_full_store_forgets_the_row_that_was_written_first_and_counts_it() {
        let clock = ManualClock::at(UnixSeconds::new(1_763_690_000));
        let store = MemoryOrderStore::new(3).with_clock(clock.clone());
        let write = |row: u8, retain| {
            let last = block_on(store.last(&[row; 16])).unwrap();
            let revision = last.map_or(0, |(revision, _)| revision);
            let last = contract::record(row);
            block_on(store.swap(&[row; 16], revision, last, Duration::from_secs(retain))).unwrap()
        };
        let held = || (1..=6).filter(|row| block_on(store.last(&[*row; 16])).unwrap().is_some());
        let rows = || store.records.lock().unwrap().rows.len();
        assert!([1, 2, 3, 1, 4].into_iter().all(|row| write(row, 100)));
        assert_eq!(held().collect::<Vec<_>>(), [1, 3, 4]);
        assert_eq!((rows(), store.evicted()), (3, 1));

        clock.advance(Duration::from_secs(100));
        assert_eq!(held().count(), 0);
        assert!(write(5, 100));
        assert_eq!((rows(), store.evicted()), (1, 1), "ended, not evicted");
        assert_eq!(store.records.lock().unwrap().written.len(), 1);
    }
}
