//! Errors of verification: why a delivery is not authentic or not fresh.

use std::time::Duration;

use crate::UnixSeconds;

/// A value that is not in the one form that the service writes. The wrong value is not part of this error on purpose: it came
/// from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not written as the service writes it")]
pub struct Malformed;

/// The reason why the headers of a delivery can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("header {header} {}", .kind.message())]
pub struct HeaderError {
    kind: HeaderErrorKind,
    header: &'static str,
}

/// The error in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HeaderErrorKind {
    /// A required header is missing.
    Missing,
    /// The header appears more than once.
    Duplicate,
    /// The header is not in the form that the service writes.
    Malformed,
}

impl HeaderError {
    pub(crate) fn new(kind: HeaderErrorKind, header: &'static str) -> Self {
        Self { kind, header }
    }

    /// The kind of the error.
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
            Self::Duplicate => "appears more than once",
            Self::Malformed => "is not written as the service writes it",
        }
    }
}

/// The reason why a delivery was not accepted as authentic and fresh.
///
/// It is for the operator. A sender must not learn the kind: give the same answer to all of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .kind.message())]
pub struct VerifyError {
    kind: VerifyErrorKind,
    #[source]
    source: Option<HeaderError>,
}

/// The kinds of failed verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VerifyErrorKind {
    /// A header is missing, doubled or malformed; [`source()`](std::error::Error::source) names it.
    Header,
    /// The timestamp is older than the window allows.
    Stale(Times),
    /// The timestamp is stale, but the signature is valid. This is the only sign that retries carry their first timestamp. It
    /// is checked at most eight times a second, and only by a [`Receiver`](crate::Receiver).
    StaleButAuthentic(Times),
    /// The timestamp is further ahead of the receiver's clock than the window allows.
    Ahead(Times),
    /// `X-Service-Webhook-Id` names no subscription that has keys here.
    UnknownSubscription,
    /// Rings are looked up by a provider, and the ring of this subscription was not looked up, or too long ago. Answer 503,
    /// not 401: it is not known whether the delivery is authentic. [`Receiver::open_async`](crate::Receiver::open_async)
    /// looks the ring up.
    NotLookedUp,
    /// No live key of the ring gives this signature for these bytes.
    SignatureMismatch,
    /// The ring is pinned to a workspace, and the signed body names another workspace or none.
    WorkspaceMismatch,
}

/// A timestamp outside the window, with the values that it was compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Times {
    /// The delivery's timestamp.
    pub timestamp: UnixSeconds,
    /// The time of the receiver's clock.
    pub now: UnixSeconds,
    /// The greatest accepted age, or the greatest accepted time ahead of the clock.
    pub limit: Duration,
}

/// A timestamp this many seconds ahead can't come from a wrong clock: milliseconds read as seconds lie fifty millennia ahead.
const CENTURY: u64 = 100 * 365 * 24 * 3600;

impl Times {
    /// Seconds since the timestamp; zero where it is ahead.
    fn age(&self) -> u64 {
        self.now.since(self.timestamp).unwrap_or_default().as_secs()
    }

    /// Seconds until the timestamp; zero where it is past.
    fn lead(&self) -> u64 {
        self.timestamp.since(self.now).unwrap_or_default().as_secs()
    }
}

impl VerifyError {
    pub(crate) fn new(kind: VerifyErrorKind) -> Self {
        Self { kind, source: None }
    }

    /// The kind of the error.
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
    /// A short name for logs and metrics, in snake case. Stable.
    ///
    /// ```
    /// assert_eq!(hookgate::VerifyErrorKind::SignatureMismatch.name(), "signature_mismatch");
    /// ```
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Stale(_) => "stale",
            Self::StaleButAuthentic(_) => "stale_but_authentic",
            Self::Ahead(_) => "ahead",
            Self::UnknownSubscription => "unknown_subscription",
            Self::NotLookedUp => "not_looked_up",
            Self::SignatureMismatch => "signature_mismatch",
            Self::WorkspaceMismatch => "workspace_mismatch",
        }
    }

    /// Returns the kind for a stale delivery whose signature is valid. All other kinds stay the same.
    pub(crate) fn but_authentic(self) -> Self {
        match self {
            Self::Stale(times) => Self::StaleButAuthentic(times),
            other => other,
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Header => "the delivery's headers can't be used".into(),
            Self::Stale(times) => format!(
                "the delivery is stale: its timestamp {} lies {} s before the clock's {}, at most {} s are accepted",
                times.timestamp,
                times.age(),
                times.now,
                times.limit.as_secs()
            ),
            Self::StaleButAuthentic(times) => format!(
                "the delivery is stale but authentic: signed {} s ago; do retries carry their first timestamp?",
                times.age()
            ),
            Self::Ahead(times) => format!(
                "the delivery is ahead of its time: its timestamp {} lies {} s after the clock's {}, at most {} s are accepted{}",
                times.timestamp,
                times.lead(),
                times.now,
                times.limit.as_secs(),
                if times.lead() > CENTURY {
                    "; is it written in milliseconds?"
                } else {
                    ""
                }
            ),
            Self::UnknownSubscription => {
                "x-service-webhook-id names no subscription that has keys here".into()
            }
            Self::NotLookedUp => {
                "the subscription's keys have not been looked up: open the delivery with .open_async(…)"
                    .into()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn times(timestamp: i64) -> Times {
        Times {
            timestamp: UnixSeconds::new(timestamp),
            now: UnixSeconds::new(1_763_690_000),
            limit: Duration::from_secs(300),
        }
    }

    #[test]
    fn milliseconds_are_guessed_only_where_no_clock_is_that_wrong() {
        let guesses = |timestamp| {
            let error = VerifyError::new(VerifyErrorKind::Ahead(times(timestamp)));
            error.to_string().contains("is it written in milliseconds?")
        };
        assert!(guesses(1_763_690_000_000));
        assert!(!guesses(1_763_690_301));
        assert!(!guesses(1_763_690_000 + 50 * 365 * 24 * 3600));
    }

    #[test]
    fn a_stale_delivery_that_was_authentic_says_so() {
        let kind = VerifyErrorKind::Stale(times(1_763_680_000));
        assert_eq!(kind.name(), "stale");
        let kind = kind.but_authentic();
        assert_eq!(kind.name(), "stale_but_authentic");
        let told = VerifyError::new(kind).to_string();
        assert!(
            told.contains("stale but authentic: signed 10000 s ago"),
            "{told}"
        );
        assert_eq!(VerifyErrorKind::Header.but_authentic().name(), "header");
    }
}
