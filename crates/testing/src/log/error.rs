//! Errors of reading a delivery log.

use std::error::Error;
use std::io;

/// The reason why a delivery log can't be read.
///
/// It names a line by its number and a place in it by its column. It repeats nothing of the line's
/// content.
///
/// ```
/// use hookgate_testing::log::LogErrorKind;
/// use hookgate_testing::DeliveryLog;
///
/// let error = DeliveryLog::read("{\"received_at\":\n{}\n".as_bytes()).unwrap_err();
/// assert_eq!((error.kind(), error.line()), (LogErrorKind::BadLine, Some(1)));
/// assert_eq!(error.to_string(), "line 1 of the log is not a delivery");
///
/// let error = DeliveryLog::open("no/such/file.jsonl").unwrap_err();
/// assert_eq!((error.kind(), error.line()), (LogErrorKind::Unreadable, None));
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{}", self.message())]
pub struct LogError {
    kind: LogErrorKind,
    line: Option<u64>,
    source: Box<dyn Error + Send + Sync>,
}

/// The kinds of errors of a delivery log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LogErrorKind {
    /// The file can't be opened or read.
    Unreadable,
    /// A line is not a delivery.
    BadLine,
}

impl LogError {
    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> LogErrorKind {
        self.kind
    }

    /// The number of the bad line, from 1, where the error is in one line.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        self.line
    }

    pub(crate) fn unreadable(source: io::Error) -> Self {
        Self::new(LogErrorKind::Unreadable, source)
    }

    pub(crate) fn bad_line(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(LogErrorKind::BadLine, source)
    }

    pub(crate) fn at_line(mut self, number: u64) -> Self {
        self.line = Some(number);
        self
    }

    pub(crate) fn new(kind: LogErrorKind, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            kind,
            line: None,
            source: source.into(),
        }
    }

    fn message(&self) -> String {
        match (self.kind, self.line) {
            (LogErrorKind::Unreadable, _) => "the log can't be read".to_owned(),
            (LogErrorKind::BadLine, Some(line)) => {
                format!("line {line} of the log is not a delivery")
            }
            (LogErrorKind::BadLine, None) => "the line is not a delivery of a log".to_owned(),
        }
    }
}
