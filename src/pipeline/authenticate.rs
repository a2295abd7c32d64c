//! Authentication: from the head and the body of a request to a [`Delivery`].

use std::sync::Arc;

use super::delivery::Delivery;
use super::gate::Gate;
use super::request_head::RequestHead;
use super::stale::StaleSample;
use crate::caught::caught;
use crate::clock::{Clock, UnixSeconds};
use crate::dedupe::Attempt;
use crate::dedupe::RetrySchedule;
use crate::event::EventHead;
use crate::event::created_at;
use crate::lookup::{Keys, Verifier};
use crate::outcome::Refusal;
use crate::verify::Verified;
use crate::verify::{BodyVerifier, DeliveryHeaders, KeyRing, VerifyError, VerifyErrorKind};

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
    pub(crate) stale: StaleSample,
}

/// A head that was checked. Its body can be received once its keys are known.
pub(crate) struct CheckedHead<'h> {
    headers: DeliveryHeaders<'h>,
    /// The reason to refuse it, if the delivery is stale and still checked.
    stale: Option<VerifyErrorKind>,
}

impl CheckedHead<'_> {
    /// Returns the id of the subscription whose keys are needed.
    pub(crate) fn subscription(&self) -> Option<&[u8]> {
        self.headers.webhook_id()
    }
}

impl Authenticator {
    /// Compares the age of the delivery with a reading of this receiver's clock.
    ///
    /// A stale delivery that is still checked is looked up like any other. There are at most eight a second. After an outage, when they
    /// are most useful as a sign, no ring is in the cache.
    #[inline]
    pub(crate) fn check_age<'h>(
        &self,
        headers: DeliveryHeaders<'h>,
        now: UnixSeconds,
    ) -> Result<CheckedHead<'h>, Refusal> {
        let window = self.verifier.window();
        let stale = match window.check(headers.seconds, now) {
            Ok(()) => None,
            Err(error) => Some(self.check_stale(error)?),
        };
        Ok(CheckedHead { headers, stale })
    }

    /// Begins to receive the body, or refuses a delivery whose keys were not found. The answer to a stale one is then the same as if it
    /// were not checked.
    pub(crate) fn receive<E: Into<Refusal>>(
        &self,
        head: &CheckedHead<'_>,
        ring: Result<Arc<KeyRing>, E>,
    ) -> Result<BodyVerifier, Refusal> {
        match (ring, head.stale) {
            (Ok(ring), stale) => {
                let headers = &head.headers;
                Ok(BodyVerifier::new(ring, headers, stale, self.max_body))
            }
            (Err(_), Some(stale)) => Err(VerifyError::new(stale).into()),
            (Err(error), None) => Err(error.into()),
        }
    }

    /// Compares the signature, and reads id and type from the signed body.
    pub(crate) fn verify(
        &self,
        body: BodyVerifier,
        head: &RequestHead<'_>,
    ) -> Result<Delivery, Refusal> {
        let verified = body.finish()?;
        let event = match EventHead::from_verified(&verified) {
            Ok(event) => event,
            Err(error) => return Err(Refusal::of_event_head(error, verified)),
        };
        if !self.ignores_header_mismatch
            && let Some(kind) = head.differs_from(&event)
        {
            return Err(Refusal::new(kind).of_authentic(verified));
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

    /// Returns the probable attempt of a delivery; `None` if its body does not contain the time of its creation.
    pub(crate) fn attempt(&self, verified: &Verified) -> Option<Attempt> {
        // The time is part of the signed body. An event from the future counts as new.
        let created = created_at(verified)?;
        // The program's clock may panic. That costs the number, and neither the answer nor the report.
        let now = caught(|| self.clock.now()).ok()?;
        let age = now.since(created).unwrap_or_default();
        Some(self.schedule.probable_attempt(age))
    }

    pub(crate) fn keys(&self) -> &Keys {
        self.verifier.keys()
    }

    /// Up to eight times a second, a stale delivery that could be a retry is still checked. It is refused in any case. But if
    /// it is authentic, this is the only sign that retries carry their first timestamp.
    fn check_stale(&self, error: VerifyError) -> Result<VerifyErrorKind, VerifyError> {
        let kind = error.kind();
        let VerifyErrorKind::Stale(times) = kind else {
            return Err(error);
        };
        let (total_wait, past) = (self.schedule.total_wait(), self.verifier.window().past());
        let age = times.now.since(times.timestamp);
        let could_be_a_retry = age.is_some_and(|age| age <= total_wait.saturating_add(past));
        // A delivery that is too old to be a retry is not counted.
        if could_be_a_retry && self.stale.chooses(self.clock.monotonic()) {
            Ok(kind)
        } else {
            Err(error)
        }
    }
}
