//! What a handler's end means: for the layer, which answers a sender by it, and for an inbox's workers, which answer nobody.

use http::Response;

use super::already_handled::AlreadyHandled;
use super::dead_letter::DeadLetter;
use super::failure_reason::FailureReason;
use super::hooks::Reason;
use super::supervise::Handled;
use crate::outcome::{Failure, Outcome};

/// What a handler's end means.
pub(crate) enum Verdict {
    /// It is handled, or failed, for this reason.
    Is(Outcome, Option<Reason>),
    /// It can never succeed. What becomes of it is for whoever keeps such.
    Dead(DeadLetter),
}

/// Reads a handler's end. What its answer says to the operator is taken out of it.
pub(crate) fn judge<R, E>(handled: &mut Handled<Result<Response<R>, E>>) -> Verdict {
    let failure = match handled {
        Handled::Answered(Ok(response)) => return answered(response),
        Handled::Answered(Err(_)) => Failure::ServiceError,
        Handled::Panicked => Failure::Panicked,
        Handled::Aborted(failure) => *failure,
    };
    Verdict::Is(Outcome::Failed(failure), None)
}

fn answered<R>(response: &mut Response<R>) -> Verdict {
    if let Some(letter) = response.extensions_mut().remove::<DeadLetter>() {
        return Verdict::Dead(letter);
    }
    let already = response.extensions_mut().remove::<AlreadyHandled>();
    // The status decides: what came behind the mark and made a failure of it is not overruled.
    if let Some(already) = already.filter(|_| response.status().is_success()) {
        let same_body = already.same_body();
        return Verdict::Is(Outcome::Replayed { same_body }, None);
    }
    let reason = response.extensions_mut().remove::<FailureReason>();
    let status = response.status();
    // The status decides: who answers 2xx has handled the event, whatever was found on the way.
    let outcome = match &reason {
        Some(reason) if status.is_success() && reason.is_unhandled() => Outcome::Unhandled,
        _ if status.is_success() => Outcome::Handled,
        Some(reason) if reason.is_misfit() => Outcome::Failed(Failure::Misfit),
        Some(reason) if reason.is_unhandled() => Outcome::Failed(Failure::Unhandled),
        _ => Outcome::Failed(Failure::Status(status.as_u16())),
    };
    Verdict::Is(outcome, reason.map(FailureReason::into_inner))
}
