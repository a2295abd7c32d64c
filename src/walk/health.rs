//! The health of a receiver, for readiness probes.

use std::fmt;
use std::time::Duration;

use crate::clock::UnixSeconds;

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
/// assert_eq!(health.since_last_accepted(), None); // nothing has come yet, which is no reason not to be ready
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
    /// Whether at least the last three calls of the store have failed, or were given up, and the last one less than 30 s ago.
    pub store_failing: bool,
    /// When the receiver was built.
    pub started: UnixSeconds,
    /// The time of the last delivery that was authentic and fresh, with a usable id and type, whatever its outcome.
    pub last_authentic: Option<UnixSeconds>,
    /// The time when an event was last handled, dead-lettered or found already done.
    pub last_accepted: Option<UnixSeconds>,
    /// The receiver's wall clock.
    pub now: UnixSeconds,
}

/// The reasons why a receiver is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unready {
    /// It is draining, and refuses every new delivery.
    Draining,
    /// The most runs that are allowed are under way, so the next authentic delivery is refused.
    NoPermitFree,
    /// The store of claims fails: see [`Health::store_failing`].
    StoreFailing,
}

impl Unready {
    #[cfg(feature = "metrics")]
    pub(crate) const ALL: [Self; 3] = [Self::Draining, Self::NoPermitFree, Self::StoreFailing];

    /// Returns a short name for logs and metrics, in snake case. Stable.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Draining => "draining",
            Self::NoPermitFree => "no_permit_free",
            Self::StoreFailing => "store_failing",
        }
    }
}

impl Health {
    /// Returns whether the next authentic delivery of a fresh event would be taken: true unless there is a
    /// [reason](Self::reasons).
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.reasons().next().is_none()
    }

    /// Returns the reasons why the receiver is not ready.
    ///
    /// ```
    /// # use hookgate::{MemoryStore, Receiver, Secret, Unready};
    /// # let receiver = Receiver::builder()
    /// #     .secret(Secret::new("whsec_made_up_for_this_example")?)
    /// #     .store(MemoryStore::default())
    /// #     .build()?;
    /// // Replicas of one database may rather answer 503 themselves than vanish all at once.
    /// let ready = receiver.health().reasons().all(|reason| reason == Unready::StoreFailing);
    /// assert!(ready);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reasons(&self) -> impl Iterator<Item = Unready> + use<> {
        [
            (self.draining, Unready::Draining),
            (self.runs >= self.max_runs, Unready::NoPermitFree),
            (self.store_failing, Unready::StoreFailing),
        ]
        .into_iter()
        .filter_map(|(holds, reason)| holds.then_some(reason))
    }

    /// Returns the time since an event was last accepted, by the wall clock; `None` if there was none.
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
            write!(f, "{separator}{}", reason.name())?;
            separator = ", ";
        }
        Ok(())
    }
}
