//! The meaning of the server's errors.

use hookgate::dedupe::{StoreError, StoreErrorKind};
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// Returns whether the connection is lost, or its state is unknown.
pub(super) fn is_broken(error: &Error) -> bool {
    // The server reports with this severity that it ends, or that it ends the session, for any
    // reason.
    let goodbye = |error: &DbError| match error.parsed_severity() {
        Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
        None => ["FATAL", "PANIC"].contains(&error.severity()),
    };
    error.as_db_error().is_none_or(goodbye)
}

/// Returns whether the connection works, but its prepared statement does not: it was deallocated, a
/// pooler lies between, or a table was altered.
pub(super) fn is_stale(error: &Error) -> bool {
    let stale = [
        SqlState::INVALID_SQL_STATEMENT_NAME,
        SqlState::DUPLICATE_PSTATEMENT,
        SqlState::FEATURE_NOT_SUPPORTED,
    ];
    error.code().is_some_and(|code| stale.contains(code))
}

/// Returns whether nothing was changed since another transaction was faster. At `READ COMMITTED`
/// this is rare.
pub(super) fn is_conflict(error: &Error) -> bool {
    matches!(
        error.code(),
        Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED)
    )
}

/// Returns whether the level is stricter than `READ COMMITTED`, at which this never fails.
pub(super) fn is_refused_for_level(error: &Error) -> bool {
    error.code() == Some(&SqlState::T_R_SERIALIZATION_FAILURE)
}

/// Returns whether the server is a standby. Another server may have become the primary.
pub(super) fn is_read_only(error: &Error) -> bool {
    error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
}

/// Returns an error of PostgreSQL as the error of a store, with the next step to take. Use it for
/// errors of your own statements and of the commit: it shows which of them are a
/// [`Conflict`](StoreErrorKind::Conflict).
///
/// ```no_run
/// # async fn example(transaction: tokio_postgres::Transaction<'_>) -> Result<(), hookgate::dedupe::StoreError> {
/// use hookgate_postgres::store_error;
///
/// transaction.commit().await.map_err(store_error)?;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn store_error(error: Error) -> StoreError {
    use StoreErrorKind as Kind;
    #[cfg(feature = "tls")]
    if let Some(reason) = crate::handshake::refused_handshake(&error) {
        return StoreError::saying(Kind::Unavailable, reason).caused_by(error);
    }
    let told = match error.code() {
        _ if is_conflict(&error) => StoreError::new(Kind::Conflict),
        Some(&SqlState::DISK_FULL | &SqlState::OUT_OF_MEMORY) => StoreError::new(Kind::Full),
        Some(&SqlState::QUERY_CANCELED | &SqlState::LOCK_NOT_AVAILABLE) => {
            StoreError::new(Kind::TimedOut)
        }
        Some(&SqlState::UNDEFINED_TABLE | &SqlState::UNDEFINED_COLUMN) => StoreError::saying(
            Kind::Missing,
            "a table is missing: run hookgate_postgres::migrate, or look at the search_path",
        ),
        Some(&SqlState::INVALID_SCHEMA_NAME) => StoreError::saying(
            Kind::Missing,
            "no schema of the search_path exists: create it first",
        ),
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => StoreError::saying(
            Kind::Denied,
            "the role may not do this: migrate with one that may create tables, and grant this one SELECT, INSERT, UPDATE and DELETE on them",
        ),
        Some(&SqlState::CHARACTER_NOT_IN_REPERTOIRE | &SqlState::UNTRANSLATABLE_CHARACTER) => {
            StoreError::saying(Kind::Refused, ENCODING)
        }
        Some(&SqlState::INVALID_SQL_STATEMENT_NAME | &SqlState::DUPLICATE_PSTATEMENT) => {
            StoreError::saying(
                Kind::Unavailable,
                "a prepared statement is missing or known already: behind a pooler of transactions, call Postgres::behind_pooler",
            )
        }
        Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION) if lacks_tls(&error) => {
            StoreError::saying(
                Kind::Unavailable,
                "the server may refuse connections without TLS: say sslmode=verify-full in its URL, with the feature tls of hookgate-postgres",
            )
        }
        Some(&SqlState::IN_FAILED_SQL_TRANSACTION) => StoreError::new(Kind::Aborted),
        Some(code) if is_permanent(code) => StoreError::new(Kind::Refused),
        _ => StoreError::saying(Kind::Unavailable, "PostgreSQL failed"),
    };
    told.caused_by(error)
}

/// Returns whether the server says that this connection was not encrypted, as it does where that
/// may be the reason.
fn lacks_tls(error: &Error) -> bool {
    let says = |error: &DbError| {
        ["no encryption", "SSL off"]
            .iter()
            .any(|words| error.message().ends_with(words))
    };
    error.as_db_error().is_some_and(says)
}

pub(super) const ENCODING: &str = "a text can't be stored: it holds U+0000, or the database is not in UTF8; create one with CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0";

/// Returns whether the fault is in the statement's input, so that repeating it fails again: a text
/// that the encoding can't store, a constraint, a limit of the server. A statement that does not
/// fit the tables (class 42) is not among them: each delivery has that fault until an operator adds
/// the table, column, index or right.
fn is_permanent(code: &SqlState) -> bool {
    const CLASSES: [&str; 3] = ["22", "23", "54"];
    let class = code.code().get(..2).unwrap_or_default();
    CLASSES.contains(&class)
}
