//! Errors of seeds.

use std::fmt;

/// The reason why a text is not a seed, with its line and column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedError {
    line: usize,
    column: usize,
    message: String,
}

impl SeedError {
    pub(super) fn new(line: usize, column: usize, message: String) -> Self {
        Self {
            line,
            column,
            message,
        }
    }

    /// An error at this offset of the text.
    pub(super) fn at(text: &str, offset: usize, message: impl Into<String>) -> Self {
        let before = text.get(..offset).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before
            .chars()
            .rev()
            .take_while(|char| *char != '\n')
            .count()
            + 1;
        Self::new(line, column, message.into())
    }

    /// The message of serde_json ends with the place, which is shown first here. Its columns are bytes, from 0 in an empty line.
    pub(super) fn of_json(text: &str, error: &serde_json::Error) -> Self {
        let message = error.to_string();
        let place = message.rfind(" at line ").unwrap_or(message.len());
        let mut message = message[..place].to_owned();
        if !message.contains("expected") {
            message.push_str(expected(&message));
        }
        let line = text.lines().nth(error.line().saturating_sub(1));
        let before = line.unwrap_or_default().as_bytes();
        // An array or an object of another type is not read, so the place is that before it.
        let unread = ["invalid type: sequence", "invalid type: map"];
        let unread = unread.iter().any(|begin| message.starts_with(begin));
        let column = error.column() + usize::from(unread);
        let before = &before[..column.min(before.len())];
        let column = String::from_utf8_lossy(before).chars().count().max(1);
        Self::new(error.line().max(1), column, message)
    }

    /// Returns the line, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns the column in characters, from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }
}

/// What was expected, where the message of serde_json does not say it.
fn expected(message: &str) -> &'static str {
    if message.starts_with("missing field") {
        ", expected it in this object"
    } else if message.starts_with("duplicate field") {
        ", expected it once"
    } else if message.starts_with("a key begins") {
        ", expected another name"
    } else if message.starts_with("EOF") {
        ", expected the rest of the JSON"
    } else {
        ", expected JSON in the form of RFC 8259"
    }
}

impl fmt::Display for SeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}, column {}: {}",
            self.line, self.column, self.message
        )
    }
}

impl std::error::Error for SeedError {}
