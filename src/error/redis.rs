//! Why a program should not start on this Redis.

use std::fmt;

/// Why claims can't be kept on this Redis. The message says what to change, and never shows the URL, which may hold a password.
#[derive(thiserror::Error)]
#[error("{}", .kind.message())]
pub struct RedisError {
    kind: RedisErrorKind,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What speaks against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisErrorKind {
    /// The URL is none of a Redis, or asks for what was not compiled in.
    Url,
    /// It can't be reached, does not answer, or refuses the login.
    Unreachable,
    /// It is older than Redis 7.0.
    TooOld,
    /// By its settings it may forget ids, and that was told to be refused. The source says which.
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

    /// What speaks against it.
    #[must_use]
    pub fn kind(&self) -> RedisErrorKind {
        self.kind
    }
}

impl fmt::Debug for RedisError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::write_readably(f, "RedisError", &self.kind, self)
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
