//! The one error of secrets, keys, settings and arms that can't be used as they were given.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The reason why a secret, keys, the settings of a receiver or the arms of a router were refused.
/// The message says which of them to change, and how. It never repeats a secret.
///
/// ```
/// use hookgate::{ConfigErrorKind, Secret};
///
/// let error = Secret::new("tk_live_0123456789abcdef").unwrap_err();
/// assert_eq!(error.kind(), ConfigErrorKind::SecretApiKey);
/// assert!(error.to_string().starts_with("this is an API key"));
/// ```
#[derive(Clone)]
pub struct ConfigError {
    kind: ConfigErrorKind,
    /// In place of the message of the kind.
    message: Option<Cow<'static, str>>,
    name: Option<String>,
    source: Option<Arc<io::Error>>,
}

/// The kinds of errors of a configuration, as far as a program tells them apart. The message of the
/// error says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigErrorKind {
    /// The text can't be a secret of the service: it is empty or too short, has quotes or white
    /// space, or is not text.
    #[error("the text can't be a secret: paste the whole whsec_… text of the subscription")]
    UnusableSecret,
    /// The text can be guessed: it is one character or few, a placeholder, a mask, or a secret that
    /// this project has published.
    #[error("the secret can be guessed: paste the secret of your own subscription")]
    GuessableSecret,
    /// The text begins with a byte order mark, as some editors and PowerShell write it in front of
    /// a file.
    #[error("a byte order mark in front of the secret: save its file as UTF-8 without one")]
    SecretByteOrderMark,
    /// An API key of the service (`tk_live_`, `tk_test_`, `mcp_`) in place of the subscription's
    /// secret.
    #[error("this is an API key: paste the subscription's secret, which starts with whsec_")]
    SecretApiKey,
    /// The prefix `whsec_` is missing.
    #[error(
        "the secret does not start with whsec_: paste it whole, prefix included (Secret::unprefixed takes another form)"
    )]
    SecretWithoutPrefix,
    /// The environment variable is not set.
    #[error("the environment variable is not set")]
    SecretUnset,
    /// The file can't be read.
    #[error("the secret's file can't be read")]
    SecretUnreadable,
    /// Keys or rings that do not fit together: none, more than
    /// [`KeyRing::MAX_KEYS`](crate::KeyRing::MAX_KEYS), two with the same
    /// [name](ConfigError::name), secret or subscription, or one secret in two scopes, so that a
    /// delivery to one could be replayed to the other. Or a change that does not fit the keys: they
    /// are one ring, a map by subscription id, or those of a provider.
    #[error("these keys do not fit together")]
    UnusableKeys,
    /// A name, scope, workspace or subscription id that is empty, longer than 256 bytes, blank or
    /// has control characters.
    #[error(
        "a key name, scope, workspace or subscription id must be 1 to 256 bytes, not blank, without control characters"
    )]
    UnusableName,
    /// No secret was given.
    #[error(
        "no secret: call .secret(…), .key_ring(ring), .subscriptions(map) or .provider(lookup)"
    )]
    NoSecret,
    /// Another receiver with other keys uses this store under the same scope, and neither of them
    /// has named its scope: each could make events of the other look handled. Or a
    /// [`scope`](crate::ReceiverBuilder::scope) was set for keys that have their own.
    #[error("this scope can't be used")]
    UnusableScope,
    /// No store was given, and deduplication was not switched off.
    #[error(
        "no store: call .store(MemoryStore::default()), or .without_deduplication() if the handler deduplicates itself"
    )]
    NoStore,
    /// A store that would have no effect: beside `without_deduplication`, or beside the sink of
    /// `accept_into`, which does the deduplication itself.
    #[error(".store(…) has no effect here: leave it out")]
    StoreUnused,
    /// The retention is too short: handled events would be forgotten while the sender still retries
    /// them or a copy can be replayed.
    #[error("a retention of {} s is too short: {} s cover the sender's retries and the window", .given.as_secs(), .needed.as_secs())]
    RetentionTooShort {
        /// The retention that the retry schedule and the window need.
        needed: Duration,
        /// The retention that was set.
        given: Duration,
    },
    /// A duration is too short or too long.
    #[error("{setting} must be longer than {} ms and at most {} ms", .least.as_millis(), .most.as_millis())]
    OutOfRange {
        /// The builder's method.
        setting: &'static str,
        /// It must be longer than this.
        least: Duration,
        /// The longest that is accepted.
        most: Duration,
    },
    /// The budget for all request bodies has no room for one body of the largest accepted size.
    #[error(
        "a body_budget of {given} bytes has no room for one body of max_body bytes: call .body_budget({needed}) or more, or lower .max_body(…)"
    )]
    BodyBudgetTooSmall {
        /// The bytes that one body of `max_body` bytes needs.
        needed: usize,
        /// The budget that was set, or the default.
        given: usize,
    },
    /// A limit is zero: no delivery could ever be handled.
    #[error("{setting} must be at least 1")]
    Zero {
        /// The builder's method.
        setting: &'static str,
    },
    /// One of these: an arm is for a type or a data model that no event can have; an arm has no
    /// effect; two arms are for the same events; there is no arm.
    #[error("this arm takes no event")]
    UnusableArm,
    /// A [`Scheme`](crate::Scheme) that can't be safe, or that does not fit the keys or another
    /// setting.
    #[error("this scheme can't be used")]
    UnusableScheme,
}

impl ConfigError {
    /// Makes an error of this kind, for a crate whose settings belong to a receiver's.
    ///
    /// ```
    /// use hookgate::{ConfigError, ConfigErrorKind};
    ///
    /// let error = ConfigError::new(ConfigErrorKind::Zero { setting: "workers" });
    /// assert_eq!(error.to_string(), "workers must be at least 1");
    /// ```
    #[must_use]
    pub fn new(kind: ConfigErrorKind) -> Self {
        Self {
            kind,
            message: None,
            name: None,
            source: None,
        }
    }

    pub(crate) fn saying(kind: ConfigErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            message: Some(message.into()),
            ..Self::new(kind)
        }
    }

    /// Sets the name that the error is about: never the content of a secret.
    pub(crate) fn about(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the origin of a secret, a variable or a path, which precedes the message.
    pub(crate) fn with_origin(self, origin: String) -> Self {
        Self {
            message: Some(format!("{origin}: {self}").into()),
            ..self.about(origin)
        }
    }

    pub(crate) fn caused_by(mut self, source: io::Error) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ConfigErrorKind {
        self.kind
    }

    /// The name that the error is about, where there is one: of a key, a subscription, a variable,
    /// a file or an event type.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.message {
            Some(message) => f.write_str(message),
            None => self.kind.fmt(f),
        }
    }
}

impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::readable::write_readably(f, "ConfigError", &self.kind, self)
    }
}

impl Error for ConfigError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// The longest deadline or lease.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Checks that a duration is longer than `least` and not longer than `most`.
pub(crate) fn in_range(
    setting: &'static str,
    value: Duration,
    least: Duration,
    most: Duration,
) -> Result<(), ConfigError> {
    // This is longer than any useful value, and small enough that adding it to a reading of a clock
    // does not overflow.
    let most = most.min(LONGEST);
    if value <= least || value > most {
        return Err(ConfigError::new(ConfigErrorKind::OutOfRange {
            setting,
            least,
            most,
        }));
    }
    Ok(())
}
