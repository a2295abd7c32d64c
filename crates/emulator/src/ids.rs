//! Ids, keys and secrets that a seed decides: the same calls make the same ids.

use std::sync::{Arc, Mutex, PoisonError};

/// The characters behind the prefix of an id.
const ALPHABET: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";
const LENGTH: usize = 16;

/// Makes ids. Clones share one stream of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Ids(Arc<Mutex<fastrand::Rng>>);

impl Ids {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))))
    }

    /// Returns a new id with this prefix, such as `row_`.
    pub(crate) fn make(&self, prefix: &str) -> String {
        let mut rng = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut id = String::with_capacity(prefix.len() + LENGTH);
        id.push_str(prefix);
        for _ in 0..LENGTH {
            id.push(char::from(ALPHABET[rng.usize(..ALPHABET.len())]));
        }
        id
    }

    /// Returns the state of the stream, for a snapshot.
    pub(crate) fn position(&self) -> u64 {
        let rng = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rng.get_seed()
    }

    /// Continues a stream at this position.
    pub(crate) fn set_position(&self, position: u64) {
        let mut rng = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *rng = fastrand::Rng::with_seed(position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_and_a_position_decide_the_ids() {
        let (one, other) = (Ids::seeded(7), Ids::seeded(7));
        assert_eq!(one.make("row_"), other.make("row_"));
        let position = one.position();
        let next = one.make("evt_");
        assert_eq!(next.len(), 20);
        other.set_position(position);
        assert_eq!(other.make("evt_"), next);
        assert_ne!(Ids::seeded(8).make("row_"), Ids::seeded(7).make("row_"));
    }
}
