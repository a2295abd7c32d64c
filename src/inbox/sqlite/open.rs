//! Opens the file, and checks the file, SQLite, and every connection.

use std::error::Error as _;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags};

use super::fault::{failed, lacks_room};
use super::open_files::{OpenFiles, find};
use super::options::InboxOptions;
use super::reserve::{LOG_BYTES, Reserve};
use super::schema::{self, FileOwner};
use crate::dedupe::{StoreError, StoreErrorKind};

/// From 3.7.0 on, two connections to one file could damage it when the log was started again; this is the first version without
/// the fault.
const OLDEST_SQLITE: i32 = 3_051_003;
/// If a burst has left a larger log on the disk, the log is shortened to this number of bytes.
const LARGEST_LOG: i64 = 64 * 1024 * 1024;
/// The size of the pages of a new file. A commit writes each page that it changes, and an event changes 19 pages, most of them by
/// a few bytes: small pages are less to write. An older file keeps its pages of 4,096 bytes.
const PAGE_BYTES: i64 = 1_024;
/// The unit of [`InboxOptions::max_pages`].
const UNIT_BYTES: i64 = 4_096;

/// Settings that must hold on every connection, also on readers': any connection may copy the log into the file. 2 is FULL: each
/// commit is flushed.
const MUST: [(&str, i64); 3] = [
    ("synchronous", 2),
    ("fullfsync", 1),
    ("checkpoint_fullfsync", 1),
];

pub(super) struct Opened {
    pub(super) writer: Connection,
    pub(super) reader: Connection,
    pub(super) files: OpenFiles,
    pub(super) reserve: Reserve,
}

/// Opens the file, and creates the inbox in it if it is empty.
pub(super) fn open(path: &Path, options: &InboxOptions) -> Result<Opened, StoreError> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        let error = StoreError::saying(
            StoreErrorKind::TooOld,
            "this program is linked with a SQLite before 3.51.3, which damages files that two connections write: build with the bundled one",
        );
        return Err(error.caused_by(format!("it is {}", rusqlite::version())));
    }
    let file = find(path, options.create)?;
    let mut reserve = Reserve::of(&file);
    let opened = match open_file(&file, options) {
        // SQLite does not report for every file that it could not be created because the disk is full.
        Err(error) if may_be_for_room(&error) && reserve.release() => open_file(&file, options),
        opened => opened,
    };
    let (writer, reader) = opened?;
    if options.create {
        // If the reserve is too short, no delivery is accepted until there is room, and workers still handle the entries.
        reserve.is_whole();
    }
    Ok(Opened {
        writer,
        reader,
        files: OpenFiles::of(file),
        reserve,
    })
}

fn may_be_for_room(error: &StoreError) -> bool {
    let cannot_open = |source| {
        let source: Option<&rusqlite::Error> = source;
        source.is_some_and(|source| source.sqlite_error_code() == Some(ErrorCode::CannotOpen))
    };
    lacks_room(error) || cannot_open(error.source().and_then(|source| source.downcast_ref()))
}

/// Returns the two connections: the first writes, the second reads.
fn open_file(file: &Path, options: &InboxOptions) -> Result<(Connection, Connection), StoreError> {
    let writer = connect(file, options).map_err(failed)?;
    if writer.is_readonly(MAIN_DB).map_err(failed)? {
        return Err(StoreError::saying(
            StoreErrorKind::Denied,
            "this program may only read the file: give the file and its folder to its user",
        ));
    }
    // Checked before anything is changed: the file may belong to another program.
    let owner = schema::owner(&writer).map_err(failed)?;
    if owner == FileOwner::New && options.create {
        set(&writer, "page_size", PAGE_BYTES).map_err(failed)?;
    }
    if let Some(pages) = options.max_pages {
        let pages = max_page_count(&writer, pages).map_err(failed)?;
        set(&writer, "max_page_count", pages).map_err(failed)?;
    }
    match owner {
        FileOwner::Ours if !schema::is_older(&writer).map_err(failed)? => {}
        FileOwner::New if !options.create => {
            return Err(StoreError::saying(
                StoreErrorKind::Missing,
                "the file is empty, no receiver has made an inbox of it: name the one that the receiver opens",
            ));
        }
        FileOwner::New | FileOwner::Ours => {
            durably(&writer)?;
            schema::create(&writer).map_err(failed)?;
        }
        FileOwner::Newer(version) => {
            let error = StoreError::saying(
                StoreErrorKind::Newer,
                "a newer version of hookgate has written the file: use that one",
            );
            return Err(error.caused_by(format!("its tables have version {version}")));
        }
        FileOwner::Foreign => {
            return Err(StoreError::saying(
                StoreErrorKind::NotAStore,
                "this is the database of another program: name another file",
            ));
        }
    }
    durably(&writer)?;
    flush_what_is_there(&writer).map_err(failed)?;
    let reader = connect(file, options).map_err(failed)?;
    durably(&reader)?;
    reader
        .execute_batch("PRAGMA query_only = ON")
        .map_err(failed)?;
    Ok((writer, reader))
}

fn connect(file: &Path, options: &InboxOptions) -> rusqlite::Result<Connection> {
    // Each connection belongs to one thread.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(options.patience)?;
    Ok(connection)
}

/// Sets the options that make a commit durable, and reads them back: SQLite may refuse each of them without an error.
fn durably(connection: &Connection) -> Result<(), StoreError> {
    let not_durable = |advice: &'static str, found: String| {
        StoreError::saying(StoreErrorKind::NotDurable, advice).caused_by(found)
    };
    let mode: String = connection
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        .map_err(failed)?;
    if mode != "wal" {
        return Err(not_durable(
            "SQLite can't keep a write-ahead log there: use a disk of this machine",
            format!("its journal is of mode {mode}"),
        ));
    }
    for (pragma, value) in MUST {
        // Only on Apple systems does a plain flush stop at the disk's cache.
        if pragma.contains("fullfsync") && !cfg!(target_vendor = "apple") {
            continue;
        }
        if set(connection, pragma, value).map_err(failed)? != value {
            return Err(not_durable(
                "SQLite refuses to flush each commit to the disk",
                format!("it left {pragma} as it was"),
            ));
        }
    }
    let log_pages = LOG_BYTES * 4 / page_bytes(connection).map_err(failed)?;
    set(connection, "wal_autocheckpoint", log_pages).map_err(failed)?;
    set(connection, "journal_size_limit", LARGEST_LOG).map_err(failed)?;
    // Deleted data is overwritten if this needs no extra writes: the bytes of a deleted body must not stay in the file.
    connection
        .execute_batch("PRAGMA secure_delete = FAST")
        .map_err(failed)?;
    // The file may come from any source: calls in its schema can do no more than its data can.
    set(connection, "trusted_schema", 0).map_err(failed)?;
    Ok(())
}

/// A process may have been killed between its write and its flush. Its writes are read like all others, and a copy of such a
/// delivery would be answered as a duplicate although the first was never flushed. So the log is copied into the file, which
/// flushes the log first.
fn flush_what_is_there(connection: &Connection) -> rusqlite::Result<()> {
    // If another process keeps the file open, its next write flushes all earlier writes.
    match copy_log(connection) {
        // The log is flushed before the first page is copied, and only the copies found no room.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => Ok(()),
        copied => copied,
    }
}

/// Copies the log into the file, except pages that a reader still needs.
pub(super) fn copy_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

/// Returns the size of the file's pages.
pub(super) fn page_bytes(connection: &Connection) -> rusqlite::Result<i64> {
    let bytes: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    Ok(bytes.max(1))
}

/// Returns the number of the file's pages in this number of pages of [`UNIT_BYTES`].
pub(super) fn max_page_count(connection: &Connection, pages: u32) -> rusqlite::Result<i64> {
    Ok((i64::from(pages) * UNIT_BYTES / page_bytes(connection)?).max(1))
}

/// Sets the option, and returns its value after that.
fn set(connection: &Connection, pragma: &str, value: i64) -> rusqlite::Result<i64> {
    connection.execute_batch(&format!("PRAGMA {pragma} = {value}"))?;
    connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn a_file_that_cannot_be_opened_for_lack_of_room_takes_the_reserve_and_no_other_does() {
        let takes = |code| {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            may_be_for_room(&failed(error))
        };
        for code in [
            ffi::SQLITE_FULL,
            ffi::SQLITE_CANTOPEN,
            ffi::SQLITE_IOERR_WRITE,
            ffi::SQLITE_IOERR_FSYNC,
            ffi::SQLITE_IOERR_SHMSIZE,
        ] {
            assert!(takes(code), "{code}");
        }
        for code in [
            ffi::SQLITE_READONLY,
            ffi::SQLITE_PERM,
            ffi::SQLITE_BUSY,
            ffi::SQLITE_CORRUPT,
            ffi::SQLITE_NOTADB,
            ffi::SQLITE_IOERR_READ,
            ffi::SQLITE_ERROR,
        ] {
            assert!(!takes(code), "{code}");
        }
        let read_only = StoreError::saying(StoreErrorKind::Denied, "read only");
        assert!(!may_be_for_room(&read_only));
    }
}
