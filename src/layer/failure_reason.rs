//! The reason of a failed handler, for the operator only.

use std::error::Error;
use std::sync::Arc;

use http::Response;

use crate::observe::Reason;

/// The reason why a handler failed. Its response carries it to the hooks, the log and [`Answer`](crate::layer::Answer), and never to
/// the sender.
///
/// The layer takes it out of the response's extensions. If the delivery does not fit an argument of an axum handler, that
/// rejection brings a reason by itself.
///
/// ```
/// use hookgate::layer::FailureReason;
///
/// let unavailable = http::Response::builder().status(503).body(())?;
/// let response = FailureReason::new("the database is down").mark(unavailable);
/// # let _ = response;
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a reason must be put into the handler's response"]
pub struct FailureReason(pub(super) Reason);

impl FailureReason {
    /// Makes a reason from an error, or from a text.
    pub fn new(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(Arc::from(reason.into()))
    }

    pub(crate) fn into_reason(self) -> Reason {
        self.0
    }

    /// Puts the reason into a response.
    pub fn mark<B>(self, mut response: Response<B>) -> Response<B> {
        response.extensions_mut().insert(self);
        response
    }
}
