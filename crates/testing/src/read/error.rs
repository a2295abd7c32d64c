//! Errors of reading a delivery from text.

use std::error::Error;
use std::fmt;

/// The reason why a delivery can't be read from text.
///
/// It repeats no header's value and no byte of a body.
#[derive(Debug)]
pub struct ReadError {
    kind: ReadErrorKind,
    line: Option<usize>,
}

/// The kinds of errors of reading a delivery from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The text has no header.
    NoHeaders,
    /// A line is no `Name: value`.
    BadHeader,
    /// The chunks of a body are not in the form of HTTP.
    BadChunk,
}

impl ReadError {
    pub(super) fn new(kind: ReadErrorKind) -> Self {
        Self { kind, line: None }
    }

    pub(super) fn at_line(mut self, number: usize) -> Self {
        self.line = Some(number);
        self
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ReadErrorKind {
        self.kind
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(match self.kind {
            ReadErrorKind::NoHeaders => "there is no header in it",
            ReadErrorKind::BadHeader => "that is not a header: `Name: value` is expected",
            ReadErrorKind::BadChunk => "the chunks of the body are not written as HTTP writes them",
        })
    }
}

impl Error for ReadError {}
