//! The end of a run: the handler's answer decides about the claim, and the run is reported.

use std::future::Future;
use std::pin::pin;

use http::{Response, StatusCode};
use tokio::time::Instant;

use super::bounded::{ClaimedRun, Handled, supervise};
use super::guard::Guard;
use super::handler::is_mismatch;
use super::handler_error::HandlerError;
use super::marks::{AlreadyHandled, DeadLetter, Unhandled};
use super::run_state::{End, Ended};
use super::timer::in_time;
use crate::caught::caught;
use crate::dedupe::{Ownership, StoreError};
use crate::event::EventError;
use crate::observe::{Reason, Settled};
use crate::outcome::{Failure, Outcome, Unrecorded};
use crate::pipeline::{Claims, Delivery, ForHealth, Settlement};

/// Judges the handler's answer. A dead letter has to be passed to its hook.
pub(super) fn judge<R, E>(
    mut handled: Handled<Result<Response<R>, E>>,
) -> Result<Ended<R, E>, DeadLetter> {
    let (outcome, reason) = match classify(&mut handled) {
        Ok(judged) => judged,
        Err(letter) => {
            // A body's destructor is code of the handler, and a panic in it must not end the run.
            let _ = caught(|| drop(handled));
            return Err(letter);
        }
    };
    let end = match handled {
        Handled::Answered(Err(error)) => End::Error(error),
        Handled::Answered(Ok(response)) if !is_own(outcome, response.status()) => {
            End::Response(response)
        }
        unused => {
            let _ = caught(|| drop(unused)); // as above
            End::Own(outcome)
        }
    };
    Ok(Ended {
        end,
        outcome,
        reason,
        at: None,
    })
}

/// Returns whether the receiver makes the answer, in place of the response that brought this outcome: a duplicate does not get the
/// handler's own body, and the 422 of an extractor or of the router has the shape of this crate's other answers.
fn is_own(outcome: Outcome, status: StatusCode) -> bool {
    match outcome {
        Outcome::Replayed { .. } => true,
        Outcome::Failed(Failure::TypeMismatch | Failure::Unhandled) => {
            status == StatusCode::UNPROCESSABLE_ENTITY
        }
        _ => false,
    }
}

/// Classifies a handler's end, for the layer and for a [`Run`](crate::run::Run): it is handled, or it failed, for this reason; or it can
/// never succeed, and the caller stores the dead letter. The operator's details are taken out of the response.
#[expect(
    clippy::disallowed_methods,
    reason = "the handler's own marks on its answer"
)]
pub(crate) fn classify<R, E>(
    handled: &mut Handled<Result<Response<R>, E>>,
) -> Result<(Outcome, Option<Reason>), DeadLetter> {
    let failed = |failure, reason| Ok((Outcome::Failed(failure), reason));
    let response = match handled {
        Handled::Answered(Ok(response)) => response,
        Handled::Answered(Err(_)) => return failed(Failure::ServiceError, None),
        Handled::Panicked(panicked) => {
            let reason = HandlerError::from(panicked.clone());
            return failed(Failure::Panicked, Some(reason.into_reason()));
        }
        Handled::Aborted(failure) => return failed(*failure, None),
    };
    if let Some(letter) = response.extensions_mut().remove::<DeadLetter>() {
        return Err(letter);
    }
    let already = response.extensions_mut().remove::<AlreadyHandled>();
    // The status decides: the mark is ignored if later code has turned the response into a failure.
    if let Some(already) = already.filter(|_| response.status().is_success()) {
        let same_body = already.same_body();
        return Ok((Outcome::Replayed { same_body }, None));
    }
    let reason = response.extensions_mut().remove::<HandlerError>();
    let status = response.status();
    // The status decides: a 2xx means that the event is handled, even if a reason was set.
    let outcome = match &reason {
        Some(reason) if status.is_success() && reason.0.is::<Unhandled>() => Outcome::Unhandled,
        _ if status.is_success() => Outcome::Handled,
        Some(HandlerError(reason))
            if reason.is::<EventError>()
                || status == StatusCode::UNPROCESSABLE_ENTITY && is_mismatch(&**reason) =>
        {
            Outcome::Failed(Failure::TypeMismatch)
        }
        Some(reason) if reason.0.is::<Unhandled>() => Outcome::Failed(Failure::Unhandled),
        _ => Outcome::Failed(Failure::Status(status.as_u16())),
    };
    Ok((outcome, reason.map(|reason| reason.0)))
}

/// Passes a dead letter to its hook, under the same supervision as the handler.
pub(super) async fn dead_letter<R, E>(
    letter: DeadLetter,
    delivery: &Delivery,
    run: &ClaimedRun<'_, R, E>,
) -> Ended<R, E> {
    let failed = |failure, reason| (Outcome::Failed(failure), Some(reason));
    let (outcome, reason) = match &run.guard.settings.dead_letter {
        Some(hook) => {
            let reason = HandlerError::from(letter.reason());
            let hooked = pin!(Some(async { hook(delivery.clone(), letter).await }));
            match supervise(hooked, run).await {
                Handled::Answered(Ok(())) => (Outcome::DeadLettered, Some(reason)),
                Handled::Answered(Err(below)) => {
                    failed(Failure::DeadLetterFailed, HandlerError::from(below))
                }
                Handled::Panicked(panicked) => {
                    let below = format!("the dead-letter hook panicked: {panicked}");
                    failed(Failure::DeadLetterFailed, HandlerError::from(below))
                }
                Handled::Aborted(failure) => (Outcome::Failed(failure), None),
            }
        }
        None => {
            let advice = "a handler answered DeadLetter, but no hook is set: call .on_dead_letter(…) on the receiver's builder";
            failed(Failure::DeadLetterHookMissing, HandlerError::from(advice))
        }
    };
    Ended {
        reason: reason.map(|reason| reason.0),
        ..Ended::own(outcome)
    }
}

/// Returns the outcome with what is known of its record: the store's answer, or `None` if that did not come within the time limit of a
/// late store call.
///
/// Not an async function around the call itself: its arguments would stand in the run's future a second time.
pub(crate) fn recorded_in_time(
    guard: &Guard<Claims>,
    answer: Option<Result<Ownership, StoreError>>,
    how: Settlement,
    outcome: Outcome,
) -> Outcome {
    let outcome = match &answer {
        // A release that fails costs time, not the event: the lease ends by itself.
        _ if how == Settlement::Release => outcome,
        Some(commit) => outcome.recorded(commit),
        None => {
            guard.auth.gate.health_signs.store_failed();
            Outcome::HandledUnrecorded(Unrecorded::TooSlow)
        }
    };
    // An error's destructor is code of the store.
    let _ = caught(|| drop(answer));
    outcome
}

/// Commits or releases the claim, and reports the run to the operator. Returns its end, unless the request has it already.
pub(super) fn settle<'a, R, E>(
    mut ended: Ended<R, E>,
    delivery: Delivery,
    run: &'a ClaimedRun<'a, R, E>,
) -> impl Future<Output = Option<Ended<R, E>>> + use<'a, R, E> {
    let now = Instant::now();
    let outcome = ended.outcome;
    let is_done = matches!(
        outcome,
        Outcome::Handled | Outcome::Unhandled | Outcome::DeadLettered | Outcome::Replayed { .. }
    );
    let how = if is_done {
        Settlement::Commit
    } else {
        Settlement::Release
    };
    if is_done {
        // The outcome that the request gets if the store has not answered when the answer is due.
        ended.outcome = Outcome::HandledUnrecorded(Unrecorded::TooSlow);
    }
    let reason = ended.reason.clone();
    let mut unsettled = Some(ended);
    async move {
        let guard = run.guard;
        // The request may have to be answered before the store is.
        let waits = || {
            if let Some(ended) = unsettled.take() {
                run.state.settling(ended, now);
            }
        };
        let answer = in_time(pin!(run.claim.settle(how, ForHealth::Counts)), waits).await;
        let outcome = recorded_in_time(guard, answer, how, outcome);
        let settled = Settled {
            outcome,
            delivery,
            reason,
            elapsed: now.saturating_duration_since(run.started),
            // Read now and not earlier: a slow commit can make the run late.
            late: run.state.is_detached(),
        };
        guard.report_run(&settled);
        // It is still here if the store answered at once: then the request has not taken it, and the time is known.
        match unsettled {
            Some(ended) => Some(Ended {
                outcome,
                at: Some(now),
                ..ended
            }),
            None => run.state.settled().map(|ended| Ended { outcome, ..ended }),
        }
    }
}
