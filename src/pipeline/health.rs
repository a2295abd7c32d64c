//! The health of a receiver, for readiness probes, and the signs of it that are noted while the
//! receiver works.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::{Clock, UnixSeconds};
use crate::dedupe::{StoreError, StoreErrorKind as Kind};

/// The health of a receiver at one moment. Made by [`Receiver::health`](crate::Receiver::health).
///
/// ```
/// use hookgate::{MemoryStore, Receiver, Secret};
///
/// let receiver = Receiver::builder()
///     .secret(Secret::new("whsec_made_up_for_this_example")?)
///     .store(MemoryStore::default())
///     .build()?;
/// let health = receiver.health();
/// assert!(health.is_ready());
/// assert_eq!(health.to_string(), "ready");
/// assert_eq!((health.runs, health.max_runs), (0, 1_024));
/// assert_eq!(health.since_last_accepted(), None); // nothing has come yet, and the receiver is ready all the same
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Runs under way.
    pub runs: usize,
    /// The most runs that may be under way: [`max_runs`](crate::ReceiverBuilder::max_runs).
    pub max_runs: usize,
    /// Whether a drain of the receiver was started. It cannot be undone.
    pub draining: bool,
    /// Whether at least the last three calls of the store have failed, or were given up, and the
    /// last one less than 30 s ago.
    pub store_failing: bool,
    /// When the receiver was built.
    pub started: UnixSeconds,
    /// The time of the last delivery that was authentic and fresh, with a usable id and type,
    /// whatever its outcome.
    pub last_authentic: Option<UnixSeconds>,
    /// The time when an event was last handled, dead-lettered or found already done.
    pub last_accepted: Option<UnixSeconds>,
    /// The receiver's wall clock.
    pub now: UnixSeconds,
}

impl Health {
    /// Returns whether the next authentic delivery of a fresh event would be taken: true unless
    /// there is a [reason](Self::reasons).
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.reasons().next().is_none()
    }

    /// Returns the names of the reasons why the receiver is not ready, in snake case and stable, as
    /// its metrics have them: `draining`, it refuses every new delivery; `no_permit_free`, the most
    /// runs that are allowed are under way, so the next authentic delivery is refused;
    /// `store_failing`, see [`store_failing`](Self::store_failing).
    ///
    /// ```
    /// # use hookgate::{MemoryStore, Receiver, Secret};
    /// # let receiver = Receiver::builder()
    /// #     .secret(Secret::new("whsec_made_up_for_this_example")?)
    /// #     .store(MemoryStore::default())
    /// #     .build()?;
    /// // Replicas of one database may rather answer 503 themselves than vanish all at once.
    /// let ready = receiver.health().reasons().all(|reason| reason == "store_failing");
    /// assert!(ready);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reasons(&self) -> impl Iterator<Item = &'static str> + use<> {
        let all = self.all_reasons().into_iter();
        all.filter_map(|(reason, holds)| holds.then_some(reason))
    }

    /// All reasons, and whether each holds.
    pub(crate) fn all_reasons(&self) -> [(&'static str, bool); 3] {
        [
            ("draining", self.draining),
            ("no_permit_free", self.runs >= self.max_runs),
            ("store_failing", self.store_failing),
        ]
    }

    /// Returns the time since an event was last accepted, by the wall clock; `None` if there was
    /// none.
    #[must_use]
    pub fn since_last_accepted(&self) -> Option<Duration> {
        let last = self.last_accepted?;
        // After the clock was set back, the time counts as zero.
        Some(self.now.since(last).unwrap_or_default())
    }
}

/// One line: `ready`, or `not ready: ` and the names of the reasons.
impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_ready() {
            return f.write_str("ready");
        }
        f.write_str("not ready")?;
        let mut separator = ": ";
        for reason in self.reasons() {
            write!(f, "{separator}{reason}")?;
            separator = ", ";
        }
        Ok(())
    }
}

/// The number of failed calls in a row after which a store is failing: one or two may come from a
/// single broken connection.
const FAILURES_IN_A_ROW: u32 = 3;
/// The time for which it counts as failing after the last failed call. A replica that gets no more
/// deliveries makes no calls either, so it could not find out that its store works again.
const FAILING_FOR: Duration = Duration::from_secs(30);

/// The latest observations. All accesses are relaxed, because only probes and metrics use them.
pub(crate) struct HealthSigns {
    clock: Arc<dyn Clock>,
    started: UnixSeconds,
    authentic: AtomicTime,
    accepted: AtomicTime,
    store_failures: AtomicU32,
    /// Monotonic milliseconds.
    store_failed_at: AtomicU64,
}

impl HealthSigns {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            started: clock.now(),
            clock,
            authentic: AtomicTime::never(),
            accepted: AtomicTime::never(),
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
            // A store that answers that it is full, that it refuses this delivery, or that another
            // call was faster, does answer.
            Err(error) if !matches!(error.kind(), Kind::Full | Kind::Refused | Kind::Conflict) => {
                self.store_failed();
            }
            // Read before it is written: all threads share the counter, and it is nearly always
            // zero.
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
struct AtomicTime(AtomicI64);

const NEVER: i64 = i64::MIN;

impl AtomicTime {
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
