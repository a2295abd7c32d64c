//! Metrics of an inbox's workers (feature `metrics`), and gauges of the inbox, read when they are asked for.

use std::iter;
use std::time::Duration;

use hookgate::{Outcome, dedupe::StoreError, receiver::catch_panic};
use metrics::{Key, KeyName, Label, Level, Metadata, Recorder, SharedString, Unit};

use super::hooks::{AttemptReport, Step};
use crate::engine::InboxStats;
use crate::inbox::Inbox;

const TRIES: &str = "hookgate_inbox_tries_total";
const HANDLER: &str = "hookgate_inbox_handler_duration_seconds";
const DEAD_LETTERS: &str = "hookgate_inbox_dead_letters_total";
const LOST_LEASES: &str = "hookgate_inbox_lost_leases_total";
const STORE_FAILURES: &str = "hookgate_inbox_store_failures_total";
const ENTRIES: &str = "hookgate_inbox_entries";
const OLDEST_AGE: &str = "hookgate_inbox_oldest_age_seconds";

static METADATA: Metadata<'static> = Metadata::new("hookgate", Level::INFO, Some(module_path!()));

/// The metrics of the workers with this name.
pub(super) struct WorkersMetrics(pub(super) SharedString);

impl WorkersMetrics {
    pub(super) fn observe(&self, step: Step<'_>) {
        self.with(|to| match step {
            Step::Begun => known(to),
            Step::Ended(_, report) => ended(to, report),
            Step::DeadLettered(_) => to.count(DEAD_LETTERS, 1, []),
            Step::LeaseLost(_) => to.count(LOST_LEASES, 1, []),
            Step::StoreFailed(call, _) => to.count(STORE_FAILURES, 1, [("call", call)]),
        });
    }

    /// Calls `record` with the recorder that the program has installed. A recorder that panics does no harm.
    #[allow(clippy::disallowed_methods)] // the one way to the recorder from here
    fn with(&self, record: impl FnOnce(Meter<'_>)) {
        let inbox = &self.0;
        let _ =
            catch_panic(|| metrics::with_recorder(|recorder| record(Meter { inbox, recorder })));
    }
}

/// Records metrics whose first label is the name of an inbox.
#[derive(Clone, Copy)]
struct Meter<'a> {
    inbox: &'a SharedString,
    recorder: &'a dyn Recorder,
}

type Labels<const N: usize> = [(&'static str, &'static str); N];

impl Meter<'_> {
    fn key<const N: usize>(self, name: &'static str, labels: Labels<N>) -> Key {
        let labels = labels.map(|(name, value)| Label::from_static_parts(name, value));
        let all = iter::once(Label::new("inbox", self.inbox.clone())).chain(labels);
        Key::from_parts(KeyName::from_const_str(name), all.collect::<Vec<_>>())
    }

    /// Adds to a counter. Zero registers the counter without counting.
    fn count<const N: usize>(self, name: &'static str, more: u64, labels: Labels<N>) {
        let key = self.key(name, labels);
        let counter = self.recorder.register_counter(&key, &METADATA);
        counter.increment(more);
    }

    fn set<const N: usize>(self, name: &'static str, value: f64, labels: Labels<N>) {
        let key = self.key(name, labels);
        self.recorder.register_gauge(&key, &METADATA).set(value);
    }

    fn time<const N: usize>(self, name: &'static str, time: Duration, labels: Labels<N>) {
        let key = self.key(name, labels);
        let histogram = self.recorder.register_histogram(&key, &METADATA);
        histogram.record(time);
    }

    fn describe(self) {
        let to = self.recorder;
        for (name, help) in [
            (
                TRIES,
                "Ended tries of the workers, by outcome and reason, and the new state of the entry.",
            ),
            (DEAD_LETTERS, "Entries that became dead letters."),
            (
                LOST_LEASES,
                "Leases that were lost while their handler was running.",
            ),
            (
                STORE_FAILURES,
                "Calls of the inbox's store by the workers that failed.",
            ),
        ] {
            to.describe_counter(name.into(), Some(Unit::Count), help.into());
        }
        let help = "Time in the handler, of one try.";
        to.describe_histogram(HANDLER.into(), Some(Unit::Seconds), help.into());
        let help = "Entries of the inbox, by their state.";
        to.describe_gauge(ENTRIES.into(), Some(Unit::Count), help.into());
        let help = "How long ago the oldest entry that is not done and not dead was accepted. Zero where there is none.";
        to.describe_gauge(OLDEST_AGE.into(), Some(Unit::Seconds), help.into());
    }
}

/// Registered at the start: Prometheus sees no increase when a counter appears with its first value, and these must not be missed.
fn known(to: Meter<'_>) {
    to.count(DEAD_LETTERS, 0, []);
    to.count(LOST_LEASES, 0, []);
}

fn ended(to: Meter<'_>, report: &AttemptReport) {
    // The same words as in the receiver's metrics.
    let (outcome, reason) = match report.outcome {
        Outcome::Failed(failure) => ("failed", failure.name()),
        Outcome::Replayed { same_body: true } => ("replayed", "none"),
        Outcome::Replayed { .. } => ("replayed", report.outcome.name()),
        other => (other.name(), "none"),
    };
    let labels = [
        ("outcome", outcome),
        ("reason", reason),
        ("disposition", report.disposition.name()),
    ];
    to.count(TRIES, 1, labels);
    let event_type = report.delivery.head().event_type.known();
    let labels = [
        ("outcome", outcome),
        ("event_type", event_type.unwrap_or("other")),
    ];
    to.time(HANDLER, report.elapsed, labels);
}

#[allow(clippy::cast_precision_loss)] // exact far beyond what a disk holds
fn set_entries(to: Meter<'_>, stats: &InboxStats) {
    let states = [
        ("queued", stats.queued.saturating_sub(stats.retrying)),
        ("retrying", stats.retrying),
        ("running", stats.running),
        ("dead", stats.dead),
        ("done", stats.done),
    ];
    for (state, count) in states {
        let labels = [("state", state)];
        to.set(ENTRIES, count as f64, labels);
    }
    let oldest = stats.oldest.unwrap_or_default();
    to.set(OLDEST_AGE, oldest.as_secs_f64(), []);
}

impl Inbox {
    /// Sets the gauges to the current content of the inbox, and describes its metrics to the recorder. Call it **before
    /// each rendering**, in the route that serves `/metrics`, or every few seconds where metrics are pushed. `name` is the
    /// value of the label `inbox`: give the name that [`Workers::metrics_name`](crate::Workers::metrics_name) got.
    ///
    /// It asks the store. One process that calls it is enough, because all processes see the same inbox. The work of the
    /// workers is counted when it happens. `docs/operations.md` lists all metrics.
    ///
    /// # Errors
    /// The store failed to answer, and no gauge was set.
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub async fn record_metrics(&self, name: &str) -> Result<(), StoreError> {
        let stats = self.engine.stats().await?;
        let metrics = WorkersMetrics(name.to_owned().into());
        metrics.with(|to| {
            to.describe();
            known(to);
            set_entries(to, &stats);
        });
        Ok(())
    }
}
