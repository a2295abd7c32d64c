//! Every edit of two bytes of a good signature, all 163 million of them: seconds in a release
//! build, minutes in a debug one, so only the former has it. `tests/it/parsers.rs` has the edits
//! that are few.

#![cfg(not(debug_assertions))]
#![allow(clippy::unwrap_used)] // a failed expectation must stop the test

use std::thread;

use hookgate::verify::Signature;

const PREFIX: &[u8] = b"sha256=";
const LENGTH: usize = PREFIX.len() + 64;

#[test]
fn every_pair_of_bytes_in_a_signature_is_judged_right() {
    let good: [u8; LENGTH] = std::array::from_fn(|place| match PREFIX.get(place) {
        Some(byte) => *byte,
        None => b"0123456789abcdef"[place * 7 % 16],
    });
    assert!(Signature::parse(&good).is_ok());
    // The places are dealt out, so that each worker has short and long rows.
    let workers = thread::available_parallelism().map_or(2, usize::from);
    let judged: u64 = thread::scope(|scope| {
        let worker = |first: usize| {
            scope.spawn(move || {
                let places = (first..LENGTH).step_by(workers);
                places
                    .map(|place| judge_pairs_with(place, good))
                    .sum::<u64>()
            })
        };
        let workers: Vec<_> = (0..workers).map(worker).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .sum()
    });
    let pairs = (LENGTH * (LENGTH - 1) / 2) as u64;
    assert_eq!(judged, pairs * 256 * 256);
}

/// Every value of this byte with every value of every later one.
fn judge_pairs_with(place: usize, mut text: [u8; LENGTH]) -> u64 {
    let mut judged = 0;
    let original = text;
    for byte in 0..=u8::MAX {
        text[place] = byte;
        for other in place + 1..LENGTH {
            for second in 0..=u8::MAX {
                text[other] = second;
                let right = is_allowed(place, byte) && is_allowed(other, second);
                assert_eq!(Signature::parse(&text).is_ok(), right, "{text:?}");
                judged += 1;
            }
            text[other] = original[other];
        }
    }
    judged
}

fn is_allowed(place: usize, byte: u8) -> bool {
    match PREFIX.get(place) {
        Some(expected) => byte == *expected,
        None => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    }
}
