//! Proof of authenticity: values that only a finished check can make.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::keyring::KeyRing;
use super::signature::Signature;
use crate::scheme::{Scheme, SignedHead, Timestamp};

/// A delivery's bytes, proved authentic.
///
/// There is no public constructor, no `Default` and no `Deserialize`, so a function that takes a
/// `Verified` never gets unchecked bytes, except from a store that the program trusts:
///
/// | made by | proves |
/// |---|---|
/// | [`Verifier::verify`](crate::Verifier::verify), [`BodyVerifier::finish`](crate::verify::BodyVerifier::finish), and so each receiver | authentic and fresh; a claim adds that it runs once |
/// | [`Receiver::verify_stored`](crate::Receiver::verify_stored), [`Verifier::verify_stored`](crate::Verifier::verify_stored) | authentic, under a key that was live at that time |
/// | [`dangerous::restore`](crate::dangerous::restore), and so an inbox | nothing: it is as good as the protection of its store, here of the inbox's file or table |
///
/// ```compile_fail
/// let forged = hookgate::Verified { proof: todo!(), body: b"{}" };
/// ```
#[derive(Clone)]
pub struct Verified<B = Bytes> {
    proof: Proof,
    body: B,
}

impl<B: SignedBytes> Verified<B> {
    /// Restores a value from a store that is trusted. The ring is one [from a
    /// store](KeyRing::from_stored).
    pub(crate) fn restored(
        head: SignedHead,
        signature: Option<Signature>,
        ring: KeyRing,
        body: B,
    ) -> Self {
        Self::new(Proof::new(head, signature, Arc::new(ring), 0), body)
    }

    /// Returns the raw bytes that were signed.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        self.body.as_ref()
    }
}

impl<B> Verified<B> {
    #[inline]
    pub(super) fn new(proof: Proof, body: B) -> Self {
        Self { proof, body }
    }

    /// Returns the bytes, without their proof.
    #[must_use]
    pub fn into_body(self) -> B {
        self.body
    }

    /// Returns when the delivery was signed; `None` for a scheme without a timestamp.
    #[must_use]
    pub fn timestamp(&self) -> Option<&Timestamp> {
        self.proof.head.timestamp.as_ref()
    }

    /// Returns the name of the [scheme](Scheme) by which it was signed.
    #[must_use]
    pub fn scheme_name(&self) -> &str {
        self.proof.ring.scheme_name()
    }

    /// Returns that scheme; `None` where a store has noted only its name.
    pub(crate) fn scheme(&self) -> Option<&Scheme> {
        self.proof.ring.scheme()
    }

    /// Returns what was signed in front of the body.
    pub(crate) fn signed_head(&self) -> &SignedHead {
        &self.proof.head
    }

    /// Returns the signature that was sent, to be stored with the body:
    /// [`Delivery::to_stored`](crate::Delivery::to_stored) does that. `None` for a delivery that
    /// was [restored](crate::dangerous::restore) without its signature.
    #[must_use]
    pub fn signature(&self) -> Option<Signature> {
        self.proof.signature
    }

    /// Returns the name of the key that matched. Once an old key's name is no longer seen, it can
    /// be retired.
    #[must_use]
    pub fn key_name(&self) -> &str {
        self.proof.key_name()
    }

    /// Returns the scope of the ring that the key belongs to.
    #[must_use]
    pub fn scope(&self) -> &str {
        self.proof.ring.scope()
    }

    /// Returns the subscription of the ring, where rings are held by subscription. It is the
    /// configured id, not the header.
    #[must_use]
    pub fn subscription_id(&self) -> Option<&str> {
        self.proof.ring.subscription.as_deref()
    }

    /// Returns the workspace that the ring is pinned to.
    #[must_use]
    pub fn pinned_workspace(&self) -> Option<&str> {
        self.proof.ring.workspace()
    }
}

impl Verified<Bytes> {
    /// Returns the bytes, shared.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.body
    }
}

/// Shows the length in place of the body, which holds names and e-mail addresses.
impl<B: SignedBytes> fmt::Debug for Verified<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verified")
            .field("proof", &self.proof)
            .field("body_bytes", &self.body().len())
            .finish()
    }
}

/// The key and the ring that signed, and the time of signing.
#[derive(Clone)]
pub(super) struct Proof {
    head: SignedHead,
    signature: Option<Signature>,
    /// A ring that is or was live in this process, or the one that a store has noted.
    ring: Arc<KeyRing>,
    /// Its place in the ring.
    key: u8,
}

impl Proof {
    #[inline]
    pub(super) fn new(
        head: SignedHead,
        signature: Option<Signature>,
        ring: Arc<KeyRing>,
        key: u8,
    ) -> Self {
        Self {
            head,
            signature,
            ring,
            key,
        }
    }

    fn key_name(&self) -> &str {
        let key = self.ring.keys.get(usize::from(self.key));
        key.map_or("", |key| &key.name)
    }
}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proof")
            .field("timestamp", &self.head.timestamp)
            .field("key", &self.key_name())
            .field("scope", &self.ring.scope())
            .field("subscription", &self.ring.subscription)
            .finish()
    }
}

/// Bytes that stay as they were when the MAC was computed: slices, arrays, vectors, strings,
/// `Bytes`, and references to them. Sealed, since a type that returns other bytes at each call
/// would make a [`Verified`] untrue.
pub trait SignedBytes: AsRef<[u8]> + sealed::Fixed {}

impl<T: AsRef<[u8]> + sealed::Fixed + ?Sized> SignedBytes for T {}

mod sealed {
    pub trait Fixed {}
}

impl sealed::Fixed for [u8] {}
impl sealed::Fixed for str {}
impl sealed::Fixed for Vec<u8> {}
impl sealed::Fixed for String {}
impl sealed::Fixed for Box<[u8]> {}
impl sealed::Fixed for Arc<[u8]> {}
impl sealed::Fixed for Bytes {}
impl<const N: usize> sealed::Fixed for [u8; N] {}
impl<T: sealed::Fixed + ?Sized> sealed::Fixed for &T {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_shows_the_same_bytes() {
        fn shown(body: impl SignedBytes) -> Vec<u8> {
            body.as_ref().to_vec()
        }
        let by_reference: &Bytes = &Bytes::from_static(b"body");
        for bytes in [
            shown(b"body".as_slice()),
            shown(*b"body"),
            shown(b"body"),
            shown("body"),
            shown(b"body".to_vec()),
            shown("body".to_owned()),
            shown(Box::<[u8]>::from(b"body".as_slice())),
            shown(Arc::<[u8]>::from(b"body".as_slice())),
            shown(Bytes::from_static(b"body")),
            shown(by_reference),
        ] {
            assert_eq!(bytes, b"body");
        }
    }
}
