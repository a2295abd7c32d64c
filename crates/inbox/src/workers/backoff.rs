//! The time that a failed entry waits for its next run.

use std::time::Duration;

/// The longest wait: longer than any useful one, and short enough that arithmetic on it cannot
/// overflow.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3_600);
/// The shortest wait: an immediate retry would most likely meet the same cause of failure.
const SHORTEST: Duration = Duration::from_millis(1);

/// The time that a failed entry waits for its next run: it doubles each time, up to a cap, with a
/// random part, so that entries that failed together are not run again together.
///
/// The time of the next run is stored with the entry, so it survives the end of the process.
///
/// ```
/// use std::time::Duration;
/// use hookgate_inbox::{Backoff, Jitter};
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

/// The random part of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Jitter {
    /// No random part. Entries that failed together are run again together.
    None,
    /// Half of the wait is random: the result lies between half the wait and the whole wait.
    Equal,
    /// All of the wait is random, except a tenth of the first wait. This spreads best, but can give
    /// several short waits in a row.
    Full,
}

impl Backoff {
    /// Waits `base` after the first run, twice as long after each further run, and never longer
    /// than `cap`; with [`Jitter::Equal`].
    ///
    /// A base below one millisecond is set to one millisecond. The longest wait is 30 days. A cap
    /// below the base is set to the base.
    #[must_use]
    pub fn exponential(base: Duration, cap: Duration) -> Self {
        let base = base.clamp(SHORTEST, LONGEST);
        Self {
            base,
            cap: cap.clamp(base, LONGEST),
            jitter: Jitter::Equal,
        }
    }

    /// Sets the random part.
    #[must_use]
    pub fn with_jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// Returns the wait after this number of runs, for this random number from 0 to 1. The result
    /// depends on nothing else.
    #[must_use]
    pub fn wait(&self, tries: u32, random: f64) -> Duration {
        // No number that a caller passes makes it overflow.
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

    /// As [`wait`](Self::wait), with a random number.
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
    use crate::cases::each_case;
    use crate::workers::settings::MAX_TRIES;
    use hookgate::dedupe::RetrySchedule;

    const HOUR: Duration = Duration::from_secs(3_600);

    /// The default runs last at least as long as the sender's own attempts, for every random
    /// number.
    #[test]
    fn the_default_tries_outlast_the_senders_own() {
        let total = |random| -> Duration {
            (1..MAX_TRIES)
                .map(|tries| Backoff::default().wait(tries, random))
                .sum()
        };
        assert!(total(0.0) >= RetrySchedule::SERVICE.total_wait());
        assert!(
            total(0.0) > 29 * HOUR && total(1.0) < 60 * HOUR,
            "as the docs say"
        );
    }

    const JITTERS: [Jitter; 3] = [Jitter::None, Jitter::Equal, Jitter::Full];

    #[test]
    fn a_wait_is_never_none_and_never_above_its_cap() {
        each_case(256, |case| {
            let mut any = || Duration::from_nanos(case.u64(..) >> case.u32(..64));
            let (base, cap) = (any(), any());
            let backoff = Backoff::exponential(base, cap).with_jitter(JITTERS[case.usize(..3)]);
            // Not a number, and infinite, too.
            let wait = backoff.wait(case.u32(..), f64::from_bits(case.u64(..)));
            assert!(wait >= SHORTEST / 2 && wait <= LONGEST);
            assert!(wait <= cap.max(base).max(SHORTEST));
        });
    }

    #[test]
    fn waits_grow_with_tries_and_with_chance() {
        each_case(256, |case| {
            let (tries, random) = (case.u32(1..100), case.f64());
            let backoff = Backoff::default().with_jitter(JITTERS[case.usize(..3)]);
            assert!(backoff.wait(tries, random) <= backoff.wait(tries + 1, random));
            assert!(backoff.wait(tries, 0.0) <= backoff.wait(tries, random));
            assert!(backoff.wait(tries, random) <= backoff.wait(tries, 1.0));
        });
    }

    #[test]
    fn equal_jitter_leaves_half_to_chance_and_full_nearly_all() {
        for tries in 1..100 {
            let bare = Backoff::default().with_jitter(Jitter::None);
            let whole = bare.wait(tries, 0.7);
            assert_eq!(bare.wait(tries, 0.0), whole);
            assert_eq!(bare.with_jitter(Jitter::Equal).wait(tries, 0.0), whole / 2);
            assert_eq!(bare.with_jitter(Jitter::Equal).wait(tries, 1.0), whole);
            assert_eq!(
                bare.with_jitter(Jitter::Full).wait(tries, 0.0),
                Duration::from_secs(1)
            );
            assert_eq!(bare.with_jitter(Jitter::Full).wait(tries, 1.0), whole);
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
