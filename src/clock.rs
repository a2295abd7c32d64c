//! The clock: the only place in the crate that reads the clocks of the system. Limits and elapsed
//! times use the timer of tokio.
//!
//! ```
//! use std::time::Duration;
//! use hookgate::clock::{Clock, ManualClock, UnixSeconds};
//!
//! let clock = ManualClock::at(UnixSeconds::new(1_763_690_000));
//! clock.advance(Duration::from_secs(300));
//! assert_eq!(clock.now(), UnixSeconds::new(1_763_690_300));
//! clock.set_wall(UnixSeconds::new(0)); // a stepped wall clock leaves the monotonic reading alone
//! assert_eq!(clock.monotonic().since_start(), Duration::from_secs(300));
//! ```
//!
//! There are two readings. The **wall** clock gives the age of a delivery, because another machine
//! wrote the timestamp. The **monotonic** reading measures leases and retention inside this
//! process. So a change of the wall clock neither frees a running claim nor forgets an event that
//! is done.

#![expect(clippy::disallowed_methods, reason = "this file reads the clock")]

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Reads the time: wall seconds and a monotonic reading.
///
/// Implement it to use another source of time, for example a simulation. Both readings must be
/// cheap, because one delivery reads them several times. They must not panic.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the wall clock. It can step forward or backward.
    fn now(&self) -> UnixSeconds;

    /// Returns a reading that never goes backward while the process lives.
    fn monotonic(&self) -> Monotonic;

    /// Returns the wall clock in milliseconds since 1970-01-01T00:00:00Z, for values that one
    /// process writes and another process reads, such as the leases of an inbox in a file. Zero
    /// before 1970. The default implementation gives whole seconds.
    fn unix_millis(&self) -> u64 {
        u64::try_from(self.now().as_i64()).map_or(0, |seconds| seconds.saturating_mul(1_000))
    }
}

/// A shared clock is a clock.
impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> UnixSeconds {
        (**self).now()
    }

    fn monotonic(&self) -> Monotonic {
        (**self).monotonic()
    }

    fn unix_millis(&self) -> u64 {
        (**self).unix_millis()
    }
}

/// A point of the wall clock, in whole seconds since 1970-01-01T00:00:00Z. Negative before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixSeconds(i64);

impl UnixSeconds {
    /// Makes a point from seconds since 1970-01-01T00:00:00Z.
    #[must_use]
    #[inline]
    pub const fn new(seconds: i64) -> Self {
        Self(seconds)
    }

    /// Returns the seconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn as_i64(self) -> i64 {
        self.0
    }

    /// Returns the time from `earlier` to this point; `None` if `earlier` is later than this point.
    /// Saturates, never overflows.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use hookgate::clock::UnixSeconds;
    /// let (a, b) = (UnixSeconds::new(10), UnixSeconds::new(13));
    /// assert_eq!(b.since(a), Some(Duration::from_secs(3)));
    /// assert_eq!(a.since(b), None);
    /// ```
    #[must_use]
    #[inline]
    pub fn since(self, earlier: Self) -> Option<Duration> {
        u64::try_from(self.0.saturating_sub(earlier.0))
            .ok()
            .map(Duration::from_secs)
    }
}

impl fmt::Display for UnixSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A monotonic reading: the time since the start of its clock. Compare only readings of the same
/// clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(Duration);

impl Monotonic {
    /// Makes a reading `since_start` after the start of the clock.
    #[must_use]
    pub const fn new(since_start: Duration) -> Self {
        Self(since_start)
    }

    /// Returns the time since the start of the clock.
    #[must_use]
    pub const fn since_start(self) -> Duration {
        self.0
    }

    /// Returns the reading that is later than this one by `by`. Saturates.
    #[must_use]
    pub const fn saturating_add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by))
    }

    /// Returns the time from `earlier` to this reading; zero if `earlier` is later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// The clocks of the machine. The default clock everywhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> UnixSeconds {
        // With a clock before 1970 the seconds are negative; this does not fail. Every delivery is
        // then refused as too far ahead. That is right, because the age of a delivery is unknown.
        let seconds = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
            Err(before) => {
                i64::try_from(before.duration().as_secs()).map_or(i64::MIN, |seconds| -seconds)
            }
        };
        UnixSeconds(seconds)
    }

    fn monotonic(&self) -> Monotonic {
        static START: OnceLock<Instant> = OnceLock::new();
        Monotonic(START.get_or_init(Instant::now).elapsed())
    }

    fn unix_millis(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
    }
}

/// Returns the nanoseconds of the wall clock since 1970-01-01T00:00:00Z, to make random values
/// differ. It is not a time: it wraps, and the resolution depends on the machine.
pub(crate) fn entropy() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_else(|before| before.duration());
    #[allow(clippy::cast_possible_truncation)] // the low bits are those that differ
    let low = since.as_nanos() as u64;
    low
}

/// A clock that changes only when it is moved. Clones share their time.
///
/// Made for tests: only the test moves it.
#[derive(Clone, Debug)]
pub struct ManualClock {
    wall_seconds: Arc<AtomicI64>,
    monotonic_nanos: Arc<AtomicU64>,
}

impl ManualClock {
    /// Makes a clock that is set to `wall`, with its monotonic reading at zero.
    #[must_use]
    pub fn at(wall: UnixSeconds) -> Self {
        Self {
            wall_seconds: Arc::new(AtomicI64::new(wall.0)),
            monotonic_nanos: Arc::default(),
        }
    }

    /// Moves both readings forward by `by`. The wall clock shows whole seconds.
    pub fn advance(&self, by: Duration) {
        let nanos = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        let before = self
            .monotonic_nanos
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |now| {
                Some(now.saturating_add(nanos))
            })
            .unwrap_or_else(|now| now);
        // Counts whole seconds since the start, so that many small steps also add up on the wall
        // clock.
        let seconds = |nanos: u64| i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX);
        let passed = seconds(before.saturating_add(nanos)) - seconds(before);
        self.wall_seconds.fetch_add(passed, Ordering::SeqCst);
    }

    /// Sets only the wall clock, as an operator or a time service does. The monotonic reading
    /// stays.
    pub fn set_wall(&self, wall: UnixSeconds) {
        self.wall_seconds.store(wall.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> UnixSeconds {
        UnixSeconds(self.wall_seconds.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic(Duration::from_nanos(
            self.monotonic_nanos.load(Ordering::SeqCst),
        ))
    }

    fn unix_millis(&self) -> u64 {
        // The fraction of a second comes from the monotonic reading, because `advance` moves both
        // readings.
        let part = self.monotonic_nanos.load(Ordering::SeqCst) % 1_000_000_000 / 1_000_000;
        let seconds = u64::try_from(self.now().as_i64()).unwrap_or_default();
        seconds.saturating_mul(1_000).saturating_add(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_steps_add_up_on_the_wall() {
        let clock = ManualClock::at(UnixSeconds::new(100));
        for _ in 0..10 {
            clock.advance(Duration::from_millis(250));
        }
        assert_eq!(clock.now(), UnixSeconds::new(102));
        assert_eq!(
            clock.monotonic().since_start(),
            Duration::from_millis(2_500)
        );
    }

    #[test]
    fn milliseconds_are_those_of_the_monotonic_reading() {
        let clock = ManualClock::at(UnixSeconds::new(100));
        clock.advance(Duration::from_millis(1_750));
        assert_eq!(clock.unix_millis(), 101_750);
        clock.set_wall(UnixSeconds::new(50));
        assert_eq!(clock.unix_millis(), 50_750);
        clock.set_wall(UnixSeconds::new(-1));
        assert!(clock.unix_millis() < 1_000);
        clock.set_wall(UnixSeconds::new(i64::MAX));
        assert_eq!(clock.unix_millis(), u64::MAX);
        assert!(SystemClock.unix_millis() / 1_000 > 1_700_000_000);
    }

    #[test]
    fn the_ends_of_time_do_not_overflow() {
        let (first, last) = (UnixSeconds::new(i64::MIN), UnixSeconds::new(i64::MAX));
        assert_eq!(
            last.since(first),
            Some(Duration::from_secs(i64::MAX as u64))
        );
        assert_eq!(first.since(last), None);
    }

    #[test]
    fn the_system_clock_moves_forward() {
        let first = SystemClock.monotonic();
        assert!(SystemClock.monotonic() >= first);
        assert!(SystemClock.now() > UnixSeconds::new(1_700_000_000));
    }
}
