//! Finds a value in the text of a seed, for the place in an error.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::SeedError;

/// One step from a value to a part of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    Field(&'a str),
    Item(usize),
}

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
