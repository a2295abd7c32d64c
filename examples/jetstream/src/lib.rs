//! The form of a message, which the sink writes and a consumer reads: the payload is the body, byte for byte, and the headers are the
//! other parts of a [`StoredDelivery`].

use async_nats::HeaderMap;
use hookgate::{clock::UnixSeconds, receiver::StoredDelivery, verify::Signature};

/// The scope of the keys that verified the delivery.
pub const SCOPE: &str = "Hookgate-Scope";
/// The name of the key that verified the delivery.
pub const KEY: &str = "Hookgate-Key";
/// The timestamp that was signed, as it was written.
pub const TIMESTAMP: &str = "Hookgate-Timestamp";
/// The signature, as the sender's header had it. A program that reads the message can replay the delivery within the window of ages.
pub const SIGNATURE: &str = "Hookgate-Signature";
/// The subscription's id. Absent where one secret is for all.
pub const SUBSCRIPTION: &str = "Hookgate-Subscription";
/// When the delivery was received, in seconds since 1970. Not signed.
pub const RECEIVED_AT: &str = "Hookgate-Received-At";
/// The trace of the request, if it had one. Not signed.
pub const TRACEPARENT: &str = "traceparent";

/// Returns the headers of a message.
pub fn headers(stored: &StoredDelivery) -> HeaderMap {
    let signature = stored.signature.as_ref().map(Signature::to_header_value);
    let values = [
        (SCOPE, Some(stored.scope.clone())),
        (KEY, Some(stored.key_name.clone())),
        (TIMESTAMP, Some(stored.timestamp.clone())),
        (SIGNATURE, signature),
        (SUBSCRIPTION, stored.subscription_id.clone()),
        (RECEIVED_AT, Some(stored.received_at.to_string())),
        (TRACEPARENT, stored.traceparent.clone()),
    ];
    let mut headers = HeaderMap::new();
    for (name, value) in values {
        if let Some(value) = value {
            headers.insert(name, value);
        }
    }
    headers
}

/// Returns the parts of a message for [`Receiver::verify_stored`](hookgate::Receiver::verify_stored), which refuses a message that lacks
/// one of the signed parts. It reads the event's id and type from the body, so they are left empty.
pub fn stored(headers: &HeaderMap, payload: &[u8]) -> StoredDelivery {
    let value = |name: &str| headers.get(name).map(|value| value.as_str().to_owned());
    let received_at = value(RECEIVED_AT).and_then(|seconds| seconds.parse().ok());
    StoredDelivery {
        body: payload.to_vec().into(),
        timestamp: value(TIMESTAMP).unwrap_or_default(),
        signature: value(SIGNATURE).and_then(|value| Signature::parse(value.as_bytes()).ok()),
        event_id: String::new(),
        event_type: String::new(),
        received_at: UnixSeconds::new(received_at.unwrap_or_default()),
        scope: value(SCOPE).unwrap_or_default(),
        key_name: value(KEY).unwrap_or_default(),
        subscription_id: value(SUBSCRIPTION),
        pinned_workspace: None, // that of the keys is checked
        traceparent: value(TRACEPARENT),
    }
}
