//! The contract, and the state between two calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hookgate::{DedupeStore, dedupe::Capacity};
use hookgate_postgres::PostgresStore;
use hookgate_testing::{StoreConformance, StoreUnderTest};

use super::patient;
use crate::support::{client_at, migrated};

/// Each store in a schema of its own.
struct Schemas {
    config: String,
    count: AtomicU32,
}

impl StoreUnderTest for Schemas {
    async fn open(&self, capacity: Option<Capacity>) -> Option<Arc<dyn DedupeStore>> {
        if capacity.is_some() {
            return None;
        }
        let schema = format!("s{}", self.count.fetch_add(1, Ordering::Relaxed));
        let config = format!("{} options='-c search_path={schema}'", self.config);
        let client = client_at(&config).await;
        let create = format!("CREATE SCHEMA {schema}");
        client.batch_execute(&create).await.unwrap();
        hookgate_postgres::migrate(&client).await.unwrap();
        Some(Arc::new(PostgresStore::new(&patient(&config), "test")))
    }

    async fn advance(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    fn races(&self) -> usize {
        20
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_keeps_the_contract() {
    let Some(server) = migrated(&[]).await else {
        return;
    };
    let suite = StoreConformance::new(Schemas {
        config: server.config(),
        count: AtomicU32::new(0),
    });
    suite.run().await.assert_kept();
}
