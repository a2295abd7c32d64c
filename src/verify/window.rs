//! How old, and how far ahead, a delivery may be.

use std::time::Duration;

use super::error::{StaleTimes, VerifyError, VerifyErrorKind};
use crate::clock::UnixSeconds;

/// The ages that are accepted. There are two limits, since a clock that is ahead and a delivery that was delayed are two faults.
///
/// The service asks receivers to refuse an age that **exceeds** 300 s (service specification, *Events*, *Signature*, rule 3):
/// 300 s is accepted, 301 s is not. It says nothing about timestamps ahead of the receiver's clock; the default refuses
/// beyond 300 s of those too, since in each of these seconds a copied delivery can be replayed.
///
/// ```
/// use std::time::Duration;
/// use hookgate::verify::Window;
///
/// let window = Window::default().with_ahead(Duration::from_secs(30));
/// assert_eq!(window.past(), Duration::from_secs(300));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    past: Duration,
    ahead: Duration,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            past: Duration::from_secs(300),
            ahead: Duration::from_secs(300),
        }
    }
}

impl Window {
    /// Accepts ages up to `past`, in whole seconds.
    ///
    /// # Security
    /// A copied delivery can be replayed for as long as it is accepted and not remembered. Retention must cover a longer time
    /// than the window: [`ReceiverBuilder::build`](crate::ReceiverBuilder::build) refuses one that does not.
    #[must_use]
    pub fn with_past(mut self, past: Duration) -> Self {
        self.past = past;
        self
    }

    /// Accepts timestamps up to `ahead` of the receiver's clock, in whole seconds.
    ///
    /// # Security
    /// A delivery that was signed ahead of time stays fresh for that much longer, and can be replayed for as long.
    #[must_use]
    pub fn with_ahead(mut self, ahead: Duration) -> Self {
        self.ahead = ahead;
        self
    }

    /// Returns the greatest age that is accepted.
    #[must_use]
    pub fn past(&self) -> Duration {
        self.past
    }

    /// Returns how far ahead a timestamp may be.
    #[must_use]
    pub fn ahead(&self) -> Duration {
        self.ahead
    }

    /// Checks the age of a timestamp.
    ///
    /// ```
    /// use hookgate::{clock::UnixSeconds, verify::Window};
    ///
    /// let signed = UnixSeconds::new(1_763_690_000);
    /// assert!(Window::default().check(signed, UnixSeconds::new(1_763_690_300)).is_ok());
    /// assert!(Window::default().check(signed, UnixSeconds::new(1_763_690_301)).is_err());
    /// ```
    ///
    /// # Errors
    /// `Stale` or `Ahead`, with both times and the limit.
    #[inline]
    pub fn check(&self, timestamp: UnixSeconds, now: UnixSeconds) -> Result<(), VerifyError> {
        let times = |limit| StaleTimes {
            timestamp,
            now,
            limit,
        };
        let kind = if now.since(timestamp).is_some_and(|age| age > self.past) {
            VerifyErrorKind::Stale(times(self.past))
        } else if timestamp.since(now).is_some_and(|ahead| ahead > self.ahead) {
            VerifyErrorKind::Ahead(times(self.ahead))
        } else {
            return Ok(());
        };
        Err(VerifyError::new(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_limits_are_inclusive() {
        let now = 1_763_690_000;
        for (age, accepted) in [
            (0, true),
            (300, true),
            (301, false),
            (-300, true),
            (-301, false),
            (i64::MAX / 2, false),
            (i64::MIN / 2, false),
        ] {
            let result =
                Window::default().check(UnixSeconds::new(now - age), UnixSeconds::new(now));
            assert_eq!(result.is_ok(), accepted, "age {age}");
        }
    }

    #[test]
    fn no_clock_reading_overflows() {
        for now in [i64::MIN, -1, 0, i64::MAX] {
            for timestamp in [i64::MIN, 0, 1, i64::MAX] {
                let _ = Window::default().check(UnixSeconds::new(timestamp), UnixSeconds::new(now));
            }
        }
    }
}
