//! The two strict parsers, and signatures made and verified in pieces, against the obvious ones.

use bytes::Bytes;
use hookgate::{
    Secret, Verifier,
    clock::UnixSeconds,
    verify::{DeliveryHeaders, Signature, Timestamp},
};

use super::super::choices::Choices;
use super::super::made::{self, NOW, SECRETS};
use super::super::obvious::{headers, mac};

pub fn run(input: &[u8]) {
    let mut choices = Choices(input);
    match choices.below(5) {
        0 => timestamp(choices.0),
        1 => signature(choices.0),
        2 => {
            let mut text = NOW.to_string().into_bytes();
            made::damage(&mut choices, &mut text);
            timestamp(&text);
        }
        3 => {
            let mut text = format!("sha256={}", "0123456789abcdef".repeat(4)).into_bytes();
            made::damage(&mut choices, &mut text);
            signature(&text);
        }
        _ => signed(choices),
    }
}

fn timestamp(text: &[u8]) {
    let parsed = Timestamp::parse(text);
    assert_eq!(parsed.is_ok(), headers::is_timestamp(text), "{text:?}");
    let Ok(parsed) = parsed else { return };
    assert_eq!(parsed.as_bytes(), text);
    assert_eq!(parsed.as_str().as_bytes(), text);
    let number: i64 = std::str::from_utf8(text).unwrap().parse().unwrap();
    assert_eq!(parsed.seconds().as_i64(), number);
    // The conversion back gives the same value.
    assert_eq!(Timestamp::at(UnixSeconds::new(number)), Ok(parsed));
}

fn signature(text: &[u8]) {
    let parsed = Signature::parse(text);
    assert_eq!(parsed.is_ok(), headers::is_signature(text), "{text:?}");
    if let Ok(parsed) = parsed {
        assert_eq!(parsed.to_header_value().as_bytes(), text);
    }
}

/// A body signed by both, then verified whole, in pieces, and with a part changed.
fn signed(mut choices: Choices<'_>) {
    let secret = choices.one_of(&SECRETS);
    let seconds = 1 + i64::from(choices.byte()) * 7_000_000;
    let text = seconds.to_string();
    let (cuts, change) = (choices.bytes(), choices.byte());
    let body = choices.0;
    let timestamp = Timestamp::parse(text.as_bytes()).unwrap();
    let ours = Signature::sign(&Secret::new(secret).unwrap(), &timestamp, body).to_header_value();
    let right = mac::signature(secret, text.as_bytes(), body);
    assert_eq!(ours, right);

    let verifier = Verifier::new(Secret::new(secret).unwrap());
    let passes = |text: &str, signature: &str, body: &[u8]| {
        let pairs = [
            ("x-service-timestamp", text),
            ("x-service-signature", signature),
        ];
        let headers = DeliveryHeaders::from_pairs(pairs).unwrap();
        let now = headers.timestamp().unwrap().seconds();
        let whole = verifier.verify(&headers, body, now).is_ok();
        let mut received = verifier.begin(&headers, now, body.len()).unwrap();
        let mut rest = body;
        for cut in cuts {
            let (piece, after) = rest.split_at(usize::from(*cut).min(rest.len()));
            received.push(Bytes::copy_from_slice(piece)).unwrap();
            rest = after;
        }
        received.push(Bytes::copy_from_slice(rest)).unwrap();
        assert_eq!(received.finish().is_ok(), whole, "whole or in pieces");
        whole
    };
    assert!(passes(&text, &right, body));

    let mut changed = body.to_vec();
    let place = usize::from(change) % (body.len() + 1);
    match changed.get_mut(place) {
        Some(byte) => *byte ^= 1 << (change % 8),
        None => changed.push(change),
    }
    assert!(!passes(&text, &right, &changed), "another body");
    assert!(
        !passes(&(seconds + 1).to_string(), &right, body),
        "another timestamp"
    );
    let mut other = right.clone().into_bytes();
    let place = 7 + usize::from(change) % 64;
    other[place] = if other[place] == b'0' { b'1' } else { b'0' };
    assert!(
        !passes(&text, std::str::from_utf8(&other).unwrap(), body),
        "another signature"
    );
    let others = SECRETS.iter().filter(|other| **other != secret);
    for other in others {
        assert!(
            !passes(&text, &mac::signature(other, text.as_bytes(), body), body),
            "another key"
        );
    }
}
