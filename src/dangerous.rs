//! A way to a [`Delivery`] that checks nothing, for storage that only this program writes.
//!
//! ```
//! use hookgate::{dangerous, receiver::StoredDelivery};
//!
//! // What `Delivery::to_stored` gave, read from a table that this program alone writes. Its key may have left the ring.
//! let row = [("x-service-event-id", "evt_1"), ("x-service-event-type", "page.created"), ("x-service-timestamp", "1763690000")];
//! let stored = StoredDelivery::from_attributes(r#"{"id":"evt_1","type":"page.created"}"#, |name| {
//!     row.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
//! });
//! assert_eq!(dangerous::restore(&stored)?.event_id(), "evt_1");
//! # Ok::<(), hookgate::verify::Malformed>(())
//! ```
//!
//! Where the key is still in the ring, [`Receiver::verify_stored`](crate::Receiver::verify_stored)
//! checks the signature again.

use crate::event::{EventHead, EventId, EventType};
use crate::pipeline::{Delivery, StoredDelivery};
use crate::scheme::{SignedHead, Timestamp};
use crate::verify::{KeyRing, Malformed, Verified};

/// Makes a delivery again from the parts that [`Delivery::to_stored`] has returned, **without any
/// check of its signature**. An inbox does this with its entries.
///
/// ```
/// use hookgate::{clock::UnixSeconds, dangerous, receiver::StoredDelivery};
///
/// // The row of a table that only this program may write.
/// let stored = StoredDelivery {
///     body: br#"{"id":"evt_1","type":"page.created"}"#.as_slice().into(),
///     timestamp: "1763690000".into(),
///     signature: None,
///     event_id: "evt_1".into(),
///     event_type: "page.created".into(),
///     received_at: UnixSeconds::new(1_763_690_001),
///     scope: "orders".into(),
///     key_name: "primary".into(),
///     subscription_id: Some("wh_1".into()),
///     pinned_workspace: None,
///     traceparent: None,
///     scheme: "workspace".into(),
/// };
/// let delivery = dangerous::restore(&stored)?;
/// assert_eq!((delivery.event_id(), delivery.verified().scope()), ("evt_1", "orders"));
///
/// let changed = StoredDelivery { timestamp: "yesterday".into(), ..stored };
/// assert!(dangerous::restore(&changed).is_err());
/// # Ok::<(), hookgate::verify::Malformed>(())
/// ```
///
/// # Security
/// **It proves nothing.** The result passes for an authentic delivery everywhere. A person who can
/// write to the store can forge events of every subscription. A fault in the program that fills the
/// parts from another source can do so too. Call it only for a store that you trust as you trust
/// the program: only this program writes to it, and it writes only what a receiver has accepted.
///
/// # Errors
/// Id, type or timestamp have a form that no delivery has: the stored parts were changed or
/// damaged. A traceparent of another form is left out.
pub fn restore(stored: &StoredDelivery) -> Result<Delivery, Malformed> {
    let event = EventHead {
        id: EventId::parse(&stored.event_id)?,
        event_type: EventType::parse(&stored.event_type)?,
    };
    let ring = KeyRing::from_stored(
        &stored.scope,
        &stored.key_name,
        stored.subscription_id.as_deref(),
        stored.pinned_workspace.as_deref(),
        &stored.scheme,
    );
    let head = match ring.scheme() {
        Some(scheme) => SignedHead::of_stored(scheme, &stored.timestamp, &stored.event_id)
            .map_err(|_| Malformed)?,
        // A row of your own, of which only the name was stored.
        None => SignedHead {
            parts: &[],
            timestamp: match stored.timestamp.as_str() {
                "" => None,
                text => Some(Timestamp::parse(text.as_bytes())?),
            },
            id: None,
        },
    };
    let verified = Verified::restored(head, stored.signature, ring, stored.body.clone());
    Ok(Delivery::from_stored(verified, event, stored))
}
