//! The reason why a handler failed, for the operator only.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use http::Response;

use crate::observe::Reason;
use crate::readable::Chain;

/// The reason why a handler failed: the error of a handler that passes on any error with `?`.
///
/// The answer is 500 with an empty body, so the claim is released and the sender tries again. If one of the reasons is an error of
/// this crate, at any depth below an error of yours or of another crate, the answer is the one of that error: 422 for an
/// [`EventError`](crate::event::EventError), 503 for a [`StoreError`](crate::dedupe::StoreError), and for `NotFresh`, as
/// `claim_in(…)?.fresh()?` passes it on, 200 for a duplicate and 503 for an event that another transaction holds.
/// [`AlreadyHandled`](crate::layer::AlreadyHandled), [`DeadLetter`](crate::DeadLetter) and [`Unhandled`](crate::layer::Unhandled) keep
/// their answers as well. **The sender never gets a word of the error.** The operator gets it with its chain of sources: in the hooks and
/// [`Answer`](crate::layer::Answer), in the span and the log, in the delivery log, and in `hookgate inbox list`. These show at most
/// 2 KiB of it, the inbox 512 bytes.
///
/// It works in axum handlers, in [`Receiver::handle`](crate::Receiver::handle), in the arms of the event router, and in the
/// workers of an inbox. It is made from each type that converts to `Box<dyn Error + Send + Sync>`: all errors, `anyhow::Error`,
/// and texts. Therefore it is not itself an [`Error`].
///
/// For another status, [`mark`](Self::mark) a response.
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
#[derive(Clone)]
#[must_use = "an error must be returned as the handler's answer, or put into its response"]
pub struct HandlerError(pub(super) Reason);

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self(Arc::from(error.into()))
    }
}

impl HandlerError {
    /// Puts the reason into a response, whose status and body stay. The layer takes it out of the response's extensions.
    ///
    /// ```
    /// use hookgate::HandlerError;
    ///
    /// let unavailable = http::Response::builder().status(503).body(())?;
    /// let response = HandlerError::from("the database is down").mark(unavailable);
    /// assert_eq!(response.status(), 503);
    /// # Ok::<(), http::Error>(())
    /// ```
    pub fn mark<B>(self, mut response: Response<B>) -> Response<B> {
        response.extensions_mut().insert(self);
        response
    }

    pub(crate) fn into_reason(self) -> Reason {
        self.0
    }
}

/// Shows the reason with its sources, for the tests of a handler.
impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HandlerError({})", Chain(&*self.0))
    }
}
