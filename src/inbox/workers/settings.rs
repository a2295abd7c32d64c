//! What the workers are told before they start.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::backoff::Backoff;
use super::hooks::{DeadEntry, Hooks, LostLease, Tried};
use crate::error::{BuildError, BuildErrorKind};
use crate::inbox::Inbox;
use crate::inbox::engine::CLOCK_LEAP;
use crate::receiver::in_range;

/// With the default back-off, more than the 26 h 36 min for which the sender would have tried.
pub(super) const MAX_TRIES: u32 = 30;

/// That of the receiver, which the docs of `claim_in` name for claims.
const CLAIM_RETENTION: Duration = Duration::from_secs(48 * 3_600);
/// Of the inbox's clock and of the claims' clock, each may be set by an hour meanwhile.
const CLOCK_LEAPS: Duration = CLOCK_LEAP.saturating_mul(2);

/// No setting is checked beyond it.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Shorter ones would be renewed faster than a busy machine can.
const SHORTEST_LEASE: Duration = Duration::from_millis(30);

/// Works an inbox off: the settings, until [`start`](Self::start). See the [module docs](crate::inbox).
#[must_use = "workers do nothing until they are started"]
pub struct Workers {
    pub(super) inbox: Inbox,
    pub(super) settings: Settings,
}

pub(super) struct Settings {
    pub(super) concurrency: usize,
    pub(super) lease: Duration,
    pub(super) run_limit: Duration,
    pub(super) claim_retention: Duration,
    pub(super) backoff: Backoff,
    pub(super) max_tries: u32,
    pub(super) serial_by_row: bool,
    pub(super) poll: Duration,
    pub(super) hooks: Hooks,
    pub(super) name: Arc<str>,
}

impl Workers {
    /// Workers for this inbox, with the defaults. Any number of processes may work on one inbox, each with its own.
    pub fn new(inbox: &Inbox) -> Self {
        Self {
            inbox: inbox.clone(),
            settings: Settings {
                concurrency: 16,
                lease: Duration::from_secs(30),
                run_limit: Duration::from_secs(600),
                claim_retention: CLAIM_RETENTION,
                backoff: Backoff::default(),
                max_tries: MAX_TRIES,
                serial_by_row: false,
                poll: Duration::from_secs(1),
                hooks: Hooks::default(),
                name: "default".into(),
            },
        }
    }

    /// The most handlers that run at a time, in this process. No more entries are leased than that. Default: 16.
    pub fn concurrency(mut self, most: usize) -> Self {
        self.settings.concurrency = most;
        self
    }

    /// How long an entry stays away from others when its process is killed or stands still. Renewed at a third for as long as the
    /// handler runs. Default: 30 s. More than 30 ms.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease;
        self
    }

    /// The time after which a handler is aborted, counted from the lease. The try has failed. Default: 10 min. At most 30 days.
    pub fn run_limit(mut self, limit: Duration) -> Self {
        self.settings.run_limit = limit;
        self
    }

    /// How long a handler's own claims are kept, such as those of [`claim_in`](crate::postgres::claim_in): pass the same constant to both.
    /// Default: 48 h. More than the [run limit](Self::run_limit) and 2 h.
    ///
    /// A handler may commit its effect and its claim, and its process may die before the entry is settled. As long as the claim is kept,
    /// the next run finds it. So **no run begins that could end after that**: an entry whose first lease began longer ago than this
    /// time, less the run limit and 2 h for clocks that are set, is not leased; it becomes a dead letter, whose last error says so. An
    /// entry that was never leased is run however old it is. An operator decides on the others:
    /// [`Inbox::retry_even_if_older_than_claims`](crate::Inbox::retry_even_if_older_than_claims), or `hookgate inbox retry
    /// --even-if-older-than-claims`.
    ///
    /// `Duration::MAX` is for handlers whose second run does no harm at any time: their entries are run however old they are.
    ///
    /// ```
    /// use std::time::Duration;
    /// use hookgate::inbox::Workers;
    /// # use hookgate::Inbox;
    ///
    /// /// Of the claims, and so of the workers: `claim_in(&transaction, &delivery, RETAIN)`.
    /// const RETAIN: Duration = Duration::from_secs(48 * 60 * 60);
    ///
    /// # fn example(inbox: &Inbox) {
    /// let workers = Workers::new(inbox).claim_retention(RETAIN);
    /// # drop(workers);
    /// # }
    /// ```
    pub fn claim_retention(mut self, retention: Duration) -> Self {
        self.settings.claim_retention = retention;
        self
    }

    /// How long a failed entry waits for its next try. Default: [`Backoff::default`].
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.settings.backoff = backoff;
        self
    }

    /// After so many tries an entry that fails becomes a dead letter. Default: 30, which with the default back-off is 30 to 60 h: longer
    /// than the sender itself would have tried, 26 h 36 min. The default [claim retention](Self::claim_retention) ends them after 45 h 50 min.
    ///
    /// A try counts when it begins, so that an event whose handler kills its process comes to an end too. A deploy that kills its
    /// workers counts against what they were handling; one that [shuts them down](super::RunningWorkers::shutdown) does not.
    pub fn max_tries(mut self, most: u32) -> Self {
        self.settings.max_tries = most;
        self
    }

    /// Handles at most one event of a row at a time, across all processes that are set so; others run in parallel. No order is
    /// promised: the sender promises none, and a failed event is overtaken while it waits. Default: off.
    pub fn serial_by_row(mut self) -> Self {
        self.settings.serial_by_row = true;
        self
    }

    /// How often the store is asked where nothing says that something has come, as from another process. Default: 1 s.
    pub fn poll_interval(mut self, every: Duration) -> Self {
        self.settings.poll = every;
        self
    }

    /// The label `inbox` of these workers' metrics (feature `metrics`). Default: `default`.
    pub fn metrics_name(mut self, name: &str) -> Self {
        self.settings.name = name.into();
        self
    }

    /// Calls `hook` once a try, when its end is settled. A panic in it harms nothing.
    pub fn on_settled(mut self, hook: impl Fn(&Tried) + Send + Sync + 'static) -> Self {
        self.settings.hooks.settled = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` for each try that failed, whatever becomes of its entry. A panic in it harms nothing.
    pub fn on_failed(mut self, hook: impl Fn(&Tried) + Send + Sync + 'static) -> Self {
        self.settings.hooks.failed = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` for each entry that becomes a dead letter here. It stays in the inbox, so nothing is lost where nobody listens. A
    /// panic in it harms nothing.
    pub fn on_dead_letter(mut self, hook: impl Fn(&DeadEntry) + Send + Sync + 'static) -> Self {
        self.settings.hooks.dead = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` where a lease was lost while its handler was running: another process may be handling the same event. The run goes
    /// on, and its end changes nothing. A panic in it harms nothing.
    pub fn on_lost_lease(mut self, hook: impl Fn(&LostLease) + Send + Sync + 'static) -> Self {
        self.settings.hooks.lost = Some(Arc::new(hook));
        self
    }

    pub(super) fn check(&self) -> Result<(), BuildError> {
        let settings = &self.settings;
        let zero = [
            ("concurrency", settings.concurrency == 0),
            ("max_tries", settings.max_tries == 0),
        ];
        if let Some((setting, _)) = zero.into_iter().find(|(_, is_zero)| *is_zero) {
            return Err(BuildError::new(BuildErrorKind::Zero { setting }));
        }
        in_range("lease", settings.lease, SHORTEST_LEASE, Duration::MAX)?;
        in_range(
            "run_limit",
            settings.run_limit,
            Duration::ZERO,
            Duration::MAX,
        )?;
        if settings.claim_retention != Duration::MAX {
            let least = settings.run_limit.saturating_add(CLOCK_LEAPS);
            // Claims may be kept for years.
            let retention = settings.claim_retention.min(LONGEST);
            in_range("claim_retention", retention, least, LONGEST)?;
        }
        in_range(
            "poll_interval",
            settings.poll,
            Duration::ZERO,
            Duration::MAX,
        )
    }
}

impl Settings {
    /// How long after an entry's first lease its last run may begin, so that it ends while a claim of the first one is kept.
    pub(super) fn run_within(&self) -> Option<Duration> {
        let ends = self.run_limit.saturating_add(CLOCK_LEAPS);
        let is_bounded = self.claim_retention != Duration::MAX;
        is_bounded.then(|| self.claim_retention.saturating_sub(ends))
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.settings;
        f.debug_struct("Workers")
            .field("inbox", &self.inbox)
            .field("concurrency", &settings.concurrency)
            .field("lease", &settings.lease)
            .field("run_limit", &settings.run_limit)
            .field("claim_retention", &settings.claim_retention)
            .field("backoff", &settings.backoff)
            .field("max_tries", &settings.max_tries)
            .field("serial_by_row", &settings.serial_by_row)
            .finish_non_exhaustive()
    }
}
