//! What a replay is told, and how it begins.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use tower_service::Service;

use super::clock::{ReplayClock, time_is_paused};
use super::conclude::conclude;
use super::drive::{Drive, Running, Stage};
use super::entry::{Belief, Entry, examine};
use super::faults::Faults;
use super::harness::Harness;
use super::ledger::Ledger;
use super::mode::{AsRecorded, Mode, Raw, Resigned, Signing};
use super::plan::Plan;
use super::report::Report;
use super::secrets::Secrets;
use crate::clock::UnixSeconds;
use crate::dedupe::RetrySchedule;
use crate::error::{ReplayError, ReplayErrorKind as Kind};
use crate::testing::log::{DeliveryLog, LoggedDelivery};
use crate::testing::transport::{InProcess, TransportError};
use crate::verify::{Keys, Secret};

/// Replays a log of deliveries. See the [module docs](super).
#[must_use]
pub struct Replay<M = AsRecorded> {
    pub(super) log: DeliveryLog,
    /// The indices of those that are to be replayed.
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
    /// At the recorded time, with the recorded signatures, and no faults.
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

    /// Signs redacted deliveries again, for the time at which they were received; all others keep their recorded signature. Without it
    /// a log with redacted deliveries is an error that names them.
    pub fn resign_unverifiable(mut self) -> Self {
        self.mode.redacted_too = true;
        self
    }

    /// Signs every delivery again that was authentic, for the moment at which it goes out.
    ///
    /// One that was not is sent as it came: no replay makes a forged delivery authentic.
    pub fn resigned(self) -> Replay<Resigned> {
        self.in_mode(Resigned)
    }

    /// Sends every delivery as it came, at another time: what somebody would do who has copied the log. In process the receiver's clock
    /// begins at the machine's time, or at [`at`](Replay::at).
    ///
    /// The sender does not try these again.
    pub fn raw(self) -> Replay<Raw> {
        self.in_mode(Raw { at: None })
    }
}

impl Replay<Raw> {
    /// What the receiver's clock says when the first delivery comes, in process. The gaps between deliveries stay as they were.
    pub fn at(mut self, time: UnixSeconds) -> Self {
        self.mode.at = Some(time);
        self
    }
}

impl<M: Mode> Replay<M> {
    /// A secret of the log. Up to four make a ring, as during a rotation; the first signs, or the one that had signed.
    pub fn secret(mut self, secret: Secret) -> Self {
        self.secrets.add(None, secret);
        self
    }

    /// As [`secret`](Self::secret), with the key's name. What is signed again is signed by the key of the name that the log says.
    pub fn named_secret(mut self, name: &str, secret: Secret) -> Self {
        self.secrets.add(Some(name), secret);
        self
    }

    /// The secret of a subscription, for a log of several: a delivery is verified and signed with that of its `X-Service-Webhook-Id`.
    pub fn subscription(mut self, id: &str, secret: Secret) -> Self {
        self.secrets.add_subscription(id, secret);
        self
    }

    /// Verifies with these keys, in place of those that the secrets make: for rings with scopes or pinned workspaces. The secrets still
    /// sign.
    pub fn keys(mut self, keys: Keys) -> Self {
        self.secrets.verify_with(keys);
        self
    }

    /// What is to go wrong. Default: nothing.
    pub fn with(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Replays only these deliveries of the log. Calls add up.
    pub fn only(mut self, mut wanted: impl FnMut(&LoggedDelivery) -> bool) -> Self {
        let deliveries = self.log.deliveries();
        self.chosen.retain(|index| wanted(&deliveries[*index]));
        self
    }

    /// The waits of the sender between its attempts, and how long it waits for an answer. Default: the service's, in the longer of its
    /// two readings: six attempts. `RetrySchedule::new([])` tries nothing again.
    pub fn schedule(mut self, schedule: RetrySchedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// The sender's retries keep their first timestamp and signature. Default: each attempt is signed afresh.
    pub fn retries_keep_their_signature(mut self) -> Self {
        self.signs_retries = false;
        self
    }

    /// Replays in real time, for apps that do real I/O. A wait longer than this is cut short, and the replay's clock is put forward by
    /// what was cut; timers of the app, and whoever goes by another clock, see nothing of that.
    ///
    /// Without it tokio's time must be paused.
    pub fn in_real_time(mut self, longest_wait: Duration) -> Self {
        self.longest_wait = Some(longest_wait);
        self
    }

    /// The time of the replay, for a store that is made outside the closure, and so outlives the restarts of a plan.
    #[must_use]
    pub fn clock(&self) -> ReplayClock {
        self.clock.clone()
    }

    /// Replays against an app in this process: a tower service, such as an axum `Router`. The closure makes it with what the harness
    /// brings, and is called again for each restart.
    ///
    /// It returns once every delivery is answered, the sender's retries have succeeded or come to their end, and every run has ended.
    ///
    /// # Errors
    /// See [`ReplayErrorKind`](crate::ReplayErrorKind). What the deliveries came to is no error.
    pub async fn against<F, S, E, R>(self, mut make: F) -> Result<Report, ReplayError>
    where
        F: FnMut(Harness) -> Result<S, E>,
        S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + Sync + 'static,
        S::Error: Into<TransportError>,
        S::Future: Send,
        E: Into<TransportError>,
        R: Body + Send,
        R::Data: Send,
        R::Error: Into<TransportError>,
    {
        if self.longest_wait.is_none() && !time_is_paused() {
            return Err(ReplayError::new(Kind::TimeRuns));
        }
        let entries = self.entries(Belief::Signature)?;
        let first = entries.first().map(|entry| entry.at);
        let first = first.ok_or_else(|| ReplayError::new(Kind::Empty))?;
        let begin = self.mode.begins_at(first);
        self.clock.start(begin);
        let ledger = Arc::<Ledger>::default();
        let needs_layer = self.faults.are_the_handlers();
        let mut begun = move |harness: Harness| {
            let process = Arc::clone(&harness.0);
            let app = make(harness).map_err(failed)?;
            if process.window().is_none() {
                return Err(ReplayError::new(Kind::NoReceiver));
            }
            if needs_layer && !process.stands_before_a_handler() {
                return Err(ReplayError::new(Kind::NoFaultLayer));
            }
            let transport = InProcess::new(app);
            Ok(Running { transport, process })
        };
        let keys = self.secrets.keys()?;
        let harness = Harness::new(0, self.clock.clone(), keys, Arc::clone(&ledger));
        let running = begun(harness)?;
        let window = running.process.window().unwrap_or_default();
        let plan = Plan::of(&entries, &self.faults, window, begin);
        let raw = self.mode.signing() == Signing::Raw;
        let stage = Stage {
            entries: &entries,
            clock: self.clock.clone(),
            begin,
            window,
            schedule: self.schedule.clone(),
            signs_retries: self.signs_retries,
            retries: !raw,
            longest_wait: self.longest_wait,
            ledger: Arc::clone(&ledger),
        };
        let played = Drive::new(stage, running, begun).play(plan).await?;
        Ok(conclude(&entries, played, &ledger, &self.faults, begin))
    }

    pub(super) fn entries(&self, belief: Belief) -> Result<Vec<Entry>, ReplayError> {
        let signs = self.mode.signing() != Signing::Raw;
        if (signs || belief == Belief::Signature) && !self.secrets.are_given() {
            return Err(ReplayError::new(Kind::NoSecret));
        }
        let deliveries = self.log.deliveries();
        let chosen = self.chosen.iter();
        let chosen = chosen.map(|&index| (index + 1, &deliveries[index]));
        examine(chosen, &self.secrets, self.mode.signing(), belief)
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

/// An error of the harness that the closure passes on is told as what it is.
fn failed(error: impl Into<TransportError>) -> ReplayError {
    match error.into().downcast::<ReplayError>() {
        Ok(own) => *own,
        Err(other) => ReplayError::new(Kind::App).caused_by(other),
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
