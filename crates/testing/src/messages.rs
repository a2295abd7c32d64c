//! The messages of an error and of all its sources.

use std::error::Error;
use std::fmt;

/// Returns the messages in one line, the error's own first.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(source) = below {
        text = format!("{text}: {source}");
        below = source.source();
    }
    text
}

/// An error that keeps only the messages of another, because that one can't go to another thread.
#[derive(Debug)]
pub(crate) struct Messages {
    message: String,
    source: Option<Box<Messages>>,
}

impl Messages {
    pub(crate) fn of(error: &dyn Error) -> Self {
        Self {
            message: error.to_string(),
            source: error.source().map(|source| Box::new(Self::of(source))),
        }
    }
}

impl fmt::Display for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Messages {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
