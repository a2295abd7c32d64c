//! Why a store could not answer.

/// Why a store could not answer. Whatever was asked may or may not have taken effect.
#[derive(Debug, thiserror::Error)]
#[error("{}", .kind.message())]
pub struct StoreError {
    kind: StoreErrorKind,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The ways in which a store fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// It can't be reached, or answered with a fault.
    Unavailable,
    /// It did not answer in time.
    TimedOut,
    /// It is full and was told to refuse.
    Full,
    /// It takes everything else, and will never take this: a text outside of its encoding, or one that breaks a rule of its own. To
    /// ask again changes nothing.
    Refused,
}

impl StoreError {
    /// An error of this kind.
    #[must_use]
    pub fn new(kind: StoreErrorKind) -> Self {
        Self { kind, source: None }
    }

    /// Keeps what lies below.
    #[must_use]
    pub fn caused_by(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What went wrong.
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
