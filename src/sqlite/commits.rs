//! The transactions of the one connection that writes, its log, and the room that is kept for it.

use rusqlite::{Connection, Statement};

use super::fault::{failed, lacks_room};
use super::open::{copy_log, page_bytes};
use super::open_files::OpenFiles;
use super::reserve::{LOG_BYTES, Reserve};
use crate::dedupe::{StoreError, StoreErrorKind};

pub(crate) struct Commits<'c> {
    pub(crate) connection: &'c Connection,
    pub(crate) reserve: Reserve,
    begin: Statement<'c>,
    commit: Statement<'c>,
    log_pages: Statement<'c>,
    /// The log is copied when it has this number of pages.
    most_log_pages: i64,
    files: OpenFiles,
}

impl<'c> Commits<'c> {
    pub(crate) fn prepare(
        connection: &'c Connection,
        files: OpenFiles,
        reserve: Reserve,
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            begin: connection.prepare("BEGIN IMMEDIATE")?,
            commit: connection.prepare("COMMIT")?,
            log_pages: connection.prepare("PRAGMA wal_checkpoint(NOOP)")?,
            most_log_pages: LOG_BYTES / page_bytes(connection)?,
            connection,
            reserve,
            files,
        })
    }

    pub(crate) fn begin(&mut self) -> Result<(), StoreError> {
        self.begin.execute([]).map(drop).map_err(failed)
    }

    /// Commits what was written, or rolls it back after an error.
    pub(crate) fn end<T>(&mut self, written: rusqlite::Result<T>) -> Result<T, StoreError> {
        let written = written.and_then(|written| {
            self.commit.execute([])?;
            Ok(written)
        });
        self.leave_none_open();
        let written = written.map_err(failed)?;
        if !self.files.stands() {
            return Err(StoreError::saying(
                StoreErrorKind::Unavailable,
                "the file, or the log beside it, was moved or deleted while it was open: put it back, or restart",
            ));
        }
        Ok(written)
    }

    /// Rolls back a transaction that is still open. Some failures end the transaction themselves; others, and a panic, leave it
    /// open.
    pub(crate) fn leave_none_open(&self) {
        if !self.connection.is_autocommit() {
            // The first failure is the one that is reported.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    /// Whether no write can succeed now, after this error.
    pub(crate) fn is_stuck(&self, fault: &StoreError) -> bool {
        fault.kind() == StoreErrorKind::TimedOut || !self.files.stands()
    }

    /// Frees the reserve, and uses the space at once to copy the log: after that the log needs no more. Returns whether there was
    /// a reserve.
    pub(crate) fn take_reserve(&mut self) -> bool {
        let had_any = self.reserve.release();
        if had_any {
            // An error here occurs again, and is reported, at the next write.
            let _ = copy_log(self.connection);
        }
        had_any
    }

    /// Copies the log into the file, so that the log does not grow: after all callers are answered, and not before.
    pub(crate) fn shorten_log(&mut self) {
        let pages = self.log_pages.query_row([], |row| {
            let (log, copied): (i64, i64) = (row.get(1)?, row.get(2)?);
            Ok(log.saturating_sub(copied))
        });
        if pages.is_ok_and(|pages| pages >= self.most_log_pages) {
            // If a reader prevents it, the next call does it. If the disk is full, the log would grow without end.
            if copy_log(self.connection).is_err_and(|error| lacks_room(&failed(error))) {
                self.take_reserve();
            }
        }
    }
}
