//! Why a handler failed, told to the operator alone.

use std::error::Error;
use std::sync::Arc;

use http::Response;

use super::hooks::Reason;
use super::unhandled::Unhandled;
use crate::error::EventError;

/// Why a handler failed: carried by its response to the hooks, the log and [`Answer`](crate::Answer), and never to the sender.
///
/// The layer takes it out of the response's extensions. An axum handler's argument that the delivery does not fit brings
/// one along by itself.
///
/// ```
/// use hookgate::FailureReason;
///
/// let unavailable = http::Response::builder().status(503).body(())?;
/// let response = FailureReason::new("the database is down").mark(unavailable);
/// # let _ = response;
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a reason must be put into the handler's response"]
pub struct FailureReason(Reason);

impl FailureReason {
    /// From an error, or from a text.
    pub fn new(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(Arc::from(reason.into()))
    }

    /// Puts the reason into a response.
    pub fn mark<B>(self, mut response: Response<B>) -> Response<B> {
        response.extensions_mut().insert(self);
        response
    }

    /// Whether the delivery did not fit what the handler asked for.
    pub(super) fn is_misfit(&self) -> bool {
        self.0.is::<EventError>()
    }

    /// Whether nothing here handles such an event.
    pub(super) fn is_unhandled(&self) -> bool {
        self.0.is::<Unhandled>()
    }

    pub(super) fn into_inner(self) -> Reason {
        self.0
    }
}
