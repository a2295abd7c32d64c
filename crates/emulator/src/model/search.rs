//! Words that are searched for in the rows of a data model.

use std::fmt::Write as _;

use serde_json::Value;

use super::{DataModel, Row};

/// Words, each of which has to occur in a row: in its id, in its values or in the label of an option. No words fit each row.
#[derive(Debug)]
pub(crate) struct Search(Vec<String>);

impl Search {
    pub(crate) fn parse(text: &str) -> Self {
        Self(text.split_whitespace().map(str::to_lowercase).collect())
    }

    pub(crate) fn takes(&self, model: &DataModel, row: &Row) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let mut text = row.id.clone();
        for (id, value) in row.data.iter() {
            write(&mut text, value);
            let options = model.property(id).and_then(|one| one.options.as_ref());
            let chosen = options.into_iter().flatten().filter(|option| {
                let mut items = value.as_array().into_iter().flatten();
                *value == *option.value || items.any(|item| *item == *option.value)
            });
            chosen.for_each(|option| text.extend([" ", &option.label]));
        }
        let text = text.to_lowercase();
        self.0.iter().all(|word| text.contains(word))
    }
}

/// Writes the texts and numbers of a value, each after a space.
fn write(text: &mut String, value: &Value) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| write(text, item)),
        Value::Object(fields) => fields.values().for_each(|field| write(text, field)),
        Value::String(string) => {
            text.extend([" ", string]);
        }
        // As the page shows a checkbox.
        Value::Bool(is_set) => text.push_str(if *is_set { " yes" } else { " no" }),
        // Writing to a text does not fail.
        other => drop(write!(text, " {other}")),
    }
}
