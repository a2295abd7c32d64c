//! The error of every store: claims, inboxes, and what opens and migrates them.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::readable::write_readably;

/// The reason why a store could not answer, or can't be used.
///
/// The message has the next step to take; it never shows a URL, which may hold a password. `Debug`
/// shows the message with all causes, for a `main` that returns the error. After a call that
/// failed, the requested operation may or may not have taken effect.
///
/// ```
/// use hookgate::dedupe::{StoreError, StoreErrorKind};
///
/// let error = StoreError::new(StoreErrorKind::Unavailable).caused_by("connection refused");
/// assert_eq!(error.to_string(), "the store is unavailable");
/// assert_eq!(format!("{error:?}"), "StoreError(Unavailable): the store is unavailable: connection refused");
/// ```
#[derive(Clone)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: Cow<'static, str>,
    /// Shared, since one failed commit is reported to all its callers.
    source: Option<Arc<dyn Error + Send + Sync>>,
    changed: u64,
}

/// The kinds of errors of a store. [`Refused`](Self::Refused) alone is permanent: a call that
/// failed with another kind can succeed later, once an operator has done what the message says or
/// without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The store can't be reached, refuses the login, or failed in another way; the source has the
    /// reason.
    Unavailable,
    /// The store did not answer in time, or another process or transaction held a lock for too
    /// long.
    TimedOut,
    /// The store is full, and refuses new events.
    Full,
    /// The store accepts other requests, but will never accept this one: it holds a text outside of
    /// the store's encoding, or violates another rule of the store. A second try gives the same
    /// result.
    Refused,
    /// Another transaction was faster: a serialization failure or a deadlock. Roll back and begin
    /// again, or answer 503.
    Conflict,
    /// The transaction had failed before, and accepts no more statements.
    Aborted,
    /// A file, a folder, a table or a schema is missing.
    Missing,
    /// The user or the role of this program lacks the permission.
    Denied,
    /// The path leads to a folder, a device, a file that is not an SQLite database, or the database
    /// of another program.
    NotAStore,
    /// The file is damaged, or the log beside it was written for another file.
    Corrupt,
    /// The server, or the SQLite library of this program, is too old.
    TooOld,
    /// A newer version of hookgate wrote the file.
    Newer,
    /// The store can lose what it has accepted: a file in memory, on a network file system, mounted
    /// without its folder or with a second name, or a Redis whose settings may forget ids.
    NotDurable,
    /// A setting can't work: the URL of a server, the name of an inbox, an option that is out of
    /// range, or a database in another encoding than UTF8.
    Setting,
}

impl StoreError {
    /// Makes an error of this kind.
    #[must_use]
    pub fn new(kind: StoreErrorKind) -> Self {
        Self::saying(kind, kind.message())
    }

    /// Makes an error with a message of its own, which says the next step to take.
    ///
    /// ```
    /// use hookgate::dedupe::{StoreError, StoreErrorKind};
    ///
    /// let message = "the server is too old: take version 7.0 or newer";
    /// let error = StoreError::saying(StoreErrorKind::TooOld, message).caused_by("it is version 6.2");
    /// assert_eq!(error.kind(), StoreErrorKind::TooOld);
    /// assert_eq!(error.to_string(), message);
    /// ```
    ///
    /// # Security
    /// The message and the cause are logged and shown: put no URL into them, which may hold a
    /// password, and no text of a delivery.
    #[must_use]
    pub fn saying(kind: StoreErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
            changed: 0,
        }
    }

    /// Sets the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into().into());
        self
    }

    /// Names the file that the error is about, before the message: `inbox.db: the store is full …`.
    #[must_use]
    pub fn about(mut self, file: &std::path::Path) -> Self {
        self.message = format!("{}: {}", file.display(), self.message).into();
        self
    }

    /// Adds the number of entries that an operator's call had changed before it failed.
    #[must_use]
    pub fn after_changes(mut self, changed: u64) -> Self {
        self.changed += changed;
        self
    }

    /// The number of entries that an operator's call, such as `Inbox::retry`, had changed before it
    /// failed. The message tells it too. 0 where none was changed, or where it is unknown.
    #[must_use]
    pub fn changed(&self) -> u64 {
        self.changed
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.changed {
            0 => Ok(()),
            changed => write!(f, "; entries changed before that: {changed}"),
        }
    }
}

impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_readably(f, "StoreError", &self.kind, self)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl StoreErrorKind {
    fn message(self) -> &'static str {
        match self {
            Self::Unavailable => "the store is unavailable",
            Self::TimedOut => "the store did not answer in time",
            Self::Full => "the store is full and refuses new events",
            Self::Refused => {
                "the store refuses this permanently: another try gives the same result"
            }
            Self::Conflict => {
                "another transaction was faster: roll back, and try again or answer 503"
            }
            Self::Aborted => "the transaction had failed before: roll it back",
            Self::Missing => "the store is missing: create it first",
            Self::Denied => "this program may not use the store: grant it the rights",
            Self::NotAStore => "this is not a store of hookgate: name another",
            Self::Corrupt => "the store is damaged: put a backup in its place",
            Self::TooOld => "the store is too old: use a newer version of it",
            Self::Newer => "a newer version of hookgate has written the store: use that one",
            Self::NotDurable => "the store can lose what it has accepted: use another",
            Self::Setting => "a setting of the store can't work: change it",
        }
    }
}
