//! The keys that have signed a delivery, so that the first one of each is told.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use crate::sync::{Mutex, lock};
use crate::verify::Verified;

/// The most keys that are remembered. The operator names keys and scopes, but may have a ring for each of many customers.
const MAX_KEYS: usize = 16_384;

/// Remembers of each key a hash of its scope and its name.
#[derive(Default)]
pub(crate) struct UsedKeys {
    random: RandomState,
    used: Mutex<HashSet<u64>>,
}

impl UsedKeys {
    /// Returns whether this is the first delivery that its key has signed.
    pub(super) fn is_first(&self, verified: &Verified) -> bool {
        let key = (verified.scope(), verified.key_name());
        let mut used = lock(&self.used);
        used.len() < MAX_KEYS && used.insert(self.random.hash_one(key))
    }
}
