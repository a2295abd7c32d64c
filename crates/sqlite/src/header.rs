//! The marks in the file's header: that it is this crate's, of which version, and which log belongs
//! to it.

use hookgate::dedupe::{StoreError, StoreErrorKind};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags, Transaction, TransactionBehavior};

use super::fault::Fault;
use super::open::set;
use super::open_files::{beside, has_bytes};

/// The application id in the file's header, so that no other program's database is taken for one of
/// this crate: `hkgt`.
const APPLICATION: i64 = 0x686b_6774;
/// The version of the tables. An inbox and a store of claims have tables of their own in the file,
/// which each makes when it needs them.
const VERSION: i64 = 1;
/// The size of the pages of a new file. An event changes some pages by a few bytes, and a commit
/// writes whole pages.
const PAGE_BYTES: i64 = 1_024;
/// SQLite counts the changes of the tables in the schema version, from zero. A version of at least
/// this number comes from [`mark`].
const LEAST_MARK: i32 = 1 << 20;
/// How many changes of the tables a log may have that are not copied into the file yet. There are
/// some twenty.
const MAX_CHANGES: i32 = 1_000;

/// Returns whether the file is new. Refuses a file that can't be written, or is not this crate's,
/// before anything is changed.
pub(crate) fn check(writer: &Connection, create: bool) -> Result<bool, Fault> {
    if writer.is_readonly(MAIN_DB)? {
        let advice =
            "this program may only read the file: give the file and its folder to its user";
        return Err(StoreError::saying(StoreErrorKind::Denied, advice).into());
    }
    // When a connection is closed after an error, SQLite would copy the log into the file.
    let leaves_log =
        |leaves| writer.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, leaves);
    leaves_log(true)?;
    // Compared only where there is a log: without one, another process may change the schema
    // version at this moment, in `mark`.
    let log = writer.path().map(|file| beside(file.as_ref(), "-wal"));
    let has_log = log.is_some_and(|log| has_bytes(&log));
    if has_log && is_beside_another_log(writer).unwrap_or(false) {
        return Err(StoreError::saying(
            StoreErrorKind::Corrupt,
            "the log beside it (-wal) was written for another file, as when a backup is put in place. To keep this file: end every program that uses it, delete -wal and -shm, and start again. To keep the log: put the file back that it belongs to",
        )
        .into());
    }
    let is_new = is_new(writer)?;
    leaves_log(false)?;
    if is_new && create {
        set(writer, "page_size", PAGE_BYTES)?;
    }
    if create || !is_new {
        mark(writer)?;
    }
    Ok(is_new)
}

/// Whether the log beside the file was written for another file. SQLite does not check it: a log
/// has whole pages, and over the pages of a backup they damage it.
///
/// The schema versions show it. A file and its own log have the same version; the file's is smaller
/// while changes of tables are only in the log. SQLite gives each copy another version:
/// `VACUUM INTO` gives the next one, `.backup` a small one. A `VACUUM` of the file itself gives it
/// the next version too. An earlier copy may then have the file's version: [`go_on_from_copies`] is
/// needed.
///
/// A file that is not a database, or a damaged one, counts as another file. An error means that it
/// can't be read at this moment.
pub(crate) fn is_beside_another_log(connection: &Connection) -> rusqlite::Result<bool> {
    match versions_differ(connection) {
        Err(error)
            if matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
            ) =>
        {
            Ok(true)
        }
        differ => differ,
    }
}

fn versions_differ(connection: &Connection) -> rusqlite::Result<bool> {
    // The file first: in the meantime it may be written by another process, and the log never has
    // an older version than the file.
    let in_file = version_in_file(connection)?;
    // The version wraps around after the largest number.
    let ahead = schema_version(connection)?.wrapping_sub(in_file);
    // In the meantime the whole log may have been copied, too.
    Ok(!(0..=MAX_CHANGES).contains(&ahead) && version_in_file(connection)? == in_file)
}

/// Moves the schema version away from those of all earlier copies, after a `VACUUM`. It takes two
/// steps. Each is less than `MAX_CHANGES`, so that the file is never taken for another one; both
/// together are more, so that an earlier copy is.
#[cfg(feature = "inbox")]
pub(crate) fn go_on_from_copies(
    connection: &Connection,
    copy_log: impl Fn() -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    const STEP: i32 = MAX_CHANGES / 10 * 9;
    for _ in 0..2 {
        copy_log()?;
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
        let next = version_in_file(connection)?.wrapping_add(STEP);
        // No version is used twice: other connections know by it that the tables were moved.
        if next.wrapping_sub(schema_version(connection)?) > 0 {
            connection.execute_batch(&format!("PRAGMA schema_version = {next}"))?;
        }
        transaction.commit()?;
    }
    copy_log()
}

/// Returns the schema version in the file, without its log.
fn version_in_file(connection: &Connection) -> rusqlite::Result<i32> {
    let path = connection.path().unwrap_or_default();
    // SQLite reads this too. If this process opened the file itself and closed it, the system would
    // release SQLite's locks of the file.
    let bytes = path.bytes().map(|byte| match byte {
        b'/' | b'-' | b'.' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    });
    let without_log = format!("file:{}?immutable=1", bytes.collect::<String>());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let file = Connection::open_with_flags(without_log, flags)?;
    // While the log is copied, the file has fewer pages than its header says. Without this, SQLite
    // calls it damaged.
    file.execute_batch("PRAGMA writable_schema = ON")?;
    schema_version(&file)
}

fn schema_version(connection: &Connection) -> rusqlite::Result<i32> {
    connection.query_row("PRAGMA schema_version", [], |row| row.get(0))
}

/// Gives the file a schema version of its own, before it has a log, if it is new or a copy. So a
/// file that was restored from a backup has another version than that backup.
fn mark(connection: &Connection) -> rusqlite::Result<()> {
    let mode = |pragma| connection.query_row(pragma, [], |row| row.get::<_, String>(0));
    let log_pages = "PRAGMA wal_checkpoint(NOOP)";
    let log_pages: i32 = connection.query_row(log_pages, [], |row| row.get(1))?;
    if schema_version(connection)? < LEAST_MARK && log_pages == 0 {
        // Refused if another process has the file open: then it stays as it is.
        let _ = mode("PRAGMA journal_mode = DELETE");
    }
    if mode("PRAGMA journal_mode")? == "wal" {
        return Ok(());
    }
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    // Another process may have begun a log before the lock was taken.
    if mode("PRAGMA journal_mode")? != "wal" {
        let version = fastrand::i32(LEAST_MARK..i32::MAX - LEAST_MARK);
        connection.execute_batch(&format!("PRAGMA schema_version = {version}"))?;
    }
    transaction.commit()
}

/// Writes the header into the log, unchanged: [`is_beside_another_log`] needs it there.
pub(crate) fn write(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!("PRAGMA user_version = {VERSION}"))
}

/// Returns whether the file is empty: no program owns it yet. Refuses one that is not this crate's.
/// Reads the header in one statement, and so in one transaction: another process may mark the file
/// at this moment.
fn is_new(connection: &Connection) -> Result<bool, Fault> {
    let header = "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version), \
        (SELECT count(*) FROM sqlite_schema)";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let (application, version, tables): (i64, i64, i64) = connection.query_row(header, [], read)?;
    match (application, version) {
        (0, 0) if tables == 0 => Ok(true),
        (APPLICATION, VERSION) => Ok(false),
        (APPLICATION, version) if version > VERSION => {
            let error = StoreError::saying(
                StoreErrorKind::Newer,
                "a newer version of hookgate has written the file: use that one",
            );
            Err(error
                .caused_by(format!("its tables have version {version}"))
                .into())
        }
        _ => Err(StoreError::saying(
            StoreErrorKind::NotAStore,
            "this is the database of another program: name another file",
        )
        .into()),
    }
}

/// Makes tables in one transaction, in a file that is new or this crate's, and marks a new one.
/// Another process may have made them in the meantime: the function checks it.
pub(crate) fn create(
    connection: &Connection,
    tables: impl FnOnce() -> rusqlite::Result<()>,
) -> Result<(), Fault> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let is_new = is_new(connection)?;
    tables()?;
    if is_new {
        connection.execute_batch(&format!(
            "PRAGMA application_id = {APPLICATION};PRAGMA user_version = {VERSION};"
        ))?;
    }
    Ok(transaction.commit()?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::open::{connect, durably};
    use crate::tests::Folder;

    #[test]
    fn a_new_file_that_many_open_at_once_has_its_own_log() {
        let folder = Folder::new();
        for round in 0..10 {
            let file = folder.0.join(format!("{round}.db"));
            std::fs::File::create(&file).unwrap();
            let begin = std::sync::Barrier::new(4);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let connection = connect(&file, Duration::from_secs(30)).unwrap();
                        begin.wait();
                        check(&connection, true).unwrap();
                        durably(&connection).unwrap();
                        create(&connection, || Ok(())).unwrap();
                        assert!(!is_beside_another_log(&connection).unwrap());
                        assert!(schema_version(&connection).unwrap() >= LEAST_MARK);
                    });
                }
            });
        }
    }

    /// As `.backup` of SQLite's shell makes it: page by page, with a small schema version.
    #[test]
    fn a_copy_of_the_pages_is_told_from_the_file_and_marked_before_it_has_a_log() {
        let folder = Folder::new();
        let open = |name: &str| {
            let connection = connect(&folder.0.join(name), Duration::from_secs(30)).unwrap();
            check(&connection, true).unwrap();
            durably(&connection).unwrap();
            connection
        };
        std::fs::File::create(folder.0.join("file.db")).unwrap();
        drop(open("file.db"));
        std::fs::copy(folder.0.join("file.db"), folder.0.join("copy.db")).unwrap();
        let copy = Connection::open(folder.0.join("copy.db")).unwrap();
        copy.execute_batch("PRAGMA schema_version = 1").unwrap();
        drop(copy);
        let file = open("file.db");
        create(&file, || file.execute_batch("CREATE TABLE made (id)")).unwrap();
        assert!(!is_beside_another_log(&file).unwrap());
        std::fs::copy(folder.0.join("file.db-wal"), folder.0.join("copy.db-wal")).unwrap();
        let copy = connect(&folder.0.join("copy.db"), Duration::from_secs(30)).unwrap();
        let refused = check(&copy, true).unwrap_err();
        assert_eq!(refused.0.kind(), StoreErrorKind::Corrupt);
        drop(copy);
        std::fs::remove_file(folder.0.join("copy.db-wal")).unwrap();
        assert!(schema_version(&open("copy.db")).unwrap() >= LEAST_MARK);
    }

    /// As after a kill while the log was copied: the first page says that the file has more pages
    /// than it has.
    // fault Q49: a process is killed while it copies the log into a file that grows, and the next start takes the file for another one
    #[test]
    fn a_file_into_which_the_log_is_half_copied_has_its_own_log() {
        let folder = Folder::new();
        let at = |name: &str| folder.0.join(name);
        let open = |name: &str| connect(&at(name), Duration::from_secs(30)).unwrap();
        std::fs::File::create(at("file.db")).unwrap();
        let file = open("file.db");
        check(&file, true).unwrap();
        durably(&file).unwrap();
        create(&file, || file.execute_batch("CREATE TABLE made (id)")).unwrap();
        let copy = || file.query_row("PRAGMA wal_checkpoint", [], |_| Ok(()));
        copy().unwrap();
        let mut half = std::fs::read(at("file.db")).unwrap();
        file.execute_batch("INSERT INTO made VALUES (zeroblob(100000))")
            .unwrap();
        copy().unwrap();
        let whole = std::fs::read(at("file.db")).unwrap();
        assert!(whole.len() > half.len());
        half[..1_024].copy_from_slice(&whole[..1_024]);
        std::fs::write(at("half.db"), half).unwrap();
        std::fs::copy(at("file.db-wal"), at("half.db-wal")).unwrap();
        assert!(!is_beside_another_log(&open("half.db")).unwrap());
    }

    // fault Q40: a process that opens a file of SQLite while another marks it as new takes it for another program's
    #[test]
    fn a_file_that_is_marked_at_this_moment_is_not_taken_for_another_programs() {
        let folder = Folder::new();
        for round in 0..100 {
            let file = folder.0.join(format!("{round}.db"));
            std::fs::File::create(&file).unwrap();
            let open = || {
                let connection = connect(&file, Duration::from_secs(30)).unwrap();
                durably(&connection).unwrap();
                connection
            };
            let (maker, reader) = (open(), open());
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    let table = || maker.execute_batch("CREATE TABLE made (id)");
                    create(&maker, table).unwrap();
                });
                while is_new(&reader).unwrap() {}
            });
        }
    }
}
