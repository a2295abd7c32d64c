//! Errors of reading a delivery from text.

/// The reason why a delivery can't be read from text.
///
/// It repeats no header's value and no byte of a body.
#[derive(Debug, thiserror::Error)]
#[error("{}{kind}", .line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct ReadError {
    kind: ReadErrorKind,
    line: Option<usize>,
}

/// The kinds of errors of reading a delivery from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The text has no header.
    #[error("there is no header in it")]
    NoHeaders,
    /// A line is no `Name: value`.
    #[error("that is not a header: `Name: value` is expected")]
    BadHeader,
    /// The chunks of a body are not in the form of HTTP.
    #[error("the chunks of the body are not written as HTTP writes them")]
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
