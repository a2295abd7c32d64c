//! The end of a run: the handler's answer decides about the claim, and the run is reported.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use http::{Response, StatusCode};
use tokio::time::Instant;

use super::catch::{CatchUnwind, caught};
use super::guard::Guard;
use super::handler_end::{HandlerEnd, classify};
use super::marks::{DeadLetter, DeadLettered};
use super::response::Own;
use super::run_state::{End, Ended, LATE_STORE_CALL, RunState};
use super::supervise::{Handled, Watch, supervise};
use super::timer::CallLimit;
use crate::dedupe::Ownership;
use crate::observe::{Reason, Settled, Step};
use crate::outcome::{Failure, Outcome, Unrecorded};
use crate::walk::Claim;
use crate::walk::Delivery;

/// Judges the handler's answer. A dead letter has to be passed to its hook.
pub(super) fn judge<R, E>(
    mut handled: Handled<Result<Response<R>, E>>,
) -> Result<Ended<R, E>, DeadLetter> {
    match classify(&mut handled) {
        HandlerEnd::Is(outcome, reason) => Ok(Ended {
            end: end(handled, outcome),
            outcome,
            reason,
            at: None,
        }),
        HandlerEnd::Dead(letter) => {
            // A body's destructor is code of the handler, and a panic in it must not end the run.
            let _ = caught(|| drop(handled));
            Err(letter)
        }
    }
}

/// Returns the answer to the sender.
fn end<R, E>(handled: Handled<Result<Response<R>, E>>, outcome: Outcome) -> End<R, E> {
    let response = match handled {
        Handled::Answered(Ok(response)) => response,
        Handled::Answered(Err(error)) => return End::Error(error),
        Handled::Panicked(_) => return End::Own(Own::Failed),
        Handled::Aborted(_) => return End::Own(Own::Aborted),
    };
    // The 422 of an extractor or of the router is an answer of this crate, with the shape of its other answers. A handler's own
    // body stays unchanged.
    match outcome {
        Outcome::Failed(Failure::TypeMismatch | Failure::Unhandled)
            if response.status() == StatusCode::UNPROCESSABLE_ENTITY =>
        {
            // A panic of its destructor is caught, as with the body of a dead letter.
            let _ = caught(|| drop(response));
            End::Own(Own::TypeMismatch)
        }
        // A duplicate does not get the handler's own body.
        Outcome::Replayed { .. } => {
            let _ = caught(|| drop(response));
            End::Own(Own::Replayed)
        }
        _ => End::Response(response),
    }
}

/// Passes a dead letter to its hook, under the same supervision as the handler.
pub(super) async fn dead_letter<R, E>(
    letter: DeadLetter,
    delivery: &Delivery,
    watch: &Watch<'_, R, E>,
) -> Ended<R, E> {
    let reason = letter.reason().to_owned();
    let failed = |failure, reason: Reason| Ended {
        end: End::Own(Own::Failed),
        outcome: Outcome::Failed(failure),
        reason: Some(reason),
        at: None,
    };
    let Some(hook) = &watch.guarded.guard.settings.dead_letter else {
        let advice = "a handler answered DeadLetter, but no hook is set: call .on_dead_letter(…) on the receiver's builder";
        return failed(Failure::DeadLetterHookMissing, error(advice.into()));
    };
    let letter = DeadLettered {
        delivery: delivery.clone(),
        reason: reason.clone(),
    };
    let mut hooked = pin!(CatchUnwind::new(async { hook(letter).await }));
    match supervise(hooked.as_mut(), watch).await {
        Handled::Answered(Ok(())) => Ended {
            end: End::Own(Own::DeadLettered),
            outcome: Outcome::DeadLettered,
            reason: Some(error(reason)),
            at: None,
        },
        Handled::Answered(Err(below)) => failed(Failure::DeadLetterFailed, Arc::from(below)),
        Handled::Panicked(panicked) => failed(
            Failure::DeadLetterFailed,
            error(format!("the dead-letter hook panicked: {panicked}")),
        ),
        Handled::Aborted(failure) => Ended::own(Own::Aborted, Outcome::Failed(failure)),
    }
}

fn error(text: String) -> Reason {
    Arc::from(Box::<dyn std::error::Error + Send + Sync>::from(text))
}

/// Commits or releases the claim, and reports the run to the operator. Returns its end, unless the request has it already.
pub(super) fn settle<'a, R, E>(
    mut ended: Ended<R, E>,
    started: Instant,
    guard: &'a Guard,
    delivery: Delivery,
    claim: &'a Claim,
    state: &'a RunState<R, E>,
) -> impl Future<Output = Option<Ended<R, E>>> + use<'a, R, E> {
    let now = Instant::now();
    let outcome = ended.outcome;
    let done = matches!(
        outcome,
        Outcome::Handled | Outcome::Unhandled | Outcome::DeadLettered | Outcome::Replayed { .. }
    );
    if done {
        // The outcome that the request gets if the store has not answered when the answer is due.
        ended.outcome = Outcome::HandledUnrecorded(Unrecorded::TooSlow);
    }
    let reason = ended.reason.clone();
    let mut unsettled = Unsettled {
        ended: Some(ended),
        now,
        state,
    };
    async move {
        let mut limit = CallLimit::of(LATE_STORE_CALL);
        let recorded = pin!(claim.settle(done, true));
        let recorded = limit.wait(recorded, || unsettled.waits()).await;
        let outcome = match recorded {
            // A release that fails costs time, not the event: the lease ends by itself.
            _ if !done => outcome,
            Some(Ok(Ownership::Held)) => outcome,
            Some(Ok(Ownership::Lost)) => Outcome::HandledUnrecorded(Unrecorded::Lost),
            Some(Err(_)) => Outcome::HandledUnrecorded(Unrecorded::StoreFailed),
            None => {
                guard.auth.gate.health_signs.store_failed();
                Outcome::HandledUnrecorded(Unrecorded::TooSlow)
            }
        };
        let settled = Settled {
            outcome,
            delivery,
            reason,
            elapsed: now.saturating_duration_since(started),
            // Read now and not earlier: a slow commit can make the run late.
            late: state.is_detached(),
        };
        guard.tell(Step::Settled(&settled));
        if let Outcome::Failed(_) = outcome {
            let delivery = &settled.delivery;
            guard.report_failure(
                delivery.verified(),
                Some(delivery),
                outcome,
                settled.reason.clone(),
            );
        }
        let mut ended = unsettled.ended.take().or_else(|| state.settled());
        if let Some(ended) = &mut ended {
            ended.outcome = outcome;
            ended.at = (!limit.has_waited()).then_some(now);
        }
        ended
    }
}

/// The end of a run while its claim is committed or released.
struct Unsettled<'a, R, E> {
    ended: Option<Ended<R, E>>,
    now: Instant,
    state: &'a RunState<R, E>,
}

impl<R, E> Unsettled<'_, R, E> {
    /// The request may have to be answered before the store is.
    fn waits(&mut self) {
        if let Some(ended) = self.ended.take() {
            self.state.settling(ended, self.now);
        }
    }
}

/// If the program's clock panics meanwhile, the handler's answer is still the answer.
impl<R, E> Drop for Unsettled<'_, R, E> {
    fn drop(&mut self) {
        self.waits();
    }
}
