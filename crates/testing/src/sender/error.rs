//! Errors of a sender.

use std::error::Error;
use std::fmt;

/// The reason why a subscription can't be made, or why a sender knows no such subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderError {
    kind: SenderErrorKind,
}

/// The kind of the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SenderErrorKind {
    /// The text is neither a URL nor a path.
    BadUrl,
    /// The subscription's id can't be a header's value: it is empty, or has control characters.
    BadSubscriptionId,
    /// The sender has no subscription of this id.
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

impl fmt::Display for SenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            SenderErrorKind::BadUrl => "expected a URL, or a path for a service in this process",
            SenderErrorKind::BadSubscriptionId => {
                "the subscription's id fits no header: expected text without control characters"
            }
            SenderErrorKind::UnknownSubscription => "the sender has no subscription of this id",
        })
    }
}

impl Error for SenderError {}
