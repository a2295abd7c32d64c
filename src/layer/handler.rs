//! Handlers outside axum: the arguments that they may take, and the answers that they may give.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde::de::DeserializeOwned;

use super::failure_reason::FailureReason;
use super::marks::{AlreadyHandled, DeadLetter, Unhandled};
use crate::event::{Event, EventError};
use crate::walk::Delivery;

/// The argument of a handler of [`Receiver::handle`](crate::Receiver::handle): a [`Delivery`], an [`Event<R>`](Event), or a
/// type of your own.
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
/// # fn received(body: &'static [u8]) -> Result<Delivery, Box<dyn std::error::Error>> {
/// #     use hookgate::{
/// #         Receiver,
/// #         Secret,
/// #         clock::{Clock, SystemClock},
/// #         receiver::RequestHead,
/// #         verify::{Signature, Timestamp},
/// #     };
/// #     let secret = Secret::new("whsec_made_up_for_this_example")?;
/// #     let now = Timestamp::at(SystemClock.now())?;
/// #     let signature = Signature::sign(&secret, &now, body).to_header_value();
/// #     let headers = [("x-service-timestamp", now.as_str()), ("x-service-signature", &*signature)];
/// #     let receiver = Receiver::builder().secret(secret).without_deduplication().build()?;
/// #     let head = RequestHead::new("POST", headers);
/// #     let mut intake = receiver.open(&head)?;
/// #     intake.push(body.into())?;
/// #     Ok(receiver.recognise(intake, &head)?)
/// # }
///
/// let body = br#"{"id":"evt_1","type":"page.created"}"#;
/// let raw = Raw::from_delivery(&received(body)?)?;
/// assert_eq!(raw.0, body.as_slice());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait FromDelivery: Sized {
    /// Makes the argument from a delivery that is authentic, fresh and claimed.
    ///
    /// # Errors
    /// The delivery does not fit: it is answered 422 and released, and the operator gets the reason.
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

/// The answer of a handler of [`Receiver::handle`](crate::Receiver::handle). 2xx commits the claim; any other status releases
/// it, and the sender tries again.
///
/// | answer | status | reported to the operator |
/// |---|---|---|
/// | `()` | 200 | |
/// | [`StatusCode`], `(StatusCode, Bytes)`, `Response<Bytes>` | its own | |
/// | [`EventError`], as `row.properties.to::<Order>()?` has it | 422 | path and reason |
/// | [`FailureReason`] | 500 | the reason |
/// | [`StoreError`](crate::dedupe::StoreError) | 503, `Retry-After` | the reason |
/// | `NotFresh`, of `claim_in(…)?.fresh()?` | 200 as `AlreadyHandled` for a duplicate; 503, `Retry-After` for a held event | that it is a replay; the reason |
/// | [`HandlerError`](super::HandlerError), as `?` makes it of any error | 500; for one of the last three errors, its answer | the reason |
/// | [`Unhandled`] | 204 | type and data model |
/// | [`AlreadyHandled`] | 200, empty, `Idempotent-Replayed: true` | that it is a replay |
/// | [`DeadLetter`] | 200 once its hook has succeeded, else 500 | the reason |
/// | `Result` of two of them | that of the answer it holds | |
///
/// ```
/// use hookgate::layer::IntoAnswer;
/// use hookgate::{DeadLetter, layer::FailureReason};
/// use http::StatusCode;
///
/// fn book(total: u32) -> Result<StatusCode, FailureReason> {
///     if total > 1_000 {
///         return Err(FailureReason::new("no such sum in the ledger"));
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

impl IntoAnswer for FailureReason {
    fn into_answer(self) -> Response<Bytes> {
        self.mark(StatusCode::INTERNAL_SERVER_ERROR.into_answer())
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
