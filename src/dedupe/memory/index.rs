//! The places of records: a hash table of four bytes a place.

/// Where a record is looked for, and the part of its key that this implies.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// A hash of the part of the key that the record holds, so that it can be computed again from the record.
    pub(super) home: u64,
    /// [`TAG_BITS`] of another hash, of the whole key.
    pub(super) tag: u32,
}

/// The bits of a slot that say where its record is. The rest is the tag.
const POSITION_BITS: u32 = 25;
pub(super) const TAG_BITS: u32 = 32 - POSITION_BITS;
const POSITION: u32 = (1 << POSITION_BITS) - 1;
/// The most records that one index can tell apart. A position is a record's number modulo this, plus one: zero is an empty slot.
pub(super) const MOST: u32 = POSITION;
/// The records for which a segment is planned. It is made anew when it grows: with so many records that takes a part of a
/// millisecond.
const IN_SEGMENT: usize = 4_096;
const SLOTS: usize = 15;

/// A hash table in segments, which grow one by one, each to the size that the capacity needs. None is made before it is used.
pub(super) struct Index {
    segments: Vec<Segment>,
    /// The buckets of a segment when the store is full.
    planned: usize,
}

#[derive(Default)]
struct Segment {
    buckets: Vec<Bucket>,
    len: usize,
}

/// A cache line. Slots that are not empty need not stand before empty ones.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Bucket {
    /// The number of records that found no slot here, and are in one of the next buckets.
    passed_on: u32,
    slots: [u32; SLOTS],
}

impl Index {
    /// Returns an index for about this number of records; it takes more.
    pub(super) fn new(records: usize) -> Self {
        let segments = records.div_ceil(IN_SEGMENT).max(1);
        // At capacity nine of ten slots are used.
        let planned = (records.div_ceil(segments) * 10).div_ceil(SLOTS * 9);
        Self {
            segments: std::iter::repeat_with(Segment::default)
                .take(segments)
                .collect(),
            planned: planned.max(1),
        }
    }

    /// Returns the first answer that is not `None`, of the records whose tag is that of the place. `first` is the number of the first
    /// record of all.
    #[inline]
    pub(super) fn find<T>(
        &self,
        place: Place,
        first: u64,
        mut answer: impl FnMut(u64) -> Option<T>,
    ) -> Option<T> {
        let segment = self
            .segments
            .get(range(place.home >> 32, self.segments.len()))?;
        let home = range(place.home, segment.buckets.len());
        let (before, from_home) = segment.buckets.split_at_checked(home)?;
        for bucket in from_home.iter().chain(before) {
            for slot in bucket.slots {
                if slot >> POSITION_BITS == place.tag && slot != 0 {
                    let found = answer(number(slot, first));
                    if found.is_some() {
                        return found;
                    }
                }
            }
            if bucket.passed_on == 0 {
                break;
            }
        }
        None
    }

    /// Inserts a record. `home` returns the hash of a record in the index.
    pub(super) fn insert(
        &mut self,
        place: Place,
        record: u64,
        first: u64,
        home: impl Fn(u64) -> u64,
    ) {
        let segments = self.segments.len();
        let Some(segment) = self.segments.get_mut(range(place.home >> 32, segments)) else {
            return;
        };
        // 24 of 25 slots.
        if segment.len * 25 >= segment.buckets.len() * SLOTS * 24 {
            segment.grow(self.planned, |slot| home(number(slot, first)));
        }
        segment.put(place.home, place.tag << POSITION_BITS | position(record));
    }

    /// Removes this record.
    pub(super) fn remove(&mut self, home: u64, record: u64) {
        let segments = self.segments.len();
        if let Some(segment) = self.segments.get_mut(range(home >> 32, segments)) {
            segment.remove(home, position(record));
        }
    }
}

impl Segment {
    fn put(&mut self, home: u64, slot: u32) {
        let at = range(home, self.buckets.len());
        let (before, from_home) = self.buckets.split_at_mut(at);
        for bucket in from_home.iter_mut().chain(before) {
            if let Some(empty) = bucket.slots.iter_mut().find(|slot| **slot == 0) {
                *empty = slot;
                self.len += 1;
                return;
            }
            bucket.passed_on += 1;
        }
    }

    fn remove(&mut self, home: u64, position: u32) {
        let at = range(home, self.buckets.len());
        let (before, from_home) = self.buckets.split_at_mut(at);
        for bucket in from_home.iter_mut().chain(before) {
            let is_it = |slot: &&mut u32| **slot & POSITION == position;
            if let Some(slot) = bucket.slots.iter_mut().find(is_it) {
                *slot = 0;
                self.len -= 1;
                return;
            }
            bucket.passed_on = bucket.passed_on.saturating_sub(1);
        }
    }

    /// Adds buckets: in three steps up to the planned number, and an eighth after that, since records are not spread quite evenly. With
    /// more steps, the allocator would find less use for the memory of the smaller ones.
    fn grow(&mut self, planned: usize, home: impl Fn(u32) -> u64) {
        let before = self.buckets.len();
        let steps = [planned / 8, planned / 2, planned, before + before / 8 + 1];
        let buckets = steps.into_iter().find(|buckets| *buckets > before);
        let buckets = vec![Bucket::default(); buckets.unwrap_or(1)];
        let old = std::mem::replace(&mut self.buckets, buckets);
        self.len = 0;
        for slot in old.iter().flat_map(|bucket| bucket.slots) {
            if slot != 0 {
                self.put(home(slot), slot);
            }
        }
    }
}

/// Returns a number below `end`, from the low 32 bits of a hash.
#[allow(clippy::cast_possible_truncation)] // the result is below `end`
fn range(hash: u64, end: usize) -> usize {
    (((hash & u64::from(u32::MAX)) * end as u64) >> 32) as usize
}

#[allow(clippy::cast_possible_truncation)] // the result has POSITION_BITS
fn position(record: u64) -> u32 {
    (record % u64::from(MOST)) as u32 + 1
}

/// Returns the number of the record at this position. `first` is the number of the first record of all.
fn number(slot: u32, first: u64) -> u64 {
    let position = u64::from(slot & POSITION);
    let most = u64::from(MOST);
    first + (position - 1 + most - first % most) % most
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::hash::{BuildHasher, RandomState};

    use super::*;

    /// The records of an index, with their places.
    struct Model {
        index: Index,
        places: HashMap<u64, Place>,
        first: u64,
        random: RandomState,
    }

    impl Model {
        fn new(records: usize, first: u64) -> Self {
            Self {
                index: Index::new(records),
                places: HashMap::new(),
                first,
                random: RandomState::new(),
            }
        }

        fn insert(&mut self, record: u64) {
            let home = self.random.hash_one(record);
            let tag =
                u32::try_from(self.random.hash_one((record, 0)) >> POSITION_BITS >> 32).unwrap();
            let place = Place { home, tag };
            self.places.insert(record, place);
            let places = &self.places;
            self.index
                .insert(place, record, self.first, |record| places[&record].home);
        }

        fn remove_first(&mut self) {
            let place = self.places.remove(&self.first).unwrap();
            self.index.remove(place.home, self.first);
            self.first += 1;
        }

        fn has(&self, record: u64, place: Place) -> bool {
            let is_it = |found| (found == record).then_some(());
            self.index.find(place, self.first, is_it).is_some()
        }

        fn check(&self) {
            assert!(
                self.places
                    .iter()
                    .all(|(record, place)| self.has(*record, *place))
            );
            let slots = |segment: &Segment| {
                segment
                    .buckets
                    .iter()
                    .flat_map(|bucket| bucket.slots)
                    .filter(|slot| *slot != 0)
                    .count()
            };
            assert_eq!(
                self.index.segments.iter().map(slots).sum::<usize>(),
                self.places.len()
            );
            assert!(
                self.index
                    .segments
                    .iter()
                    .all(|segment| slots(segment) == segment.len)
            );
        }
    }

    #[test]
    fn each_record_is_found_and_none_that_was_removed() {
        // The numbers pass a multiple of the number of positions.
        for (records, first) in [
            (1, 0),
            (100, u64::from(MOST) - 77),
            (20_000, 3 * u64::from(MOST) - 9_999),
        ] {
            let mut model = Model::new(records, first);
            for number in 0..records as u64 * 3 {
                model.insert(first + number);
                if number >= records as u64 {
                    let (gone, place) = (model.first, model.places[&model.first]);
                    model.remove_first();
                    assert!(!model.has(gone, place));
                }
                if number % (records as u64 / 5 + 1) == 0 {
                    model.check();
                }
            }
            model.check();
            while !model.places.is_empty() {
                model.remove_first();
            }
            model.check();
            // Nothing is left of those that passed a full bucket on.
            let mut buckets = model
                .index
                .segments
                .iter()
                .flat_map(|segment| &segment.buckets);
            assert!(buckets.all(|bucket| bucket.passed_on == 0));
        }
    }

    #[test]
    fn a_full_index_takes_five_bytes_a_record_and_an_empty_one_nearly_none() {
        const RECORDS: usize = 40_000;
        let mut model = Model::new(RECORDS, 0);
        let bytes = |index: &Index| {
            index
                .segments
                .iter()
                .map(|segment| segment.buckets.len() * 64)
                .sum::<usize>()
        };
        for number in 0..RECORDS as u64 {
            model.insert(number);
            if number == 100 {
                assert!(bytes(&model.index) <= RECORDS);
            }
        }
        assert!(
            bytes(&model.index) <= RECORDS * 5,
            "{}",
            bytes(&model.index)
        );
    }

    /// Records that all have one home fill the buckets after it, and are found and removed.
    #[test]
    fn records_of_one_home_are_kept_apart() {
        let mut index = Index::new(1);
        let place = Place {
            home: u64::MAX,
            tag: 5,
        };
        for record in 0..200 {
            index.insert(place, record, 0, |_| place.home);
        }
        for record in 0..200 {
            let is_it = |found| (found == record).then_some(());
            assert!(index.find(place, record, is_it).is_some());
            index.remove(place.home, record);
            assert!(index.find(place, record + 1, is_it).is_none());
        }
    }
}
