//! The contract, and the state between two calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hookgate::{DedupeStore, dedupe::Capacity};
use hookgate_postgres::{Postgres, PostgresStore};
use hookgate_testing::{StoreConformance, StoreUnderTest};
use tokio_postgres::{Config, NoTls};

use super::rights::as_on_the_page;
use crate::support::{PostgresServer, needed};

/// Each store in a schema of its own.
struct Schemas {
    config: Config,
    count: AtomicU32,
}

impl StoreUnderTest for Schemas {
    async fn open(&self, capacity: Option<Capacity>) -> Option<Arc<dyn DedupeStore>> {
        if capacity.is_some() {
            return None;
        }
        let schema = format!("s{}", self.count.fetch_add(1, Ordering::Relaxed));
        let config = as_on_the_page(&self.config, &schema).await;
        let postgres = Postgres::new(config, NoTls).with_timeout(Duration::from_secs(30));
        Some(Arc::new(PostgresStore::new(&postgres, "test")))
    }

    async fn advance(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    fn races(&self) -> usize {
        20
    }
}

// fault C1: a shared claim is renewed, committed or released without its token
// fault C2: commit deletes the record, as release does; what is done is released
// fault C14: a lease that has ended still commits; a repeated commit remembers for longer
#[tokio::test(flavor = "multi_thread")]
async fn the_store_keeps_the_contract() {
    let server = needed!(PostgresServer::start(&[]));
    let suite = StoreConformance::new(Schemas {
        config: server.config().parse().unwrap(),
        count: AtomicU32::new(0),
    });
    suite.run().await.assert_kept();
}
