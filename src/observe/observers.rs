//! The observers of a receiver: spans, metrics, the hooks, and those of the program. Each step of a delivery is told here once.
//!
//! The sender gets a status and a short message. All details go to the observers. They run on the thread that answers. A panic of a hook,
//! of an observer of the program or of an error's text is caught: it harms neither the delivery nor the other observers.

use std::io::Write;
use std::sync::Arc;

use http::request::Parts;

#[cfg(feature = "metrics")]
use super::metrics::Metrics;
use super::observation::Observation;
use super::observer::RequestObserver;
use super::reports::{Answer, Failed, Settled};
use super::span::Span;
#[cfg(feature = "tracing")]
use super::trace::Tracing;
use super::used_keys::UsedKeys;
use crate::caught::caught;
use crate::clock::Clock;
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
    pub(crate) on_key_first_used: Hook<Delivery>,
    used_keys: UsedKeys,
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
        let values = all.filter_map(|each| caught(|| each.begin(head, clock)).ok().flatten());
        Observation::of(Span::of_request(&head.method), values.collect())
    }

    /// The delivery is authentic, and its event is known.
    pub(crate) fn recognised(&self, request: &mut Observation, delivery: &Delivery) {
        request.span.recognised(delivery);
        #[cfg(feature = "metrics")]
        {
            request.recognised = Some(delivery.clone());
        }
        if self.on_key_first_used.is_some() && self.used_keys.is_first(delivery.verified()) {
            self.call(&self.on_key_first_used, delivery);
        }
    }

    /// The answer is known, and sent next.
    pub(crate) fn answered(
        &self,
        auth: &Authenticator,
        request: &mut Observation,
        answer: &Answer,
    ) {
        #[cfg(feature = "tracing")]
        let _ = caught(|| self.tracing.answered(auth, &request.span, answer));
        #[cfg(feature = "metrics")]
        self.metrics.answered(auth, answer);
        self.call(&self.on_answer, answer);
        request.answered(auth, answer);
    }

    /// There is no answer: the sender hung up, or the server was stopped.
    pub(crate) fn hung_up(&self, auth: &Authenticator, request: &mut Observation) {
        #[cfg(feature = "metrics")]
        self.metrics.hung_up(auth, request);
        request.hung_up();
    }

    /// A run has ended. Told inside its span.
    pub(crate) fn settled(&self, run: &Settled) {
        #[cfg(feature = "tracing")]
        if run.late {
            let _ = caught(|| self.tracing.ended_late(run));
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
        let _ = caught(|| self.write_to_stderr(failed));
    }

    fn call<T>(&self, hook: &Hook<T>, report: &T) {
        let Some(hook) = hook else { return };
        let _ = caught(|| {
            if self.hooks_while.as_ref().is_none_or(|holds| holds()) {
                hook(report);
            }
        });
    }

    /// Writes the error of a store to stderr where no hook, no observer of the program and no subscriber of `tracing` shows it: an
    /// operator has to act, such as to create a table, and otherwise gets a bare 503 until the sender discards the event.
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
