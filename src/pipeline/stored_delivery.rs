//! The parts of a delivery that a store or a queue keeps.

use std::fmt;

use bytes::Bytes;

use crate::clock::UnixSeconds;
use crate::verify::Signature;

/// The parts of a [`Delivery`](crate::Delivery) as plain values, for the columns of a table or the attributes of a message.
///
/// [`Delivery::to_stored`](crate::Delivery::to_stored) returns them. There are two ways back:
///
/// | | reads | proves |
/// |---|---|---|
/// | [`Receiver::verify_stored`](crate::Receiver::verify_stored), [`Verifier::verify_stored`](crate::Verifier::verify_stored) | body, timestamp, signature, subscription, scope; id and type from the body; the key's name only to explain an error | authentic, under a key that is live now; neither fresh nor once |
/// | [`dangerous::restore`](crate::dangerous::restore) | all parts | nothing: the store is trusted |
///
/// Both take over `received_at` and `traceparent`, which are not signed.
///
/// # Security
/// The body holds names and e-mail addresses. With the signature, whoever reads the parts can replay the delivery within the
/// window: to another receiver with the same secret, or to one that has forgotten the event. `Debug` shows neither of the two.
#[derive(Clone)]
pub struct StoredDelivery {
    /// The raw bytes that were signed. Store them byte for byte: a body that was parsed and written again has another signature.
    pub body: Bytes,
    /// The timestamp that was signed, as it was written.
    pub timestamp: String,
    /// The signature, if it is stored: text by [`Signature::to_header_value`], back by [`Signature::parse`].
    pub signature: Option<Signature>,
    /// The event's id, as in the body.
    pub event_id: String,
    /// The event's type, as in the body.
    pub event_type: String,
    /// When the delivery was received. Not signed.
    pub received_at: UnixSeconds,
    /// The scope of the ring that verified the delivery.
    pub scope: String,
    /// The name of the key that verified the delivery.
    pub key_name: String,
    /// The subscription, where rings are held by subscription.
    pub subscription_id: Option<String>,
    /// The workspace that the ring was pinned to.
    pub pinned_workspace: Option<String>,
    /// The trace of the request. Not signed.
    pub traceparent: Option<String>,
}

impl fmt::Debug for StoredDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredDelivery")
            .field("event_id", &self.event_id)
            .field("event_type", &self.event_type)
            .field("timestamp", &self.timestamp)
            .field("received_at", &self.received_at)
            .field("scope", &self.scope)
            .field("key_name", &self.key_name)
            .field("subscription_id", &self.subscription_id)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
