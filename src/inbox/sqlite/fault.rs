//! A failure in SQLite, which is reported to every caller that shared the commit.

use std::fmt;
use std::sync::Arc;

use rusqlite::{ErrorCode, ffi};

use crate::dedupe::{StoreError, StoreErrorKind};

/// One failure, which may be reported to many callers.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    kind: StoreErrorKind,
    source: Arc<Source>,
}

#[derive(Debug)]
enum Source {
    Sqlite(rusqlite::Error),
    Said(&'static str),
}

impl Fault {
    pub(super) fn said(kind: StoreErrorKind, words: &'static str) -> Self {
        Self {
            kind,
            source: Arc::new(Source::Said(words)),
        }
    }

    pub(super) fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Whether the write may succeed when the reserve is released.
    pub(super) fn lacks_room(&self) -> bool {
        match &*self.source {
            Source::Sqlite(error) => lacks_room(error),
            Source::Said(_) => false,
        }
    }
}

/// Whether the error may mean that there is no space. SQLite reports [`ErrorCode::DiskFull`] only if the disk has none left. If the
/// user's quota is used up, or the memory beside the log cannot grow, it reports one of the other codes.
pub(super) fn lacks_room(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| {
        error.code == ErrorCode::DiskFull
            || matches!(
                error.extended_code,
                ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_SHMSIZE
            )
    })
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        let kind = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreErrorKind::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreErrorKind::TimedOut,
            _ => StoreErrorKind::Unavailable,
        };
        Self {
            kind,
            source: Arc::new(Source::Sqlite(error)),
        }
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        Self::new(fault.kind).caused_by(SharedSource(fault.source))
    }
}

/// The source of each caller's error.
#[derive(Debug)]
struct SharedSource(Arc<Source>);

impl fmt::Display for SharedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Source::Sqlite(error) => error.fmt(f),
            Source::Said(words) => f.write_str(words),
        }
    }
}

impl std::error::Error for SharedSource {}

/// No answer comes: the threads have ended because the inbox was dropped, or the user's code that they called has panicked.
pub(super) fn ended() -> StoreError {
    Fault::said(
        StoreErrorKind::Unavailable,
        "the inbox is closed, or its clock has panicked",
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_that_is_used_up_is_a_lack_of_room_and_a_lock_is_none() {
        let lacks = |code| {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            Fault::from(error).lacks_room()
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
        let said = Fault::said(StoreErrorKind::Full, "the reserve is too short");
        assert!(!said.lacks_room());
    }
}
