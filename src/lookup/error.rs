//! Errors of looking up a subscription's keys.

use std::error::Error;

use crate::config::ConfigError;

/// The reason why a subscription's keys could not be looked up. The delivery is answered 503, never as an unknown
/// subscription.
///
/// ```
/// use std::error::Error;
/// use hookgate::lookup::{LookupError, LookupErrorKind};
///
/// let error = LookupError::unavailable("connection refused");
/// assert_eq!(error.kind(), LookupErrorKind::Unavailable);
/// assert_eq!(error.to_string(), "the provider of secrets could not answer");
/// assert_eq!(error.source().unwrap().to_string(), "connection refused");
/// ```
///
/// # Security
/// The operator sees the source, in logs and hooks: it must hold no part of a secret.
#[derive(Debug, thiserror::Error)]
#[error("{kind}")]
pub struct LookupError {
    kind: LookupErrorKind,
    #[source]
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The kinds of errors of a look-up. `Display` writes the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum LookupErrorKind {
    /// The provider could not answer; the source, if present, is the provider's own error.
    #[error("the provider of secrets could not answer")]
    Unavailable,
    /// The provider found keys that can't be used: a secret or a ring that is refused.
    #[error("the keys that the provider of secrets found can't be used")]
    Unusable,
    /// The provider did not answer in time.
    #[error("the provider of secrets did not answer in time")]
    TimedOut,
    /// The provider panicked.
    #[error("the provider of secrets panicked")]
    Panicked,
    /// The maximum number of deliveries already waits for look-ups.
    #[error("too many deliveries wait for look-ups already")]
    TooManyWaiting,
}

impl LookupError {
    /// Makes an error of this kind.
    #[must_use]
    pub fn new(kind: LookupErrorKind) -> Self {
        Self { kind, source: None }
    }

    /// Makes the error that the provider could not answer, with its cause.
    #[must_use]
    pub fn unavailable(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(LookupErrorKind::Unavailable).caused_by(source)
    }

    /// Makes the error that the provider found unusable keys, with its cause.
    #[must_use]
    pub fn unusable(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(LookupErrorKind::Unusable).caused_by(source)
    }

    /// Converts the error of a provider that is a function: a `LookupError` is kept, and errors of this crate about secrets
    /// and rings become `Unusable`. All others become `Unavailable`.
    pub(crate) fn of_provider(error: Box<dyn Error + Send + Sync>) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => *error,
            Err(error) if error.is::<ConfigError>() => Self::unusable(error),
            Err(error) => Self::unavailable(error),
        }
    }

    /// Sets the cause. Its message must hold no secret.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> LookupErrorKind {
        self.kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyRing, Secret};

    #[test]
    fn errors_of_a_function_keep_their_kind_and_are_printed_once() {
        let of = |error: Box<dyn Error + Send + Sync>| {
            let error = LookupError::of_provider(error);
            let below = error.source().map(ToString::to_string);
            (error.kind(), below.unwrap_or_default())
        };
        let refused = "connection refused".to_owned();
        let unavailable = (LookupErrorKind::Unavailable, refused.clone());
        assert_eq!(of(refused.clone().into()), unavailable);
        assert_eq!(of(LookupError::unavailable(refused).into()), unavailable);
        let short = || Secret::new("whsec_short").unwrap_err();
        let name = KeyRing::named("", Secret::new("whsec_made_up_for_this_test").unwrap());
        for error in [
            Box::from(short()),
            LookupError::unusable(short()).into(),
            name.unwrap_err().into(),
        ] {
            assert_eq!(of(error).0, LookupErrorKind::Unusable);
        }
    }
}
