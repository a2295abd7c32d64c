//! Why a delivery is not authentic or not fresh.

use std::time::Duration;

use crate::UnixSeconds;

/// Why the headers of a delivery can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("header {header} {}", .kind.message())]
pub struct HeaderError {
    kind: HeaderErrorKind,
    header: &'static str,
}

/// What was wrong with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HeaderErrorKind {
    /// A header that must be there is not.
    Missing,
    /// It stands there more than once.
    Doubled,
    /// It is not written as the service writes it.
    Malformed,
}

impl HeaderError {
    pub(crate) fn new(kind: HeaderErrorKind, header: &'static str) -> Self {
        Self { kind, header }
    }

    /// What was wrong.
    #[must_use]
    pub fn kind(&self) -> HeaderErrorKind {
        self.kind
    }

    /// The header's name, in lower case.
    #[must_use]
    pub fn header(&self) -> &'static str {
        self.header
    }
}

impl HeaderErrorKind {
    fn message(self) -> &'static str {
        match self {
            Self::Missing => "is missing",
            Self::Doubled => "stands there more than once",
            Self::Malformed => "is not written as the service writes it",
        }
    }
}

/// Why a delivery was not accepted as authentic and fresh.
///
/// For the operator. A sender must not learn which kind it was: answer every one of them alike.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .kind.message())]
pub struct VerifyError {
    kind: VerifyErrorKind,
    #[source]
    source: Option<HeaderError>,
}

/// The ways to fail verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VerifyErrorKind {
    /// A header is missing, doubled or malformed; [`source()`](std::error::Error::source) names it.
    Header,
    /// The timestamp is older than the window allows.
    Stale {
        /// The delivery's timestamp.
        timestamp: UnixSeconds,
        /// What the receiver's clock said.
        now: UnixSeconds,
        /// The greatest age that is accepted.
        limit: Duration,
    },
    /// Stale, and its signature is right. The one sign that retries carry their first timestamp; checked at most once a
    /// second, by a [`Receiver`](crate::Receiver) only.
    StaleButAuthentic {
        /// The delivery's timestamp.
        timestamp: UnixSeconds,
        /// What the receiver's clock said.
        now: UnixSeconds,
        /// The greatest age that is accepted.
        limit: Duration,
    },
    /// The timestamp is further ahead of the receiver's clock than the window allows.
    Ahead {
        /// The delivery's timestamp.
        timestamp: UnixSeconds,
        /// What the receiver's clock said.
        now: UnixSeconds,
        /// The furthest ahead that is accepted.
        limit: Duration,
    },
    /// `X-Service-Webhook-Id` names no subscription that has keys here.
    UnknownSubscription,
    /// No live key of the ring gives this signature over these bytes.
    SignatureMismatch,
    /// The ring is pinned to a workspace, and the signed body names another or none.
    WorkspaceMismatch,
}

impl VerifyError {
    pub(crate) fn new(kind: VerifyErrorKind) -> Self {
        Self { kind, source: None }
    }

    /// What was wrong.
    #[must_use]
    pub fn kind(&self) -> VerifyErrorKind {
        self.kind
    }
}

impl From<HeaderError> for VerifyError {
    fn from(source: HeaderError) -> Self {
        Self {
            kind: VerifyErrorKind::Header,
            source: Some(source),
        }
    }
}

impl VerifyErrorKind {
    /// The same finding once the signature has turned out right.
    pub(crate) fn but_authentic(self) -> Self {
        match self {
            Self::Stale {
                timestamp,
                now,
                limit,
            } => Self::StaleButAuthentic {
                timestamp,
                now,
                limit,
            },
            other => other,
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Header => "the delivery's headers can't be used".into(),
            Self::Stale {
                timestamp,
                now,
                limit,
            } => format!(
                "the delivery is stale: its timestamp {timestamp} lies {} s before the clock's {now}, at most {} s are accepted",
                now.since(*timestamp).unwrap_or_default().as_secs(),
                limit.as_secs()
            ),
            Self::StaleButAuthentic { timestamp, now, .. } => format!(
                "the delivery is stale, yet authentic: signed {} s ago; do retries carry their first timestamp?",
                now.since(*timestamp).unwrap_or_default().as_secs()
            ),
            Self::Ahead {
                timestamp,
                now,
                limit,
            } => format!(
                "the delivery is ahead of its time: its timestamp {timestamp} lies {} s after the clock's {now}, at most {} s are accepted",
                timestamp.since(*now).unwrap_or_default().as_secs(),
                limit.as_secs()
            ),
            Self::UnknownSubscription => {
                "x-service-webhook-id names no subscription that has keys here".into()
            }
            Self::SignatureMismatch => {
                "the signature is not that of these bytes under any live key".into()
            }
            Self::WorkspaceMismatch => {
                "the signed body is not from the workspace that the keys are pinned to".into()
            }
        }
    }
}
