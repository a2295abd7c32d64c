//! The span of each delivery, its fields and its lines (feature `tracing`).
//!
//! Text from a client without the secret is always cut to a short length, and such a client cannot
//! fill the log.

use std::mem;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tracing::field::display;

use super::reports::{Answer, Reason, Settled};
use super::span::Span;
use crate::clock::Monotonic;
use crate::lookup::SubscriptionId;
use crate::outcome::Outcome;
use crate::pipeline::Authenticator;
use crate::readable::Chain;

/// Stable: filters of a log name it.
const TARGET: &str = "hookgate";

#[derive(Default)]
pub(crate) struct Tracing {
    warnings: Warnings,
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
        // Not for a success that needs attention, such as a 204 for an event without a handler: the
        // request did not fail.
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
            // Logged at INFO: this is normal where a subscription has more event types than are
            // handled, and it may be most deliveries.
            Some(reason) if answer.outcome == Outcome::Unhandled => {
                tracing::info!(target: TARGET, outcome = name, reason = %Chain(reason), "delivery not handled");
            }
            Some(reason) => self.not_handled(auth, answer, reason),
            None if done => {
                let elapsed_us = micros(answer.elapsed);
                tracing::debug!(target: TARGET, outcome = name, elapsed_us, "delivery answered");
            }
            None => tracing::warn!(target: TARGET, outcome = name, "delivery answered"),
        }
    }

    /// Logs that a request was dropped before its answer. Any client can hang up, so this is at
    /// INFO only for an authentic delivery.
    pub(super) fn dropped(span: &Span, is_authentic: bool, after: Duration) {
        let _entered = span.0.enter();
        let elapsed_us = micros(after);
        if is_authentic {
            tracing::info!(target: TARGET, elapsed_us, "request dropped before its answer");
        } else {
            tracing::debug!(target: TARGET, elapsed_us, "request dropped before its answer");
        }
    }

    /// Authentic deliveries are always logged at WARN. Any client can cause any number of the
    /// others, so those are limited.
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

    /// Logs the end of a run that outlived its request, because no answer does; and a commit that
    /// was given up.
    pub(super) fn ended_late(&self, run: &Settled) {
        let name = run.outcome.name();
        let elapsed_us = micros(run.elapsed);
        match &run.reason {
            _ if run.outcome.is_commit_failed() => {
                tracing::warn!(target: TARGET, outcome = name, "commit given up");
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

/// The time from one line of a refusal that is not authentic to the next. Any client can cause
/// them, so they must not fill a log.
const BETWEEN_LINES: Duration = Duration::from_secs(1);
/// A reason that was not logged for this long is logged at once, however many other lines there
/// are.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// The latest lines of one receiver.
#[derive(Default)]
pub(crate) struct Warnings(Mutex<Logged>);

#[derive(Default)]
struct Logged {
    last: Option<Monotonic>,
    /// At most one entry for each reason.
    by_reason: Vec<(&'static str, Monotonic)>,
    suppressed: u64,
}

impl Warnings {
    /// Returns whether a refusal with this reason is logged at WARN, and not at DEBUG: then, the
    /// number of refusals that were not at WARN since the last such line.
    pub(super) fn warned(&self, reason: &'static str, now: Monotonic) -> Option<u64> {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Logged {
            last,
            by_reason,
            suppressed,
        } = &mut *logged;
        let within = |since: Monotonic, time| now.saturating_since(since) < time;
        let known = by_reason.iter_mut().find(|(name, _)| *name == reason);
        let lately = known
            .as_ref()
            .is_some_and(|(_, at)| within(*at, FORGOTTEN_AFTER));
        if lately && last.is_some_and(|last| within(last, BETWEEN_LINES)) {
            *suppressed = suppressed.saturating_add(1);
            return None;
        }
        *last = Some(now);
        match known {
            Some((_, at)) => *at = now,
            None => by_reason.push((reason, now)),
        }
        Some(mem::take(suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Monotonic {
        Monotonic::new(Duration::from_millis(millis))
    }

    // fault F7: a stranger writes the log: methods of any length, and a WARN line for each request
    #[test]
    fn a_flood_of_all_reasons_is_a_line_a_second_and_each_reason_once_a_minute() {
        const REASONS: [&str; 5] = ["a", "b", "c", "d", "e"];
        let warnings = Warnings::default();
        let (mut lines, mut requests) = (0, 0);
        for millis in (0..600_000).step_by(10) {
            for reason in REASONS {
                requests += 1;
                if let Some(suppressed) = warnings.warned(reason, at(millis)) {
                    lines += 1;
                    requests -= 1 + suppressed;
                }
            }
        }
        // Ten minutes, at most one line a second and one more for each reason a minute.
        assert!((600..=600 + 10 * 5).contains(&lines), "{lines}");
        // All requests are logged or counted, except those since the last line.
        assert!(requests < 5 * 101, "{requests}");
    }

    #[test]
    fn a_reason_that_was_not_logged_for_a_minute_is_logged_at_once() {
        let warnings = Warnings::default();
        assert_eq!(warnings.warned("a", at(0)), Some(0));
        assert_eq!(warnings.warned("b", at(1)), Some(0));
        assert_eq!(warnings.warned("a", at(2)), None);
        for second in 1..60 {
            let suppressed = u64::from(second == 1);
            let warned = warnings.warned("a", at(second * 1_000 + 1));
            assert_eq!(warned, Some(suppressed));
        }
        assert_eq!(warnings.warned("b", at(60_000)), None);
        assert_eq!(warnings.warned("b", at(60_001)), Some(1));
        assert_eq!(warnings.warned("b", at(60_002)), None);
    }
}
