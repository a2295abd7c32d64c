//! The transactions of the one connection that writes, its log, and the room that is kept for it.

use std::cell::Cell;
use std::time::SystemTime;

use hookgate::dedupe::{StoreError, StoreErrorKind};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, Row, Statement};

use super::calls::{Call, FileStore};
use super::fault::{Fault, lacks_room, store_error};
use super::header;
use super::open::{Opened, copy_log, page_bytes};
use super::open_files::OpenFiles;
use super::reserve::{LOG_BYTES, Reserve};

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
    /// The time of the file's last write after which [`stands`](Self::stands) has found that no
    /// other file was copied over it.
    seen: Cell<Option<SystemTime>>,
    /// Whether the log has the file's header.
    has_header: bool,
    /// The error by which the file was found to be damaged.
    damage: Option<StoreError>,
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
            seen: Cell::default(),
            has_header: false,
            damage: None,
        })
    }

    /// Begins a transaction for this group of calls. The limit of pages applies only to a group in
    /// which an event begins. Other calls need a little space first, and free more later.
    pub(super) fn begin<S: FileStore>(&mut self, group: &[Call<S>]) -> Result<(), StoreError> {
        let has_new = group.iter().any(Call::begins);
        // Checked before each write too: a write with an old index of the log would overwrite what
        // another process has written.
        self.check_files()?;
        // In a damaged file, a new event might never be found again, even if its own pages are not
        // damaged.
        if let Some(damage) = self.damage.as_ref().filter(|_| has_new) {
            return Err(damage.clone());
        }
        if let Some(pages) = self.max_pages {
            let pages = if has_new { pages } else { u32::MAX.into() };
            let limit = format!("PRAGMA max_page_count = {pages}");
            self.connection.execute_batch(&limit).map_err(store_error)?;
        }
        // When all of the log is copied, the next commit writes it from its beginning.
        self.has_header &= !matches!(self.log_pages(), Ok((log, copied)) if log == copied);
        self.begin.execute([]).map_err(store_error)?;
        if !group.is_empty() && !self.has_header {
            let marked = header::write(self.connection);
            marked
                .inspect_err(|_| self.leave_none_open())
                .map_err(store_error)?;
            self.has_header = true;
        }
        Ok(())
    }

    /// Commits what was written, or rolls it back after an error.
    pub(crate) fn end(&mut self, written: Result<(), Fault>) -> Result<(), StoreError> {
        let ended = written.and_then(|()| Ok(self.commit.execute([]).map(drop)?));
        let ended = ended.map_err(StoreError::from);
        self.leave_none_open();
        self.has_header &= ended.is_ok();
        if let Err(error) = &ended
            && error.kind() == StoreErrorKind::Corrupt
        {
            self.damage = Some(error.clone());
        }
        ended?;
        self.check_files()
    }

    fn check_files(&self) -> Result<(), StoreError> {
        if self.stands() {
            return Ok(());
        }
        let advice = match self.files.database_stands() && !self.is_overwritten() {
            true => {
                "-wal or -shm beside the file was moved, deleted or replaced while it was open: end every program that uses the file, without kill -9, then start again"
            }
            false => {
                "the file was moved, deleted or replaced while it was open. If it was moved, put it back: a restart makes a new, empty file. If a backup was put in its place, end every program that uses the file, delete -wal and -shm, and start again"
            }
        };
        Err(StoreError::saying(StoreErrorKind::Unavailable, advice))
    }

    /// Whether the path still leads to the open file, and no other one was written over it.
    pub(crate) fn stands(&self) -> bool {
        self.files.stands() && !self.is_overwritten()
    }

    /// Whether another file was copied over this one. It is looked for only after a write to the
    /// file: SQLite writes it seldom, when it copies the log.
    fn is_overwritten(&self) -> bool {
        let written = self.files.written();
        if written == self.seen.get() {
            return false;
        }
        let found = header::is_beside_another_log(self.connection);
        if matches!(found, Ok(false)) {
            self.seen.set(written);
        }
        // A file that can't be read at this moment is looked at again.
        found.unwrap_or(false)
    }

    /// Rolls back a transaction that is still open. Some failures end the transaction themselves;
    /// others, and a panic, leave it open.
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

    /// Frees the reserve, and copies the log at once: after that the log is written from its
    /// beginning again, and needs no more space. Also without a reserve, since the copy needs none
    /// where the file has the pages already. Returns whether a write may succeed now.
    pub(crate) fn take_reserve(&mut self) -> bool {
        let had_any = self.reserve.release();
        // An error here occurs again, and is reported, at the next write.
        self.copy_log().is_ok() || had_any
    }

    fn copy_log(&self) -> Result<(), StoreError> {
        self.check_files()?;
        copy_log(self.connection).map_err(store_error)
    }

    /// Returns the number of the log's pages, and how many of them are copied.
    fn log_pages(&mut self) -> rusqlite::Result<(i64, i64)> {
        let pages = |row: &Row<'_>| Ok((row.get(1)?, row.get(2)?));
        self.log_pages.query_row([], pages)
    }

    /// Copies the log into the file, so that the log does not grow: after all callers are answered,
    /// and not before.
    pub(crate) fn shorten_log(&mut self) {
        let pages = self.log_pages();
        if pages.is_ok_and(|(log, copied)| log.saturating_sub(copied) >= self.most_log_pages) {
            // If a reader prevents it, the next call does it. If the disk is full, the log would
            // grow without end.
            if self.copy_log().is_err_and(|error| lacks_room(&error)) {
                self.take_reserve();
            }
        }
    }

    /// Runs before the connection is closed. SQLite then copies the log into the file: not over
    /// another file, and not with an old index of the log.
    pub(crate) fn close(&self) {
        self.reserve.refill();
        if self.files.have_successors() || self.is_overwritten() {
            let leaves_log = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            let _ = self.connection.set_db_config(leaves_log, true);
        }
    }
}
