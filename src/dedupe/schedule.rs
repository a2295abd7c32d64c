//! The sender's retries, and the retention and the warnings that follow from them.

use std::borrow::Cow;
use std::time::Duration;

use crate::scheme::{Scheme, Window};

/// The times at which the sender tries again.
///
/// The service waits 1 minute, 5 minutes, 30 minutes, 2 hours and 24 hours, each after a failed
/// attempt, and gives an attempt 5 seconds (service specification, *Events*, *Delivery*). The
/// specification contradicts itself about the end: **five waits** make six attempts, but it counts
/// **"5 in total"**. Both readings are covered; for each purpose the safer one is used: an event is
/// remembered for the longer one, and [`probable_attempt`](Self::probable_attempt) warns from the
/// shorter one on.
///
/// | attempt | begins, after the event | may be the last |
/// |---|---|---|
/// | 1 | at once | |
/// | 2 | 1 min | |
/// | 3 | 6 min | |
/// | 4 | 36 min | |
/// | 5 | 2 h 36 min | "5 in total" |
/// | 6 | 26 h 36 min | five waits |
///
/// ```
/// use std::time::Duration;
/// use hookgate::{dedupe::RetrySchedule, verify::Window};
///
/// let schedule = RetrySchedule::default();
/// assert_eq!(schedule.total_wait(), Duration::from_secs(26 * 3600 + 36 * 60));
/// assert_eq!(schedule.attempts(), 6);
///
/// // 26 h 36 min, 5 s for each of six attempts, and 300 s on either side of the clock.
/// let least = schedule.minimum_retention(&Window::default());
/// assert_eq!(least, schedule.total_wait() + Duration::from_secs(6 * 5 + 300 + 300));
/// ```
///
/// Another sender's schedule:
///
/// ```
/// use std::time::Duration;
/// use hookgate::dedupe::RetrySchedule;
///
/// let schedule = RetrySchedule::new([Duration::from_secs(10), Duration::from_secs(60)])
///     .with_attempt_timeout(Duration::from_secs(30));
/// assert_eq!(schedule.attempts(), 3);
/// assert_eq!(schedule.total_wait(), Duration::from_secs(70));
/// assert!(schedule.probable_attempt(Duration::from_secs(75)).may_be_last);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetrySchedule {
    waits: Cow<'static, [Duration]>,
    attempt_timeout: Duration,
    fewest_attempts: u32,
}

/// The probable attempt of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// Counted from 1.
    pub number: u32,
    /// Whether the sender may discard the event when this attempt fails, in at least one reading of
    /// its schedule.
    pub may_be_last: bool,
}

impl Default for RetrySchedule {
    fn default() -> Self {
        Self::SERVICE
    }
}

impl RetrySchedule {
    /// The schedule of the Workspace Data Service.
    pub const SERVICE: Self = Self::of_scheme(&Scheme::WORKSPACE);

    /// Returns the schedule of this sender.
    #[must_use]
    pub const fn of_scheme(scheme: &Scheme) -> Self {
        let (waits, attempt_timeout, fewest_attempts) = scheme.schedule();
        Self {
            waits: Cow::Borrowed(waits),
            attempt_timeout,
            fewest_attempts,
        }
    }

    /// Returns the schedule of a sender that waits this long after each failed attempt, in this
    /// order, and gives an attempt 5 s. With no waits it makes one attempt.
    #[must_use]
    pub fn new(waits: impl Into<Vec<Duration>>) -> Self {
        let waits: Vec<_> = waits.into();
        Self {
            fewest_attempts: count(waits.len()).saturating_add(1),
            waits: waits.into(),
            attempt_timeout: Self::SERVICE.attempt_timeout,
        }
    }

    /// Sets how long the sender waits for an answer.
    #[must_use]
    pub fn with_attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = timeout;
        self
    }

    /// Sets the least number of attempts, for a sender that may stop earlier than its waits allow,
    /// as the service may: from this attempt on, each may be the last.
    #[must_use]
    pub fn with_fewest_attempts(mut self, attempts: u32) -> Self {
        self.fewest_attempts = attempts;
        self
    }

    /// Returns the waits, in order.
    #[must_use]
    pub fn waits(&self) -> &[Duration] {
        &self.waits
    }

    /// Returns the wait before the first retry; `None` where there are no retries. A lease must be
    /// shorter: otherwise a run whose process died still looks alive when the retry comes.
    #[must_use]
    pub fn first_wait(&self) -> Option<Duration> {
        self.waits.first().copied()
    }

    /// Returns how long the sender waits for an answer before it counts the attempt as failed.
    #[must_use]
    pub fn attempt_timeout(&self) -> Duration {
        self.attempt_timeout
    }

    /// Returns the number of attempts, in the longer reading: one more than waits.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        count(self.waits.len()).saturating_add(1)
    }

    /// Returns the least number of attempts: that of the shorter reading, where there are two.
    /// Never more than [`attempts`](Self::attempts).
    #[must_use]
    pub fn fewest_attempts(&self) -> u32 {
        self.fewest_attempts.clamp(1, self.attempts())
    }

    /// Returns the sum of all waits: how long after the first attempt the last one begins, without
    /// the time that attempts take.
    #[must_use]
    pub fn total_wait(&self) -> Duration {
        self.waits
            .iter()
            .fold(Duration::ZERO, |sum, wait| sum.saturating_add(*wait))
    }

    /// Returns the least time for which an event must be remembered, so that none of its deliveries
    /// can run twice: the sum of the waits, the time that the attempts themselves may take, and
    /// both limits of the window, within which a copy of the last delivery is still accepted.
    #[must_use]
    pub fn minimum_retention(&self, window: &Window) -> Duration {
        self.total_wait()
            .saturating_add(self.attempt_timeout.saturating_mul(self.attempts()))
            .saturating_add(window.past())
            .saturating_add(window.ahead())
    }

    /// Returns the probable attempt, given how long ago the event was created.
    ///
    /// A delivery does not carry its number, so this is a guess. Show it to the operator, and never
    /// decide by it. Attempts come late rather than early, so each attempt counts until the next is
    /// due. Clocks may disagree, so an attempt is due a tenth of its wait before its time, at most
    /// a minute.
    ///
    /// ```
    /// use std::time::Duration;
    /// use hookgate::dedupe::RetrySchedule;
    ///
    /// let schedule = RetrySchedule::default();
    /// let late_third = schedule.probable_attempt(Duration::from_secs(20 * 60));
    /// assert_eq!((late_third.number, late_third.may_be_last), (3, false));
    /// let fifth = schedule.probable_attempt(Duration::from_secs(2 * 3600 + 36 * 60));
    /// assert_eq!((fifth.number, fifth.may_be_last), (5, true));
    /// ```
    #[must_use]
    pub fn probable_attempt(&self, age_since_created: Duration) -> Attempt {
        const MAX_TOLERANCE: Duration = Duration::from_secs(60);
        let mut number = 1;
        let mut due = Duration::ZERO;
        for wait in self.waits.iter() {
            due = due.saturating_add(*wait);
            let tolerance = (*wait / 10).min(MAX_TOLERANCE);
            if age_since_created < due.saturating_sub(tolerance) {
                break;
            }
            number += 1;
        }
        Attempt {
            number,
            may_be_last: number >= self.fewest_attempts(),
        }
    }
}

fn count(waits: usize) -> u32 {
    u32::try_from(waits).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60;
    const HOUR: u64 = 3600;

    #[test]
    fn attempts_are_numbered_by_age_in_both_readings() {
        for (age, number, may_be_last) in [
            (0, 1, false),
            (53, 1, false),
            (54, 2, false), // a tenth of the first wait early
            (60, 2, false),
            (5 * MINUTE, 2, false),
            (6 * MINUTE, 3, false),
            (36 * MINUTE, 4, false),
            (2 * HOUR + 34 * MINUTE, 4, false),
            (2 * HOUR + 35 * MINUTE, 5, true), // a minute early
            (2 * HOUR + 36 * MINUTE, 5, true),
            (20 * HOUR, 5, true),
            (26 * HOUR + 36 * MINUTE, 6, true),
            (400 * HOUR, 6, true),
            (u64::MAX, 6, true),
        ] {
            let attempt = RetrySchedule::default().probable_attempt(Duration::from_secs(age));
            assert_eq!(
                attempt,
                Attempt {
                    number,
                    may_be_last
                },
                "age {age}"
            );
        }
    }

    #[test]
    fn a_schedule_says_what_it_was_made_of() {
        let seconds = Duration::from_secs;
        let schedule = RetrySchedule::new([seconds(10), seconds(60)])
            .with_attempt_timeout(seconds(30))
            .with_fewest_attempts(2);
        assert_eq!(schedule.waits(), [seconds(10), seconds(60)]);
        assert_eq!(schedule.first_wait(), Some(seconds(10)));
        assert_eq!(schedule.attempt_timeout(), seconds(30));
        assert_eq!(
            (schedule.attempts(), schedule.total_wait()),
            (3, seconds(70))
        );
        assert_eq!(schedule.fewest_attempts(), 2);
        assert_eq!(RetrySchedule::SERVICE.fewest_attempts(), 5);
        let never = schedule.clone().with_fewest_attempts(0);
        assert_eq!(never.fewest_attempts(), 1);
        assert!(!schedule.probable_attempt(seconds(0)).may_be_last);
        assert!(schedule.probable_attempt(seconds(10)).may_be_last);
    }

    #[test]
    fn two_days_cover_the_least_retention() {
        let least = RetrySchedule::SERVICE.minimum_retention(&Window::default());
        assert_eq!(least, Duration::from_secs(26 * HOUR + 46 * MINUTE + 30));
        assert!(least < Duration::from_secs(48 * HOUR));
    }

    #[test]
    fn a_sender_without_retries_has_one_attempt() {
        let once = RetrySchedule::new([]);
        assert_eq!(
            (once.attempts(), once.total_wait(), once.first_wait()),
            (1, Duration::ZERO, None)
        );
        assert!(once.probable_attempt(Duration::ZERO).may_be_last);
    }

    #[test]
    fn no_schedule_overflows() {
        let endless = RetrySchedule::new([Duration::MAX, Duration::MAX])
            .with_attempt_timeout(Duration::MAX)
            .with_fewest_attempts(u32::MAX);
        let window = Window::default().with_past(Duration::MAX);
        assert_eq!(endless.minimum_retention(&window), Duration::MAX);
        assert!(endless.probable_attempt(Duration::MAX).may_be_last);
    }
}
