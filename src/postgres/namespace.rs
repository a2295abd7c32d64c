//! What programs keep in one schema, apart from each other.

use crate::dedupe::EventKey;

/// The name of what was kept before there were names.
pub(crate) const DEFAULT: &str = "default";

/// The keys of one name. Two programs with the same scope and id have the same key, and would take each other's events for their own.
#[derive(Clone, Copy)]
pub(super) struct Namespace([u8; 16]);

impl Namespace {
    pub(super) fn new(name: &str) -> Self {
        // Keys that were kept without a name stay as they are.
        if name == DEFAULT {
            return Self([0; 16]);
        }
        Self(*EventKey::new("namespace", name).as_bytes())
    }

    /// The key that is written down: a digest combined with another one, so that no id has the key of another one under another name.
    pub(super) fn key(self, key: &EventKey) -> EventKey {
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
