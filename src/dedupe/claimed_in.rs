//! The result of a claim in a transaction, and the answer that it leads to.

/// The result of a claim inside a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a claim that is not fresh must have no effects"]
pub enum ClaimedIn {
    /// The event belongs to this transaction: write the effects, and commit.
    Fresh,
    /// The event's effects are committed, or were written earlier in this transaction. Answer 2xx, and write none.
    Duplicate {
        /// Whether they were written for the same body.
        same_body: bool,
    },
    /// Another transaction has claimed the event and has not ended. Answer 503: its outcome is not known yet. On SQLite it does not
    /// occur, since one transaction writes at a time.
    Held,
}

impl ClaimedIn {
    /// Returns `Ok` where the event is fresh, for use with `?`.
    ///
    /// # Errors
    /// The event is not fresh. A handler returns the error as its answer, or passes it on with `?` as a `HandlerError`.
    ///
    /// ```
    /// use hookgate::dedupe::{ClaimedIn, NotFresh};
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

/// The reason why a handler has nothing to do. As a handler's answer, also as a `HandlerError`, a duplicate is 200 like
/// `AlreadyHandled`, and a held event is 503 with `Retry-After`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFresh {
    /// The event's effects are committed.
    #[error("the event's effects are committed already")]
    Duplicate {
        /// Whether they were written for the same body.
        same_body: bool,
    },
    /// Another transaction handles the event.
    #[error("another transaction has claimed the event and has not ended")]
    Held,
}
