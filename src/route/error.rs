//! Errors of building an event router.

use std::fmt;

/// The reason why the arms of an event router were refused. The message names the arm.
///
/// ```
/// use axum::http::StatusCode;
/// use hookgate::{EventRouter, RouterErrorKind};
///
/// let events: EventRouter = EventRouter::new().on_model("page.created", "dm_1", StatusCode::NO_CONTENT);
/// let error = events.build().unwrap_err();
/// assert_eq!(error.kind(), RouterErrorKind::TypeWithoutModel);
/// assert!(error.to_string().starts_with(r#""page.created" names no data model"#));
/// ```
#[derive(Clone, thiserror::Error)]
#[error("{}", self.message())]
pub struct RouterError {
    kind: RouterErrorKind,
    event_type: String,
    model: Option<String>,
}

/// The error in the arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RouterErrorKind {
    /// There is no arm and no `otherwise`: no event could ever be handled.
    Empty,
    /// Two arms take the same event type, and the same data model if they name one.
    ArmTwice,
    /// `otherwise` was set twice: two handlers for events without an arm.
    OtherwiseTwice,
    /// An event type that no delivery can have: empty, blank, longer than 256 bytes, with control characters or white space
    /// around it.
    UnusableType,
    /// A data model's id that is empty, blank, or has control characters or white space around it.
    UnusableModel,
    /// A data model is given for an event type that names none.
    TypeWithoutModel,
    /// Unhandled events are to be refused, but with `otherwise` every event is handled.
    NothingToRefuse,
}

impl RouterError {
    pub(crate) fn new(kind: RouterErrorKind) -> Self {
        Self {
            kind,
            event_type: String::new(),
            model: None,
        }
    }

    pub(crate) fn of_arm(mut self, event_type: &str, model: Option<&str>) -> Self {
        self.event_type = event_type.to_owned();
        self.model = model.map(Into::into);
        self
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> RouterErrorKind {
        self.kind
    }

    fn message(&self) -> String {
        let event_type = &self.event_type;
        match (self.kind, &self.model) {
            (RouterErrorKind::Empty, _) => {
                "no arm: call .on(…), .on_model(…), .on_rows(…) or .otherwise(…)".into()
            }
            (RouterErrorKind::ArmTwice, None) => {
                format!("two arms for {event_type:?} of any data model")
            }
            (RouterErrorKind::ArmTwice, Some(model)) => {
                format!("two arms for {event_type:?} of the data model {model:?}")
            }
            (RouterErrorKind::OtherwiseTwice, _) => "two handlers for .otherwise(…)".into(),
            (RouterErrorKind::UnusableType, _) => format!(
                "no event has the type {event_type:?}: 1 to 256 bytes are expected, not blank, without white space around them or control characters"
            ),
            (RouterErrorKind::UnusableModel, model) => format!(
                "{:?} is no id of a data model, in an arm for {event_type:?}: it must not be blank or have white space around it or control characters",
                model.as_deref().unwrap_or_default()
            ),
            (RouterErrorKind::TypeWithoutModel, model) => format!(
                "{event_type:?} names no data model, so there is no {:?} to look for: row.created, row.updated and row.deleted do; call .on(…) for any other type",
                model.as_deref().unwrap_or_default()
            ),
            (RouterErrorKind::NothingToRefuse, _) => {
                ".otherwise(…) takes every event, so .refuse_unhandled() has nothing to refuse: leave one of them out".into()
            }
        }
    }
}

impl fmt::Debug for RouterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::readable::write_readably(f, "RouterError", &self.kind, self)
    }
}
