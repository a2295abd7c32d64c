//! Replay: a log of deliveries becomes a test.
//!
//! [The guide](hookgate::guide::testing#a-log-of-deliveries-becomes-a-test) says how it is used,
//! which faults there are, and what it observes.

mod attempts;
mod clock;
mod display;
mod entry;
mod error;
mod faults;
mod harness;
mod plan;
mod report;
mod through;

pub use clock::ReplayClock;
pub use error::{ReplayError, ReplayErrorKind};
pub use faults::Faults;
pub use harness::Harness;
pub use report::{
    AttemptReport, CommitReport, EventReport, Origin, OtherReport, Report, RunEnd, RunReport,
    Verdict,
};
pub use through::{Answered, AnsweredReport, Latency, Summary, Through};

use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hookgate::{
    Scheme, Secret,
    clock::{Clock, SystemClock, UnixSeconds},
    dedupe::RetrySchedule,
    lookup::Keys,
};
use hookgate_record::LoggedDelivery;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use tower_service::Service;

use ReplayErrorKind as Kind;
use attempts::{Attempts, Sending, report};
use clock::time_is_paused;
use entry::{Entry, Secrets, Signing, examine};
use harness::Process;
use plan::Plan;

use crate::log::DeliveryLog;
use crate::messages::chain;
use crate::transport::{InProcess, TransportError};

/// Replays a log of deliveries. See the [module docs](self).
#[must_use]
pub struct Replay<M = AsRecorded> {
    log: DeliveryLog,
    /// The indices of the deliveries that are to be replayed.
    chosen: Vec<usize>,
    secrets: Secrets,
    signing: Signing,
    faults: Faults,
    schedule: RetrySchedule,
    signs_retries: bool,
    longest_wait: Option<Duration>,
    clock: ReplayClock,
    mode: PhantomData<fn(M)>,
}

/// The mode that replays at the recorded time with the recorded signatures: the receiver's clock
/// shows each delivery's `received_at`.
#[derive(Debug)]
pub enum AsRecorded {}

/// The mode that signs again, for the moment at which each delivery is sent.
#[derive(Debug)]
pub enum Resigned {}

/// The mode that replays as recorded, but at another time, as an attacker would do who has copied
/// the log.
#[derive(Debug)]
pub enum Raw {}

/// A way to replay: [`AsRecorded`], [`Resigned`] or [`Raw`].
pub trait Mode: sealed::Sealed + Send + Sync + 'static {}

/// A way to replay that does not control the receiver's clock, and so can go over a network:
/// [`Resigned`] or [`Raw`].
pub trait Portable: Mode {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::AsRecorded {}
    impl Sealed for super::Resigned {}
    impl Sealed for super::Raw {}
}

impl<M: sealed::Sealed + Send + Sync + 'static> Mode for M {}
impl Portable for Resigned {}
impl Portable for Raw {}

impl Replay {
    /// Replays at the recorded time, with the recorded signatures, and without faults.
    pub fn of(log: DeliveryLog) -> Self {
        let first = log.deliveries().iter().map(|logged| logged.received_at);
        let first = first.min().unwrap_or(UnixSeconds::new(0));
        Self {
            chosen: (0..log.deliveries().len()).collect(),
            log,
            secrets: Secrets::new(),
            signing: Signing::Recorded {
                redacted_too: false,
            },
            faults: Faults::none(),
            schedule: RetrySchedule::default(),
            signs_retries: true,
            longest_wait: None,
            clock: ReplayClock::at(first),
            mode: PhantomData,
        }
    }

    /// Signs redacted deliveries again, for the time at which they were received. All others keep
    /// their recorded signature. Without this setting, a log with redacted deliveries is an error
    /// that names them.
    pub fn resign_unverifiable(mut self) -> Self {
        self.signing = Signing::Recorded { redacted_too: true };
        self
    }

    /// Signs every delivery again that was authentic, for the moment at which it is sent.
    ///
    /// A delivery that was not authentic is sent as recorded: no replay makes a forged delivery
    /// authentic.
    pub fn resigned(self) -> Replay<Resigned> {
        self.in_mode(Signing::Afresh)
    }

    /// Sends every delivery as recorded, at another time, as an attacker would do who has copied
    /// the log. In process the receiver's clock begins at the machine's time, or at
    /// [`at`](Replay::at).
    ///
    /// The sender does not try these again.
    pub fn raw(self) -> Replay<Raw> {
        self.in_mode(Signing::Raw { at: None })
    }
}

impl Replay<Raw> {
    /// Sets the receiver's clock at the first delivery, in process. The gaps between deliveries
    /// stay as recorded.
    pub fn at(mut self, time: UnixSeconds) -> Self {
        self.signing = Signing::Raw { at: Some(time) };
        self
    }
}

impl<M: Mode> Replay<M> {
    /// Says how the sender of the log signs. Default: [`Scheme::WORKSPACE`]. The retries follow the
    /// scheme's [`schedule`](Self::schedule): set another one behind this.
    pub fn scheme(mut self, scheme: Scheme) -> Self {
        self.secrets.scheme = scheme;
        self.schedule = RetrySchedule::of_scheme(&scheme);
        self
    }

    /// Adds a secret of the log. Up to four make a key ring, as during a rotation. The key that had
    /// signed a delivery signs it again, or else the first.
    pub fn secret(mut self, secret: Secret) -> Self {
        self.secrets.add(None, secret);
        self
    }

    /// Adds a secret as [`secret`](Self::secret) does, with the key's name. The key whose name the
    /// log holds signs the delivery again.
    pub fn named_secret(mut self, name: &str, secret: Secret) -> Self {
        self.secrets.add(Some(name), secret);
        self
    }

    /// Adds the secret of a subscription, for a log of several. The `X-Service-Webhook-Id` of a
    /// delivery selects the secret that verifies and signs it.
    pub fn subscription(mut self, id: &str, secret: Secret) -> Self {
        let by_subscription = &mut self.secrets.by_subscription;
        by_subscription.push((id.to_owned(), secret));
        self
    }

    /// Verifies with these keys, in place of those that the secrets make: for key rings with scopes
    /// or pinned workspaces. The secrets still sign.
    pub fn keys(mut self, keys: Keys) -> Self {
        self.secrets.keys = Some(keys);
        self
    }

    /// Sets the faults of the replay. Default: none.
    pub fn with(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Replays only these deliveries of the log. Several calls combine: a delivery must pass all of
    /// them.
    pub fn only(mut self, mut wanted: impl FnMut(&LoggedDelivery) -> bool) -> Self {
        let deliveries = self.log.deliveries();
        self.chosen.retain(|index| wanted(&deliveries[*index]));
        self
    }

    /// Sets the sender's waits between its attempts, and its time-out for an answer. Default: the
    /// schedule of the service, in the longer of its two readings: six attempts. With
    /// `RetrySchedule::new([])` there is no retry.
    pub fn schedule(mut self, schedule: RetrySchedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// Lets the sender's retries keep their first timestamp and signature. Default: each attempt
    /// gets a new signature.
    pub fn retries_keep_their_signature(mut self) -> Self {
        self.signs_retries = false;
        self
    }

    /// Replays in real time, for apps that do real I/O. A wait longer than this is cut short, and
    /// the replay's clock is moved forward by the rest of the wait. Timers of the app, and code
    /// that uses another clock, do not see this change.
    ///
    /// Without this setting tokio's time must be paused.
    pub fn in_real_time(mut self, longest_wait: Duration) -> Self {
        self.longest_wait = Some(longest_wait);
        self
    }

    /// Returns the clock of the replay, for a store that is made outside the closure, and so
    /// outlives the restarts of a plan.
    #[must_use]
    pub fn clock(&self) -> ReplayClock {
        self.clock.clone()
    }

    /// Replays against an app in this process: a tower service, such as an axum `Router`. The
    /// closure makes the app with the parts that the harness gives it, and is called again for each
    /// restart.
    ///
    /// The closure may fail with any error: a [`ReplayError`] of the harness, a `ConfigError`, or a
    /// `Box<dyn Error>`.
    ///
    /// It returns once every delivery is answered, the sender's retries have succeeded or are used
    /// up, and every run has ended. A delivery whose body was not recorded, such as one that was
    /// refused for its size, is skipped, and counted as [`skipped`](Report::skipped).
    ///
    /// # Errors
    /// See [`ReplayErrorKind`]. The results of the deliveries are not errors.
    pub async fn against<F, S, E, R>(self, mut make: F) -> Result<Report, ReplayError>
    where
        F: FnMut(Harness) -> Result<S, E>,
        S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + Sync + 'static,
        S::Error: Into<TransportError>,
        S::Future: Send,
        E: Into<Box<dyn Error>>,
        R: Body + Send,
        R::Data: Send,
        R::Error: Into<TransportError>,
    {
        if self.longest_wait.is_none() && !time_is_paused() {
            return Err(ReplayError::new(Kind::TimeNotPaused));
        }
        let entries = self.entries(false)?;
        let first = entries.first().map_or(UnixSeconds::new(0), |it| it.at);
        let begin = match self.signing {
            Signing::Raw { at } => at.unwrap_or_else(|| SystemClock.now()),
            _ => first,
        };
        self.clock.start(begin);
        let start = |process: &Arc<Process>| {
            let app = make(Harness(Arc::clone(process))).map_err(app_error)?;
            Ok(InProcess::new(app))
        };
        let sending = Sending {
            signing: self.signing,
            schedule: &self.schedule,
            signs_retries: self.signs_retries,
            longest_wait: self.longest_wait,
            clock: &self.clock,
        };
        let process = Process::new(self.clock.clone(), self.secrets.keys()?);
        let attempts = Attempts::begin(sending, &entries, begin, Arc::new(process), start)?;
        let plan = Plan::new(&entries, &self.faults, attempts.window, begin);
        let (attempts, last) = attempts.run(plan).await?;
        let mut report = report(&entries, attempts, &last);
        report.faults = self.faults.to_string();
        report.began_at = begin.as_i64();
        report.skipped = self.chosen.len() - entries.len();
        Ok(report)
    }

    /// Examines the deliveries that are chosen and have a body.
    fn entries(&self, or_log: bool) -> Result<Vec<Entry>, ReplayError> {
        let is_raw = matches!(self.signing, Signing::Raw { .. });
        if !(is_raw && or_log || self.secrets.are_given()) {
            return Err(ReplayError::new(Kind::NoSecret));
        }
        let deliveries = self.log.deliveries();
        let chosen = self.chosen.iter().map(|&at| (at + 1, &deliveries[at]));
        let sendable = chosen.filter(|(_, logged)| logged.body.is_some());
        examine(sendable, &self.secrets, self.signing, or_log)
    }

    fn in_mode<N>(self, signing: Signing) -> Replay<N> {
        Replay {
            log: self.log,
            chosen: self.chosen,
            secrets: self.secrets,
            signing,
            faults: self.faults,
            schedule: self.schedule,
            signs_retries: self.signs_retries,
            longest_wait: self.longest_wait,
            clock: self.clock,
            mode: PhantomData,
        }
    }
}

/// Where the closure passes on an error of the harness, that error is returned unchanged.
fn app_error(error: impl Into<Box<dyn Error>>) -> ReplayError {
    match error.into().downcast::<ReplayError>() {
        Ok(own) => *own,
        // The error need not be `Send`, so only its messages are kept.
        Err(other) => ReplayError::new(Kind::App).caused_by(chain(&*other)),
    }
}

impl<M> fmt::Debug for Replay<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("deliveries", &self.chosen.len())
            .field("signing", &self.signing)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}
