//! Errors of seeds.

use std::fmt;

/// The reason why a text is no seed, with the place.
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

    /// The message of serde_json ends with the place, which is shown first here.
    pub(super) fn of_json(error: &serde_json::Error) -> Self {
        let message = error.to_string();
        let place = message.rfind(" at line ").unwrap_or(message.len());
        Self::new(error.line(), error.column(), message[..place].to_owned())
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
