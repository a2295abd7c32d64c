//! Claims: a delivery that is recognised runs once.

use std::time::Duration;

use super::authenticate::Authenticator;
use super::claim::{Claim, ClaimRecord};
use super::delivery::Delivery;
use super::store::Store;
use crate::dedupe::{ClaimToken, Claimed, StoreError, StoreErrorKind};
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
    /// Claims the event. The store's answer counts for its health only if `is_in_time` returns true:
    /// a request that has given up the call has counted it as failed, and a late answer does not
    /// show that the store works.
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
                // After an error it is unknown whether there is a claim. A release with a token that holds no claim changes
                // nothing.
                let _ = store.call(|store| store.release(key, token)).await;
                Err(error.into())
            }
        }
    }
}
