//! Handlers outside axum: the arguments that they may take, and the answers that they may give.

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use serde::de::DeserializeOwned;

use super::marks::{AlreadyHandled, DeadLetter, HandlerError, Unhandled};
use crate::dedupe::{NotFresh, StoreError};
use crate::event::{Event, EventError, EventErrorKind, Signed};
use crate::observe::Reason;
use crate::pipeline::Delivery;
use crate::readable::sources;

/// The argument of a handler of [`Receiver::handle`](crate::Receiver::handle): a [`Delivery`], an
/// [`Event<R>`](Event), a [`Signed<T>`](Signed), or a type of your own.
///
/// ```
/// use hookgate::layer::FromDelivery;
/// use hookgate::{Delivery, event::EventError};
///
/// /// For a handler that only passes on what came.
/// struct Raw(bytes::Bytes);
///
/// impl FromDelivery for Raw {
///     fn from_delivery(delivery: &Delivery) -> Result<Self, EventError> {
///         Ok(Self(delivery.body().clone()))
///     }
/// }
/// # fn received(body: &'static str, event_type: &str) -> Result<hookgate::Delivery, hookgate::verify::Malformed> {
/// #     let stored = hookgate::receiver::StoredDelivery::from_attributes(body, |name| match name {
/// #         "x-service-timestamp" => Some("1763690000"),
/// #         "x-service-event-id" => Some("evt_1"),
/// #         "x-service-event-type" => Some(event_type),
/// #         _ => None,
/// #     });
/// #     hookgate::dangerous::restore(&stored)
/// # }
///
/// let body = r#"{"id":"evt_1","type":"page.created"}"#;
/// let raw = Raw::from_delivery(&received(body, "page.created")?)?;
/// assert_eq!(raw.0, body);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait FromDelivery: Sized {
    /// Makes the argument from a delivery that is authentic, fresh and claimed.
    ///
    /// # Errors
    /// The delivery does not fit: it is answered 422 and released, and the operator gets the
    /// reason.
    fn from_delivery(delivery: &Delivery) -> Result<Self, EventError>;
}

impl FromDelivery for Delivery {
    fn from_delivery(delivery: &Delivery) -> Result<Self, EventError> {
        Ok(delivery.clone())
    }
}

impl<R: DeserializeOwned> FromDelivery for Event<R> {
    fn from_delivery(delivery: &Delivery) -> Result<Self, EventError> {
        delivery.event()
    }
}

impl<T: DeserializeOwned> FromDelivery for Signed<T> {
    fn from_delivery(delivery: &Delivery) -> Result<Self, EventError> {
        delivery.signed()
    }
}

/// The answer of a handler of [`Receiver::handle`](crate::Receiver::handle). 2xx commits the claim;
/// any other status releases it, and the sender tries again.
///
/// | answer | status | reported to the operator |
/// |---|---|---|
/// | `()` | 200 | |
/// | [`StatusCode`], `(StatusCode, Bytes)`, `Response<Bytes>` | its own | |
/// | [`EventError`], as `row.properties.to::<Order>()?` has it | 422 | path and reason |
/// | [`StoreError`](crate::dedupe::StoreError) | 503, `Retry-After` | the reason |
/// | `NotFresh`, of `claim_in(…)?.fresh()?` | duplicate: as `AlreadyHandled`; held event: 503, `Retry-After` | a replay; the reason |
/// | [`HandlerError`](super::HandlerError), as `?` makes it of any error | 500; for an error of this table, its answer | the reason |
/// | [`Unhandled`] | 204 | type and data model |
/// | [`AlreadyHandled`] | 200, empty, `Idempotent-Replayed: true` | that it is a replay |
/// | [`DeadLetter`] | 200 once its hook has succeeded, else 500 | the reason |
/// | `Result` of two of them | that of the answer it holds | |
///
/// ```
/// use hookgate::layer::IntoAnswer;
/// use hookgate::{DeadLetter, HandlerError};
/// use http::StatusCode;
///
/// fn book(total: u32) -> Result<StatusCode, HandlerError> {
///     if total > 1_000 {
///         return Err("no such sum in the ledger".into());
///     }
///     Ok(StatusCode::NO_CONTENT)
/// }
///
/// assert_eq!(().into_answer().status(), 200);
/// assert_eq!((StatusCode::CREATED, "kept".into()).into_answer().body(), "kept");
/// assert_eq!(book(10).into_answer().status(), 204);
/// assert_eq!(book(2_000).into_answer().status(), 500);
/// assert_eq!(DeadLetter::new("no such customer").into_answer().status(), 500); // until its hook is asked
/// ```
pub trait IntoAnswer {
    /// Returns the response. Its status decides whether the run has succeeded.
    fn into_answer(self) -> Response<Bytes>;
}

impl IntoAnswer for Response<Bytes> {
    fn into_answer(self) -> Response<Bytes> {
        self
    }
}

impl IntoAnswer for StatusCode {
    fn into_answer(self) -> Response<Bytes> {
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = self;
        response
    }
}

impl IntoAnswer for (StatusCode, Bytes) {
    fn into_answer(self) -> Response<Bytes> {
        let (status, body) = self;
        status.into_answer().map(|_| body)
    }
}

/// Answers 200: done, with an empty body. The same as in axum.
impl IntoAnswer for () {
    fn into_answer(self) -> Response<Bytes> {
        StatusCode::OK.into_answer()
    }
}

impl IntoAnswer for Unhandled {
    fn into_answer(self) -> Response<Bytes> {
        self.mark(StatusCode::NO_CONTENT.into_answer())
    }
}

impl IntoAnswer for AlreadyHandled {
    fn into_answer(self) -> Response<Bytes> {
        self.mark(StatusCode::OK.into_answer())
    }
}

impl IntoAnswer for DeadLetter {
    fn into_answer(self) -> Response<Bytes> {
        self.mark(StatusCode::INTERNAL_SERVER_ERROR.into_answer())
    }
}

impl<A: IntoAnswer, E: IntoAnswer> IntoAnswer for Result<A, E> {
    fn into_answer(self) -> Response<Bytes> {
        match self {
            Ok(answer) => answer.into_answer(),
            Err(error) => error.into_answer(),
        }
    }
}

/// The answer of a reason with sources: that of this crate's own error among them, and 500 where
/// there is none.
impl IntoAnswer for HandlerError {
    fn into_answer(self) -> Response<Bytes> {
        if is_mismatch(&*self.0) {
            return self.mark(StatusCode::UNPROCESSABLE_ENTITY.into_answer());
        }
        if let Some(answer) = sources(&*self.0).find_map(of_mark) {
            return answer;
        }
        // `NotFresh` is held here: a duplicate has its answer.
        let is_unavailable = |error: &(dyn Error + 'static)| {
            of::<NotFresh>(error).is_some() || of::<StoreError>(error).is_some()
        };
        if sources(&*self.0).any(is_unavailable) {
            return unavailable(self);
        }
        self.mark(StatusCode::INTERNAL_SERVER_ERROR.into_answer())
    }
}

/// In seconds. A transaction that holds a claim ends within the sender's time-out, or when its
/// connection ends.
const TRY_AGAIN_AFTER: HeaderValue = HeaderValue::from_static("5");

impl IntoAnswer for EventError {
    fn into_answer(self) -> Response<Bytes> {
        let status = match self.kind() {
            // A fault of the program: no delivery of this receiver has such events.
            EventErrorKind::OtherScheme => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        HandlerError::from(self).mark(status.into_answer())
    }
}

impl IntoAnswer for StoreError {
    fn into_answer(self) -> Response<Bytes> {
        unavailable(HandlerError::from(self))
    }
}

impl IntoAnswer for NotFresh {
    fn into_answer(self) -> Response<Bytes> {
        match self {
            Self::Duplicate { same_body: true } => AlreadyHandled::new().into_answer(),
            Self::Duplicate { same_body: false } => AlreadyHandled::with_other_body().into_answer(),
            Self::Running => unavailable(HandlerError::from(self)),
        }
    }
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

/// Whether an [`EventError`] is among the reasons: the event does not fit the type that the handler
/// asks for.
pub(super) fn is_mismatch(reason: &(dyn Error + 'static)) -> bool {
    let is_one = |error: &EventError| error.kind() != EventErrorKind::OtherScheme;
    sources(reason).any(|error| of::<EventError>(error).is_some_and(is_one))
}

/// Returns the error if it is of this type, also behind the pointer by which the error of another
/// crate shares or boxes it.
fn of<'e, T: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e T> {
    let shared = || error.downcast_ref::<Arc<T>>().map(|shared| &**shared);
    let boxed = || error.downcast_ref::<Box<T>>().map(|boxed| &**boxed);
    // A `Reason` can hold the error. Its `source` skips the error that it holds, so that error is
    // looked at here.
    let reason = || {
        error
            .downcast_ref::<Reason>()
            .and_then(|reason| of(&**reason))
    };
    error
        .downcast_ref()
        .or_else(shared)
        .or_else(boxed)
        .or_else(reason)
}

/// The event is neither handled nor refused: a retry may find a database that works, or the end of
/// another transaction.
fn unavailable(reason: HandlerError) -> Response<Bytes> {
    let mut answer = reason.mark(StatusCode::SERVICE_UNAVAILABLE.into_answer());
    answer.headers_mut().insert(RETRY_AFTER, TRY_AGAIN_AFTER);
    answer
}
