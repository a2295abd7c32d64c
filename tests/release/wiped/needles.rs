//! The words that must not be found, computed by the compiler: the program holds them only with a mask over each.
//!
//! SHA-256 is written out here because a crate's would leave the words in memory, and can't run in the compiler.

use super::{BODY, FORGED, SECRETS, TIMESTAMP};

/// Over each word of a needle in the program's read-only data.
const MASK: u32 = 0x9e37_79b9;
/// SHA-256 takes 64 bytes at a time.
const BLOCK: usize = 64;
/// The states of a MAC after its pad and after each full block of the signed string.
const RUNNING: usize = 5;
/// So many bytes of the texts are the same.
const SAME: usize = 16;

type State = [u32; 8];

/// The key material of one secret.
pub(crate) struct Needles {
    /// Words of the secret's text, of the key in a block, of the two padded blocks, and of the three blocks as SHA-256 reads them, with
    /// the bytes of each word reversed.
    pub(crate) key: [Masked; 7],
    /// The state under the outer pad.
    pub(crate) outer: Masked,
    /// The states under the inner pad, for the body that is signed and for the other one. The first is the key's own.
    pub(crate) running: [[Masked; RUNNING]; 2],
    /// The signatures of the two bodies, as state and as bytes.
    pub(crate) macs: [[Masked; 2]; 2],
}

/// Eight words under the mask.
#[derive(Clone, Copy)]
pub(crate) struct Masked(State);

impl Masked {
    const fn of(mut words: State) -> Self {
        let mut at = 0;
        while at < words.len() {
            words[at] ^= MASK;
            at += 1;
        }
        Self(words)
    }

    pub(crate) fn as_masked(&self) -> &State {
        &self.0
    }
}

/// Puts the mask over a word of the memory that is searched.
pub(crate) fn mask(word: u32) -> u32 {
    word ^ MASK
}

pub(crate) static NEEDLES: [Needles; SECRETS.len()] = [
    needles(SECRETS[0]),
    needles(SECRETS[1]),
    needles(SECRETS[2]),
    needles(SECRETS[3]),
    needles(SECRETS[4]),
    needles(SECRETS[5]),
];

/// The signatures of [`BODY`] under the secrets of rings. A sender shows them, so they are no secret.
pub(crate) static SIGNATURES: [[u8; 32]; 4] = [
    bytes(mac(SECRETS[0], BODY)),
    bytes(mac(SECRETS[1], BODY)),
    bytes(mac(SECRETS[2], BODY)),
    bytes(mac(SECRETS[3], BODY)),
];

const fn needles(secret: &[u8]) -> Needles {
    let (key, inner, outer) = (
        padded(secret, 0),
        padded(secret, 0x36),
        padded(secret, 0x5c),
    );
    // The texts begin alike, and a hashed key fills half of its block.
    let from = if secret.len() > BLOCK { 0 } else { SAME };
    Needles {
        key: [
            Masked::of(words(secret, SAME)),
            Masked::of(words(&key, from)),
            Masked::of(words(&inner, from)),
            Masked::of(words(&outer, from)),
            Masked::of(swapped(words(&key, from))),
            Masked::of(swapped(words(&inner, from))),
            Masked::of(swapped(words(&outer, from))),
        ],
        outer: Masked::of(compress(initial(), &outer)),
        running: [running(&inner, BODY), running(&inner, FORGED)],
        macs: [as_both(mac(secret, BODY)), as_both(mac(secret, FORGED))],
    }
}

const fn as_both(mac: State) -> [Masked; 2] {
    [Masked::of(mac), Masked::of(swapped(mac))]
}

const fn words(bytes: &[u8], mut from: usize) -> State {
    let (mut words, mut at) = ([0; 8], 0);
    while at < 8 {
        words[at] = u32::from_ne_bytes([
            bytes[from],
            bytes[from + 1],
            bytes[from + 2],
            bytes[from + 3],
        ]);
        from += 4;
        at += 1;
    }
    words
}

const fn swapped(mut words: State) -> State {
    let mut at = 0;
    while at < 8 {
        words[at] = words[at].swap_bytes();
        at += 1;
    }
    words
}

const fn bytes(state: State) -> [u8; 32] {
    let (mut bytes, mut at) = ([0; 32], 0);
    while at < 32 {
        bytes[at] = state[at / 4].to_be_bytes()[at % 4];
        at += 1;
    }
    bytes
}

/// RFC 2104: the key, hashed if it is longer than a block, with this pad over it.
const fn padded(secret: &[u8], pad: u8) -> [u8; BLOCK] {
    let (mut block, mut at) = ([0; BLOCK], 0);
    if secret.len() > BLOCK {
        let hash = bytes(finished(initial(), 0, &[secret]));
        while at < hash.len() {
            block[at] = hash[at];
            at += 1;
        }
    } else {
        while at < secret.len() {
            block[at] = secret[at];
            at += 1;
        }
    }
    at = 0;
    while at < BLOCK {
        block[at] ^= pad;
        at += 1;
    }
    block
}

const fn mac(secret: &[u8], body: &[u8]) -> State {
    let inner = compress(initial(), &padded(secret, 0x36));
    let hash = bytes(finished(inner, BLOCK, &[TIMESTAMP.as_bytes(), b".", body]));
    finished(compress(initial(), &padded(secret, 0x5c)), BLOCK, &[&hash])
}

/// The states after the inner pad and after each full block of the signed string.
const fn running(inner_pad: &[u8; BLOCK], body: &[u8]) -> [Masked; RUNNING] {
    let parts = [TIMESTAMP.as_bytes(), b".", body];
    assert!(length(&parts) / BLOCK == RUNNING - 1);
    let mut state = compress(initial(), inner_pad);
    let (mut states, mut at) = ([Masked([0; 8]); RUNNING], 0);
    while at < RUNNING {
        states[at] = Masked::of(state);
        if at + 1 < RUNNING {
            state = compress(state, &block(&parts, at * BLOCK));
        }
        at += 1;
    }
    states
}

/// The hash of these parts, from a state after `before` bytes, which are full blocks.
const fn finished(mut state: State, before: usize, parts: &[&[u8]]) -> State {
    let (length, mut at) = (length(parts), 0);
    while length - at >= BLOCK {
        state = compress(state, &block(parts, at));
        at += BLOCK;
    }
    let mut last = block(parts, at);
    last[length - at] = 0x80;
    if length - at >= BLOCK - 8 {
        state = compress(state, &last);
        last = [0; BLOCK];
    }
    let bits = (8 * (before + length) as u64).to_be_bytes();
    at = 0;
    while at < 8 {
        last[BLOCK - 8 + at] = bits[at];
        at += 1;
    }
    compress(state, &last)
}

const fn length(parts: &[&[u8]]) -> usize {
    let (mut length, mut at) = (0, 0);
    while at < parts.len() {
        length += parts[at].len();
        at += 1;
    }
    length
}

/// The block of these parts from this byte on, with zeros behind the last byte.
const fn block(parts: &[&[u8]], from: usize) -> [u8; BLOCK] {
    let (mut block, mut part, mut passed) = ([0; BLOCK], 0, 0);
    while part < parts.len() {
        let mut at = 0;
        while at < parts[part].len() {
            if passed >= from && passed < from + BLOCK {
                block[passed - from] = parts[part][at];
            }
            passed += 1;
            at += 1;
        }
        part += 1;
    }
    block
}

/// FIPS 180-4, section 6.2.2.
const fn compress(state: State, block: &[u8; BLOCK]) -> State {
    let (mut w, mut t) = ([0; BLOCK], 0);
    while t < 64 {
        w[t] = if t < 16 {
            u32::from_be_bytes([
                block[4 * t],
                block[4 * t + 1],
                block[4 * t + 2],
                block[4 * t + 3],
            ])
        } else {
            let (early, late): (u32, u32) = (w[t - 15], w[t - 2]);
            let early = early.rotate_right(7) ^ early.rotate_right(18) ^ (early >> 3);
            let late = late.rotate_right(17) ^ late.rotate_right(19) ^ (late >> 10);
            late.wrapping_add(w[t - 7])
                .wrapping_add(early)
                .wrapping_add(w[t - 16])
        };
        t += 1;
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
    t = 0;
    while t < 64 {
        let sum = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let first = h
            .wrapping_add(sum)
            .wrapping_add(choice)
            .wrapping_add(ROUNDS[t])
            .wrapping_add(w[t]);
        let sum = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        (h, g, f, e) = (g, f, e, d.wrapping_add(first));
        (d, c, b, a) = (c, b, a, first.wrapping_add(sum.wrapping_add(majority)));
        t += 1;
    }
    let (end, mut sums) = ([a, b, c, d, e, f, g, h], [0; 8]);
    t = 0;
    while t < 8 {
        sums[t] = state[t].wrapping_add(end[t]);
        t += 1;
    }
    sums
}

/// FIPS 180-4, sections 4.2.2 and 5.3.3: the first 32 bits of the fractional parts of the roots of the first primes.
const ROUNDS: [u32; 64] = roots(3);

const fn initial() -> State {
    roots(2)
}

const fn roots<const N: usize>(degree: u32) -> [u32; N] {
    let (mut roots, mut found, mut number) = ([0; N], 0, 2_u128);
    while found < N {
        let mut divisor = 2;
        while number % divisor != 0 {
            divisor += 1;
        }
        if divisor == number {
            roots[found] = root(number << (32 * degree), degree);
            found += 1;
        }
        number += 1;
    }
    roots
}

/// The last 32 bits of the integral root.
const fn root(of: u128, degree: u32) -> u32 {
    let (mut least, mut beyond) = (0_u128, 1 << 36);
    while beyond - least > 1 {
        let middle = u128::midpoint(least, beyond);
        if middle.pow(degree) <= of {
            least = middle;
        } else {
            beyond = middle;
        }
    }
    (least & 0xffff_ffff) as u32
}
