//! Why a sender can't be told to deliver.

use std::error::Error;
use std::fmt;

/// Why a subscription can't be made, or a sender has nothing to send to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderError {
    kind: SenderErrorKind,
}

/// What was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SenderErrorKind {
    /// The URL is none, nor a path.
    BadUrl,
    /// The subscription's id fits no header: it is empty, or has control characters.
    BadSubscriptionId,
    /// The sender has no subscription of this id.
    UnknownSubscription,
}

impl SenderError {
    /// What was wrong.
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
