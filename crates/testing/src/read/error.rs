//! Errors of reading a delivery from text.

use std::error::Error;
use std::{fmt, io};

/// The reason why a delivery can't be read from text.
///
/// It repeats no header's value and no byte of a body.
#[derive(Debug)]
pub struct ReadError {
    kind: ReadErrorKind,
    at: Option<String>,
    source: Option<io::Error>,
}

/// The kinds of errors of reading a delivery from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The text has no header.
    NoHeaders,
    /// A line is not `Name: value`.
    BadHeader,
    /// The chunks of a body are not in the form of HTTP.
    BadChunk,
    /// The text is not a curl command.
    NotCurl,
    /// A quote has no end, or the quoting is that of another shell.
    BadQuoting,
    /// The text holds a variable or a substitution of the shell, whose value is not in the text.
    Variable,
    /// An option has no value.
    MissingValue,
    /// A file that the command names can't be read.
    Unreadable,
    /// The command sends a form of several parts: no delivery has this form.
    Multipart,
}

impl ReadError {
    pub(crate) fn new(kind: ReadErrorKind) -> Self {
        Self {
            kind,
            at: None,
            source: None,
        }
    }

    /// Sets the place: a line, an option, a file.
    pub(crate) fn at(mut self, place: impl Into<String>) -> Self {
        self.at = Some(place.into());
        self
    }

    pub(crate) fn caused_by(mut self, source: io::Error) -> Self {
        self.source = Some(source);
        self
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ReadErrorKind {
        self.kind
    }
}

impl ReadErrorKind {
    fn message(self) -> &'static str {
        match self {
            Self::NoHeaders => "there is no header in it",
            Self::BadHeader => "that is not a header: `Name: value` is expected",
            Self::BadChunk => "the chunks of the body are not written as HTTP writes them",
            Self::NotCurl => "that is not a curl command",
            Self::BadQuoting => {
                "a quote has no end; paste the command as for bash (browsers call it `Copy as cURL (bash)`)"
            }
            Self::Variable => {
                "a variable or a substitution of the shell: paste the command with what they stand for"
            }
            Self::MissingValue => "an option of the command has no value",
            Self::Unreadable => "a file that the command names can't be read",
            Self::Multipart => "a form of several parts, which no delivery is",
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.at {
            write!(f, "{place}: ")?;
        }
        f.write_str(self.kind.message())
    }
}

impl Error for ReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|error| error as _)
    }
}
