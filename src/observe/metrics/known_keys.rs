//! The keys of a receiver's metrics that were used before, so that a delivery need not make them again.

use std::sync::OnceLock;

use metrics::{Key, Label};

/// The number of places. A key that finds no place is made at each use.
const PLACES: usize = 512;
/// The most places that are looked at for one key.
const LOOKED_AT: usize = 8;

/// A table of keys, to which keys are only added, so that it is read without a lock. Keys are kept and not handles: a handle
/// belongs to one recorder, and a program may install its recorder later, or one for a thread alone.
pub(crate) struct KnownKeys(Box<[OnceLock<Box<Key>>]>);

impl Default for KnownKeys {
    fn default() -> Self {
        Self((0..PLACES).map(|_| OnceLock::new()).collect())
    }
}

impl KnownKeys {
    /// Returns the key of this metric whose labels have these values, after a first label that all keys have in common.
    pub(super) fn find<const N: usize>(&self, name: &str, values: [&str; N]) -> Option<&Key> {
        let places = self.places(first_place(name, values.into_iter()));
        let mut keys = places.map_while(|place| place.get());
        let found = keys.find(|key| key.name() == name && own_values(key).eq(values));
        found.map(|key| &**key)
    }

    /// Adds a key that was not found, unless its places are taken. Two threads may add the same key, which costs a place.
    pub(super) fn insert(&self, key: &Key) {
        let mut places = self.places(first_place(key.name(), own_values(key)));
        if let Some(free) = places.find(|place| place.get().is_none()) {
            let _ = free.set(Box::new(key.clone()));
        }
    }

    fn places(&self, first: usize) -> impl Iterator<Item = &OnceLock<Box<Key>>> {
        (first..first + LOOKED_AT).filter_map(|at| self.0.get(at % PLACES))
    }
}

/// Returns the first place to look at. It is a hash of a few bytes of each value: the keys that usually occur differ in these bytes.
fn first_place<'v>(name: &str, values: impl Iterator<Item = &'v str>) -> usize {
    let mixed = values.fold(name.len(), |place, text| {
        let bytes = text.as_bytes();
        let byte = |at: usize| bytes.get(at).copied().map_or(0, usize::from);
        let (middle, last) = (byte(bytes.len() / 2), byte(bytes.len().saturating_sub(1)));
        place.wrapping_mul(31) ^ bytes.len() ^ (middle << 3) ^ (last << 5)
    });
    mixed % PLACES
}

fn own_values(key: &Key) -> impl Iterator<Item = &str> {
    key.labels().skip(1).map(Label::value)
}

#[cfg(test)]
mod tests {
    use metrics::KeyName;

    use super::*;

    #[test]
    fn keys_are_found_by_their_name_and_values_and_the_table_is_bounded() {
        let known = &KnownKeys::default();
        let key = |name: &'static str, number: usize| {
            let labels = vec![
                Label::new("receiver", "default"),
                Label::new("key", number.to_string()),
            ];
            Key::from_parts(KeyName::from_const_str(name), labels)
        };
        let found = |name, number: usize| known.find(name, [&*number.to_string()]);
        for number in 0..10_000 {
            assert!(found("runs", number).is_none());
            known.insert(&key("runs", number));
        }
        let mut kept = 0;
        for number in 0..10_000 {
            assert!(found("answers", number).is_none());
            if let Some(found) = found("runs", number) {
                assert_eq!(*found, key("runs", number));
                kept += 1;
            }
        }
        assert!((PLACES / 4..=PLACES).contains(&kept), "{kept}");
    }
}
