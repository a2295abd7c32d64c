//! A key of any bytes, to find out how a signature that does not match was made.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Answers with an index: no MAC leaves this file.
pub(super) struct TrialKey(Hmac<Sha256>);

impl TrialKey {
    pub(super) fn new(key: &[u8]) -> Self {
        #[allow(clippy::expect_used)] // HMAC is defined for keys of any length (RFC 2104 §3)
        Self(Hmac::new_from_slice(key).expect("HMAC takes keys of any length"))
    }

    /// Returns the index of the first of the claimed signatures that is this key's over the pieces. Compares in constant time,
    /// and with all of them. For a diagnosis: a signature over other bytes than a delivery's must never let a delivery pass.
    pub(super) fn signed(&self, pieces: &[&[u8]], claimed: &[[u8; 32]]) -> Option<usize> {
        let mut mac = self.0.clone();
        for piece in pieces {
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
        let pieces: [&[u8]; 3] = [b"1763690000.", &body[..70], &body[70..]];
        let claimed = [wrong, right, wrong, right];
        assert_eq!(key.signed(&pieces, &claimed), Some(1));
        assert_eq!(key.signed(&pieces, &claimed[..1]), None);
        assert_eq!(key.signed(&pieces, &[]), None);
        assert_eq!(key.signed(&pieces[..2], &claimed), None);
        assert_eq!(TrialKey::new(b"whsec_").signed(&pieces, &claimed), None);
    }
}
