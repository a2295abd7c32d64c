//! JSON that keeps its order and its texts, and of which single parts can be changed.

use std::fmt;

use serde::Deserializer as _;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A value. It is opened only where a part of it is changed: unchanged parts are written as they
/// were given.
#[derive(Clone)]
pub(super) enum Tree {
    /// Exactly this text.
    Text(Box<str>),
    /// An object's fields in order. A name may occur twice.
    Object(Vec<(String, Tree)>),
    List(Vec<Tree>),
}

/// A change of the value at a path.
#[derive(Clone)]
pub(super) enum Change {
    /// Replaces the value, or adds the field.
    Set(Tree),
    /// Removes the field.
    Remove,
}

impl Tree {
    pub(super) fn text(text: impl Into<Box<str>>) -> Self {
        Self::Text(text.into())
    }

    /// Returns the value at a path, as JSON.
    pub(super) fn find(&self, path: &str) -> Option<String> {
        let mut tree = self.clone();
        for step in steps(path).ok()? {
            tree.open();
            tree = match tree {
                Self::Object(fields) => fields.into_iter().find(|(name, _)| *name == step)?.1,
                Self::List(items) => items.into_iter().nth(step.parse().ok()?)?,
                Self::Text(_) => return None,
            };
        }
        let mut json = String::new();
        tree.write(&mut json);
        Some(json)
    }

    pub(super) fn change(&mut self, path: &str, change: Change) -> Result<(), PathError> {
        let steps = steps(path)?;
        let steps: Vec<_> = steps.iter().map(String::as_str).collect();
        self.change_at(&steps, change)
    }

    pub(super) fn change_at(&mut self, steps: &[&str], change: Change) -> Result<(), PathError> {
        let mut tree = self;
        for (at, step) in steps.iter().enumerate() {
            let fault = |kind| PathError::new(kind, steps[..=at].join("."));
            let is_last = at + 1 == steps.len();
            tree.open();
            if matches!(tree, Self::Text(text) if &**text == "null") {
                *tree = Self::Object(Vec::new());
            }
            tree = match tree {
                Self::Object(fields) if is_last => {
                    change_field(fields, step, change);
                    return Ok(());
                }
                Self::Object(fields) => inner_field(fields, step),
                Self::List(items) => {
                    let index: usize = step
                        .parse()
                        .ok()
                        .filter(|index| *index <= items.len())
                        .ok_or_else(|| fault(PathErrorKind::NoIndex))?;
                    if is_last {
                        change_item(items, index, change);
                        return Ok(());
                    }
                    if index == items.len() {
                        items.push(Self::Object(Vec::new()));
                    }
                    &mut items[index]
                }
                Self::Text(_) => return Err(fault(PathErrorKind::NoContainer)),
            };
        }
        Ok(())
    }

    pub(super) fn write(&self, json: &mut String) {
        match self {
            Self::Text(text) => json.push_str(text),
            Self::Object(fields) => {
                json.push('{');
                for (at, (name, value)) in fields.iter().enumerate() {
                    json.push_str(if at == 0 { "" } else { "," });
                    json.push_str(&quoted(name));
                    json.push(':');
                    value.write(json);
                }
                json.push('}');
            }
            Self::List(items) => {
                json.push('[');
                for (at, item) in items.iter().enumerate() {
                    json.push_str(if at == 0 { "" } else { "," });
                    item.write(json);
                }
                json.push(']');
            }
        }
    }

    /// Opens an object or a list that is still text. Any other value stays as it is, and so does a
    /// text that is not JSON.
    #[expect(clippy::disallowed_methods, reason = "only raw texts are made of it")]
    fn open(&mut self) {
        let Self::Text(text) = self else { return };
        let mut json = serde_json::Deserializer::from_str(text);
        let opened = json.deserialize_any(Opened);
        if let (Ok(Some(opened)), Ok(())) = (opened, json.end()) {
            *self = opened;
        }
    }
}

/// Returns a text in the form that JSON writes.
pub(super) fn quoted(text: &str) -> String {
    // Serialization of a text can't fail.
    serde_json::to_string(text).unwrap_or_default()
}

/// Splits a path at its dots. A backslash before a dot or a backslash makes that character part of
/// a name.
fn steps(path: &str) -> Result<Vec<String>, PathError> {
    let mut steps = vec![String::new()];
    let mut characters = path.chars();
    while let Some(character) = characters.next() {
        let step = match character {
            '.' => {
                steps.push(String::new());
                continue;
            }
            '\\' => characters.next().unwrap_or('\\'),
            other => other,
        };
        if let Some(last) = steps.last_mut() {
            last.push(step);
        }
    }
    if steps.iter().any(String::is_empty) {
        return Err(PathError::new(PathErrorKind::EmptyStep, path.to_owned()));
    }
    Ok(steps)
}

fn change_field(fields: &mut Vec<(String, Tree)>, name: &str, change: Change) {
    let found = fields.iter().position(|(other, _)| other == name);
    match (change, found) {
        (Change::Set(value), Some(at)) => fields[at].1 = value,
        (Change::Set(value), None) => fields.push((name.to_owned(), value)),
        (Change::Remove, _) => fields.retain(|(other, _)| other != name),
    }
}

fn change_item(items: &mut Vec<Tree>, index: usize, change: Change) {
    match change {
        Change::Set(value) if index < items.len() => items[index] = value,
        Change::Set(value) => items.insert(index, value),
        Change::Remove if index < items.len() => drop(items.remove(index)),
        Change::Remove => {}
    }
}

fn inner_field<'a>(fields: &'a mut Vec<(String, Tree)>, name: &str) -> &'a mut Tree {
    let at = match fields.iter().position(|(other, _)| other == name) {
        Some(at) => at,
        None => {
            fields.push((name.to_owned(), Tree::Object(Vec::new())));
            fields.len() - 1
        }
    };
    &mut fields[at].1
}

/// Reads one level of an object or a list; `None` for any other value.
struct Opened;

impl<'de> Visitor<'de> for Opened {
    type Value = Option<Tree>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
            fields.push((name, Tree::text(value.get())));
        }
        Ok(Some(Tree::Object(fields)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(value) = list.next_element::<&RawValue>()? {
            items.push(Tree::text(value.get()));
        }
        Ok(Some(Tree::List(items)))
    }
}

/// The reason why no value can be set at a path of a sample event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", kind.of(path))]
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

impl PathErrorKind {
    fn of(self, path: &str) -> String {
        match self {
            Self::EmptyStep if path.is_empty() => "the path is empty".to_owned(),
            Self::EmptyStep => format!("a step of the path {path} is empty"),
            Self::NoContainer => {
                format!("{path} leads into a value that is neither an object nor a list")
            }
            Self::NoIndex => format!("{path} is not a place in the list"),
        }
    }
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

    fn new(kind: PathErrorKind, path: String) -> Self {
        Self { kind, path }
    }
}
