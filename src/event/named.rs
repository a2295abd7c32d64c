//! Values by name, in the order they were written in: the list behind [`Fields`](super::Fields) and [`Changes`](super::Changes).

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// Up to this number of names, a look-up is a linear search: an index would not be faster.
const FEW: usize = 32;
/// An index is made after the look-ups have passed this many times the length of the list, which is about the cost of an
/// index.
const WALKS: usize = 8;

/// Names and their values. A name that appears twice is kept twice, and the last one is found.
///
/// Few rows have many properties, and few readers read all of them by name. So this is a plain list, and an index is made
/// only after many look-ups.
#[derive(Clone)]
pub(super) struct Named<V> {
    entries: Vec<(Box<str>, V)>,
    /// Present when there are more than `FEW` entries.
    lookups: Option<Box<Lookups>>,
}

#[derive(Default)]
struct Lookups {
    /// The number of entries that look-ups have passed.
    walked: AtomicUsize,
    /// The positions of the entries, sorted by name, then by position.
    index: OnceLock<Box<[usize]>>,
}

/// A clone begins without look-ups.
impl Clone for Lookups {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<V> Default for Named<V> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            lookups: None,
        }
    }
}

impl<V> Named<V> {
    pub(super) fn push(&mut self, name: Cow<'_, str>, value: V) {
        self.push_entry((name.into(), value));
    }

    fn push_entry(&mut self, entry: (Box<str>, V)) {
        self.entries.push(entry);
        if self.entries.len() > FEW {
            match &mut self.lookups {
                None => self.lookups = Some(Box::default()),
                // An index would not have the new entry.
                Some(lookups) => drop(lookups.index.take()),
            }
        }
    }

    /// Returns the value of this name, the last one where there are several.
    pub(super) fn find(&self, name: &str) -> Option<&V> {
        let Some(lookups) = &self.lookups else {
            return self.walk(name).1;
        };
        if let Some(index) = lookups.index.get() {
            return self.search(index, name);
        }
        let (walked, found) = self.walk(name);
        let before = lookups.walked.fetch_add(walked, Ordering::Relaxed);
        if before.saturating_add(walked) >= self.entries.len().saturating_mul(WALKS) {
            lookups.index.get_or_init(|| self.sorted());
        }
        found
    }

    /// Searches from the end. Returns the number of entries passed, and the value.
    fn walk(&self, name: &str) -> (usize, Option<&V>) {
        let mut from_the_end = self.entries.iter().rev().enumerate();
        match from_the_end.find(|(_, (known, _))| **known == *name) {
            Some((passed, (_, value))) => (passed + 1, Some(value)),
            None => (self.entries.len(), None),
        }
    }

    fn sorted(&self) -> Box<[usize]> {
        let mut places: Box<[usize]> = (0..self.entries.len()).collect();
        places.sort_by_key(|&place| (&*self.entries[place].0, place));
        places
    }

    fn search(&self, index: &[usize], name: &str) -> Option<&V> {
        let behind = index.partition_point(|&place| *self.entries[place].0 <= *name);
        let place = *index.get(behind.checked_sub(1)?)?;
        let (known, value) = &self.entries[place];
        (**known == *name).then_some(value)
    }

    /// Names and values as they were written, repeated names included.
    pub(super) fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = (&str, &V)> + ExactSizeIterator + Clone {
        self.entries.iter().map(|(name, value)| (&**name, value))
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<V: Serialize> Serialize for Named<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Named<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(NamedVisitor(PhantomData))
    }
}

struct NamedVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for NamedVisitor<V> {
    type Value = Named<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named<V>, A::Error> {
        let mut named = Named::default();
        while let Some(entry) = map.next_entry()? {
            named.push_entry(entry);
        }
        Ok(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every third name appears a second time, as does the empty one.
    fn named(count: usize) -> Named<usize> {
        let mut named = Named::default();
        for n in 0..count {
            named.push(Cow::Owned(format!("Name {n}")), n);
        }
        for n in (0..count).step_by(3) {
            named.push(Cow::Owned(format!("Name {n}")), count + n);
        }
        named.push(Cow::Borrowed(""), 1);
        named.push(Cow::Borrowed(""), 2);
        named
    }

    #[test]
    fn the_last_of_each_name_is_found_before_and_after_there_is_an_index() {
        for count in [0, 1, 5, 30, 31, 40, 500] {
            let named = named(count);
            for _ in 0..3 {
                for n in 0..count {
                    let last = if n % 3 == 0 { count + n } else { n };
                    assert_eq!(
                        named.find(&format!("Name {n}")),
                        Some(&last),
                        "{n} of {count}"
                    );
                }
                assert_eq!(named.find(""), Some(&2));
                for missing in ["Name", "Name 501", "a", "Z", "\u{10ffff}"] {
                    assert_eq!(named.find(missing), None);
                }
            }
        }
    }

    #[test]
    fn asking_for_all_of_many_names_does_not_walk_their_square() {
        let count = 10_000;
        let named = named(count);
        for n in 0..count {
            assert!(named.find(&format!("Name {n}")).is_some());
        }
        let lookups = named.lookups.as_ref().unwrap();
        let walked = lookups.walked.load(Ordering::Relaxed);
        assert!(lookups.index.get().is_some());
        assert!(walked <= named.len() * (WALKS + 1), "walked past {walked}");
        // A clone begins again without an index.
        let clone = named.clone();
        assert!(clone.lookups.as_ref().unwrap().index.get().is_none());
        assert_eq!(clone.find("Name 1"), Some(&1));
    }

    #[test]
    fn few_names_and_few_look_ups_make_no_index() {
        let (small, large) = (named(20), named(1_000));
        for _ in 0..1_000 {
            assert_eq!(small.find("Name 1"), Some(&1));
        }
        assert!(small.lookups.is_none());
        for n in 0..5 {
            assert!(large.find(&format!("Name {n}")).is_some());
        }
        assert!(large.lookups.unwrap().index.get().is_none());
    }

    #[test]
    fn an_entry_that_comes_after_the_index_is_found() {
        let mut named = named(100);
        for n in 0..100 {
            let _ = named.find(&format!("Name {n}"));
        }
        assert!(named.lookups.as_ref().unwrap().index.get().is_some());
        named.push(Cow::Borrowed("Name 7"), 1_000);
        named.push(Cow::Borrowed("new"), 1_001);
        assert_eq!(
            (named.find("Name 7"), named.find("new")),
            (Some(&1_000), Some(&1_001))
        );
    }
}
