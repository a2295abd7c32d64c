//! A real store behind planned faults. Each call that takes effect is compared with the ledger's.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use hookgate::{
    DedupeStore, block_on,
    dedupe::{ClaimToken, Claimed, EventKey, Ownership, StoreError, StoreErrorKind, StoreFuture},
};
use tokio::time::{Instant, sleep};

use super::ledger::Ledger;
use super::plan::{Call, Fault};
use super::world::World;

/// How long the layer waits for a call's answer after its delivery has ended.
const LATE_STORE_CALL: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct WatchedStore {
    pub(super) inner: Arc<dyn DedupeStore>,
    pub(super) world: Arc<World>,
}

impl WatchedStore {
    fn call<T: std::fmt::Debug + PartialEq + Send + Unpin + 'static>(
        &self,
        call: Call,
        key: &EventKey,
        call_inner: impl FnOnce(&dyn DedupeStore, &EventKey) -> Result<T, StoreError> + Send + 'static,
        expected: impl FnOnce(&mut Ledger, Duration) -> T + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let (inner, world, key) = (Arc::clone(&self.inner), Arc::clone(&self.world), *key);
        let Some(event) = world.event_of(&key) else {
            return StoreFuture::ready(call_inner(&*inner, &key));
        };
        let fault = world.fault(event, call);
        let act = move || {
            let answer = call_inner(&*inner, &key);
            let now = world.store_time();
            let expected = expected(&mut world.lock()[event].ledger, now);
            if !matches!(&answer, Ok(answer) if *answer == expected) {
                world.violation(format!(
                    "the store answered {answer:?} to a {call:?} of event {event}, not {expected:?}"
                ));
            }
            answer
        };
        let lost = || Err(StoreError::new(StoreErrorKind::Unavailable));
        match fault {
            None => StoreFuture::ready(act()),
            Some(Fault::Fails) => StoreFuture::ready(lost()),
            Some(Fault::LosesReply) => {
                let _ = act();
                StoreFuture::ready(lost())
            }
            Some(Fault::RepliesLate(millis)) => {
                let answer = act();
                StoreFuture::boxed(async move {
                    sleep(Duration::from_millis(millis)).await;
                    answer
                })
            }
            Some(Fault::ActsLate(millis)) => StoreFuture::boxed(async move {
                sleep(Duration::from_millis(millis)).await;
                act()
            }),
            Some(Fault::Straggles(millis)) => {
                let task = tokio::spawn(async move {
                    sleep(Duration::from_millis(millis)).await;
                    act()
                });
                StoreFuture::boxed(async move { task.await.unwrap() })
            }
            Some(Fault::Hangs) => StoreFuture::boxed(pending()),
            Some(Fault::HangsAfterEffect) => {
                let _ = act();
                StoreFuture::boxed(pending())
            }
        }
    }
}

impl DedupeStore for WatchedStore {
    fn claim<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Claimed> {
        let world = Arc::clone(&self.world);
        let answer = self.call(
            Call::Claim,
            key,
            move |store, key| block_on(store.claim(key, token, lease)),
            move |ledger, now| {
                let claimed = ledger.claim(token, lease, now);
                if claimed == Claimed::Fresh {
                    world.granted(token, ledger.losses);
                }
                claimed
            },
        );
        let event = self.world.event_of(key);
        StoreFuture::boxed(async move {
            let mut asking = PendingClaim {
                world: &self.world,
                since: Instant::now(),
                answered: false,
            };
            let answer = answer.await;
            asking.answered = true;
            // An error means that it may be a claim.
            if matches!(answer, Ok(Claimed::Fresh) | Err(_)) {
                self.world.owes(token);
            }
            if let (Some(event), Ok(Claimed::Fresh)) = (event, &answer) {
                self.world.hands_over(event, token);
            }
            answer
        })
    }

    fn renew<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Ownership> {
        self.call(
            Call::Renew,
            key,
            move |store, key| block_on(store.renew(key, token, lease)),
            move |ledger, now| ledger.renew(token, lease, now),
        )
    }

    fn commit<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        retain: Duration,
    ) -> StoreFuture<'a, Ownership> {
        self.world.pays(token);
        self.call(
            Call::Commit,
            key,
            move |store, key| block_on(store.commit(key, token, retain)),
            move |ledger, now| ledger.commit(token, retain, now),
        )
    }

    fn release<'a>(&'a self, key: &'a EventKey, token: ClaimToken) -> StoreFuture<'a, Ownership> {
        self.world.pays(token);
        self.call(
            Call::Release,
            key,
            move |store, key| block_on(store.release(key, token)),
            move |ledger, now| ledger.release(token, now),
        )
    }
}

/// A pending claim. A caller that stops waiting before the call's time is up can't release a claim
/// that was granted.
struct PendingClaim<'a> {
    world: &'a World,
    since: Instant,
    answered: bool,
}

impl Drop for PendingClaim<'_> {
    fn drop(&mut self) {
        let listened = self.since.elapsed();
        if !self.answered && listened < LATE_STORE_CALL {
            let violation = format!("a claim was abandoned after {listened:?}");
            self.world.violation(violation);
        }
    }
}
