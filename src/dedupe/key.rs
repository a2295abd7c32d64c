//! The key of a record, and the token of a claim.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock;
use crate::verify::signature::fingerprint;

/// The key of an event in a store: 128 bits of SHA-256 over the scope and the id from the signed
/// body, each with its length. It is the same in every process and replica; the id can't be read
/// from it.
///
/// ```
/// use hookgate::dedupe::EventKey;
///
/// assert_eq!(EventKey::new("default", "evt_1"), EventKey::new("default", "evt_1"));
/// assert_ne!(EventKey::new("default", "evt_1"), EventKey::new("defaulte", "vt_1"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventKey([u8; 16]);

/// The bytes alone: `derive` would hash their number as well.
impl Hash for EventKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

impl EventKey {
    /// Returns the key of the event `id` under `scope`.
    #[must_use]
    pub fn new(scope: &str, id: &str) -> Self {
        Self::from_id_bytes(scope, id.as_bytes())
    }

    /// Returns the key of something other than an event, which these names identify together, in a
    /// database that has keys of events too: a row, by scope, data model and row. It is computed as
    /// [`new`](Self::new) does.
    ///
    /// ```
    /// use hookgate::dedupe::EventKey;
    ///
    /// let row = EventKey::from_names(["default", "dm_1", "row_1"]);
    /// assert_ne!(row, EventKey::from_names(["default", "dm_1r", "ow_1"]));
    /// assert_eq!(EventKey::from_names(["default", "evt_1"]), EventKey::new("default", "evt_1"));
    /// ```
    #[must_use]
    pub fn from_names<const N: usize>(names: [&str; N]) -> Self {
        Self(fingerprint(names.map(str::as_bytes)))
    }

    pub(crate) fn from_id_bytes(scope: &str, id: &[u8]) -> Self {
        Self(fingerprint([scope.as_bytes(), id]))
    }

    /// Returns the key from the 16 bytes that a store has kept.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the key of the event for the program of this name, in a database that programs
    /// share. Without a name, two programs with the same scope and id would have the same key, and
    /// each would find its events claimed by the other. The name `default` leaves the key
    /// unchanged.
    ///
    /// ```
    /// use hookgate::dedupe::EventKey;
    ///
    /// let key = EventKey::new("default", "evt_1");
    /// assert_ne!(key.named("orders"), key.named("members"));
    /// assert_eq!(key.named("default"), key);
    /// ```
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        if name == "default" {
            return *self;
        }
        // A digest combined with another one: an id under one name never has the key of another id
        // under another name.
        let name = Self::new("namespace", name);
        Self(std::array::from_fn(|at| self.0[at] ^ name.0[at]))
    }

    /// Returns the 16 bytes, for a store.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Returns the 16 bytes as 32 hex digits, for a name.
    #[must_use]
    pub fn to_hex(&self) -> String {
        hex::encode(self.0)
    }
}

impl fmt::Debug for EventKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventKey({})", self.to_hex())
    }
}

/// The claim token: 128 bits that the caller of a claim chose.
///
/// One half is unique to the claim: a hash of a counter, of the nanoseconds of the wall clock and
/// of the process id, under a key that the operating system draws at random for each process. The
/// other half is a digest of the body that the claim was made for, so that a done record can
/// distinguish a redelivery from another body under the same id.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClaimToken([u8; 16]);

impl ClaimToken {
    /// Returns a new token for a claim on an event with this body.
    #[must_use]
    pub fn new(body: &[u8]) -> Self {
        static RANDOM: OnceLock<RandomState> = OnceLock::new();
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let random = RANDOM.get_or_init(RandomState::new);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let unique = unique(random, count, clock::entropy(), std::process::id());
        let mut token = [0; 16];
        token[..8].copy_from_slice(&unique.to_le_bytes());
        token[8..].copy_from_slice(&body_digest(body).to_le_bytes());
        Self(token)
    }

    /// Returns the token from the 16 bytes that a store has kept.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the 16 bytes, for a store.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Returns the mark of the body that the token was made for: 32 bits of its digest, which a
    /// done record keeps.
    #[must_use]
    pub fn body_mark(&self) -> u32 {
        let [.., a, b, c, d, _, _, _, _] = self.0;
        u32::from_le_bytes([a, b, c, d])
    }
}

/// Returns the unique half of a token. Two processes that one `fork` made have the same key, count
/// and, perhaps, time: the process id tells them apart.
fn unique(random: &RandomState, count: u64, time: u64, process: u32) -> u64 {
    random.hash_one((count, time, process))
}

impl fmt::Debug for ClaimToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClaimToken({})", hex::encode(self.0))
    }
}

/// Returns a digest that distinguishes bodies, the same in every process and build: for a store
/// that forgets the body and still reports another body under the same id. It is not cryptographic
/// and need not be: the bodies are signed, and only a report depends on it.
///
/// ```
/// use hookgate::internal::body_digest;
///
/// assert_eq!(body_digest(b"{}"), 0xef33_0372_41b9_62af);
/// assert_ne!(body_digest(b"{ }"), body_digest(b"{}"));
/// ```
#[must_use]
pub fn body_digest(body: &[u8]) -> u64 {
    // Four lanes whose multiplications do not wait for each other: with one lane this would take a
    // good quarter of the MAC's time.
    let mut lanes = [1, 2, 3, 4];
    let (blocks, rest) = body.as_chunks::<32>();
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
            *lane = mixed(*lane, u64::from_le_bytes(*word));
        }
    }
    let (words, tail) = rest.as_chunks::<8>();
    let mut last = [0; 8];
    last[..tail.len()].copy_from_slice(tail);
    let rest = words
        .iter()
        .chain([&last])
        .map(|word| u64::from_le_bytes(*word));
    let digest = lanes.into_iter().chain(rest).fold(body.len() as u64, mixed);
    digest ^ (digest >> 32)
}

fn mixed(digest: u64, word: u64) -> u64 {
    // An odd constant with its bits spread evenly: 2^64 divided by the golden ratio.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    (digest.rotate_left(23) ^ word).wrapping_mul(SPREAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_same_in_every_process() {
        // sha256(u64le(7) ‖ "default" ‖ u64le(5) ‖ "evt_1"), first 16 bytes, computed with Python's
        // hashlib.
        assert_eq!(
            format!("{:?}", EventKey::new("default", "evt_1")),
            "EventKey(a355b10ab145bb47668b3dc5cd5e8f7d)"
        );
        // The same over "default", "dm_1" and "row_1".
        assert_eq!(
            format!("{:?}", EventKey::from_names(["default", "dm_1", "row_1"])),
            "EventKey(106a816aa9c1730996fd7a19d5507a34)"
        );
    }

    const DIGESTS: [(&[u8], u64); 5] = [
        (b"".as_slice(), 0xebdb_e167_6a27_b937),
        (b"{}".as_slice(), 0xef33_0372_41b9_62af),
        (b"{\"id\":\"evt_1\"}".as_slice(), 0xc357_b667_6f8a_ba3e),
        (
            b"0123456789abcdef0123456789".as_slice(),
            0xb5b1_e839_4ea4_fc04,
        ),
        // Two blocks of four lanes, and a remainder.
        (
            b"0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz".as_slice(),
            0x04e7_7297_c54b_9c8a,
        ),
    ];

    // fault F17: two programs in one schema silence each other's events and run each other's entries
    #[test]
    fn a_key_differs_by_its_name_and_is_as_before_without_one() {
        let key = EventKey::new("default", "evt_1");
        assert_eq!(key.named("default"), key);
        assert_ne!(key.named("orders"), key.named("members"));
        assert_ne!(key.named("orders"), key);
        assert_ne!(
            key.named("orders"),
            EventKey::new("default", "evt_2").named("orders")
        );
    }

    #[test]
    fn the_bytes_of_keys_and_tokens_are_what_a_store_keeps() {
        let key = EventKey::new("default", "evt_1");
        assert_eq!(hex::encode(key.as_bytes()), key.to_hex());
        let token = ClaimToken::from_bytes(*b"0123456789abcdef");
        assert_eq!(token.as_bytes(), b"0123456789abcdef");
        assert_eq!(
            format!("{token:?}"),
            "ClaimToken(30313233343536373839616263646566)"
        );
    }

    /// A fork itself would show nothing: between the two tokens the clock goes on.
    #[test]
    fn tokens_of_a_forked_process_differ_at_the_same_count_and_time() {
        let random = RandomState::new();
        let of_parent = unique(&random, 7, 1_763_690_000, 100);
        assert_eq!(of_parent, unique(&random, 7, 1_763_690_000, 100));
        for (count, time, process) in [
            (7, 1_763_690_000, 101),
            (8, 1_763_690_000, 100),
            (7, 1_763_690_001, 100),
        ] {
            assert_ne!(of_parent, unique(&random, count, time, process));
        }
    }

    /// A replica of another build computes the same digest of a body.
    #[test]
    fn digests_of_bodies_are_the_same_in_every_build() {
        // Computed with Python, from the same definition.
        for (body, digest) in DIGESTS {
            assert_eq!(body_digest(body), digest, "{body:?}");
        }
    }

    #[test]
    fn every_byte_of_a_body_and_its_place_count() {
        for length in [1, 7, 8, 9, 31, 32, 33, 40, 64, 100] {
            let body: Vec<u8> = (0_u8..length).collect();
            let digest = body_digest(&body);
            for at in 0..body.len() {
                let mut other = body.clone();
                other[at] ^= 0x80;
                assert_ne!(body_digest(&other), digest, "byte {at} of {length}");
                other = body.clone();
                other.swap(at, 0);
                assert!(
                    at == 0 || body_digest(&other) != digest,
                    "{at} of {length} swapped"
                );
            }
            let longer = [body.as_slice(), &[0]].concat();
            assert_ne!(body_digest(&longer), digest, "{length}");
        }
        // Lanes that are swapped change the digest.
        let words = |order: [u8; 4]| order.map(|word| [word; 8]).concat();
        assert_ne!(
            body_digest(&words([1, 2, 3, 4])),
            body_digest(&words([2, 1, 3, 4]))
        );
        // Stores keep tokens: the digest must not change with a release. Computed with Python's
        // integers.
        assert_eq!(body_digest(b"{}"), 0xef33_0372_41b9_62af);
        assert_eq!(body_digest(&[b'x'; 75]), 0xd3aa_3164_1b45_82e0);
    }

    // fault F6: two processes draw the same claim tokens
    #[test]
    fn tokens_differ_and_know_their_body() {
        let (first, second) = (ClaimToken::new(b"{}"), ClaimToken::new(b"{}"));
        assert_ne!(first, second);
        assert_eq!(first.body_mark(), second.body_mark());
        for other in [b"{ }".as_slice(), b"", b"{}\0", b"{}{}{}{}{}{}"] {
            assert_ne!(
                first.body_mark(),
                ClaimToken::new(other).body_mark(),
                "{other:?}"
            );
        }
    }
}
