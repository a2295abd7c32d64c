//! Errors: status, code, message and request; and whether the outcome of a write is known.

use std::error::Error as StdError;
use std::fmt;

use http::StatusCode;
use serde_json::Value;

/// The most characters of a text of the service that an error repeats.
const MAX_CHARS: usize = 500;

pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// 400: the service refused the request's data.
    Validation,
    /// 401: the key is missing, wrong, expired or disabled.
    Unauthorized,
    /// 403: the key lacks a scope; [`Error::missing_scope`] names it.
    Forbidden,
    /// 404: there is no such object.
    NotFound,
    /// 409: a conflict with what the service holds.
    Conflict,
    /// 429, also after the call's retries.
    RateLimited,
    /// 5xx, also after the call's retries.
    Server,
    /// A status that the specification does not name.
    Status,
    /// No connection, or it broke before an answer was read.
    Connection,
    /// The time for the attempt or for the call was over.
    Timeout,
    /// The answer does not have the form of the specification, or has more than 64 MiB. After a
    /// change it does not say whether the change was made: [`Error::is_outcome_unknown`] is true.
    Answer,
    /// The values of a row do not fit the type `R`, or a value to send is not a JSON object.
    Row,
    /// The data model has no property of this name.
    UnknownProperty,
    /// Several properties of the data model have this name: use
    /// [`Rows::by_id`](crate::Rows::by_id).
    AmbiguousProperty,
    /// A text that can't be an API key or the secret of a trigger.
    Key,
    /// A setting that can't work.
    Config,
    /// The ledger of `Client::writer` could not record the write, so the write was not sent.
    Ledger,
}

/// A scope of API keys. Scopes are cumulative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// Lists and reads.
    Read,
    /// Changes rows and objects.
    Write,
    /// Changes properties of data models and the workspace.
    Admin,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        })
    }
}

/// The reason why a call failed.
///
/// `Display` has the status, the code, the request and the service's message. It has no key: where
/// the service repeats the key or a trigger's secret, `[redacted]` takes its place. It has no value
/// of a row, unless the service's own message contains one. `Debug`, which a `main` that returns it
/// prints, is one line: the kind, `Display`, and the causes.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    status: Option<StatusCode>,
    code: Option<String>,
    message: String,
    request: Option<String>,
    scope: Option<Scope>,
    outcome_unknown: bool,
    attempts: u32,
    batch: Option<BatchProgress>,
    source: Option<BoxError>,
}

/// The part of a batch that was done before a request failed, from [`Error::batch`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BatchProgress {
    /// The index of the first row in the failed request. Earlier rows were sent. Rows after that
    /// request were not sent.
    pub failed_at: usize,
    /// The number of rows in the failed request. Only their outcome may be unknown.
    pub failed_rows: usize,
    /// The ids of the rows that were created, in the order of the input. Rows of the failed request
    /// are among them, if its answer named them and could not be decoded.
    pub created: Vec<String>,
    /// The rows that the service refused.
    pub errors: Vec<RowError>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            status: None,
            code: None,
            message: message.into(),
            request: None,
            scope: None,
            outcome_unknown: false,
            attempts: 0,
            batch: None,
            source: None,
        }))
    }

    /// The error of an answer that is not 2xx.
    pub(crate) fn answered(status: StatusCode, code: Option<String>, message: &str) -> Self {
        let kind = match status.as_u16() {
            400 => ErrorKind::Validation,
            401 => ErrorKind::Unauthorized,
            403 => ErrorKind::Forbidden,
            404 => ErrorKind::NotFound,
            409 => ErrorKind::Conflict,
            429 => ErrorKind::RateLimited,
            500..=599 => ErrorKind::Server,
            _ => ErrorKind::Status,
        };
        let mut error = Self::new(kind, shown(message));
        error.0.status = Some(status);
        error.0.code = code.map(|code| shown(&code));
        error
    }

    pub(crate) fn caused_by(mut self, source: BoxError) -> Self {
        self.0.source = Some(source);
        self
    }

    pub(crate) fn of_request(mut self, request: &str) -> Self {
        self.0.request = Some(request.to_owned());
        self
    }

    pub(crate) fn needs(mut self, scope: Option<Scope>) -> Self {
        self.0.scope = scope.filter(|_| self.0.kind == ErrorKind::Forbidden);
        self
    }

    pub(crate) fn after(mut self, attempts: u32, outcome_unknown: bool) -> Self {
        self.0.attempts = attempts;
        self.0.outcome_unknown = outcome_unknown;
        self
    }

    /// An answer came, and does not show whether the change was made.
    pub(crate) fn maybe_made(mut self) -> Self {
        self.0.outcome_unknown = true;
        self
    }

    pub(crate) fn answered_with(mut self, status: StatusCode) -> Self {
        self.0.status = Some(status);
        self
    }

    pub(crate) fn in_batch(mut self, progress: BatchProgress) -> Self {
        self.0.batch = Some(progress);
        self
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The status of the answer, if there was one.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        self.0.status
    }

    /// The service's code, such as `NOT_FOUND`.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// The service's message, or this crate's own.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Method, path and query of the request, such as `GET /datamodels/dm_orders`. `None` if no
    /// request was made.
    #[must_use]
    pub fn request(&self) -> Option<&str> {
        self.0.request.as_deref()
    }

    /// The number of requests that were made, repeats included.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// The scope that the request needs, for [`ErrorKind::Forbidden`].
    #[must_use]
    pub fn missing_scope(&self) -> Option<Scope> {
        self.0.scope
    }

    /// Returns whether a change may have been made: after the request was sent, the connection
    /// broke, the time was over, the answer was 3xx, 408 or 5xx, or it was 2xx with a body that
    /// can't be read or does not fit the row's type. After a call of a trigger it is also true for
    /// each other status, because a workflow that ran may answer any. Check the row before you
    /// repeat the change, because a repeat may make it twice. If this is false, the request changed
    /// nothing.
    #[must_use]
    pub fn is_outcome_unknown(&self) -> bool {
        self.0.outcome_unknown
    }

    /// The progress of [`create_many`](crate::Rows::create_many) before the failed request.
    #[must_use]
    pub fn batch(&self) -> Option<&BatchProgress> {
        self.0.batch.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.0;
        if let Some(request) = &inner.request {
            write!(f, "{request}: ")?;
        }
        if let Some(status) = inner.status {
            write!(f, "{}", status.as_u16())?;
            if let Some(code) = &inner.code {
                write!(f, " {code}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&inner.message)?;
        // The service says it itself, and for data models its documents name two.
        if let Some(scope) = inner.scope.filter(|_| !inner.message.contains("scope")) {
            write!(f, "; the key needs the scope {scope}")?;
        }
        if inner.attempts > 1 {
            write!(f, "; after {} attempts", inner.attempts)?;
        }
        if let Some(batch) = &inner.batch {
            let BatchProgress {
                failed_at,
                failed_rows,
                created,
                ..
            } = batch;
            write!(
                f,
                "; in a batch, at the {failed_rows} rows from index {failed_at} on; rows known to be created, those of this request included: {}",
                created.len()
            )?;
        }
        if inner.outcome_unknown {
            f.write_str("; outcome unknown: the change may have been made")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?}): {self}", self.0.kind)?;
        let mut below = self.source();
        while let Some(cause) = below {
            write!(f, ": {cause}")?;
            below = cause.source();
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let source = self.0.source.as_deref();
        source.map(|source| source as &(dyn StdError + 'static))
    }
}

/// A text of the other side: bounded, and without characters that a terminal acts on.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(MAX_CHARS)
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect();
    if text.chars().nth(MAX_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

/// A row that was refused in a batch. The specification does not show the structure of these
/// entries.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RowError {
    /// The index of the row in the input, if the entry has a field `index`; otherwise the index of
    /// the first row of its request.
    pub index: usize,
    /// Whether the entry named the index.
    pub is_exact: bool,
    /// The entry as the service wrote it, with `[redacted]` in place of the key.
    pub json: Value,
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = if self.is_exact { "" } else { "one behind " };
        let message = self.json.get("message").and_then(Value::as_str);
        let message = message.unwrap_or("refused by the service");
        write!(f, "row {from}{}: {}", self.index, shown(message))
    }
}
