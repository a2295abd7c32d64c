//! One target in each file: `run` takes the fuzzer's input.

pub mod event_head;
pub mod headers;
pub mod timestamp_and_signature;
pub mod typed_event;
pub mod whole_walk;

use hookgate::{KeyRing, Secret, Verified, Verifier, clock::UnixSeconds, verify::DeliveryHeaders};

use super::made::{NOW, SECRETS};
use super::obvious::mac;

/// The largest body that is used: a larger one only takes more time.
const MAX_BODY: usize = 8_192;

/// Signs a body as the service does, and verifies it with the crate.
fn verified(body: &[u8], pinned: Option<&str>) -> Verified<Vec<u8>> {
    let timestamp = NOW.to_string();
    let signature = mac::signature(SECRETS[0], timestamp.as_bytes(), body);
    let pairs = [
        ("x-service-timestamp", &timestamp),
        ("x-service-signature", &signature),
    ];
    let headers = DeliveryHeaders::from_pairs(pairs).unwrap();
    let mut ring = KeyRing::new(Secret::new(SECRETS[0]).unwrap());
    if let Some(pinned) = pinned {
        ring = ring.with_workspace(pinned).unwrap();
    }
    let verifier = Verifier::new(ring);
    verifier
        .verify(&headers, body.to_vec(), UnixSeconds::new(NOW))
        .unwrap()
}
