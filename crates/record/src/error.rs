//! The error of the recorder.

use std::io;

/// The reason why a delivery log can't be opened for writing, written, closed to other users, or rotated. The source is the
/// system's error.
///
/// ```
/// use std::error::Error;
/// use hookgate_record::Recorder;
///
/// let error = Recorder::to("no/such/folder/deliveries.jsonl").open().unwrap_err();
/// assert_eq!(error.to_string(), "the log can't be written");
/// assert!(error.source().is_some());
/// ```
#[derive(Debug, thiserror::Error)]
#[error("the log can't be written")]
pub struct RecordError {
    pub(crate) source: io::Error,
}
