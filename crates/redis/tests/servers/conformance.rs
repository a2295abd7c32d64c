//! The contract, in real time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use hookgate::{DedupeStore, dedupe::Capacity};
use hookgate_redis::RedisStore;
use hookgate_testing::{Finding, StoreConformance, StoreRule, StoreUnderTest};
use redis::aio::ConnectionLike;

use super::patient;
use crate::support::{RedisServer, needed};

/// Each store it opens has a prefix of its own.
pub(super) struct Remote<C> {
    store: RedisStore<C>,
    opened: AtomicUsize,
}

impl<C> Remote<C> {
    pub(super) fn new(store: RedisStore<C>) -> Self {
        Self {
            store,
            opened: AtomicUsize::new(0),
        }
    }
}

impl<C> StoreUnderTest for Remote<C>
where
    C: ConnectionLike + Clone + Send + Sync + 'static,
{
    async fn open(&self, capacity: Option<Capacity>) -> Option<Arc<dyn DedupeStore>> {
        if capacity.is_some() {
            // Redis' capacity is that of its memory: `memory.rs` fills it.
            return None;
        }
        let opened = self.opened.fetch_add(1, Ordering::Relaxed);
        let store = self.store.clone().with_prefix(&format!("suite-{opened}:"));
        Some(Arc::new(store))
    }

    async fn advance(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    fn unit(&self) -> Duration {
        Duration::from_millis(500)
    }

    fn races(&self) -> usize {
        30
    }
}

pub(super) async fn assert_kept<C>(store: RedisStore<C>)
where
    C: ConnectionLike + Clone + Send + Sync + 'static,
{
    let suite = StoreConformance::new(Remote::new(store));
    // The race needs the machine for itself. The other rules mostly wait for the ends of leases:
    // each on a store of its own, they wait together.
    let race = suite.check(StoreRule::OneWinner).await;
    assert_eq!(race, Finding::Kept);
    let others = StoreRule::ALL
        .iter()
        .filter(|rule| **rule != StoreRule::OneWinner);
    let findings = others.map(async |rule| (*rule, suite.check(*rule).await));
    let findings = join_all(findings).await;
    let left_out = |rule: &StoreRule| {
        matches!(
            rule,
            StoreRule::NewestRemembered
                | StoreRule::NewestRememberedAfterReads
                | StoreRule::RunningNeverEvicted
                | StoreRule::FullStoreRefuses
        )
    };
    for (rule, finding) in findings {
        let expected = if left_out(&rule) {
            Finding::NotChecked
        } else {
            Finding::Kept
        };
        assert_eq!(finding, expected, "{rule}");
    }
}

// fault C1: a shared claim is renewed, committed or released without its token
// fault C2: commit deletes the record, as release does; what is done is released
// fault C14: a lease that has ended still commits; a repeated commit remembers for longer
#[tokio::test(flavor = "multi_thread")]
async fn the_contract_is_kept_in_real_time() {
    let server = needed!(RedisServer::start(&[]));
    // On a machine with other things to do, an answer may be slow: that is not a breach.
    assert_kept(patient(&server.url())).await;
}
