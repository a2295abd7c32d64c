//! Deliveries that come back from a store or a queue.

use std::time::Duration;

use hookgate::internal::body_digest;
use hookgate::{
    Delivery, Event, KeyRing, MemoryStore, Receiver, Refusal, Secret, Verifier, block_on,
    clock::UnixSeconds,
    dangerous,
    lookup::Keys,
    receiver::{Admission, StoredDelivery},
    verify::{Malformed, VerifyErrorKind},
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
    let sent = Sent::signed(secret, NOW, event("evt_1"));
    let sent = sent.with("X-Service-Webhook-Id", "wh_1");
    sent.with("traceparent", TRACE).delivered_to(receiver)
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
        let proof = delivery.verified();
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

const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);

fn kind(refused: Result<Delivery, Refusal>) -> Result<(), Option<VerifyErrorKind>> {
    let kind = |refusal: Refusal| {
        // None of these errors ends by itself.
        assert_eq!(refusal.retry_after(), None);
        refusal.verify_error().map(|error| error.kind())
    };
    refused.map(drop).map_err(kind)
}

#[test]
fn stored_bytes_are_authentic_after_a_year_and_are_claimed_as_usual() {
    let clock = manual();
    let keys = Keys::by_subscription([("wh_1", ring())]).unwrap();
    let builder = Receiver::builder().keys(keys).clock(clock.clone());
    let receiver = builder.store(MemoryStore::default()).build().unwrap();
    let stored = received(&receiver, OLD).to_stored();
    clock.advance(YEAR);

    let delivery = block_on(receiver.verify_stored(&stored)).unwrap();
    let event: Event = delivery.event().unwrap();
    assert_eq!((event.id.as_str(), delivery.event_id()), ("evt_1", "evt_1"));
    assert_eq!(delivery.verified().key_name(), "old");
    assert_eq!(delivery.received_at(), UnixSeconds::new(NOW));
    assert_eq!(delivery.traceparent(), Some(TRACE));
    let Ok(Admission::Fresh(claim)) = block_on(receiver.admit(&delivery)) else {
        panic!("not claimed");
    };
    block_on(claim.commit()).unwrap();
    let again = block_on(receiver.verify_stored(&stored)).unwrap();
    let again = block_on(receiver.admit(&again));
    assert!(matches!(again, Ok(Admission::Replayed { same_body: true })));
}

#[test]
fn each_change_of_stored_parts_has_an_error_of_its_own() {
    let receiver = by_subscription(ring());
    let verifier = Verifier::new(receiver.keys().clone());
    let verify = |change: fn(&mut StoredDelivery)| {
        let mut stored = stored();
        change(&mut stored);
        let at_once = kind(verifier.verify_stored(&stored));
        assert_eq!(kind(block_on(receiver.verify_stored(&stored))), at_once);
        at_once
    };
    use VerifyErrorKind as Kind;
    #[rustfmt::skip] // a row a case
    let changes: [(fn(&mut StoredDelivery), _); 6] = [
        (|stored| stored.body = event("evt_2").into(), Kind::SignatureMismatch),
        (|stored| stored.scope = "wh_2".into(), Kind::ScopeMismatch),
        (|stored| stored.subscription_id = Some("wh_2".into()), Kind::UnknownSubscription),
        (|stored| stored.timestamp = "+1".into(), Kind::HeaderMalformed("x-service-timestamp")),
        (|stored| stored.timestamp = (NOW + 1).to_string(), Kind::SignatureMismatch),
        (|stored| stored.signature = None, Kind::HeaderMissing("x-service-signature")),
    ];
    for (change, expected) in changes {
        assert_eq!(verify(change), Err(Some(expected)));
    }
    // What the parts say beside the signed bytes decides nothing.
    let beside_the_signed_bytes = verify(|stored| {
        stored.event_id = "evt_2".into();
        stored.event_type = "page.created".into();
        stored.key_name = "another".into();
        stored.pinned_workspace = None;
    });
    assert_eq!(beside_the_signed_bytes, Ok(()));
}

#[test]
fn a_key_that_has_left_the_ring_refuses_its_backlog_and_says_so() {
    let stored = stored();
    let new = || KeyRing::named("new", key(SECRET)).unwrap();
    let refused = block_on(by_subscription(new()).verify_stored(&stored));
    let refusal = refused.as_ref().unwrap_err();
    let said = refusal.verify_error().unwrap().to_string();
    assert!(said.contains("is no longer in its ring"), "{said}");
    assert_eq!(kind(refused), Err(Some(VerifyErrorKind::KeyRemoved)));
    let elsewhere = new().with_key("old", key(OLD)).unwrap();
    let elsewhere = by_subscription(elsewhere.with_workspace("ws_2").unwrap());
    let refused = kind(block_on(elsewhere.verify_stored(&stored)));
    assert_eq!(refused, Err(Some(VerifyErrorKind::WorkspaceMismatch)));
}

#[cfg(feature = "lookup")]
mod looked_up {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use hookgate::{lookup::SubscriptionId, outcome::RefusalKind};

    use super::*;

    /// Another process has accepted the delivery under it, and the sender sends it no more.
    #[test]
    fn a_remembered_ring_that_refuses_stored_bytes_is_looked_up_once_more() {
        let is_there = Arc::new(AtomicBool::new(false));
        let database = Arc::clone(&is_there);
        let builder = Receiver::builder().provider(move |_: SubscriptionId| {
            let found = database.load(Ordering::SeqCst).then(ring);
            async { Ok::<_, String>(found) }
        });
        let receiver = builder.without_deduplication().build().unwrap();
        let stored = stored();
        let verified = || kind(block_on(receiver.verify_stored(&stored)));
        assert_eq!(verified(), Err(Some(VerifyErrorKind::UnknownSubscription)));
        is_there.store(true, Ordering::SeqCst);
        assert_eq!(verified(), Ok(()));
    }

    #[test]
    fn the_keys_of_stored_bytes_are_looked_up() {
        let builder = Receiver::builder().provider(async |id: SubscriptionId| match id.as_str() {
            "wh_1" => Ok(Some(ring())),
            "wh_2" => Err("made-up outage"),
            _ => Ok(None),
        });
        let receiver = builder.without_deduplication().build().unwrap();
        let mut stored = stored();
        let at_once = Verifier::new(receiver.keys().clone());
        let not_looked_up = at_once.verify_stored(&stored).unwrap_err();
        assert_eq!(not_looked_up.kind(), RefusalKind::NotLookedUp);
        assert!(block_on(receiver.verify_stored(&stored)).is_ok());
        assert!(at_once.verify_stored(&stored).is_ok());
        stored.subscription_id = Some("wh_2".into());
        let outage = block_on(receiver.verify_stored(&stored)).unwrap_err();
        assert_eq!(outage.kind(), RefusalKind::SecretsUnavailable);
        assert!(outage.retry_after().is_some());
        stored.subscription_id = Some("wh_3".into());
        let refused = kind(block_on(receiver.verify_stored(&stored)));
        assert_eq!(refused, Err(Some(VerifyErrorKind::UnknownSubscription)));
    }
}
