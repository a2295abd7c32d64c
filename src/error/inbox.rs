//! Why an inbox could not be opened.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why an inbox could not be opened. The message says what to do.
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

/// The ways in which an inbox can't be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InboxErrorKind {
    /// The folder is not there, or, where none is to be made, the file is not, or it is empty.
    Missing,
    /// File or folder may not be read and written by this program.
    Denied,
    /// What is there is a folder or a device, no SQLite database, or that of another program.
    NotAnInbox,
    /// The file is damaged.
    Corrupt,
    /// A newer version of this crate has written the file.
    Newer,
    /// What is accepted could not be kept there: in memory, on a network's file system, or where SQLite can't do as it must.
    NotDurable,
    /// The SQLite that this program is linked with damages files.
    OldSqlite,
    /// Another process has kept the file locked for longer than is waited.
    Busy,
    /// There is no room on the disk, or none that the limit of pages allows.
    Full,
    /// A setting is out of range.
    Setting,
    /// The system failed in another way; the source says how.
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

    /// In which way it failed.
    #[must_use]
    pub fn kind(&self) -> InboxErrorKind {
        self.kind
    }

    /// The file that was to be opened, as it was named.
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
        super::write_readably(f, "InboxError", &self.kind, self)
    }
}

impl Error for InboxError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
