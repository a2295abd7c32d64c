//! The choices of a seed.

use fastrand::Rng;

use super::faults::Faults;

/// Choices that depend only on the seed and the purpose of the choice, and not on earlier choices.
pub(super) struct SeededChoices {
    seed: u64,
    share: f64,
}

impl SeededChoices {
    pub(super) fn of(faults: &Faults) -> Self {
        Self {
            seed: faults.seed,
            share: faults.share.unwrap_or(0.5),
        }
    }

    pub(super) fn rng(&self, purpose: &str) -> Rng {
        self.rng_of(purpose, 0)
    }

    pub(super) fn rng_of(&self, purpose: &str, index: usize) -> Rng {
        // FNV-1a over the name: a seed for each purpose.
        let mut seed = 0xcbf2_9ce4_8422_2325_u64;
        let index = index as u64;
        let bytes = [self.seed.to_le_bytes(), index.to_le_bytes()].concat();
        for byte in bytes.into_iter().chain(purpose.bytes()) {
            seed = (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Rng::with_seed(seed)
    }

    /// Chooses the share of `count`, and one at least; in ascending order.
    pub(super) fn choose(&self, purpose: &str, count: usize) -> Vec<usize> {
        let all: Vec<_> = (0..count).collect();
        self.choose_from(purpose, &all)
    }

    pub(super) fn choose_from(&self, purpose: &str, of: &[usize]) -> Vec<usize> {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss
        )]
        // a share of 0 to 1 of a length
        let number = (of.len() as f64 * self.share).ceil() as usize;
        let mut chosen = of.to_vec();
        self.rng(purpose).shuffle(&mut chosen);
        chosen.truncate(number.max(1));
        chosen.sort_unstable();
        chosen
    }
}
