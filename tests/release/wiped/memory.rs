//! Looks for the needles in all memory of this process that can be written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{File, read_to_string};
use std::os::unix::fs::FileExt;

use super::needles::{Masked, NEEDLES, Needles, mask};

/// Two words of one needle within this many bytes are a copy. A single word may be there by chance.
const NEAR: usize = 32;
/// Memory is read in pieces of this many bytes.
const PIECE: usize = 1 << 16;
/// As many bytes of nothing but zeros are passed over at once.
const LINE: usize = 64;

/// A place where two words of a needle or more are close together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) secret: usize,
    pub(crate) kind: Kind,
    address: usize,
    words: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            secret,
            kind,
            address,
            words,
        } = self;
        write!(
            f,
            "{words} words of {kind:?} of secret {secret} at {address:#x}"
        )
    }
}

/// The thing that a needle is a copy of. Bodies are counted from 0, and blocks as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The text, or a block that is made of it.
    Key,
    /// The state after a pad.
    Pad,
    /// The inner state after blocks of a body.
    Running,
    Mac {
        body: usize,
    },
}

struct Needle {
    secret: usize,
    kind: Kind,
    words: &'static Masked,
}

fn needles() -> Vec<Needle> {
    let mut all = Vec::new();
    for (secret, needles) in NEEDLES.iter().enumerate() {
        let Needles {
            key,
            outer,
            running,
            macs,
        } = needles;
        let mut add = |kind, words: &'static [Masked]| {
            all.extend(words.iter().map(|words| Needle {
                secret,
                kind,
                words,
            }));
        };
        add(Kind::Key, key);
        add(Kind::Pad, std::slice::from_ref(outer));
        // The state before the first block is the same for both bodies.
        add(Kind::Pad, &running[0][..1]);
        for (body, macs) in macs.iter().enumerate() {
            add(Kind::Running, &running[body][1..]);
            add(Kind::Mac { body }, macs);
        }
    }
    all
}

/// Returns every copy in the memory of this process.
pub(crate) fn copies() -> BTreeSet<Place> {
    let needles = needles();
    let mut by_word: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    // The lower halves of all words, since a look into this is faster.
    let mut halves = vec![false; 1 << 16];
    for (number, needle) in needles.iter().enumerate() {
        for word in needle.words.as_masked() {
            by_word.entry(*word).or_default().push(number);
            halves[usize::from(lower(*word))] = true;
        }
    }
    // For each needle, the addresses of its words.
    let mut found = vec![Vec::new(); needles.len()];
    each_word(|address, word| {
        if halves[usize::from(lower(word))] {
            for number in by_word.get(&word).into_iter().flatten() {
                found[*number].push((address, word));
            }
        }
    });
    let places = needles.iter().zip(&mut found).flat_map(|(needle, found)| {
        found.sort_unstable();
        let near = found.chunk_by(|(one, _), (other, _)| other - one < NEAR);
        near.filter_map(|near| {
            let words: BTreeSet<_> = near.iter().map(|(_, word)| word).collect();
            (words.len() > 1).then_some(Place {
                secret: needle.secret,
                kind: needle.kind,
                address: near[0].0,
                words: words.len(),
            })
        })
    });
    places.collect()
}

fn lower(word: u32) -> u16 {
    (word & 0xffff) as u16
}

/// Passes each word of the memory that can be written, under the mask, and at every address: copies need not be aligned.
fn each_word(mut pass: impl FnMut(usize, u32)) {
    let memory = File::open("/proc/self/mem").unwrap();
    let mut piece = vec![0; PIECE + size_of::<u32>() - 1];
    let own = piece.as_ptr().addr()..piece.as_ptr().addr() + piece.len();
    for mapping in read_to_string("/proc/self/maps").unwrap().lines() {
        let (range, rights) = mapping.split_once(' ').unwrap();
        if !rights.starts_with("rw") {
            continue;
        }
        let (from, to) = range.split_once('-').unwrap();
        let [from, to] = [from, to].map(|hex| usize::from_str_radix(hex, 16).unwrap());
        for start in (from..to).step_by(PIECE) {
            let piece = &mut piece[..(to - start).min(PIECE + size_of::<u32>() - 1)];
            // A mapping may have gone since, such as the stack of a thread.
            if memory.read_exact_at(piece, start as u64).is_err() {
                continue;
            }
            for line in (0..piece.len().min(PIECE)).step_by(LINE) {
                let end = (line + LINE + size_of::<u32>() - 1).min(piece.len());
                if own.contains(&(start + line)) || piece[line..end].iter().all(|byte| *byte == 0) {
                    continue;
                }
                for (at, bytes) in piece[line..end].windows(size_of::<u32>()).enumerate() {
                    let word = mask(u32::from_ne_bytes(bytes.try_into().unwrap()));
                    pass(start + line + at, word);
                }
            }
        }
    }
}
