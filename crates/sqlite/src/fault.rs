//! Failures in SQLite, when the file is opened and while it is used.

use std::error::Error;

use hookgate::dedupe::{StoreError, StoreErrorKind as Kind};
use rusqlite::{ErrorCode, ffi};

const NO_ROOM: &str = "there is no room: free some on the disk, or allow more with .max_pages(…)";

/// Returns an error of SQLite as the error of a store, with the next step to take. Use it for
/// errors of your own statements and of the commit: it shows which of them are a
/// [`Conflict`](hookgate::dedupe::StoreErrorKind::Conflict).
///
/// ```
/// use hookgate::dedupe::StoreErrorKind;
/// use hookgate_sqlite::store_error;
/// use rusqlite::Connection;
///
/// let database = Connection::open_in_memory()?;
/// let failed = database.execute("INSERT INTO hookgate_effects DEFAULT VALUES", []).map_err(store_error);
/// assert_eq!(failed.unwrap_err().kind(), StoreErrorKind::Missing); // run `migrate` first
/// # Ok::<(), rusqlite::Error>(())
/// ```
#[must_use]
pub fn store_error(error: rusqlite::Error) -> StoreError {
    let (kind, advice) = match error.sqlite_error_code() {
        // The memory beside the log is a file on the same disk.
        _ if has_code(&error, &[ffi::SQLITE_IOERR_SHMSIZE]) => (Kind::Full, NO_ROOM),
        Some(ErrorCode::NotADatabase) => (
            Kind::NotAStore,
            "this is not an SQLite database: name the file that the receiver opens, or one that does not exist yet",
        ),
        Some(ErrorCode::DatabaseCorrupt) => (
            Kind::Corrupt,
            "the file is damaged: move it away with those beside it, and put a backup in its place",
        ),
        // Of transactions of the user's own: those of this crate are immediate.
        _ if has_code(&error, &[ffi::SQLITE_BUSY_SNAPSHOT]) => (
            Kind::Conflict,
            "another transaction has committed since this one began: roll back and answer 503, or begin it with BEGIN IMMEDIATE",
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
            Kind::TimedOut,
            "another process keeps the file locked: end it, or wait for longer with .busy_timeout(…), or the busy_timeout of a connection of your own",
        ),
        Some(ErrorCode::DiskFull) => (Kind::Full, NO_ROOM),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => (
            Kind::Denied,
            "this program may not write the file and those beside it: give them and their folder to its user",
        ),
        Some(ErrorCode::FileLockingProtocolFailed) => (
            Kind::NotDurable,
            "the file system keeps no locks: use a disk of this machine",
        ),
        Some(ErrorCode::ConstraintViolation) => (
            Kind::Refused,
            "the tables refuse these values, and would again",
        ),
        _ if ["hookgate_effects", "hookgate_order"].iter().any(|table| {
            error
                .to_string()
                .contains(&format!("no such table: {table}"))
        }) =>
        {
            (
                Kind::Missing,
                "the table is missing: run hookgate_sqlite::migrate on this file",
            )
        }
        _ => (Kind::Unavailable, "SQLite can't use the file"),
    };
    StoreError::saying(kind, advice).caused_by(error)
}

/// The error of a call inside this crate: `?` makes it of an error of SQLite too.
#[derive(Clone, Debug)]
pub(crate) struct Fault(pub(crate) StoreError);

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self(store_error(error))
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self(error)
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        fault.0
    }
}

/// Whether the write may succeed when the reserve is released. SQLite reports
/// [`ErrorCode::DiskFull`] only if the disk has no space left. If the user's quota is used up, or
/// the memory beside the log cannot grow, it reports one of the other codes.
pub(crate) fn lacks_room(error: &StoreError) -> bool {
    of_sqlite(error).is_some_and(|error| {
        let of_a_quota = [
            ffi::SQLITE_IOERR_WRITE,
            ffi::SQLITE_IOERR_FSYNC,
            ffi::SQLITE_IOERR_SHMSIZE,
        ];
        error.sqlite_error_code() == Some(ErrorCode::DiskFull) || has_code(error, &of_a_quota)
    })
}

/// Returns the error of SQLite that this one was made of.
pub(super) fn of_sqlite(error: &StoreError) -> Option<&rusqlite::Error> {
    error.source().and_then(|source| source.downcast_ref())
}

fn has_code(error: &rusqlite::Error, extended: &[i32]) -> bool {
    let error = error.sqlite_error();
    error.is_some_and(|error| extended.contains(&error.extended_code))
}

/// No answer comes: the threads have ended because the inbox or the store was dropped, or the
/// user's code that they called has panicked.
pub(crate) fn ended() -> StoreError {
    StoreError::saying(
        Kind::Unavailable,
        "the file is closed here, or its clock has panicked",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_that_is_used_up_is_a_lack_of_room_and_a_lock_is_none() {
        let lacks = |code| {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            lacks_room(&store_error(error))
        };
        for code in [
            ffi::SQLITE_FULL,
            ffi::SQLITE_IOERR_WRITE,
            ffi::SQLITE_IOERR_FSYNC,
            ffi::SQLITE_IOERR_SHMSIZE,
        ] {
            assert!(lacks(code), "{code}");
        }
        for code in [ffi::SQLITE_BUSY, ffi::SQLITE_IOERR, ffi::SQLITE_IOERR_READ] {
            assert!(!lacks(code), "{code}");
        }
        assert!(!lacks_room(&StoreError::new(Kind::Full)));
    }
}
