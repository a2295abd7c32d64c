//! What a claim in a transaction found, and what that answers.

/// What a claim inside a transaction found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a claim that is not fresh must have no effects"]
pub enum ClaimedIn {
    /// The event is this transaction's: have the effects, and commit.
    Fresh,
    /// The event's effects are committed, or were made earlier in this transaction. Answer 2xx, and have none.
    Duplicate {
        /// Whether they were made for the same body.
        same_body: bool,
    },
    /// Another transaction has claimed the event and has not ended. Answer 503: how it ends is not known yet.
    Held,
}

impl ClaimedIn {
    /// Goes on where the event is fresh.
    ///
    /// # Errors
    /// It is not. An axum handler returns the error as its answer.
    ///
    /// ```
    /// use hookgate::postgres::{ClaimedIn, NotFresh};
    ///
    /// assert_eq!(ClaimedIn::Fresh.fresh(), Ok(()));
    /// assert_eq!(ClaimedIn::Held.fresh(), Err(NotFresh::Held));
    /// ```
    pub fn fresh(self) -> Result<(), NotFresh> {
        match self {
            Self::Fresh => Ok(()),
            Self::Duplicate { same_body } => Err(NotFresh::Duplicate { same_body }),
            Self::Held => Err(NotFresh::Held),
        }
    }
}

/// Why a handler has nothing to do. As an axum handler's answer, a duplicate is 200 as `AlreadyHandled` has it, and
/// one that is held 503 with `Retry-After`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFresh {
    /// The event's effects are committed.
    #[error("the event's effects are committed already")]
    Duplicate {
        /// Whether they were made for the same body.
        same_body: bool,
    },
    /// Another transaction is at it.
    #[error("another transaction has claimed the event and has not ended")]
    Held,
}
