//! Claims: a delivery that is verified runs once, and its claim is the right and the duty to handle
//! it.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::authenticate::Authenticator;
use super::delivery::Delivery;
use super::gate::Permit;
#[cfg(feature = "metrics")]
use crate::catch_panic::catch_panic;
use crate::catch_panic::catch_panic_in;
#[cfg(feature = "metrics")]
use crate::dedupe::StoreStats;
use crate::dedupe::{
    ClaimToken, Claimed, DedupeStore, EventKey, Ownership, StoreError, StoreErrorKind, StoreFuture,
};
use crate::outcome::Refusal;

/// The store with the times of its claims.
#[derive(Debug)]
pub(crate) struct Claims {
    /// Absent if deduplication was switched off.
    pub(crate) store: Option<Store>,
    pub(crate) lease: Duration,
    pub(crate) retention: Duration,
}

/// The result of [`Receiver::admit`](crate::Receiver::admit).
#[derive(Debug)]
pub enum Admission {
    /// The caller must handle the event.
    Fresh(Claim),
    /// It is done already: answer 200 and do nothing.
    Replayed {
        /// Whether the body is the one that was handled.
        same_body: bool,
    },
    /// Another copy is being handled. Its outcome is unknown, so this one must not be answered 2xx.
    Running {
        /// The rest of the other claim's lease.
        retry_after: Duration,
    },
}

impl Claims {
    /// Claims the event. The store's answer counts for its health only if `is_in_time` returns
    /// true: a request that has given up the call has counted it as failed, and a late answer does
    /// not show that the store works.
    pub(crate) async fn admit(
        &self,
        auth: &Authenticator,
        delivery: &Delivery,
        is_in_time: impl Fn() -> bool,
    ) -> Result<Admission, Refusal> {
        let permit = auth.gate.enter().map_err(Refusal::new)?;
        let Some(store) = &self.store else {
            return Ok(Admission::Fresh(Claim::new(None, permit)));
        };
        let (key, token) = (delivery.key(), ClaimToken::new(delivery.body()));
        let asked = auth.clock.monotonic();
        let mut claimed = store
            .call(|store| store.claim(key, token, self.lease))
            .await;
        let age = auth.clock.monotonic().saturating_since(asked);
        if matches!(claimed, Ok(Claimed::Fresh)) && age >= self.lease {
            // The lease has ended: another copy may have the event by now, or may have handled it.
            claimed = Err(StoreError::new(StoreErrorKind::TimedOut));
        }
        if is_in_time() {
            auth.gate.health_signs.record_store_answer(&claimed);
        }
        match claimed {
            Ok(Claimed::Fresh) => {
                let record = ClaimRecord {
                    store: store.clone(),
                    key: *key,
                    token,
                    lease: self.lease,
                    retention: self.retention,
                };
                Ok(Admission::Fresh(Claim::new(Some(record), permit)))
            }
            Ok(Claimed::Done { body_mark }) => {
                auth.gate.health_signs.accepted();
                Ok(Admission::Replayed {
                    same_body: body_mark == token.body_mark(),
                })
            }
            Ok(Claimed::Running { retry_after }) => Ok(Admission::Running { retry_after }),
            Err(error) => {
                // After an error it is unknown whether there is a claim. A release with a token
                // that holds no claim changes nothing.
                let _ = store.call(|store| store.release(key, token)).await;
                Err(error.into())
            }
        }
    }
}

/// The right and the duty to handle one event: commit it or release it.
///
/// Both consume the claim, and both carry its token, so a claim whose lease has ended can't undo
/// the record of a later claim. The token guards that record alone: it can't stop effects that a
/// late run has under way.
///
/// Dropping a claim without either frees its permit, but not its record: the event stays claimed
/// until the lease ends. Destructors can't wait for a store, so nothing here relies on one.
///
/// # Cancel safety
/// A future of [`commit`](Self::commit) or [`release`](Self::release) that is dropped before its
/// end may or may not have reached the store, and the claim is dropped with it. If it has not
/// reached the store, the event stays claimed until the lease ends, and a copy that comes then runs
/// again. A dropped [`renew`](Self::renew) leaves the claim usable. Where requests can be
/// cancelled, let a separate task own the claim; the tower layer does so.
#[must_use = "a claim that is neither committed nor released blocks its event until the lease ends"]
pub struct Claim {
    record: Option<ClaimRecord>,
    permit: Permit,
}

/// The end of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settlement {
    /// The event is done.
    Commit,
    /// The event is not done, and the next delivery runs again.
    Release,
}

/// Whether the store's answer to a settlement counts for the health of the store. It is ignored for
/// one thing alone: the release of a claim that the store gave after its request had ended. That
/// the store is slow was counted with that claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForHealth {
    Counts,
    Ignored,
}

/// The record of a claim. Absent where deduplication was switched off.
pub(super) struct ClaimRecord {
    pub(super) store: Store,
    pub(super) key: EventKey,
    pub(super) token: ClaimToken,
    pub(super) lease: Duration,
    pub(super) retention: Duration,
}

impl Claim {
    pub(super) fn new(record: Option<ClaimRecord>, permit: Permit) -> Self {
        Self { record, permit }
    }

    /// Extends the lease to its full length from now. A run renews after a third of the lease; the
    /// first time is counted from when the claim was called: see [`admit`](crate::Receiver::admit).
    ///
    /// # Errors
    /// The store could not answer: the lease may or may not have been extended.
    pub async fn renew(&self) -> Result<Ownership, StoreError> {
        let Some(record) = &self.record else {
            return Ok(Ownership::Held);
        };
        let renewed = record
            .store
            .call(|store| store.renew(&record.key, record.token, record.lease))
            .await;
        self.permit.health_signs().record_store_answer(&renewed);
        renewed
    }

    /// Commits the claim: records the event as done.
    ///
    /// # Errors
    /// The store could not answer: the event may or may not be recorded. The work is done in any
    /// case, so answer 2xx: any other answer asks for a second run.
    pub async fn commit(self) -> Result<Ownership, StoreError> {
        self.settle(Settlement::Commit, ForHealth::Counts).await
    }

    /// Releases the claim, so that the next copy can claim the event at once.
    ///
    /// # Errors
    /// The store could not answer: the event may stay claimed until the lease ends.
    pub async fn release(self) -> Result<Ownership, StoreError> {
        self.settle(Settlement::Release, ForHealth::Counts).await
    }

    /// Commits or releases as [`commit`](Self::commit) and [`release`](Self::release) do, and keeps
    /// the permit.
    ///
    /// After an error, which means that the result is unknown, the store is called again. A commit
    /// that finds its own done record returns `Held`, so repeating it is safe, and may save a
    /// second run.
    pub(crate) async fn settle(
        &self,
        how: Settlement,
        answer: ForHealth,
    ) -> Result<Ownership, StoreError> {
        let health_signs = self.permit.health_signs();
        if how == Settlement::Commit {
            // The event was handled, even if it can't be recorded.
            health_signs.accepted();
        }
        let Some(record) = &self.record else {
            return Ok(Ownership::Held);
        };
        let mut settled = record.settle(how).await;
        if settled.is_err() {
            settled = record.settle(how).await;
        }
        if answer == ForHealth::Counts {
            health_signs.record_store_answer(&settled);
        }
        settled
    }
}

impl ClaimRecord {
    async fn settle(&self, how: Settlement) -> Result<Ownership, StoreError> {
        let settled = self.store.call(|store| match how {
            Settlement::Commit => store.commit(&self.key, self.token, self.retention),
            Settlement::Release => store.release(&self.key, self.token),
        });
        settled.await
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("key", &self.record.as_ref().map(|record| record.key))
            .finish_non_exhaustive()
    }
}

/// The store, for the receiver and its claims. No call of it panics.
#[derive(Clone, Debug)]
pub(crate) struct Store(Arc<dyn DedupeStore>);

impl Store {
    pub(crate) fn new(store: Arc<dyn DedupeStore>) -> Self {
        Self(store)
    }

    pub(super) async fn call<'a, T>(
        &'a self,
        call: impl FnOnce(&'a dyn DedupeStore) -> StoreFuture<'a, T>,
    ) -> Result<T, StoreError> {
        catch_store_panic(|| call(&*self.0)).await
    }

    /// Returns the store's own numbers, if the store reports them.
    #[cfg(feature = "metrics")]
    pub(crate) fn observe(&self) -> Option<StoreStats> {
        catch_panic(|| self.0.observe()).ok().flatten()
    }
}

/// Makes a call of a store, which is code from outside. A panic is an error of the kind
/// [`Unavailable`](StoreErrorKind::Unavailable), whether it happens in the call itself or when its
/// future is polled. The receiver calls its own store like this, and so does a program that calls a
/// store, a sink or an engine by itself.
///
/// ```
/// use hookgate::{
///     block_on,
///     dedupe::{StoreErrorKind, StoreFuture},
///     internal::catch_store_panic,
/// };
///
/// let error = block_on(catch_store_panic(|| -> StoreFuture<'_, ()> { panic!("made up") })).unwrap_err();
/// assert_eq!(error.kind(), StoreErrorKind::Unavailable);
/// ```
pub async fn catch_store_panic<'a, T, C>(call: C) -> Result<T, StoreError>
where
    C: FnOnce() -> StoreFuture<'a, T>,
{
    let answer = catch_panic_in(pin!(async { call().await })).await;
    answer.unwrap_or_else(|_| {
        let panicked = StoreError::new(StoreErrorKind::Unavailable);
        Err(panicked.caused_by("the store panicked"))
    })
}

#[cfg(test)]
mod tests {
    use super::{Claim, catch_store_panic};
    use crate::{
        DedupeStore, MemoryStore, Receiver, Secret, block_on,
        clock::ManualClock,
        dedupe::{EventKey, Ownership, StoreErrorKind, StoreFuture},
        receiver::{Admission, RequestHead},
        verify::{Signature, Timestamp},
    };

    fn claim_in(store: impl DedupeStore) -> (Claim, EventKey) {
        let secret = Secret::new("whsec_made_up_for_this_test").unwrap();
        let timestamp = Timestamp::parse(b"1763690000").unwrap();
        let body = br#"{"id":"evt_1","type":"t"}"#.as_slice();
        let signature = Signature::sign(&secret, &timestamp, body).to_header_value();
        let receiver = Receiver::builder()
            .secret(secret)
            .store(store)
            .clock(ManualClock::at(timestamp.seconds()))
            .build()
            .unwrap();
        let head = RequestHead::new(
            "POST",
            [
                ("x-service-timestamp", "1763690000"),
                ("x-service-signature", &signature),
            ],
        );
        let mut received = receiver.check_head(&head).unwrap();
        received.push(body.into()).unwrap();
        let delivery = receiver.verify(received, &head).unwrap();
        let Admission::Fresh(claim) = block_on(receiver.admit(&delivery)).unwrap() else {
            panic!("nothing else was claimed");
        };
        (claim, *delivery.key())
    }

    #[test]
    fn a_claim_shows_its_key_and_not_its_token() {
        let (claim, key) = claim_in(MemoryStore::default());
        let expected = format!("Claim {{ key: Some({key:?}), .. }}");
        assert_eq!(format!("{claim:?}"), expected);
    }

    // fault F3: a store that panics is answered 500 and blamed on the handler; no `on_failed`, and the receiver stays ready
    #[test]
    fn a_call_that_panics_is_an_error() {
        let calls: [fn() -> StoreFuture<'static, Ownership>; 2] = [
            || panic!("made-up panic of the call"),
            || StoreFuture::boxed(async { panic!("made-up panic of the future") }),
        ];
        for call in calls {
            let error = block_on(catch_store_panic(call)).unwrap_err();
            let below = std::error::Error::source(&error).map(ToString::to_string);
            assert_eq!(error.kind(), StoreErrorKind::Unavailable);
            assert_eq!(below.as_deref(), Some("the store panicked"));
        }
    }
}
