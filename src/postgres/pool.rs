//! Connections: a few, made when they are needed, and made anew when they are broken.

#![allow(dead_code)] // until the engines and workers stand

use std::fmt;
use std::time::Duration;

use ::tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use ::tokio_postgres::{Config, Socket};
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};

use crate::error::{StoreError, StoreErrorKind};

/// How many connections there are, unless told otherwise.
const CONNECTIONS: usize = 8;
/// No call waits longer for a connection, or for one to be made: a share of the second that a store's call gets.
const PATIENCE: Duration = Duration::from_millis(800);

/// A PostgreSQL database. Clones share its connections.
#[derive(Clone)]
pub struct Postgres {
    pool: Pool,
}

impl Postgres {
    /// Connects when it is first asked, by this configuration.
    pub fn new<T>(config: Config, tls: T) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + Sync,
        T::TlsConnect: Send + Sync,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let recycled = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let manager = Manager::from_config(config, tls, recycled);
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(PATIENCE))
            .create_timeout(Some(PATIENCE))
            .build();
        match pool {
            Ok(pool) => Self { pool },
            Err(_) => unreachable!("a pool with a runtime has all that it needs"),
        }
    }

    pub(crate) async fn client(&self) -> Result<deadpool_postgres::Object, StoreError> {
        self.pool
            .get()
            .await
            .map_err(|error| StoreError::new(StoreErrorKind::Unavailable).caused_by(error))
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").finish_non_exhaustive()
    }
}
