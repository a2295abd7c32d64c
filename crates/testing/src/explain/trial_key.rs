//! A key of any bytes, to find out how a signature that does not match was made.

use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use hookgate::{
    KeyRing, Scheme, Secret, Verifier,
    clock::UnixSeconds,
    verify::{DeliveryHeaders, Window},
};
use sha2::Sha256;

use crate::log::verifier_of;

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

    /// Returns the index of the first of the claimed signatures that is this key's over `stamp`, a
    /// dot and the body, or over what another scheme signs. Compares in constant time, and with all
    /// of them. For a diagnosis: a signature over other bytes than a delivery's must never let a
    /// delivery pass.
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
