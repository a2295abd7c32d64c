//! Metrics (feature `metrics`): through the facade crate, to the recorder that the program has installed.
//!
//! Names and units follow Prometheus: `hookgate_` in front, base units, `_total` at the end of a counter. `docs/operations.md`
//! lists them. Data that a sender writes never becomes a label: no id, and only the known event types.
//!
//! Here steps are counted and timed. Gauges are read when they are asked for: the receiver's in `layer/gauges.rs`.

mod known_keys;
mod labels;
mod meter;
pub(crate) mod names;

pub use names::DURATION_BUCKETS;

pub(crate) use labels::{Metrics, NamedKeys, OutcomeLabels};
pub(crate) use meter::Meter;

use std::time::Duration;

use labels::{NONE, OTHER, attempt};

use super::observation::Observation;
use super::reports::{Answer, Failed, Settled};
use crate::outcome::{Failure, Outcome};
use crate::pipeline::{Authenticator, Delivery};
use crate::verify::Verified;

impl Metrics {
    /// Calls `record` with the meter of this receiver.
    pub(crate) fn with(&self, record: impl FnOnce(Meter<'_>)) {
        Meter::with(("receiver", &self.receiver), |to| {
            record(to.knowing(&self.known));
        });
    }

    pub(super) fn answered(&self, auth: &Authenticator, answer: &Answer) {
        self.with(|to| {
            let of = OutcomeLabels::of(answer.outcome, answer.verify_error());
            self.delivered(to, auth, of, answer.authentic());
            answered_after(to, of, answer.elapsed);
            if answer.is_stale_but_authentic() {
                to.count(names::STALE_BUT_AUTHENTIC, 1, []);
            }
        });
    }

    pub(super) fn hung_up(&self, auth: &Authenticator, request: &Observation) {
        self.with(|to| {
            let of = OutcomeLabels::HUNG_UP;
            let verified = request.recognised.as_ref().map(Delivery::verified);
            self.delivered(to, auth, of, verified);
            // A client that opens and closes connections without the secret says nothing about the receiver's speed.
            if verified.is_some() {
                answered_after(to, of, request.started.elapsed());
            }
        });
    }

    pub(super) fn settled(&self, run: &Settled) {
        self.with(|to| {
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
            // A shutdown ended these runs, and no handler: their time says nothing about it, and their number must not alert.
            if run.outcome != Outcome::Failed(Failure::Drained) {
                handler_time(to, names::HANDLER, of, &run.delivery, run.elapsed);
            }
        });
    }

    pub(super) fn failed(&self, failed: &Failed) {
        if failed
            .attempt
            .as_ref()
            .is_some_and(|attempt| attempt.may_be_last)
        {
            self.with(|to| to.count(names::LAST_ATTEMPTS_FAILED, 1, []));
        }
    }

    fn delivered(
        &self,
        to: Meter<'_>,
        auth: &Authenticator,
        of: OutcomeLabels,
        verified: Option<&Verified>,
    ) {
        // A delivery that is not authentic has no scope and no key, whatever its headers contain.
        let (scope, key) = verified.map_or((NONE, NONE), |verified| {
            (verified.scope(), verified.key_name())
        });
        if !to.count_known(names::DELIVERIES, [of.outcome, of.reason, scope, key]) {
            let (scope, key) = match verified {
                Some(_) => self.keys.labels(scope, key),
                None => (NONE.into(), NONE.into()),
            };
            to.count(
                names::DELIVERIES,
                1,
                [
                    ("outcome", of.outcome.into()),
                    ("reason", of.reason.into()),
                    ("scope", scope),
                    ("key", key),
                ],
            );
        }
        if let Some(verified) = verified {
            let number = auth.attempt(verified).map(|attempt| attempt.number);
            let labels = [("attempt", attempt(number)), ("outcome", of.outcome.into())];
            to.count(names::ATTEMPTS, 1, labels);
        }
    }
}

fn answered_after(to: Meter<'_>, of: OutcomeLabels, elapsed: Duration) {
    to.time(names::ANSWER, elapsed, [("outcome", of.outcome.into())]);
}

/// Records the time in the handler, of a run of the layer or of a worker.
pub(crate) fn handler_time(
    to: Meter<'_>,
    name: &'static str,
    of: OutcomeLabels,
    delivery: &Delivery,
    elapsed: Duration,
) {
    let event_type = delivery.head().event_type.known().unwrap_or(OTHER);
    let labels = [
        ("outcome", of.outcome.into()),
        ("event_type", event_type.into()),
    ];
    to.time(name, elapsed, labels);
}
