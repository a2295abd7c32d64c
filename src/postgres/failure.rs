//! What an error of the server means.

use ::tokio_postgres::Error;
use ::tokio_postgres::error::SqlState;

use crate::error::{PostgresError, PostgresErrorKind, StoreError, StoreErrorKind};

/// The connection is gone, or nobody can tell.
pub(super) fn is_broken(error: &Error) -> bool {
    match error.code() {
        // The server says goodbye as it ends.
        Some(code) => {
            *code == SqlState::ADMIN_SHUTDOWN
                || *code == SqlState::CRASH_SHUTDOWN
                || *code == SqlState::CANNOT_CONNECT_NOW
                || *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
        }
        None => true,
    }
}

/// It stands by for another server, which may have become the one to write to.
pub(super) fn is_read_only(error: &Error) -> bool {
    error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
}

pub(crate) fn store(error: Error) -> StoreError {
    let kind = match error.code() {
        Some(code) if is_full(code) => StoreErrorKind::Full,
        Some(code) if is_late(code) => StoreErrorKind::TimedOut,
        _ => StoreErrorKind::Unavailable,
    };
    StoreError::new(kind).caused_by(direct(error))
}

/// For what a program calls itself.
pub(super) fn direct(error: Error) -> PostgresError {
    let kind = match error.code() {
        Some(code) if is_late(code) => PostgresErrorKind::TimedOut,
        Some(code) => match code {
            code if is_conflict(code) => PostgresErrorKind::Conflict,
            &SqlState::UNDEFINED_TABLE | &SqlState::UNDEFINED_COLUMN => PostgresErrorKind::NoTables,
            &SqlState::INVALID_SCHEMA_NAME => PostgresErrorKind::NoSchema,
            &SqlState::INSUFFICIENT_PRIVILEGE => PostgresErrorKind::Denied,
            &SqlState::IN_FAILED_SQL_TRANSACTION => PostgresErrorKind::Aborted,
            _ => PostgresErrorKind::Failed,
        },
        None => PostgresErrorKind::Failed,
    };
    PostgresError::new(kind).caused_by(error)
}

pub(super) fn is_conflict(code: &SqlState) -> bool {
    *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED
}

fn is_full(code: &SqlState) -> bool {
    [SqlState::DISK_FULL, SqlState::OUT_OF_MEMORY].contains(code)
}

fn is_late(code: &SqlState) -> bool {
    [SqlState::QUERY_CANCELED, SqlState::LOCK_NOT_AVAILABLE].contains(code)
}

/// For errors of your own statements and of the commit: says which are a [`Conflict`](PostgresErrorKind::Conflict).
impl From<Error> for PostgresError {
    fn from(error: Error) -> Self {
        direct(error)
    }
}
