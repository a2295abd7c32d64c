//! The settings of the workers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hookgate::{ConfigError, ConfigErrorKind};

use super::backoff::Backoff;
use super::hooks::{AttemptReport, DeadEntry, Hooks, LostLease};
#[cfg(feature = "metrics")]
use super::metrics::WorkersMetrics;
#[cfg(feature = "tracing")]
use super::trace::Tracing;
use crate::Inbox;
use crate::engine::CLOCK_LEAP;

/// The most runs. With the default back-off they last longer than the sender's attempts: 26 h 36
/// min.
pub(super) const MAX_TRIES: u32 = 30;

/// The receiver's default retention, which the docs of `claim_in` name for claims.
const CLAIM_RETENTION: Duration = Duration::from_secs(48 * 3_600);
/// The inbox's clock and the claims' clock may each be set by an hour in between.
const CLOCK_LEAPS: Duration = CLOCK_LEAP.saturating_mul(2);

/// Shorter leases could end before a busy machine renews them.
const SHORTEST_LEASE: Duration = Duration::from_millis(30);

/// The settings of workers for an inbox, until [`start`](Self::start). See the [crate's
/// page](crate#settings-of-the-workers).
#[must_use = "workers do nothing until they are started"]
pub struct Workers {
    pub(super) inbox: Inbox,
    pub(super) concurrency: usize,
    pub(super) lease: Duration,
    pub(super) run_limit: Duration,
    pub(super) claim_retention: Duration,
    pub(super) backoff: Backoff,
    pub(super) max_tries: u32,
    pub(super) serial_by_row: bool,
    pub(super) poll: Duration,
    pub(super) hooks: Hooks,
    #[cfg(feature = "tracing")]
    pub(super) tracing: Tracing,
    #[cfg(feature = "metrics")]
    pub(super) metrics: WorkersMetrics,
}

impl Workers {
    /// Workers for this inbox, with the defaults. Any number of processes may work on one inbox,
    /// each with its own workers.
    pub fn new(inbox: &Inbox) -> Self {
        Self {
            inbox: inbox.clone(),
            concurrency: 16,
            lease: Duration::from_secs(30),
            run_limit: Duration::from_secs(600),
            claim_retention: CLAIM_RETENTION,
            backoff: Backoff::default(),
            max_tries: MAX_TRIES,
            serial_by_row: false,
            poll: Duration::from_secs(1),
            hooks: Hooks::default(),
            #[cfg(feature = "tracing")]
            tracing: Tracing::default(),
            #[cfg(feature = "metrics")]
            metrics: WorkersMetrics("default".into()),
        }
    }

    /// The largest number of handlers that run at a time, in this process. No more entries than
    /// this are leased. Default: 16.
    pub fn concurrency(mut self, most: usize) -> Self {
        self.concurrency = most;
        self
    }

    /// How long an entry waits for another worker if its process is killed or blocked. The lease is
    /// renewed after each third of this time for as long as the handler runs. Default: 30 s. More
    /// than 30 ms.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// The time after which a handler is aborted, counted from the lease. The run has then failed.
    /// Default: 10 min. At most 30 days.
    pub fn run_limit(mut self, limit: Duration) -> Self {
        self.run_limit = limit;
        self
    }

    /// How long the handler's own claims are kept, such as those of `claim_in`: pass the same
    /// constant to both. Default: 48 h. More than the [run limit](Self::run_limit) plus 2 h.
    ///
    /// **No run begins that could end after that time**: an entry whose first lease began longer
    /// ago than this time, less the run limit and 2 h for changes of the clocks, becomes a dead
    /// letter, and its last error gives this reason. The [crate's page](crate#promises) says why,
    /// and how an operator runs it.
    ///
    /// The limits of this rule:
    ///
    /// - The clocks of the inbox and of the claims may each be changed by up to an hour meanwhile.
    ///   A first lease more than an hour ahead of the inbox's clock makes a dead letter. Set back
    ///   by more than an hour, entries seem younger than they are.
    /// - A handler is not stopped if it goes on after its abort, in its own task or in a process
    ///   that was paused for days.
    /// - An entry that was leased, and given back before its handler began, counts as run.
    /// - The inbox remembers a done entry for the receiver's retention, from its acceptance. A copy
    ///   that is sent by hand later is a new event for the inbox and for the claims.
    ///
    /// `Duration::MAX` is for handlers whose second run does no harm at any time: their entries are
    /// run however old they are.
    ///
    /// ```
    /// use std::time::Duration;
    /// # use hookgate_inbox::Inbox;
    /// use hookgate_inbox::Workers;
    ///
    /// /// Of the claims, and so of the workers: `claim_in(&transaction, "orders", &delivery, RETAIN)`.
    /// const RETAIN: Duration = Duration::from_secs(48 * 60 * 60);
    ///
    /// # fn example(inbox: &Inbox) {
    /// let workers = Workers::new(inbox).claim_retention(RETAIN);
    /// # drop(workers);
    /// # }
    /// ```
    pub fn claim_retention(mut self, retention: Duration) -> Self {
        self.claim_retention = retention;
        self
    }

    /// How long a failed entry waits for its next run. Default: [`Backoff::default`].
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// After this number of runs, an entry that fails becomes a dead letter. Default: 30, which
    /// with the default back-off take longer than the sender's own attempts: see the [crate's
    /// page](crate#settings-of-the-workers).
    ///
    /// A run counts when it begins, so that an event whose handler kills its process becomes a dead
    /// letter too. A deploy that kills its workers counts as a run of the entries in progress; a
    /// deploy that [shuts them down](super::RunningWorkers::shutdown) does not.
    pub fn max_tries(mut self, most: u32) -> Self {
        self.max_tries = most;
        self
    }

    /// Handles at most one event of a row at a time, across all processes with this setting; other
    /// events run in parallel. No order is guaranteed: the sender guarantees none, and other events
    /// of the row may run while a failed event waits. Default: off.
    pub fn serial_by_row(mut self) -> Self {
        self.serial_by_row = true;
        self
    }

    /// How often the workers ask the store if it sends no notification, for example for entries
    /// that another process accepts. Default: 1 s.
    pub fn poll_interval(mut self, every: Duration) -> Self {
        self.poll = every;
        self
    }

    /// The label `inbox` of these workers' metrics. Default: `default`.
    #[cfg(feature = "metrics")]
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub fn metrics_name(mut self, name: &str) -> Self {
        self.metrics = WorkersMetrics(name.to_owned().into());
        self
    }

    /// Logs each handled entry once at INFO: `job ended`. Without this setting, that line is at
    /// DEBUG. [The page about tracing](hookgate::guide::tracing) lists all lines.
    #[cfg(feature = "tracing")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tracing")))]
    pub fn log_handled_at_info(mut self) -> Self {
        self.tracing.handled_at_info = true;
        self
    }

    /// Calls `hook` once for each run, when its settlement has succeeded or failed. A panic in it
    /// has no effect.
    pub fn on_settled(mut self, hook: impl Fn(&AttemptReport) + Send + Sync + 'static) -> Self {
        self.hooks.settled = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` for each run that failed, whether or not its entry is run again. A panic in it
    /// has no effect.
    pub fn on_failed(mut self, hook: impl Fn(&AttemptReport) + Send + Sync + 'static) -> Self {
        self.hooks.failed = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` for each entry that becomes a dead letter here. The entry stays in the inbox,
    /// so it is not lost if no hook is set. A panic in it has no effect.
    pub fn on_dead_letter(mut self, hook: impl Fn(&DeadEntry) + Send + Sync + 'static) -> Self {
        self.hooks.dead = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` if a lease was lost while its handler was running: another process may be
    /// handling the same event. The run goes on, and its end does not change the entry. A panic in
    /// it has no effect.
    pub fn on_lost_lease(mut self, hook: impl Fn(&LostLease) + Send + Sync + 'static) -> Self {
        self.hooks.lost = Some(Arc::new(hook));
        self
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        for (setting, is_zero) in [
            ("concurrency", self.concurrency == 0),
            ("max_tries", self.max_tries == 0),
        ] {
            if is_zero {
                return Err(ConfigError::new(ConfigErrorKind::Zero { setting }));
            }
        }
        in_range("lease", self.lease, SHORTEST_LEASE)?;
        in_range("run_limit", self.run_limit, Duration::ZERO)?;
        if self.claim_retention != Duration::MAX {
            let least = self.run_limit.saturating_add(CLOCK_LEAPS);
            // Claims may be kept for years, so there is no upper limit.
            if self.claim_retention <= least {
                return Err(ConfigError::new(ConfigErrorKind::OutOfRange {
                    setting: "claim_retention",
                    least,
                    most: Duration::MAX,
                }));
            }
        }
        in_range("poll_interval", self.poll, Duration::ZERO)
    }

    /// How long after an entry's first lease its last run may begin, so that this run ends while a
    /// claim of the first run is kept.
    pub(super) fn run_within(&self) -> Option<Duration> {
        let ends = self.run_limit.saturating_add(CLOCK_LEAPS);
        let is_bounded = self.claim_retention != Duration::MAX;
        is_bounded.then(|| self.claim_retention.saturating_sub(ends))
    }
}

/// Checks that a duration is longer than `least`, and short enough to be added to a reading of a
/// clock.
fn in_range(setting: &'static str, value: Duration, least: Duration) -> Result<(), ConfigError> {
    const MAX: Duration = Duration::from_secs(30 * 24 * 3_600);
    if value > least && value <= MAX {
        return Ok(());
    }
    Err(ConfigError::new(ConfigErrorKind::OutOfRange {
        setting,
        least,
        most: MAX,
    }))
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers")
            .field("inbox", &self.inbox)
            .field("concurrency", &self.concurrency)
            .field("lease", &self.lease)
            .field("run_limit", &self.run_limit)
            .field("claim_retention", &self.claim_retention)
            .field("backoff", &self.backoff)
            .field("max_tries", &self.max_tries)
            .field("serial_by_row", &self.serial_by_row)
            .finish_non_exhaustive()
    }
}
