//! The position of an error in JSON.

use serde_json::error::Category;

use super::{LogError, LogErrorKind};

/// Holds the position, and not the parser's message: that message would repeat the text of the line.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{what} at column {column}")]
struct JsonErrorAt {
    what: &'static str,
    column: usize,
}

pub(super) fn json_error(kind: LogErrorKind, error: &serde_json::Error) -> LogError {
    let what = match error.classify() {
        Category::Eof => "it breaks off",
        Category::Data => "it is JSON of another shape",
        Category::Io | Category::Syntax => "it is no JSON",
    };
    let column = error.column();
    LogError::new(kind, JsonErrorAt { what, column })
}
