//! The answers of this crate's own errors, where a handler returns one or passes it on.

use std::error::Error;
use std::iter::successors;

use bytes::Bytes;
use http::header::{HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};

use super::failure_reason::FailureReason;
use super::handler::IntoAnswer;
use crate::dedupe::StoreError;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
use crate::effects::NotFresh;
use crate::event::EventError;

/// In seconds. A transaction that holds a claim ends within the sender's time-out, or when its connection ends.
const TRY_AGAIN_AFTER: HeaderValue = HeaderValue::from_static("5");

/// The most sources of a reason that are looked at.
const MOST_SOURCES: usize = 16;

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

#[cfg(any(feature = "postgres", feature = "sqlite"))]
impl IntoAnswer for NotFresh {
    fn into_answer(self) -> Response<Bytes> {
        use super::already_handled::AlreadyHandled;

        match self {
            Self::Duplicate { same_body: true } => AlreadyHandled::new().into_answer(),
            Self::Duplicate { same_body: false } => AlreadyHandled::with_other_body().into_answer(),
            Self::Held => unavailable(FailureReason::new(self)),
        }
    }
}

/// Returns the answer of a reason with sources: that of this crate's own error among them, and 500 where there is none.
pub(super) fn of_reason(reason: FailureReason) -> Response<Bytes> {
    if is_mismatch(&*reason.0) {
        return reason.mark(StatusCode::UNPROCESSABLE_ENTITY.into_answer());
    }
    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    let not_fresh = sources(&*reason.0).find_map(|error| error.downcast_ref::<NotFresh>().copied());
    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    match not_fresh {
        Some(NotFresh::Held) => return unavailable(reason),
        Some(duplicate) => return duplicate.into_answer(),
        None => {}
    }
    if sources(&*reason.0).any(|error| error.is::<StoreError>()) {
        return unavailable(reason);
    }
    reason.into_answer()
}

/// Whether an [`EventError`] is among the reasons: the event does not fit the type that the handler asks for.
pub(super) fn is_mismatch(reason: &(dyn Error + 'static)) -> bool {
    sources(reason).any(|error| error.is::<EventError>())
}

fn sources<'e>(
    reason: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    successors(Some(reason), |&error| error.source()).take(MOST_SOURCES)
}

/// The event is neither handled nor refused: a retry may find a database that works, or the end of another transaction.
fn unavailable(reason: FailureReason) -> Response<Bytes> {
    let mut answer = reason.mark(StatusCode::SERVICE_UNAVAILABLE.into_answer());
    answer.headers_mut().insert(RETRY_AFTER, TRY_AGAIN_AFTER);
    answer
}
