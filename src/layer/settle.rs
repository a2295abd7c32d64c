//! The end of a run: the handler's answer decides about the claim, and the run is reported.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};
use tokio::time::Instant;

use super::alarm::Patience;
use super::catch::{CatchUnwind, caught};
use super::dead_letter::{DeadLetter, DeadLettered};
use super::guard::Guard;
use super::handler_end::{HandlerEnd, classify};
use super::response::Own;
use super::run_state::{End, Ended, LATE_STORE_CALL, RunState};
use super::supervise::{Handled, Watch, supervise};
use crate::dedupe::Ownership;
use crate::observe::{Reason, Settled, Step};
use crate::outcome::{Failure, Outcome, Unrecorded};
use crate::walk::Claim;
use crate::walk::Delivery;

/// The end of a run before commit or release, with the answer.
pub(super) struct Settling<R, E> {
    ended: Ended<R, E>,
    elapsed: Duration,
    now: Instant,
}

impl<R, E> Settling<R, E> {
    /// Judges the handler's answer. A dead letter is passed to its hook here, under the same supervision as the handler.
    pub(super) async fn of(
        mut handled: Handled<Result<Response<R>, E>>,
        delivery: &Delivery,
        watch: &Watch<'_, R, E>,
    ) -> Self {
        let ended = match classify(&mut handled) {
            HandlerEnd::Is(outcome, reason) => Ended {
                end: end(handled, outcome),
                outcome,
                reason,
                at: None,
            },
            HandlerEnd::Dead(letter) => {
                // A body's destructor is code of the handler, and a panic in it must not end the run.
                let _ = caught(|| drop(handled));
                // Boxed, because dead letters are rare and their future must not enlarge the frame of the other runs.
                Box::pin(dead_letter(letter, delivery, watch)).await
            }
        };
        let now = Instant::now();
        Self {
            ended,
            elapsed: now.saturating_duration_since(watch.started),
            now,
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

async fn dead_letter<R, E>(
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

/// Commits or releases the claim, and reports the run to the operator.
pub(super) fn settle<'a, R, E>(
    settling: Settling<R, E>,
    guard: &'a Guard,
    delivery: &'a Delivery,
    claim: &'a Claim,
    state: &'a RunState<R, E>,
) -> impl Future<Output = ()> + use<'a, R, E> {
    let Settling {
        mut ended,
        elapsed,
        now,
    } = settling;
    let outcome = ended.outcome;
    let reason = ended.reason.clone();
    let done = matches!(
        outcome,
        Outcome::Handled | Outcome::Unhandled | Outcome::DeadLettered | Outcome::Replayed { .. }
    );
    if done {
        // The outcome that the request gets if the store has not answered when the answer is due.
        ended.outcome = Outcome::HandledUnrecorded(Unrecorded::TooSlow);
    }
    state.settling(ended, now);
    async move {
        let mut patience = Patience::of(LATE_STORE_CALL);
        let outcome = if done {
            match patience.wait(pin!(claim.record_done())).await {
                Some(Ok(Ownership::Held)) => outcome,
                Some(Ok(Ownership::Lost)) => Outcome::HandledUnrecorded(Unrecorded::Lost),
                Some(Err(_)) => Outcome::HandledUnrecorded(Unrecorded::StoreFailed),
                None => {
                    guard.auth.gate.vitals.store_failed();
                    Outcome::HandledUnrecorded(Unrecorded::TooSlow)
                }
            }
        } else {
            // A release that fails costs time, not the event: the lease ends by itself.
            let _ = patience.wait(pin!(claim.give_up())).await;
            outcome
        };
        state.settled(outcome, (!patience.has_waited()).then_some(now));
        guard.tell(Step::Settled(&Settled {
            outcome,
            delivery: delivery.clone(),
            reason: reason.clone(),
            elapsed,
            // Read now and not earlier: a slow commit can make the run late.
            late: state.is_detached(),
        }));
        if let Outcome::Failed(_) = outcome {
            guard.report_failure(delivery.verified(), Some(delivery), outcome, reason);
        }
    }
}
