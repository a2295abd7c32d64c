//! Fields and lines of the span of each delivery.
//!
//! Text from a client without the secret is always cut to a short length, and such a client cannot fill the log: see
//! `warnings`.

use std::time::Duration;

use tracing::field::display;

use super::reports::{Answer, Reason, Settled};
use super::span::Span;
use super::warnings::Warnings;
use crate::lookup::SubscriptionId;
use crate::outcome::Outcome;
use crate::pipeline::Authenticator;
use crate::readable::Chain;

/// Stable: filters of a log name it.
const TARGET: &str = "hookgate";

#[derive(Default)]
pub(crate) struct Tracing {
    warnings: Warnings,
    /// Whether the lines of handled deliveries are at INFO and not at DEBUG.
    pub(crate) handled_at_info: bool,
}

/// Returns whether a handler or a sink did its work for this delivery.
fn is_handled(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Accepted | Outcome::Handled)
}

/// Returns whether the sender gets a success that needs no attention.
fn is_done(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Accepted | Outcome::Handled | Outcome::Replayed { same_body: true }
    )
}

impl Tracing {
    pub(super) fn answered(&self, auth: &Authenticator, span: &Span, answer: &Answer) {
        let span = &span.0;
        let name = answer.outcome.name();
        span.record("http.response.status_code", answer.status)
            .record("hookgate.outcome", name);
        let done = is_done(answer.outcome);
        // Not for a success that needs attention, such as a 204 for an event without a handler: the request did not fail.
        let is_error =
            !(200..300).contains(&answer.status) || answer.outcome == Outcome::DeadLettered;
        if is_error {
            span.record("error.type", name);
        }
        if let Some(reason) = &answer.reason
            && is_error
            && answer.authentic().is_some()
        {
            span.record("hookgate.reason", display(Chain(reason)));
        }
        if let Some(claimed) = answer.claimed_subscription() {
            span.record("hookgate.claimed_subscription", claimed.as_str());
        }
        let _entered = span.enter();
        match &answer.reason {
            // Logged at INFO: this is normal where a subscription has more event types than are handled, and it may be most
            // deliveries.
            Some(reason) if answer.outcome == Outcome::Unhandled => {
                tracing::info!(target: TARGET, outcome = name, reason = %Chain(reason), "delivery not handled");
            }
            Some(reason) => self.not_handled(auth, answer, reason),
            None if done => {
                let elapsed_us = micros(answer.elapsed);
                if self.handled_at_info && is_handled(answer.outcome) {
                    tracing::info!(target: TARGET, outcome = name, elapsed_us, "delivery answered");
                } else {
                    tracing::debug!(target: TARGET, outcome = name, elapsed_us, "delivery answered");
                }
            }
            None => tracing::warn!(target: TARGET, outcome = name, "delivery answered"),
        }
    }

    /// Authentic deliveries are always logged at WARN. Any client can cause any number of the others, so those are limited.
    fn not_handled(&self, auth: &Authenticator, answer: &Answer, reason: &Reason) {
        let name = answer.outcome.name();
        let warned = match answer.refusal() {
            Some(refusal) if answer.authentic().is_none() => {
                let error = refusal.verify_error().map(|error| error.kind().name());
                let error = error.unwrap_or(refusal.kind().name());
                let now = auth.clock.monotonic();
                self.warnings.warned(error, now)
            }
            _ => Some(0),
        };
        let claimed = answer.claimed_subscription().map(SubscriptionId::as_str);
        match warned {
            Some(suppressed) => tracing::warn!(target: TARGET,
                outcome = name,
                reason = %Chain(reason),
                claimed_subscription = claimed,
                suppressed = (suppressed > 0).then_some(suppressed),
                "delivery not handled"
            ),
            None => {
                tracing::debug!(target: TARGET,
                    outcome = name,
                    reason = %Chain(reason),
                    claimed_subscription = claimed,
                    "delivery not handled"
                );
            }
        }
    }

    /// Logs the end of a run that outlived its request, because no answer does.
    pub(super) fn ended_late(&self, run: &Settled) {
        let name = run.outcome.name();
        let elapsed_us = micros(run.elapsed);
        match &run.reason {
            None if self.handled_at_info && is_handled(run.outcome) => {
                tracing::info!(target: TARGET, outcome = name, elapsed_us, "run ended late");
            }
            None if is_done(run.outcome) => {
                tracing::debug!(target: TARGET, outcome = name, elapsed_us, "run ended late");
            }
            None => tracing::warn!(target: TARGET, outcome = name, "run ended late"),
            Some(reason) if run.outcome == Outcome::Unhandled => {
                tracing::info!(target: TARGET, outcome = name, reason = %Chain(reason), "run ended late");
            }
            Some(reason) => {
                tracing::Span::current().record("hookgate.reason", display(Chain(reason)));
                tracing::warn!(target: TARGET, outcome = name, reason = %Chain(reason), "run ended late");
            }
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
