//! A mirror in a file of SQLite.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use hookgate::{
    dedupe::{StoreError, StoreErrorKind, StoreFuture},
    event::{DataModelId, RowId},
};
use rusqlite::{Row, ToSql, params, params_from_iter};

use super::hash::RowHash;
use super::mirror::{Mirror, Mirrored};
use super::row_state::{COLUMNS, Life, RowState};
use crate::fault::Fault;
use crate::sqlite_file::SqliteFile;

/// The rows of one statement: SQLite allows 32,766 parameters.
const CHUNK: usize = 500;

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS hookgate_mirror (
  model TEXT NOT NULL,
  row TEXT NOT NULL,
  revision INTEGER NOT NULL,
  life INTEGER NOT NULL,
  updated_at INTEGER,
  read_at INTEGER,
  hash BLOB NOT NULL,
  row_values TEXT,
  written_at INTEGER NOT NULL,
  PRIMARY KEY (model, row)
) STRICT, WITHOUT ROWID";
const INSERT: &str = "INSERT INTO hookgate_mirror (model, row, revision, life, updated_at, read_at, hash, row_values, written_at)
VALUES (?1, ?2, ?3 + 1, ?4, ?5, ?6, ?7, ?8, unixepoch()) ON CONFLICT DO NOTHING";
const UPDATE: &str = "UPDATE hookgate_mirror SET revision = ?3 + 1, life = ?4, updated_at = ?5, read_at = ?6, hash = ?7, row_values = ?8,
  written_at = unixepoch()
WHERE model = ?1 AND row = ?2 AND revision = ?3";
const FORGET: &str =
    "DELETE FROM hookgate_mirror WHERE model = ?1 AND life = ?2 AND written_at <= unixepoch() - ?3";

/// A mirror in an SQLite file. It survives a restart, and is for the processes of one machine.
///
/// Its table is `hookgate_mirror`. The file may also hold your own tables, or a
/// [`SqliteStore`](hookgate_sqlite::SqliteStore). It needs a tokio runtime; no thread of the runtime waits for the disk.
///
/// ```
/// use hookgate_client::reconcile::SqliteMirror;
///
/// # let path = std::env::temp_dir().join(format!("hookgate-doc-mirror-{}.db", std::process::id()));
/// let mirror = SqliteMirror::open(&path)?.with_values();
/// # drop(mirror);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SqliteMirror {
    file: SqliteFile,
    is_read_only: bool,
    keeps_values: bool,
}

impl SqliteMirror {
    /// Opens the file. It creates the file and the table if they do not exist.
    ///
    /// # Errors
    /// The file can't be opened or written, or is not a database.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Ok(Self::on(SqliteFile::open(path.as_ref(), SCHEMA)?, false))
    }

    /// Opens an existing file only for reading: [`swap`](Mirror::swap) is an error.
    ///
    /// # Errors
    /// The file can't be opened, is not a database, or has no mirror.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let statement = format!("SELECT {COLUMNS} FROM hookgate_mirror");
        let file = SqliteFile::open_read_only(path.as_ref(), &statement)?;
        Ok(Self::on(file, true))
    }

    fn on(file: SqliteFile, is_read_only: bool) -> Self {
        Self {
            file,
            is_read_only,
            keeps_values: false,
        }
    }

    /// Keeps the values of rows as well: see [`Mirror::keeps_values`].
    ///
    /// # Security
    /// The file has a copy of the rows then.
    #[must_use]
    pub fn with_values(mut self) -> Self {
        self.keeps_values = true;
        self
    }
}

impl Mirror for SqliteMirror {
    fn get<'a>(
        &'a self,
        model: &'a DataModelId,
        rows: &'a [RowId],
    ) -> StoreFuture<'a, Vec<(RowId, Mirrored)>> {
        let (model, rows) = (model.clone(), rows.to_vec());
        self.file.call(move |connection| {
            let mut found = Vec::with_capacity(rows.len());
            for rows in rows.chunks(CHUNK) {
                let marks = vec!["?"; rows.len()].join(", ");
                let sql = format!(
                    "SELECT {COLUMNS} FROM hookgate_mirror WHERE model = ? AND row IN ({marks})"
                );
                let bound = std::iter::once(model.as_str()).chain(rows.iter().map(RowId::as_str));
                let mut statement = connection.prepare(&sql)?;
                for row in statement.query_and_then(params_from_iter(bound), mirrored)? {
                    found.push(row?);
                }
            }
            Ok(found)
        })
    }

    fn list<'a>(
        &'a self,
        model: &'a DataModelId,
        after: Option<&'a RowId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(RowId, Mirrored)>> {
        let (model, after) = (model.clone(), after.cloned());
        self.file.call(move |connection| {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let after = after.as_ref().map(RowId::as_str);
            let sql = format!(
                "SELECT {COLUMNS} FROM hookgate_mirror WHERE model = ?1 AND (?2 IS NULL OR row > ?2) ORDER BY row LIMIT ?3"
            );
            let bound = params![model.as_str(), after, limit];
            connection
                .prepare(&sql)?
                .query_and_then(bound, mirrored)?
                .collect()
        })
    }

    fn swap<'a>(
        &'a self,
        model: &'a DataModelId,
        row: &'a RowId,
        revision: u64,
        state: RowState,
    ) -> StoreFuture<'a, bool> {
        let (model, row) = (model.clone(), row.clone());
        self.file.call(move |connection| {
            let Ok(revision) = i64::try_from(revision) else {
                return Ok(false);
            };
            let values: [&dyn ToSql; 8] = [
                &model.as_str(),
                &row.as_str(),
                &revision,
                &state.life.number(),
                &state.updated_at,
                &state.read_at,
                &state.hash.to_bytes(),
                &state.values,
            ];
            let sql = if revision == 0 { INSERT } else { UPDATE };
            Ok(connection.prepare(sql)?.execute(values)? == 1)
        })
    }

    /// A mirror that was opened for reading alone forgets nothing.
    fn forget<'a>(&'a self, model: &'a DataModelId, age: Duration) -> StoreFuture<'a, u64> {
        if self.is_read_only {
            return StoreFuture::ready(Ok(0));
        }
        let model = model.clone();
        self.file.call(move |connection| {
            let age = i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
            let bound = params![model.as_str(), Life::Deleted.number(), age];
            Ok(connection.execute(FORGET, bound)? as u64)
        })
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    fn keeps_values(&self) -> bool {
        self.keeps_values
    }
}

fn mirrored(row: &Row<'_>) -> Result<(RowId, Mirrored), Fault> {
    let id: String = row.get(0)?;
    let revision: i64 = row.get(1)?;
    let hash: Vec<u8> = row.get(5)?;
    let damaged = || StoreError::new(StoreErrorKind::Corrupt);
    let state = RowState {
        life: Life::from_number(row.get(2)?).ok_or_else(damaged)?,
        updated_at: row.get(3)?,
        read_at: row.get(4)?,
        hash: RowHash::from_bytes(&hash).ok_or_else(damaged)?,
        values: row.get(6)?,
    };
    let revision = revision.unsigned_abs();
    Ok((id.into(), Mirrored { revision, state }))
}

/// Shows no row.
impl fmt::Debug for SqliteMirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteMirror").finish_non_exhaustive()
    }
}
