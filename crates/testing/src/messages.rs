//! The messages of an error and of all its sources.

use std::error::Error;

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
