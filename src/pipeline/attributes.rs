//! A delivery as the message of a queue: the body, and the other parts as attributes.

use bytes::Bytes;

use super::stored_delivery::StoredDelivery;
use super::traceparent::TRACEPARENT;
use crate::clock::UnixSeconds;
use crate::verify::{EVENT_ID, EVENT_TYPE, SIGNATURE, Signature, TIMESTAMP, WEBHOOK_ID};

const SCOPE: &str = "hookgate-scope";
const KEY: &str = "hookgate-key";
const RECEIVED_AT: &str = "hookgate-received-at";

impl StoredDelivery {
    /// Returns the attributes of a message whose content is the [`body`](Self::body), byte for byte: headers of Kafka, RabbitMQ or NATS,
    /// message attributes of SQS. What the sender's request has as a header has the same name here, so a checker of requests, in any
    /// language, checks the message too, but for the window of ages.
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
    /// An attribute that is missing, empty, or has a control character is left out: id and type may be any text, and the body has them.
    #[must_use]
    pub fn attributes(&self) -> Vec<(&'static str, String)> {
        let signature = self.signature.as_ref().map(Signature::to_header_value);
        let values = [
            (TIMESTAMP, Some(self.timestamp.clone())),
            (SIGNATURE, signature),
            (WEBHOOK_ID, self.subscription_id.clone()),
            (EVENT_ID, Some(self.event_id.clone())),
            (EVENT_TYPE, Some(self.event_type.clone())),
            (TRACEPARENT, self.traceparent.clone()),
            (SCOPE, Some(self.scope.clone())),
            (KEY, Some(self.key_name.clone())),
            (RECEIVED_AT, Some(self.received_at.to_string())),
        ];
        let sendable = |text: &String| !text.is_empty() && !text.chars().any(char::is_control);
        let sent = |(name, value): (_, Option<String>)| Some((name, value.filter(sendable)?));
        values.into_iter().filter_map(sent).collect()
    }

    /// Returns the parts of a message, for [`Receiver::verify_stored`](crate::Receiver::verify_stored), which refuses a message without
    /// the parts that it needs. `attribute` returns the value of a name. The pinned workspace is not an attribute: that of the keys is
    /// checked.
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
        Self {
            body: body.into(),
            timestamp: text(TIMESTAMP),
            signature: Signature::parse(text(SIGNATURE).as_bytes()).ok(),
            event_id: text(EVENT_ID),
            event_type: text(EVENT_TYPE),
            received_at: UnixSeconds::new(text(RECEIVED_AT).parse().unwrap_or_default()),
            scope: text(SCOPE),
            key_name: text(KEY),
            subscription_id: optional(WEBHOOK_ID),
            pinned_workspace: None,
            traceparent: optional(TRACEPARENT),
        }
    }
}
