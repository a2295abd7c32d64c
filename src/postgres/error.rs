//! Errors of the PostgreSQL calls that the program makes itself.

use std::fmt;

/// The reason why a migration, a claim in a transaction or a deletion failed. The message has the next step to take.
#[derive(thiserror::Error)]
#[error("{}", .kind.message())]
pub struct PostgresError {
    kind: PostgresErrorKind,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The kind of the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PostgresErrorKind {
    /// Another transaction was faster: a serialization failure or a deadlock. Roll back and begin again, or answer 503.
    Conflict,
    /// A table is missing.
    NoTables,
    /// No schema of the search path exists.
    NoSchema,
    /// The database role lacks the permission.
    Denied,
    /// The database's encoding is not UTF8, or a text holds U+0000, which PostgreSQL can't store.
    Encoding,
    /// The name of an inbox is empty, longer than 63 bytes, or holds other characters than ASCII letters, digits, `.`, `_`
    /// and `-`.
    Name,
    /// The transaction had failed before, and accepts no more statements.
    Aborted,
    /// A lock was not free in time, or a statement took too long.
    TimedOut,
    /// The server can't be reached, or answered with another fault; the source has the fault.
    Failed,
}

impl PostgresError {
    pub(crate) fn new(kind: PostgresErrorKind) -> Self {
        Self { kind, source: None }
    }

    pub(crate) fn caused_by(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind of the failure.
    #[must_use]
    pub fn kind(&self) -> PostgresErrorKind {
        self.kind
    }
}

impl fmt::Debug for PostgresError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::readable::write_readably(f, "PostgresError", &self.kind, self)
    }
}

impl PostgresErrorKind {
    fn message(self) -> &'static str {
        match self {
            Self::Conflict => {
                "another transaction was faster: roll back, and try again or answer 503"
            }
            Self::NoTables => {
                "a table is missing: run hookgate::postgres::migrate, or look at the search_path"
            }
            Self::NoSchema => "no schema of the search_path exists: create it first",
            Self::Denied => {
                "the role may not do this: migrate with one that may create tables, and grant this one SELECT, INSERT, UPDATE and DELETE on them"
            }
            Self::Encoding => {
                "a text can't be stored: it holds U+0000, or the database is not in UTF8; create one with CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
            }
            Self::Name => {
                "the name of an inbox is 1 to 63 letters of ASCII, digits, '.', '_' or '-': take that of the program"
            }
            Self::Aborted => "the transaction had failed before: roll it back",
            Self::TimedOut => "PostgreSQL did not answer in time",
            Self::Failed => "PostgreSQL failed",
        }
    }
}
