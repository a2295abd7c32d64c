//! Entries in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use hookgate::dedupe::StoreFuture;

use super::entry::{Bounds, Entry, Kept, Place, Store};
use crate::reconcile::RowHash;

#[derive(Default)]
pub(super) struct Memory(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    last: i64,
    kept: BTreeMap<i64, Kept>,
    /// In the order of the numbers.
    places: HashMap<Place, Vec<i64>>,
}

impl Entries {
    fn insert(&mut self, kept: Kept) {
        let numbers = self.places.entry(kept.entry.place).or_default();
        let at = numbers.partition_point(|number| *number < kept.number);
        numbers.insert(at, kept.number);
        self.kept.insert(kept.number, kept);
    }

    fn remove(&mut self, number: i64) {
        let Some(kept) = self.kept.remove(&number) else {
            return;
        };
        let place = kept.entry.place;
        if let Some(numbers) = self.places.get_mut(&place) {
            numbers.retain(|other| *other != number);
            if numbers.is_empty() {
                self.places.remove(&place);
            }
        }
    }

    fn forget(&mut self, bounds: Bounds) {
        let least = bounds.least(self.last);
        while let Some((number, first)) = self.kept.first_key_value()
            && (*number < least || first.entry.written_at < bounds.oldest)
        {
            self.remove(*number);
        }
    }
}

impl Memory {
    fn with<T>(&self, call: impl FnOnce(&mut Entries) -> T) -> StoreFuture<'_, T> {
        // No step leaves the entries half changed.
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        StoreFuture::ready(Ok(call(&mut entries)))
    }
}

impl Store for Memory {
    fn add<'a>(
        &'a self,
        entry: &'a Entry,
        written: &'a [RowHash],
        bounds: Bounds,
    ) -> StoreFuture<'a, Vec<i64>> {
        self.with(|entries| {
            let mut numbers = Vec::with_capacity(written.len());
            for written in written {
                entries.last += 1;
                let mut entry = entry.clone();
                entry.written = written.clone();
                entries.insert(Kept {
                    number: entries.last,
                    revision: 1,
                    entry,
                });
                numbers.push(entries.last);
            }
            entries.forget(bounds);
            numbers
        })
    }

    fn find<'a>(&'a self, places: &'a [Place]) -> StoreFuture<'a, Vec<Kept>> {
        self.with(|entries| {
            let numbers = places.iter().filter_map(|place| entries.places.get(place));
            let mut numbers: Vec<_> = numbers.flatten().copied().collect();
            numbers.sort_unstable();
            let kept = numbers
                .iter()
                .filter_map(|number| entries.kept.get(number).cloned());
            kept.collect()
        })
    }

    fn swap(&self, number: i64, revision: i64, entry: Option<Entry>) -> StoreFuture<'_, bool> {
        self.with(|entries| {
            let is_unchanged = entries
                .kept
                .get(&number)
                .is_some_and(|kept| kept.revision == revision);
            if is_unchanged {
                entries.remove(number);
                if let Some(entry) = entry {
                    let revision = revision + 1;
                    entries.insert(Kept {
                        number,
                        revision,
                        entry,
                    });
                }
            }
            is_unchanged
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn entries_that_are_forgotten_take_no_memory() {
        let memory = Memory::default();
        let add = |row: &str, at, count, capacity| {
            let entry = Entry::new(Place::updated("dm", row), "sync", at, Duration::ZERO);
            let bounds = Bounds {
                oldest: at - 10,
                capacity,
            };
            let written = vec![RowHash::default(); count];
            hookgate::block_on(memory.add(&entry, &written, bounds)).unwrap()
        };
        let size = || {
            let entries = memory.0.lock().unwrap();
            (entries.kept.len(), entries.places.len())
        };
        assert_eq!(add("a", 1, 5, 3), [1, 2, 3, 4, 5]);
        assert_eq!(size(), (3, 1));
        assert_eq!(add("b", 5, 1, 3), [6]);
        assert_eq!(size(), (3, 2));
        assert_eq!(add("c", 12, 1, 3), [7]);
        assert_eq!(size(), (2, 2));
        assert!(hookgate::block_on(memory.swap(6, 1, None)).unwrap());
        assert!(!hookgate::block_on(memory.swap(6, 1, None)).unwrap());
        assert_eq!(size(), (1, 1));
        assert_eq!(add("d", i64::MAX, 1, u64::MAX), [8]);
        assert_eq!(size(), (1, 1));
    }
}
