//! Errors of a store.

/// The reason why a store could not answer. The requested operation may or may not have taken effect.
#[derive(Debug, thiserror::Error)]
#[error("{}", .kind.message())]
pub struct StoreError {
    kind: StoreErrorKind,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The kinds of errors of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The store can't be reached, or answered with a fault.
    Unavailable,
    /// The store did not answer in time.
    TimedOut,
    /// The store is full, and is set to refuse new events.
    Full,
    /// The store accepts other requests, but will never accept this one: it holds a text outside of the store's encoding, or
    /// violates another rule of the store. A second try gives the same result.
    Refused,
}

impl StoreError {
    /// Makes an error of this kind.
    #[must_use]
    pub fn new(kind: StoreErrorKind) -> Self {
        Self { kind, source: None }
    }

    /// Sets the cause.
    #[must_use]
    pub fn caused_by(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

impl StoreErrorKind {
    fn message(self) -> &'static str {
        match self {
            Self::Unavailable => "the store is unavailable",
            Self::TimedOut => "the store did not answer in time",
            Self::Full => "the store is full and refuses new events",
            Self::Refused => "the store refuses this for good: to ask again changes nothing",
        }
    }
}
