//! Verification allocates nothing, whatever its outcome. A binary of its own: the allocator counts for all of it.

#![allow(clippy::unwrap_used)] // A test stops at what it did not expect.
#![allow(unsafe_code)] // An allocator can't be written without.

use hookgate::{
    DeliveryHeaders, KeyRing, Keys, Secret, Signature, Timestamp, UnixSeconds, Verifier,
    VerifyErrorKind,
};

#[path = "../benches/support/counting.rs"]
mod counting;

const NOW: UnixSeconds = UnixSeconds::new(1_763_690_000);
const NAMES: [&str; 4] = ["first", "second", "third", "fourth"];

#[test]
fn one_shot_verification_allocates_nothing() {
    for keys in [1, 2, 4] {
        let verifier = Verifier::new(ring(keys));
        for size in [0, 300, 64 << 10] {
            let delivery = Delivery::new(NAMES[keys - 1], size);
            let head = delivery.head();
            let verified = free_of_allocations(|| verifier.verify(&head, &delivery.body, NOW));
            assert_eq!(verified.unwrap().key_name(), NAMES[keys - 1]);

            let forged = Delivery::new("nobody's", size);
            let head = forged.head();
            let refused = free_of_allocations(|| verifier.verify(&head, &forged.body, NOW));
            assert_eq!(
                refused.unwrap_err().kind(),
                VerifyErrorKind::SignatureMismatch
            );
        }
    }
}

#[test]
fn verification_in_pieces_allocates_nothing() {
    for keys in [1, 2, 4] {
        let verifier = Verifier::new(ring(keys));
        for (name, good) in [(NAMES[keys - 1], true), ("nobody's", false)] {
            let delivery = Delivery::new(name, 10_000);
            let head = delivery.head();
            let result = free_of_allocations(|| {
                let mut check = verifier.begin(&head, NOW).unwrap();
                for chunk in delivery.body.chunks(1_460) {
                    check.update(chunk);
                }
                check.finish()
            });
            assert_eq!(result.is_ok(), good);
        }
    }
}

#[test]
fn a_subscriptions_ring_is_found_or_missed_without_an_allocation() {
    let keys = Keys::by_subscription([("wh_1", ring(1)), ("wh_2", KeyRing::new(secret("other")))]);
    let verifier = Verifier::new(keys.unwrap());
    let delivery = Delivery::new("first", 300);
    for (id, outcome) in [
        (Some("wh_1"), None),
        (Some("wh_2"), Some(VerifyErrorKind::SignatureMismatch)),
        (Some("wh_3"), Some(VerifyErrorKind::UnknownSubscription)),
        (None, Some(VerifyErrorKind::Header)),
    ] {
        let id = id.map(|id| ("x-service-webhook-id", id));
        let head = DeliveryHeaders::from_pairs(delivery.pairs().into_iter().chain(id)).unwrap();
        let result = free_of_allocations(|| verifier.verify(&head, &delivery.body, NOW));
        assert_eq!(result.err().map(|error| error.kind()), outcome);
    }
}

#[test]
fn refusals_by_time_allocate_nothing() {
    let verifier = Verifier::new(ring(1));
    let delivery = Delivery::new("first", 300);
    let head = delivery.head();
    for now in [i64::MIN, NOW.as_i64() - 301, NOW.as_i64() + 301, i64::MAX] {
        let now = UnixSeconds::new(now);
        assert!(free_of_allocations(|| verifier.begin(&head, now).is_err()));
        assert!(free_of_allocations(|| verifier
            .verify(&head, &delivery.body, now)
            .is_err()));
    }
}

#[test]
fn headers_are_read_and_refused_without_an_allocation() {
    let delivery = Delivery::new("first", 300);
    let [signature, timestamp] = delivery.pairs();
    let upper = ("X-Service-Timestamp", timestamp.1);
    assert!(free_of_allocations(|| DeliveryHeaders::from_pairs([
        signature, upper
    ])
    .is_ok()));
    for pairs in [
        [signature, signature],
        [timestamp, timestamp],
        [("x-service-signature", "sha256="), timestamp],
        [signature, ("x-service-timestamp", "+1")],
        [signature, ("accept", "*/*")],
    ] {
        assert!(free_of_allocations(
            || DeliveryHeaders::from_pairs(pairs).is_err()
        ));
    }
}

/// What the layer adds to a route, counted on one thread. The numbers are ceilings: lower one when a change earns it.
#[cfg(feature = "axum")]
#[test]
fn a_delivery_through_a_route_stays_within_its_allocations() {
    use axum::{Router, body::Body, body::Bytes, routing::post};
    use hookgate::{Clock, Event, LocalStore, ManualClock, Receiver};
    use http::{Request, StatusCode};
    use tower::ServiceExt;

    const VERIFIED: usize = 17;
    const TYPED_AND_CLAIMED: usize = 26;
    const REFUSED: usize = 11;

    #[derive(serde::Deserialize)]
    struct Row {
        total: f64,
    }

    let body = br#"{"id":"evt_1","type":"row.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","properties":{"total":12.5},"createdBy":{"id":"usr_1","name":"Ada"}}}"#;
    let request = |key: &str| {
        let timestamp = Timestamp::at(NOW).unwrap();
        let signature = Signature::sign(&secret(key), &timestamp, body).to_header_value();
        Request::post("/")
            .header("x-service-timestamp", timestamp.as_str())
            .header("x-service-signature", signature)
            .body(Body::from(body.as_slice()))
            .unwrap()
    };
    let clock = ManualClock::at(NOW);
    let _ = clock.now();
    let receiver = || {
        Receiver::builder()
            .secret(secret("first"))
            .clock(clock.clone())
    };
    let plain = post(async |_: Bytes| StatusCode::NO_CONTENT);
    let typed = post(async |event: Event<Row>| match event.data {
        hookgate::EventData::RowCreated(row) if row.properties.total == 12.5 => {
            StatusCode::NO_CONTENT
        }
        _ => StatusCode::BAD_REQUEST,
    });
    let verifying = receiver().without_deduplication().build().unwrap();
    let claiming = receiver().store(LocalStore::default()).build().unwrap();

    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let count = |app: Router, key: &str, status: u16| {
        runtime.block_on(async {
            // Once before it counts: maps and the like allocate their first room.
            let _ = app
                .clone()
                .oneshot(Request::get("/").body(Body::empty()).unwrap())
                .await;
            let request = request(key);
            let before = allocations();
            let answer = app.oneshot(request).await.unwrap();
            assert_eq!(answer.status(), status);
            allocations() - before
        })
    };
    let unguarded = count(Router::new().route("/", plain.clone()), "first", 204);
    let added = |app, key, status| count(app, key, status).saturating_sub(unguarded);
    let verified = added(
        Router::new().route("/", plain.clone().layer(verifying.layer())),
        "first",
        204,
    );
    let claimed = added(
        Router::new().route("/", typed.layer(claiming.layer())),
        "first",
        204,
    );
    let refused = added(
        Router::new().route("/", plain.layer(verifying.layer())),
        "second",
        401,
    );
    println!(
        "added to {unguarded}: verified {verified}, typed and claimed {claimed}, refused {refused}"
    );
    assert!(verified <= VERIFIED, "verified: {verified}");
    assert!(claimed <= TYPED_AND_CLAIMED, "typed and claimed: {claimed}");
    assert!(refused <= REFUSED, "refused: {refused}");
}

#[test]
fn the_count_sees_an_allocation() {
    let before = allocations();
    drop(std::hint::black_box(vec![0_u8; 100]));
    assert_eq!(allocations(), before + 1);
}

struct Delivery {
    timestamp: String,
    signature: String,
    body: Vec<u8>,
}

impl Delivery {
    fn new(key: &str, size: usize) -> Self {
        let (timestamp, body) = (Timestamp::at(NOW).unwrap(), vec![b'x'; size]);
        Self {
            signature: Signature::sign(&secret(key), &timestamp, &body).to_header_value(),
            timestamp: timestamp.to_string(),
            body,
        }
    }

    fn pairs(&self) -> [(&'static str, &str); 2] {
        [
            ("x-service-signature", &self.signature),
            ("x-service-timestamp", &self.timestamp),
        ]
    }

    fn head(&self) -> DeliveryHeaders<'_> {
        DeliveryHeaders::from_pairs(self.pairs()).unwrap()
    }
}

fn ring(keys: usize) -> KeyRing {
    let first = KeyRing::named(NAMES[0], secret(NAMES[0])).unwrap();
    let more = NAMES[1..keys].iter();
    more.fold(first, |ring, name| {
        ring.with_key(name, secret(name)).unwrap()
    })
}

fn secret(name: &str) -> Secret {
    Secret::new(&format!("whsec_made_up_for_the_key_{name}")).unwrap()
}

fn free_of_allocations<T>(run: impl FnOnce() -> T) -> T {
    let before = allocations();
    let result = run();
    assert_eq!(allocations() - before, 0, "allocated");
    result
}

fn allocations() -> usize {
    counting::allocated().times
}
