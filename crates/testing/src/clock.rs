//! A clock that follows tokio's time.

use std::fmt;

use hookgate::clock::{Clock, Monotonic, UnixSeconds};
use tokio::time::Instant;

/// Wall and monotonic time from tokio's clock, so that a test in paused time passes days in milliseconds and ages stay correct.
///
/// Clones share their time. Where tokio's clock is not paused, it advances in real time.
///
/// ```
/// use std::time::Duration;
/// use hookgate::clock::{Clock, UnixSeconds};
/// use hookgate_testing::TokioClock;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
/// let clock = TokioClock::starting_at(UnixSeconds::new(1_763_690_000));
/// tokio::time::sleep(Duration::from_secs(24 * 3_600)).await;
/// assert_eq!(clock.now(), UnixSeconds::new(1_763_690_000 + 24 * 3_600));
/// assert!(clock.monotonic().since_start() >= Duration::from_secs(24 * 3_600));
/// tokio::time::sleep(Duration::from_millis(250)).await;
/// assert!(clock.unix_millis() % 1_000 >= 250);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct TokioClock {
    start: Instant,
    wall: UnixSeconds,
}

impl TokioClock {
    /// Returns a clock that shows `wall` now.
    #[must_use]
    pub fn starting_at(wall: UnixSeconds) -> Self {
        Self {
            start: Instant::now(),
            wall,
        }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> UnixSeconds {
        let passed = i64::try_from(self.start.elapsed().as_secs()).unwrap_or(i64::MAX);
        UnixSeconds::new(self.wall.as_i64().saturating_add(passed))
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::new(self.start.elapsed())
    }

    fn unix_millis(&self) -> u64 {
        let wall = u64::try_from(self.wall.as_i64()).unwrap_or_default();
        let passed = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        wall.saturating_mul(1_000).saturating_add(passed)
    }
}

impl fmt::Debug for TokioClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokioClock")
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}
