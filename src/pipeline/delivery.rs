//! A recognised delivery: authentic and fresh, with its id and type. And its parts as a store or a
//! queue keeps them, with the two ways that they take: as the attributes of a message, and back to
//! a [`Delivery`] by the MAC of their bytes.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::request_head::{TRACEPARENT, Traceparent};
use crate::clock::UnixSeconds;
use crate::dedupe::{ClaimValues, EventKey};
use crate::event::{Event, EventError, EventHead, EventType, Signed, row_of};
use crate::lookup::{Keys, RingSearch, Verifier};
use crate::outcome::Refusal;
use crate::scheme::{self, Scheme, SignedHead};
use crate::verify::{KeyRing, Signature, Verified, VerifyError, VerifyErrorKind as Kind};

/// An authentic delivery with its id and type: from the signed body, or where the
/// [scheme](crate::Scheme) has them. Cheap to clone.
///
/// Only [`Receiver::verify`](crate::Receiver::verify) makes one, so a `Delivery` is proof that it
/// is authentic; and, from a store or a queue, the two ways back that [`Verified`] compares.
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

    /// Returns id and type: from the signed body under the default scheme. See [`EventHead`] for
    /// others.
    #[must_use]
    pub fn head(&self) -> &EventHead {
        &self.0.head
    }

    /// Returns the event's id, which was signed.
    #[must_use]
    pub fn event_id(&self) -> &str {
        self.0.head.id.as_str()
    }

    /// Returns the event's type. Under a scheme that [signs no type](crate::Scheme::signs_type) it
    /// is a hint from a header that any carrier can change.
    #[must_use]
    pub fn event_type(&self) -> &str {
        self.0.head.event_type.as_str()
    }

    /// Returns the ids of the data model and of the row that a row event names, without reading the
    /// rest of the row: for a queue or a worker that keeps the events of one row together. `None`
    /// where the body does not name both in readable form; such an event shares its row with no
    /// other event.
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

    /// Returns the key of a message: the row's id, so that a partition or a message group has the
    /// events of a row in the order in which they were published; the event's id, where the event
    /// has no row. Retries can arrive late, so a consumer that needs the newest state compares the
    /// times: see the package `hookgate-order`.
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
            timestamp: verified
                .timestamp()
                .map(ToString::to_string)
                .unwrap_or_default(),
            signature: verified.signature(),
            event_id: self.event_id().to_owned(),
            event_type: self.event_type().to_owned(),
            received_at: self.0.received_at,
            scope: verified.scope().to_owned(),
            key_name: verified.key_name().to_owned(),
            subscription_id: verified.subscription_id().map(str::to_owned),
            pinned_workspace: verified.pinned_workspace().map(str::to_owned),
            traceparent: self.traceparent().map(str::to_owned),
            scheme: verified.scheme_name().to_owned(),
        }
    }

    /// Returns the values of a claim inside a transaction of the program of this name, remembered
    /// for `retain`.
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

    /// Returns the trace that the request belonged to: its header `traceparent`, if the request had
    /// it once, and in the form of W3C Trace Context. An inbox keeps it until the event is done, so
    /// that the worker's span can be [linked](crate::guide::tracing) to the request's.
    ///
    /// # Security
    /// The header is **not signed**, as the sender sends none: a proxy or your own server sets it.
    /// It says nothing about the event. Use it for tracing alone.
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

    /// Parses the whole body as a type of yours, for a delivery of any [scheme](crate::Scheme).
    ///
    /// # Errors
    /// The body is not well-formed JSON, or does not fit `T`; the error names the path.
    pub fn signed<T: DeserializeOwned>(&self) -> Result<Signed<T>, EventError> {
        Signed::new(self.verified(), self.head())
    }

    /// Parses the whole body as an event whose created rows have the type `R`. Only the default
    /// [scheme](crate::Scheme) has such events.
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

/// The attributes of another scheme than the default one, in the order of
/// [`StoredDelivery::names`].
const OF_SCHEMES: [&str; 5] = [
    "hookgate-timestamp",
    "hookgate-signature",
    "hookgate-subscription",
    "hookgate-event-id",
    "hookgate-event-type",
];
const SCHEME: &str = "hookgate-scheme";
const SCOPE: &str = "hookgate-scope";
const KEY: &str = "hookgate-key";
const RECEIVED_AT: &str = "hookgate-received-at";

/// The parts of a [`Delivery`](crate::Delivery) as plain values, for the columns of a table or the
/// attributes of a message.
///
/// [`Delivery::to_stored`](crate::Delivery::to_stored) returns them. There are two ways back:
///
/// | | reads | proves |
/// |---|---|---|
/// | [`Receiver::verify_stored`](crate::Receiver::verify_stored), [`Verifier::verify_stored`](crate::Verifier::verify_stored) | scheme, body, timestamp, signature, subscription, scope; id and type from what is signed (a type that nothing signs is taken as stored); the key's name only to explain an error | authentic, under a key that is live now; neither fresh nor once |
/// | [`dangerous::restore`](crate::dangerous::restore) | all parts | nothing: the store is trusted |
///
/// Both take over `received_at` and `traceparent`, which are not signed.
///
/// # Security
/// The body holds names and e-mail addresses. With the signature, whoever reads the parts can
/// replay the delivery within the window: to another receiver with the same secret, or to one that
/// has forgotten the event. `Debug` shows neither of the two.
#[derive(Clone)]
pub struct StoredDelivery {
    /// The raw bytes that were signed. Store them byte for byte: a body that was parsed and written
    /// again has another signature.
    pub body: Bytes,
    /// The timestamp that was signed, as it was written. Empty for a [scheme](crate::Scheme)
    /// without one.
    pub timestamp: String,
    /// The signature that matched, if it is stored: text by [`Signature::to_header_value`], back by
    /// [`Signature::parse`].
    pub signature: Option<Signature>,
    /// The event's id.
    pub event_id: String,
    /// The event's type.
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
    /// The name of the [scheme](crate::Scheme) by which the delivery was signed.
    pub scheme: String,
}

impl StoredDelivery {
    /// Returns the attributes of a message whose content is the [`body`](Self::body), byte for
    /// byte: headers of Kafka, RabbitMQ or NATS, message attributes of SQS. What the sender's
    /// request has as a header has the same name here, so a checker of requests, in any language,
    /// checks the message too, but for the window of ages.
    ///
    /// | name | value | |
    /// |---|---|---|
    /// | `x-service-timestamp` | the timestamp | signed |
    /// | `x-service-signature` | `sha256=…` | |
    /// | `x-service-webhook-id` | the subscription, where rings are held by subscription | |
    /// | `x-service-event-id`, `x-service-event-type` | as in the body, for filters and traces | |
    /// | `traceparent` | the trace of the request, if it had one | |
    /// | `hookgate-scope`, `hookgate-key` | scope and name of the key that verified it | |
    /// | `hookgate-received-at` | seconds since 1970 | |
    ///
    /// A delivery of another [scheme](crate::Scheme) has `hookgate-scheme`, the scheme's name, and
    /// `hookgate-timestamp`, `-signature`, `-subscription`, `-event-id` and `-event-type` in place
    /// of those that begin with `x-service-`.
    ///
    /// An attribute that is missing, empty, or has a control character is left out: id and type may
    /// be any text, and the body has them.
    #[must_use]
    pub fn attributes(&self) -> Vec<(&'static str, String)> {
        let signature = self.signature.as_ref().map(Signature::to_header_value);
        let is_default = self.scheme == Scheme::workspace().name();
        let [timestamp, sign, subscription, id, kind] = Self::names(is_default);
        let values = [
            (timestamp, Some(self.timestamp.clone())),
            (sign, signature),
            (subscription, self.subscription_id.clone()),
            (id, Some(self.event_id.clone())),
            (kind, Some(self.event_type.clone())),
            (SCHEME, Some(self.scheme.clone()).filter(|_| !is_default)),
            (TRACEPARENT, self.traceparent.clone()),
            (SCOPE, Some(self.scope.clone())),
            (KEY, Some(self.key_name.clone())),
            (RECEIVED_AT, Some(self.received_at.to_string())),
        ];
        let sendable = |text: &String| !text.is_empty() && !text.chars().any(char::is_control);
        let sent = |(name, value): (_, Option<String>)| Some((name, value.filter(sendable)?));
        values.into_iter().filter_map(sent).collect()
    }

    /// Returns the parts of a message, for
    /// [`Receiver::verify_stored`](crate::Receiver::verify_stored), which refuses a message without
    /// the parts that it needs. `attribute` returns the value of a name. The pinned workspace is
    /// not an attribute: that of the keys is checked.
    ///
    /// ```
    /// use std::collections::HashMap;
    /// use hookgate::receiver::StoredDelivery;
    ///
    /// let attributes = HashMap::from([("x-service-timestamp", "1763690000"), ("hookgate-scope", "orders")]);
    /// let body = r#"{"id":"evt_1","type":"page.created"}"#;
    /// let stored = StoredDelivery::from_attributes(body, |name| attributes.get(name).copied());
    /// assert_eq!((stored.timestamp.as_str(), stored.scope.as_str()), ("1763690000", "orders"));
    /// assert!(stored.signature.is_none()); // so it is refused
    /// ```
    #[expect(
        clippy::disallowed_methods,
        reason = "a time that was stored; it is not signed"
    )]
    pub fn from_attributes<T: Into<String>>(
        body: impl Into<Bytes>,
        attribute: impl Fn(&str) -> Option<T>,
    ) -> Self {
        let optional = |name: &str| attribute(name).map(T::into);
        let text = |name: &str| optional(name).unwrap_or_default();
        let scheme = optional(SCHEME).unwrap_or_else(|| Scheme::workspace().name().to_owned());
        let is_default = scheme == Scheme::workspace().name();
        let [timestamp, signature, subscription, id, kind] = Self::names(is_default);
        Self {
            body: body.into(),
            timestamp: text(timestamp),
            signature: Signature::parse(text(signature).as_bytes()).ok(),
            event_id: text(id),
            event_type: text(kind),
            received_at: UnixSeconds::new(text(RECEIVED_AT).parse().unwrap_or_default()),
            scope: text(SCOPE),
            key_name: text(KEY),
            subscription_id: optional(subscription),
            pinned_workspace: None,
            traceparent: optional(TRACEPARENT),
            scheme,
        }
    }

    fn names(is_default: bool) -> [&'static str; 5] {
        match is_default {
            true => scheme::ATTRIBUTES,
            false => OF_SCHEMES,
        }
    }

    /// Verifies it with the keys of its subscription, which may have to be looked up.
    pub(crate) async fn verify(&self, verifier: &Verifier) -> Result<Delivery, Refusal> {
        let keys = verifier.keys();
        let ring = match keys.find(self.subscription())? {
            RingSearch::Found(ring) => match self.verified_by(ring, keys.scheme()) {
                Err(refusal) if self.may_be_older_than_its_ring(&refusal, keys) => {
                    match keys.find(self.subscription())? {
                        RingSearch::Found(ring) => ring,
                        RingSearch::Pending(waiting) => waiting.await?,
                    }
                }
                verified => return verified,
            },
            RingSearch::Pending(waiting) => waiting.await?,
        };
        self.verified_by(ring, keys.scheme())
    }

    /// Whether a ring that was looked up may have been replaced since, so that it was forgotten
    /// here: another process has accepted the delivery, the sender has its 2xx, and a retry will
    /// not come.
    fn may_be_older_than_its_ring(&self, refusal: &Refusal, keys: &Keys) -> bool {
        let id = self.subscription_id.as_deref();
        refusal.verify_error().is_some() && id.is_some_and(|id| keys.look_up_again(id))
    }

    fn subscription(&self) -> Option<&[u8]> {
        self.subscription_id.as_deref().map(str::as_bytes)
    }

    fn verified_by(&self, ring: Arc<KeyRing>, scheme: &Scheme) -> Result<Delivery, Refusal> {
        let verified = self.authentic(ring, scheme)?;
        match EventHead::from_verified(&verified) {
            Ok(mut head) => {
                // A type that was not signed is that of its header, which was stored.
                if !scheme.signs_type()
                    && let Ok(event_type) = EventType::parse(&self.event_type)
                {
                    head.event_type = event_type;
                }
                Ok(Delivery::from_stored(verified, head, self))
            }
            Err(error) => Err(Refusal::from_event_head(error, verified)),
        }
    }

    /// Computes the MAC again.
    fn authentic(&self, ring: Arc<KeyRing>, scheme: &Scheme) -> Result<Verified, VerifyError> {
        if scheme.name() != self.scheme {
            return Err(VerifyError::new(Kind::SchemeMismatch));
        }
        let signature = self.signature.as_ref();
        let missing = Kind::HeaderMissing(scheme.signature_header());
        let signature = signature.ok_or(VerifyError::new(missing))?;
        let head = SignedHead::of_stored(scheme, &self.timestamp, &self.event_id)?;
        // An unknown subscription has a decoy, and the error of that.
        if !ring.is_decoy && ring.scope() != self.scope {
            return Err(VerifyError::new(Kind::ScopeMismatch));
        }
        let has_key = ring.key_names().any(|name| name == self.key_name);
        let verified = ring.verify(head, &signature.alone(), self.body.clone());
        verified.map_err(|error| match error.kind() {
            Kind::SignatureMismatch if !has_key => VerifyError::new(Kind::KeyRemoved),
            _ => error,
        })
    }
}

impl Verifier {
    /// Verifies a delivery that a store or a queue has kept:
    /// [`Receiver::verify_stored`](crate::Receiver::verify_stored) without a receiver, which has an
    /// example. It never waits: keys of a provider are used where they are in the cache.
    ///
    /// # Errors
    /// As there, and [`NotLookedUp`](crate::outcome::RefusalKind::NotLookedUp) in place of the
    /// errors of a look-up.
    ///
    /// # Security
    /// As there: authentic, and neither fresh nor once.
    pub fn verify_stored(&self, stored: &StoredDelivery) -> Result<Delivery, Refusal> {
        let ring = self.keys().select(stored.subscription())?;
        stored.verified_by(ring, self.keys().scheme())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_receiver_has_the_identity_of_another_one_or_of_none() {
        let (first, second) = (ReceiverId::new(), ReceiverId::new());
        assert!(first != second && first != ReceiverId(0) && second != ReceiverId(0));
    }
}
