//! Metrics of an inbox's workers (feature `metrics`), and gauges of the inbox, read when they are
//! asked for.

#![expect(
    clippy::disallowed_methods,
    reason = "the metrics of an inbox leave through this file"
)]

use hookgate::{Outcome, dedupe::StoreError};
use metrics::{
    Counter, SharedString, Unit, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram,
};

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

/// The metrics of the workers with this name.
pub(super) struct WorkersMetrics(pub(super) SharedString);

impl WorkersMetrics {
    pub(super) fn observe(&self, step: Step<'_>) {
        match step {
            Step::Begun => self.register(),
            Step::Ended(_, report) => self.ended(report),
            Step::DeadLettered(_) => self.counter(DEAD_LETTERS).increment(1),
            Step::LeaseLost(_) => self.counter(LOST_LEASES).increment(1),
            Step::StoreFailed(call, _) => {
                counter!(STORE_FAILURES, "inbox" => self.0.clone(), "call" => call).increment(1);
            }
        }
    }

    fn counter(&self, name: &'static str) -> Counter {
        counter!(name, "inbox" => self.0.clone())
    }

    /// Registers the counters that must not be missed: Prometheus sees no increase when a counter
    /// appears with its first value.
    fn register(&self) {
        for name in [DEAD_LETTERS, LOST_LEASES] {
            self.counter(name).increment(0);
        }
    }

    fn ended(&self, report: &AttemptReport) {
        // The same words as in the receiver's metrics.
        let (outcome, reason) = match report.outcome {
            Outcome::Failed(failure) => ("failed", failure.name()),
            Outcome::Replayed { same_body: true } => ("replayed", "none"),
            Outcome::Replayed { .. } => ("replayed", report.outcome.name()),
            other => (other.name(), "none"),
        };
        counter!(
            TRIES,
            "inbox" => self.0.clone(),
            "outcome" => outcome,
            "reason" => reason,
            "disposition" => report.disposition.name(),
        )
        .increment(1);
        let event_type = report.delivery.head().event_type.known();
        histogram!(
            HANDLER,
            "inbox" => self.0.clone(),
            "outcome" => outcome,
            "event_type" => event_type.unwrap_or("other"),
        )
        .record(report.elapsed);
    }

    #[allow(clippy::cast_precision_loss)] // exact far beyond what a disk holds
    fn set_entries(&self, stats: &InboxStats) {
        for (state, count) in [
            ("queued", stats.queued.saturating_sub(stats.retrying)),
            ("retrying", stats.retrying),
            ("running", stats.running),
            ("dead", stats.dead),
            ("done", stats.done),
        ] {
            gauge!(ENTRIES, "inbox" => self.0.clone(), "state" => state).set(count as f64);
        }
        let oldest = stats.oldest.unwrap_or_default();
        gauge!(OLDEST_AGE, "inbox" => self.0.clone()).set(oldest.as_secs_f64());
    }
}

fn describe() {
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
        describe_counter!(name, Unit::Count, help);
    }
    let help = "Time in the handler, of one try.";
    describe_histogram!(HANDLER, Unit::Seconds, help);
    let help = "Entries of the inbox, by their state.";
    describe_gauge!(ENTRIES, Unit::Count, help);
    let help = "How long ago the oldest entry that is not done and not dead was accepted. Zero where there is none.";
    describe_gauge!(OLDEST_AGE, Unit::Seconds, help);
}

impl Inbox {
    /// Sets the gauges to the current content of the inbox, and describes its metrics to the
    /// recorder. Call it **before each rendering**, in the route that serves `/metrics`, or every
    /// few seconds where metrics are pushed. `name` is the value of the label `inbox`: give the
    /// name that [`Workers::metrics_name`](crate::Workers::metrics_name) got.
    ///
    /// It asks the store. One process that calls it is enough, because all processes see the same
    /// inbox. The work of the workers is counted when it happens. `docs/operations.md` lists all
    /// metrics.
    ///
    /// # Errors
    /// The store failed to answer, and no gauge was set.
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub async fn record_metrics(&self, name: &str) -> Result<(), StoreError> {
        let stats = self.engine.stats().await?;
        let metrics = WorkersMetrics(name.to_owned().into());
        describe();
        metrics.register();
        metrics.set_entries(&stats);
        Ok(())
    }
}
