//! Metrics that are counted and timed when something happens.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use metrics::{Key, KeyName, Label, Level, Metadata, Recorder, SharedString};
use tokio::time::Instant;

use super::labels::{NONE, OTHER, OutcomeLabels, attempt};
use super::names;
use crate::layer::catch::caught;
use crate::layer::guard::Guard;
use crate::layer::hooks::{Answer, Settled};
use crate::outcome::Refusal;
use crate::verify::Verified;
use crate::walk::Delivery;

pub(crate) static METADATA: Metadata<'static> =
    Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// A receiver's metrics, with the recorder that gets them.
#[derive(Clone, Copy)]
pub(super) struct To<'a> {
    guard: &'a Guard,
    recorder: &'a dyn Recorder,
}

/// Calls `tell` with the recorder. A panic in it does no harm.
pub(super) fn tell(guard: &Guard, tell: impl FnOnce(To<'_>)) {
    let _ = caught(|| metrics::with_recorder(|recorder| tell(To { guard, recorder })));
}

pub(crate) type Labels<const N: usize> = [(&'static str, SharedString); N];

impl To<'_> {
    pub(super) fn recorder(&self) -> &dyn Recorder {
        self.recorder
    }

    fn key<const N: usize>(&self, name: &'static str, labels: Labels<N>) -> Key {
        let mut all = Vec::with_capacity(N + 1);
        let receiver = self.guard.settings.metrics.receiver.clone();
        all.push(Label::new("receiver", receiver));
        all.extend(labels.map(|(name, value)| Label::new(name, value)));
        Key::from_parts(KeyName::from_const_str(name), all)
    }

    /// Adds to a counter. Zero registers the counter without counting.
    pub(super) fn count<const N: usize>(&self, name: &'static str, more: u64, labels: Labels<N>) {
        let counter = self
            .recorder
            .register_counter(&self.key(name, labels), &METADATA);
        counter.increment(more);
    }

    pub(super) fn total(&self, name: &'static str, total: u64) {
        let counter = self
            .recorder
            .register_counter(&self.key(name, []), &METADATA);
        counter.absolute(total);
    }

    pub(super) fn set<const N: usize>(&self, name: &'static str, value: f64, labels: Labels<N>) {
        let gauge = self
            .recorder
            .register_gauge(&self.key(name, labels), &METADATA);
        gauge.set(value);
    }

    fn time<const N: usize>(&self, name: &'static str, time: Duration, labels: Labels<N>) {
        let histogram = self
            .recorder
            .register_histogram(&self.key(name, labels), &METADATA);
        histogram.record(time);
    }

    fn delivered(&self, of: OutcomeLabels, verified: Option<&Verified>) {
        let (scope, key) = match verified {
            Some(verified) => {
                let keys = &self.guard.settings.metrics.keys;
                keys.labels(verified.scope(), verified.key_name())
            }
            // A delivery that is not authentic has no scope and no key, whatever its headers contain.
            None => (NONE.into(), NONE.into()),
        };
        self.count(
            names::DELIVERIES,
            1,
            [
                ("outcome", of.outcome.into()),
                ("reason", of.reason.into()),
                ("scope", scope),
                ("key", key),
            ],
        );
        if let Some(verified) = verified {
            let number = self.guard.attempt(verified).map(|attempt| attempt.number);
            let labels = [("attempt", attempt(number)), ("outcome", of.outcome.into())];
            self.count(names::ATTEMPTS, 1, labels);
        }
    }

    fn answered_after(&self, of: OutcomeLabels, elapsed: Duration) {
        let labels = [("outcome", of.outcome.into())];
        self.time(names::ANSWER, elapsed, labels);
    }
}

/// Counts one request, if it is answered and also if its sender hangs up first.
#[derive(Default)]
pub(crate) struct Meter {
    delivery: OnceLock<Delivery>,
    counted: AtomicBool,
}

impl Meter {
    pub(crate) fn recognised(&self, delivery: &Delivery) {
        let _ = self.delivery.set(delivery.clone());
    }

    /// This layer does not count the request; the outer layer does.
    pub(crate) fn passed_on(&self) {
        self.counted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn answered(&self, guard: &Guard, answer: &Answer) {
        self.counted.store(true, Ordering::Relaxed);
        tell(guard, |to| {
            let of = OutcomeLabels::of_answer(answer);
            let refusal = || {
                answer
                    .reason
                    .as_ref()?
                    .downcast_ref::<Refusal>()?
                    .authentic()
            };
            let verified = answer.delivery.as_ref().map(Delivery::verified);
            to.delivered(of, verified.or_else(refusal));
            to.answered_after(of, answer.elapsed);
            if answer.is_stale_but_authentic() {
                to.count(names::STALE_BUT_AUTHENTIC, 1, []);
            }
        });
    }

    /// Called at the end of each request. If no answer was counted, the sender has hung up.
    pub(crate) fn end(&self, guard: &Guard, started: Instant) {
        if self.counted.load(Ordering::Relaxed) {
            return;
        }
        tell(guard, |to| {
            let verified = self.delivery.get().map(Delivery::verified);
            to.delivered(OutcomeLabels::HUNG_UP, verified);
            // A client that opens and closes connections without the secret is no measure of the receiver's speed.
            if verified.is_some() {
                to.answered_after(OutcomeLabels::HUNG_UP, started.elapsed());
            }
        });
    }
}

/// Called when a run has ended.
pub(crate) fn settled(guard: &Guard, run: &Settled) {
    tell(guard, |to| {
        let of = OutcomeLabels::of(run.outcome, None);
        to.count(
            names::RUNS,
            1,
            [
                ("outcome", of.outcome.into()),
                ("reason", of.reason.into()),
                ("late", if run.late { "true" } else { "false" }.into()),
            ],
        );
        let event_type = run.delivery.head().event_type.known().unwrap_or(OTHER);
        let labels = [
            ("outcome", of.outcome.into()),
            ("event_type", event_type.into()),
        ];
        to.time(names::HANDLER, run.elapsed, labels);
    });
}

/// Called when an authentic delivery was not handled.
pub(crate) fn failed(guard: &Guard, may_be_last: bool) {
    if may_be_last {
        tell(guard, |to| to.count(names::LAST_ATTEMPTS_FAILED, 1, []));
    }
}
