//! Why the bytes of an authentic delivery are no event, or not the event that was asked for.

use std::fmt;
use std::str::Utf8Error;

use crate::event::DataModelId;

/// Why an authentic body, or a value of it, could not be read.
///
/// Names the place and says what was found and what was expected there, **never the value**: a serde message repeats
/// what it read, so only the parts of it that come from the type are kept. Names of properties do show in the
/// [`path()`](Self::path).
///
/// ```
/// use hookgate::{EventErrorKind, Properties};
///
/// let properties: Properties = serde_json::from_str(r#"{"Total":"a secret"}"#)?;
/// let error = properties.number("Total").unwrap_err();
/// assert_eq!(error.kind(), EventErrorKind::Misfit);
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

/// What was wrong with a body or a value of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventErrorKind {
    /// Bytes that are no UTF-8; [`source()`](std::error::Error::source) says where.
    NotText,
    /// No well-formed JSON: broken off, something behind the end, or against the grammar.
    Syntax,
    /// An escape that is half of a surrogate pair, which stands for no character.
    LoneSurrogate,
    /// Objects and arrays nested deeper than 127 levels.
    TooDeep,
    /// A number beyond the range of a 64-bit float, such as `1e400`.
    NumberOutOfRange,
    /// A key that begins with `$serde_json::private::`, escaped or not. serde_json takes such a key in a text for one that it
    /// wrote itself, and reads another value than the text shows; nested, it overflows the stack.
    ReservedKey,
    /// JSON, but no object.
    NotAnObject,
    /// A field that must be present is not.
    Missing,
    /// A field appears more than once, so two readers could see two values.
    Doubled,
    /// An id or type that is empty, blank, longer than 256 bytes or has control characters.
    Unusable,
    /// A value is present and not of the kind that was asked for.
    Misfit,
    /// The keys are pinned to a workspace, and the body names another or none. Not an error of form: the delivery is
    /// not authentic for these keys.
    WorkspaceMismatch,
}

impl EventError {
    pub(crate) fn new(kind: EventErrorKind) -> Self {
        Self(Box::new(Details {
            kind,
            path: None,
            reason: None,
            position: None,
            model: None,
            model_name: None,
            source: None,
        }))
    }

    /// Names the place. The caller has escaped and capped it.
    pub(crate) fn at_path(mut self, path: impl Into<String>) -> Self {
        self.0.path = Some(path.into());
        self
    }

    pub(crate) fn at_position(mut self, position: Option<Position>) -> Self {
        self.0.position = position;
        self
    }

    /// Says more. The caller has made sure that nothing of it is a value of the body.
    pub(crate) fn because(mut self, reason: Option<String>) -> Self {
        self.0.reason = reason;
        self
    }

    pub(crate) fn of_model(mut self, id: Option<DataModelId>, name: Option<String>) -> Self {
        self.0.model = id;
        self.0.model_name = name;
        self
    }

    /// What was wrong.
    #[must_use]
    pub fn kind(&self) -> EventErrorKind {
        self.0.kind
    }

    /// Where, as in `data.properties.Total`, where it is one place. Escaped, and cut off at 256 characters.
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

    /// The data model of the row that could not be read, where the body says it.
    #[must_use]
    pub fn model(&self) -> Option<&DataModelId> {
        self.0.model.as_ref()
    }

    /// The name of that data model. Comes from the body, so it is not part of the message.
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

/// All but the model's name, which is a text of the body.
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
            (None, EventErrorKind::Misfit) => f.write_str("the value")?,
            (None, _) => f.write_str("the body")?,
        }
        write!(f, " {}", self.0.kind.message())?;
        if let Some(reason) = &self.0.reason {
            write!(f, ": {reason}")?;
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

impl EventErrorKind {
    fn message(self) -> &'static str {
        match self {
            Self::NotText => "is not UTF-8 text",
            Self::Syntax => "is not well-formed JSON",
            Self::LoneSurrogate => "holds half of a surrogate pair",
            Self::TooDeep => "is nested deeper than 127 levels",
            Self::NumberOutOfRange => "holds a number beyond the range of a 64-bit float",
            Self::ReservedKey => "has a key that begins with `$serde_json::private::`",
            Self::NotAnObject => "is no JSON object",
            Self::Missing => "is missing",
            Self::Doubled => "appears more than once",
            Self::Unusable => {
                "can't be used: 1 to 256 bytes are expected, not blank, without control characters"
            }
            Self::Misfit => "does not fit",
            Self::WorkspaceMismatch => "is not from the workspace that the keys are pinned to",
        }
    }
}
