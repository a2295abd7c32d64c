//! The transactions of the one connection that writes, its log, and the room that is kept for it.

use rusqlite::{Connection, Statement};

use super::fault::lacks_room;
use super::open::{Opened, copy_log, page_bytes};
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
    /// The largest number of the file's pages.
    max_pages: Option<i64>,
    files: OpenFiles,
}

impl<'c> Commits<'c> {
    pub(crate) fn prepare(
        connection: &'c Connection,
        opened: Opened,
        max_pages: Option<i64>,
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            begin: connection.prepare("BEGIN IMMEDIATE")?,
            commit: connection.prepare("COMMIT")?,
            log_pages: connection.prepare("PRAGMA wal_checkpoint(NOOP)")?,
            most_log_pages: LOG_BYTES / page_bytes(connection)?,
            max_pages,
            connection,
            reserve: opened.reserve,
            files: opened.files,
        })
    }

    /// Begins a transaction. The limit of pages is for events that begin: other calls free space in the end, and need a little first.
    pub(crate) fn begin(&mut self, has_new: bool) -> Result<(), StoreError> {
        if let Some(pages) = self.max_pages {
            let pages = if has_new { pages } else { u32::MAX.into() };
            let limit = format!("PRAGMA max_page_count = {pages}");
            self.connection.execute_batch(&limit)?;
        }
        self.begin.execute([])?;
        Ok(())
    }

    /// Commits what was written, or rolls it back after an error.
    pub(crate) fn end(&mut self, written: Result<(), StoreError>) -> Result<(), StoreError> {
        let ended = written.and_then(|()| Ok(self.commit.execute([]).map(drop)?));
        self.leave_none_open();
        ended?;
        if !self.stands() {
            return Err(StoreError::saying(
                StoreErrorKind::Unavailable,
                "the file, or the log beside it, was moved or deleted while it was open: put it back, or restart",
            ));
        }
        Ok(())
    }

    /// Whether the path still leads to the open file.
    pub(crate) fn stands(&self) -> bool {
        self.files.stands()
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
        fault.kind() == StoreErrorKind::TimedOut || !self.stands()
    }

    /// Frees the reserve, and copies the log at once: after that the log is written from its beginning again, and needs no more
    /// space. Also without a reserve, since the copy needs none where the file has the pages already. Returns whether a write may
    /// succeed now.
    pub(crate) fn take_reserve(&mut self) -> bool {
        let had_any = self.reserve.release();
        // An error here occurs again, and is reported, at the next write.
        copy_log(self.connection).is_ok() || had_any
    }

    /// Copies the log into the file, so that the log does not grow: after all callers are answered, and not before.
    pub(crate) fn shorten_log(&mut self) {
        let pages = self.log_pages.query_row([], |row| {
            let (log, copied): (i64, i64) = (row.get(1)?, row.get(2)?);
            Ok(log.saturating_sub(copied))
        });
        if pages.is_ok_and(|pages| pages >= self.most_log_pages) {
            // If a reader prevents it, the next call does it. If the disk is full, the log would grow without end.
            if copy_log(self.connection).is_err_and(|error| lacks_room(&error.into())) {
                self.take_reserve();
            }
        }
    }
}
