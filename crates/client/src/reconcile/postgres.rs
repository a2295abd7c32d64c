//! A mirror in a table of PostgreSQL.

use std::fmt;
use std::time::Duration;

use deadpool_postgres::Pool;
use hookgate::{
    dedupe::{StoreError, StoreErrorKind, StoreFuture},
    event::{DataModelId, RowId},
};
use hookgate_postgres::store_error;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::hash::RowHash;
use super::mirror::{Mirror, Mirrored};
use super::row_state::{COLUMNS, Life, RowState};
use crate::fault::Fault;
use crate::postgres_pool;

const INSERT: &str = "INSERT INTO hookgate_mirror (model, row, revision, life, updated_at, read_at, hash, row_values, written_at)
VALUES ($1, $2, $3 + 1, $4, $5, $6, $7, $8, now()) ON CONFLICT DO NOTHING RETURNING true";
const UPDATE: &str = "UPDATE hookgate_mirror SET revision = $3 + 1, life = $4, updated_at = $5, read_at = $6, hash = $7, row_values = $8,
  written_at = now()
WHERE model = $1 AND row = $2 AND revision = $3 RETURNING true";
/// At most so many in one statement, so that none takes long.
const FORGOTTEN_AT_ONCE: i64 = 5_000;
const FORGET: &str = "WITH forgotten AS (
  DELETE FROM hookgate_mirror WHERE ctid = ANY (ARRAY (
    SELECT ctid FROM hookgate_mirror WHERE model = $1 AND life = $2 AND written_at <= now() - make_interval(secs => $3) LIMIT $4
  )) RETURNING 1
) SELECT count(*) FROM forgotten";

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
/// The connection's `search_path` finds the table. The role needs `SELECT`, `INSERT`, `UPDATE` and `DELETE` on it. Statements are not
/// prepared, so a pooler of transactions may stand in between.
#[derive(Clone)]
pub struct PostgresMirror {
    pool: Pool,
    keeps_values: bool,
}

impl PostgresMirror {
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
        postgres_pool::open(url).map(Self::with_pool)
    }

    /// Uses the connections of a pool of your own.
    #[must_use]
    pub fn with_pool(pool: Pool) -> Self {
        Self {
            pool,
            keeps_values: false,
        }
    }

    /// Keeps the values of rows as well: see [`Mirror::keeps_values`].
    ///
    /// # Security
    /// The table has a copy of the rows then.
    #[must_use]
    pub fn with_values(mut self) -> Self {
        self.keeps_values = true;
        self
    }

    /// Creates the table, unless it exists.
    ///
    /// # Errors
    /// The database can't be reached, or the role may not create a table.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        postgres_pool::migrate(&self.pool, Self::SCHEMA).await
    }

    async fn query(
        &self,
        sql: &str,
        bound: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, StoreError> {
        postgres_pool::query(&self.pool, sql, bound).await
    }
}

impl Mirror for PostgresMirror {
    fn get<'a>(
        &'a self,
        model: &'a DataModelId,
        rows: &'a [RowId],
    ) -> StoreFuture<'a, Vec<(RowId, Mirrored)>> {
        StoreFuture::boxed(async move {
            let rows: Vec<_> = rows.iter().map(RowId::as_str).collect();
            let bound: [(&(dyn ToSql + Sync), Type); 2] =
                [(&model.as_str(), Type::TEXT), (&rows, Type::TEXT_ARRAY)];
            let sql = format!(
                "SELECT {COLUMNS} FROM hookgate_mirror WHERE model = $1 AND row = ANY ($2)"
            );
            let rows = self.query(&sql, &bound).await?;
            let rows: Result<Vec<_>, Fault> = rows.iter().map(mirrored).collect();
            Ok(rows?)
        })
    }

    fn list<'a>(
        &'a self,
        model: &'a DataModelId,
        after: Option<&'a RowId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(RowId, Mirrored)>> {
        StoreFuture::boxed(async move {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let after = after.map(RowId::as_str);
            let bound: [(&(dyn ToSql + Sync), Type); 3] = [
                (&model.as_str(), Type::TEXT),
                (&after, Type::TEXT),
                (&limit, Type::INT8),
            ];
            let sql = format!(
                "SELECT {COLUMNS} FROM hookgate_mirror WHERE model = $1 AND ($2 IS NULL OR row > $2) ORDER BY row LIMIT $3"
            );
            let rows = self.query(&sql, &bound).await?;
            let rows: Result<Vec<_>, Fault> = rows.iter().map(mirrored).collect();
            Ok(rows?)
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
            let Ok(revision) = i64::try_from(revision) else {
                return Ok(false);
            };
            let bound: [(&(dyn ToSql + Sync), Type); 8] = [
                (&model.as_str(), Type::TEXT),
                (&row.as_str(), Type::TEXT),
                (&revision, Type::INT8),
                (&state.life.number(), Type::INT2),
                (&state.updated_at, Type::INT8),
                (&state.read_at, Type::INT8),
                (&state.hash.to_bytes(), Type::BYTEA),
                (&state.values, Type::TEXT),
            ];
            let sql = if revision == 0 { INSERT } else { UPDATE };
            // `revision + 1` of the greatest number has no room, and no row has it.
            if revision == i64::MAX {
                return Ok(false);
            }
            Ok(!self.query(sql, &bound).await?.is_empty())
        })
    }

    fn forget<'a>(&'a self, model: &'a DataModelId, age: Duration) -> StoreFuture<'a, u64> {
        StoreFuture::boxed(async move {
            let bound: [(&(dyn ToSql + Sync), Type); 4] = [
                (&model.as_str(), Type::TEXT),
                (&Life::Deleted.number(), Type::INT2),
                // An interval has a greatest value, of which this is a small part.
                (&age.as_secs_f64().min(1e11), Type::FLOAT8),
                (&FORGOTTEN_AT_ONCE, Type::INT8),
            ];
            let mut all = 0;
            loop {
                let rows = self.query(FORGET, &bound).await?;
                let forgotten: i64 = match rows.first() {
                    Some(row) => row.try_get(0).map_err(store_error)?,
                    None => 0,
                };
                all += forgotten.unsigned_abs();
                if forgotten < FORGOTTEN_AT_ONCE {
                    return Ok(all);
                }
            }
        })
    }

    fn keeps_values(&self) -> bool {
        self.keeps_values
    }
}

fn mirrored(row: &Row) -> Result<(RowId, Mirrored), Fault> {
    let damaged = || StoreError::new(StoreErrorKind::Corrupt);
    let revision: i64 = row.try_get(1)?;
    let state = RowState {
        life: Life::from_number(row.try_get(2)?).ok_or_else(damaged)?,
        updated_at: row.try_get(3)?,
        read_at: row.try_get(4)?,
        hash: RowHash::from_bytes(row.try_get(5)?).ok_or_else(damaged)?,
        values: row.try_get(6)?,
    };
    let id: &str = row.try_get(0)?;
    let revision = revision.unsigned_abs();
    Ok((id.into(), Mirrored { revision, state }))
}

/// Shows no connection.
impl fmt::Debug for PostgresMirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresMirror").finish_non_exhaustive()
    }
}
