//! The hash of a row, property by property.

use std::fmt;

use hookgate::{dedupe::EventKey, event::Json};

/// The hash of a property's name.
pub(crate) type NameHash = [u8; 8];
/// The hash of a property's value. Zeros stand for a property that is known to be empty.
pub(crate) type ValueHash = [u8; 16];

const PAIR_BYTES: usize = size_of::<NameHash>() + size_of::<ValueHash>();
const EMPTY: ValueHash = [0; 16];
/// The name under which the hash itself records that its row is in doubt. So no mirror, the user's
/// own included, needs a column for it.
const DOUBT: NameHash = [0xff; 8];

/// The hash of a row: 24 bytes of SHA-256 for each property that is not empty.
///
/// Each property has its own part, so an event with some properties changes only their parts.
/// Values are compared by meaning, not by their text: `1.50` equals `1.5`, the order of an object's
/// fields does not count, and `null` equals an absent property. Texts, dates included, must be
/// equal, and the order of an array counts.
///
/// The hash of a row that is [in doubt](super::RowState::is_doubtful) has 24 more bytes, and
/// differs from every hash that [`of`](Self::of) returns.
///
/// ```
/// use hookgate_client::reconcile::RowHash;
///
/// let hash = |json: &str| RowHash::of(&serde_json::from_str(json).unwrap());
/// assert_eq!(hash(r#"{"Total":1.50,"Note":null}"#), hash(r#"{"Total":15e-1}"#));
/// assert_ne!(hash(r#"{"Total":1.50}"#), hash(r#"{"Total":"1.50"}"#));
/// assert_eq!(RowHash::from_bytes(&hash(r#"{"Total":1.5}"#).to_bytes()), Some(hash(r#"{"Total":1.5}"#)));
/// ```
#[derive(Clone, Default)]
pub struct RowHash(Vec<(NameHash, ValueHash)>);

impl RowHash {
    /// Returns the hash of a row's properties. If a name appears twice, the last value counts.
    #[must_use]
    pub fn of(properties: &hookgate::Properties) -> Self {
        let mut hash = Self::default();
        for (name, value) in properties.iter() {
            if let Some(json) = value.json() {
                hash.set(name_hash(name), value_hash(name, json));
            }
        }
        hash.without_empty()
    }

    /// Returns the bytes, for a mirror of your own.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.len() * PAIR_BYTES);
        for (name, value) in &self.0 {
            bytes.extend_from_slice(name);
            bytes.extend_from_slice(value);
        }
        bytes
    }

    /// Returns the hash from bytes that a mirror has kept. `None` if they are not the bytes of a
    /// hash.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut pairs = Vec::with_capacity(bytes.len() / PAIR_BYTES);
        for pair in bytes.chunks(PAIR_BYTES) {
            let (name, value) = pair.split_first_chunk()?;
            pairs.push((*name, value.try_into().ok()?));
        }
        pairs.is_sorted_by(|a, b| a.0 < b.0).then_some(Self(pairs))
    }

    /// The hash of this property's value. `None` if the property is empty or unknown.
    pub(crate) fn value(&self, name: NameHash) -> Option<ValueHash> {
        let at = self.0.binary_search_by_key(&name, |pair| pair.0).ok()?;
        self.0
            .get(at)
            .map(|pair| pair.1)
            .filter(|value| *value != EMPTY)
    }

    /// Returns whether the property is known, also as empty.
    pub(crate) fn knows(&self, name: NameHash) -> bool {
        self.0.binary_search_by_key(&name, |pair| pair.0).is_ok()
    }

    /// The properties that are known, also those that are empty.
    pub(crate) fn names(&self) -> impl Iterator<Item = NameHash> {
        self.0.iter().map(|pair| pair.0)
    }

    /// The number of the doubt, if the row is in doubt.
    pub(super) fn doubt(&self) -> Option<u64> {
        let value = self.value(DOUBT)?;
        value.last_chunk().copied().map(u64::from_be_bytes)
    }

    pub(super) fn set_doubt(&mut self, doubt: Option<u64>) {
        self.0.retain(|pair| pair.0 != DOUBT);
        if let Some(doubt) = doubt {
            let mut value = [0xff; 16];
            value[8..].copy_from_slice(&doubt.to_be_bytes());
            self.set(DOUBT, Some(value));
        }
    }

    /// Keeps the properties with these names.
    pub(crate) fn retain(&mut self, keep: impl Fn(NameHash) -> bool) {
        self.0.retain(|pair| keep(pair.0));
    }

    pub(crate) fn set(&mut self, name: NameHash, value: Option<ValueHash>) {
        let value = value.unwrap_or(EMPTY);
        match self.0.binary_search_by_key(&name, |pair| pair.0) {
            Ok(at) => {
                if let Some(pair) = self.0.get_mut(at) {
                    pair.1 = value;
                }
            }
            Err(at) => self.0.insert(at, (name, value)),
        }
    }

    /// Removes the properties that are known to be empty. Use it where all properties of the row
    /// are known: an absent one is then empty.
    pub(super) fn without_empty(mut self) -> Self {
        self.0.retain(|pair| pair.1 != EMPTY);
        self
    }
}

/// Two hashes are equal where every property has the same value.
impl PartialEq for RowHash {
    fn eq(&self, other: &Self) -> bool {
        let full = |hash: &Self| {
            hash.0
                .iter()
                .filter(|pair| pair.1 != EMPTY)
                .copied()
                .collect::<Vec<_>>()
        };
        full(self) == full(other)
    }
}

impl Eq for RowHash {}

impl fmt::Debug for RowHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowHash({} properties)", self.0.len())
    }
}

pub(crate) fn name_hash(name: &str) -> NameHash {
    let mut hash = NameHash::default();
    for (to, from) in hash.iter_mut().zip(EventKey::new("", name).as_bytes()) {
        *to = *from;
    }
    hash
}

/// The hash of a property's value; `None` for `null`.
pub(crate) fn value_hash(name: &str, json: &Json) -> Option<ValueHash> {
    if json.is_null() {
        return None;
    }
    // A key is 128 bits of SHA-256 over two texts and their lengths, which is the hash needed here.
    Some(*EventKey::new(name, &json.canonical()).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(json: &str) -> RowHash {
        RowHash::of(&serde_json::from_str(json).unwrap())
    }

    #[test]
    fn values_are_compared_by_their_meaning() {
        for (one, other, equal) in [
            (r#"{"a":1}"#, r#"{"a":1.0}"#, true),
            (r#"{"a":0}"#, r#"{"a":-0.0}"#, true),
            (r#"{"a":-5}"#, r#"{"a":-5.0}"#, true),
            (r#"{"a":100}"#, r#"{"a":1e2}"#, true),
            (
                r#"{"a":9007199254740993}"#,
                r#"{"a":9007199254740992}"#,
                false,
            ),
            (r#"{"a":"x","b":2}"#, r#"{"b":2,"a":"\u0078"}"#, true),
            (
                r#"{"a":[{"url":"u","name":"n"}]}"#,
                r#"{"a":[{"name":"n","url":"u"}]}"#,
                true,
            ),
            (r#"{"a":["x","y"]}"#, r#"{"a":["y","x"]}"#, false),
            (r#"{"a":["x,","y"]}"#, r#"{"a":["x","y"]}"#, false),
            (r#"{"a":null}"#, "{}", true),
            (r#"{"a":""}"#, "{}", false),
            (r#"{"a":[]}"#, r#"{"a":{}}"#, false),
            (r#"{"a":"true"}"#, r#"{"a":true}"#, false),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#, true),
            (r#"{"a":1,"a":null}"#, "{}", true),
            (r#"{"a":1}"#, r#"{"b":1}"#, false),
        ] {
            assert_eq!(hash(one) == hash(other), equal, "{one} {other}");
        }
    }

    #[test]
    fn names_that_serde_json_reserves_are_no_danger() {
        let reserved = r#"{"a":{"$serde_json::private::RawValue":"1"}}"#;
        assert_eq!(hash(reserved), hash(reserved));
        assert_ne!(hash(reserved), hash(r#"{"a":1}"#));
    }

    #[test]
    fn bytes_that_are_no_hash_are_refused() {
        let bytes = hash(r#"{"a":1,"b":2,"c":null}"#).to_bytes();
        assert_eq!(bytes.len(), 2 * PAIR_BYTES);
        assert!(RowHash::from_bytes(&bytes[1..]).is_none());
        assert!(RowHash::from_bytes(&[&bytes[24..], &bytes[..24]].concat()).is_none());
        assert_eq!(RowHash::from_bytes(&[]), Some(RowHash::default()));
    }
}
