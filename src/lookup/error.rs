//! Errors of looking up a subscription's keys.

use std::error::Error;

use crate::config::ConfigError;

/// An error of a provider: any error. Its text is reported to the operator.
pub(super) type ProviderError = Box<dyn Error + Send + Sync>;

/// The reason why a subscription's keys could not be looked up. The delivery is answered 503, never as an unknown subscription.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookupError {
    #[error("the provider of secrets could not answer")]
    Unavailable(#[source] ProviderError),
    /// The provider found a secret or a ring that is refused.
    #[error("the keys that the provider of secrets found can't be used")]
    Unusable(#[source] ProviderError),
    #[error("the provider of secrets did not answer in time")]
    TimedOut,
    #[error("the provider of secrets panicked")]
    Panicked,
    #[error("too many deliveries wait for look-ups already")]
    TooManyWaiting,
}

impl From<ProviderError> for LookupError {
    fn from(error: ProviderError) -> Self {
        if error.is::<ConfigError>() {
            Self::Unusable(error)
        } else {
            Self::Unavailable(error)
        }
    }
}
