//! Classifies the end of a handler: for the layer, which then answers a sender, and for the workers of an inbox, which have no
//! sender to answer.

use std::sync::Arc;

use http::{Response, StatusCode};

use super::failure_reason::FailureReason;
use super::handler_error::is_mismatch;
use super::marks::{AlreadyHandled, DeadLetter, Unhandled};
use super::supervise::Handled;
use crate::event::EventError;
use crate::observe::Reason;
use crate::outcome::{Failure, Outcome};

/// The end of a handler, as it was classified.
pub(crate) enum HandlerEnd {
    /// It is handled, or it failed, for this reason.
    Is(Outcome, Option<Reason>),
    /// It can never succeed. The caller stores the dead letter.
    Dead(DeadLetter),
}

/// Classifies a handler's end. The operator's details are taken out of the response.
pub(crate) fn classify<R, E>(handled: &mut Handled<Result<Response<R>, E>>) -> HandlerEnd {
    let failure = match handled {
        Handled::Answered(Ok(response)) => return answered(response),
        Handled::Answered(Err(_)) => Failure::ServiceError,
        Handled::Panicked(panicked) => {
            let message: Reason = Arc::new(panicked.clone());
            return HandlerEnd::Is(Outcome::Failed(Failure::Panicked), Some(message));
        }
        Handled::Aborted(failure) => *failure,
    };
    HandlerEnd::Is(Outcome::Failed(failure), None)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the handler's own marks on its answer"
)]
fn answered<R>(response: &mut Response<R>) -> HandlerEnd {
    if let Some(letter) = response.extensions_mut().remove::<DeadLetter>() {
        return HandlerEnd::Dead(letter);
    }
    let already = response.extensions_mut().remove::<AlreadyHandled>();
    // The status decides: the mark is ignored if later code has turned the response into a failure.
    if let Some(already) = already.filter(|_| response.status().is_success()) {
        let same_body = already.same_body();
        return HandlerEnd::Is(Outcome::Replayed { same_body }, None);
    }
    let reason = response.extensions_mut().remove::<FailureReason>();
    let status = response.status();
    // The status decides: a 2xx means that the event is handled, even if a reason was set.
    let outcome = match &reason {
        Some(reason) if status.is_success() && reason.0.is::<Unhandled>() => Outcome::Unhandled,
        _ if status.is_success() => Outcome::Handled,
        Some(FailureReason(reason))
            if reason.is::<EventError>()
                || status == StatusCode::UNPROCESSABLE_ENTITY && is_mismatch(&**reason) =>
        {
            Outcome::Failed(Failure::TypeMismatch)
        }
        Some(reason) if reason.0.is::<Unhandled>() => Outcome::Failed(Failure::Unhandled),
        _ => Outcome::Failed(Failure::Status(status.as_u16())),
    };
    HandlerEnd::Is(outcome, reason.map(|reason| reason.0))
}
