//! The handler's answer decides about the claim and about the answer to the sender.

use http::{Response, StatusCode};
use std::pin::pin;

use super::handler::is_mismatch;
use super::marks::{AlreadyHandled, DeadLetter, HandlerError, Unhandled};
use super::receiver_inner::LayerSettings;
use super::reply::{RunAnswer, RunEnd};
use crate::catch_panic::catch_panic_in;
use crate::event::EventError;
use crate::observe::Reason;
use crate::outcome::{Failure, Outcome};
use crate::pipeline::Delivery;

/// The end of a handler: what its service returned, or the message of its panic.
pub(crate) type HandlerEnd<R, E> = Result<Result<Response<R>, E>, String>;

/// Judges the end of the handler. A dead letter has to be passed to its hook.
pub(super) fn judge<R, E>(mut handled: HandlerEnd<R, E>) -> Result<RunEnd<R, E>, DeadLetter> {
    let (outcome, reason) = outcome_of(&mut handled)?;
    let answer = match handled {
        Ok(Err(error)) => RunAnswer::Error(error),
        Ok(Ok(response)) if !is_own(outcome, response.status()) => RunAnswer::Response(response),
        _ => RunAnswer::Own(outcome),
    };
    Ok(RunEnd {
        answer,
        outcome,
        reason,
    })
}

/// Returns whether the receiver makes the answer, in place of the response that brought this
/// outcome: a duplicate does not get the handler's own body, and the 422 of an extractor or of the
/// router has the shape of this crate's other answers.
fn is_own(outcome: Outcome, status: StatusCode) -> bool {
    match outcome {
        Outcome::Replayed { .. } => true,
        Outcome::Failed(Failure::TypeMismatch | Failure::Unhandled) => {
            status == StatusCode::UNPROCESSABLE_ENTITY
        }
        _ => false,
    }
}

/// Returns the outcome of a handler by its end, for the layer and for a [`Run`](crate::run::Run):
/// it is handled, or it failed, for this reason; or it can never succeed, and the caller stores the
/// dead letter. The operator's details are taken out of the response.
#[expect(
    clippy::disallowed_methods,
    reason = "the handler's own marks on its answer"
)]
pub(crate) fn outcome_of<R, E>(
    handled: &mut HandlerEnd<R, E>,
) -> Result<(Outcome, Option<Reason>), DeadLetter> {
    let response = match handled {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => return Ok((Outcome::Failed(Failure::ServiceError), None)),
        Err(panicked) => {
            let reason = HandlerError::from(std::mem::take(panicked));
            return Ok((
                Outcome::Failed(Failure::Panicked),
                Some(reason.into_reason()),
            ));
        }
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
    let reason = reason.map(HandlerError::into_reason);
    let status = response.status();
    // The status decides: a 2xx means that the event is handled, even if a reason was set.
    let outcome = match &reason {
        Some(reason) if status.is_success() && reason.is::<Unhandled>() => Outcome::Unhandled,
        _ if status.is_success() => Outcome::Handled,
        Some(reason)
            if is_mismatch(&**reason)
                && (reason.is::<EventError>() || status == StatusCode::UNPROCESSABLE_ENTITY) =>
        {
            Outcome::Failed(Failure::TypeMismatch)
        }
        Some(reason) if reason.is::<Unhandled>() => Outcome::Failed(Failure::Unhandled),
        _ => Outcome::Failed(Failure::Status(status.as_u16())),
    };
    Ok((outcome, reason))
}

/// Passes a dead letter to its hook, within the time and the lease of the run.
pub(super) async fn ask_dead_letter_hook<R, E>(
    settings: &LayerSettings,
    delivery: &Delivery,
    letter: DeadLetter,
) -> RunEnd<R, E> {
    let failed = |failure, reason| (Outcome::Failed(failure), reason);
    let (outcome, reason) = match &settings.dead_letter {
        Some(hook) => {
            let reason = HandlerError::from(letter.reason());
            let hooked = pin!(async { hook(delivery.clone(), letter).await });
            match catch_panic_in(hooked).await {
                Ok(Ok(())) => (Outcome::DeadLettered, reason),
                Ok(Err(below)) => failed(Failure::DeadLetterFailed, HandlerError::from(below)),
                Err(panicked) => {
                    let below = format!("the dead-letter hook panicked: {panicked}");
                    failed(Failure::DeadLetterFailed, HandlerError::from(below))
                }
            }
        }
        None => {
            let advice = "a handler answered DeadLetter, but no hook is set: call .on_dead_letter(…) on the receiver's builder";
            failed(Failure::DeadLetterHookMissing, HandlerError::from(advice))
        }
    };
    RunEnd {
        reason: Some(reason.into_reason()),
        ..RunEnd::own(outcome)
    }
}
