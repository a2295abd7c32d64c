//! The properties of a row as the handled events left them, each as a small hash.

use std::collections::BTreeMap;

use hookgate::{
    Properties,
    dedupe::EventKey,
    event::{Changes, Json, Value},
};

/// The hash of a property's name.
pub(super) type NameHash = [u8; 8];
/// The hash of a property's value.
pub(super) type ValueHash = [u8; 8];

/// A property that has no value.
pub(super) const EMPTY: ValueHash = [0; 8];
/// A property whose value is not known.
const UNKNOWN: ValueHash = [0xff; 8];
const PAIR_BYTES: usize = size_of::<NameHash>() + size_of::<ValueHash>();
/// The most properties of a row that are remembered. Those beyond it give no hint of a gap.
const MAX: usize = 256;

/// A property that an update has changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Changed {
    pub(super) name: NameHash,
    pub(super) before: ValueHash,
    pub(super) after: ValueHash,
}

/// The values of a row's properties, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// Whether a property that is not listed is empty: the row was seen created. Otherwise it is
    /// unknown.
    is_whole: bool,
    /// In the order of the names' hashes.
    values: Vec<(NameHash, ValueHash)>,
}

impl Known {
    /// Of a row that was created with these properties.
    pub(super) fn created(values: &[(NameHash, ValueHash)]) -> Self {
        let mut known = Self {
            is_whole: true,
            values: Vec::with_capacity(values.len().min(MAX)),
        };
        for &(name, value) in values {
            known.set(name, value);
        }
        known
    }

    /// The value of a property; `None` if it is not known.
    pub(super) fn value(&self, name: NameHash) -> Option<ValueHash> {
        match self.place(name) {
            Ok(at) => Some(self.values[at].1).filter(|value| *value != UNKNOWN),
            Err(_) => self.is_whole.then_some(EMPTY),
        }
    }

    pub(super) fn set(&mut self, name: NameHash, value: ValueHash) {
        match self.place(name) {
            Ok(at) if self.is_whole && value == EMPTY => drop(self.values.remove(at)),
            Ok(at) => self.values[at].1 = value,
            Err(_) if self.is_whole && value == EMPTY => {}
            Err(at) if self.values.len() < MAX => self.values.insert(at, (name, value)),
            Err(_) => self.is_whole = false,
        }
    }

    /// Takes over an event whose place among the others is not known, or is before them: a property
    /// of it whose value is not the known one is unknown from now on.
    pub(super) fn doubt(&mut self, changes: &[Changed]) {
        for changed in changes {
            if self.value(changed.name) != Some(changed.after) {
                self.set(changed.name, UNKNOWN);
            }
        }
    }

    /// The row was deleted and created again at a time that is not known.
    pub(super) fn forget(&mut self) {
        self.is_whole = false;
        for (_, value) in &mut self.values {
            *value = UNKNOWN;
        }
    }

    /// Takes over the properties that the row was created with, after its updates: those are newer.
    pub(super) fn complete(&mut self, values: &[(NameHash, ValueHash)]) {
        if self.is_whole {
            return;
        }
        let updated = std::mem::replace(self, Self::created(values));
        for (name, value) in updated.values {
            self.set(name, value);
        }
    }

    fn place(&self, name: NameHash) -> Result<usize, usize> {
        self.values.binary_search_by_key(&name, |pair| pair.0)
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.is_whole.into());
        for (name, value) in &self.values {
            bytes.extend_from_slice(name);
            bytes.extend_from_slice(value);
        }
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (&is_whole, pairs) = bytes.split_first()?;
        let mut values = Vec::with_capacity(pairs.len() / PAIR_BYTES);
        for pair in pairs.chunks(PAIR_BYTES) {
            let (name, value) = pair.split_first_chunk()?;
            values.push((*name, value.try_into().ok()?));
        }
        let is_valid =
            is_whole <= 1 && values.len() <= MAX && values.is_sorted_by(|a, b| a.0 < b.0);
        is_valid.then_some(Self {
            is_whole: is_whole == 1,
            values,
        })
    }
}

/// The hashes of a created row's properties.
pub(super) fn of_properties(properties: &Properties) -> Vec<(NameHash, ValueHash)> {
    let pairs = properties.iter();
    let pairs = pairs.map(|(name, value)| (name_hash(name), value_hash(name, &value)));
    pairs.collect()
}

/// The hashes of an update's changes. Of a name that appears twice, the last is taken.
pub(super) fn of_changes(changes: &Changes) -> Vec<Changed> {
    let hashed = changes.iter().map(|(name, sides)| Changed {
        name: name_hash(name),
        before: value_hash(name, &sides.before),
        after: value_hash(name, &sides.after),
    });
    let by_name: BTreeMap<_, _> = hashed.map(|changed| (changed.name, changed)).collect();
    by_name.into_values().collect()
}

fn name_hash(name: &str) -> NameHash {
    first(EventKey::new("", name))
}

/// An absent value and `null` are both empty. Values of the same meaning have the same hash.
fn value_hash(name: &str, value: &Value<'_>) -> ValueHash {
    match value.json().filter(|json| !json.is_null()) {
        Some(json) => first(EventKey::new(name, &Json::canonical(json))),
        None => EMPTY,
    }
}

/// A key is 128 bits of SHA-256 over two texts and their lengths. Half of it is enough for a hint.
fn first(key: EventKey) -> [u8; 8] {
    let mut half = [0; 8];
    half.copy_from_slice(&key.as_bytes()[..8]);
    half
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(json: &str) -> Vec<(NameHash, ValueHash)> {
        of_properties(&serde_json::from_str(json).unwrap())
    }

    #[test]
    fn a_row_that_was_seen_created_knows_its_empty_properties() {
        let mut known = Known::created(&properties(r#"{"a":1.50,"b":null}"#));
        assert_eq!(
            known.value(name_hash("a")),
            Some(properties(r#"{"a":15e-1}"#)[0].1)
        );
        assert_eq!(known.value(name_hash("b")), Some(EMPTY));
        assert_eq!(known.value(name_hash("c")), Some(EMPTY));
        known.set(name_hash("a"), EMPTY);
        assert_eq!(
            known,
            Known::created(&[]),
            "an empty property takes no memory"
        );
        assert_eq!(Known::default().value(name_hash("c")), None);
    }

    #[test]
    fn of_a_name_that_appears_twice_the_last_counts() {
        let twice = r#"{"a":{"before":1,"after":2},"b":{},"a":{"before":3,"after":4}}"#;
        let changes = of_changes(&serde_json::from_str(twice).unwrap());
        assert_eq!(changes.len(), 2);
        let a = changes
            .iter()
            .find(|changed| changed.name == name_hash("a"));
        assert_eq!(a.unwrap().after, properties(r#"{"a":4}"#)[0].1);
        let known = Known::created(&properties(r#"{"a":1,"a":2}"#));
        assert_eq!(
            known.value(name_hash("a")),
            Some(properties(r#"{"a":2}"#)[0].1)
        );
    }

    #[test]
    fn a_row_with_too_many_properties_stays_bounded_and_gives_no_wrong_value() {
        let many: Vec<_> = (0..10_000_u64)
            .map(|number| {
                (
                    number.to_be_bytes(),
                    number.to_be_bytes().map(|byte| byte ^ 1),
                )
            })
            .collect();
        let known = Known::created(&many);
        assert_eq!(known.values.len(), MAX);
        for (name, value) in many {
            assert!(known.value(name).is_none_or(|known| known == value));
        }
    }
}
