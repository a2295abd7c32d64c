//! The two strict parsers against second implementations that are obviously right.

use hookgate::verify::{Signature, Timestamp};
use proptest::prelude::*;

const TIMESTAMP: &[u8] = b"1763690000";
const SIGNATURE: &[u8] = b"sha256=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// `[1-9][0-9]{0,15}`, as plain code.
fn is_timestamp(text: &[u8]) -> bool {
    let [first, rest @ ..] = text else {
        return false;
    };
    b"123456789".contains(first)
        && rest.len() < 16
        && rest.iter().all(|byte| b"0123456789".contains(byte))
}

/// `sha256=[0-9a-f]{64}`, as plain code.
fn is_signature(text: &[u8]) -> bool {
    text.len() == 71
        && &text[..7] == b"sha256="
        && text[7..]
            .iter()
            .all(|byte| b"0123456789abcdef".contains(byte))
}

fn check_timestamp(text: &[u8]) {
    match Timestamp::parse(text) {
        Ok(timestamp) => {
            assert!(is_timestamp(text), "accepted {text:?}");
            assert_eq!(timestamp.as_bytes(), text);
            let number: i64 = std::str::from_utf8(text).unwrap().parse().unwrap();
            assert_eq!(timestamp.seconds().as_i64(), number);
        }
        Err(_) => assert!(!is_timestamp(text), "refused {text:?}"),
    }
}

fn check_signature(text: &[u8]) {
    match Signature::parse(text) {
        Ok(signature) => {
            assert!(is_signature(text), "accepted {text:?}");
            assert_eq!(signature.to_header_value().as_bytes(), text);
        }
        Err(_) => assert!(!is_signature(text), "refused {text:?}"),
    }
}

/// Every replacement, insertion and deletion of a single byte.
fn each_edit(good: &[u8], check: impl Fn(&[u8])) {
    for position in 0..=good.len() {
        let (before, after) = good.split_at(position);
        for byte in 0..=u8::MAX {
            check(&[before, &[byte], after].concat());
            if let [_, rest @ ..] = after {
                check(&[before, &[byte], rest].concat());
                check(&[before, rest].concat());
            }
        }
    }
}

/// Every replacement of two bytes by two of `bytes`. Cheaper than `check_…`: only whether it is
/// accepted.
fn each_pair(
    good: &[u8],
    bytes: &[u8],
    accepted: impl Fn(&[u8]) -> bool,
    right: impl Fn(&[u8]) -> bool,
) {
    // Whether a byte may stand at a place is asked of the second implementation once a place and
    // byte, not once a pair.
    let allowed: Vec<Vec<bool>> = (0..good.len())
        .map(|place| {
            let alone = |&byte| {
                let mut text = good.to_vec();
                text[place] = byte;
                right(&text)
            };
            bytes.iter().map(alone).collect()
        })
        .collect();
    let mut text = good.to_vec();
    for first in 0..good.len() {
        for second in first + 1..good.len() {
            for (one, &byte) in bytes.iter().enumerate() {
                text[first] = byte;
                for (other, &byte) in bytes.iter().enumerate() {
                    text[second] = byte;
                    let expected = allowed[first][one] && allowed[second][other];
                    assert_eq!(accepted(&text), expected, "{text:?}");
                }
            }
            text[second] = good[second];
        }
        text[first] = good[first];
    }
}

#[test]
fn every_single_edit_of_a_timestamp_is_judged_right() {
    for good in [TIMESTAMP, b"1", b"9999999999999999"] {
        each_edit(good, check_timestamp);
    }
}

#[test]
fn every_single_edit_of_a_signature_is_judged_right() {
    each_edit(SIGNATURE, check_signature);
}

#[test]
fn every_pair_of_bytes_in_a_timestamp_is_judged_right() {
    let all: Vec<u8> = (0..=u8::MAX).collect();
    each_pair(
        TIMESTAMP,
        &all,
        |text| Timestamp::parse(text).is_ok(),
        is_timestamp,
    );
}

#[test]
fn every_hostile_pair_of_bytes_in_a_signature_is_judged_right() {
    // The edges of the accepted ranges, upper case, and bytes that wrap around in careless
    // arithmetic.
    let hostile = b"\0 /0+9:=@AFG`afg{,\x7f\x80\xb0\xe1\xff\n";
    each_pair(
        SIGNATURE,
        hostile,
        |text| Signature::parse(text).is_ok(),
        is_signature,
    );
}

proptest! {
    #[test]
    fn any_bytes_are_judged_right(text in prop::collection::vec(any::<u8>(), 0..100)) {
        check_timestamp(&text);
        check_signature(&text);
    }

    #[test]
    fn any_digits_are_judged_right(text in "[0-9]{0,20}") {
        check_timestamp(text.as_bytes());
    }

    #[test]
    fn nearly_right_signatures_are_judged_right(text in "(sha256=|SHA256=|sha1=)[0-9a-fA-F]{62,66}") {
        check_signature(text.as_bytes());
    }
}
