//! Opens a file, and checks the file, SQLite, and every connection.

use std::path::Path;
use std::time::Duration;

use hookgate::dedupe::{StoreError, StoreErrorKind};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::fault::{Fault, lacks_room, of_sqlite};
use super::open_files::{OpenFiles, find};
use super::reserve::{LOG_BYTES, Reserve};

/// From 3.7.0 on, two connections to one file could damage it when the log was started again; this
/// is the first version without the fault.
const OLDEST_SQLITE: i32 = 3_051_003;
/// If a burst has left a larger log on the disk, the log is shortened to this number of bytes.
const LARGEST_LOG: i64 = 64 * 1024 * 1024;

/// Settings that must hold on every connection, also on readers': any connection may copy the log
/// into the file. 2 is FULL: each commit is flushed.
const MUST: [(&str, i64); 3] = [
    ("synchronous", 2),
    ("fullfsync", 1),
    ("checkpoint_fullfsync", 1),
];

/// An open file.
pub(crate) struct Opened {
    pub(crate) files: OpenFiles,
    pub(crate) reserve: Reserve,
}

/// Opens the file with this function. If it lacks room, the reserve is released, and the function
/// is called again.
pub(crate) fn open<C>(
    path: &Path,
    create: bool,
    connect: impl Fn(&Path) -> Result<C, Fault>,
) -> Result<(C, Opened), StoreError> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        let error = StoreError::saying(
            StoreErrorKind::TooOld,
            "this program is linked with a SQLite before 3.51.3, which damages files that two connections write: build with the bundled one",
        );
        return Err(error.caused_by(format!("it is {}", rusqlite::version())));
    }
    let file = find(path, create)?;
    let mut reserve = Reserve::of(&file);
    let connect = |file: &Path| connect(file).map_err(StoreError::from);
    let connections = match connect(&file) {
        // SQLite does not report for every file that it could not be created because the disk is
        // full.
        Err(error) if may_be_for_room(&error) && reserve.release() => connect(&file),
        connected => connected,
    };
    let connections = connections?;
    if create {
        // If the reserve is too short, nothing new is accepted until there is room, and known
        // events are still settled.
        reserve.ensure_whole();
    }
    let files = OpenFiles::of(&file);
    Ok((connections, Opened { files, reserve }))
}

fn may_be_for_room(error: &StoreError) -> bool {
    let code = of_sqlite(error).and_then(rusqlite::Error::sqlite_error_code);
    lacks_room(error) || code == Some(ErrorCode::CannotOpen)
}

pub(crate) fn connect(file: &Path, busy_timeout: Duration) -> Result<Connection, Fault> {
    // Each connection belongs to one thread.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(busy_timeout)?;
    Ok(connection)
}

/// Sets the options that make a commit durable, and reads them back: SQLite may refuse each of them
/// without an error.
pub(crate) fn durably(connection: &Connection) -> Result<(), Fault> {
    let not_durable = |advice: &'static str, found: String| {
        Fault(StoreError::saying(StoreErrorKind::NotDurable, advice).caused_by(found))
    };
    let mode = write_ahead(connection)?;
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
        if set(connection, pragma, value)? != value {
            return Err(not_durable(
                "SQLite refuses to flush each commit to the disk",
                format!("it left {pragma} as it was"),
            ));
        }
    }
    let log_pages = LOG_BYTES * 4 / page_bytes(connection)?;
    set(connection, "wal_autocheckpoint", log_pages)?;
    set(connection, "journal_size_limit", LARGEST_LOG)?;
    // Deleted data is overwritten if this needs no extra writes: the bytes of a deleted body must
    // not stay in the file.
    connection.execute_batch("PRAGMA secure_delete = FAST")?;
    // The file may come from any source, so its schema may call only functions that SQLite knows to
    // be harmless.
    set(connection, "trusted_schema", 0)?;
    Ok(())
}

/// Asks for a write-ahead log, and returns the mode that the journal then has. Of two connections
/// that change the mode of a new file at the same time, SQLite refuses one at once, without the
/// wait of its `busy_timeout`: so that wait is made here.
fn write_ahead(connection: &Connection) -> rusqlite::Result<String> {
    const STEP_MS: i64 = 2;
    let busy_timeout_ms: i64 = connection.query_row("PRAGMA busy_timeout", [], |row| row.get(0))?;
    let ask = || connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0));
    for _ in 0..busy_timeout_ms / STEP_MS {
        match ask() {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                std::thread::sleep(Duration::from_millis(STEP_MS.unsigned_abs()));
            }
            answer => return answer,
        }
    }
    ask()
}

/// A process may have been killed between its write and its flush. Its writes are read like all
/// others, and a copy of such a delivery would be answered as a duplicate although the first was
/// never flushed. So the log is copied into the file, which flushes the log first.
pub(crate) fn flush_what_is_there(connection: &Connection) -> Result<(), Fault> {
    // If another process keeps the file open, its next write flushes all earlier writes.
    match copy_log(connection) {
        // The log is flushed before the first page is copied, and only the copies found no room.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => Ok(()),
        copied => Ok(copied?),
    }
}

/// Copies the log into the file, except pages that a reader still needs.
pub(crate) fn copy_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

/// Returns the size of the file's pages.
pub(crate) fn page_bytes(connection: &Connection) -> rusqlite::Result<i64> {
    let bytes: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    Ok(bytes.max(1))
}

/// Sets the option, and returns its value after that.
pub(crate) fn set(connection: &Connection, pragma: &str, value: i64) -> rusqlite::Result<i64> {
    connection.execute_batch(&format!("PRAGMA {pragma} = {value}"))?;
    connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use rusqlite::ffi;

    use super::*;
    use crate::fault::store_error;
    use crate::tests::Folder;

    #[test]
    fn a_file_that_cannot_be_opened_for_lack_of_room_takes_the_reserve() {
        let takes = |code| {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            may_be_for_room(&store_error(error))
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

    // fault Q37: two processes open a new file of SQLite at the same moment, and one is refused
    #[test]
    fn a_new_file_is_opened_by_many_at_once() {
        let folder = Folder::new();
        for round in 0..20 {
            let file = folder.0.join(format!("{round}.db"));
            std::fs::File::create(&file).unwrap();
            let begin = Barrier::new(4);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let connection = connect(&file, Duration::from_secs(30)).unwrap();
                        begin.wait();
                        durably(&connection).unwrap();
                    });
                }
            });
        }
    }
}
