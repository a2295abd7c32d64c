//! Errors of a path into a sample event.

use std::error::Error;
use std::fmt;

/// The reason why no value can be set at a path of a sample event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathError {
    kind: PathErrorKind,
    path: String,
}

/// The kinds of errors of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathErrorKind {
    /// The path is empty, or has an empty step between two dots.
    EmptyStep,
    /// A step leads into a text, a number or a boolean.
    NoContainer,
    /// A step into a list is not a number, or is greater than the list's length.
    NoIndex,
}

impl PathError {
    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> PathErrorKind {
        self.kind
    }

    /// The path up to the step that failed.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn new(kind: PathErrorKind, path: String) -> Self {
        Self { kind, path }
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match self.kind {
            PathErrorKind::EmptyStep if path.is_empty() => f.write_str("the path is empty"),
            PathErrorKind::EmptyStep => write!(f, "a step of the path {path} is empty"),
            PathErrorKind::NoContainer => {
                write!(
                    f,
                    "{path} leads into a value that is neither an object nor a list"
                )
            }
            PathErrorKind::NoIndex => write!(f, "{path} is not a place in the list"),
        }
    }
}

impl Error for PathError {}
