//! The observers of a receiver, and the one place that tells them.

use std::io::Write;

use http::request::Parts;

use super::hooks::Hooks;
#[cfg(feature = "metrics")]
use super::metrics::Metrics;
use super::observation::Observation;
use super::observer::RequestObserver;
use super::reports::Failed;
use super::step::{Observer, Step};
use super::told::Told;
#[cfg(feature = "tracing")]
use super::trace::Tracing;
use crate::caught::caught;
use crate::clock::Clock;
use crate::dedupe::StoreError;
use crate::readable::sources;

/// The observers of a receiver.
#[derive(Default)]
pub(crate) struct Observers {
    #[cfg(feature = "tracing")]
    tracing: Tracing,
    #[cfg(feature = "metrics")]
    pub(crate) metrics: Metrics,
    pub(crate) hooks: Hooks,
    told: Told,
}

impl Observers {
    /// Begins a request with its head.
    pub(crate) fn begin(&self, head: &Parts, clock: &dyn Clock) -> Observation {
        let mut observation = Observation::begin(&head.method);
        observation.following = self.told.begin(head, clock);
        observation
    }

    /// Tells each observer of a step.
    #[inline]
    pub(crate) fn tell(&self, step: Step<'_>) {
        #[cfg(feature = "tracing")]
        self.tracing.observe(step);
        #[cfg(feature = "metrics")]
        self.metrics.observe(step);
        self.hooks.observe(step);
        self.told.observe(step);
        if let Step::Failed(failed) = step {
            // An error's text may panic while it is written.
            let _ = caught(|| self.tell_at_last(failed));
        }
    }

    /// Writes the error of a store to stderr where no hook, no observer of the program and no subscriber of `tracing` shows it: an
    /// operator has to act, such as to create a table, and otherwise gets a bare 503 until the sender discards the event.
    fn tell_at_last(&self, failed: &Failed) {
        #[cfg(feature = "tracing")]
        if tracing::dispatcher::has_been_set() {
            return;
        }
        let reason = failed.reason.as_deref();
        let is_store =
            reason.is_some_and(|reason| sources(reason).any(|error| error.is::<StoreError>()));
        if is_store && !self.hooks.are_set() && !self.told.are_set() {
            // `eprintln!` panics where stderr is closed.
            let _ = writeln!(std::io::stderr(), "hookgate: {failed}");
        }
    }

    #[cfg(feature = "tracing")]
    pub(crate) fn log_handled_at_info(&mut self) {
        self.tracing.handled_at_info = true;
    }

    pub(crate) fn add(&mut self, observer: impl RequestObserver) {
        self.told.add(observer);
    }
}
