//! A failure in SQLite, which is reported to every caller that shared the commit.

use std::fmt;
use std::sync::Arc;

use rusqlite::ErrorCode;

use crate::error::{StoreError, StoreErrorKind};

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
        Self::new(fault.kind).caused_by(Told(fault.source))
    }
}

/// The source of each caller's error.
#[derive(Debug)]
struct Told(Arc<Source>);

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Source::Sqlite(error) => error.fmt(f),
            Source::Said(words) => f.write_str(words),
        }
    }
}

impl std::error::Error for Told {}

/// No answer comes: the threads have ended because the inbox was dropped, or the user's code that they called has panicked.
pub(super) fn ended() -> StoreError {
    Fault::said(
        StoreErrorKind::Unavailable,
        "the inbox is closed, or its clock has panicked",
    )
    .into()
}
