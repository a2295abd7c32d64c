//! The claims of findings, so that replicas handle each once.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use hookgate::{
    DedupeStore,
    dedupe::{ClaimToken, Claimed, EventKey, Ownership, StoreError},
};
use tokio::time::sleep;

/// How long a claim lasts unless it is renewed: then another replica may handle the finding.
const LEASE: Duration = Duration::from_secs(60);
/// A running claim is renewed so often.
const RENEWAL: Duration = Duration::from_secs(20);
/// How long a finding that was handled is remembered: longer than the last retry of the event that
/// it stands for.
pub(super) const RETAIN: Duration = Duration::from_secs(48 * 60 * 60);

pub(super) struct Claims {
    store: Box<dyn DedupeStore>,
    scope: String,
}

/// The claim of one finding.
pub(super) struct Claim<'c> {
    store: &'c dyn DedupeStore,
    key: EventKey,
    token: ClaimToken,
}

impl Claims {
    pub(super) fn new(store: impl DedupeStore, scope: &str) -> Self {
        Self {
            store: Box::new(store),
            scope: format!("reconcile {scope}"),
        }
    }

    pub(super) fn of(&self, id: &str) -> Claim<'_> {
        Claim {
            store: &*self.store,
            key: EventKey::new(&self.scope, id),
            token: ClaimToken::new(id.as_bytes()),
        }
    }
}

impl Claim<'_> {
    pub(super) async fn take(&self) -> Result<Claimed, StoreError> {
        self.store.claim(&self.key, self.token, LEASE).await
    }

    /// Renews the claim while the work goes on.
    pub(super) async fn hold<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut renewals = pin!(async {
            loop {
                sleep(RENEWAL).await;
                // A failure leaves time for two more before the lease ends.
                let _ = self.store.renew(&self.key, self.token, LEASE).await;
            }
        });
        poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(done);
            }
            let _: Poll<()> = renewals.as_mut().poll(context);
            Poll::Pending
        })
        .await
    }

    pub(super) async fn commit(&self) -> Result<Ownership, StoreError> {
        self.store.commit(&self.key, self.token, RETAIN).await
    }

    pub(super) async fn release(&self) -> Result<Ownership, StoreError> {
        self.store.release(&self.key, self.token).await
    }
}
