//! Values by name, in the order they were written in.

use std::fmt;
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::json::Json;

/// Up to this number of names, a look-up is a linear search: an index would not be faster.
const FEW: usize = 32;
/// An index is made after the look-ups have passed this many times the length of the list, which is
/// about the cost of an index.
const WALKS: usize = 8;

/// Names and their values, in the order they were written in.
///
/// The fields of an object that this crate does not know are kept in this type, so that nothing is
/// lost when the object is written again. A name that appears twice is kept twice. [`Fields::find`]
/// and everything built on it take the last one, as nearly every JSON reader does.
// Few rows have many properties, and few readers read all of them by name. So this is a plain list,
// and an index is made only after many look-ups.
#[derive(Clone)]
pub struct Fields<V = Json> {
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

impl<V> Default for Fields<V> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            lookups: None,
        }
    }
}

impl<V> Fields<V> {
    pub(super) fn push(&mut self, name: impl Into<Box<str>>, value: V) {
        self.entries.push((name.into(), value));
        if self.entries.len() > FEW {
            match &mut self.lookups {
                None => self.lookups = Some(Box::default()),
                // An index would not have the new entry.
                Some(lookups) => drop(lookups.index.take()),
            }
        }
    }

    /// The value of this name, the last one where there are several.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&V> {
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
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &V)> + ExactSizeIterator + Clone {
        self.entries.iter().map(|(name, value)| (&**name, value))
    }

    /// The number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Shows only the names.
impl<V> fmt::Debug for Fields<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.iter().map(|(name, _)| name);
        f.debug_set().entries(names).finish()
    }
}

impl<V: Serialize> Serialize for Fields<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Fields<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor(PhantomData))
    }
}

struct FieldsVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for FieldsVisitor<V> {
    type Value = Fields<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<V>, A::Error> {
        let mut fields = Fields::default();
        while let Some((name, value)) = map.next_entry::<Box<str>, V>()? {
            fields.push(name, value);
        }
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every third name appears a second time, as does the empty one.
    fn fields(count: usize) -> Fields<usize> {
        let mut fields = Fields::default();
        for n in 0..count {
            fields.push(format!("Name {n}"), n);
        }
        for n in (0..count).step_by(3) {
            fields.push(format!("Name {n}"), count + n);
        }
        fields.push("", 1);
        fields.push("", 2);
        fields
    }

    #[test]
    fn the_last_of_each_name_is_found_before_and_after_there_is_an_index() {
        for count in [0, 1, 5, 30, 31, 40, 500] {
            let fields = fields(count);
            for _ in 0..3 {
                for n in 0..count {
                    let last = if n % 3 == 0 { count + n } else { n };
                    assert_eq!(
                        fields.find(&format!("Name {n}")),
                        Some(&last),
                        "{n} of {count}"
                    );
                }
                assert_eq!(fields.find(""), Some(&2));
                for missing in ["Name", "Name 501", "a", "Z", "\u{10ffff}"] {
                    assert_eq!(fields.find(missing), None);
                }
            }
        }
    }

    #[test]
    fn asking_for_all_of_many_names_does_not_walk_their_square() {
        let count = 10_000;
        let fields = fields(count);
        for n in 0..count {
            assert!(fields.find(&format!("Name {n}")).is_some());
        }
        let lookups = fields.lookups.as_ref().unwrap();
        let walked = lookups.walked.load(Ordering::Relaxed);
        assert!(lookups.index.get().is_some());
        assert!(walked <= fields.len() * (WALKS + 1), "walked past {walked}");
        // A clone begins again without an index.
        let clone = fields.clone();
        assert!(clone.lookups.as_ref().unwrap().index.get().is_none());
        assert_eq!(clone.find("Name 1"), Some(&1));
    }

    #[test]
    fn few_names_and_few_look_ups_make_no_index() {
        let (small, large) = (fields(20), fields(1_000));
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
        let mut fields = fields(100);
        for n in 0..100 {
            let _ = fields.find(&format!("Name {n}"));
        }
        assert!(fields.lookups.as_ref().unwrap().index.get().is_some());
        fields.push("Name 7", 1_000);
        fields.push("new", 1_001);
        assert_eq!(
            (fields.find("Name 7"), fields.find("new")),
            (Some(&1_000), Some(&1_001))
        );
    }
}
