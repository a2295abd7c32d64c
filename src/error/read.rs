//! Why a delivery can't be read from where somebody keeps it.

use std::error::Error;
use std::{fmt, io};

/// Why a delivery can't be read from text.
///
/// Repeats no header's value and no byte of a body.
#[derive(Debug)]
pub struct ReadError {
    kind: ReadErrorKind,
    at: Option<String>,
    source: Option<io::Error>,
}

/// The ways in which a delivery can't be read from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// No header is there.
    NoHeaders,
    /// A line is no `Name: value`.
    BadHeader,
    /// A body's chunks are not written as HTTP writes them.
    BadChunk,
    /// It is no curl command.
    NotCurl,
    /// A quote has no end, or the quoting is that of another shell.
    BadQuoting,
    /// A shell's variable or substitution: what it stands for is not in the text.
    Variable,
    /// An option has no value.
    MissingValue,
    /// A file that the command names can't be read.
    Unreadable,
    /// A form of several parts: no delivery is sent as one.
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

    /// Where: a line, an option, a file.
    pub(crate) fn at(mut self, place: impl Into<String>) -> Self {
        self.at = Some(place.into());
        self
    }

    pub(crate) fn caused_by(mut self, source: io::Error) -> Self {
        self.source = Some(source);
        self
    }

    /// In which way it failed.
    #[must_use]
    pub fn kind(&self) -> ReadErrorKind {
        self.kind
    }
}

impl ReadErrorKind {
    fn message(self) -> &'static str {
        match self {
            Self::NoHeaders => "there is no header in it",
            Self::BadHeader => "that is no header: `Name: value` is expected",
            Self::BadChunk => "the chunks of the body are not written as HTTP writes them",
            Self::NotCurl => "that is no curl command",
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
