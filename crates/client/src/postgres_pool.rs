//! Connections to PostgreSQL. Statements are not prepared, so that a pooler of transactions may lie in between.

use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use hookgate::postgres::Tls;
use hookgate::{StoreError, StoreErrorKind};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// The connections of a pool.
const CONNECTIONS: usize = 4;
/// How long a call waits for a connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// `unique_violation` and `duplicate_table`.
const TAKEN: [&str; 2] = ["23505", "42P07"];

/// Makes a pool for this URL. It connects at the first call.
pub(crate) fn open(url: &str) -> Result<Pool, StoreError> {
    let (config, tls) = Tls::for_url(url)?;
    let recycling_method = RecyclingMethod::Fast;
    let manager = Manager::from_config(config, tls, ManagerConfig { recycling_method });
    let pool = Pool::builder(manager)
        .max_size(CONNECTIONS)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(PATIENCE))
        .create_timeout(Some(PATIENCE))
        .build();
    pool.map_err(|error| StoreError::new(StoreErrorKind::Setting).caused_by(error))
}

/// Makes the tables of this schema, unless they are there.
pub(crate) async fn migrate(pool: &Pool, schema: &str) -> Result<(), StoreError> {
    let client = client(pool).await?;
    match client.batch_execute(schema).await {
        // Of two processes that make a table or its sequence at the same time, one is refused, although the statement says
        // otherwise. It has waited for the other's commit.
        Err(error)
            if error
                .code()
                .is_some_and(|code| TAKEN.contains(&code.code())) =>
        {
            Ok(client.batch_execute(schema).await?)
        }
        made => Ok(made?),
    }
}

pub(crate) async fn query(
    pool: &Pool,
    sql: &str,
    bound: &[(&(dyn ToSql + Sync), Type)],
) -> Result<Vec<Row>, StoreError> {
    Ok(client(pool).await?.query_typed(sql, bound).await?)
}

async fn client(pool: &Pool) -> Result<Object, StoreError> {
    let failed = |error| StoreError::new(StoreErrorKind::Unavailable).caused_by(error);
    pool.get().await.map_err(failed)
}
