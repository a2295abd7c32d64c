//! The answer for a delivery that can never succeed, and the hook that stores it.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;

use http::Response;

use crate::walk::Delivery;

/// The error of a dead-letter hook.
pub type HookError = Box<dyn Error + Send + Sync>;

pub(crate) type DeadLetterHook = dyn Fn(DeadLettered) -> Pin<Box<dyn Future<Output = Result<(), HookError>> + Send>>
    + Send
    + Sync;

/// A handler's answer: this delivery can never succeed, so retries do not help.
///
/// The dead-letter hook ([`ReceiverBuilder::on_dead_letter`](crate::ReceiverBuilder::on_dead_letter)) is awaited with the raw
/// delivery. If it succeeds, the sender is answered 200 and the event is done. If it fails, or no hook is set, the answer is
/// 500 and the event can be retried.
///
/// An axum handler returns it; a tower service [marks](Self::mark) its response with it.
///
/// ```
/// use hookgate::DeadLetter;
///
/// let response = DeadLetter::new("no such customer").mark(http::Response::new(()));
/// assert_eq!(response.status(), 500); // what is answered where the layer is missing
/// ```
#[derive(Clone, Debug)]
#[must_use = "a dead letter must be returned as the handler's answer"]
pub struct DeadLetter {
    reason: String,
}

impl DeadLetter {
    /// Makes a dead letter with a reason for the operator. The sender does not get the reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
        }
    }

    /// Returns the reason.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Marks a response, whose status becomes 500.
    pub fn mark<B>(self, mut response: Response<B>) -> Response<B> {
        *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
        response.extensions_mut().insert(self);
        response
    }
}

/// A delivery that can never succeed, for the dead-letter hook to store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeadLettered {
    /// The raw delivery.
    pub delivery: Delivery,
    /// The reason that the handler gave.
    pub reason: String,
}
