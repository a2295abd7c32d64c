//! How a sender delivers.

use std::fmt;
use std::sync::Arc;

use super::engine::{Engine, Sender};
use super::faults::NetworkFaults;
use super::recent::RecentDelivery;
use super::report::SentEvent;
use super::subscription::Subscription;
use crate::clock::{Clock, SystemClock};
use crate::dedupe::RetrySchedule;
use crate::testing::TokioClock;

/// How many lines of the log of recent deliveries are kept, unless set.
const RECENT: usize = 1_000;

/// Which of the specification's two statements about the end counts.
///
/// It lists five waits, each after a failed attempt, and counts five attempts in total: the two can't both be true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reading {
    /// Five attempts in total: the last wait, of 24 hours, is never used. The specification says so twice.
    #[default]
    FewestAttempts,
    /// Every wait is used: a first attempt and five retries.
    EveryWait,
}

/// With which time retries are signed. The specification does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RetryTimestamps {
    /// Each is signed anew, with its own time.
    #[default]
    Fresh,
    /// Each carries the timestamp and signature of the first attempt: from the third on, 6 minutes later, receivers find them stale.
    First,
}

pub(super) type OnAttempt = Arc<dyn Fn(&SentEvent) + Send + Sync>;
pub(super) type OnRecent = Arc<dyn Fn(&RecentDelivery) + Send + Sync>;

/// Settings of a [`Sender`]. Those that are not set are the service's.
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
    pub(super) recent: usize,
    pub(super) on_attempt: Option<OnAttempt>,
    pub(super) on_recent: Option<OnRecent>,
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
            recent: RECENT,
            on_attempt: None,
            on_recent: None,
        }
    }

    /// Delivers to this one too.
    pub fn subscription(mut self, subscription: Subscription) -> Self {
        self.subscriptions.push(subscription);
        self
    }

    /// The wall clock that deliveries are signed by: give the receiver the same. Otherwise it is the system's time as the sender is
    /// built, and goes on as tokio's does.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Another sender's waits and patience.
    pub fn schedule(mut self, schedule: RetrySchedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// After which attempt an event is discarded.
    pub fn reading(mut self, reading: Reading) -> Self {
        self.reading = reading;
        self
    }

    /// With which time retries are signed.
    pub fn retry_timestamps(mut self, timestamps: RetryTimestamps) -> Self {
        self.timestamps = timestamps;
        self
    }

    /// Divides the waits, where time is real; 0 counts as 1. Nothing else goes faster: see [what can't be scaled](super#real-time).
    pub fn speed(mut self, times: u32) -> Self {
        self.speed = times.max(1);
        self
    }

    /// What goes wrong on the way.
    pub fn faults(mut self, faults: NetworkFaults) -> Self {
        self.faults = Some(faults);
        self
    }

    /// How many lines of its log of recent deliveries the sender keeps. The default is 1,000.
    pub fn keep_recent(mut self, lines: usize) -> Self {
        self.recent = lines;
        self
    }

    /// Tells of each attempt when it is over: the event, whose last attempt it is. Called in the sender's own task, so it must be
    /// quick; a panic in it comes out of [`Sender::settle`].
    pub fn on_attempt(mut self, call: impl Fn(&SentEvent) + Send + Sync + 'static) -> Self {
        self.on_attempt = Some(Arc::new(call));
        self
    }

    /// Tells of each line of the log of recent deliveries. As [`on_attempt`](Self::on_attempt).
    pub fn on_recent(mut self, call: impl Fn(&RecentDelivery) + Send + Sync + 'static) -> Self {
        self.on_recent = Some(Arc::new(call));
        self
    }

    /// Sends nothing yet.
    pub fn build(mut self) -> Sender {
        let clock = self.clock.take();
        let clock = clock.unwrap_or_else(|| Arc::new(TokioClock::starting_at(SystemClock.now())));
        Sender::new(Engine::new(self, clock))
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
