//! Headers in any case, order and number: accepted or refused as by the obvious reader.

use hookgate::verify::{DeliveryHeaders, VerifyErrorKind as Kind};

use super::super::choices::Choices;
use super::super::made;
use super::super::obvious::headers::{faults, only};

const NAMES: [&str; 9] = [
    "x-service-signature",
    "x-service-timestamp",
    "x-service-webhook-id",
    "x-service-event-id",
    "x-service-event-type",
    "x-service-signatures",
    "x-service-timestam",
    "x_service_signature",
    "content-type",
];

pub fn run(input: &[u8]) {
    let mut choices = Choices(input);
    let pairs = pairs(&mut choices);
    let found = DeliveryHeaders::from_pairs(pairs.iter().map(|(name, value)| (name, value)));
    let faults = faults(&pairs);
    match found {
        Ok(headers) => {
            assert_eq!(faults, [], "{pairs:?}");
            let timestamp = only(&pairs, "x-service-timestamp").unwrap();
            assert_eq!(headers.timestamp().unwrap().as_bytes(), timestamp);
            assert_eq!(headers.webhook_id(), only(&pairs, "x-service-webhook-id"));
            assert_eq!(headers.event_id(), only(&pairs, "x-service-event-id"));
            assert_eq!(headers.event_type(), only(&pairs, "x-service-event-type"));
        }
        Err(error) => {
            let fault = match error.kind() {
                Kind::HeaderMissing(name) => (name, "missing"),
                Kind::HeaderRepeated(name) => (name, "duplicate"),
                Kind::HeaderMalformed(name) => (name, "malformed"),
                other => panic!("{other:?} of headers alone"),
            };
            assert!(faults.contains(&fault), "{error} of {pairs:?}");
        }
    }
}

/// Returns headers, most of them well-formed, each with its name in some case.
pub(super) fn pairs(choices: &mut Choices<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut pairs = vec![named(choices, 0), named(choices, 1)];
    while !choices.is_empty() && pairs.len() < 12 {
        match choices.below(4) {
            0 => {
                let place = choices.below(pairs.len());
                pairs.remove(place);
                if pairs.is_empty() {
                    break;
                }
            }
            1 => pairs.push((choices.bytes().to_vec(), choices.bytes().to_vec())),
            _ => {
                let name = choices.below(NAMES.len());
                let place = choices.below(pairs.len() + 1);
                let pair = named(choices, name);
                pairs.insert(place, pair);
            }
        }
    }
    pairs
}

fn named(choices: &mut Choices<'_>, name: usize) -> (Vec<u8>, Vec<u8>) {
    let mut value = match name {
        0 | 5 => format!("sha256={}", "0a".repeat(32)).into_bytes(),
        1 | 6 => made::NOW.to_string().into_bytes(),
        _ => choices.bytes().to_vec(),
    };
    if choices.once_in(4) {
        made::damage(choices, &mut value);
    }
    let mut name = NAMES[name].as_bytes().to_vec();
    match choices.below(4) {
        0 | 1 => {}
        2 => name.make_ascii_uppercase(),
        _ => {
            let place = choices.below(name.len());
            name[place] = name[place].to_ascii_uppercase();
        }
    }
    (name, value)
}
