//! The observers of a receiver: spans, metrics, the hooks, and those of the program. Each step of a
//! delivery is told here once.
//!
//! The sender gets a status and a short message. All details go to the observers. They run on the
//! thread that answers. A panic of a hook, of an observer of the program or of an error's text is
//! caught: it harms neither the delivery nor the other observers.

use std::io::Write;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use tokio::time::Instant;

#[cfg(feature = "metrics")]
use super::metrics::Metrics;
use super::reports::{Answer, Failed, Settled};
use super::request_observer::{ObservedRequest, RequestObserver};
use super::span::Span;
#[cfg(feature = "tracing")]
use super::trace::Tracing;
use crate::catch_panic::catch_panic;
use crate::clock::{Clock, UnixSeconds};
use crate::dedupe::StoreError;
use crate::pipeline::{Authenticator, Delivery};
use crate::readable::sources;

type Hook<T> = Option<Arc<dyn Fn(&T) + Send + Sync>>;

/// The observers of a receiver.
#[derive(Default)]
pub(crate) struct Observers {
    #[cfg(feature = "tracing")]
    pub(crate) tracing: Tracing,
    #[cfg(feature = "metrics")]
    pub(crate) metrics: Metrics,
    pub(crate) on_answer: Hook<Answer>,
    pub(crate) on_settled: Hook<Settled>,
    pub(crate) on_failed: Hook<Failed>,
    /// The hooks are called only while this returns true.
    pub(crate) hooks_while: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
    /// The observers of the program, in the order in which they were set.
    pub(crate) of_requests: Vec<Box<dyn RequestObserver>>,
}

#[cfg_attr(not(feature = "metrics"), allow(unused_variables, clippy::unused_self))]
impl Observers {
    /// Begins a request with its head.
    pub(crate) fn begin(&self, head: &Parts, clock: &dyn Clock) -> Observation {
        let all = self.of_requests.iter();
        let values = all.filter_map(|each| catch_panic(|| each.begin(head, clock)).ok().flatten());
        Observation::new(Span::new(&head.method), values.collect())
    }

    /// The delivery is authentic, and its event is known.
    pub(crate) fn verified(&self, request: &mut Observation, delivery: &Delivery) {
        request.span.verified(delivery);
        request.delivery = Some(delivery.clone());
    }

    /// The answer is known, and sent next.
    pub(crate) fn answered(
        &self,
        auth: &Authenticator,
        request: &mut Observation,
        answer: &Answer,
    ) {
        #[cfg(feature = "tracing")]
        self.tracing.answered(auth, &request.span, answer);
        #[cfg(feature = "metrics")]
        self.metrics.answered(auth, answer);
        self.call(&self.on_answer, answer);
        request.answered(auth, answer);
    }

    /// There is no answer: the sender hung up, a time-out outside dropped the request, or the
    /// server was stopped.
    pub(crate) fn hung_up(&self, auth: &Authenticator, request: &mut Observation) {
        let after = request.started.elapsed();
        #[cfg(feature = "tracing")]
        Tracing::dropped(&request.span, request.delivery.is_some(), after);
        #[cfg(feature = "metrics")]
        self.metrics.hung_up(auth, request.delivery.as_ref(), after);
        request.hung_up(after);
    }

    /// A run has ended. Told inside its span.
    pub(crate) fn settled(&self, run: &Settled) {
        #[cfg(feature = "tracing")]
        if run.late || run.outcome.is_commit_failed() {
            self.tracing.ended_late(run);
        }
        #[cfg(feature = "metrics")]
        self.metrics.settled(run);
        self.call(&self.on_settled, run);
    }

    /// An authentic delivery was not handled.
    pub(crate) fn failed(&self, failed: &Failed) {
        #[cfg(feature = "metrics")]
        self.metrics.failed(failed);
        self.call(&self.on_failed, failed);
        self.write_to_stderr(failed);
    }

    fn call<T>(&self, hook: &Hook<T>, report: &T) {
        let Some(hook) = hook else { return };
        let _ = catch_panic(|| {
            if self.hooks_while.as_ref().is_none_or(|holds| holds()) {
                hook(report);
            }
        });
    }

    /// Writes the error of a store to stderr where no hook, no observer of the program and no
    /// subscriber of `tracing` shows it: an operator has to act, such as to create a table, and
    /// otherwise gets a bare 503 until the sender discards the event.
    fn write_to_stderr(&self, failed: &Failed) {
        #[cfg(feature = "tracing")]
        if tracing::dispatcher::has_been_set() {
            return;
        }
        let has_hook =
            self.on_answer.is_some() || self.on_settled.is_some() || self.on_failed.is_some();
        let reason = failed.reason.as_deref();
        let is_of_store =
            reason.is_some_and(|reason| sources(reason).any(|error| error.is::<StoreError>()));
        if is_of_store && !has_hook && self.of_requests.is_empty() {
            // `eprintln!` panics where stderr is closed.
            let _ = writeln!(std::io::stderr(), "hookgate: {failed}");
        }
    }
}

/// One request from its head to its answer, or to the end of its connection.
pub(crate) struct Observation {
    pub(crate) started: Instant,
    pub(crate) span: Span,
    is_reported: bool,
    /// Present once the request is verified.
    delivery: Option<Delivery>,
    /// The values of the program's observers.
    observed: Vec<Box<dyn ObservedRequest>>,
}

impl Observation {
    fn new(span: Span, observed: Vec<Box<dyn ObservedRequest>>) -> Self {
        Self {
            started: Instant::now(),
            span,
            is_reported: false,
            delivery: None,
            observed,
        }
    }

    pub(crate) fn is_reported(&self) -> bool {
        self.is_reported
    }

    /// The observers hear nothing more from this observation: the answer was reported, or the outer
    /// layer of the same receiver reports it.
    pub(crate) fn silence(&mut self) {
        self.is_reported = true;
    }

    /// The age of the delivery is compared with this time.
    pub(crate) fn age_checked(&mut self, now: UnixSeconds) {
        self.each(|it| it.age_checked(now));
    }

    /// The body was read to its end. Told before the signature is compared: a body that does not
    /// verify is the one that an operator will look at.
    pub(crate) fn body_read(&mut self, body: impl FnOnce() -> Bytes) {
        if !self.observed.is_empty() {
            let body = body();
            self.each(|it| it.body_read(&body));
        }
    }

    /// The body was not read to its end, but only this number of bytes.
    pub(crate) fn body_broke_off(&mut self, bytes: usize) {
        self.each(|it| it.body_broke_off(bytes));
    }

    fn answered(&mut self, auth: &Authenticator, answer: &Answer) {
        if !self.observed.is_empty() {
            let attempt = answer.authentic().and_then(|it| auth.attempt(it));
            self.end(|it| it.answered(answer, attempt));
        }
    }

    fn hung_up(&mut self, after: Duration) {
        self.end(|it| it.hung_up(after));
    }

    fn each(&mut self, tell: impl Fn(&mut dyn ObservedRequest)) {
        for value in &mut self.observed {
            let _ = catch_panic(|| tell(&mut **value));
        }
    }

    /// Tells the last step.
    fn end(&mut self, tell: impl Fn(Box<dyn ObservedRequest>)) {
        for value in mem::take(&mut self.observed) {
            let _ = catch_panic(|| tell(value));
        }
    }
}

/// Under two layers of one receiver, the inner one ends without a last step.
impl Drop for Observation {
    fn drop(&mut self) {
        self.end(drop);
    }
}
