//! Errors of opening an inbox.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

/// The reason why an inbox could not be opened. The message says how to solve it.
///
/// ```
/// # #[cfg(feature = "inbox")] {
/// use hookgate::{Inbox, InboxErrorKind};
///
/// let error = Inbox::open("no/such/folder/inbox.db").unwrap_err();
/// assert_eq!(error.kind(), InboxErrorKind::Missing);
/// assert_eq!(
///     error.to_string(),
///     "no/such/folder/inbox.db: there is no such folder: make it first, writable for this program alone"
/// );
/// # }
/// ```
pub struct InboxError {
    kind: InboxErrorKind,
    path: PathBuf,
    advice: &'static str,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The kinds of errors on opening an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InboxErrorKind {
    /// The folder does not exist. Or the file does not exist or is empty, and it must not be created.
    Missing,
    /// This program may not read and write the file or the folder.
    Denied,
    /// The path is a folder or a device, a file that is no SQLite database, or the database of another program.
    NotAnInbox,
    /// The file is damaged.
    Corrupt,
    /// A newer version of this crate wrote the file.
    Newer,
    /// The file can't keep accepted deliveries durably: it is in memory, on a network file system, or in a place where SQLite
    /// can't work as required.
    NotDurable,
    /// The SQLite library of this program is a version that damages files.
    OldSqlite,
    /// Another process kept the file locked for longer than the waiting time.
    Busy,
    /// The disk is full, or the limit of pages is reached.
    Full,
    /// A setting is out of range.
    Setting,
    /// The system failed in another way; the source has the reason.
    Failed,
}

impl InboxError {
    pub(crate) fn new(kind: InboxErrorKind, path: &Path, advice: &'static str) -> Self {
        Self {
            kind,
            path: path.to_owned(),
            advice,
            source: None,
        }
    }

    pub(crate) fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> InboxErrorKind {
        self.kind
    }

    /// The path of the file, as the caller gave it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl fmt::Display for InboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.advice)
    }
}

impl fmt::Debug for InboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::readable::write_readably(f, "InboxError", &self.kind, self)
    }
}

impl Error for InboxError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
