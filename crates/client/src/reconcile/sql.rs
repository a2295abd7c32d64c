//! The mirrors in a file of SQLite and in a table of PostgreSQL.

use std::fmt;
#[cfg(feature = "sqlite")]
use std::path::Path;
use std::time::Duration;

use hookgate::{
    dedupe::{StoreError, StoreFuture},
    event::{DataModelId, RowId},
};

use super::hash::RowHash;
use super::mirror::{Mirror, Mirrored};
use super::row_state::{Life, RowState};
#[cfg(feature = "postgres")]
use crate::sql::postgres::PostgresPool;
#[cfg(feature = "sqlite")]
use crate::sql::sqlite::SqliteFile;
use crate::sql::{Engine, MOST_VALUES, Row, Value, damaged, places};

const COLUMNS: &str = "row, revision, life, updated_at, read_at, hash, row_values";
/// At most so many rows are forgotten in one statement, so that none takes long.
const FORGOTTEN_AT_ONCE: usize = 5_000;
/// In seconds. An interval of PostgreSQL has a greatest value, of which this is a small part.
const OLDEST: i64 = 100_000_000_000;

#[cfg(feature = "sqlite")]
const SQLITE_SCHEMA: &str = "CREATE TABLE IF NOT EXISTS hookgate_mirror (
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

/// A mirror in a table of SQL: `SqliteMirror` or `PostgresMirror`.
#[derive(Clone)]
pub struct SqlMirror<E> {
    engine: E,
    is_read_only: bool,
    keeps_values: bool,
}

/// A mirror in an SQLite file. It survives a restart, and is for the processes of one machine.
///
/// Its table is `hookgate_mirror`. The file may also hold your own tables, or a
/// [`SqliteStore`](hookgate_sqlite::SqliteStore). It needs a tokio runtime; no thread of the
/// runtime waits for the disk.
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
#[cfg(feature = "sqlite")]
pub type SqliteMirror = SqlMirror<SqliteFile>;

/// A mirror in a table of PostgreSQL, which the replicas of a program share.
///
/// ```no_run
/// use hookgate_client::reconcile::PostgresMirror;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let mirror = PostgresMirror::open(&std::env::var("DATABASE_URL")?)?;
/// mirror.migrate().await?; // or by your own tool, from `PostgresMirror::SCHEMA`
/// # Ok(())
/// # }
/// ```
///
/// The connection's `search_path` finds the table. The role needs `SELECT`, `INSERT`, `UPDATE` and
/// `DELETE` on it. Statements are not prepared, so a pooler of transactions may stand in between.
#[cfg(feature = "postgres")]
pub type PostgresMirror = SqlMirror<PostgresPool>;

#[cfg(feature = "sqlite")]
impl SqlMirror<SqliteFile> {
    /// Opens the file. It creates the file and the table if they do not exist.
    ///
    /// # Errors
    /// The file can't be opened or written, or is not a database.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        SqliteFile::open(path.as_ref(), SQLITE_SCHEMA).map(Self::on)
    }

    /// Opens an existing file only for reading: [`swap`](Mirror::swap) is an error.
    ///
    /// # Errors
    /// The file can't be opened, is not a database, or has no mirror.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let statement = format!("SELECT {COLUMNS} FROM hookgate_mirror");
        Ok(Self {
            is_read_only: true,
            ..Self::on(SqliteFile::open_read_only(path.as_ref(), &statement)?)
        })
    }
}

#[cfg(feature = "postgres")]
impl SqlMirror<PostgresPool> {
    /// The SQL of the table, for your own migration tool. It may be run again.
    pub const SCHEMA: &str = r#"CREATE TABLE IF NOT EXISTS hookgate_mirror (
  model text NOT NULL,
  row text COLLATE "C" NOT NULL,
  revision bigint NOT NULL,
  life smallint NOT NULL,
  updated_at bigint,
  read_at bigint,
  hash bytea NOT NULL,
  row_values text,
  written_at timestamptz NOT NULL,
  PRIMARY KEY (model, row)
)"#;

    /// Uses the database of this URL, with four connections at most. It connects at the first call.
    ///
    /// # Errors
    /// The URL can't be used: see [`Tls::for_url`](hookgate_postgres::Tls::for_url).
    ///
    /// # Security
    /// If the server is not on this machine, use TLS with `sslmode=verify-full`, as for
    /// [`Postgres`](hookgate_postgres::Postgres).
    pub fn open(url: &str) -> Result<Self, StoreError> {
        PostgresPool::open(url).map(Self::on)
    }

    /// Uses the connections of a pool of your own.
    #[must_use]
    pub fn with_pool(pool: deadpool_postgres::Pool) -> Self {
        Self::on(PostgresPool(pool))
    }

    /// Creates the table, unless it exists.
    ///
    /// # Errors
    /// The database can't be reached, or the role may not create a table.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        self.engine.migrate(Self::SCHEMA).await
    }
}

impl<E> SqlMirror<E> {
    fn on(engine: E) -> Self {
        Self {
            engine,
            is_read_only: false,
            keeps_values: false,
        }
    }

    /// Keeps the values of rows as well: see [`Mirror::keeps_values`].
    ///
    /// # Security
    /// The database has a copy of the rows then.
    #[must_use]
    pub fn with_values(mut self) -> Self {
        self.keeps_values = true;
        self
    }
}

impl<E: Engine> Mirror for SqlMirror<E> {
    fn get<'a>(
        &'a self,
        model: &'a DataModelId,
        rows: &'a [RowId],
    ) -> StoreFuture<'a, Vec<(RowId, Mirrored)>> {
        StoreFuture::boxed(async move {
            let mut found = Vec::with_capacity(rows.len());
            for rows in rows.chunks(MOST_VALUES) {
                let places = places(2, rows.len());
                let sql = format!(
                    "SELECT {COLUMNS} FROM hookgate_mirror WHERE model = $1 AND row IN ({places})"
                );
                let rows = rows.iter().map(|row| row.as_str().into());
                let values = std::iter::once(model.as_str().into()).chain(rows);
                for row in self.engine.run(sql, values.collect()).await? {
                    found.push(mirrored(row)?);
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
        StoreFuture::boxed(async move {
            let sql = format!(
                "SELECT {COLUMNS} FROM hookgate_mirror WHERE model = $1 AND ($2 IS NULL OR row > $2) ORDER BY row LIMIT $3"
            );
            let after = Value::Text(after.map(|row| row.as_str().to_owned()));
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let values = vec![model.as_str().into(), after, limit.into()];
            let rows = self.engine.run(sql, values).await?;
            rows.into_iter().map(mirrored).collect()
        })
    }

    fn swap<'a>(
        &'a self,
        model: &'a DataModelId,
        row: &'a RowId,
        revision: u64,
        state: RowState,
    ) -> StoreFuture<'a, bool> {
        StoreFuture::boxed(async move {
            let now = E::NOW;
            let sql = match revision {
                0 => format!(
                    "INSERT INTO hookgate_mirror (model, row, revision, life, updated_at, read_at, hash, row_values, written_at)
                    VALUES ($1, $2, $3 + 1, $4, $5, $6, $7, $8, {now}) ON CONFLICT DO NOTHING RETURNING 1"
                ),
                _ => format!(
                    "UPDATE hookgate_mirror SET revision = $3 + 1, life = $4, updated_at = $5, read_at = $6, hash = $7, row_values = $8,
                    written_at = {now} WHERE model = $1 AND row = $2 AND revision = $3 RETURNING 1"
                ),
            };
            // No row has the greatest number: `revision + 1` has no room.
            let revision = i64::try_from(revision).unwrap_or(i64::MAX);
            if revision == i64::MAX {
                return Ok(false);
            }
            let values = vec![
                model.as_str().into(),
                row.as_str().into(),
                revision.into(),
                state.life.number().into(),
                state.updated_at.into(),
                state.read_at.into(),
                state.hash.to_bytes().into(),
                Value::Text(state.values),
            ];
            Ok(!self.engine.run(sql, values).await?.is_empty())
        })
    }

    /// A mirror that was opened for reading alone forgets nothing.
    fn forget<'a>(&'a self, model: &'a DataModelId, age: Duration) -> StoreFuture<'a, u64> {
        StoreFuture::boxed(async move {
            if self.is_read_only {
                return Ok(0);
            }
            // The condition stands twice, since PostgreSQL asks it again for a row that another
            // writer has just changed.
            let old = format!("model = $1 AND life = $2 AND written_at <= {}", E::AGO);
            let sql = format!(
                "DELETE FROM hookgate_mirror WHERE {old} AND row IN (
                  SELECT row FROM hookgate_mirror WHERE {old} LIMIT {FORGOTTEN_AT_ONCE}
                ) RETURNING 1"
            );
            let age = i64::try_from(age.as_secs()).unwrap_or(OLDEST).min(OLDEST);
            let life = Life::Deleted.number();
            let values = vec![model.as_str().into(), life.into(), age.into()];
            let mut all = 0;
            loop {
                let forgotten = self.engine.run(sql.clone(), values.clone()).await?.len();
                all += forgotten as u64;
                if forgotten < FORGOTTEN_AT_ONCE {
                    return Ok(all);
                }
            }
        })
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    fn keeps_values(&self) -> bool {
        self.keeps_values
    }
}

fn mirrored(mut row: Row) -> Result<(RowId, Mirrored), StoreError> {
    let id = row.text()?.into();
    let revision = row.int()?.unsigned_abs();
    let state = RowState {
        life: Life::from_number(row.int()?).ok_or_else(damaged)?,
        updated_at: row.int_or_null()?,
        read_at: row.int_or_null()?,
        hash: RowHash::from_bytes(&row.bytes()?).ok_or_else(damaged)?,
        values: row.text_or_null()?,
    };
    Ok((id, Mirrored { revision, state }))
}

/// Shows no row and no connection.
impl<E> fmt::Debug for SqlMirror<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlMirror").finish_non_exhaustive()
    }
}
