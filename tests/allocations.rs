//! Verification allocates nothing, whatever its outcome. A binary of its own: the allocator counts
//! for all of it.

#![allow(clippy::unwrap_used)] // a failed expectation must stop the test
#![allow(unsafe_code)] // An allocator can't be written without.

use hookgate::{
    KeyRing, Secret, Verifier,
    clock::UnixSeconds,
    lookup::Keys,
    verify::{DeliveryHeaders, Signature, Timestamp, VerifyErrorKind},
};

#[cfg(any(feature = "axum", feature = "lookup"))]
use hookgate::{Receiver, ReceiverBuilder, clock::ManualClock};

#[path = "../benches/support/counting.rs"]
mod counting;
#[cfg(feature = "axum")]
#[path = "../benches/support/delivery.rs"]
mod delivery;

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
            let kind = refused.unwrap_err().kind();
            assert_eq!(kind, VerifyErrorKind::SignatureMismatch);
        }
    }
}

#[test]
fn a_subscriptions_ring_is_found_or_missed_without_an_allocation() {
    let keys = Keys::by_subscription([("wh_1", ring(1)), ("wh_2", KeyRing::new(secret("other")))]);
    let verifier = Verifier::new(keys.unwrap());
    let delivery = Delivery::new("first", 300);
    let missing = VerifyErrorKind::HeaderMissing("x-service-webhook-id");
    for (id, outcome) in [
        (Some("wh_1"), None),
        (Some("wh_2"), Some(VerifyErrorKind::SignatureMismatch)),
        (Some("wh_3"), Some(VerifyErrorKind::UnknownSubscription)),
        (None, Some(missing)),
    ] {
        let id = id.map(|id| ("x-service-webhook-id", id));
        let head = DeliveryHeaders::from_pairs(delivery.pairs().into_iter().chain(id)).unwrap();
        let result = free_of_allocations(|| verifier.verify(&head, &delivery.body, NOW));
        assert_eq!(result.err().map(|error| error.kind()), outcome);
    }
}

#[cfg(feature = "lookup")]
mod looked_up_rings {
    use hookgate::{block_on, receiver::RequestHead};

    use super::*;

    /// A receiver whose provider knows that many subscriptions, `wh_0` and on, and a function that
    /// looks one up.
    fn looked_up(known: usize) -> (Receiver, impl Fn(&str)) {
        let provider = move |id: hookgate::lookup::SubscriptionId| async move {
            let number = id.as_str()[3..].parse::<usize>();
            let ring = number.is_ok_and(|number| number < known).then(|| ring(1));
            Ok::<_, std::io::Error>(ring)
        };
        let receiver = forgetful(Receiver::builder().provider(provider));
        let (delivery, opening) = (Delivery::new("first", 300), receiver.clone());
        let look_up = move |id: &str| {
            let id = [("x-service-webhook-id", id)];
            let head = RequestHead::new("POST", delivery.pairs().into_iter().chain(id));
            assert!(block_on(opening.check_head_async(&head)).is_ok());
        };
        (receiver, look_up)
    }

    #[test]
    fn a_ring_that_was_looked_up_is_found_again_without_an_allocation() {
        let (receiver, look_up) = looked_up(1);
        look_up("wh_0");
        look_up("wh_1");
        let verifier = Verifier::new(receiver.keys().clone());
        let delivery = Delivery::new("first", 300);
        for (id, outcome) in [
            ("wh_0", None),
            ("wh_1", Some(VerifyErrorKind::UnknownSubscription)),
            ("wh_2", Some(VerifyErrorKind::NotLookedUp)),
            ("no such form", Some(VerifyErrorKind::UnknownSubscription)),
        ] {
            let id = [("x-service-webhook-id", id)];
            let head = DeliveryHeaders::from_pairs(delivery.pairs().into_iter().chain(id)).unwrap();
            // One of several tries, since moka's housekeeping is part of some.
            let tries = (0..5).map(|_| {
                let before = allocations();
                let result = verifier.verify(&head, &delivery.body, NOW);
                let after = allocations();
                assert_eq!(result.err().map(|error| error.kind()), outcome);
                after - before
            });
            assert_eq!(tries.min(), Some(0));
        }
    }

    #[test]
    fn looked_up_rings_and_floods_of_unknown_ids_take_the_memory_that_the_docs_say() {
        const RINGS: usize = 16_384;
        let (receiver, look_up) = looked_up(2 * RINGS);
        let empty = live_bytes();
        for number in 0..RINGS {
            look_up(&format!("wh_{number}"));
        }
        let ring = (live_bytes() - empty) as f64 / RINGS as f64;
        let full = live_bytes();
        let flood = |range: std::ops::Range<usize>| {
            for number in range {
                look_up(&format!("wh_{number:064}"));
            }
            let _ = receiver.keys().lookup_stats(); // with moka's housekeeping
            live_bytes() - full
        };
        let first = flood(1_000_000..1_060_000); // the map has its final size by then
        let last = flood(1_060_000..1_120_000);
        let stats = receiver.keys().lookup_stats().unwrap();
        let unknown = first as f64 / stats.unknown as f64;
        println!("a ring {ring:.0} B, an unknown id {unknown:.0} B");
        assert_eq!((stats.found, stats.evicted), (RINGS, 0));
        for number in RINGS..RINGS + 100 {
            look_up(&format!("wh_{number}"));
        }
        let stats = receiver.keys().lookup_stats().unwrap();
        assert_eq!((stats.found, stats.evicted), (RINGS, 100));
        assert!(ring <= 704.0, "{ring}");
        assert!(first <= 4_096 * 400, "{first}");
        assert!(last <= first + first / 20, "{last} after {first}");
    }
}

#[test]
fn refusals_by_time_allocate_nothing() {
    let verifier = Verifier::new(ring(1));
    let delivery = Delivery::new("first", 300);
    let head = delivery.head();
    for now in [i64::MIN, NOW.as_i64() - 301, NOW.as_i64() + 301, i64::MAX] {
        let now = UnixSeconds::new(now);
        let begun = free_of_allocations(|| verifier.begin(&head, now, 300).is_err());
        let body = &delivery.body;
        let whole = free_of_allocations(|| verifier.verify(&head, body, now).is_err());
        assert!(begun && whole, "{now:?}");
    }
}

#[test]
fn headers_are_read_and_refused_without_an_allocation() {
    let delivery = Delivery::new("first", 300);
    let [signature, timestamp] = delivery.pairs();
    let upper = ("X-Service-Timestamp", timestamp.1);
    let is_read = |pairs: [(&str, &str); 2]| {
        free_of_allocations(|| DeliveryHeaders::from_pairs(pairs).is_ok())
    };
    assert!(is_read([signature, upper]));
    for pairs in [
        [signature, signature],
        [timestamp, timestamp],
        [("x-service-signature", "sha256="), timestamp],
        [signature, ("x-service-timestamp", "+1")],
        [signature, ("accept", "*/*")],
    ] {
        assert!(!is_read(pairs), "{pairs:?}");
    }
}

/// The allocations that the layer adds to a route, counted on one thread, once the receiver is in
/// use. The numbers are ceilings: lower one when a change permits it. An observer that does not
/// follow a request adds nothing. A typed and claimed delivery takes these:
///
/// - the request's future, the run's task, and the channel of its answer;
/// - the keys of its metrics, with their labels;
/// - the body in memory of its own, and the delivery that all its clones share;
/// - an entry in the request's extensions, and the growth of their map beyond axum's own three;
/// - the answer in the response's extensions: the map, its table, and the entry;
/// - axum's boxes for the second route: the inner future, the request's body, the response's body;
/// - in the event, each text that is not an id or a time.
#[cfg(feature = "axum")]
#[test]
fn a_delivery_through_a_route_stays_within_its_allocations() {
    use std::time::Duration;

    use axum::{Router, body::Bytes, routing::MethodRouter, routing::post};
    use hookgate::layer::{ObservedRequest, RequestObserver};
    use hookgate::{
        DedupeStore, Event, MemoryStore, block_on,
        clock::Clock,
        dedupe::{ClaimToken, EventKey},
    };
    use http::{StatusCode, request::Parts};
    use tower::ServiceExt;

    const VERIFIED: usize = 24;
    const TYPED_AND_CLAIMED: usize = 30;
    /// A body of 1 KiB, its row of eight properties.
    const OF_1_KIB: usize = 38;
    const REFUSED: usize = 11;

    #[derive(serde::Deserialize)]
    struct Row {
        total: f64,
    }

    struct Declines;
    impl RequestObserver for Declines {
        fn begin(&self, _: &Parts, _: &dyn Clock) -> Option<Box<dyn ObservedRequest>> {
            None
        }
    }

    let small = |id: &str| {
        format!(
            r#"{{"id":"{id}","type":"row.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","properties":{{"total":12.5}},"createdBy":{{"id":"usr_1","name":"Ada"}}}}}}"#
        )
    };
    let of_1_kib = |id: &str| delivery::body(&format!("{id}_of_1_kib"), 1 << 10);
    let clock = ManualClock::at(NOW);
    let _ = clock.now();
    let receiver = || {
        let builder = Receiver::builder().secret(secret("first"));
        builder.clock(clock.clone())
    };
    let plain = post(async |_: Bytes| StatusCode::NO_CONTENT);
    let declining = receiver().without_deduplication().observer(Declines);
    let declining = declining.build().unwrap();
    let typed = post(async |event: Event<Row>| match event.data {
        hookgate::EventData::RowCreated(row) if row.properties.total == 12.5 => {
            StatusCode::NO_CONTENT
        }
        _ => StatusCode::BAD_REQUEST,
    });
    let order = post(async |event: Event<delivery::Order>| match event.data {
        hookgate::EventData::RowCreated(row) if row.properties.weigh() > 0 => {
            StatusCode::NO_CONTENT
        }
        _ => StatusCode::BAD_REQUEST,
    });
    let verifying = receiver().without_deduplication().build().unwrap();
    // A store that is in use: the first record of a shard and each 128th one add a piece.
    let store = MemoryStore::default();
    for number in 0..64 * 40 {
        let key = EventKey::new("default", &number.to_string());
        let token = ClaimToken::new(b"{}");
        let (lease, retain) = (Duration::from_millis(1), Duration::from_secs(48 * 3_600));
        let _ = block_on(store.claim(&key, token, lease)).unwrap();
        let _ = block_on(store.commit(&key, token, retain)).unwrap();
    }
    let claiming = receiver().store(store).build().unwrap();

    let runtime = runtime();
    let count = |app: Router, key: &str, status: u16, body: &dyn Fn(&str) -> String| {
        // With its state, as a server has it: without, axum makes the route anew for each request.
        let app = app.with_state(());
        runtime.block_on(async {
            let mut counted = Vec::new();
            for number in 1..=401 {
                let body = body(&format!("evt_{number}"));
                let (app, request) = (app.clone(), request(key, body.into()));
                let before = counting::allocated();
                let answer = app.oneshot(request).await.unwrap();
                assert_eq!(answer.status(), status);
                let after = counting::allocated();
                counted.push(after.times - before.times);
            }
            // The median of many: each part of the store allocates its first room at the first
            // delivery that it gets.
            counted.sort_unstable();
            counted[counted.len() / 2]
        })
    };
    let added = |route: MethodRouter, key, status, body: &dyn Fn(&str) -> String| {
        let unguarded = count(Router::new().route("/", plain.clone()), "first", 204, body);
        let counted = count(Router::new().route("/", route), key, status, body);
        counted.saturating_sub(unguarded)
    };
    let guarded = || plain.clone().layer(verifying.layer());
    let verified = added(guarded(), "first", 204, &small);
    let declined = added(plain.clone().layer(declining.layer()), "first", 204, &small);
    let claimed = added(typed.layer(claiming.layer()), "first", 204, &small);
    let large = added(order.layer(claiming.layer()), "first", 204, &of_1_kib);
    let refused = added(guarded(), "second", 401, &small);
    println!(
        "allocations added to an unguarded route: verified {verified:?}, typed and claimed {claimed:?}, of 1 KiB {large:?}, refused {refused:?}"
    );
    assert!(verified <= VERIFIED, "verified: {verified:?}");
    assert_eq!(declined, verified, "with an observer that declines");
    assert!(
        claimed <= TYPED_AND_CLAIMED,
        "typed and claimed: {claimed:?}"
    );
    assert!(large <= OF_1_KIB, "of 1 KiB: {large:?}");
    assert!(refused <= REFUSED, "refused: {refused:?}");
}

/// The allocations that the event router adds to a handler that stands on the route by itself:
/// none, whether it reads the model or not.
#[cfg(feature = "axum")]
#[test]
fn the_event_router_takes_a_delivery_to_its_arm_without_an_allocation() {
    use axum::handler::Handler;
    use axum::{Router, body::Bytes, routing::MethodRouter, routing::post};
    use hookgate::EventRouter;
    use http::StatusCode;
    use tower::ServiceExt;

    async fn handler(_: Bytes) -> StatusCode {
        StatusCode::NO_CONTENT
    }

    let body = r#"{"id":"evt_1","type":"row.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","properties":{"total":12.5,"text":"a \"quoted\" one"},"createdBy":{"id":"usr_1","name":"Ada"}}}"#;
    let receiver = forgetful(Receiver::builder().secret(secret("first")));
    let runtime = runtime();
    let count = |route: MethodRouter| {
        // With its state, as a server has it: without, axum makes the route again for each request.
        let app = Router::new().route("/", route.layer(receiver.layer()));
        let app = app.with_state(());
        runtime.block_on(async {
            // Once before it counts: maps and the like allocate their first room.
            let first = request("first", body.into());
            let first = app.clone().oneshot(first).await.unwrap();
            assert_eq!(first.status(), 204);
            let request = request("first", body.into());
            let before = allocations();
            let answer = app.oneshot(request).await.unwrap();
            assert_eq!(answer.status(), 204);
            allocations() - before
        })
    };
    let by_type = || EventRouter::new().on("row.created", handler);
    let never = async || StatusCode::INTERNAL_SERVER_ERROR;
    // Axum clones a boxed route for each request, which costs nothing where the handler holds
    // nothing. The router holds one pointer, so it is compared with a handler that does, too.
    let held = std::sync::Arc::new(());
    let plain = count(post(async move |bytes: Bytes| {
        let _ = &held;
        handler(bytes).await
    }));
    let typed = count(by_type().fallback(never).build().unwrap());
    let by_model = EventRouter::new()
        .on_model("row.created", "dm_1", handler)
        .on_model("row.created", "dm_2", never)
        .on("row.created", never);
    let by_model = count(by_model.build().unwrap());
    println!("plain {plain}, by type {typed}, by model {by_model}");
    assert_eq!((typed, by_model), (plain, plain));
    // A handler whose future is not boxed yet needs one box as an arm.
    let pointer = plain - count(post(handler));
    let layered = || handler.layer(tower::layer::util::Identity::new());
    let on_the_route = count(post(layered()));
    let as_an_arm = EventRouter::new().on("row.created", layered());
    let as_an_arm = count(as_an_arm.build().unwrap());
    println!("layered {on_the_route}, as an arm {as_an_arm}, of which {pointer} for the pointer");
    assert!(as_an_arm <= on_the_route + pointer + 1);
}

/// A server's buffer is far larger than a small body, and is not kept alive by it. Through hyper
/// itself, a connection a delivery.
#[cfg(feature = "axum")]
// fault F10e: a small delivery that is kept keeps the server's read buffer alive
#[test]
fn a_thousand_kept_deliveries_hold_less_than_a_kibibyte_each() {
    use std::sync::{Arc, Mutex};

    use axum::{Router, routing::post};
    use hookgate::Delivery as Received;
    use http::StatusCode;
    use hyper_util::rt::TokioIo;
    use hyper_util::service::TowerToHyperService;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const DELIVERIES: usize = 1_000;
    let kept: Arc<Mutex<Vec<Received>>> = Arc::new(Mutex::new(Vec::with_capacity(DELIVERIES + 10)));
    let keeping = Arc::clone(&kept);
    let receiver = forgetful(Receiver::builder().secret(secret("first")));
    let handler = post(async move |delivery: Received| {
        keeping.lock().unwrap().push(delivery);
        StatusCode::NO_CONTENT
    });
    let app = Router::new().route("/", handler.layer(receiver.layer()));
    let deliver = async |number: usize| {
        let mut body = format!(r#"{{"id":"evt_{number}","type":"row.created"}}"#);
        body.push_str(&" ".repeat(105 - body.len()));
        let [timestamp, signature] = signed("first", body.as_bytes());
        let bytes = format!(
            "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\
             x-service-timestamp: {timestamp}\r\nx-service-signature: {signature}\r\n\r\n{body}",
            body.len(),
        );
        let (mut client, server) = tokio::io::duplex(1 << 16);
        let service = TowerToHyperService::new(app.clone());
        let serving = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(server), service);
        client.write_all(bytes.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let (served, read) = tokio::join!(serving, client.read_to_end(&mut answer));
        served.unwrap();
        read.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 204"));
    };
    runtime().block_on(async {
        for number in 0..10 {
            deliver(number).await;
        }
        let before = live_bytes();
        for number in 10..DELIVERIES + 10 {
            deliver(number).await;
        }
        let each = (live_bytes() - before) / DELIVERIES;
        println!("a kept delivery of 105 bytes holds {each} bytes");
        assert!(each < 1_024, "{each}");
    });
    assert_eq!(kept.lock().unwrap().len(), DELIVERIES + 10);
}

/// The memory that two hundred unfinished bodies hold in a receiver: the budget and a little for
/// each request, not all bytes that they sent.
#[cfg(feature = "axum")]
// fault F12: unauthenticated bodies under way have no common bound
#[test]
fn bodies_under_way_take_the_memory_of_their_budget() {
    use axum::{Router, body::Body, body::Bytes, routing::post};
    use http::StatusCode;
    use tower::ServiceExt;

    struct ChannelBody(tokio::sync::mpsc::UnboundedReceiver<Bytes>);

    impl http_body::Body for ChannelBody {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            context: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
            let piece = self.0.poll_recv(context);
            piece.map(|piece| piece.map(|bytes| Ok(http_body::Frame::data(bytes))))
        }
    }

    const BUDGET: usize = 4 << 20;
    const SENDERS: usize = 200;
    let builder = Receiver::builder().secret(secret("first"));
    let receiver = forgetful(builder.body_budget(BUDGET));
    let handler = post(async |_: Bytes| StatusCode::NO_CONTENT);
    let app = Router::new().route("/", handler.layer(receiver.layer()));
    runtime().block_on(async {
        let before = live_bytes();
        let mut senders = Vec::new();
        for _ in 0..SENDERS {
            let (sender, fed) = tokio::sync::mpsc::unbounded_channel();
            let request = request("second", Bytes::new());
            let request = request.map(|_| Body::new(ChannelBody(fed)));
            let answer = tokio::spawn(app.clone().oneshot(request));
            senders.push((sender, answer));
        }
        let mut most = 0;
        // A piece of one byte keeps a whole buffer of 16 KiB alive, as a piece from a server may.
        for size in [1, 16 << 10].into_iter().cycle().take(60) {
            for (sender, _) in &senders {
                let _ = sender.send(Bytes::from(vec![b'x'; 16 << 10]).slice(..size));
                for _ in 0..5 {
                    tokio::task::yield_now().await;
                }
                most = most.max(live_bytes() - before);
            }
        }
        println!("{SENDERS} unfinished bodies hold {most} bytes at most");
        assert!(most < BUDGET + SENDERS * 8_192, "{most}");
        assert!(most > BUDGET / 2, "{most}");
    });
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
        let body = vec![b'x'; size];
        let [timestamp, signature] = signed(key, &body);
        Self {
            timestamp,
            signature,
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

/// The timestamp and the signature of a body.
fn signed(key: &str, body: &[u8]) -> [String; 2] {
    let timestamp = Timestamp::at(NOW).unwrap();
    let signature = Signature::sign(&secret(key), &timestamp, body);
    [timestamp.to_string(), signature.to_header_value()]
}

#[cfg(feature = "axum")]
fn request(key: &str, body: axum::body::Bytes) -> http::Request<axum::body::Body> {
    let [timestamp, signature] = signed(key, &body);
    let request = http::Request::post("/").header("x-service-timestamp", timestamp);
    let request = request.header("x-service-signature", signature);
    request.body(body.into()).unwrap()
}

/// A receiver that has a clock and no store.
#[cfg(any(feature = "axum", feature = "lookup"))]
fn forgetful(builder: ReceiverBuilder) -> Receiver {
    let builder = builder.clock(ManualClock::at(NOW));
    builder.without_deduplication().build().unwrap()
}

#[cfg(feature = "axum")]
fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
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

/// Bytes that were allocated on this thread and are not free yet.
#[cfg(any(feature = "axum", feature = "lookup"))]
fn live_bytes() -> usize {
    counting::live_bytes()
}
