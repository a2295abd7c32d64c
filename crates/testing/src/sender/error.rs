//! Errors of a sender.

/// The reason why a subscription can't be made, or why a sender knows no such subscription.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct SenderError {
    kind: SenderErrorKind,
}

/// The kind of the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum SenderErrorKind {
    /// The text is neither a URL nor a path.
    #[error("expected a URL, or a path for a service in this process")]
    BadUrl,
    /// The subscription's id can't be a header's value: it is empty, or has control characters.
    #[error("the subscription's id fits no header: expected text without control characters")]
    BadSubscriptionId,
    /// The sender has no subscription of this id.
    #[error("the sender has no subscription of this id")]
    UnknownSubscription,
}

impl SenderError {
    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> SenderErrorKind {
        self.kind
    }

    pub(crate) fn new(kind: SenderErrorKind) -> Self {
        Self { kind }
    }
}
