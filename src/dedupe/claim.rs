//! A claim in hand.

use std::fmt;
use std::time::Duration;

use super::{ClaimToken, EventKey, Ownership};
use crate::error::StoreError;
use crate::receiver::{Permit, Store};

/// The right and the duty to handle one event: commit it or release it.
///
/// Both consume the claim, and both carry its token, so a claim whose lease has ended can't undo its successor's record.
/// The token guards that record alone: it can't stop effects that a late run has under way.
///
/// Dropping a claim without either frees its permit, but not its record: that stays claimed until the lease ends.
/// Destructors can't wait for a store, so nothing here relies on one.
///
/// # Cancel safety
/// A future of [`commit`](Self::commit) or [`release`](Self::release) that is dropped half way may or may not have reached the store,
/// and the claim is gone with it: if it has not, the event stays claimed until the lease ends, and a copy that comes then runs
/// again. A dropped [`renew`](Self::renew) leaves the claim in hand. Where requests can be cancelled, let a task of its own own
/// the claim; the tower layer does so.
#[must_use = "a claim that is neither committed nor released blocks its event until the lease ends"]
pub struct Claim {
    record: Option<ClaimRecord>,
    permit: Permit,
}

/// Absent where deduplication was switched off.
pub(crate) struct ClaimRecord {
    pub(crate) store: Store,
    pub(crate) key: EventKey,
    pub(crate) token: ClaimToken,
    pub(crate) lease: Duration,
    /// How long before its answer it was asked for.
    #[cfg_attr(not(feature = "tower"), allow(dead_code))]
    // who has no timers has nothing that renews by itself
    pub(crate) age: Duration,
    pub(crate) retention: Duration,
}

impl Claim {
    pub(crate) fn new(record: Option<ClaimRecord>, permit: Permit) -> Self {
        Self { record, permit }
    }

    /// Extends the lease to its full length from now. A run renews at a third of the lease, the first time counted from when
    /// the claim was asked for: see [`admit`](crate::Receiver::admit).
    ///
    /// # Errors
    /// The store could not answer: the lease may or may not have been extended.
    pub async fn renew(&self) -> Result<Ownership, StoreError> {
        let Some(record) = &self.record else {
            return Ok(Ownership::Held);
        };
        let (store, key) = (&record.store, &record.key);
        let renewed = store.renew(key, record.token, record.lease).await;
        self.permit.vitals().store_said(&renewed);
        renewed
    }

    /// Records the event as done.
    ///
    /// # Errors
    /// The store could not answer: the event may or may not be recorded. The work is done all the same, so answer
    /// 2xx: anything else asks for a second run.
    pub async fn commit(self) -> Result<Ownership, StoreError> {
        self.record_done().await
    }

    /// Gives the event up, so that the next copy can claim it at once.
    ///
    /// # Errors
    /// The store could not answer: the event may stay claimed until the lease ends.
    pub async fn release(self) -> Result<Ownership, StoreError> {
        self.give_up().await
    }

    /// How old the claim was when it came: so much of its lease had passed.
    #[cfg(feature = "tower")]
    pub(crate) fn age(&self) -> Duration {
        self.record
            .as_ref()
            .map(|record| record.age)
            .unwrap_or_default()
    }

    /// As [`commit`](Self::commit); the permit stays in hand.
    pub(crate) async fn record_done(&self) -> Result<Ownership, StoreError> {
        let vitals = self.permit.vitals();
        // Whether it can be recorded or not, the event was handled.
        vitals.accepted();
        let Some(record) = &self.record else {
            return Ok(Ownership::Held);
        };
        let commit = || {
            let (store, key) = (&record.store, &record.key);
            store.commit(key, record.token, record.retention)
        };
        let committed = match commit().await {
            // An error means unknown, and a commit that finds its own done record is held: asking again is safe, and
            // may save a second run.
            Err(_) => commit().await,
            answered => answered,
        };
        vitals.store_said(&committed);
        committed
    }

    /// As [`release`](Self::release); the permit stays in hand.
    pub(crate) async fn give_up(&self) -> Result<Ownership, StoreError> {
        let released = self.give_up_unheard().await;
        if self.record.is_some() {
            self.permit.vitals().store_said(&released);
        }
        released
    }

    /// As [`release`](Self::release), of a claim that came when its call had been given up: whatever the store says now, it is
    /// no sign that it is well. The permit stays in hand.
    pub(crate) async fn give_up_unheard(&self) -> Result<Ownership, StoreError> {
        let Some(record) = &self.record else {
            return Ok(Ownership::Held);
        };
        match record.store.release(&record.key, record.token).await {
            Err(_) => record.store.release(&record.key, record.token).await,
            answered => answered,
        }
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("key", &self.record.as_ref().map(|record| record.key))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Admission, LocalStore, Receiver, RequestHead, Secret, Signature, Timestamp, block_on,
    };

    #[test]
    fn a_claim_shows_its_key_and_not_its_token() {
        let secret = Secret::new("whsec_made_up_for_this_test").unwrap();
        let timestamp = Timestamp::parse(b"1763690000").unwrap();
        let body = br#"{"id":"evt_1","type":"t"}"#.as_slice();
        let signature = Signature::sign(&secret, &timestamp, body).to_header_value();
        let receiver = Receiver::builder()
            .secret(secret)
            .store(LocalStore::default())
            .clock(crate::ManualClock::at(timestamp.seconds()))
            .build()
            .unwrap();
        let head = RequestHead::new(
            "POST",
            [
                ("x-service-timestamp", "1763690000"),
                ("x-service-signature", &signature),
            ],
        );
        let mut intake = receiver.open(&head).unwrap();
        intake.push(body.into()).unwrap();
        let delivery = receiver.recognise(intake, &head).unwrap();
        let Admission::Fresh(claim) = block_on(receiver.admit(&delivery)).unwrap() else {
            panic!("nothing else was claimed");
        };
        assert_eq!(
            format!("{claim:?}"),
            format!("Claim {{ key: Some({:?}), .. }}", delivery.key())
        );
    }
}
