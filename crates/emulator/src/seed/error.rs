//! Errors of seeds, and the places of wrong values in the text.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::value::RawValue;

use crate::body::told;
use crate::model::Step;

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

    /// The message of serde_json ends with the place, which is shown first here. Its columns are
    /// bytes, from 0 in an empty line.
    pub(super) fn of_json(text: &str, error: &serde_json::Error) -> Self {
        let message = told(error);
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

/// A value that no seed can have, by its path.
#[derive(Debug)]
pub(super) struct Wrong<'a> {
    pub(super) path: Vec<Step<'a>>,
    pub(super) message: String,
}

impl Wrong<'_> {
    /// Adds the place in the text from which the seed was read.
    pub(super) fn in_text(self, text: &str) -> SeedError {
        let offset = offset(text, &self.path).unwrap_or_default();
        SeedError::at(text, offset, self.message)
    }
}

/// Returns the offset of the value; that of its nearest parent where the text leaves the value out.
#[expect(clippy::disallowed_methods, reason = "only raw texts are made of it")]
fn offset(text: &str, path: &[Step<'_>]) -> Option<usize> {
    let mut part: &RawValue = serde_json::from_str(text).ok()?;
    for step in path {
        let next: Option<&RawValue> = match step {
            Step::Field(name) => {
                let fields: BTreeMap<String, &RawValue> = serde_json::from_str(part.get()).ok()?;
                fields.get(*name).copied()
            }
            Step::Item(at) => {
                let items: Vec<&RawValue> = serde_json::from_str(part.get()).ok()?;
                items.get(*at).copied()
            }
        };
        match next {
            Some(next) => part = next,
            None => break,
        }
    }
    // The part borrows from the text.
    let offset = (part.get().as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    text.is_char_boundary(offset).then_some(offset)
}
