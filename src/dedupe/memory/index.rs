//! The places of records: a hash table of four bytes a place.

/// Where a record is looked for, and the part of its key that this implies.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// A hash of the part of the key that the record holds, so that it can be computed again from the record.
    pub(super) home: u64,
    /// [`TAG_BITS`] of a hash of the whole key.
    pub(super) tag: u32,
}

/// The bits of a slot that say where its record is. The rest is the tag.
const POSITION_BITS: u32 = 25;
pub(super) const TAG_BITS: u32 = 32 - POSITION_BITS;
const POSITION: u32 = (1 << POSITION_BITS) - 1;
/// The most records that one index can tell apart.
pub(super) const POSITIONS: u32 = POSITION;

/// Each record is in one of two buckets, the emptier one when it was inserted. So a look-up reads two cache lines, however many
/// records have come and gone.
pub(super) struct Index {
    buckets: Vec<Bucket>,
    /// The number of buckets when the store is full.
    planned: usize,
}

/// A slot is a tag and a position: the number of a record modulo [`POSITIONS`], plus one. Zero is a free slot.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Bucket([u32; SLOTS]);

const SLOTS: usize = 16;

impl Index {
    /// Returns an index for about this number of records; it takes more. No bucket is made before it is used.
    pub(super) fn new(records: usize) -> Self {
        Self {
            buckets: Vec::new(),
            // At capacity 81 of 100 slots are used. A bucket is then full once in a long time, so that the index grows once more.
            planned: (records * 100).div_ceil(SLOTS * 81),
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
        self.two(place.home).into_iter().find_map(|bucket| {
            let slots = self.buckets.get(bucket)?.0.iter();
            let mut same_tag = slots.filter(|slot| **slot >> POSITION_BITS == place.tag);
            same_tag.find_map(|slot| answer(number(*slot, first)))
        })
    }

    /// Inserts a record. `home_of` returns the home of a record in the index.
    pub(super) fn insert(
        &mut self,
        place: Place,
        record: u64,
        first: u64,
        home_of: impl Fn(u64) -> u64,
    ) {
        let slot = place.tag << POSITION_BITS | position(record);
        if self.put(place.home, slot) {
            return;
        }
        let slots = self.buckets.iter().flat_map(|bucket| bucket.0);
        let slots: Vec<u32> = slots.filter(|slot| *slot != 0).chain([slot]).collect();
        // More than that helps only if many records have one home, which no keyed hash of digests gives.
        let most = 8 * (self.planned + slots.len());
        while self.buckets.len() < most {
            self.buckets = vec![Bucket::default(); self.next_len()];
            let put = |slot: &&u32| self.put(home_of(number(**slot, first)), **slot);
            if slots.iter().filter(put).count() == slots.len() {
                return;
            }
        }
    }

    /// Removes this record.
    pub(super) fn remove(&mut self, home: u64, record: u64) {
        let position = position(record);
        for bucket in self.two(home) {
            if let Some(Bucket(slots)) = self.buckets.get_mut(bucket)
                && let Some(slot) = slots.iter_mut().find(|slot| **slot & POSITION == position)
            {
                *slot = 0;
                return;
            }
        }
    }

    /// Returns the two buckets of this home, which may be one.
    fn two(&self, home: u64) -> [usize; 2] {
        [home, home >> 32].map(|hash| {
            let hash = hash & u64::from(u32::MAX);
            ((hash * self.buckets.len() as u64) >> 32) as usize
        })
    }

    /// Inserts a slot into the emptier one of its buckets. Returns false where both are full.
    fn put(&mut self, home: u64, slot: u32) -> bool {
        let is_free = |slot: &&u32| **slot == 0;
        let free = |at: &usize| Some(self.buckets.get(*at)?.0.iter().filter(is_free).count());
        let emptier = self.two(home).into_iter().max_by_key(free);
        let bucket = emptier.and_then(|at| self.buckets.get_mut(at));
        let free = bucket.and_then(|bucket| bucket.0.iter_mut().find(|slot| **slot == 0));
        free.map(|free| *free = slot).is_some()
    }

    /// In few steps up to the planned number, and an eighth after that, since records are not spread quite evenly. With more steps, the
    /// allocator would find less use for the memory of the smaller ones.
    fn next_len(&self) -> usize {
        let len = self.buckets.len();
        if len < self.planned {
            return (16 * len).clamp(1, self.planned);
        }
        len + len / 8 + 1
    }
}

#[allow(clippy::cast_possible_truncation)] // the result has POSITION_BITS
fn position(record: u64) -> u32 {
    (record % u64::from(POSITIONS)) as u32 + 1
}

/// Returns the number of the record in this slot. `first` is the number of the first record of all.
fn number(slot: u32, first: u64) -> u64 {
    let most = u64::from(POSITIONS);
    first + (u64::from(slot & POSITION) + most - 1 - first % most) % most
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::hash::{BuildHasher, RandomState};

    use super::*;

    fn used(index: &Index) -> usize {
        let slots = index.buckets.iter().flat_map(|bucket| bucket.0);
        slots.filter(|slot| *slot != 0).count()
    }

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
            assert_eq!(used(&self.index), self.places.len());
        }
    }

    #[test]
    fn each_record_is_found_and_none_that_was_removed() {
        // The numbers pass a multiple of the number of positions.
        for (records, first) in [
            (1, 0),
            (100, u64::from(POSITIONS) - 77),
            (20_000, 3 * u64::from(POSITIONS) - 9_999),
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
        }
    }

    #[test]
    fn a_full_index_takes_five_bytes_a_record_and_an_empty_one_nearly_none() {
        const RECORDS: usize = 40_000;
        let mut model = Model::new(RECORDS, 0);
        assert!(model.index.buckets.is_empty());
        for number in 0..RECORDS as u64 {
            model.insert(number);
        }
        let bytes = size_of_val(&*model.index.buckets);
        assert!(bytes <= RECORDS * 5, "{bytes}");
    }

    /// The oldest of a full index is removed for each new record, many times: each record still is in one of its two buckets, and the
    /// index has not grown.
    #[test]
    fn a_full_index_stays_as_it_is_for_ever() {
        const RECORDS: u64 = 8_000;
        let mut model = Model::new(8_000, 0);
        for number in 0..RECORDS * 30 {
            model.insert(number);
            if number >= RECORDS {
                model.remove_first();
            }
        }
        model.check();
        assert!(model.index.buckets.len() <= model.index.planned * 9 / 8 + 1);
    }

    /// Two buckets can't hold so many records of one home, and a keyed hash of digests gives no such case. The index stays small, and
    /// loses only some of them.
    #[test]
    fn records_of_one_home_end_the_growth() {
        let mut index = Index::new(1);
        let place = Place {
            home: u64::MAX,
            tag: 5,
        };
        for record in 0..100 {
            index.insert(place, record, 0, |_| place.home);
        }
        assert!(index.buckets.len() <= 8 * 101 * 9 / 8 + 1);
        assert_eq!(used(&index), SLOTS);
        for record in 0..100 {
            index.remove(place.home, record);
        }
        assert_eq!(used(&index), 0);
    }
}
