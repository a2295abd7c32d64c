//! Deliveries that come back from a store or a queue.

use hookgate::dedupe::body_digest;
use hookgate::{
    Delivery, Event, KeyRing, Keys, Malformed, Receiver, RequestHead, Secret, StoredDelivery,
    UnixSeconds, dangerous,
};

use crate::support::*;

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const OLD: &str = "whsec_made_up_for_the_old_key";

fn key(text: &str) -> Secret {
    Secret::new(text).unwrap()
}

/// The ring of `wh_1`, with a new key and one that is being retired.
fn ring() -> KeyRing {
    let ring = KeyRing::named("new", key(SECRET)).unwrap();
    let ring = ring.with_key("old", key(OLD)).unwrap();
    ring.with_workspace("ws_1").unwrap()
}

fn with(keys: Keys) -> Receiver {
    let builder = Receiver::builder().keys(keys).clock(manual());
    builder.without_deduplication().build().unwrap()
}

fn by_subscription(ring: KeyRing) -> Receiver {
    with(Keys::by_subscription([("wh_1", ring)]).unwrap())
}

/// A delivery that the receiver has received, signed with this secret.
fn received(receiver: &Receiver, secret: &str) -> Delivery {
    let sent = Sent::signed(secret, NOW, event("evt_1"))
        .with("X-Service-Webhook-Id", "wh_1")
        .with("traceparent", TRACE);
    let headers = sent.headers.iter().map(|(name, value)| (name, value));
    let head = RequestHead::new("POST", headers);
    let mut intake = receiver.open(&head).unwrap();
    intake.push(sent.body.clone().into()).unwrap();
    receiver.recognise(&mut intake, &head).unwrap()
}

fn stored() -> StoredDelivery {
    received(&by_subscription(ring()), OLD).to_stored()
}

#[test]
fn a_delivery_that_is_restored_is_the_one_that_was_received() {
    let delivery = received(&by_subscription(ring()), OLD);
    let stored = delivery.to_stored();
    let restored = dangerous::restore(&stored).unwrap();
    let [one, other] = [&delivery, &restored].map(|delivery| {
        let proof = delivery.verified().proof();
        (
            (delivery.body(), delivery.head(), delivery.key()),
            (delivery.received_at(), delivery.traceparent()),
            (proof.timestamp(), proof.key_name(), proof.scope()),
            (proof.subscription_id(), proof.pinned_workspace()),
            proof.signature().unwrap().to_header_value(),
        )
    });
    assert_eq!(one, other);
    assert_eq!(other.1, (UnixSeconds::new(NOW), Some(TRACE)));
    assert_eq!(other.2.1, "old");
    assert_eq!(other.3, (Some("wh_1"), Some("ws_1")));
    assert_eq!(other.4, sign(OLD, &stored.timestamp, &stored.body));
    assert_eq!(restored.row(), Some(("dm_1".into(), "row_1".into())));
    assert_eq!(body_digest(restored.body()), body_digest(&stored.body));
    let event: Event = restored.event().unwrap();
    assert_eq!(event.id, "evt_1");
}

#[test]
fn parts_in_a_form_that_no_delivery_has_are_not_restored() {
    let restore = |change: fn(&mut StoredDelivery)| {
        let mut stored = stored();
        change(&mut stored);
        dangerous::restore(&stored).map(|delivery| delivery.to_stored())
    };
    let changes: [fn(&mut StoredDelivery); 3] = [
        |stored| stored.timestamp = "+1".into(),
        |stored| stored.event_id = "evt\n1".into(),
        |stored| stored.event_type = String::new(),
    ];
    for change in changes {
        assert_eq!(restore(change).err(), Some(Malformed));
    }
    let untraced = restore(|stored| stored.traceparent = Some("a trace".into())).unwrap();
    assert_eq!(untraced.traceparent, None);
    let unsigned = restore(|stored| stored.signature = None).unwrap();
    assert!(unsigned.signature.is_none());
}

#[test]
fn stored_parts_are_shown_without_body_and_signature() {
    let stored = stored();
    let shown = format!("{stored:?}");
    assert!(shown.contains("evt_1") && shown.contains("body_bytes"));
    let signature = sign(OLD, &stored.timestamp, &stored.body);
    assert!(!shown.contains("Ada") && !shown.contains(&signature["sha256=".len()..]));
}
