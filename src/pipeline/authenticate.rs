//! Authentication: from the head and the body of a request to a [`Delivery`].

use std::sync::Arc;

use super::delivery::Delivery;
use super::gate::Gate;
use super::request_head::RequestHead;
use crate::clock::{Clock, UnixSeconds};
use crate::dedupe::Attempt;
use crate::dedupe::RetrySchedule;
use crate::event::EventHead;
use crate::event::created_at;
use crate::lookup::{Keys, Verifier};
use crate::outcome::Refusal;
use crate::scheme::{DeliveryHeaders, Scheme};
use crate::verify::Verified;
use crate::verify::{BodyVerifier, KeyRing};

/// The policy of authentication, and its steps. A receiver and an acceptor each have one.
#[derive(Debug)]
pub(crate) struct Authenticator {
    pub(crate) verifier: Verifier,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) schedule: RetrySchedule,
    pub(crate) max_body: usize,
    /// Whether unsigned headers may name another event than the signed body.
    pub(crate) ignores_header_mismatch: bool,
}

/// A head that was checked. Its body can be received once its keys are known.
pub(crate) struct CheckedHead<'h> {
    headers: DeliveryHeaders<'h>,
}

impl CheckedHead<'_> {
    /// Returns the id of the subscription whose keys are needed.
    pub(crate) fn subscription(&self) -> Option<&[u8]> {
        self.headers.webhook_id()
    }
}

impl Authenticator {
    /// Compares the age of the delivery with a reading of this receiver's clock.
    #[inline]
    pub(crate) fn check_age<'h>(
        &self,
        headers: DeliveryHeaders<'h>,
        now: UnixSeconds,
    ) -> Result<CheckedHead<'h>, Refusal> {
        headers.check(self.scheme(), self.verifier.window(), now)?;
        Ok(CheckedHead { headers })
    }

    /// Begins to receive the body.
    pub(crate) fn begin_body(&self, head: CheckedHead<'_>, ring: Arc<KeyRing>) -> BodyVerifier {
        BodyVerifier::new(ring, head.headers, self.max_body)
    }

    /// Compares the signature, and reads id and type.
    pub(crate) fn verify(
        &self,
        body: BodyVerifier,
        head: &RequestHead<'_>,
    ) -> Result<Delivery, Refusal> {
        let verified = body.finish().inspect_err(|error| {
            self.keys().not_verified(head.webhook_hint(), error);
        })?;
        let mut event = match EventHead::from_verified(&verified) {
            Ok(event) => event,
            Err(error) => return Err(Refusal::from_event_head(error, verified)),
        };
        if !self.ignores_header_mismatch
            && let Some(refusal) = head.differs_from(&event)
        {
            return Err(refusal.with_authentic(verified));
        }
        if let Some(kind) = head.unsigned_type() {
            event.event_type = kind;
        }
        let now = self.clock.now();
        self.gate.health_signs.authentic(now);
        Ok(Delivery::new(
            verified,
            event,
            now,
            self.gate.id,
            head.traceparent(),
        ))
    }

    /// Returns the probable attempt of a delivery; `None` if its body does not contain the time of
    /// its creation.
    pub(crate) fn attempt(&self, verified: &Verified) -> Option<Attempt> {
        // The time is part of the signed body. An event from the future counts as new.
        let created = created_at(verified)?;
        let age = self.clock.now().since(created).unwrap_or_default();
        Some(self.schedule.probable_attempt(age))
    }

    /// Returns how the sender signs.
    pub(crate) fn scheme(&self) -> &Scheme {
        self.keys().scheme()
    }

    pub(crate) fn keys(&self) -> &Keys {
        self.verifier.keys()
    }
}
