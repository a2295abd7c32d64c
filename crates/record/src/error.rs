//! The error of the recorder.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The reason why a delivery log can't be opened for writing, written, closed to other users, or rotated. The source is the
/// system's error. `Debug`, which a `main` that returns it prints, is one line with path and cause.
///
/// ```
/// use std::error::Error;
/// use hookgate_record::Recorder;
///
/// let error = Recorder::to("no/such/folder/log.jsonl").open().unwrap_err();
/// assert_eq!(error.to_string(), "the log no/such/folder/log.jsonl can't be written");
/// let cause = error.source().unwrap();
/// assert_eq!(format!("{error:?}"), format!("RecordError: {error}: {cause}"));
/// ```
pub struct RecordError {
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

impl RecordError {
    /// Returns the path of the log.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the log {} can't be written", self.path.display())
    }
}

impl fmt::Debug for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordError: {self}: {}", self.source)
    }
}

impl Error for RecordError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}
