//! The hash of a key, which is already a digest, for a map in memory.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Builds the hasher of the maps that are keyed by an [`EventKey`](super::EventKey).
///
/// The bits of a key are already spread evenly. So one multiplication, keyed for each map, is enough; SipHash takes about forty
/// instructions a word for the same, several times in each delivery. A sender could search for ids whose digests begin alike, to
/// fill one bucket. The hash key prevents this: it comes from the operating system's randomness and is never shown.
#[derive(Clone, Debug)]
pub(super) struct KeyState {
    seeds: [u64; 2],
}

impl Default for KeyState {
    fn default() -> Self {
        let random = RandomState::new();
        Self {
            seeds: [random.hash_one(0_u8), random.hash_one(1_u8)],
        }
    }
}

impl KeyState {
    /// Hashes these 128 bits.
    pub(super) fn hash(&self, bits: u128) -> u64 {
        // The low half of a product depends on the low bits alone, so both halves are combined.
        let (low, high) = halves(bits);
        let product = u128::from(low ^ self.seeds[0]) * u128::from(high ^ self.seeds[1]);
        let (low, high) = halves(product);
        low ^ high
    }
}

impl BuildHasher for KeyState {
    type Hasher = KeyHasher;

    fn build_hasher(&self) -> KeyHasher {
        KeyHasher {
            state: self.clone(),
            hash: 0,
        }
    }
}

#[derive(Debug)]
pub(super) struct KeyHasher {
    state: KeyState,
    hash: u64,
}

impl Hasher for KeyHasher {
    /// Hashes the 128 bits that a key writes.
    fn write_u128(&mut self, key: u128) {
        self.hash = self.state.hash(key ^ u128::from(self.hash));
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u128(u128::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}

#[allow(clippy::cast_possible_truncation)] // the low half is the result wanted
fn halves(wide: u128) -> (u64, u64) {
    (wide as u64, (wide >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::dedupe::EventKey;

    fn keys() -> impl Iterator<Item = EventKey> {
        (0..40_000).map(|n| EventKey::new("default", &format!("evt_{n}")))
    }

    #[test]
    fn a_key_hashes_alike_in_one_state_and_otherwise_in_another() {
        let (one, other) = (KeyState::default(), KeyState::default());
        assert!(keys().all(|key| one.hash_one(key) == one.clone().hash_one(key)));
        assert!(keys().any(|key| one.hash_one(key) != other.hash_one(key)));
    }

    #[test]
    fn every_byte_of_a_key_counts_and_all_bits_of_a_hash_are_spread() {
        let state = KeyState::default();
        let hashes: HashSet<u64> = keys().map(|key| state.hash_one(key)).collect();
        assert_eq!(hashes.len(), 40_000);
        // The maps take the lowest bits for the position, and the highest for a tag or a segment; the store takes the 40th and
        // the next ones for a shard, and the highest for a tag.
        for bits in [0, 8, 28, 40, 48, 56] {
            let mut counts = [0; 256];
            for hash in &hashes {
                counts[usize::from((hash >> bits).to_le_bytes()[0])] += 1;
            }
            // The mean is 156, the deviation 12.5: seven deviations to either side.
            assert!(
                counts.iter().all(|count| (69..244).contains(count)),
                "{bits}"
            );
        }
        for at in 0..16 {
            let mut bytes = [7; 16];
            let one = state.hash_one(u128::from_le_bytes(bytes));
            bytes[at] ^= 1;
            assert_ne!(one, state.hash_one(u128::from_le_bytes(bytes)), "byte {at}");
        }
    }

    #[test]
    fn other_writes_are_hashed_too() {
        let state = KeyState::default();
        let texts = ["", "a", "b", "aa", "0123456789abcdef", "0123456789abcdef0"];
        let hashes: HashSet<u64> = texts.iter().map(|text| state.hash_one(text)).collect();
        assert_eq!(hashes.len(), texts.len());
    }
}
