//! Metrics of an inbox's workers (feature `metrics`), and gauges of the inbox, read when they are asked for.

use metrics::SharedString;

use super::hooks::{AttemptReport, Step};
use crate::dedupe::StoreError;
use crate::inbox::durable::Inbox;
use crate::inbox::engine::InboxStats;
use crate::observe::Observer;
use crate::observe::metrics::{Meter, OutcomeLabels, handler_time, names};

/// The metrics of the workers with this name.
pub(super) struct WorkersMetrics(pub(super) SharedString);

impl Observer<Step<'_>> for WorkersMetrics {
    fn observe(&self, step: Step<'_>) {
        self.with(|to| match step {
            Step::Begun => known(to),
            Step::Ended(_, report) => ended(to, report),
            Step::DeadLettered(_) => to.count(names::INBOX_DEAD_LETTERS, 1, []),
            Step::LeaseLost(_) => to.count(names::INBOX_LOST_LEASES, 1, []),
            Step::StoreFailed(call, _) => {
                to.count(names::INBOX_STORE_FAILURES, 1, [("call", call.into())]);
            }
        });
    }
}

impl WorkersMetrics {
    fn with(&self, record: impl FnOnce(Meter<'_>)) {
        Meter::with(("inbox", &self.0), record);
    }
}

/// Registered at the start: Prometheus sees no increase when a counter appears with its first value, and these must not be missed.
fn known(to: Meter<'_>) {
    to.count(names::INBOX_DEAD_LETTERS, 0, []);
    to.count(names::INBOX_LOST_LEASES, 0, []);
}

fn ended(to: Meter<'_>, report: &AttemptReport) {
    let of = OutcomeLabels::of(report.outcome, None);
    let labels = [
        ("outcome", of.outcome.into()),
        ("reason", of.reason.into()),
        ("disposition", report.disposition.name().into()),
    ];
    to.count(names::INBOX_TRIES, 1, labels);
    handler_time(
        to,
        names::INBOX_HANDLER,
        of,
        &report.delivery,
        report.elapsed,
    );
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
        let labels = [("state", state.into())];
        to.set(names::INBOX_ENTRIES, count as f64, labels);
    }
    let oldest = stats.oldest.unwrap_or_default();
    to.set(names::INBOX_OLDEST_AGE, oldest.as_secs_f64(), []);
}

impl Inbox {
    /// Sets the gauges to the current content of the inbox, and describes its metrics to the recorder. Call it **before
    /// each rendering**, in the route that serves `/metrics`, or every few seconds where metrics are pushed. `name` is the
    /// label `inbox`: that of [`Workers::metrics_name`](crate::inbox::Workers::metrics_name).
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
            to.describe(names::INBOX);
            known(to);
            set_entries(to, &stats);
        });
        Ok(())
    }
}
