//! The guard: authentication and the settings of the layer, before a handler or before a sink.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Response;
use tokio::time::Instant;

use super::body::ResponseBody;
use super::budget::BodyBudget;
use super::drain::ShutdownSignal;
use super::marks::DeadLetterHook;
use super::response::{Shape, own_response};
use super::waiting_copies::WaitingCopies;
use crate::caught::caught;
use crate::config::ConfigError;
use crate::config::in_range;
use crate::dedupe::RetrySchedule;
use crate::observe::{Failed, Observation, Observers, Reason, Settled};
use crate::outcome::{Outcome, RefusalKind};
use crate::pipeline::{Authenticator, Delivery};
use crate::verify::Verified;

/// Authenticates requests, and answers them under the settings of the layer. `next` is the step after that: claims in a receiver, a
/// sink in an acceptor.
pub(crate) struct Guard<N> {
    pub(crate) auth: Authenticator,
    pub(crate) settings: LayerSettings,
    pub(crate) next: N,
}

impl<N> Guard<N> {
    /// Reports the end of a run, and its delivery if it was not handled. A refusal that is sent as an answer is reported together
    /// with that answer.
    pub(crate) fn report_run(&self, run: &Settled) {
        self.settings.observers.settled(run);
        if matches!(run.outcome, Outcome::Failed(_))
            || run.late && matches!(run.outcome, Outcome::Refused(_))
        {
            let (delivery, reason) = (&run.delivery, run.reason.clone());
            self.report_failure(delivery.verified(), Some(delivery), run.outcome, reason);
        }
    }

    /// Reports an authentic delivery that was not handled.
    pub(crate) fn report_failure(
        &self,
        verified: &Verified,
        delivery: Option<&Delivery>,
        outcome: Outcome,
        reason: Option<Reason>,
    ) {
        let attempt = self.auth.attempt(verified);
        // A copy that found another copy running is not a failure: the running copy reports its own end. But the claim may
        // belong to a process that died, and the sender may not try again.
        let beside_a_run = matches!(
            outcome,
            Outcome::Refused(RefusalKind::StillRunning | RefusalKind::TooManyWaiting)
        );
        let may_be_last = attempt.as_ref().is_some_and(|attempt| attempt.may_be_last);
        if beside_a_run && !may_be_last {
            return;
        }
        self.settings.observers.failed(&Failed {
            verified: verified.clone(),
            delivery: delivery.cloned(),
            outcome,
            reason,
            attempt,
        });
    }

    /// Makes the receiver's own response to an outcome.
    pub(super) fn own_response<R>(
        &self,
        outcome: Outcome,
        retry_after: Option<Duration>,
    ) -> Response<ResponseBody<R>> {
        // If the shape panics, the delivery still gets the default answer.
        let own = || own_response(outcome, retry_after);
        let shape = self.settings.shape.as_ref();
        let shaped = shape.and_then(|shape| caught(|| shape(outcome, own())).ok());
        shaped.unwrap_or_else(own).map(ResponseBody::own)
    }

    /// The latest time for the answer to a request.
    pub(super) fn answer_due(&self, request: &Observation) -> Instant {
        request.started + self.settings.answer_within
    }

    /// The latest time for a request's body, of which the first byte was waited for since `since`.
    pub(super) fn body_deadline(&self, request: &Observation, since: Instant) -> Instant {
        self.answer_due(request)
            .min(since + self.settings.body_deadline)
    }
}

impl<N: fmt::Debug> fmt::Debug for Guard<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("auth", &self.auth)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

/// If no more than this is left of the time after the body, no run is begun: its answer would be too late.
pub(super) const LEAST_TO_BEGIN: Duration = Duration::from_millis(100);

/// The settings that need the layer: deadlines, which need timers, and hooks, which need an answer.
pub(crate) struct LayerSettings {
    /// The time from a request to its answer.
    pub(crate) answer_within: Duration,
    pub(crate) body_deadline: Duration,
    pub(crate) bodies: BodyBudget,
    pub(crate) run_limit: Duration,
    pub(crate) waiting: Arc<WaitingCopies>,
    /// Shared with the gate, which tells it the end of the last run.
    pub(crate) shutdown: Arc<ShutdownSignal>,
    pub(crate) dead_letter: Option<Arc<DeadLetterHook>>,
    pub(crate) shape: Option<Arc<Shape>>,
    pub(crate) observers: Observers,
}

impl Default for LayerSettings {
    fn default() -> Self {
        Self {
            answer_within: Duration::from_millis(4_500),
            body_deadline: Duration::from_secs(2),
            bodies: BodyBudget::new(64 << 20),
            run_limit: Duration::from_secs(600),
            waiting: Arc::new(WaitingCopies::new(64, 4)),
            shutdown: Arc::default(),
            dead_letter: None,
            shape: None,
            observers: Observers::default(),
        }
    }
}

impl LayerSettings {
    pub(crate) fn check(
        &self,
        schedule: &RetrySchedule,
        max_body: usize,
    ) -> Result<(), ConfigError> {
        self.bodies.check(max_body)?;
        in_range(
            "budget",
            self.answer_within,
            LEAST_TO_BEGIN,
            schedule.attempt_timeout(),
        )?;
        in_range(
            "body_deadline",
            self.body_deadline,
            Duration::ZERO,
            Duration::MAX,
        )?;
        in_range("run_limit", self.run_limit, Duration::ZERO, Duration::MAX)
    }
}
