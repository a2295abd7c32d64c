//! The signs of a receiver's health, noted while it works.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::health::Health;
use crate::clock::{Clock, UnixSeconds};
use crate::dedupe::{StoreError, StoreErrorKind};

/// The number of failed calls in a row after which a store is failing: one or two may come from a single broken connection.
const FAILURES_IN_A_ROW: u32 = 3;
/// The time for which it counts as failing after the last failed call. A replica that gets no more deliveries makes no calls
/// either, so it could not find out that its store works again.
const FAILING_FOR: Duration = Duration::from_secs(30);

/// The latest observations. All accesses are relaxed, because only probes and metrics use them.
pub(crate) struct HealthSigns {
    clock: Arc<dyn Clock>,
    started: UnixSeconds,
    authentic: Stamp,
    accepted: Stamp,
    store_failures: AtomicU32,
    /// Monotonic milliseconds.
    store_failed_at: AtomicU64,
}

impl HealthSigns {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            started: clock.now(),
            clock,
            authentic: Stamp::never(),
            accepted: Stamp::never(),
            store_failures: AtomicU32::new(0),
            store_failed_at: AtomicU64::new(0),
        }
    }

    /// Returns the health of the receiver, with the state of its gate.
    pub(super) fn health(&self, runs: usize, max_runs: usize, draining: bool) -> Health {
        Health {
            runs,
            max_runs,
            draining,
            store_failing: self.store_is_failing(),
            started: self.started,
            last_authentic: self.authentic.get(),
            last_accepted: self.accepted.get(),
            now: self.clock.now(),
        }
    }

    /// Notes that a delivery was recognised.
    pub(super) fn authentic(&self, now: UnixSeconds) {
        self.authentic.set(now);
    }

    /// Notes that an event was found done or became done.
    pub(crate) fn accepted(&self) {
        self.accepted.set(self.clock.now());
    }

    /// Notes the result of a call of the store.
    pub(crate) fn record_store_answer<T>(&self, answer: &Result<T, StoreError>) {
        match answer {
            // A store that answers that it is full, or that it refuses this delivery, does answer.
            Err(error)
                if !matches!(error.kind(), StoreErrorKind::Full | StoreErrorKind::Refused) =>
            {
                self.store_failed();
            }
            // Read before it is written: all threads share the counter, and it is nearly always zero.
            _ if self.store_failures.load(Ordering::Relaxed) != 0 => {
                self.store_failures.store(0, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    /// A call of the store failed, or was given up.
    pub(crate) fn store_failed(&self) {
        let one_more = |failures: u32| Some(failures.saturating_add(1));
        let _ = self
            .store_failures
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        self.store_failed_at
            .store(self.monotonic_millis(), Ordering::Relaxed);
    }

    fn store_is_failing(&self) -> bool {
        if self.store_failures.load(Ordering::Relaxed) < FAILURES_IN_A_ROW {
            return false;
        }
        let failed_at = self.store_failed_at.load(Ordering::Relaxed);
        let since = self.monotonic_millis().saturating_sub(failed_at);
        Duration::from_millis(since) < FAILING_FOR
    }

    fn monotonic_millis(&self) -> u64 {
        let reading = self.clock.monotonic().since_start().as_millis();
        u64::try_from(reading).unwrap_or(u64::MAX)
    }
}

/// A second of the wall clock, or never.
struct Stamp(AtomicI64);

const NEVER: i64 = i64::MIN;

impl Stamp {
    fn never() -> Self {
        Self(AtomicI64::new(NEVER))
    }

    fn set(&self, second: UnixSeconds) {
        self.0.store(second.as_i64(), Ordering::Relaxed);
    }

    #[expect(clippy::disallowed_methods, reason = "an earlier reading of the clock")]
    fn get(&self) -> Option<UnixSeconds> {
        let second = self.0.load(Ordering::Relaxed);
        (second != NEVER).then(|| UnixSeconds::new(second))
    }
}
