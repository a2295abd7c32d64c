//! Connections to PostgreSQL. Statements are not prepared, so that a pooler of transactions may lie
//! in between.

use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use hookgate::dedupe::{StoreError, StoreErrorKind, StoreFuture};
use hookgate_postgres::{Tls, store_error};
use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};

use super::{Engine, Row, Value};

/// The connections of a pool.
const CONNECTIONS: usize = 4;
/// How long a call waits for a connection.
const POOL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a call waits for the answer of a statement. A server that is gone without a word would
/// never give one.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of the lock that processes hold while they make tables.
const LOCK: i64 = 0x686f_6f6b_636c_6e74;

/// A pool of connections. Clones share it.
#[derive(Clone, Debug)]
pub struct PostgresPool(pub(crate) Pool);

impl PostgresPool {
    /// Makes a pool for this URL. It connects at the first call.
    pub(crate) fn open(url: &str) -> Result<Self, StoreError> {
        let (config, tls) = Tls::for_url(url)?;
        let recycling_method = RecyclingMethod::Fast;
        let manager = Manager::from_config(config, tls, ManagerConfig { recycling_method });
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(POOL_TIMEOUT))
            .create_timeout(Some(POOL_TIMEOUT))
            .build();
        pool.map(Self)
            .map_err(|error| StoreError::new(StoreErrorKind::Setting).caused_by(error))
    }

    async fn client(&self) -> Result<Object, StoreError> {
        let failed = |error| StoreError::new(StoreErrorKind::Unavailable).caused_by(error);
        self.0.get().await.map_err(failed)
    }
}

impl Engine for PostgresPool {
    const NOW: &'static str = "now()";
    const AGO: &'static str = "now() - make_interval(secs => $3)";

    fn run(&self, sql: String, values: Vec<Value>) -> StoreFuture<'_, Vec<Row>> {
        StoreFuture::boxed(async move {
            let bound = values.iter().map(|value| match value {
                Value::Int(int) => (int as &(dyn ToSql + Sync), Type::INT8),
                Value::Text(text) => (text as _, Type::TEXT),
                Value::Bytes(bytes) => (bytes as _, Type::BYTEA),
            });
            let bound: Vec<_> = bound.collect();
            let mut busy = Busy(Some(self.client().await?));
            let Some(client) = &busy.0 else {
                return Err(StoreError::new(StoreErrorKind::Unavailable));
            };
            let answering = timeout(STATEMENT_TIMEOUT, client.query_typed(&sql, &bound));
            let Ok(answered) = answering.await else {
                return Err(StoreError::new(StoreErrorKind::TimedOut));
            };
            drop(busy.0.take());
            let rows = answered.map_err(store_error)?;
            let rows = rows.iter().map(row).collect::<Result<_, _>>();
            rows.map_err(store_error)
        })
    }

    /// Makes the tables of this schema, unless they are there.
    fn migrate<'a>(&'a self, schema: &'a str) -> StoreFuture<'a, ()> {
        StoreFuture::boxed(async move {
            // One transaction. Without the lock, one of two processes that make a table at the same
            // time is refused, although the statement says otherwise.
            let script = format!("SELECT pg_advisory_xact_lock({LOCK});\n{schema}");
            let made = self.client().await?.batch_execute(&script).await;
            made.map_err(store_error)
        })
    }
}

fn row(row: &tokio_postgres::Row) -> Result<Row, tokio_postgres::Error> {
    let values = row.columns().iter().enumerate().rev().map(|(at, column)| {
        Ok(match *column.type_() {
            Type::INT2 => Value::Int(row.try_get::<_, Option<i16>>(at)?.map(i64::from)),
            Type::INT4 => Value::Int(row.try_get::<_, Option<i32>>(at)?.map(i64::from)),
            Type::BYTEA => Value::Bytes(row.try_get(at)?),
            Type::TEXT => Value::Text(row.try_get(at)?),
            _ => Value::Int(row.try_get(at)?),
        })
    });
    values.collect::<Result<_, _>>().map(Row)
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
