//! A queue between two processes: a sink behind claims, the message's attributes, and the
//! consumer's side.

use std::future::pending;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookgate::{
    DeadLetter, DedupeStore, Delivery, Event, MemoryStore, Outcome, Receiver,
    clock::UnixSeconds,
    dedupe::{ClaimToken, Claimed, EventKey, Ownership, StoreError, StoreErrorKind, StoreFuture},
    outcome::{Failure, RefusalKind, Unrecorded},
    receiver::StoredDelivery,
    run::Acknowledgement,
    sink::{Accepted, PublishError, QueueSink, Sink},
    verify::Signature,
};
use http::StatusCode;
use tokio::time::{sleep, timeout};

use crate::harness::TokioClock;
use crate::support::*;

const HOUR: Duration = Duration::from_secs(3_600);
const SECOND: Duration = Duration::from_secs(1);
const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn error() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable)
}

/// A memory store in tokio's time that counts renewals, and whose commits can fail.
#[derive(Clone, Debug)]
struct Store {
    kept: MemoryStore,
    renewals: Arc<AtomicUsize>,
    failing_commits: Arc<AtomicUsize>,
    claim_takes: Duration,
    settles: bool,
}

impl Store {
    fn new() -> Self {
        Self {
            kept: MemoryStore::default().with_clock(TokioClock::start()),
            renewals: Arc::default(),
            failing_commits: Arc::default(),
            claim_takes: Duration::ZERO,
            settles: true,
        }
    }
}

impl DedupeStore for Store {
    fn claim<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Claimed> {
        StoreFuture::boxed(async move {
            let claimed = self.kept.claim(key, token, lease).await;
            sleep(self.claim_takes).await;
            claimed
        })
    }

    fn renew<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Ownership> {
        self.renewals.fetch_add(1, Ordering::SeqCst);
        self.kept.renew(key, token, lease)
    }

    fn commit<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        retain: Duration,
    ) -> StoreFuture<'a, Ownership> {
        if !self.settles {
            return StoreFuture::boxed(pending());
        }
        let less = |left: usize| left.checked_sub(1);
        let (set, fetch) = (Ordering::SeqCst, Ordering::SeqCst);
        if self.failing_commits.fetch_update(set, fetch, less).is_ok() {
            return StoreFuture::ready(Err(error()));
        }
        self.kept.commit(key, token, retain)
    }

    fn release<'a>(&'a self, key: &'a EventKey, token: ClaimToken) -> StoreFuture<'a, Ownership> {
        self.kept.release(key, token)
    }
}

/// A publisher that answers so at its calls, the last answer again and again, and takes some time.
fn publisher(
    calls: &Arc<AtomicUsize>,
    takes: Duration,
    answers: Vec<Result<(), PublishError>>,
) -> impl Fn(Delivery) -> futures::Publishing + Send + Sync + 'static {
    let calls = Arc::clone(calls);
    move |_| {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        let answer = answers[call.min(answers.len() - 1)].clone();
        Box::pin(async move {
            sleep(takes).await;
            answer
        })
    }
}

mod futures {
    use std::pin::Pin;

    pub(super) type Publishing =
        Pin<Box<dyn Future<Output = Result<(), hookgate::sink::PublishError>> + Send>>;
}

fn delivery_of(body: String) -> Delivery {
    let sent = Sent::at(NOW, body).with("X-Service-Webhook-Id", "wh_1");
    sent.with("traceparent", TRACE)
        .delivered_to(&consumer_without_store())
}

fn delivery() -> Delivery {
    delivery_of(event("evt_1"))
}

fn consumer_without_store() -> Receiver {
    let secret = hookgate::Secret::new(SECRET).unwrap();
    let builder = Receiver::builder().secret(secret).clock(manual());
    builder.without_deduplication().build().unwrap()
}

/// The answer to a delivery, which is to be remembered for an hour.
async fn accept(sink: &impl Sink, delivery: &Delivery) -> Result<Accepted, StoreErrorKind> {
    let answer = sink.accept(delivery, HOUR).await;
    answer.map_err(|error| error.kind())
}

const NEW: Result<Accepted, StoreErrorKind> = Ok(Accepted::New);
const UNAVAILABLE: Result<Accepted, StoreErrorKind> = Err(StoreErrorKind::Unavailable);
const CONFLICT: Result<Accepted, StoreErrorKind> = Err(StoreErrorKind::Conflict);

const SAME: Result<Accepted, StoreErrorKind> = Ok(Accepted::Duplicate { same_body: true });

#[tokio::test(start_paused = true)]
async fn a_publish_that_failed_is_repeated_at_once_and_a_copy_is_a_duplicate() {
    let calls = Arc::default();
    let answers = vec![Err(PublishError::Failed(error())), Ok(())];
    let sink = QueueSink::new(Store::new(), publisher(&calls, SECOND, answers));
    let first = delivery();
    assert_eq!(accept(&sink, &first).await, UNAVAILABLE);
    assert_eq!(accept(&sink, &first).await, NEW);
    assert_eq!(accept(&sink, &first).await, SAME);
    let other = delivery_of(event("evt_1") + " ");
    let answer = accept(&sink, &other).await;
    assert_eq!(answer, Ok(Accepted::Duplicate { same_body: false }));
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_leaves_the_lease_to_end() {
    let calls = Arc::default();
    let answers = vec![Err(PublishError::Unknown(error())), Ok(())];
    let sink = QueueSink::new(Store::new(), publisher(&calls, SECOND, answers));
    let first = delivery();
    assert_eq!(accept(&sink, &first).await, UNAVAILABLE);
    assert_eq!(accept(&sink, &first).await, CONFLICT);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    sleep(30 * SECOND).await;
    assert_eq!(accept(&sink, &first).await, NEW);
    // A call that is dropped is unknown too.
    let other = delivery_of(event("evt_2"));
    let dropped = timeout(SECOND / 2, sink.accept(&other, HOUR)).await;
    assert!(dropped.is_err());
    assert_eq!(accept(&sink, &other).await, CONFLICT);
}

#[tokio::test(start_paused = true)]
async fn a_publish_longer_than_its_lease_renews_it_and_a_copy_meanwhile_is_refused() {
    let (calls, store) = (Arc::default(), Store::new());
    let sink = QueueSink::new(store.clone(), publisher(&calls, 20 * SECOND, vec![Ok(())]));
    let sink = Arc::new(sink.lease(3 * SECOND));
    let slow = tokio::spawn({
        let sink = Arc::clone(&sink);
        async move { accept(&*sink, &delivery()).await }
    });
    for _ in 0..9 {
        sleep(2 * SECOND).await;
        assert_eq!(accept(&*sink, &delivery()).await, CONFLICT);
    }
    assert_eq!(slow.await.unwrap(), NEW);
    assert_eq!(accept(&*sink, &delivery()).await, SAME);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    assert_eq!(store.renewals.load(Ordering::SeqCst), 19);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_durable_is_accepted_even_if_that_is_not_recorded() {
    let (calls, store) = (Arc::default(), Store::new());
    let sink = QueueSink::new(store.clone(), publisher(&calls, SECOND, vec![Ok(())]));
    // A second commit helps.
    store.failing_commits.store(1, Ordering::SeqCst);
    assert_eq!(accept(&sink, &delivery()).await, NEW);
    assert_eq!(accept(&sink, &delivery()).await, SAME);
    store.failing_commits.store(2, Ordering::SeqCst);
    let other = delivery_of(event("evt_2"));
    assert_eq!(accept(&sink, &other).await, NEW);
    sleep(30 * SECOND).await;
    assert_eq!(accept(&sink, &other).await, NEW, "at least once");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_granted_after_its_lease_publishes_nothing() {
    let (calls, mut store) = (Arc::default(), Store::new());
    store.claim_takes = 31 * SECOND;
    let sink = QueueSink::new(store, publisher(&calls, SECOND, vec![Ok(())]));
    assert_eq!(
        accept(&sink, &delivery()).await,
        Err(StoreErrorKind::TimedOut)
    );
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

/// What a consumer gets.
fn message(delivery: &Delivery) -> StoredDelivery {
    let attributes = delivery.to_stored().attributes();
    StoredDelivery::from_attributes(delivery.body().clone(), |name| {
        let same = attributes.iter().find(|(known, _)| *known == name);
        same.map(|(_, value)| value.clone())
    })
}

#[test]
fn the_parts_of_a_delivery_go_through_the_attributes_of_a_message() {
    let sent = StoredDelivery {
        body: event("evt_1").into(),
        timestamp: "1763690000".into(),
        signature: Signature::parse(format!("sha256={}", "0a".repeat(32)).as_bytes()).ok(),
        event_id: "evt_\u{e9}".into(),
        event_type: "row\ndeleted".into(),
        received_at: UnixSeconds::new(1_763_690_001),
        scope: "orders".into(),
        key_name: "new".into(),
        subscription_id: Some("wh_1".into()),
        pinned_workspace: None,
        traceparent: Some(TRACE.into()),
        scheme: "workspace".into(),
    };
    let attributes = sent.attributes();
    assert!(attributes.len() <= 9, "SQS takes ten");
    for (name, value) in &attributes {
        let letter = |letter: u8| letter.is_ascii_lowercase() || letter == b'-';
        assert!(name.bytes().all(letter) && !value.contains('\n'), "{name}");
    }
    let read = StoredDelivery::from_attributes(sent.body.clone(), |name| {
        let same = attributes.iter().find(|(known, _)| *known == name);
        same.map(|(_, value)| value.as_str())
    });
    let text = |stored: &StoredDelivery| stored.signature.as_ref().map(Signature::to_header_value);
    assert_eq!((text(&read), &read.body), (text(&sent), &sent.body));
    assert_eq!(read.traceparent, sent.traceparent);
    let without_type = StoredDelivery {
        event_type: String::new(),
        ..sent
    };
    assert_eq!(format!("{read:?}"), format!("{without_type:?}"));
}

#[test]
fn a_message_is_keyed_by_its_row() {
    assert_eq!(delivery().message_key(), "row_1");
    let page = delivery_of(r#"{"id":"evt_9","type":"page.created","data":{}}"#.into());
    assert_eq!(page.message_key(), "evt_9");
}

/// The checkers of requests, in Python and in JavaScript, judge a message.
#[test]
fn consumers_in_other_languages_verify_a_message() {
    let delivery = delivery();
    let vector = |body: &[u8], verdict: serde_json::Value| {
        serde_json::json!({
            "name": "message",
            "keys": {"single": {"keys": [{"name": "primary", "secret": SECRET}]}},
            "window": {"past": 300, "ahead": 300},
            "now": NOW.to_string(),
            "headers": delivery.to_stored().attributes(),
            "body": {"text": String::from_utf8(body.to_vec()).unwrap()},
            "verdict": verdict,
        })
    };
    let verified = serde_json::json!({"verified": {"key": "primary", "scope": "default"}});
    let refused = serde_json::json!({"refused": {"kind": "signature-mismatch"}});
    let changed = [delivery.body(), b" ".as_slice()].concat();
    let deliveries = [vector(delivery.body(), verified), vector(&changed, refused)];
    let file = std::env::temp_dir().join(format!("hookgate-message-{}.json", std::process::id()));
    let text = serde_json::json!({ "deliveries": deliveries }).to_string();
    std::fs::write(&file, text).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    for (program, checker) in [("python3", "check.py"), ("node", "check.mjs")] {
        let mut command = Command::new(program);
        match command.arg(folder.join(checker)).arg(&file).output() {
            Ok(said) => {
                let text = String::from_utf8_lossy(&said.stdout);
                assert!(said.status.success(), "{text}");
                assert!(text.contains("2 deliveries judged, 0 differ"), "{text}");
            }
            Err(_) => assert_eq!(
                std::env::var_os("HOOKGATE_REQUIRE_TOOLS"),
                None,
                "{program}"
            ),
        }
    }
    std::fs::remove_file(file).unwrap();
}

async fn panics(_: Delivery) {
    panic!("made-up panic");
}

async fn endless(_: Delivery) {
    pending().await
}

fn consumer(store: impl DedupeStore) -> Receiver {
    receiver_over(store, |builder| builder)
}

fn receiver_over(
    store: impl DedupeStore,
    settings: impl FnOnce(hookgate::ReceiverBuilder) -> hookgate::ReceiverBuilder,
) -> Receiver {
    let secret = hookgate::Secret::new(SECRET).unwrap();
    let builder = Receiver::builder()
        .secret(secret)
        .clock(TokioClock::start());
    settings(builder.store(store)).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_twice_runs_once() {
    let (receiver, message) = (consumer(Store::new()), message(&delivery()));
    let typed = async |event: Event| assert_eq!(event.id, "evt_1");
    let ran = receiver.run_stored(&message, typed).await;
    assert_eq!(ran.outcome, Outcome::Handled);
    assert_eq!(ran.acknowledgement(), Acknowledgement::Done);
    let again = receiver.run_stored(&message, panics).await;
    assert_eq!(again.outcome, Outcome::Replayed { same_body: true });
    assert_eq!(again.acknowledgement(), Acknowledgement::Done);
    // Without a store, each message runs.
    let receiver = consumer_without_store();
    for _ in 0..2 {
        let ran = receiver.run_stored(&message, async |_: Delivery| ()).await;
        assert_eq!(ran.outcome, Outcome::Handled);
    }
}

#[tokio::test(start_paused = true)]
async fn what_failed_is_delivered_again_and_what_can_never_succeed_is_a_dead_letter() {
    let settled = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&settled);
    let receiver = receiver_over(Store::new(), |builder| {
        builder
            .run_limit(60 * SECOND)
            .on_settled(move |run| told.lock().unwrap().push(run.outcome))
    });
    let stored = message(&delivery());
    let bad_gateway = async |_: Delivery| StatusCode::BAD_GATEWAY;
    let failed = receiver.run_stored(&stored, bad_gateway).await;
    assert_eq!(failed.acknowledgement(), Acknowledgement::Retry);
    let panicked = receiver.run_stored(&stored, panics).await;
    assert_eq!(panicked.outcome, Outcome::Failed(Failure::Panicked));
    assert_eq!(panicked.acknowledgement(), Acknowledgement::Retry);
    let limited = receiver.run_stored(&stored, endless).await;
    assert_eq!(limited.outcome, Outcome::Failed(Failure::RunLimit));
    assert_eq!(limited.elapsed, 60 * SECOND);
    // A dead letter is free again, so that an operator can run it from there.
    let dead_letter = async |_: Delivery| DeadLetter::new("no such customer");
    for _ in 0..2 {
        let dead = receiver.run_stored(&stored, dead_letter).await;
        assert_eq!(dead.acknowledgement(), Acknowledgement::DeadLetter);
        assert_eq!(dead.to_string(), "dead_lettered: no such customer");
    }
    assert_eq!(settled.lock().unwrap().len(), 5);
    let mut changed = stored.clone();
    changed.body = (event("evt_1") + " ").into();
    let refused = receiver.run_stored(&changed, panics).await;
    assert_eq!(refused.outcome, Outcome::Refused(RefusalKind::NotAuthentic));
    assert_eq!(refused.acknowledgement(), Acknowledgement::DeadLetter);
    assert_eq!(receiver.runs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_long_run_keeps_its_lease_and_a_copy_meanwhile_is_delivered_again() {
    let store = Store::new();
    let receiver = receiver_over(store.clone(), |builder| builder.lease(3 * SECOND));
    let stored = message(&delivery());
    let long = tokio::spawn({
        let (receiver, stored) = (receiver.clone(), stored.clone());
        let slow = async |_: Delivery| sleep(20 * SECOND).await;
        async move { receiver.run_stored(&stored, slow).await }
    });
    sleep(19 * SECOND).await;
    let copy = receiver.run_stored(&stored, panics).await;
    assert_eq!(copy.outcome, Outcome::Refused(RefusalKind::StillRunning));
    assert_eq!(copy.acknowledgement(), Acknowledgement::Retry);
    // A commit that fails is repeated until the lease ends. Its run is done then, and said so.
    store.failing_commits.store(usize::MAX, Ordering::SeqCst);
    let ran = long.await.unwrap();
    let unrecorded = Outcome::HandledUnrecorded(Unrecorded::StoreFailed);
    assert_eq!(ran.outcome, unrecorded);
    assert_eq!(ran.acknowledgement(), Acknowledgement::Done);
    assert_eq!(store.renewals.load(Ordering::SeqCst), 19);
}

/// A commit that hangs holds up a consumer for no longer than it holds up the layer.
#[tokio::test(start_paused = true)]
async fn a_commit_without_an_answer_ends_after_30_seconds() {
    let receiver = consumer(Store {
        settles: false,
        ..Store::new()
    });
    let began = tokio::time::Instant::now();
    let message = message(&delivery());
    let run = receiver.run_stored(&message, async |_: Delivery| ()).await;
    assert_eq!(run.outcome, Outcome::HandledUnrecorded(Unrecorded::TooSlow));
    assert_eq!(run.acknowledgement(), Acknowledgement::Done);
    assert_eq!(began.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_the_runs_of_a_consumer() {
    let receiver = consumer(Store::new());
    let stored = message(&delivery());
    let running = tokio::spawn({
        let (receiver, stored) = (receiver.clone(), stored.clone());
        async move { receiver.run_stored(&stored, endless).await }
    });
    sleep(SECOND).await;
    assert_eq!(receiver.drain(SECOND).await, 1);
    let ran = running.await.unwrap();
    assert_eq!(ran.outcome, Outcome::Failed(Failure::Drained));
    assert_eq!(ran.acknowledgement(), Acknowledgement::Retry);
    let refused = receiver.run_stored(&stored, async |_: Delivery| ()).await;
    assert_eq!(refused.outcome, Outcome::Refused(RefusalKind::ShuttingDown));
    assert_eq!(refused.acknowledgement(), Acknowledgement::Retry);
}

/// What the sink has recorded is not a reason for a consumer with the same store to skip the event.
#[tokio::test(start_paused = true)]
async fn a_consumer_that_shares_the_sinks_store_runs_each_event_once() {
    let (store, calls) = (Store::new(), Arc::default());
    let sink = QueueSink::new(store.clone(), publisher(&calls, SECOND, vec![Ok(())]));
    let delivery = delivery();
    assert_eq!(accept(&sink, &delivery).await, NEW);
    let receiver = consumer(store);
    let message = message(&delivery);
    let ran = receiver.run_stored(&message, async |_: Delivery| ()).await;
    assert_eq!(ran.outcome, Outcome::Handled);
    let again = receiver.run_stored(&message, panics).await;
    assert_eq!(again.outcome, Outcome::Replayed { same_body: true });
    assert_eq!(accept(&sink, &delivery).await, SAME);
}
