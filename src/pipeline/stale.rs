//! Chooses the stale deliveries whose signature is still checked.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::mem;
use std::sync::{Mutex, PoisonError};

use crate::clock::Monotonic;

/// The most stale deliveries that are checked in one second.
const MAX_PER_SECOND: u8 = 8;
/// The average number that is chosen in a busy second. It is less than `MAX_PER_SECOND`, so that a late delivery mostly still finds a
/// place.
const ON_AVERAGE: u64 = 6;

/// Chooses at random among the stale deliveries, at most eight in a second.
///
/// The number of deliveries in a second is unknown until the second is over. So each delivery is chosen with a chance of six
/// divided by a number: the number of deliveries in this second so far, or in earlier seconds, whichever is larger. The number
/// of the earlier seconds decreases by a sixteenth with each second. So an authentic delivery keeps its chance in a steady flood
/// of forged ones, however the flood is spread over each second, and in bursts with some quiet seconds between them. After a
/// flood of 200 a second it takes less than a minute until all deliveries of a quiet second are chosen again.
#[derive(Default)]
pub(crate) struct StaleSample {
    random: RandomState,
    tally: Mutex<Tally>,
}

impl StaleSample {
    pub(super) fn chooses(&self, now: Monotonic) -> bool {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.move_on_to(now.since_start().as_secs());
        tally.chooses_one(&self.random)
    }
}

impl fmt::Debug for StaleSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StaleSample")
    }
}

/// The stale deliveries of one second.
#[derive(Default)]
struct Tally {
    /// The monotonic second.
    second: u64,
    chosen: u8,
    came: u16,
    /// The number of deliveries in the earlier seconds: the most in one second, less a sixteenth for each second since then.
    before: u16,
}

impl Tally {
    fn move_on_to(&mut self, second: u64) {
        // If another thread has already moved on to a later second, this reading counts as that second.
        for _ in self.second..second {
            // Rounded up, so that the number reaches zero.
            let less = self.before - self.before.div_ceil(16);
            self.before = mem::take(&mut self.came).max(less);
            if self.before == 0 {
                break;
            }
        }
        if second > self.second {
            self.second = second;
            self.chosen = 0;
        }
    }

    fn chooses_one(&mut self, random: &RandomState) -> bool {
        self.came = self.came.saturating_add(1);
        let crowd = u64::from(self.came.max(self.before));
        let lucky = random.hash_one((self.second, self.came)) % crowd < ON_AVERAGE;
        let chosen = lucky && self.chosen < MAX_PER_SECOND;
        self.chosen += u8::from(chosen);
        chosen
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(second: u64) -> Monotonic {
        Monotonic::new(Duration::from_secs(second))
    }

    /// Sends `forged(second)` forged deliveries in each second, and then an authentic one. Returns the number of seconds in
    /// which the authentic one is chosen.
    fn found_in(seconds: u64, forged: impl Fn(u64) -> usize) -> usize {
        let sample = StaleSample::default();
        let mut found = 0;
        for second in 1..=seconds {
            let checked = (0..forged(second)).filter(|_| sample.chooses(at(second)));
            let checked = checked.count();
            let authentic = sample.chooses(at(second));
            assert!(checked + usize::from(authentic) <= usize::from(MAX_PER_SECOND));
            found += usize::from(authentic);
        }
        found
    }

    /// Each bound lies more than five standard deviations away from the mean.
    #[test]
    fn one_behind_a_flood_is_chosen_in_its_share_of_the_seconds() {
        for (forged, seconds, least, most) in [
            (0, 100, 100, 100),
            (5, 100, 100, 100),
            (8, 400, 140, 360),
            (100, 4_000, 100, 320),
            (1_000, 4_000, 1, 60),
        ] {
            let found = found_in(seconds, |_| forged);
            assert!((least..=most).contains(&found), "{forged}: {found}");
        }
    }

    #[test]
    fn quiet_seconds_between_busy_ones_do_not_give_all_places_to_the_next_burst() {
        for every in [2, 3, 8] {
            let forged = |second| if second % every == 0 { 200 } else { 0 };
            let sample = StaleSample::default();
            let (mut found, mut bursts) = (0, 0);
            for second in 1..=every * 6_000 {
                for _ in 0..forged(second) {
                    sample.chooses(at(second));
                }
                // The authentic delivery comes after the bursts and never between them.
                if forged(second) > 0 {
                    bursts += 1;
                    found += usize::from(sample.chooses(at(second)));
                }
            }
            assert!(
                found > bursts / 1_000 && found < bursts / 10,
                "{every}: {found}"
            );
        }
    }

    #[test]
    fn a_past_flood_is_forgotten_and_a_clock_that_stops_or_lags_allows_no_more_checks() {
        let sample = StaleSample::default();
        for _ in 0..100_000 {
            sample.chooses(at(10));
        }
        // No more are chosen: neither again in that second, nor with a reading from an earlier second.
        assert!(!sample.chooses(at(10)) && !sample.chooses(at(9)));
        assert!((0..6).all(|_| sample.chooses(at(200))));
        // The same after a very long time.
        for second in [1 << 24, (1 << 24) + 400, u64::MAX] {
            let chosen = (0..100).filter(|_| sample.chooses(at(second))).count();
            assert!((6..=8).contains(&chosen), "{chosen}");
        }
        assert!(!format!("{sample:?}").contains("random"));
    }

    #[test]
    fn threads_that_come_at_once_get_eight_places_together() {
        let sample = StaleSample::default();
        let chosen: usize = std::thread::scope(|scope| {
            let one = || (0..1_000).filter(|_| sample.chooses(at(1))).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
            threads.into_iter().map(|one| one.join().unwrap()).sum()
        });
        assert!((6..=8).contains(&chosen), "{chosen}");
    }
}
