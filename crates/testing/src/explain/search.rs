//! Tries repairs until a delivery verifies: no repair first, then one, then one of the body and one of the secret together.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use hookgate::clock::UnixSeconds;
use hookgate::verify::{DeliveryHeaders, Window};
use hookgate::{KeyRing, Scheme, Secret, Verifier};
use serde::Serialize;
use sha2::Sha256;

use super::body;
use super::cause::Cause;
use super::header::{Claim, Stamp};
use super::secret::KeyVariant;
use crate::log::verifier_of;

/// The numbers of the search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Tried {
    /// The keys, those as configured included.
    #[serde(rename = "keys")]
    pub secrets: usize,
    /// The bodies with different bytes, the received one included.
    pub bodies: usize,
    /// The times that may have been signed, the header's own included.
    pub timestamps: usize,
    /// The signatures that were found in the headers.
    pub signatures: usize,
    /// The combinations of those: each is one HMAC.
    pub combinations: u64,
    /// The bytes that were hashed or written for it.
    #[serde(skip)]
    pub bytes: u64,
    /// Whether the limit of bytes ended the search before all was tried.
    pub capped: bool,
}

/// A combination that verifies.
pub(super) struct Fit {
    pub(super) causes: Vec<Cause>,
    /// The name of the secret.
    pub(super) name: String,
    /// The time at which it was signed, where the headers have one.
    pub(super) at: Option<UnixSeconds>,
    /// The body that was signed.
    pub(super) body: Bytes,
}

pub(super) struct Search<'s> {
    pub(super) keys: &'s [KeyVariant<'s>],
    pub(super) stamps: &'s [Stamp],
    pub(super) claims: &'s [Claim],
    pub(super) body: &'s [u8],
    /// The highest number of bytes that may be hashed or written.
    pub(super) limit: u64,
}

impl Search<'_> {
    pub(super) fn run(self) -> (Option<Fit>, Tried) {
        let mut tried = Tried {
            secrets: self.keys.len(),
            timestamps: self.stamps.len(),
            signatures: self.claims.len(),
            bodies: 1,
            ..Tried::default()
        };
        let mut fit = None;
        if !self.claims.is_empty() {
            // Broken by a fit or by the limit.
            let _ = self.all(&mut tried, &mut fit);
        }
        (fit, tried)
    }

    fn all(&self, tried: &mut Tried, fit: &mut Option<Fit>) -> ControlFlow<()> {
        // The mistakes of secret and timestamp, which are tried with the received body.
        self.with_body((0, 0), None, self.body, tried, fit)?;
        self.with_body((1, 0), None, self.body, tried, fit)?;
        self.bodies(0, tried, fit)?;
        self.with_body((0, 1), None, self.body, tried, fit)?;
        self.bodies(1, tried, fit)
    }

    /// Tries the bodies with one mistake, with this number of mistakes of the secret.
    fn bodies(&self, secrets: usize, tried: &mut Tried, fit: &mut Option<Fit>) -> ControlFlow<()> {
        let mut seen = HashSet::from([hash(self.body)]);
        body::each(self.body, &mut |cause, body| {
            tried.bytes = tried.bytes.saturating_add(body.len() as u64);
            if !seen.insert(hash(body)) {
                return self.within_limit(tried);
            }
            tried.bodies = tried.bodies.max(seen.len());
            self.with_body((secrets, 0), Some(&cause), body, tried, fit)
        })
    }

    /// Tries one body, with this number of mistakes of the secret and of the timestamp.
    fn with_body(
        &self,
        (secrets, times): (usize, usize),
        of_body: Option<&Cause>,
        body: &[u8],
        tried: &mut Tried,
        fit: &mut Option<Fit>,
    ) -> ControlFlow<()> {
        let claimed: Vec<_> = self.claims.iter().map(|claim| claim.signature).collect();
        let keys = self.keys.iter().filter(|key| key.distance == secrets);
        for key in keys {
            let stamps = self.stamps.iter();
            for stamp in stamps.filter(|stamp| stamp.distance == times) {
                tried.combinations += 1;
                // Each HMAC also hashes two blocks of padding and length.
                let length = stamp.text.len() + 1 + body.len() + 128;
                tried.bytes = tried.bytes.saturating_add(length as u64);
                if let Some(claim) = key.key.signed(&stamp.text, body, &claimed) {
                    let of_header = self.claims.get(claim).map(|claim| &*claim.causes);
                    let mut causes = key.causes.clone();
                    causes.extend(of_body.cloned());
                    causes.extend_from_slice(&stamp.causes);
                    causes.extend_from_slice(of_header.unwrap_or_default());
                    causes.dedup();
                    *fit = Some(Fit {
                        causes,
                        name: key.name.clone(),
                        at: stamp.at,
                        body: Bytes::copy_from_slice(body),
                    });
                    return ControlFlow::Break(());
                }
                self.within_limit(tried)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn within_limit(&self, tried: &mut Tried) -> ControlFlow<()> {
        if tried.bytes < self.limit {
            return ControlFlow::Continue(());
        }
        tried.capped = true;
        ControlFlow::Break(())
    }
}

/// Returns a hash that distinguishes bodies. With a collision one body is not tried, but no wrong result follows.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// Answers with an index: no MAC leaves this file.
pub(super) enum TrialKey<'h> {
    /// Of the default scheme: also a key that no secret gives, over a timestamp that no header has.
    Service(Box<Hmac<Sha256>>),
    /// Of another scheme, with the headers as they were received.
    Other(Box<Verifier>, &'h DeliveryHeaders<'h>),
}

impl<'h> TrialKey<'h> {
    pub(super) fn new(key: &[u8]) -> Self {
        #[allow(clippy::expect_used)] // HMAC is defined for keys of any length (RFC 2104 §3)
        let mac = Hmac::new_from_slice(key).expect("HMAC takes keys of any length");
        Self::Service(Box::new(mac))
    }

    /// Returns a key of another scheme; `None` for a text that is no secret of it.
    pub(super) fn of_scheme(
        scheme: Scheme,
        text: &[u8],
        head: &'h DeliveryHeaders<'h>,
    ) -> Option<Self> {
        let any_age = Window::default()
            .with_past(Duration::MAX)
            .with_ahead(Duration::MAX);
        let secret = Secret::unprefixed(std::str::from_utf8(text).ok()?).ok()?;
        let verifier = verifier_of(scheme, KeyRing::new(secret), any_age).ok()?;
        Some(Self::Other(Box::new(verifier), head))
    }

    /// Returns the index of the first of the claimed signatures that is this key's over `stamp`, a dot and the body, or over what
    /// another scheme signs. Compares in constant time, and with all of them. For a diagnosis: a signature over other bytes than a
    /// delivery's must never let a delivery pass.
    pub(super) fn signed(&self, stamp: &[u8], body: &[u8], claimed: &[[u8; 32]]) -> Option<usize> {
        let mut mac = match self {
            Self::Service(mac) => mac.clone(),
            Self::Other(verifier, head) => {
                let verified = verifier.verify(head, body, UnixSeconds::new(1));
                return verified.ok().map(|_| 0);
            }
        };
        for piece in [stamp, b".", body] {
            mac.update(piece);
        }
        let mut first = None;
        for (index, signature) in claimed.iter().enumerate().rev() {
            if mac.clone().verify_slice(signature).is_ok() {
                first = Some(index);
            }
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use hookgate::{
        Secret,
        verify::{Signature, Timestamp},
    };

    use super::*;

    #[test]
    fn a_trial_says_which_of_the_claimed_signatures_is_the_keys() {
        let text = "whsec_made_up_for_this_test";
        let timestamp = Timestamp::parse(b"1763690000").unwrap();
        let body = [b'x'; 200];
        let header = Signature::sign(&Secret::new(text).unwrap(), &timestamp, &body);
        let mut right = [0; 32];
        hex::decode_to_slice(&header.to_header_value()["sha256=".len()..], &mut right).unwrap();
        let wrong = [7; 32];
        let key = TrialKey::new(text.as_bytes());
        let signed = |key: &TrialKey, body, claimed| key.signed(b"1763690000", body, claimed);
        let claimed = [wrong, right, wrong, right];
        assert_eq!(signed(&key, &body, &claimed), Some(1));
        assert_eq!(signed(&key, &body, &claimed[..1]), None);
        assert_eq!(signed(&key, &body, &[]), None);
        assert_eq!(signed(&key, &body[..70], &claimed), None);
        assert_eq!(signed(&TrialKey::new(b"whsec_"), &body, &claimed), None);
    }
}
