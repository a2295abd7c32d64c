//! Fields and lines of the span of each delivery.
//!
//! Text from a client without the secret is always cut to a short length, and such a client cannot fill the log: see
//! `warnings`.

use super::reports::{Answer, Reason, Settled};
use super::step::{Observed, Observer, Step};
use super::warnings::{LogLevel, Warnings};
use crate::caught::caught;
use crate::outcome::Outcome;
use crate::readable::Chain;
use crate::walk::Delivery;

/// Stable: filters of a log name it.
const TARGET: &str = "hookgate";

#[derive(Default)]
pub(super) struct Tracing {
    warnings: Warnings,
}

impl Observer<Step<'_>> for Tracing {
    #[inline]
    fn observe(&self, step: Step<'_>) {
        match step {
            Step::Recognised(request, delivery) => recognised(request, delivery),
            // An error's text may panic while it is written.
            Step::Answered(request, answer) => drop(caught(|| self.answered(request, answer))),
            Step::Settled(run) if run.late => drop(caught(|| ended_late(run))),
            _ => {}
        }
    }
}

fn recognised(request: Observed<'_>, delivery: &Delivery) {
    let span = &request.of.span.0;
    span.record("messaging.message.id", delivery.event_id())
        .record("messaging.message.body.size", delivery.body().len())
        .record("hookgate.event.type", delivery.event_type())
        .record("hookgate.scope", delivery.verified().scope())
        .record("hookgate.key.name", delivery.verified().key_name());
}

/// Returns whether the sender gets a success that needs no attention.
fn is_done(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Accepted | Outcome::Handled | Outcome::Replayed { same_body: true }
    )
}

impl Tracing {
    fn answered(&self, request: Observed<'_>, answer: &Answer) {
        let span = &request.of.span.0;
        let name = answer.outcome.name();
        span.record("http.response.status_code", answer.status)
            .record("hookgate.outcome", name);
        let done = is_done(answer.outcome);
        if !done {
            span.record("error.type", name);
        }
        let _entered = span.enter();
        match &answer.reason {
            // Logged at INFO: this is normal where a subscription has more event types than are handled, and it may be most
            // deliveries.
            Some(reason) if answer.outcome == Outcome::Unhandled => {
                tracing::info!(target: TARGET, outcome = name, reason = %Chain(reason), "delivery not handled");
            }
            Some(reason) => self.not_handled(request, answer, reason),
            None if done => tracing::debug!(target: TARGET, outcome = name, "delivery answered"),
            None => tracing::warn!(target: TARGET, outcome = name, "delivery answered"),
        }
    }

    /// Authentic deliveries are always logged at WARN. Any client can cause any number of the others, so those are limited.
    fn not_handled(&self, request: Observed<'_>, answer: &Answer, reason: &Reason) {
        let name = answer.outcome.name();
        let level = match answer.refusal() {
            Some(refusal) if answer.authentic().is_none() => {
                let error = refusal.verify_error().map(|error| error.kind().name());
                let error = error.unwrap_or(refusal.kind().name());
                let now = request.auth.clock.monotonic();
                self.warnings.log_level(error, now)
            }
            _ => LogLevel::Warning { suppressed: 0 },
        };
        match level {
            LogLevel::Warning { suppressed } => tracing::warn!(target: TARGET,
                outcome = name,
                reason = %Chain(reason),
                suppressed = (suppressed > 0).then_some(suppressed),
                "delivery not handled"
            ),
            LogLevel::Suppressed => {
                tracing::debug!(target: TARGET, outcome = name, reason = %Chain(reason), "delivery not handled");
            }
        }
    }
}

/// Logs the end of a run that outlived its request, because no answer does. Told inside its span.
fn ended_late(run: &Settled) {
    let name = run.outcome.name();
    match &run.reason {
        None if is_done(run.outcome) => {
            tracing::debug!(target: TARGET, outcome = name, "run ended late")
        }
        None => tracing::warn!(target: TARGET, outcome = name, "run ended late"),
        Some(reason) if run.outcome == Outcome::Unhandled => {
            tracing::info!(target: TARGET, outcome = name, reason = %Chain(reason), "run ended late");
        }
        Some(reason) => {
            tracing::warn!(target: TARGET, outcome = name, reason = %Chain(reason), "run ended late");
        }
    }
}
