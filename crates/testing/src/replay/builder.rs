//! The settings of a replay, and its beginning.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hookgate::{Secret, clock::UnixSeconds, dedupe::RetrySchedule, lookup::Keys};
use hookgate_record::LoggedDelivery;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use tower_service::Service;

use super::build_report::build_report;
use super::clock::{ReplayClock, time_is_paused};
use super::entry::{Entry, Evidence, examine};
use super::faults::Faults;
use super::harness::Harness;
use super::mode::{AsRecorded, Mode, Raw, Resigned, Signing};
use super::observations::Observations;
use super::plan::Plan;
use super::report::Report;
use super::runner::{Runner, RunnerSettings, Running};
use super::secrets::Secrets;
use super::{ReplayError, ReplayErrorKind as Kind};
use crate::log::DeliveryLog;
use crate::messages::Messages;
use crate::transport::{InProcess, TransportError};

/// Replays a log of deliveries. See the [module docs](super).
#[must_use]
pub struct Replay<M = AsRecorded> {
    pub(super) log: DeliveryLog,
    /// The indices of the deliveries that are to be replayed.
    pub(super) chosen: Vec<usize>,
    pub(super) secrets: Secrets,
    pub(super) mode: M,
    faults: Faults,
    schedule: RetrySchedule,
    signs_retries: bool,
    longest_wait: Option<Duration>,
    clock: ReplayClock,
}

impl Replay {
    /// Replays at the recorded time, with the recorded signatures, and without faults.
    pub fn of(log: DeliveryLog) -> Self {
        let first = log.deliveries().iter().map(|logged| logged.received_at);
        let first = first.min().unwrap_or(UnixSeconds::new(0));
        Self {
            chosen: (0..log.deliveries().len()).collect(),
            log,
            secrets: Secrets::default(),
            mode: AsRecorded::default(),
            faults: Faults::none(),
            schedule: RetrySchedule::default(),
            signs_retries: true,
            longest_wait: None,
            clock: ReplayClock::at(first),
        }
    }

    /// Signs redacted deliveries again, for the time at which they were received. All others keep their recorded signature.
    /// Without this setting, a log with redacted deliveries is an error that names them.
    pub fn resign_unverifiable(mut self) -> Self {
        self.mode.redacted_too = true;
        self
    }

    /// Signs every delivery again that was authentic, for the moment at which it is sent.
    ///
    /// A delivery that was not authentic is sent as recorded: no replay makes a forged delivery authentic.
    pub fn resigned(self) -> Replay<Resigned> {
        self.in_mode(Resigned)
    }

    /// Sends every delivery as recorded, at another time, as an attacker would do who has copied the log. In process the
    /// receiver's clock begins at the machine's time, or at [`at`](Replay::at).
    ///
    /// The sender does not try these again.
    pub fn raw(self) -> Replay<Raw> {
        self.in_mode(Raw { at: None })
    }
}

impl Replay<Raw> {
    /// Sets the receiver's clock at the first delivery, in process. The gaps between deliveries stay as recorded.
    pub fn at(mut self, time: UnixSeconds) -> Self {
        self.mode.at = Some(time);
        self
    }
}

impl<M: Mode> Replay<M> {
    /// Adds a secret of the log. Up to four make a key ring, as during a rotation. The key that had signed a delivery signs it
    /// again, or else the first.
    pub fn secret(mut self, secret: Secret) -> Self {
        self.secrets.add(None, secret);
        self
    }

    /// Adds a secret as [`secret`](Self::secret) does, with the key's name. The key whose name the log holds signs the delivery
    /// again.
    pub fn named_secret(mut self, name: &str, secret: Secret) -> Self {
        self.secrets.add(Some(name), secret);
        self
    }

    /// Adds the secret of a subscription, for a log of several. The `X-Service-Webhook-Id` of a delivery selects the secret that
    /// verifies and signs it.
    pub fn subscription(mut self, id: &str, secret: Secret) -> Self {
        self.secrets.add_subscription(id, secret);
        self
    }

    /// Verifies with these keys, in place of those that the secrets make: for key rings with scopes or pinned workspaces. The
    /// secrets still sign.
    pub fn keys(mut self, keys: Keys) -> Self {
        self.secrets.verify_with(keys);
        self
    }

    /// Sets the faults of the replay. Default: none.
    pub fn with(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Replays only these deliveries of the log. Several calls combine: a delivery must pass all of them.
    pub fn only(mut self, mut wanted: impl FnMut(&LoggedDelivery) -> bool) -> Self {
        let deliveries = self.log.deliveries();
        self.chosen.retain(|index| wanted(&deliveries[*index]));
        self
    }

    /// Sets the sender's waits between its attempts, and its time-out for an answer. Default: the schedule of the service, in
    /// the longer of its two readings: six attempts. With `RetrySchedule::new([])` there is no retry.
    pub fn schedule(mut self, schedule: RetrySchedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// Lets the sender's retries keep their first timestamp and signature. Default: each attempt gets a new signature.
    pub fn retries_keep_their_signature(mut self) -> Self {
        self.signs_retries = false;
        self
    }

    /// Replays in real time, for apps that do real I/O. A wait longer than this is cut short, and the replay's clock is moved
    /// forward by the rest of the wait. Timers of the app, and code that uses another clock, do not see this change.
    ///
    /// Without this setting tokio's time must be paused.
    pub fn in_real_time(mut self, longest_wait: Duration) -> Self {
        self.longest_wait = Some(longest_wait);
        self
    }

    /// Returns the clock of the replay, for a store that is made outside the closure, and so outlives the restarts of a plan.
    #[must_use]
    pub fn clock(&self) -> ReplayClock {
        self.clock.clone()
    }

    /// Replays against an app in this process: a tower service, such as an axum `Router`. The closure makes the app with the
    /// parts that the harness gives it, and is called again for each restart.
    ///
    /// The closure may fail with any error: a [`ReplayError`] of the harness, a `ConfigError`, or a `Box<dyn Error>`.
    ///
    /// It returns once every delivery is answered, the sender's retries have succeeded or are used up, and every run has ended.
    ///
    /// # Errors
    /// See [`ReplayErrorKind`](super::ReplayErrorKind). The results of the deliveries are not errors.
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
        let entries = self.entries(Evidence::Signature)?;
        let first = entries.first().map(|entry| entry.at);
        let first = first.ok_or_else(|| ReplayError::new(Kind::Empty))?;
        let begin = self.mode.start_time(first);
        self.clock.start(begin);
        let observations = Arc::<Observations>::default();
        let needs_layer = self.faults.affect_the_handler();
        let mut start = move |harness: Harness| {
            let process = Arc::clone(&harness.0);
            let app = make(harness).map_err(app_error)?;
            if process.window().is_none() {
                return Err(ReplayError::new(Kind::NoReceiver));
            }
            if needs_layer && !process.has_fault_layer() {
                return Err(ReplayError::new(Kind::NoFaultLayer));
            }
            let transport = InProcess::new(app);
            Ok(Running { transport, process })
        };
        let keys = self.secrets.keys()?;
        let harness = Harness::new(0, self.clock.clone(), keys, Arc::clone(&observations));
        let running = start(harness)?;
        let window = running.process.window().unwrap_or_default();
        let plan = Plan::of(&entries, &self.faults, window, begin);
        let raw = self.mode.signing() == Signing::Raw;
        let settings = RunnerSettings {
            entries: &entries,
            clock: self.clock.clone(),
            begin,
            window,
            schedule: self.schedule.clone(),
            signs_retries: self.signs_retries,
            retries: !raw,
            longest_wait: self.longest_wait,
            observations: Arc::clone(&observations),
        };
        let finished = Runner::new(settings, running, start).run(plan).await?;
        Ok(build_report(
            &entries,
            finished,
            &observations,
            &self.faults,
            begin,
        ))
    }

    pub(super) fn entries(&self, evidence: Evidence) -> Result<Vec<Entry>, ReplayError> {
        let signs = self.mode.signing() != Signing::Raw;
        if (signs || evidence == Evidence::Signature) && !self.secrets.are_given() {
            return Err(ReplayError::new(Kind::NoSecret));
        }
        let deliveries = self.log.deliveries();
        let chosen = self.chosen.iter();
        let chosen = chosen.map(|&index| (index + 1, &deliveries[index]));
        examine(chosen, &self.secrets, self.mode.signing(), evidence)
    }

    fn in_mode<N>(self, mode: N) -> Replay<N> {
        Replay {
            log: self.log,
            chosen: self.chosen,
            secrets: self.secrets,
            mode,
            faults: self.faults,
            schedule: self.schedule,
            signs_retries: self.signs_retries,
            longest_wait: self.longest_wait,
            clock: self.clock,
        }
    }
}

/// Where the closure passes on an error of the harness, that error is returned unchanged.
fn app_error(error: impl Into<Box<dyn Error>>) -> ReplayError {
    match error.into().downcast::<ReplayError>() {
        Ok(own) => *own,
        // The error need not be `Send`, so only its messages are kept.
        Err(other) => ReplayError::new(Kind::App).caused_by(Messages::of(&*other)),
    }
}

impl<M: fmt::Debug> fmt::Debug for Replay<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("deliveries", &self.chosen.len())
            .field("mode", &self.mode)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}
