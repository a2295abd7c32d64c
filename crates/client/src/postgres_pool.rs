//! Connections to PostgreSQL. Statements are not prepared, so that a pooler of transactions may lie in between.

use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use hookgate::dedupe::{StoreError, StoreErrorKind};
use hookgate_postgres::{Tls, store_error};
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// The connections of a pool.
const CONNECTIONS: usize = 4;
/// How long a call waits for a connection.
const POOL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a call waits for the answer of a statement. A server that is gone without a word would never give one.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of the lock that processes hold while they make tables.
const LOCK: i64 = 0x686f_6f6b_636c_6e74;

/// Makes a pool for this URL. It connects at the first call.
pub(crate) fn open(url: &str) -> Result<Pool, StoreError> {
    let (config, tls) = Tls::for_url(url)?;
    let recycling_method = RecyclingMethod::Fast;
    let manager = Manager::from_config(config, tls, ManagerConfig { recycling_method });
    let pool = Pool::builder(manager)
        .max_size(CONNECTIONS)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(POOL_TIMEOUT))
        .create_timeout(Some(POOL_TIMEOUT))
        .build();
    pool.map_err(|error| StoreError::new(StoreErrorKind::Setting).caused_by(error))
}

/// Makes the tables of this schema, unless they are there.
pub(crate) async fn migrate(pool: &Pool, schema: &str) -> Result<(), StoreError> {
    // One transaction. Without the lock, one of two processes that make a table at the same time is refused, although the
    // statement says otherwise.
    let script = format!("SELECT pg_advisory_xact_lock({LOCK});\n{schema}");
    let made = client(pool).await?.batch_execute(&script).await;
    made.map_err(store_error)
}

pub(crate) async fn query(
    pool: &Pool,
    sql: &str,
    bound: &[(&(dyn ToSql + Sync), Type)],
) -> Result<Vec<Row>, StoreError> {
    let mut busy = Busy(Some(client(pool).await?));
    let Some(client) = &busy.0 else {
        return Err(StoreError::new(StoreErrorKind::Unavailable));
    };
    let Ok(answered) = timeout(STATEMENT_TIMEOUT, client.query_typed(sql, bound)).await else {
        return Err(StoreError::new(StoreErrorKind::TimedOut));
    };
    drop(busy.0.take());
    answered.map_err(store_error)
}

/// A connection with a statement under way: where its answer is given up, the pool makes a new one.
struct Busy(Option<Object>);

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            drop(Object::take(object));
        }
    }
}

async fn client(pool: &Pool) -> Result<Object, StoreError> {
    let failed = |error| StoreError::new(StoreErrorKind::Unavailable).caused_by(error);
    pool.get().await.map_err(failed)
}
