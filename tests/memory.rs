//! Many deliveries leave no memory behind: deliveries that are handled, that come twice, that are
//! forged, that fail, and that break off. Each scenario is a process of its own, so that no other
//! one's memory counts.
//!
//! A debug build makes 20,000 deliveries and counts the bytes that are allocated and not free: a
//! leak of eight bytes a delivery is seen. A release build, as `scripts/soak` makes it, makes
//! 400,000 and reads the resident memory of the process, which also shows fragments and what SQLite
//! keeps. `HOOKGATE_DELIVERIES=1000000` makes it a million.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a failed expectation must stop the test
#![allow(unsafe_code)] // An allocator can't be written without.

use std::alloc::{GlobalAlloc, Layout, System};
use std::convert::Infallible;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::post;
use futures_core::Stream;
use hookgate::{
    DedupeStore, Event, MemoryStore, Receiver, ReceiverBuilder, Secret, block_on,
    clock::{ManualClock, UnixSeconds},
    dedupe::{ClaimToken, Claimed, EventKey, Ownership},
    lookup::Keys,
    verify::{Signature, Timestamp},
};
use http::{Request, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::yield_now;
use tower::ServiceExt;

const NOW: UnixSeconds = UnixSeconds::new(1_763_690_000);
const SECRET: &str = "whsec_made_up_for_a_million";
/// The limit of the last reading, in hundredths of the first.
const GROWTH: usize = 110;
const WORKERS: usize = 8;
/// How far back a copy's event lies: the same worker's, and not a copy itself.
const A_WHILE: usize = 2 * WORKERS;
/// Says to the process that it is to run one scenario and print its readings.
const SCENARIO: &str = "HOOKGATE_MEMORY_SCENARIO";

const IS_LONG_FORM: bool = !cfg!(debug_assertions);

/// The number of deliveries before the last reading.
fn deliveries() -> usize {
    let number = std::env::var("HOOKGATE_DELIVERIES").ok();
    let usual = if IS_LONG_FORM { 400_000 } else { 20_000 };
    number.map_or(usual, |number| number.parse().unwrap())
}

/// The number of deliveries before the first reading.
fn early() -> usize {
    deliveries() / if IS_LONG_FORM { 4 } else { 2 }
}

/// The records of a store that is filled several times over before the first reading, and is so
/// large that the irregular housekeeping of moka is small beside it.
fn capacity() -> usize {
    early() / 8
}

/// The records of a store that is turned over many times before the first reading, so that no table
/// has yet to grow.
fn small() -> usize {
    early() / 20
}

macro_rules! scenarios {
    ($($(#[$attribute:meta])* $name:ident)*) => {
        $(
            $(#[$attribute])*
            #[test]
            fn $name() {
                stays_within(stringify!($name));
            }
        )*

        async fn scenario(name: &str) -> (usize, usize) {
            match name {
                "leak" => scenarios::leak().await,
                $($(#[$attribute])* stringify!($name) => scenarios::$name().await,)*
                other => panic!("no scenario {other}"),
            }
        }
    };
}

scenarios! {
    #[cfg(feature = "moka")]
    fresh_events_and_their_duplicates_in_the_moka_store
    fresh_events_and_their_duplicates_in_the_memory_store
    events_whose_retention_ends
    floods_of_what_is_not_authentic
    #[cfg(feature = "lookup")]
    floods_of_subscriptions_that_are_looked_up
    handlers_that_fail_panic_or_do_not_fit
    senders_that_hang_up_at_any_time
    connections_that_break_on_the_wire
    #[cfg(feature = "inbox")]
    events_that_an_inbox_accepts_and_works_off
}

/// The result of the other tests if eight bytes stayed behind each delivery.
#[test]
#[should_panic(expected = "have become")]
fn a_leak_of_eight_bytes_is_seen() {
    stays_within("leak");
}

/// `HOOKGATE_RECORDS=10000000` makes it ten million. The resident memory is read, since a table
/// that grows holds the old one as well.
#[test]
fn a_full_memory_store_takes_72_bytes_a_record() {
    let (records, bytes) = readings_of("records");
    println!("{bytes} bytes for {records} records");
    assert!(bytes <= records * MemoryStore::BYTES_PER_RECORD);
}

/// Only has something to do in the process of a scenario.
#[test]
fn in_a_process_of_its_own() {
    let Ok(name) = std::env::var(SCENARIO) else {
        return;
    };
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    let (first, second) = match name.as_str() {
        "records" => records(1_000_000),
        name => runtime.block_on(scenario(name)),
    };
    println!("readings {first} {second}");
}

const LEASE: Duration = Duration::from_secs(30);
const RETAIN: Duration = Duration::from_secs(48 * 3_600);

/// Fills a store with this number of records three times over, spread over most of a retention.
/// Returns the number and the growth of the resident set in bytes.
fn records(usual: usize) -> (usize, usize) {
    let records = std::env::var("HOOKGATE_RECORDS");
    let records = records.map_or(usual, |number| number.parse().unwrap());
    // The pages of the program itself are read first.
    drop(filled(1_000));
    let before = resident();
    let store = filled(records);
    let grown = resident() - before;
    assert!((records..=records * 9 / 8 + 64).contains(&store.stats().done));
    (records, grown * 1_024)
}

fn filled(records: usize) -> MemoryStore {
    let clock = ManualClock::at(NOW);
    let wait = RETAIN * 9 / 10 / u32::try_from(records).unwrap();
    let store = MemoryStore::new(records).with_clock(clock.clone());
    let token = ClaimToken::new(b"{}");
    for number in 0..3 * records {
        let key = EventKey::new("default", &number.to_string());
        let claimed = block_on(store.claim(&key, token, LEASE)).unwrap();
        assert_eq!(claimed, Claimed::Fresh);
        let committed = block_on(store.commit(&key, token, RETAIN));
        assert_eq!(committed.unwrap(), Ownership::Held);
        clock.advance(wait);
    }
    store
}

fn stays_within(name: &str) {
    let (early, late) = readings_of(name);
    println!("{name}: {early} bytes, then {late}");
    // Of a leak of eight bytes a delivery, half is enough to be seen where little is allocated.
    let few = usize::from(!IS_LONG_FORM) * 4 * (deliveries() - self::early());
    let most = (early * GROWTH / 100).max(early + few);
    assert!(late <= most, "{name}: {early} bytes have become {late}");
}

/// Runs a scenario in a process of its own, and returns the two numbers that it prints.
fn readings_of(name: &str) -> (usize, usize) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "in_a_process_of_its_own", "--nocapture"])
        .env(SCENARIO, name)
        // glibc's arena for each thread comes to rest only after millions: that is its own growth,
        // by a tenth, and not ours.
        .env("MALLOC_ARENA_MAX", "1")
        // Handlers panic some thousand times.
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let readings = text.lines().find_map(|line| {
        let (early, late) = line.split_once("readings ")?.1.split_once(' ')?;
        Some((early.parse::<usize>().ok()?, late.parse::<usize>().ok()?))
    });
    let Some(readings) = readings else {
        panic!("{name} ended early\n{text}\n{}", tail(&errors));
    };
    readings
}

/// A scenario in which handlers panic prints much on its way.
fn tail(text: &str) -> &str {
    let start = text.len().saturating_sub(2_000);
    text.get(start..).unwrap_or(text)
}

mod scenarios {
    use super::*;

    pub(super) async fn leak() -> (usize, usize) {
        soak(async |number| {
            std::hint::black_box(Box::leak(Box::new(number)));
        })
        .await
    }

    #[cfg(feature = "moka")]
    pub(super) async fn fresh_events_and_their_duplicates_in_the_moka_store() -> (usize, usize) {
        let store = hookgate::dedupe::MokaStore::new(capacity());
        let readings = fresh_and_twice(builder().store(store.clone())).await;
        assert!(store.stats().evicted > (deliveries() / 2) as u64);
        readings
    }

    pub(super) async fn fresh_events_and_their_duplicates_in_the_memory_store() -> (usize, usize) {
        let store = MemoryStore::new(small());
        let readings = fresh_and_twice(builder().store(store.clone())).await;
        assert!(store.stats().evicted > (deliveries() / 2) as u64);
        readings
    }

    async fn fresh_and_twice(builder: ReceiverBuilder) -> (usize, usize) {
        let app = app(builder.clock(ManualClock::at(NOW)).build().unwrap());
        let replays = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&replays);
        let readings = soak(move |number| {
            let (app, count) = (app.clone(), Arc::clone(&count));
            async move {
                // Every third one is a copy of an event that this worker has had handled a while
                // ago.
                let copy = number % 3 == 2 && number > A_WHILE;
                let id = if copy { number - A_WHILE } else { number };
                let response = app.oneshot(signed(&event(id), SECRET, None)).await.unwrap();
                let replayed = response.headers().contains_key("idempotent-replayed");
                assert!(copy || !replayed, "delivery {number} was never seen before");
                count.fetch_add(usize::from(replayed), Ordering::Relaxed);
            }
        })
        .await;
        // A worker that slept while the others filled the store finds its event forgotten, and that
        // is correct.
        assert!(replays.load(Ordering::Relaxed) > deliveries() * 9 / 30);
        readings
    }

    pub(super) async fn events_whose_retention_ends() -> (usize, usize) {
        let clock = ManualClock::at(NOW);
        let store = MemoryStore::new(capacity().max(4_000)).with_clock(clock.clone());
        let receiver = builder().store(store.clone()).clock(ManualClock::at(NOW));
        let app = app(receiver.build().unwrap());
        let readings = soak(move |number| {
            let (app, clock) = (app.clone(), clock.clone());
            async move {
                // One a minute, for 48 h: and the store could hold more.
                clock.advance(Duration::from_secs(60));
                let response = app.oneshot(signed(&event(number), SECRET, None)).await;
                assert_eq!(response.unwrap().status(), StatusCode::NO_CONTENT);
            }
        })
        .await;
        assert_eq!(store.stats().evicted, 0);
        readings
    }

    pub(super) async fn floods_of_what_is_not_authentic() -> (usize, usize) {
        let rings = [
            ("wh_1", secret(SECRET)),
            ("wh_2", secret("whsec_made_up_for_another")),
        ];
        let keys = Keys::by_subscription(rings).unwrap();
        let app = app(on_a_store(Receiver::builder().keys(keys), capacity()));
        soak(move |number| {
            let app = app.clone();
            async move {
                let body = event(number);
                let unknown = format!("wh_unknown_{number}");
                let (stranger, stale) = ("whsec_made_up_by_a_stranger", NOW.as_i64() - 301);
                let (request, status) = match number % 6 {
                    0 => (signed(&body, stranger, Some("wh_1")), 401),
                    1 => (signed(&body, SECRET, Some(&unknown)), 401),
                    2 => (signed_at(stale, &body, SECRET, Some("wh_1")), 401),
                    3 => (Request::post("/").body(Body::from(body)).unwrap(), 401),
                    4 => {
                        let mut request = signed(&body, SECRET, Some("wh_2"));
                        let headers = request.headers_mut();
                        headers.insert("content-encoding", "gzip".parse().unwrap());
                        (request, 415)
                    }
                    // Authentic by its key, but no event.
                    _ => (signed(&format!("[{number}"), SECRET, Some("wh_1")), 400),
                };
                assert_eq!(app.oneshot(request).await.unwrap().status(), status);
            }
        })
        .await
    }

    #[cfg(feature = "lookup")]
    pub(super) async fn floods_of_subscriptions_that_are_looked_up() -> (usize, usize) {
        let provider = async |id: hookgate::lookup::SubscriptionId| {
            yield_now().await;
            let known = id.as_str().ends_with("known");
            Ok::<_, Infallible>(known.then(|| secret(SECRET)))
        };
        let receiver = on_a_store(Receiver::builder().provider(provider), small());
        let keys = receiver.keys().clone();
        let (app, forgetting) = (app(receiver), keys.clone());
        let readings = soak(move |number| {
            let (app, keys) = (app.clone(), forgetting.clone());
            async move {
                // Every tenth one is one of fifty that exist, and is looked up again each time.
                let known = number.is_multiple_of(10);
                let subscription = match known {
                    true => format!("wh_{}_known", number % 500),
                    false => format!("wh_{number}"),
                };
                let request = signed(&event(number), SECRET, Some(&subscription));
                let status = app.oneshot(request).await.unwrap().status();
                assert_eq!(status, if known { 204 } else { 401 });
                if known {
                    keys.forget(&subscription).unwrap();
                }
            }
        })
        .await;
        let stats = keys.lookup_stats().unwrap();
        assert_eq!((stats.found, stats.unknown), (50, 4_096));
        assert_eq!((stats.running, stats.waiting), (0, 0));
        readings
    }

    pub(super) async fn handlers_that_fail_panic_or_do_not_fit() -> (usize, usize) {
        std::panic::set_hook(Box::new(|_| {}));
        let receiver = on_a_store(builder(), capacity());
        let handler = async |event: Event<Row>| {
            let number: usize = event.id.as_str()[4..].parse().unwrap();
            assert!(!number.is_multiple_of(3), "asked to");
            StatusCode::INTERNAL_SERVER_ERROR
        };
        let app = Router::new().route("/", post(handler).layer(receiver.layer()));
        soak(move |number| {
            let app = app.clone();
            async move {
                let mismatch = number % 3 == 1;
                let body = match mismatch {
                    true => event(number).replace("12.5", "\"twelve\""),
                    false => event(number),
                };
                let response = app.oneshot(signed(&body, SECRET, None)).await.unwrap();
                assert_eq!(response.status(), if mismatch { 422 } else { 500 });
            }
        })
        .await
    }

    pub(super) async fn senders_that_hang_up_at_any_time() -> (usize, usize) {
        let receiver = on_a_store(builder(), capacity());
        let handled = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&handled);
        let handler = async move |_: Event<Row>| {
            for _ in 0..3 {
                yield_now().await;
            }
            count.fetch_add(1, Ordering::Relaxed);
            StatusCode::NO_CONTENT
        };
        let app = Router::new().route("/", post(handler).layer(receiver.layer()));
        let runs = receiver.clone();
        let readings = soak(move |number| {
            let (app, receiver) = (app.clone(), runs.clone());
            async move {
                let mut request = signed(&event(number), SECRET, None);
                let in_the_body = number % 2 == 0;
                if in_the_body {
                    let whole = std::mem::take(request.body_mut());
                    let whole = axum::body::to_bytes(whole, usize::MAX).await.unwrap();
                    let half = whole.slice(..whole.len() / 2);
                    *request.body_mut() = Body::from_stream(HalfBody(Some(half)));
                }
                // The request is polled a little and then dropped, in the middle of its body or of
                // its handler.
                let request = app.oneshot(request);
                tokio::select! {
                    biased;
                    answer = request => assert!(!in_the_body, "answered {:?}", answer.unwrap().status()),
                    () = yield_now() => {}
                }
                while receiver.runs() > 256 {
                    yield_now().await;
                }
            }
        })
        .await;
        while receiver.runs() > 0 {
            yield_now().await;
        }
        let handled = handled.load(Ordering::Relaxed);
        assert_eq!(handled, deliveries() / 2, "a run was lost");
        readings
    }

    /// On SQLite, in the folder for temporary files: some hundreds of megabytes of remembered ids.
    /// Many events are accepted and handled at a time, so that many share one commit; only so do a
    /// million become durable within a minute or two.
    #[cfg(feature = "inbox")]
    pub(super) async fn events_that_an_inbox_accepts_and_works_off() -> (usize, usize) {
        use hookgate_inbox::Workers;
        use hookgate_sqlite::open_inbox;

        // Half of the number that may wait to be stored.
        const AT_A_TIME: usize = 512;
        let folder = std::env::temp_dir().join(format!("hookgate-memory-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let inbox = open_inbox(folder.join("inbox.db")).unwrap();
        let builder = builder().clock(ManualClock::at(NOW));
        let acceptor = builder.accept_into(inbox.clone()).unwrap();
        let open = Arc::new(tokio::sync::Semaphore::new(4 * AT_A_TIME));
        let handled = Arc::new(AtomicUsize::new(0));
        let (places, count) = (Arc::clone(&open), Arc::clone(&handled));
        let running = Workers::new(&inbox)
            .concurrency(AT_A_TIME)
            .start_handler(move |_: Event<Row>| {
                count.fetch_add(1, Ordering::Relaxed);
                places.add_permits(1);
                async {}
            })
            .unwrap();
        let accept_all = async |numbers: std::ops::Range<usize>| {
            let end = numbers.end;
            let mut accepts = tokio::task::JoinSet::new();
            for number in numbers {
                // No more entries wait in the inbox than this: the test measures the memory that
                // stays behind.
                open.acquire().await.unwrap().forget();
                if accepts.len() >= AT_A_TIME {
                    accepts.join_next().await.unwrap().unwrap();
                }
                let acceptor = acceptor.clone();
                accepts.spawn(async move {
                    // A disk that is busy elsewhere may take too long for one answer: the sender
                    // tries again.
                    let delivery = || signed(&event(number), SECRET, None);
                    while acceptor.handle(delivery()).await.status() != StatusCode::OK {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                });
            }
            while let Some(accept) = accepts.join_next().await {
                accept.unwrap();
            }
            while inbox.stats().await.unwrap().done < end as u64 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        accept_all(0..early()).await;
        let first = reading().await;
        accept_all(early()..deliveries()).await;
        let last = reading().await;
        assert_eq!(handled.load(Ordering::Relaxed), deliveries(), "each once");
        assert_eq!(running.shutdown(Duration::from_secs(10)).await, 0);
        std::fs::remove_dir_all(folder).unwrap();
        (first, last)
    }

    /// Each delivery is a connection here. Each worker breaks off every second one in the middle of
    /// its body, and waits for the answer to the others, so that they don't pile up in front of the
    /// server.
    pub(super) async fn connections_that_break_on_the_wire() -> (usize, usize) {
        let app = app(on_a_store(builder(), capacity()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        soak(move |number| async move {
            let body = event(number);
            let timestamp = Timestamp::at(NOW).unwrap();
            let signature = Signature::sign(&secret(SECRET), &timestamp, body.as_bytes());
            let head = format!(
                "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\
                 x-service-timestamp: {}\r\nx-service-signature: {}\r\n\r\n",
                body.len(),
                timestamp.as_str(),
                signature.to_header_value(),
            );
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            if (number / WORKERS).is_multiple_of(2) {
                let half = &body.as_bytes()[..body.len() / 2];
                stream.write_all(half).await.unwrap();
                // Gone with a reset, so that no socket of the test lingers.
                stream.set_zero_linger().unwrap();
                return;
            }
            stream.write_all(body.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            let said = String::from_utf8_lossy(&answer);
            assert!(said.starts_with("HTTP/1.1 204"), "{said}");
        })
        .await
    }
}

/// Has all deliveries made, and reads the memory after the early ones and at the end.
async fn soak<F>(deliver: impl Fn(usize) -> F + Clone + Send + 'static) -> (usize, usize)
where
    F: Future<Output = ()> + Send,
{
    deliver_all(0..early(), deliver.clone()).await;
    let first = reading().await;
    deliver_all(early()..deliveries(), deliver).await;
    (first, reading().await)
}

async fn deliver_all<F>(
    numbers: std::ops::Range<usize>,
    deliver: impl Fn(usize) -> F + Clone + Send + 'static,
) where
    F: Future<Output = ()> + Send,
{
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| {
            let (numbers, deliver) = (numbers.clone(), deliver.clone());
            tokio::spawn(async move {
                for number in numbers.skip(worker).step_by(WORKERS) {
                    deliver(number).await;
                    yield_now().await;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
}

/// The memory of this process in bytes: in the short form what Rust code has allocated, in the long
/// one the resident memory. The least of some readings, since runs and connections of the last
/// deliveries still end: until no less comes for a while.
async fn reading() -> usize {
    let (mut least, mut since) = (usize::MAX, 0);
    while since < 20 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let now = match IS_LONG_FORM {
            true => resident() * 1_024,
            false => LIVE.load(Ordering::Relaxed),
        };
        since = if now < least { 0 } else { since + 1 };
        least = least.min(now);
    }
    least
}

/// The bytes that are allocated and not free.
static LIVE: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call is passed on unchanged to the system's allocator, and the count needs no
// allocation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LIVE.fetch_add(size, Ordering::Relaxed);
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps `realloc`'s contract, and `pointer` came from the system's
        // allocator.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps `dealloc`'s contract, and `pointer` came from the system's
        // allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// This process's resident memory, in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.unwrap().split_whitespace().nth(1);
    number.unwrap().parse().unwrap()
}

#[derive(serde::Deserialize)]
struct Row {
    #[allow(dead_code)] // Read by the parser alone.
    total: f64,
}

fn app(receiver: Receiver) -> Router {
    let handler = post(async |_: Event<Row>| StatusCode::NO_CONTENT);
    Router::new().route("/", handler.layer(receiver.layer()))
}

fn builder() -> ReceiverBuilder {
    Receiver::builder().secret(secret(SECRET))
}

/// A receiver with a store of this capacity.
fn on_a_store(builder: ReceiverBuilder, capacity: usize) -> Receiver {
    let builder = builder.store(MemoryStore::new(capacity));
    builder.clock(ManualClock::at(NOW)).build().unwrap()
}

fn secret(text: &str) -> Secret {
    Secret::new(text).unwrap()
}

fn event(number: usize) -> String {
    format!(
        r#"{{"id":"evt_{number}","type":"row.created","createdAt":"2025-11-21T01:53:20Z","workspaceId":"ws_1","data":{{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","properties":{{"total":12.5}},"createdBy":{{"id":"usr_1","name":"Ada"}}}}}}"#
    )
}

fn signed(body: &str, key: &str, subscription: Option<&str>) -> Request<Body> {
    signed_at(NOW.as_i64(), body, key, subscription)
}

fn signed_at(at: i64, body: &str, key: &str, subscription: Option<&str>) -> Request<Body> {
    let timestamp = Timestamp::at(UnixSeconds::new(at)).unwrap();
    let signature = Signature::sign(&secret(key), &timestamp, body.as_bytes());
    let mut request = Request::post("/")
        .header("x-service-timestamp", timestamp.as_str())
        .header("x-service-signature", signature.to_header_value());
    if let Some(id) = subscription {
        request = request.header("x-service-webhook-id", id);
    }
    request.body(Body::from(body.to_owned())).unwrap()
}

/// Half of a body, and then nothing more.
struct HalfBody(Option<Bytes>);

impl Stream for HalfBody {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        match self.0.take() {
            Some(half) => std::task::Poll::Ready(Some(Ok(half))),
            None => std::task::Poll::Pending,
        }
    }
}
