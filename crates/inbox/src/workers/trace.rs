//! Fields and lines of the span of each run. The field names are the same as in the layer.

use std::error::Error;

use hookgate::outcome::one_line;
use hookgate::{Outcome, dedupe::StoreError};
use tracing::field::display;

use super::hooks::{AttemptReport, Disposition, Span, Step};

/// Stable: filters of a log name it.
const TARGET: &str = "hookgate::inbox";

#[derive(Default)]
pub(super) struct Tracing {
    /// Whether the lines of handled entries are at INFO and not at DEBUG.
    pub(super) handled_at_info: bool,
}

impl Tracing {
    pub(super) fn observe(&self, step: Step<'_>) {
        match step {
            Step::Ended(span, report) => self.ended(span, report),
            // Only without a delivery: a dead letter with one was made by a run, and `ended` writes
            // the line of that run.
            Step::DeadLettered(entry) if entry.delivery.is_none() => {
                tracing::warn!(target: TARGET,
                    event = entry.event_id.as_str(),
                    tries = entry.tries,
                    reason = entry.error,
                    "a dead letter without a try's end"
                )
            }
            Step::LeaseLost(lost) => tracing::warn!(target: TARGET,
                event = lost.delivery.event_id(),
                tries = lost.tries,
                "the lease of a running job is lost"
            ),
            Step::StoreFailed(call, error) => {
                tracing::warn!(target: TARGET, call, error = %first_lines(error), "the inbox's store failed");
            }
            Step::Begun | Step::DeadLettered(_) => {}
        }
    }

    fn ended(&self, span: &Span, report: &AttemptReport) {
        let span = &span.0;
        let (name, next) = (report.outcome.name(), report.disposition.name());
        let done = report.disposition == Disposition::Done;
        let reason = report
            .reason
            .as_ref()
            .map(|reason| display(one_line(reason)));
        span.record("hookgate.outcome", name);
        if !done {
            span.record("error.type", name);
            span.record("hookgate.reason", &reason);
        }
        let elapsed_us = u64::try_from(report.elapsed.as_micros()).unwrap_or(u64::MAX);
        let _entered = span.enter();
        if !done {
            tracing::warn!(target: TARGET, outcome = name, next, reason, "job ended");
        } else if reason.is_some() {
            tracing::info!(target: TARGET, outcome = name, next, reason, "job ended");
        } else if self.handled_at_info && report.outcome == Outcome::Handled {
            tracing::info!(target: TARGET, outcome = name, next, elapsed_us, "job ended");
        } else {
            tracing::debug!(target: TARGET, outcome = name, next, elapsed_us, "job ended");
        }
    }
}

/// Returns an error with its sources, only the first line of each: in further lines a database adds
/// the row that it refused.
fn first_lines(error: &StoreError) -> String {
    let error: &(dyn Error + 'static) = error;
    let errors = std::iter::successors(Some(error), |error| Error::source(*error));
    let first_line = |error: &dyn Error| {
        let text = error.to_string();
        text.lines().next().unwrap_or_default().to_owned()
    };
    errors.map(first_line).collect::<Vec<_>>().join(": ")
}
