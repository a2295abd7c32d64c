//! The error of the recorder.

use std::error::Error;
use std::fmt;
use std::io;

/// The reason why a delivery log can't be written. The source is the system's error.
///
/// ```
/// use std::error::Error;
/// use hookgate::record::{RecordErrorKind, Recorder};
///
/// let error = Recorder::to("no/such/folder/deliveries.jsonl").open().unwrap_err();
/// assert_eq!(error.kind(), RecordErrorKind::Unwritable);
/// assert_eq!(error.to_string(), "the log can't be written");
/// assert!(error.source().is_some());
/// ```
#[derive(Debug)]
pub struct RecordError {
    source: io::Error,
}

/// The kinds of errors of a recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecordErrorKind {
    /// The file can't be opened for writing, written, closed to other users, or rotated.
    Unwritable,
}

impl RecordError {
    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> RecordErrorKind {
        RecordErrorKind::Unwritable
    }

    pub(super) fn unwritable(source: io::Error) -> Self {
        Self { source }
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the log can't be written")
    }
}

impl Error for RecordError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}
