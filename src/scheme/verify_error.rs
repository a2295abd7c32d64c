//! The reasons why a delivery is not accepted as authentic and fresh.

use std::time::Duration;

use crate::clock::UnixSeconds;

/// A value that is not in the one form that the service writes. The wrong value is not part of this
/// error on purpose: it came from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not written as the service writes it")]
pub struct Malformed;

/// The reason why a delivery was not accepted as authentic and fresh.
///
/// It is for the operator. A sender must not learn the kind: give the same answer to all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct VerifyError {
    kind: VerifyErrorKind,
}

/// The kinds of failed verification. `Display` writes the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyErrorKind {
    /// The header of this name, in lower case, is missing.
    #[error("header {0} is missing")]
    HeaderMissing(&'static str),
    /// The header of this name appears more than once.
    #[error("header {0} appears more than once")]
    HeaderRepeated(&'static str),
    /// The header of this name is not in the form that the service writes.
    #[error("header {0} is not written as the service writes it")]
    HeaderMalformed(&'static str),
    /// The timestamp is older than the window allows.
    #[error(
        "the delivery is stale: its timestamp {} lies {} s before the clock's {}, at most {} s are accepted",
        .0.timestamp, .0.age(), .0.now, .0.limit.as_secs()
    )]
    Stale(StaleTimes),
    /// The timestamp is further ahead of the receiver's clock than the window allows.
    #[error(
        "the delivery is ahead of its time: its timestamp {} lies {} s after the clock's {}, at most {} s are accepted{}",
        .0.timestamp, .0.lead(), .0.now, .0.limit.as_secs(), .0.guess()
    )]
    Ahead(StaleTimes),
    /// `X-Service-Webhook-Id`, or what another scheme has in its place, names no subscription that
    /// has keys here.
    #[error("the delivery names no subscription that has keys here")]
    UnknownSubscription,
    /// Rings are looked up by a provider, and the ring of this subscription was not looked up, or
    /// too long ago. Answer 503, not 401: it is not known whether the delivery is authentic.
    /// [`Receiver::check_head_async`](crate::Receiver::check_head_async) looks the ring up.
    #[error(
        "the subscription's keys have not been looked up: check the head with .check_head_async(…)"
    )]
    NotLookedUp,
    /// No live key of the ring gives this signature for these bytes.
    #[error("the signature is not that of these bytes under any live key")]
    SignatureMismatch,
    /// The signature is right, and its timestamp is after the end date of the key: see
    /// [`KeyRing::with_key_until`](crate::KeyRing::with_key_until).
    #[error("the key that has signed the delivery had ended by then")]
    KeyEnded,
    /// The ring is pinned to a workspace, and the signed body names another workspace or none.
    #[error("the signed body is not from the workspace that the keys are pinned to")]
    WorkspaceMismatch,
    /// The parts of a [`StoredDelivery`](crate::receiver::StoredDelivery) name another scope than
    /// the keys of its subscription have.
    #[error("the stored delivery is of another scope than the keys of its subscription")]
    ScopeMismatch,
    /// The headers, or the parts of a [`StoredDelivery`](crate::receiver::StoredDelivery), are of
    /// another [scheme](crate::Scheme) than the keys: read headers by
    /// [`Verifier::headers`](crate::Verifier::headers) or
    /// [`Receiver::request_head`](crate::Receiver::request_head).
    #[error("the delivery was read by another scheme than that of the keys")]
    SchemeMismatch,
    /// No live key of the ring gives the signature of a
    /// [`StoredDelivery`](crate::receiver::StoredDelivery), and the key that it names has left the
    /// ring.
    #[error(
        "the key that has signed the stored delivery is no longer in its ring: keep a retired key until its backlog is handled"
    )]
    KeyRemoved,
}

/// A timestamp outside the window, with the values that it was compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StaleTimes {
    /// The delivery's timestamp.
    pub timestamp: UnixSeconds,
    /// The time of the receiver's clock.
    pub now: UnixSeconds,
    /// The greatest accepted age, or the greatest accepted time ahead of the clock.
    pub limit: Duration,
}

/// A timestamp this many seconds ahead can't come from a wrong clock: milliseconds read as seconds
/// lie fifty millennia ahead.
const CENTURY: u64 = 100 * 365 * 24 * 3600;

impl StaleTimes {
    /// Seconds since the timestamp; zero where it is ahead.
    fn age(&self) -> u64 {
        self.now.since(self.timestamp).unwrap_or_default().as_secs()
    }

    /// Seconds until the timestamp; zero where it is past.
    fn lead(&self) -> u64 {
        self.timestamp.since(self.now).unwrap_or_default().as_secs()
    }

    /// The probable cause of a timestamp ahead of the clock.
    fn guess(&self) -> &'static str {
        if self.lead() > CENTURY {
            "; is it written in milliseconds?"
        } else {
            ""
        }
    }
}

impl VerifyError {
    pub(crate) fn new(kind: VerifyErrorKind) -> Self {
        Self { kind }
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> VerifyErrorKind {
        self.kind
    }
}

impl VerifyErrorKind {
    /// A short name for logs and metrics, in snake case. Stable.
    ///
    /// ```
    /// assert_eq!(hookgate::verify::VerifyErrorKind::SignatureMismatch.name(), "signature_mismatch");
    /// ```
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::HeaderMissing(_) | Self::HeaderRepeated(_) | Self::HeaderMalformed(_) => "header",
            Self::Stale(_) => "stale",
            Self::Ahead(_) => "ahead",
            Self::UnknownSubscription => "unknown_subscription",
            Self::NotLookedUp => "not_looked_up",
            Self::SignatureMismatch => "signature_mismatch",
            Self::KeyEnded => "key_ended",
            Self::WorkspaceMismatch => "workspace_mismatch",
            Self::ScopeMismatch => "scope_mismatch",
            Self::SchemeMismatch => "scheme_mismatch",
            Self::KeyRemoved => "key_removed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(timestamp: i64) -> StaleTimes {
        StaleTimes {
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
    fn the_message_names_the_header_and_the_label_does_not() {
        for (kind, message) in [
            (VerifyErrorKind::HeaderMissing("a"), "header a is missing"),
            (
                VerifyErrorKind::HeaderRepeated("a"),
                "header a appears more than once",
            ),
            (
                VerifyErrorKind::HeaderMalformed("a"),
                "header a is not written as the service writes it",
            ),
        ] {
            assert_eq!(VerifyError::new(kind).to_string(), message);
            assert_eq!(kind.name(), "header");
        }
    }
}
