//! The time of a replay.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hookgate::clock::{Clock, Monotonic, UnixSeconds};
use tokio::time::Instant;

/// The clock of a replay, for the receiver and for the stores of your app. Clones share their time.
///
/// It shows the time of the log's first delivery until the replay begins, and then advances with
/// tokio's time. A store that measures leases and retention in this process should use this clock.
/// A store that uses the machine's clock sees a replayed day as a few milliseconds.
///
/// ```
/// use hookgate_testing::{DeliveryLog, Replay};
/// use hookgate::MemoryStore;
///
/// let replay = Replay::of(DeliveryLog::default());
/// let durable = MemoryStore::default().with_clock(replay.clock()); // outlives the restarts of the plan
/// # let _ = durable;
/// ```
#[derive(Clone, Debug)]
pub struct ReplayClock(Arc<Time>);

#[derive(Debug)]
struct Time {
    wall: AtomicI64,
    started: OnceLock<Instant>,
    /// Milliseconds of waits that were cut short in real time.
    skipped: AtomicU64,
}

impl ReplayClock {
    pub(super) fn at(wall: UnixSeconds) -> Self {
        Self(Arc::new(Time {
            wall: AtomicI64::new(wall.as_i64()),
            started: OnceLock::new(),
            skipped: AtomicU64::new(0),
        }))
    }

    /// Starts the clock at this time.
    pub(super) fn start(&self, wall: UnixSeconds) {
        self.0.wall.store(wall.as_i64(), Ordering::SeqCst);
        self.0.started.get_or_init(Instant::now);
    }

    /// The time that has passed in the replay.
    pub(super) fn passed(&self) -> Duration {
        let Some(started) = self.0.started.get() else {
            return Duration::ZERO;
        };
        let skipped = Duration::from_millis(self.0.skipped.load(Ordering::SeqCst));
        started.elapsed().saturating_add(skipped)
    }

    /// Moves the clock forward by this time, in place of a real wait.
    pub(super) fn skip(&self, wait: Duration) {
        let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self.0.skipped.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for ReplayClock {
    fn now(&self) -> UnixSeconds {
        let passed = i64::try_from(self.passed().as_secs()).unwrap_or(i64::MAX);
        UnixSeconds::new(self.0.wall.load(Ordering::SeqCst).saturating_add(passed))
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::new(self.passed())
    }
}

/// Whether tokio's time stands still while the machine's time advances.
pub(super) fn time_is_paused() -> bool {
    let before = Instant::now();
    std::thread::sleep(Duration::from_millis(1));
    Instant::now() == before
}
