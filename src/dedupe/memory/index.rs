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
/// The most records that one index can tell apart. A position is a record's number modulo this.
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

/// Each record is in one of two buckets, the emptier one when it was inserted. So a look-up reads two buckets, however full the
/// segment is and however many records have come and gone.
#[derive(Default)]
struct Segment {
    buckets: Vec<Bucket>,
    len: usize,
}

/// A cache line.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Bucket {
    len: u32,
    /// The first `len` are used.
    slots: [u32; SLOTS],
}

impl Index {
    /// Returns an index for about this number of records; it takes more.
    pub(super) fn new(records: usize) -> Self {
        let segments = records.div_ceil(IN_SEGMENT).max(1);
        // At capacity 93 of 100 slots are used.
        let planned = (records.div_ceil(segments) * 100).div_ceil(SLOTS * 93);
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
        let segment = self.segments.get(self.segment(place.home))?;
        segment.two(place.home).into_iter().find_map(|bucket| {
            let slots = segment.buckets.get(bucket)?.used().iter();
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
        let (at, planned) = (self.segment(place.home), self.planned);
        let home_of = |slot| home_of(number(slot, first));
        if let Some(segment) = self.segments.get_mut(at) {
            let slot = place.tag << POSITION_BITS | position(record);
            // Far more growth than any number of records takes helps no more: they would have to have one home, against all odds.
            let most = 16 * (planned + segment.len);
            while !segment.put(place.home, slot, &home_of) && segment.buckets.len() < most {
                segment.grow(planned, &home_of);
            }
        }
    }

    /// Removes this record.
    pub(super) fn remove(&mut self, home: u64, record: u64) {
        let at = self.segment(home);
        if let Some(segment) = self.segments.get_mut(at) {
            segment.remove(home, position(record));
        }
    }

    fn segment(&self, home: u64) -> usize {
        range(home >> 32, self.segments.len())
    }
}

impl Segment {
    /// Returns the two buckets of this home, which may be one.
    fn two(&self, home: u64) -> [usize; 2] {
        // An odd constant with its bits spread evenly: 2^64 divided by the golden ratio.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let other = home.wrapping_mul(SPREAD) >> 32;
        [home, other].map(|hash| range(hash, self.buckets.len()))
    }

    /// Inserts a slot. Returns false where there is no space for it.
    fn put(&mut self, home: u64, slot: u32, home_of: &impl Fn(u32) -> u64) -> bool {
        let two = self.two(home);
        let is_put = self.put_in_one_of(two, slot)
            || two.into_iter().any(|bucket| {
                self.make_space(bucket, home_of) && self.put_in_one_of([bucket; 2], slot)
            });
        self.len += usize::from(is_put);
        is_put
    }

    /// Inserts a slot into the emptier one of these buckets, if it is not full.
    fn put_in_one_of(&mut self, two: [usize; 2], slot: u32) -> bool {
        let len = |bucket: &usize| {
            self.buckets
                .get(*bucket)
                .map_or(u32::MAX, |bucket| bucket.len)
        };
        let emptier = two.into_iter().min_by_key(len);
        let bucket = emptier.and_then(|bucket| self.buckets.get_mut(bucket));
        bucket.is_some_and(|bucket| bucket.push(slot))
    }

    /// Moves one record of a full bucket to its other bucket. Returns false where each of those is full as well.
    fn make_space(&mut self, full: usize, home_of: &impl Fn(u32) -> u64) -> bool {
        let Some(slots) = self.buckets.get(full).map(|bucket| bucket.slots) else {
            return false;
        };
        slots.into_iter().any(|slot| {
            let [one, other] = self.two(home_of(slot));
            let to = if one == full { other } else { one };
            let is_moved = to != full && self.put_in_one_of([to; 2], slot);
            is_moved
                && self
                    .buckets
                    .get_mut(full)
                    .is_some_and(|bucket| bucket.remove(slot & POSITION))
        })
    }

    fn remove(&mut self, home: u64, position: u32) {
        let is_removed = self.two(home).into_iter().any(|bucket| {
            let bucket = self.buckets.get_mut(bucket);
            bucket.is_some_and(|bucket| bucket.remove(position))
        });
        self.len -= usize::from(is_removed);
        if self.len == 0 {
            self.buckets = Vec::new();
        }
    }

    /// Adds buckets: in few steps up to the planned number, and an eighth after that, since records are not spread quite evenly.
    /// With more steps, the allocator would find less use for the memory of the smaller ones.
    fn grow(&mut self, planned: usize, home_of: &impl Fn(u32) -> u64) {
        let mut buckets = self.buckets.len();
        let before = std::mem::take(&mut self.buckets);
        loop {
            let steps = [1, planned / 10, planned / 2, planned];
            let next = steps.into_iter().find(|next| *next > buckets);
            buckets = next.unwrap_or(buckets + buckets / 8 + 1);
            self.buckets = vec![Bucket::default(); buckets];
            self.len = 0;
            let mut slots = before.iter().flat_map(Bucket::used);
            if slots.all(|slot| self.put(home_of(*slot), *slot, home_of)) {
                return;
            }
        }
    }
}

impl Bucket {
    fn used(&self) -> &[u32] {
        self.slots.get(..self.len as usize).unwrap_or_default()
    }

    fn push(&mut self, slot: u32) -> bool {
        let free = self.slots.get_mut(self.len as usize);
        free.is_some_and(|free| {
            *free = slot;
            self.len += 1;
            true
        })
    }

    /// Removes the slot of this position. Returns whether it was here.
    fn remove(&mut self, position: u32) -> bool {
        let found = self
            .used()
            .iter()
            .position(|slot| slot & POSITION == position);
        found.is_some_and(|found| {
            self.len -= 1;
            self.slots.swap(found, self.len as usize);
            true
        })
    }
}

/// Returns a number below `end`, from the low 32 bits of a hash.
#[allow(clippy::cast_possible_truncation)] // the result is below `end`
fn range(hash: u64, end: usize) -> usize {
    (((hash & u64::from(u32::MAX)) * end as u64) >> 32) as usize
}

#[allow(clippy::cast_possible_truncation)] // the result has POSITION_BITS
fn position(record: u64) -> u32 {
    (record % u64::from(MOST)) as u32
}

/// Returns the number of the record at this position. `first` is the number of the first record of all.
fn number(slot: u32, first: u64) -> u64 {
    let position = u64::from(slot & POSITION);
    let most = u64::from(MOST);
    first + (position + most - first % most) % most
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
            let slots = |segment: &Segment| segment.buckets.iter().flat_map(Bucket::used).count();
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
            let mut segments = model.index.segments.iter();
            assert!(segments.all(|segment| segment.buckets.is_empty()));
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
                assert!(bytes(&model.index) <= 100 * 64);
            }
        }
        assert!(
            bytes(&model.index) <= RECORDS * 5,
            "{}",
            bytes(&model.index)
        );
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
        let segments = model.index.segments.iter();
        let buckets: usize = segments.map(|segment| segment.buckets.len()).sum();
        assert!(buckets <= model.index.planned * model.index.segments.len() * 9 / 8);
    }

    /// More records of one home than two buckets hold, which no keyed hash makes: the index stays small, and loses only some of them.
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
        assert!(index.segments[0].buckets.len() <= 16 * 101 * 9 / 8 + 1);
        for record in 0..100 {
            index.remove(place.home, record);
        }
        assert!(index.segments[0].buckets.is_empty());
    }
}
