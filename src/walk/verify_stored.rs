//! Stored parts become a delivery again, by the MAC of their bytes.

use std::sync::Arc;

use super::delivery::Delivery;
use super::stored::StoredDelivery;
use crate::event::EventHead;
use crate::lookup::{Keys, RingSearch, Verifier};
use crate::outcome::Refusal;
use crate::verify::{
    KeyRing, Malformed, SIGNATURE, TIMESTAMP, Timestamp, Verified, VerifyError,
    VerifyErrorKind as Kind,
};

impl Verifier {
    /// Verifies a delivery that a store or a queue has kept: [`Receiver::verify_stored`](crate::Receiver::verify_stored) without
    /// a receiver, which has an example. It never waits: keys of a provider are used where they are in the cache.
    ///
    /// # Errors
    /// As there, and [`NotLookedUp`](crate::outcome::RefusalKind::NotLookedUp) in place of the errors of a look-up.
    ///
    /// # Security
    /// As there: authentic, and neither fresh nor once.
    pub fn verify_stored(&self, stored: &StoredDelivery) -> Result<Delivery, Refusal> {
        stored.verified_by(self.keys().select(stored.subscription())?)
    }
}

impl StoredDelivery {
    /// Verifies it with the keys of its subscription, which may have to be looked up.
    pub(crate) async fn verify(&self, verifier: &Verifier) -> Result<Delivery, Refusal> {
        let keys = verifier.keys();
        let ring = match keys.find(self.subscription())? {
            RingSearch::Found(ring) => match self.verified_by(ring) {
                Err(refusal) if self.may_be_older_than_its_ring(&refusal, keys) => {
                    match keys.find(self.subscription())? {
                        RingSearch::Found(ring) => ring,
                        RingSearch::Pending(waiting) => waiting.await?,
                    }
                }
                verified => return verified,
            },
            RingSearch::Pending(waiting) => waiting.await?,
        };
        self.verified_by(ring)
    }

    /// Whether a ring that was looked up may have been replaced since, so that it was forgotten here: another process has accepted the
    /// delivery, the sender has its 2xx, and a retry will not come.
    fn may_be_older_than_its_ring(&self, refusal: &Refusal, keys: &Keys) -> bool {
        let id = self.subscription_id.as_deref();
        refusal.verify_error().is_some() && id.is_some_and(|id| keys.look_up_again(id))
    }

    fn subscription(&self) -> Option<&[u8]> {
        self.subscription_id.as_deref().map(str::as_bytes)
    }

    fn verified_by(&self, ring: Arc<KeyRing>) -> Result<Delivery, Refusal> {
        let verified = self.authentic(ring)?;
        match EventHead::of(&verified) {
            Ok(head) => Ok(Delivery::from_stored(verified, head, self)),
            Err(error) => Err(Refusal::of_event_head(error, verified)),
        }
    }

    /// Computes the MAC again.
    fn authentic(&self, ring: Arc<KeyRing>) -> Result<Verified, VerifyError> {
        let signature = self.signature.as_ref();
        let signature = signature.ok_or(VerifyError::new(Kind::HeaderMissing(SIGNATURE)))?;
        let timestamp = Timestamp::parse(self.timestamp.as_bytes())
            .map_err(|Malformed| VerifyError::new(Kind::HeaderMalformed(TIMESTAMP)))?;
        // An unknown subscription has a decoy, and the error of that.
        if !ring.is_decoy && ring.scope() != self.scope {
            return Err(VerifyError::new(Kind::ScopeMismatch));
        }
        let has_key = ring.key_names().any(|name| name == self.key_name);
        let verified = ring.verify(&timestamp, signature, self.body.clone());
        verified.map_err(|error| match error.kind() {
            Kind::SignatureMismatch if !has_key => VerifyError::new(Kind::KeyRemoved),
            _ => error,
        })
    }
}
