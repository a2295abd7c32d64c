//! A claim inside a transaction of the user: the values that its statement takes, and its result.

use std::time::Duration;

use super::key::{EventKey, body_digest};

/// The values to bind to the statement `CLAIM_IN`, of PostgreSQL or of SQLite: see there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimValues {
    key: EventKey,
    body: i64,
    retain_micros: i64,
}

impl ClaimValues {
    /// Returns the values of an event to the program of this name, remembered for `retain`. `body`
    /// is the body that was signed. [`Delivery::claim_values`](crate::Delivery::claim_values)
    /// returns those of a delivery.
    ///
    /// ```
    /// use std::time::Duration;
    /// use hookgate::dedupe::EventKey;
    /// use hookgate::dedupe::ClaimValues;
    ///
    /// let key = EventKey::new("default", "evt_1");
    /// let values = ClaimValues::new("orders", key, br#"{"id":"evt_1"}"#, Duration::from_secs(48 * 60 * 60));
    /// assert_eq!(values.key().len(), 16);
    /// assert_ne!(values.key(), ClaimValues::new("members", key, b"{}", Duration::ZERO).key());
    /// assert_eq!(values.retain_micros(), 172_800_000_000);
    /// ```
    #[must_use]
    pub fn new(name: &str, key: EventKey, body: &[u8], retain: Duration) -> Self {
        Self {
            key: key.named(name),
            body: body_digest(body).cast_signed(),
            retain_micros: micros(retain),
        }
    }

    /// Returns the first value: 16 bytes.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.key.as_bytes()
    }

    /// Returns the second value: a digest of the body, the same in every process and build.
    #[must_use]
    pub fn body(&self) -> i64 {
        self.body
    }

    /// Returns the third value: how long the event is remembered, in microseconds.
    #[must_use]
    pub fn retain_micros(&self) -> i64 {
        self.retain_micros
    }
}

/// Returns microseconds, limited to a hundred years, which a database can add to its time.
fn micros(time: Duration) -> i64 {
    const MAX: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);
    i64::try_from(time.min(MAX).as_micros()).unwrap_or(i64::MAX)
}
/// The result of a claim inside a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a claim that is not fresh must have no effects"]
pub enum ClaimedIn {
    /// The event belongs to this transaction: write the effects, and commit.
    Fresh,
    /// The event's effects are committed, or were written earlier in this transaction. Answer 2xx,
    /// and write none.
    Duplicate {
        /// Whether they were written for the same body.
        same_body: bool,
    },
    /// Another transaction has claimed the event and has not ended. Answer 503: its outcome is not
    /// known yet. On SQLite it does not occur, since one transaction writes at a time.
    Running,
}

impl ClaimedIn {
    /// Returns `Ok` where the event is fresh, for use with `?`.
    ///
    /// # Errors
    /// The event is not fresh. A handler returns the error as its answer, or passes it on with `?`
    /// as a `HandlerError`.
    ///
    /// ```
    /// use hookgate::dedupe::{ClaimedIn, NotFresh};
    ///
    /// assert_eq!(ClaimedIn::Fresh.fresh(), Ok(()));
    /// assert_eq!(ClaimedIn::Running.fresh(), Err(NotFresh::Running));
    /// ```
    pub fn fresh(self) -> Result<(), NotFresh> {
        match self {
            Self::Fresh => Ok(()),
            Self::Duplicate { same_body } => Err(NotFresh::Duplicate { same_body }),
            Self::Running => Err(NotFresh::Running),
        }
    }
}

/// The reason why a handler has nothing to do. As a handler's answer, also as a `HandlerError`, a
/// duplicate is 200 like `AlreadyHandled`, and a running event is 503 with `Retry-After`.
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
    Running,
}
