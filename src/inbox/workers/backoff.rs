//! How long a failed entry waits for its next try.

use std::time::Duration;

/// Beyond any use, and far from where arithmetic on it would overflow.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3_600);
/// A retry always waits: one that comes at once meets what made the first one fail.
const SHORTEST: Duration = Duration::from_millis(1);

/// How long a failed entry waits for its next try: twice as long each time, up to a cap, and spread by chance, so that what failed
/// together does not come back together.
///
/// The wait is written down with the entry, so it outlives the process.
///
/// ```
/// use std::time::Duration;
/// use hookgate::inbox::{Backoff, Jitter};
///
/// let backoff = Backoff::exponential(Duration::from_secs(10), Duration::from_secs(60)).with_jitter(Jitter::None);
/// let waits = [1, 2, 3, 4, 5].map(|tries| backoff.wait(tries, 0.0).as_secs());
/// assert_eq!(waits, [10, 20, 40, 60, 60]);
///
/// let spread = backoff.with_jitter(Jitter::Equal);
/// assert_eq!(spread.wait(2, 0.0).as_secs(), 10); // half of it for certain, the other half by chance
/// assert_eq!(spread.wait(2, 0.5).as_secs(), 15);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    base: Duration,
    cap: Duration,
    jitter: Jitter,
}

/// How much of a wait is left to chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Jitter {
    /// None of it. What failed together is tried again together.
    None,
    /// Half of it: from half the wait to the whole.
    Equal,
    /// All of it but a tenth of the first wait. It spreads best, and can be short many times in a row.
    Full,
}

impl Backoff {
    /// Waits `base` after the first try, twice as long after each further one, and never longer than `cap`; with [`Jitter::Equal`].
    ///
    /// A base of less than a millisecond is one; 30 days are the longest wait; a cap below the base is the base.
    #[must_use]
    pub fn exponential(base: Duration, cap: Duration) -> Self {
        let base = base.clamp(SHORTEST, LONGEST);
        Self {
            base,
            cap: cap.clamp(base, LONGEST),
            jitter: Jitter::Equal,
        }
    }

    /// The same with another share of chance.
    #[must_use]
    pub fn with_jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// The wait after so many tries, where chance said `random`: 0 to 1. A function of nothing else.
    #[must_use]
    pub fn wait(&self, tries: u32, random: f64) -> Duration {
        // No number of a caller's makes it overflow.
        let random = if random.is_nan() {
            0.0
        } else {
            random.clamp(0.0, 1.0)
        };
        let times = 1_u32 << tries.saturating_sub(1).min(31);
        let whole = self.base.saturating_mul(times).min(self.cap);
        let least = match self.jitter {
            Jitter::None => return whole,
            Jitter::Equal => whole / 2,
            Jitter::Full => (self.base / 10).max(SHORTEST).min(whole),
        };
        least + (whole - least).mul_f64(random)
    }

    /// As [`wait`](Self::wait), with chance drawn.
    pub(super) fn draw(&self, tries: u32) -> Duration {
        self.wait(tries, fastrand::f64())
    }
}

/// 10 s, doubling up to 3 h, with [`Jitter::Equal`].
impl Default for Backoff {
    fn default() -> Self {
        Self::exponential(Duration::from_secs(10), Duration::from_secs(3 * 3_600))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dedupe::RetrySchedule;
    use crate::inbox::workers::settings::MAX_TRIES;
    use proptest::prelude::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    /// Where the sender would have tried for so long, we do no less, however chance falls.
    #[test]
    fn the_default_tries_outlast_the_senders_own() {
        let total = |random| -> Duration {
            (1..MAX_TRIES)
                .map(|tries| Backoff::default().wait(tries, random))
                .sum()
        };
        assert!(total(0.0) >= RetrySchedule::SERVICE.horizon());
        assert!(
            total(0.0) > 29 * HOUR && total(1.0) < 60 * HOUR,
            "as the docs say"
        );
    }

    proptest! {
        #[test]
        fn a_wait_is_never_none_and_never_above_its_cap(
            base in 0_u64..=u64::MAX, cap in 0_u64..=u64::MAX, tries in 0_u32..=u32::MAX, random in any::<f64>(), which in 0_usize..3
        ) {
            let jitter = [Jitter::None, Jitter::Equal, Jitter::Full][which];
            let (base, cap) = (Duration::from_nanos(base), Duration::from_nanos(cap));
            let backoff = Backoff::exponential(base, cap).with_jitter(jitter);
            let wait = backoff.wait(tries, random);
            prop_assert!(wait >= SHORTEST / 2 && wait <= LONGEST);
            prop_assert!(wait <= cap.max(base).max(SHORTEST));
        }

        #[test]
        fn waits_grow_with_tries_and_with_chance(tries in 1_u32..100, random in 0.0..1.0_f64, which in 0_usize..3) {
            let jitter = [Jitter::None, Jitter::Equal, Jitter::Full][which];
            let backoff = Backoff::default().with_jitter(jitter);
            prop_assert!(backoff.wait(tries, random) <= backoff.wait(tries + 1, random));
            prop_assert!(backoff.wait(tries, 0.0) <= backoff.wait(tries, random));
            prop_assert!(backoff.wait(tries, random) <= backoff.wait(tries, 1.0));
        }

        #[test]
        fn equal_jitter_leaves_half_to_chance_and_full_nearly_all(tries in 1_u32..100) {
            let bare = Backoff::default().with_jitter(Jitter::None);
            let whole = bare.wait(tries, 0.7);
            prop_assert_eq!(bare.wait(tries, 0.0), whole);
            prop_assert_eq!(bare.with_jitter(Jitter::Equal).wait(tries, 0.0), whole / 2);
            prop_assert_eq!(bare.with_jitter(Jitter::Equal).wait(tries, 1.0), whole);
            prop_assert_eq!(bare.with_jitter(Jitter::Full).wait(tries, 0.0), Duration::from_secs(1));
            prop_assert_eq!(bare.with_jitter(Jitter::Full).wait(tries, 1.0), whole);
        }
    }

    #[test]
    fn chance_is_drawn() {
        let backoff = Backoff::default();
        let drawn: std::collections::BTreeSet<_> = (0..20).map(|_| backoff.draw(5)).collect();
        assert!(drawn.len() > 10, "{drawn:?}");
        assert!(
            drawn
                .iter()
                .all(|wait| (80..=160).contains(&wait.as_secs()))
        );
    }
}
