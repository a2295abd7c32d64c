//! The check of one delivery: its MAC under every key of a ring.

use std::fmt;
use std::sync::Arc;

use super::error::{VerifyError, VerifyErrorKind as Kind};
use super::headers::DeliveryHeaders;
use super::keyring::KeyRing;
use super::signature::{Macs, Signature, index_of_match};
use super::timestamp::Timestamp;
use super::verified::{Proof, SignedBytes, Verified};

impl KeyRing {
    /// Verifies a whole body, of any age. The proof owns or borrows the very bytes that it covers.
    #[inline]
    pub(crate) fn verify<B: SignedBytes>(
        self: Arc<Self>,
        timestamp: &Timestamp,
        signature: &Signature,
        body: B,
    ) -> Result<Verified<B>, VerifyError> {
        let key = self.key_of(timestamp, signature, body.as_ref())?;
        // Made here, in its place: a proof that is returned by itself is copied once more.
        let proof = Proof::new(*timestamp, Some(signature.clone()), self, key);
        Ok(Verified::new(proof, body))
    }

    /// Not generic, so that it is compiled with this crate and not with the caller's settings.
    fn key_of(
        &self,
        timestamp: &Timestamp,
        signature: &Signature,
        body: &[u8],
    ) -> Result<u8, VerifyError> {
        let matched = self.matched(timestamp, signature, body);
        verdict(self, timestamp, matched)
    }

    /// Returns the index of the key that has signed a whole body.
    #[inline]
    fn matched(&self, timestamp: &Timestamp, signature: &Signature, body: &[u8]) -> Option<u8> {
        // One key after the other: only one key's state exists at a time.
        let keys = self.keys.iter();
        index_of_match(keys.map(|key| key.verifies(timestamp, body, signature)))
    }
}

/// A delivery whose age was checked, and whose MAC was not: the signature that it claims, and the keys that may have made it.
pub(crate) struct Unproven {
    signature: Signature,
    timestamp: Timestamp,
    /// Taken by the proof: a second one fails.
    ring: Option<Arc<KeyRing>>,
}

impl Unproven {
    /// Begins with a ring that was found for the delivery.
    #[inline]
    pub(crate) fn of(ring: Arc<KeyRing>, head: &DeliveryHeaders<'_>) -> Self {
        Self {
            signature: head.signature.clone(),
            timestamp: head.timestamp,
            ring: Some(ring),
        }
    }

    /// Hashes a piece of the body.
    pub(super) fn hash(&self, macs: &mut Macs, piece: &[u8]) {
        if let Some(ring) = &self.ring {
            macs.update(&self.timestamp, piece, &ring.keys);
        }
    }

    /// Compares with every live key: the MACs of the pieces, or, where there are none, those of the whole body.
    pub(super) fn prove(
        &mut self,
        macs: Option<&mut Macs>,
        body: &[u8],
    ) -> Result<Proof, VerifyError> {
        let Some(ring) = self.ring.take() else {
            return Err(VerifyError::new(Kind::SignatureMismatch));
        };
        let matched = match macs {
            Some(macs) => macs.matched(&self.timestamp, &self.signature, &ring.keys),
            None => ring.matched(&self.timestamp, &self.signature, body),
        };
        let key = verdict(&ring, &self.timestamp, matched)?;
        let signature = Some(self.signature.clone());
        Ok(Proof::new(self.timestamp, signature, ring, key))
    }
}

/// A check under way: the MAC is computed as chunks arrive. Owns its states, which are wiped when it is dropped.
///
/// ```
/// # use hookgate::{
/// #     Secret, Verifier,
/// #     clock::UnixSeconds,
/// #     verify::{DeliveryHeaders, Signature, Timestamp},
/// # };
/// # let secret = Secret::new("whsec_made_up_for_this_example")?;
/// # let timestamp = Timestamp::parse(b"1763690000")?;
/// # let signature = Signature::sign(&secret, &timestamp, b"in two pieces").to_header_value();
/// # let pairs = [("x-service-timestamp", "1763690000"), ("x-service-signature", signature.as_str())];
/// # let verifier = Verifier::new(secret);
/// let head = DeliveryHeaders::from_pairs(pairs)?;
/// let mut check = verifier.begin(&head, UnixSeconds::new(1_763_690_000))?;
/// for chunk in [b"in two ".as_slice(), b"pieces"] {
///     check.update(chunk);
/// }
/// assert_eq!(check.finish()?.key_name(), "primary");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Check {
    unproven: Unproven,
    macs: Macs,
}

impl Check {
    #[inline]
    pub(crate) fn with(unproven: Unproven) -> Self {
        Self {
            unproven,
            macs: Macs::new(),
        }
    }

    /// Returns the delivery without the states.
    pub(super) fn into_unproven(self) -> Unproven {
        self.unproven
    }

    /// Returns the number of MACs that are computed.
    #[cfg(test)]
    pub(crate) fn mac_count(&mut self) -> usize {
        self.update(&[0; 64]);
        self.macs.count()
    }

    /// Takes the next bytes of the body.
    pub fn update(&mut self, chunk: &[u8]) {
        self.unproven.hash(&mut self.macs, chunk);
    }

    /// Compares, with every live key. The proof covers the bytes that were passed to
    /// [`update`](Self::update), in that order; keeping them is the caller's task, so it holds none. A second call proves nothing.
    ///
    /// # Security
    /// It borrows the check, as a move would leave a copy of the keys' states behind, which nothing wipes. For the same reason, move no
    /// check after its first [`update`](Self::update).
    ///
    /// # Errors
    /// `SignatureMismatch` or `UnknownSubscription`.
    pub fn finish(&mut self) -> Result<Verified<()>, VerifyError> {
        let proof = self.unproven.prove(Some(&mut self.macs), &[])?;
        Ok(Verified::new(proof, ()))
    }
}

/// Returns the key that matched, if that makes the delivery authentic.
#[inline]
fn verdict(
    ring: &KeyRing,
    timestamp: &Timestamp,
    matched: Option<u8>,
) -> Result<u8, VerifyError> {
    let has_ended =
        |key: u8| ring.ends[usize::from(key)].is_some_and(|end| timestamp.seconds() > end);
    let kind = match (ring.is_decoy, matched) {
        (false, Some(key)) if has_ended(key) => Kind::KeyEnded,
        (false, Some(key)) => return Ok(key),
        (false, None) => Kind::SignatureMismatch,
        (true, _) => Kind::UnknownSubscription,
    };
    Err(VerifyError::new(kind))
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check")
            .field("timestamp", &self.unproven.timestamp)
            .finish_non_exhaustive()
    }
}
