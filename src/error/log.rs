//! Why a delivery log can't be read.

use std::error::Error;
use std::fmt;

/// Why a delivery log can't be read.
#[derive(Debug)]
pub struct LogError {
    kind: LogErrorKind,
    line: Option<u64>,
    source: Box<dyn Error + Send + Sync>,
}

/// The ways in which a log can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LogErrorKind {
    /// The file can't be opened or read.
    Unreadable,
    /// A line is no delivery.
    BadLine,
}

impl LogError {
    /// In which way it failed.
    #[must_use]
    pub fn kind(&self) -> LogErrorKind {
        self.kind
    }

    /// The number of the line, from 1, where one is at fault.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        self.line
    }

    pub(crate) fn unreadable(source: std::io::Error) -> Self {
        Self {
            kind: LogErrorKind::Unreadable,
            line: None,
            source: Box::new(source),
        }
    }

    pub(crate) fn bad_line(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            kind: LogErrorKind::BadLine,
            line: None,
            source: source.into(),
        }
    }

    pub(crate) fn at_line(mut self, number: u64) -> Self {
        self.line = Some(number);
        self
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, self.line) {
            (LogErrorKind::Unreadable, _) => f.write_str("the log can't be read"),
            (LogErrorKind::BadLine, Some(line)) => {
                write!(f, "line {line} of the log is no delivery")
            }
            (LogErrorKind::BadLine, None) => f.write_str("the line is no delivery of a log"),
        }
    }
}

impl Error for LogError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}
