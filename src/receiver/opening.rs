//! The first step of a delivery, if it may have to wait for the subscription's keys.

use std::sync::Arc;

use super::{Receiver, RequestHead};
use crate::clock::UnixSeconds;
use crate::lookup::LookupError;
use crate::lookup::{Finding, Waiting};
use crate::outcome::Refusal;
use crate::verify::{Check, DeliveryHeaders, Intake, Ring};
use crate::verify::{VerifyError, VerifyErrorKind};

/// A delivery that passed the first step: open, or waiting for its keys.
#[allow(clippy::large_enum_variant)] // the large variant is the usual one: a box would cost each delivery an allocation
pub(crate) enum Opening<'h> {
    Open(Intake),
    LooksUp(LookingUp<'h>, Waiting),
}

/// A delivery whose keys are being looked up.
pub(crate) struct LookingUp<'h> {
    headers: DeliveryHeaders<'h>,
    /// Set if the delivery is stale and still checked.
    stale: Option<VerifyErrorKind>,
}

impl Receiver {
    /// As [`open`](Self::open), and waits if the subscription's keys have to be looked up: this applies to keys of a
    /// [provider](crate::lookup). With other keys it never waits.
    ///
    /// The future can be dropped safely at any time. There is no time limit: use the time-out of your runtime, and answer 503
    /// when it ends. The layer does both.
    ///
    /// ```
    /// use hookgate::{LocalStore, Receiver, RefusalKind, RequestHead, Secret, block_on, provider_fn};
    /// # use hookgate::{Signature, SystemClock, Timestamp, Clock};
    /// # let now = SystemClock.now().to_string();
    /// # let body = br#"{"id":"evt_1","type":"row.deleted"}"#;
    /// # let secret = Secret::new("whsec_made_up_for_this_example")?;
    /// # let signature = Signature::sign(&secret, &Timestamp::parse(now.as_bytes())?, body).to_header_value();
    /// # let headers = [
    /// #     ("x-service-webhook-id", "wh_1"), ("x-service-timestamp", &*now), ("x-service-signature", &*signature)];
    /// let receiver = Receiver::builder()
    ///     .provider(provider_fn(async |id| match id.as_str() {
    ///         "wh_1" => Secret::new("whsec_made_up_for_this_example").map(Some),
    ///         _ => Ok(None),
    ///     }))
    ///     .store(LocalStore::default())
    ///     .build()?;
    ///
    /// let head = RequestHead::new("POST", headers);
    /// assert_eq!(receiver.open(&head).unwrap_err().kind(), RefusalKind::NotLookedUp);
    /// let mut intake = block_on(receiver.open_async(&head))?;
    /// intake.push(body.as_slice().into())?;
    /// assert_eq!(receiver.recognise(intake, &head)?.verified().scope(), "wh_1");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`open`](Self::open), but never `NotLookedUp`; and `SecretsUnavailable`, `SecretsTooSlow` or `TooManyLookups`.
    pub async fn open_async(&self, head: &RequestHead<'_>) -> Result<Intake, Refusal> {
        match self.opening(head, |_| ())? {
            Opening::Open(intake) => Ok(intake),
            Opening::LooksUp(looking_up, waiting) => self.opened(looking_up, waiting.await),
        }
    }

    /// Checks head and age, and then whether the keys are present. `seen` gets the reading of the clock.
    pub(crate) fn opening<'h>(
        &self,
        head: &RequestHead<'h>,
        seen: impl FnOnce(UnixSeconds),
    ) -> Result<Opening<'h>, Refusal> {
        let (headers, stale) = self.read_head(head, seen)?;
        // A stale delivery that is still checked is looked up like any other. There are at most eight a second. After an
        // outage, when they are most useful as a sign, no ring is in the cache.
        let found = self.keys().find(headers.webhook_id());
        let found = found.map_err(|error| stale.map_or(error, VerifyError::new))?;
        Ok(match found {
            Finding::Here(selected) => {
                Opening::Open(self.intake(Check::with(selected, &headers, stale)))
            }
            Finding::Waits(waiting) => Opening::LooksUp(LookingUp { headers, stale }, waiting),
        })
    }

    /// Goes on with the result of the look-up.
    pub(crate) fn opened(
        &self,
        looking_up: LookingUp<'_>,
        found: Result<Option<Arc<Ring>>, Arc<LookupError>>,
    ) -> Result<Intake, Refusal> {
        let LookingUp { headers, stale } = looking_up;
        match (found, stale) {
            (Ok(ring), _) => {
                let selected = self.keys().of_lookup(ring);
                Ok(self.intake(Check::with(selected, &headers, stale)))
            }
            // The answer is the same as for a stale delivery that is not checked.
            (Err(_), Some(stale)) => Err(VerifyError::new(stale).into()),
            (Err(error), None) => Err(error.into()),
        }
    }

    pub(super) fn intake(&self, check: Check) -> Intake {
        Intake::new(check, self.shared.max_body)
    }
}
