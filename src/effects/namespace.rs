//! Keeps the records of programs in one schema apart from each other.

use crate::dedupe::EventKey;

/// The name of records from before names existed.
pub(crate) const DEFAULT: &str = "default";

/// The keys of one name. Without a name, two programs with the same scope and id would have the same key, and each would find its
/// events already claimed by the other.
#[derive(Clone, Copy)]
pub(crate) struct Namespace([u8; 16]);

impl Namespace {
    pub(crate) fn new(name: &str) -> Self {
        // Keys of records without a name stay unchanged.
        if name == DEFAULT {
            return Self([0; 16]);
        }
        Self(*EventKey::new("namespace", name).as_bytes())
    }

    /// Returns the key that is stored: a digest combined with another one, so that an id under one name never has the key of
    /// another id under another name.
    pub(crate) fn key(self, key: &EventKey) -> EventKey {
        let mut bytes = *key.as_bytes();
        for (byte, other) in bytes.iter_mut().zip(self.0) {
            *byte ^= other;
        }
        EventKey::from_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_differs_by_its_name_and_is_as_before_without_one() {
        let key = EventKey::new("default", "evt_1");
        assert_eq!(Namespace::new(DEFAULT).key(&key), key);
        let [orders, members] = ["orders", "members"].map(|name| Namespace::new(name).key(&key));
        assert_ne!(orders, members);
        assert_ne!(orders, key);
        assert_eq!(orders, Namespace::new("orders").key(&key));
    }
}
