//! Signs of life: what the receiver has seen of itself, noted in passing.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::{Clock, UnixSeconds};
use crate::error::{StoreError, StoreErrorKind};

/// A store is failing after so many failed calls in a row: one or two may be a single connection that broke.
const FAILURES_IN_A_ROW: u32 = 3;
/// For so long after the last of them. A replica that gets no deliveries any more makes no calls either, so it could never
/// find out that its store has come back.
const FAILING_FOR: Duration = Duration::from_secs(30);

/// What was seen last. Relaxed everywhere: nothing is decided by it but what a probe or a metric says.
pub(crate) struct Vitals {
    clock: Arc<dyn Clock>,
    started: UnixSeconds,
    authentic: Stamp,
    accepted: Stamp,
    store_failures: AtomicU32,
    /// Monotonic milliseconds.
    store_failed_at: AtomicU64,
}

impl Vitals {
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

    /// When the receiver was built.
    pub(super) fn started(&self) -> UnixSeconds {
        self.started
    }

    /// When a delivery was last recognised.
    pub(super) fn last_authentic(&self) -> Option<UnixSeconds> {
        self.authentic.get()
    }

    /// When an event was last found or made done.
    pub(super) fn last_accepted(&self) -> Option<UnixSeconds> {
        self.accepted.get()
    }

    pub(super) fn authentic(&self, now: UnixSeconds) {
        self.authentic.set(now);
    }

    pub(crate) fn accepted(&self) {
        self.accepted.set(self.clock.now());
    }

    /// What a call of the store came to.
    pub(crate) fn store_said<T>(&self, answer: &Result<T, StoreError>) {
        match answer {
            // One that says that it is full, or that it refuses this delivery, does answer.
            Err(error)
                if !matches!(error.kind(), StoreErrorKind::Full | StoreErrorKind::Refused) =>
            {
                self.store_failed();
            }
            // Looked at before it is written: the counter is shared by all threads, and hardly ever anything but zero.
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

    pub(super) fn store_is_failing(&self) -> bool {
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

impl fmt::Debug for Vitals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vitals").finish_non_exhaustive()
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

    fn get(&self) -> Option<UnixSeconds> {
        let second = self.0.load(Ordering::Relaxed);
        (second != NEVER).then(|| UnixSeconds::new(second))
    }
}
