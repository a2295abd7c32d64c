//! The end of a run: what the handler's answer means for the claim, and who is told.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};
use tokio::time::timeout;

use super::catch::{CatchUnwind, caught};
use super::dead_letter::DeadLetter;
use super::hooks::{DeadLettered, Reason, Settled};
use super::judge::{Verdict, judge};
use super::meeting::{End, Ended, Meeting};
use super::metrics;
use super::response::Own;
use super::run::LATE_STORE_CALL;
use super::supervise::{Handled, Watch, supervise};
use super::trace;
use crate::dedupe::{Claim, Ownership};
use crate::delivery::Delivery;
use crate::outcome::{Failure, Outcome, Unrecorded};
use crate::receiver::Receiver;

/// What is to become of the claim, and the answer that goes with it.
pub(super) struct Settling<R, E> {
    ended: Ended<R, E>,
    elapsed: Duration,
}

impl<R, E> Settling<R, E> {
    /// Reads the handler's answer. A dead letter is handed to its hook here, watched like the handler itself.
    pub(super) async fn of(
        mut handled: Handled<Result<Response<R>, E>>,
        delivery: &Delivery,
        watch: &Watch<'_, R, E>,
    ) -> Self {
        let ended = match judge(&mut handled) {
            Verdict::Is(outcome, reason) => Ended {
                end: end(handled, outcome),
                outcome,
                reason,
            },
            Verdict::Dead(letter) => {
                // What a body does when it is dropped is the handler's business, and must not end the run.
                let _ = caught(|| drop(handled));
                // Few answers are one, so their future lies in none of the others' frames.
                Box::pin(dead_letter(letter, delivery, watch)).await
            }
        };
        Self {
            ended,
            elapsed: watch.started.elapsed(),
        }
    }
}

/// What the sender hears.
fn end<R, E>(handled: Handled<Result<Response<R>, E>>, outcome: Outcome) -> End<R, E> {
    let response = match handled {
        Handled::Answered(Ok(response)) => response,
        Handled::Answered(Err(error)) => return End::Error(error),
        Handled::Panicked => return End::Own(Own::Failed),
        Handled::Aborted(_) => return End::Own(Own::Aborted),
    };
    // The extractor's own 422, and the router's, are answers of ours, and shaped like them; a handler's own words stay its own.
    match outcome {
        Outcome::Failed(Failure::Misfit | Failure::Unhandled)
            if response.status() == StatusCode::UNPROCESSABLE_ENTITY =>
        {
            // As with a dead letter's body.
            let _ = caught(|| drop(response));
            End::Own(Own::Misfit)
        }
        // The handler's own words, if any, are none that a duplicate is answered with.
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
    };
    let Some(hook) = &watch.receiver.shared.layer.hooks.dead_letter else {
        let advice = "a handler answered DeadLetter, but no hook is set: call .on_dead_letter(…) on the receiver's builder";
        return failed(Failure::DeadLetterHookMissing, error(advice.into()));
    };
    let letter = DeadLettered {
        delivery: delivery.clone(),
        reason: reason.clone(),
    };
    let mut hooked = pin!(Some(CatchUnwind::new(async { hook(letter).await })));
    match supervise(hooked.as_mut(), watch).await {
        Handled::Answered(Ok(())) => Ended {
            end: End::Own(Own::DeadLettered),
            outcome: Outcome::DeadLettered,
            reason: Some(error(reason)),
        },
        Handled::Answered(Err(below)) => failed(Failure::DeadLetterFailed, Arc::from(below)),
        Handled::Panicked => failed(
            Failure::DeadLetterFailed,
            error("the dead-letter hook panicked".into()),
        ),
        Handled::Aborted(failure) => Ended::own(Own::Aborted, Outcome::Failed(failure)),
    }
}

fn error(text: String) -> Reason {
    Arc::from(Box::<dyn std::error::Error + Send + Sync>::from(text))
}

/// Commits or releases, and tells the operator.
pub(super) fn settle<'a, R, E>(
    settling: Settling<R, E>,
    receiver: &'a Receiver,
    delivery: &'a Delivery,
    claim: &'a Claim,
    meeting: &'a Meeting<R, E>,
) -> impl Future<Output = ()> + use<'a, R, E> {
    let Settling { mut ended, elapsed } = settling;
    let outcome = ended.outcome;
    let reason = ended.reason.clone();
    let done = matches!(
        outcome,
        Outcome::Handled | Outcome::Unhandled | Outcome::DeadLettered | Outcome::Replayed { .. }
    );
    if done {
        // What the request hears if the store has not answered when the answer is due.
        ended.outcome = Outcome::HandledUnrecorded(Unrecorded::TooSlow);
    }
    meeting.settling(ended);
    async move {
        let outcome = if done {
            match timeout(LATE_STORE_CALL, claim.record_done()).await {
                Ok(Ok(Ownership::Held)) => outcome,
                Ok(Ok(Ownership::Lost)) => Outcome::HandledUnrecorded(Unrecorded::Lost),
                Ok(Err(_)) => Outcome::HandledUnrecorded(Unrecorded::StoreFailed),
                Err(_) => {
                    receiver.shared.gate.vitals.store_failed();
                    Outcome::HandledUnrecorded(Unrecorded::TooSlow)
                }
            }
        } else {
            // A release that fails costs time, not the event: the lease ends by itself.
            let _ = timeout(LATE_STORE_CALL, claim.give_up()).await;
            outcome
        };
        meeting.settled(outcome);
        let settled = Settled {
            outcome,
            delivery: delivery.clone(),
            reason: reason.clone(),
            elapsed,
            // Now and not before: a store that is slow to commit can make it late.
            late: meeting.alone(),
        };
        trace::ended(&settled);
        metrics::settled(receiver, &settled);
        receiver.shared.layer.hooks.settled(&settled);
        if let Outcome::Failed(_) = outcome {
            receiver.report_failure(delivery.verified(), Some(delivery), outcome, reason);
        }
    }
}
