//! The error of a handler that uses `?`, and the answers of this crate's own errors.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};

use super::failure_reason::FailureReason;
use super::handler::IntoAnswer;
use super::marks::{AlreadyHandled, DeadLetter, Unhandled};
use crate::dedupe::{NotFresh, StoreError};
use crate::event::EventError;
use crate::readable::{Chain, sources};

/// The error of a handler that passes on any error with `?`.
///
/// The answer is 500 with an empty body, so the claim is released and the sender tries again. If one of the reasons is an error of
/// this crate, at any depth below an error of yours or of another crate, the answer is the one of that error: 422 for an [`EventError`](crate::event::EventError), 503 for a
/// [`StoreError`](crate::dedupe::StoreError), and for `NotFresh`, as `claim_in(…)?.fresh()?` passes it on, 200 for a duplicate and 503 for
/// an event that another transaction holds. [`AlreadyHandled`], [`DeadLetter`] and [`Unhandled`] keep their answers as well.
/// **The sender never gets a word of the error.** The operator gets it as a
/// [`FailureReason`], with its chain of sources: in the hooks, in the span and the log, in the delivery log, and in
/// `hookgate inbox list`. These show at most 2 KiB of it, the inbox 512 bytes.
///
/// It works in axum handlers, in [`Receiver::handle`](crate::Receiver::handle), in the arms of the event router, and in the
/// workers of an inbox. It is made from each type that converts to `Box<dyn Error + Send + Sync>`: all errors, `anyhow::Error`,
/// and texts. Therefore it is not itself an [`Error`].
///
/// For another status, [`mark`](FailureReason::mark) a response with a `FailureReason`.
///
/// ```
/// use hookgate::layer::IntoAnswer;
/// use hookgate::{Delivery, HandlerError};
/// use http::StatusCode;
///
/// async fn on_delivery(delivery: Delivery) -> Result<StatusCode, HandlerError> {
///     std::fs::write("/no/such/folder/event", delivery.body())?; // 500, and the operator reads why
///     Ok(StatusCode::NO_CONTENT)
/// }
/// # let _ = |delivery| on_delivery(delivery);
///
/// fn total(text: &str) -> Result<u32, HandlerError> {
///     if text.is_empty() {
///         return Err("the order has no total".into());
///     }
///     Ok(text.parse()?)
/// }
///
/// assert_eq!(total("12").unwrap(), 12);
/// assert_eq!(format!("{:?}", total("").unwrap_err()), "HandlerError(the order has no total)");
/// let answer = total("twelve").unwrap_err().into_answer();
/// assert_eq!((answer.status().as_u16(), &answer.body()[..]), (500, &b""[..]));
/// ```
///
/// # Security
/// Text that an error contains, such as a row that a database refused, is in the operator's log. It is not redacted.
#[must_use = "an error must be returned as the handler's answer"]
pub struct HandlerError(FailureReason);

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self(FailureReason::new(error))
    }
}

impl IntoAnswer for HandlerError {
    fn into_answer(self) -> Response<Bytes> {
        of_reason(self.0)
    }
}

/// Shows the reason with its sources, for the tests of a handler.
impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HandlerError({})", Chain(&*self.0.0))
    }
}

/// In seconds. A transaction that holds a claim ends within the sender's time-out, or when its connection ends.
const TRY_AGAIN_AFTER: HeaderValue = HeaderValue::from_static("5");

impl IntoAnswer for EventError {
    fn into_answer(self) -> Response<Bytes> {
        FailureReason::new(self).mark(StatusCode::UNPROCESSABLE_ENTITY.into_answer())
    }
}

impl IntoAnswer for StoreError {
    fn into_answer(self) -> Response<Bytes> {
        unavailable(FailureReason::new(self))
    }
}

impl IntoAnswer for NotFresh {
    fn into_answer(self) -> Response<Bytes> {
        match self {
            Self::Duplicate { same_body: true } => AlreadyHandled::new().into_answer(),
            Self::Duplicate { same_body: false } => AlreadyHandled::with_other_body().into_answer(),
            Self::Held => unavailable(FailureReason::new(self)),
        }
    }
}

/// Returns the answer of a reason with sources: that of this crate's own error among them, and 500 where there is none.
fn of_reason(reason: FailureReason) -> Response<Bytes> {
    if is_mismatch(&*reason.0) {
        return reason.mark(StatusCode::UNPROCESSABLE_ENTITY.into_answer());
    }
    if let Some(answer) = sources(&*reason.0).find_map(of_mark) {
        return answer;
    }
    // `NotFresh` is held here: a duplicate has its answer.
    let is_unavailable = |error: &(dyn Error + 'static)| {
        of::<NotFresh>(error).is_some() || of::<StoreError>(error).is_some()
    };
    if sources(&*reason.0).any(is_unavailable) {
        return unavailable(reason);
    }
    reason.into_answer()
}

/// Returns the answer of an error that says more than that the handler failed.
fn of_mark(error: &(dyn Error + 'static)) -> Option<Response<Bytes>> {
    if let Some(duplicate @ NotFresh::Duplicate { .. }) = of(error) {
        return Some(duplicate.into_answer());
    }
    if let Some(already) = of::<AlreadyHandled>(error) {
        return Some(already.into_answer());
    }
    if let Some(letter) = of::<DeadLetter>(error) {
        return Some(letter.clone().into_answer());
    }
    let unhandled = of::<Unhandled>(error)?;
    Some(unhandled.clone().into_answer())
}

/// Whether an [`EventError`] is among the reasons: the event does not fit the type that the handler asks for.
pub(super) fn is_mismatch(reason: &(dyn Error + 'static)) -> bool {
    sources(reason).any(|error| of::<EventError>(error).is_some())
}

/// Returns the error if it is of this type, also behind the pointer by which the error of another crate shares or boxes it.
fn of<'e, T: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e T> {
    let shared = || error.downcast_ref::<Arc<T>>().map(|shared| &**shared);
    let boxed = || error.downcast_ref::<Box<T>>().map(|boxed| &**boxed);
    // A `Reason` can hold the error. Its `source` skips the error that it holds, so that error is looked at here.
    let reason = || {
        error
            .downcast_ref::<super::Reason>()
            .and_then(|reason| of(&**reason))
    };
    error
        .downcast_ref()
        .or_else(shared)
        .or_else(boxed)
        .or_else(reason)
}

/// The event is neither handled nor refused: a retry may find a database that works, or the end of another transaction.
fn unavailable(reason: FailureReason) -> Response<Bytes> {
    let mut answer = reason.mark(StatusCode::SERVICE_UNAVAILABLE.into_answer());
    answer.headers_mut().insert(RETRY_AFTER, TRY_AGAIN_AFTER);
    answer
}
