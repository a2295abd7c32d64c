//! A recognised delivery: authentic and fresh, with its id and type.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::request_head::Traceparent;
use super::stored_delivery::StoredDelivery;
use crate::clock::UnixSeconds;
use crate::dedupe::{ClaimValues, EventKey};
use crate::event::{Event, EventError, EventHead, row_of};
use crate::verify::Verified;

/// An authentic delivery with the id and type from its signed body. Cheap to clone.
///
/// Only [`Receiver::verify`](crate::Receiver::verify) makes one, so a `Delivery` is proof that it is authentic; and, from a
/// store or a queue, the two ways back that [`Verified`] compares.
#[derive(Clone)]
pub struct Delivery(Arc<Recognised>);

struct Recognised {
    verified: Verified,
    head: EventHead,
    /// Computed when it is first asked for: without deduplication nothing else does.
    key: OnceLock<EventKey>,
    received_at: UnixSeconds,
    by: ReceiverId,
    traceparent: Option<Traceparent>,
}

/// Identifies a receiver or acceptor among all of this process, also among those that were dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReceiverId(u64);

impl ReceiverId {
    /// Returns an identity that no other receiver has.
    pub(crate) fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl Delivery {
    pub(super) fn new(
        verified: Verified,
        head: EventHead,
        received_at: UnixSeconds,
        by: ReceiverId,
        traceparent: Option<Traceparent>,
    ) -> Self {
        Self(Arc::new(Recognised {
            verified,
            head,
            key: OnceLock::new(),
            received_at,
            by,
            traceparent,
        }))
    }

    /// Makes a delivery from its stored parts. No receiver of this process has recognised it.
    pub(crate) fn from_stored(
        verified: Verified,
        head: EventHead,
        stored: &StoredDelivery,
    ) -> Self {
        let traceparent = stored.traceparent.as_deref();
        // Another program can have changed the stored text.
        let traceparent = traceparent.and_then(|text| Traceparent::parse(text.as_bytes()));
        Self::new(
            verified,
            head,
            stored.received_at,
            ReceiverId(0),
            traceparent,
        )
    }

    /// Returns the receiver that has recognised it.
    pub(crate) fn by(&self) -> ReceiverId {
        self.0.by
    }

    /// Returns the bytes with their proof: timestamp, key and scope.
    #[must_use]
    pub fn verified(&self) -> &Verified {
        &self.0.verified
    }

    /// Returns the raw bytes that were signed.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        self.0.verified.bytes()
    }

    /// Returns id and type, from the signed body.
    #[must_use]
    pub fn head(&self) -> &EventHead {
        &self.0.head
    }

    /// Returns the event's id, from the signed body.
    #[must_use]
    pub fn event_id(&self) -> &str {
        self.0.head.id.as_str()
    }

    /// Returns the event's type, from the signed body.
    #[must_use]
    pub fn event_type(&self) -> &str {
        self.0.head.event_type.as_str()
    }

    /// Returns the ids of the data model and of the row that a row event names, without reading the rest of the row: for a queue
    /// or a worker that keeps the events of one row together. `None` where the body does not name both in readable form; such an
    /// event shares its row with no other event.
    ///
    /// Each call reads the body once. Both texts are borrowed from it, unless they have escapes.
    ///
    /// ```
    /// # fn received(body: &'static str, event_type: &str) -> Result<hookgate::Delivery, hookgate::verify::Malformed> {
    /// #     let stored = hookgate::receiver::StoredDelivery::from_attributes(body, |name| match name {
    /// #         "x-service-timestamp" => Some("1763690000"),
    /// #         "x-service-event-id" => Some("evt_1"),
    /// #         "x-service-event-type" => Some(event_type),
    /// #         _ => None,
    /// #     });
    /// #     hookgate::dangerous::restore(&stored)
    /// # }
    /// let delivery = received(r#"{"id":"evt_1","type":"row.deleted","data":{"datamodelId":"dm_1","rowId":"row_1"}}"#, "row.deleted")?;
    /// assert_eq!(delivery.row(), Some(("dm_1".into(), "row_1".into())));
    /// assert_eq!(received(r#"{"id":"evt_2","type":"page.created","data":{}}"#, "page.created")?.row(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn row(&self) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
        row_of(&self.0.verified)
    }

    /// Returns the key of a message: the row's id, so that a partition or a message group has the events of a row in the order in
    /// which they were published; the event's id, where the event has no row. Retries can arrive late, so a consumer that needs the
    /// newest state compares the times: see the package `hookgate-order`.
    #[must_use]
    pub fn message_key(&self) -> Cow<'_, str> {
        match self.row() {
            Some((_, row)) => row,
            None => self.event_id().into(),
        }
    }

    /// Returns the parts of the delivery for a store or a queue.
    #[must_use]
    pub fn to_stored(&self) -> StoredDelivery {
        let verified = &self.0.verified;
        StoredDelivery {
            body: self.body().clone(),
            timestamp: verified.timestamp().as_str().to_owned(),
            signature: verified.signature(),
            event_id: self.event_id().to_owned(),
            event_type: self.event_type().to_owned(),
            received_at: self.0.received_at,
            scope: verified.scope().to_owned(),
            key_name: verified.key_name().to_owned(),
            subscription_id: verified.subscription_id().map(str::to_owned),
            pinned_workspace: verified.pinned_workspace().map(str::to_owned),
            traceparent: self.traceparent().map(str::to_owned),
        }
    }

    /// Returns the values of a claim inside a transaction of the program of this name, remembered for `retain`.
    #[must_use]
    pub fn claim_values(&self, name: &str, retain: Duration) -> ClaimValues {
        ClaimValues::new(name, *self.key(), self.body(), retain)
    }

    /// Returns the key under which a store remembers the event.
    #[must_use]
    pub fn key(&self) -> &EventKey {
        let key = || EventKey::from_id_bytes(self.0.verified.scope(), self.event_id().as_bytes());
        self.0.key.get_or_init(key)
    }

    /// Returns the receiver's wall clock at the time when the delivery was recognised.
    #[must_use]
    pub fn received_at(&self) -> UnixSeconds {
        self.0.received_at
    }

    /// Returns the trace that the request belonged to: its header `traceparent`, if the request had it once, and in the form of
    /// W3C Trace Context. An inbox keeps it until the event is done, so that the worker's span can be
    /// [linked](crate::guide::tracing) to the request's.
    ///
    /// # Security
    /// The header is **not signed**, as the sender sends none: a proxy or your own server sets it. It says nothing about the
    /// event. Use it for tracing alone.
    ///
    /// ```
    /// # use hookgate::{
    /// #     Receiver, Secret,
    /// #     clock::{Clock, SystemClock},
    /// #     receiver::RequestHead,
    /// #     verify::{Signature, Timestamp},
    /// # };
    /// # let secret = Secret::new("whsec_made_up_for_this_example")?;
    /// # let body = br#"{"id":"evt_1","type":"page.created"}"#;
    /// # let now = Timestamp::at(SystemClock.now())?;
    /// # let signature = Signature::sign(&secret, &now, body).to_header_value();
    /// # let receiver = Receiver::builder().secret(secret).without_deduplication().build()?;
    /// let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    /// let headers = [("x-service-timestamp", now.as_str()), ("x-service-signature", &*signature), ("traceparent", trace)];
    /// let head = RequestHead::new("POST", headers);
    /// let mut received = receiver.check_head(&head)?;
    /// received.push(body.as_slice().into())?;
    /// assert_eq!(receiver.verify(received, &head)?.traceparent(), Some(trace));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn traceparent(&self) -> Option<&str> {
        self.0.traceparent.as_ref().map(Traceparent::as_str)
    }

    /// Parses the whole body as an event whose created rows have the type `R`.
    ///
    /// # Errors
    /// The whole body is not a well-formed event, or does not fit `R`; the error names the path.
    pub fn event<R: DeserializeOwned>(&self) -> Result<Event<R>, EventError> {
        Event::from_verified(&self.0.verified)
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("event_id", &self.event_id())
            .field("event_type", &self.event_type())
            .field("verified", &self.0.verified)
            .field("received_at", &self.0.received_at)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_receiver_has_the_identity_of_another_one_or_of_none() {
        let (first, second) = (ReceiverId::new(), ReceiverId::new());
        assert!(first != second && first != ReceiverId(0) && second != ReceiverId(0));
    }
}
