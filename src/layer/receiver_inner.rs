//! What all clones of a receiver or of an acceptor share: its policy and its settings.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Extensions, Response, StatusCode};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::body::ResponseBody;
use super::budget::BodyBudget;
use super::marks::{DeadLetterHook, mark_as_replayed};
use super::waiting_copies::WaitingCopies;
use crate::catch_panic::catch_panic;
use crate::config::{ConfigError, in_range};
use crate::dedupe::RetrySchedule;
use crate::observe::{Failed, Observation, Observers, Reason, Settled};
use crate::outcome::{DEFAULT_RETRY, Outcome, RefusalKind};
use crate::pipeline::{Authenticator, Delivery};
use crate::verify::Verified;

/// Authenticates requests, and answers them under the settings of the layer. `backend` is what
/// comes after that: the claims of a receiver, the sink of an acceptor.
pub(crate) struct ReceiverInner<N> {
    pub(crate) auth: Authenticator,
    pub(crate) settings: LayerSettings,
    pub(crate) backend: N,
}

impl<N> ReceiverInner<N> {
    /// Reports the end of a run, and its delivery if it was not handled.
    pub(crate) fn report_run(&self, run: &Settled) {
        self.settings.observers.settled(run);
        if matches!(run.outcome, Outcome::Failed(_) | Outcome::Refused(_)) {
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
        // A copy that found another copy running is not a failure: the running copy reports its own
        // end. But the claim may belong to a process that died, and the sender may not try again.
        let beside_a_run = outcome == Outcome::Refused(RefusalKind::StillRunning);
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
        let shaped = shape.and_then(|shape| catch_panic(|| shape(outcome, own())).ok());
        shaped.unwrap_or_else(own).map(ResponseBody::own)
    }

    /// Refuses new runs and waits for those under way. Runs that still go on after `limit` are
    /// aborted. Returns their number.
    pub(crate) async fn drain(&self, limit: Duration) -> usize {
        let gate = &self.auth.gate;
        gate.shut();
        if timeout(limit, gate.idle()).await.is_ok() {
            return 0;
        }
        let aborted = gate.runs();
        self.settings.abort_runs.cancel();
        // A store that hangs must not block the shutdown. The lease ends claims that the store did
        // not release.
        let _ = timeout(TO_RELEASE, gate.idle()).await;
        aborted
    }

    /// The latest time for the answer to a request.
    pub(super) fn answer_due(&self, request: &Observation) -> Instant {
        request.started + self.settings.answer_within
    }
}

impl<N: fmt::Debug> fmt::Debug for ReceiverInner<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiverInner")
            .field("auth", &self.auth)
            .field("backend", &self.backend)
            .finish_non_exhaustive()
    }
}

/// The time that aborted runs get to release their claims.
const TO_RELEASE: Duration = Duration::from_secs(1);

/// If no more than this is left of the time after the body, no run is begun: its answer would be
/// too late.
pub(super) const LEAST_TO_BEGIN: Duration = Duration::from_millis(100);

/// The settings that need the layer: deadlines, which need timers, and hooks, which need an answer.
pub(crate) struct LayerSettings {
    /// The time from a request to its answer.
    pub(crate) answer_within: Duration,
    pub(crate) body_deadline: Duration,
    pub(crate) bodies: BodyBudget,
    pub(crate) run_limit: Duration,
    pub(crate) waiting: Arc<WaitingCopies>,
    /// Cancelled when the runs under way have to be aborted.
    pub(crate) abort_runs: CancellationToken,
    pub(crate) dead_letter: Option<Arc<DeadLetterHook>>,
    pub(crate) shape: Option<Arc<Shape>>,
    /// Set under a replay alone.
    pub(crate) handler_wrapper: Option<Arc<HandlerWrapper>>,
    pub(crate) observers: Observers,
}

impl Default for LayerSettings {
    fn default() -> Self {
        Self {
            answer_within: Duration::from_millis(4_500),
            body_deadline: Duration::from_secs(2),
            bodies: BodyBudget::new(64 << 20),
            run_limit: Duration::from_secs(600),
            waiting: Arc::new(WaitingCopies::default()),
            abort_runs: CancellationToken::new(),
            dead_letter: None,
            shape: None,
            handler_wrapper: None,
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
            "answer_within",
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

/// A handler's call under replay. It ends with the outcome that the handler's answer has; a dead
/// letter counts as stored.
pub type HandlerCall<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// What a replay makes of each call of the handler: see `ReceiverBuilder::for_replay`.
pub(crate) type HandlerWrapper =
    dyn for<'a> Fn(&Delivery, &Extensions, HandlerCall<'a>) -> HandlerCall<'a> + Send + Sync;

/// Shapes a response that the receiver makes itself.
pub(crate) type Shape = dyn Fn(Outcome, Response<Bytes>) -> Response<Bytes> + Send + Sync;

/// Returns the default response to an outcome: the service's error envelope.
fn own_response(outcome: Outcome, retry_after: Option<Duration>) -> Response<Bytes> {
    let error = outcome.error();
    let body = error.map(|(code, message)| envelope(code, message).into());
    let mut response = Response::new(body.unwrap_or_default());
    let status = StatusCode::from_u16(outcome.own_status());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if error.is_some() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
    }
    if status == StatusCode::SERVICE_UNAVAILABLE {
        let wait = retry_after.unwrap_or(DEFAULT_RETRY);
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if matches!(outcome, Outcome::Replayed { .. }) {
        mark_as_replayed(headers);
    }
    response
}

/// Returns the service's error envelope. The texts are from this crate and need no escaping.
pub(crate) fn envelope(code: &str, message: &str) -> String {
    format!(r#"{{"error":{{"code":"{code}","message":"{message}"}}}}"#)
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    #[test]
    fn headers_follow_from_the_status() {
        let header = |kind, name: HeaderName| {
            let response = own_response(Outcome::Refused(kind), None);
            response.headers().get(name).cloned()
        };
        assert_eq!(
            header(RefusalKind::MethodNotAllowed, ALLOW).unwrap(),
            "POST"
        );
        assert_eq!(header(RefusalKind::StoreFull, RETRY_AFTER).unwrap(), "10");
        assert_eq!(header(RefusalKind::BodyTooSlow, RETRY_AFTER), None);
        let replay = own_response(Outcome::Replayed { same_body: true }, None);
        assert_eq!(replay.headers()["idempotent-replayed"], "true");
        assert!(replay.body().is_empty() && replay.headers().len() == 1);
    }
}
