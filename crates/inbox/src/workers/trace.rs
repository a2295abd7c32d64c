//! The span of each run, its fields and its lines; empty without the feature `tracing`. The field names are the same as in the layer.

#![cfg_attr(not(feature = "tracing"), allow(unused_variables, clippy::unused_self))]

#[cfg(feature = "tracing")]
use std::error::Error;
use std::future::Future;

use hookgate::Delivery;
#[cfg(feature = "tracing")]
use hookgate::{Outcome, dedupe::StoreError, outcome::one_line, receiver::catch_panic};
#[cfg(feature = "tracing")]
use tracing::field::{Empty, display};

#[cfg(feature = "tracing")]
use super::hooks::{AttemptReport, Disposition, Step};

/// Stable: filters of a log name it.
#[cfg(feature = "tracing")]
const TARGET: &str = "hookgate::inbox";

/// The span of a run.
pub(super) struct Span(#[cfg(feature = "tracing")] tracing::Span);

impl Span {
    pub(super) fn of(delivery: &Delivery, tries: u32) -> Self {
        Self(
            #[cfg(feature = "tracing")]
            tracing::info_span!(
                target: TARGET,
                "inbox job",
                otel.kind = "consumer",
                error.r#type = Empty,
                messaging.operation.r#type = "process",
                messaging.message.id = delivery.event_id(),
                messaging.message.body.size = delivery.body().len(),
                hookgate.event.r#type = delivery.event_type(),
                hookgate.scope = delivery.verified().scope(),
                hookgate.key.name = delivery.verified().key_name(),
                hookgate.tries = tries,
                hookgate.outcome = Empty,
                hookgate.reason = Empty,
                traceparent = delivery.traceparent(),
            ),
        )
    }

    /// Returns a future that runs inside this span.
    pub(super) fn around<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        #[cfg(feature = "tracing")]
        let future = tracing::Instrument::instrument(future, self.0.clone());
        future
    }
}

#[cfg(feature = "tracing")]
#[derive(Default)]
pub(super) struct Tracing {
    /// Whether the lines of handled entries are at INFO and not at DEBUG.
    pub(super) handled_at_info: bool,
}

#[cfg(feature = "tracing")]
impl Tracing {
    pub(super) fn observe(&self, step: Step<'_>) {
        // An error's text may panic while it is written.
        let _ = catch_panic(|| self.log(step));
    }

    fn log(&self, step: Step<'_>) {
        match step {
            Step::Ended(span, report) => self.ended(span, report),
            // Only without a delivery: a dead letter with one was made by a run, and `ended` writes the line of that run.
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

/// Returns an error with its sources, only the first line of each: in further lines a database adds the row that it refused.
#[cfg(feature = "tracing")]
fn first_lines(error: &StoreError) -> String {
    let error: &(dyn Error + 'static) = error;
    let errors = std::iter::successors(Some(error), |error| Error::source(*error));
    let first_line = |error: &dyn Error| {
        let text = error.to_string();
        text.lines().next().unwrap_or_default().to_owned()
    };
    errors.map(first_line).collect::<Vec<_>>().join(": ")
}
