//! Errors of reading an event, or a value of it, from an authentic delivery.

use std::fmt;
use std::str::Utf8Error;

use super::ids::DataModelId;

/// The reason why an authentic body, or a value of it, could not be read.
///
/// It names the place, the kind of value found and the kind expected, **never the value**. A
/// message of serde repeats the input, so only the parts of it that come from the type are kept.
/// Names of properties are visible in the [`path()`](Self::path).
///
/// ```
/// use hookgate::{Properties, event::EventErrorKind};
///
/// let properties: Properties = serde_json::from_str(r#"{"Total":"a secret"}"#)?;
/// let error = properties.number("Total").unwrap_err();
/// assert_eq!(error.kind(), EventErrorKind::TypeMismatch);
/// assert_eq!(error.path(), Some("data.properties.Total"));
/// assert_eq!(error.to_string(), "data.properties.Total does not fit: found a string, expected a number");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone)]
pub struct EventError(Box<Details>);

#[derive(Clone)]
struct Details {
    kind: EventErrorKind,
    path: Option<String>,
    reason: Option<String>,
    /// The name of the field that is missing, as the type writes it.
    missing: Option<Box<str>>,
    position: Option<Position>,
    model: Option<DataModelId>,
    model_name: Option<String>,
    source: Option<Utf8Error>,
}

/// A place in the body: lines and columns count from 1, columns in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// The error in a body or in a value of it. `Display` writes the message without the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum EventErrorKind {
    /// The bytes are not UTF-8; [`source()`](std::error::Error::source) has the position.
    #[error("is not UTF-8 text")]
    NotText,
    /// The body is not well-formed JSON: it breaks off, has more bytes after its end, or violates
    /// the grammar.
    #[error("is not well-formed JSON")]
    Syntax,
    /// An escape is half of a surrogate pair, which stands for no character.
    #[error("holds half of a surrogate pair")]
    LoneSurrogate,
    /// Objects and arrays are nested deeper than 127 levels.
    #[error("is nested deeper than 127 levels")]
    TooDeep,
    /// A number is beyond the range of a 64-bit float, such as `1e400`.
    #[error("holds a number beyond the range of a 64-bit float")]
    NumberOutOfRange,
    /// A key begins with `$serde_json::private::`, escaped or not. serde_json treats such a key in
    /// a text as one that it wrote itself, and reads another value than the text shows. Nested, it
    /// overflows the stack.
    #[error("has a key that begins with `$serde_json::private::`")]
    ReservedKey,
    /// The body is JSON, but not an object.
    #[error("is no JSON object")]
    NotAnObject,
    /// A required field is missing. Where a name in the row looks like it, such as `Pre\u{301}nom`
    /// for `Prénom`, the message names that one too, escaped.
    #[error("is missing")]
    Missing,
    /// A field appears more than once, so two readers could see two values.
    #[error("appears more than once")]
    RepeatedKey,
    /// An id or type is empty, blank, longer than 256 bytes or has control characters.
    #[error("can't be used: 1 to 256 bytes are expected, not blank, without control characters")]
    Unusable,
    /// A value is present, but not of the requested kind.
    #[error("does not fit")]
    TypeMismatch,
    /// The keys are pinned to a workspace, and the body names another workspace or none. This is
    /// not an error of form: the delivery is not authentic for these keys.
    #[error("is not from the workspace that the keys are pinned to")]
    WorkspaceMismatch,
    /// The delivery is of another [scheme](crate::Scheme) than the default one, whose events these
    /// are.
    #[error(
        "is of another scheme: take `Signed<T>`, as `Event<R>` and the event router are for the Workspace Data Service's events"
    )]
    OtherScheme,
}

impl EventError {
    pub(crate) fn new(kind: EventErrorKind) -> Self {
        Self(Box::new(Details {
            kind,
            path: None,
            reason: None,
            missing: None,
            position: None,
            model: None,
            model_name: None,
            source: None,
        }))
    }

    /// Sets the path, unless it is empty. The caller has escaped it and limited its length.
    pub(crate) fn at_path(mut self, path: impl Into<String>) -> Self {
        self.0.path = Some(path.into()).filter(|path| !path.is_empty());
        self
    }

    pub(crate) fn at_position(mut self, position: Option<Position>) -> Self {
        self.0.position = position;
        self
    }

    /// Sets the reason. The caller has made sure that it holds no value of the body.
    pub(crate) fn because(mut self, reason: Option<String>) -> Self {
        self.0.reason = reason;
        self
    }

    /// Returns the error of a value that does not fit, at the same path.
    pub(crate) fn into_mismatch(mut self) -> Self {
        self.0.kind = EventErrorKind::TypeMismatch;
        self.because(None)
    }

    /// Sets the name of the field that is missing, which comes from the type.
    pub(crate) fn without(mut self, name: Option<&str>) -> Self {
        self.0.missing = name.map(Into::into);
        self
    }

    pub(crate) fn missing(&self) -> Option<&str> {
        self.0.missing.as_deref()
    }

    #[cfg(any(feature = "chrono", feature = "jiff", feature = "time"))]
    pub(crate) fn reason(&self) -> Option<&str> {
        self.0.reason.as_deref()
    }

    pub(crate) fn with_model(mut self, id: Option<DataModelId>, name: Option<String>) -> Self {
        self.0.model = id;
        self.0.model_name = name;
        self
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> EventErrorKind {
        self.0.kind
    }

    /// The path of the error, such as `data.properties.Total`, where the error is at one place.
    /// Escaped, and cut off at 256 characters.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// The line in the body, from 1, where it is known.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.0.position.map(|position| position.line)
    }

    /// The column in that line, from 1 and in bytes.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.0.position.map(|position| position.column)
    }

    /// The data model of the row that could not be read, where the body names it.
    #[must_use]
    pub fn model(&self) -> Option<&DataModelId> {
        self.0.model.as_ref()
    }

    /// The name of that data model. It comes from the body, so it is not part of the message.
    #[must_use]
    pub fn model_name(&self) -> Option<&str> {
        self.0.model_name.as_deref()
    }
}

impl From<Utf8Error> for EventError {
    fn from(source: Utf8Error) -> Self {
        let mut error = Self::new(EventErrorKind::NotText);
        error.0.source = Some(source);
        error
    }
}

/// Shows all fields except the model's name, which is a text of the body.
impl fmt::Debug for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventError")
            .field("kind", &self.0.kind)
            .field("path", &self.0.path)
            .field("reason", &self.0.reason)
            .field("position", &self.0.position)
            .field("model", &self.0.model)
            .field("source", &self.0.source)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0.path, self.0.kind) {
            (Some(path), _) => f.write_str(path)?,
            (None, EventErrorKind::TypeMismatch) => f.write_str("the value")?,
            (None, _) => f.write_str("the body")?,
        }
        write!(f, " {}", self.0.kind)?;
        match (&self.0.reason, self.0.kind) {
            (Some(reason), EventErrorKind::Missing) => write!(f, "; {reason}")?,
            (Some(reason), _) => write!(f, ": {reason}")?,
            (None, _) => {}
        }
        if let Some(Position { line, column }) = self.0.position {
            write!(f, ", at line {line} column {column}")?;
        }
        Ok(())
    }
}

impl std::error::Error for EventError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| source as _)
    }
}
