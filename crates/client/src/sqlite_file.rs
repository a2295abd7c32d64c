//! A connection to a file of SQLite. No thread of the runtime waits for the disk.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hookgate::dedupe::{StoreError, StoreErrorKind, StoreFuture};
use rusqlite::{Connection, OpenFlags};

use crate::fault::Fault;

/// How long a call waits for another connection that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(crate) struct SqliteFile(Arc<Mutex<Connection>>);

impl SqliteFile {
    /// Opens the file, and makes the file and the tables where they are missing.
    pub(crate) fn open(path: &Path, schema: &str) -> Result<Self, Fault> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // A file keeps its mode: where it is not a write-ahead log, it stays so if another connection is open.
        let _: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        // A power cut may take back the last writes: a change that a mirror lost is found by the next passes, and an echo that
        // a ledger lost is handled as a foreign event.
        connection.execute_batch("PRAGMA synchronous = NORMAL")?;
        connection.execute_batch(schema)?;
        Self::on(connection)
    }

    /// Opens a file that exists, for reading alone. This statement of its use shows whether the table is there.
    pub(crate) fn open_read_only(path: &Path, statement: &str) -> Result<Self, Fault> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.prepare(statement)?;
        Self::on(connection)
    }

    fn on(connection: Connection) -> Result<Self, Fault> {
        connection.execute_batch("PRAGMA trusted_schema = 0")?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    pub(crate) fn call<'a, T: Send + 'static>(
        &'a self,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> StoreFuture<'a, T> {
        let connection = Arc::clone(&self.0);
        StoreFuture::boxed(async move {
            let worked = tokio::task::spawn_blocking(move || {
                work(&connection.lock().unwrap_or_else(PoisonError::into_inner))
            });
            let failed = |error| StoreError::new(StoreErrorKind::Unavailable).caused_by(error);
            worked.await.map_err(failed)?.map_err(StoreError::from)
        })
    }
}
