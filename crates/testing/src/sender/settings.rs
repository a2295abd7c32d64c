//! The settings of a sender.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hookgate::{clock::Clock, dedupe::RetrySchedule};

use super::faults::NetworkFaults;
use super::report::SentEvent;
use super::subscription::Subscription;

/// Selects one of the specification's two statements about the last attempt.
///
/// It lists five waits, each after a failed attempt, and counts five attempts in total: the two
/// can't both be true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reading {
    /// Five attempts in total: the last wait, of 24 hours, is never used. The specification says so
    /// twice.
    #[default]
    FewestAttempts,
    /// Every wait is used: a first attempt and five retries.
    EveryWait,
}

impl Reading {
    /// The number of attempts before an event is discarded.
    #[must_use]
    pub fn attempts(self, schedule: &RetrySchedule) -> u32 {
        match self {
            Self::FewestAttempts => schedule.fewest_attempts(),
            Self::EveryWait => schedule.attempts(),
        }
    }

    /// The wait after this attempt, counted from 1, where it failed. `None` after the last one: the
    /// event is discarded.
    ///
    /// ```
    /// use std::time::Duration;
    /// use hookgate::dedupe::RetrySchedule;
    /// use hookgate_testing::sender::Reading;
    ///
    /// let wait_after = |attempt| Reading::FewestAttempts.wait_after(&RetrySchedule::SERVICE, attempt);
    /// assert_eq!(wait_after(1), Some(Duration::from_secs(60)));
    /// assert_eq!(wait_after(5), None);
    /// ```
    #[must_use]
    pub fn wait_after(self, schedule: &RetrySchedule, attempt: u32) -> Option<Duration> {
        let more = attempt < self.attempts(schedule);
        let place = attempt.checked_sub(1).filter(|_| more)?;
        schedule.waits().get(usize::try_from(place).ok()?).copied()
    }
}

/// The time that retries are signed with. The specification does not say which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RetryTimestamps {
    /// Each attempt is signed again, with its own time.
    #[default]
    Fresh,
    /// Each attempt carries the timestamp and signature of the first attempt: from the third
    /// attempt on, 6 minutes later, receivers refuse them as stale.
    First,
}

pub(super) type OnAttempt = Arc<dyn Fn(&SentEvent) + Send + Sync>;

/// Settings of a [`Sender`](crate::sender::Sender). The defaults are those of the service.
#[derive(Clone)]
#[must_use]
pub struct SenderBuilder {
    pub(super) subscriptions: Vec<Subscription>,
    pub(super) clock: Option<Arc<dyn Clock>>,
    pub(super) schedule: RetrySchedule,
    pub(super) reading: Reading,
    pub(super) timestamps: RetryTimestamps,
    pub(super) speed: u32,
    pub(super) faults: Option<NetworkFaults>,
    pub(super) on_attempt: Option<OnAttempt>,
}

impl SenderBuilder {
    pub(super) fn new() -> Self {
        Self {
            subscriptions: Vec::new(),
            clock: None,
            schedule: RetrySchedule::SERVICE,
            reading: Reading::default(),
            timestamps: RetryTimestamps::default(),
            speed: 1,
            faults: None,
            on_attempt: None,
        }
    }

    /// Adds a subscription.
    pub fn subscription(mut self, subscription: Subscription) -> Self {
        self.subscriptions.push(subscription);
        self
    }

    /// Sets the wall clock that deliveries are signed with: give the receiver the same clock.
    /// Default: the system's time when the sender is built, continued with tokio's time.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Sets other waits and another timeout, for another sender.
    pub fn schedule(mut self, schedule: RetrySchedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// Sets the number of attempts before an event is discarded.
    pub fn reading(mut self, reading: Reading) -> Self {
        self.reading = reading;
        self
    }

    /// Sets the time that retries are signed with.
    pub fn retry_timestamps(mut self, timestamps: RetryTimestamps) -> Self {
        self.timestamps = timestamps;
        self
    }

    /// Divides the waits, where time is real; 0 counts as 1. Nothing else becomes faster: see [the
    /// section on real time](super#real-time).
    pub fn speed(mut self, times: u32) -> Self {
        self.speed = times.max(1);
        self
    }

    /// Sets the faults of the network.
    pub fn faults(mut self, faults: NetworkFaults) -> Self {
        self.faults = Some(faults);
        self
    }

    /// Calls the hook after each attempt, with the event; the attempt is its last one. The hook
    /// runs in the sender's own task, so it must be quick. A panic in it is passed on by
    /// [`Sender::settle`](crate::sender::Sender::settle).
    pub fn on_attempt(mut self, call: impl Fn(&SentEvent) + Send + Sync + 'static) -> Self {
        self.on_attempt = Some(Arc::new(call));
        self
    }
}

impl fmt::Debug for SenderBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SenderBuilder")
            .field("subscriptions", &self.subscriptions)
            .field("schedule", &self.schedule)
            .field("reading", &self.reading)
            .field("timestamps", &self.timestamps)
            .field("speed", &self.speed)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}
