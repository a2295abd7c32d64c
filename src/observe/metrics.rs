//! Metrics (feature `metrics`): through the facade crate, to the recorder that the program has
//! installed.
//!
//! Names and units follow Prometheus: `hookgate_` in front, base units, `_total` at the end of a
//! counter. `docs/operations.md` lists them. Data that a sender writes never becomes a label: no
//! id, and only the known event types.
//!
//! Here steps are counted and timed. Gauges are read when they are asked for: the receiver's in
//! `layer/gauges.rs`.

use std::iter;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use metrics::{Key, KeyName, Label, Level, Metadata, Recorder, SharedString};

use super::metric_names::{self as names, Kind, Table};
use super::reports::{Answer, Failed, Settled};
use crate::outcome::{Failure, Outcome, RefusalKind};
use crate::pipeline::{Authenticator, Delivery};
use crate::sync::{Mutex, lock};
use crate::verify::{Verified, VerifyError, VerifyErrorKind};

/// The value where there is none.
const NONE: &str = "none";
/// The value for all those beyond the limit.
const OTHER: &str = "other";

/// The most pairs of scope and key that have their own labels.
const MAX_NAMED: usize = 64;

/// The state that a receiver keeps for its metrics.
pub(crate) struct Metrics {
    pub(crate) receiver: SharedString,
    pub(crate) keys: NamedKeys,
    pub(crate) described: AtomicBool,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            receiver: SharedString::const_str("default"),
            keys: NamedKeys::default(),
            described: AtomicBool::new(false),
        }
    }
}

impl Metrics {
    /// Calls `record` with the meter of this receiver.
    #[expect(clippy::disallowed_methods, reason = "this is the one way")]
    pub(crate) fn with(&self, record: impl FnOnce(Meter<'_>)) {
        let receiver = &self.receiver;
        metrics::with_recorder(|recorder| record(Meter { receiver, recorder }));
    }

    pub(super) fn answered(&self, auth: &Authenticator, answer: &Answer) {
        self.with(|to| {
            let of = OutcomeLabels::new(answer.outcome, answer.verify_error());
            self.delivered(to, auth, of, answer.authentic());
            answered_after(to, of, answer.elapsed);
            if let Some(VerifyErrorKind::Stale(times)) =
                answer.verify_error().map(VerifyError::kind)
                && let Some(age) = times.now.since(times.timestamp)
            {
                to.time(names::STALE_AGE, age, []);
            }
        });
    }

    pub(super) fn hung_up(
        &self,
        auth: &Authenticator,
        recognised: Option<&Delivery>,
        after: Duration,
    ) {
        self.with(|to| {
            let of = OutcomeLabels::HUNG_UP;
            let verified = recognised.map(Delivery::verified);
            self.delivered(to, auth, of, verified);
            // A client that opens and closes connections without the secret says nothing about the
            // receiver's speed.
            if verified.is_some() {
                answered_after(to, of, after);
            }
        });
    }

    pub(super) fn settled(&self, run: &Settled) {
        self.with(|to| {
            let of = OutcomeLabels::new(run.outcome, None);
            to.count(
                names::RUNS,
                1,
                [
                    ("outcome", of.outcome.into()),
                    ("reason", of.reason.into()),
                    ("late", if run.late { "true" } else { "false" }.into()),
                ],
            );
            // A shutdown ended these runs, and no handler: their time says nothing about it, and
            // their number must not alert.
            if run.outcome != Outcome::Failed(Failure::Drained) {
                let event_type = run.delivery.head().event_type.known().unwrap_or(OTHER);
                let labels = [
                    ("outcome", of.outcome.into()),
                    ("event_type", event_type.into()),
                ];
                to.time(names::HANDLER, run.elapsed, labels);
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
        let (scope, key) = match verified {
            Some(verified) => self.keys.labels(verified.scope(), verified.key_name()),
            None => (NONE.into(), NONE.into()),
        };
        let labels = [
            ("outcome", of.outcome.into()),
            ("reason", of.reason.into()),
            ("scope", scope),
            ("key", key),
        ];
        to.count(names::DELIVERIES, 1, labels);
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

static METADATA: Metadata<'static> = Metadata::new("hookgate", Level::INFO, Some(module_path!()));

/// Records metrics whose first label is the name of a receiver.
#[derive(Clone, Copy)]
pub(crate) struct Meter<'a> {
    receiver: &'a SharedString,
    recorder: &'a dyn Recorder,
}

type Labels<const N: usize> = [(&'static str, SharedString); N];

impl Meter<'_> {
    fn key<const N: usize>(self, name: &'static str, labels: Labels<N>) -> Key {
        let labels = labels.map(|(name, value)| Label::new(name, value));
        let receiver = Label::new("receiver", self.receiver.clone());
        let all = iter::once(receiver).chain(labels);
        Key::from_parts(KeyName::from_const_str(name), all.collect::<Vec<_>>())
    }

    /// Adds to a counter. Zero registers the counter without counting.
    pub(crate) fn count<const N: usize>(self, name: &'static str, more: u64, labels: Labels<N>) {
        let key = self.key(name, labels);
        self.recorder
            .register_counter(&key, &METADATA)
            .increment(more);
    }

    /// Sets a counter to a total that is counted elsewhere.
    pub(crate) fn total(self, name: &'static str, total: u64) {
        let key = self.key(name, []);
        self.recorder
            .register_counter(&key, &METADATA)
            .absolute(total);
    }

    pub(crate) fn set<const N: usize>(self, name: &'static str, value: f64, labels: Labels<N>) {
        let key = self.key(name, labels);
        self.recorder.register_gauge(&key, &METADATA).set(value);
    }

    pub(crate) fn time<const N: usize>(
        self,
        name: &'static str,
        time: Duration,
        labels: Labels<N>,
    ) {
        let key = self.key(name, labels);
        self.recorder
            .register_histogram(&key, &METADATA)
            .record(time);
    }

    /// Describes each metric of a table to the recorder.
    pub(crate) fn describe(self, table: Table) {
        for &(kind, name, unit, help) in table {
            let (key, unit) = (KeyName::from_const_str(name), Some(unit));
            match kind {
                Kind::Counter => self.recorder.describe_counter(key, unit, help.into()),
                Kind::Gauge => self.recorder.describe_gauge(key, unit, help.into()),
                Kind::Histogram => self.recorder.describe_histogram(key, unit, help.into()),
            }
        }
    }
}

/// The pairs of scope and key name that have their own labels: the first 64, in the order of their
/// first authentic delivery. All others are counted together. The operator names scopes and keys,
/// but may have a ring for each of many customers.
#[derive(Default)]
pub(crate) struct NamedKeys(Mutex<Vec<(Arc<str>, Arc<str>)>>);

impl NamedKeys {
    /// Returns the labels for a scope and a key name.
    fn labels(&self, scope: &str, key: &str) -> (SharedString, SharedString) {
        let mut named = lock(&self.0);
        let found = named
            .iter()
            .find(|known| (&*known.0, &*known.1) == (scope, key));
        let (scope, key) = match found {
            Some(known) => known.clone(),
            None if named.len() < MAX_NAMED => {
                named.push((scope.into(), key.into()));
                named[named.len() - 1].clone()
            }
            None => {
                let other = SharedString::const_str(OTHER);
                return (other.clone(), other);
            }
        };
        (
            SharedString::from_shared(scope),
            SharedString::from_shared(key),
        )
    }
}

/// The outcome of a delivery or a run, and the reason.
#[derive(Clone, Copy)]
struct OutcomeLabels {
    outcome: &'static str,
    reason: &'static str,
}

impl OutcomeLabels {
    /// The sender hung up before the answer.
    const HUNG_UP: Self = Self {
        outcome: "hung_up",
        reason: NONE,
    };

    fn new(outcome: Outcome, not_authentic: Option<&VerifyError>) -> Self {
        let (name, remarkable) = match outcome {
            Outcome::Refused(_) => ("refused", true),
            Outcome::Replayed { same_body } => ("replayed", !same_body),
            Outcome::Accepted => ("accepted", false),
            Outcome::Handled => ("handled", false),
            Outcome::HandledUnrecorded(_) => ("handled", true),
            Outcome::Unhandled => ("unhandled", false),
            Outcome::DeadLettered => ("dead_lettered", false),
            Outcome::Failed(_) => ("failed", true),
            Outcome::RunsOn => ("runs_on", false),
        };
        let reason = match (outcome, not_authentic) {
            (Outcome::Refused(RefusalKind::NotAuthentic), Some(error)) => error.kind().name(),
            // The same words as in logs and hooks.
            _ if remarkable => outcome.name(),
            _ => NONE,
        };
        Self {
            outcome: name,
            reason,
        }
    }
}

/// Returns the label for the number of an attempt. Only numbers over ten need an allocated text.
fn attempt(number: Option<u32>) -> SharedString {
    const FIRST: [&str; 10] = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"];
    let Some(number) = number else {
        return SharedString::const_str("unknown");
    };
    let at = usize::try_from(number).unwrap_or(usize::MAX);
    match at.checked_sub(1).and_then(|at| FIRST.get(at)) {
        Some(text) => SharedString::const_str(text),
        None => SharedString::from_owned(number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_numbers() {
        let texts = [None, Some(1), Some(10), Some(11)].map(attempt);
        assert_eq!(
            texts.each_ref().map(|text| &**text),
            ["unknown", "1", "10", "11"]
        );
    }
}
