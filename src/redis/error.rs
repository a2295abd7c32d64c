//! Errors of a Redis that can't be used as a store.

use std::fmt;

/// The reason why claims can't be kept on this Redis. The message says which setting to change, and never shows the URL,
/// which may hold a password.
#[derive(thiserror::Error)]
#[error("{}", .kind.message())]
pub struct RedisError {
    kind: RedisErrorKind,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The kind of the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisErrorKind {
    /// The URL is no Redis URL, or needs a feature that was not compiled in.
    Url,
    /// Redis can't be reached, does not answer, or refuses the login.
    Unreachable,
    /// The server is older than Redis 7.0.
    TooOld,
    /// With its settings Redis may forget ids, and the program asked to refuse this. The source has the setting.
    Forgets,
}

impl RedisError {
    pub(crate) fn new(kind: RedisErrorKind) -> Self {
        Self { kind, source: None }
    }

    pub(crate) fn caused_by(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> RedisErrorKind {
        self.kind
    }
}

impl fmt::Debug for RedisError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::readable::write_readably(f, "RedisError", &self.kind, self)
    }
}

impl RedisErrorKind {
    fn message(self) -> &'static str {
        match self {
            Self::Url => {
                "this can't be used as a Redis URL: write redis://host:port, or rediss:// for TLS, which needs a TLS feature of the crate redis"
            }
            Self::Unreachable => {
                "Redis can't be reached: look at its address, its login and whether it runs"
            }
            Self::TooOld => "this Redis is too old: take Redis 7.0 or newer, or any Valkey",
            Self::Forgets => "this Redis may forget ids, so that events would run twice",
        }
    }
}
