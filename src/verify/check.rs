//! The check of one delivery: its MAC under every key of a ring.

use std::fmt;
use std::sync::Arc;

use super::body::SignedBytes;
use super::error::{VerifyError, VerifyErrorKind as Kind};
use super::headers::DeliveryHeaders;
use super::keyring::Ring;
use super::signature::{MacKey, Macs, Signature};
use super::timestamp::Timestamp;
use super::verified::{Proof, Verified};

/// The ring to verify with.
pub(crate) struct Selected {
    ring: Arc<Ring>,
    known: bool,
}

impl Selected {
    pub(crate) fn known(ring: Arc<Ring>) -> Self {
        Self { ring, known: true }
    }

    /// Makes the ring for an unknown subscription: a check with it takes the work of any other, and fails.
    pub(crate) fn decoy(ring: Arc<Ring>) -> Self {
        Self { ring, known: false }
    }

    #[cfg(test)]
    pub(crate) fn key_count(&self) -> usize {
        self.ring.key_count()
    }

    #[cfg(test)]
    pub(crate) fn is_known(&self) -> bool {
        self.known
    }

    /// Returns scope and workspace.
    #[cfg(test)]
    pub(crate) fn names(&self) -> (&str, Option<&str>) {
        (&self.ring.scope, self.ring.workspace.as_deref())
    }

    /// Verifies a whole body whose age was checked before. The proof owns or borrows the very bytes that it covers.
    #[inline]
    pub(crate) fn verify<B: SignedBytes>(
        self,
        head: &DeliveryHeaders<'_>,
        body: B,
    ) -> Result<Verified<B>, VerifyError> {
        let proof = self.prove(head, body.as_ref())?;
        Ok(Verified::new(proof, body))
    }

    /// Not generic, so that it is compiled with this crate and not with the caller's settings.
    fn prove(self, head: &DeliveryHeaders<'_>, body: &[u8]) -> Result<Proof, VerifyError> {
        let Self { ring, known } = self;
        let mut matched = None;
        // No early exit, and one key after the other: only one key's state exists at a time.
        for (index, key) in ring.keys.iter().enumerate() {
            if key.mac.verifies(&head.timestamp, body, &head.signature) {
                matched = Some(index);
            }
        }
        let key = verdict(known, None, matched)?;
        Ok(Proof::new(head.timestamp, ring, key))
    }
}

/// A check under way: the MAC is computed as chunks arrive. Owns its states, which are wiped when it is dropped.
///
/// ```
/// # use hookgate::{DeliveryHeaders, Secret, Signature, Timestamp, UnixSeconds, Verifier};
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
    macs: Macs,
    signature: Signature,
    timestamp: Timestamp,
    /// Taken by the proof at the end.
    ring: Option<Arc<Ring>>,
    /// Whether the ring is the subscription's own. If not, the check can only fail, and does so after the same work as any other.
    known: bool,
    /// The refusal for the age, if the delivery is stale: this check too can only fail.
    stale: Option<Kind>,
}

impl Check {
    /// Begins with a ring that was found for the delivery, whose age was checked before. A stale delivery ends without a proof.
    #[inline]
    pub(crate) fn with(
        selected: Selected,
        head: &DeliveryHeaders<'_>,
        stale: Option<Kind>,
    ) -> Self {
        let Selected { ring, known } = selected;
        Self {
            macs: Macs::new(),
            signature: head.signature.clone(),
            timestamp: head.timestamp,
            ring: Some(ring),
            known,
            stale,
        }
    }

    /// Takes the place of a check that has begun, without its states: they follow by [`go_on_from`](Self::go_on_from).
    #[cfg(feature = "tower")]
    pub(super) fn in_place_of(other: &mut Self) -> Self {
        Self {
            macs: Macs::new(),
            signature: other.signature.clone(),
            timestamp: other.timestamp,
            ring: other.ring.take(),
            known: other.known,
            stale: other.stale,
        }
    }

    /// Takes over the states. Those of the other check stay where they are, until they are wiped with it.
    #[cfg(feature = "tower")]
    pub(super) fn go_on_from(&mut self, other: &Self) {
        self.macs.copy_from(&other.macs);
    }

    /// Returns the number of MACs that are computed.
    #[cfg(test)]
    pub(crate) fn mac_count(&mut self) -> usize {
        self.update(&[0; 64]);
        self.macs.count()
    }

    /// Takes the next bytes of the body.
    pub fn update(&mut self, chunk: &[u8]) {
        self.macs
            .update(&self.timestamp, chunk, macs_of(&self.ring));
    }

    /// Returns the refusal for the age, where the check was begun on a stale delivery: with any body, it ends without a proof.
    #[cfg(feature = "tower")]
    pub(super) fn stale(&self) -> Option<VerifyError> {
        self.stale.map(VerifyError::new)
    }

    /// Compares, with every live key. The proof covers the bytes that were passed to
    /// [`update`](Self::update), in that order; keeping them is the caller's task. A second call proves nothing.
    ///
    /// # Security
    /// It borrows the check, as a move would leave a copy of the keys' states behind, which nothing wipes. For the same reason, move no
    /// check after its first [`update`](Self::update).
    ///
    /// # Errors
    /// `SignatureMismatch` or `UnknownSubscription`.
    pub fn finish(&mut self) -> Result<Proof, VerifyError> {
        let matched = self
            .macs
            .matched(&self.timestamp, &self.signature, macs_of(&self.ring));
        let ring = self.ring.take();
        let key = verdict(self.known, self.stale, matched)?;
        let ring = ring.ok_or_else(|| VerifyError::new(Kind::SignatureMismatch))?;
        Ok(Proof::new(self.timestamp, ring, key))
    }
}

/// Returns the keyed MACs of a ring.
#[inline]
fn macs_of(ring: &Option<Arc<Ring>>) -> impl Iterator<Item = &MacKey> + Clone {
    let keys = ring.as_ref().map_or(&[][..], |ring| &ring.keys);
    keys.iter().map(|key| &key.mac)
}

/// Returns the key that matched, if that makes the delivery authentic and fresh. A delivery of an unknown subscription that is stale
/// too ends as stale, as it would have before its body was read.
#[inline]
fn verdict(known: bool, stale: Option<Kind>, matched: Option<usize>) -> Result<usize, VerifyError> {
    let kind = match (known, stale, matched) {
        (true, None, Some(key)) => return Ok(key),
        (true, None, None) => Kind::SignatureMismatch,
        (true, Some(stale), Some(_)) => stale.but_authentic(),
        (true, Some(stale), None) | (false, Some(stale), _) => stale,
        (false, None, _) => Kind::UnknownSubscription,
    };
    Err(VerifyError::new(kind))
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check")
            .field("timestamp", &self.timestamp)
            .finish_non_exhaustive()
    }
}
