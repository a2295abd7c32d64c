//! The marks in the file's header that it is this crate's, and of which version.

use rusqlite::{Connection, MAIN_DB, Transaction, TransactionBehavior};

use super::open::set;
use crate::dedupe::{StoreError, StoreErrorKind};

/// The application id in the file's header, so that no other program's database is taken for one of this crate: `hkgt`.
const APPLICATION: i64 = 0x686b_6774;
/// The version of the tables. An inbox and a store of claims have tables of their own in the file, which each makes when it needs
/// them.
const VERSION: i64 = 1;
/// The size of the pages of a new file. A commit writes each page that it changes, and an event changes some pages by a few bytes:
/// small pages are less to write. An older file keeps its pages of 4,096 bytes.
const PAGE_BYTES: i64 = 1_024;

/// Returns whether the file is new. Refuses a file that can't be written, or is not this crate's, before anything is changed.
pub(crate) fn check(writer: &Connection, create: bool) -> Result<bool, StoreError> {
    if writer.is_readonly(MAIN_DB)? {
        return Err(StoreError::saying(
            StoreErrorKind::Denied,
            "this program may only read the file: give the file and its folder to its user",
        ));
    }
    let is_new = is_new(writer)?;
    if is_new && create {
        set(writer, "page_size", PAGE_BYTES)?;
    }
    Ok(is_new)
}

/// Returns whether the file is empty: no program owns it yet. Refuses one that is not this crate's. Reads the header in one
/// statement, and so in one transaction: another process may mark the file at this moment.
fn is_new(connection: &Connection) -> Result<bool, StoreError> {
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
            Err(error.caused_by(format!("its tables have version {version}")))
        }
        _ => Err(StoreError::saying(
            StoreErrorKind::NotAStore,
            "this is the database of another program: name another file",
        )),
    }
}

/// Makes tables in one transaction, in a file that is new or this crate's, and marks a new one. Another process may have made them
/// in the meantime: the function checks it.
pub(crate) fn create(
    connection: &Connection,
    tables: impl FnOnce() -> rusqlite::Result<()>,
) -> Result<(), StoreError> {
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
    use crate::sqlite::open::{connect, durably};
    use crate::sqlite::tests::Folder;

    #[test]
    fn a_file_that_is_marked_at_this_moment_is_no_other_programs() {
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
