//! A connection to a file of SQLite. No thread of the runtime waits for the disk.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hookgate::dedupe::{StoreError, StoreErrorKind, StoreFuture};
use hookgate_sqlite::store_error;
use rusqlite::types::{Value as SqliteValue, ValueRef};
use rusqlite::{Connection, OpenFlags, Result, params_from_iter};

use super::{Engine, Row, Value};

/// How long a call waits for another connection that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// An open file. Clones share it.
#[derive(Clone, Debug)]
pub struct SqliteFile(Arc<Mutex<Connection>>);

impl SqliteFile {
    /// Opens the file, and makes the file and the tables where they are missing.
    pub(crate) fn open(path: &Path, schema: &str) -> Result<Self, StoreError> {
        let opened = || {
            let connection = Connection::open(path)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            // A file keeps its mode: where it is not a write-ahead log, it stays so if another
            // connection is open.
            let _: String =
                connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
            // A power cut may take back the last writes: a change that a mirror lost is found by
            // the next passes, and an echo that a ledger lost is handled as a foreign event.
            connection.execute_batch("PRAGMA synchronous = NORMAL")?;
            connection.execute_batch(schema)?;
            Self::on(connection)
        };
        opened().map_err(store_error)
    }

    /// Opens a file that exists, for reading alone. This statement of its use shows whether the
    /// table is there.
    pub(crate) fn open_read_only(path: &Path, statement: &str) -> Result<Self, StoreError> {
        let opened = || {
            let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            connection.prepare(statement)?;
            Self::on(connection)
        };
        opened().map_err(store_error)
    }

    fn on(connection: Connection) -> Result<Self> {
        connection.execute_batch("PRAGMA trusted_schema = 0")?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }
}

impl Engine for SqliteFile {
    const NOW: &'static str = "unixepoch()";
    const AGO: &'static str = "unixepoch() - $3";

    fn run(&self, sql: String, values: Vec<Value>) -> StoreFuture<'_, Vec<Row>> {
        let connection = Arc::clone(&self.0);
        StoreFuture::boxed(async move {
            let worked = tokio::task::spawn_blocking(move || {
                let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
                run(&connection, &sql, values)
            });
            let failed = |error| StoreError::new(StoreErrorKind::Unavailable).caused_by(error);
            worked.await.map_err(failed)?.map_err(store_error)
        })
    }
}

fn run(connection: &Connection, sql: &str, values: Vec<Value>) -> Result<Vec<Row>> {
    let mut statement = connection.prepare(&sql.replace('$', "?"))?;
    let columns = statement.column_count();
    let values = values.into_iter().map(|value| match value {
        Value::Int(int) => int.map_or(SqliteValue::Null, SqliteValue::Integer),
        Value::Text(text) => text.map_or(SqliteValue::Null, SqliteValue::Text),
        Value::Bytes(bytes) => bytes.map_or(SqliteValue::Null, SqliteValue::Blob),
    });
    let rows = statement.query_map(params_from_iter(values), |row| {
        let values = (0..columns).rev().map(|at| {
            Ok(match row.get_ref(at)? {
                ValueRef::Null => Value::Int(None),
                ValueRef::Text(_) => Value::Text(row.get(at)?),
                ValueRef::Blob(bytes) => Value::Bytes(Some(bytes.to_vec())),
                _ => Value::Int(row.get(at)?),
            })
        });
        values.collect::<Result<_>>().map(Row)
    })?;
    rows.collect()
}
