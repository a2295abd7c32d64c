//! Through a transport: the report has the answers, and never the commits.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use hookgate::{Delivery, MemoryStore, Receiver};
use hookgate_record::LoggedDelivery;
use hookgate_testing::replay::ReplayErrorKind as Kind;
use hookgate_testing::{InProcess, Replay, Transport, TransportError};
use http::{Request, Response, StatusCode};
use tokio::time::Instant;

use super::*;
use crate::says;

/// Gives each request the same answer, after a while, and notes the requests.
#[derive(Clone, Default)]
struct FixedAnswer {
    status: u16,
    after: Duration,
    came: Arc<Mutex<Vec<(Instant, String)>>>,
    most: Arc<AtomicUsize>,
    now: Arc<AtomicUsize>,
}

impl FixedAnswer {
    fn new(status: u16, after: u64) -> Self {
        let after = Duration::from_millis(after);
        Self {
            status,
            after,
            ..Self::default()
        }
    }

    fn ids(&self) -> Vec<String> {
        let came = self.came.lock().unwrap();
        came.iter().map(|(_, id)| id.clone()).collect()
    }
}

impl Transport for FixedAnswer {
    async fn deliver(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let id = request.headers()["x-service-event-id"].to_str()?.to_owned();
        self.came.lock().unwrap().push((Instant::now(), id));
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep(self.after).await;
        self.now.fetch_sub(1, Ordering::SeqCst);
        if self.status == 0 {
            return Err("the line is dead".into());
        }
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap();
        Ok(response)
    }
}

/// A receiver by the machine's clock, with this secret.
fn in_process(secret: Secret) -> InProcess<Router> {
    let receiver = Receiver::builder().secret(secret);
    let receiver = receiver.store(MemoryStore::default()).build().unwrap();
    let handler = async |_: Delivery| StatusCode::NO_CONTENT;
    let guarded = post(handler).layer(receiver.layer());
    InProcess::new(Router::new().route("/webhooks", guarded))
}

fn events(count: i64) -> DeliveryLog {
    log((1..=count).map(|number| logged(&format!("evt_{number}"), number)))
}

/// By the machine's clock, against a receiver that goes by it too: the log is years old or from the
/// future by then.
#[tokio::test]
async fn a_log_is_signed_for_now_or_goes_out_as_it_came() {
    let app = in_process(secret());
    let resigned = play(small_log()).resigned().through(app.clone());
    let resigned = resigned.run().await.unwrap();
    let by_status = BTreeMap::from([(200, 1), (204, 5), (401, 1)]);
    let summary = resigned.summary();
    assert_eq!(summary.by_status, by_status);
    assert_eq!((summary.accepted, summary.replayed), (6, 1));
    assert_eq!((summary.as_they_came, summary.sent), (1, 7));
    assert!(!resigned.all_accepted());
    let mut answers = resigned.answers.iter();
    let forged = answers.find(|answered| !answered.resigned).unwrap();
    assert_eq!((forged.line, forged.status), (4, Some(401)));
    // Without a secret, and refused for its age.
    let raw = Replay::of(small_log()).raw().through(app);
    let raw = raw.run().await.unwrap();
    assert_eq!(raw.summary().by_status, BTreeMap::from([(401, 7)]));
}

/// The receiver's secret differs from the log's: deliveries that were authentic by the log are
/// signed with the given secret.
#[tokio::test]
async fn another_receivers_secret_signs_what_was_authentic() {
    let theirs = || Secret::new("whsec_made_up_for_a_test_machine").unwrap();
    let replay = Replay::of(small_log()).secret(theirs()).resigned();
    let through = replay.through(in_process(theirs()));
    let report = through.run().await.unwrap();
    let by_status = BTreeMap::from([(200, 1), (204, 5), (401, 1)]);
    assert_eq!(report.summary().by_status, by_status);
}

#[tokio::test(start_paused = true)]
async fn copies_order_concurrency_and_rate_are_as_asked() {
    let through = |says: &FixedAnswer, log| Replay::of(log).raw().through(says.clone());

    let says = FixedAnswer::new(200, 10);
    let report = through(&says, events(3)).duplicated(2).run().await.unwrap();
    let ids = ["evt_1", "evt_2", "evt_3"].map(|id| [id; 3]).concat();
    assert_eq!(says.ids(), ids);
    let copies = report.answers.iter().map(|answered| answered.copy);
    let copies: Vec<_> = copies.collect();
    assert_eq!(copies, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    assert!(report.all_accepted() && says.most.load(Ordering::SeqCst) == 1);

    let orders = [7, 7, 8].map(|seed| async move {
        let says = FixedAnswer::new(200, 1);
        let through = through(&says, events(20)).shuffled(seed);
        through.run().await.unwrap();
        says.ids()
    });
    let [first, again, other] = orders;
    let (first, again, other) = (first.await, again.await, other.await);
    assert!(first == again && first != other);
    assert_eq!(first.len(), 20);

    let says = FixedAnswer::new(200, 100);
    let five = through(&says, events(20)).concurrency(5);
    five.run().await.unwrap();
    assert_eq!(says.most.load(Ordering::SeqCst), 5);

    let says = FixedAnswer::new(200, 1);
    let four = through(&says, events(10)).concurrency(3).per_second(4.0);
    four.run().await.unwrap();
    let came = says.came.lock().unwrap().clone();
    for pair in came.windows(2) {
        assert!(pair[1].0 - pair[0].0 >= Duration::from_millis(250));
    }
    assert!(came[9].0 - came[0].0 < Duration::from_millis(2_400));

    // Invalid rates become the smallest one.
    for rate in [0.0, -1.0, 1e-300, f64::NAN] {
        let (says, began) = (FixedAnswer::new(200, 1), Instant::now());
        let slowest = through(&says, events(2)).per_second(rate);
        slowest.run().await.unwrap();
        let passed = began.elapsed().as_secs();
        assert!((86_400..86_402).contains(&passed), "{rate}: {passed} s");
    }
}

#[tokio::test(start_paused = true)]
async fn unanswered_deliveries_are_reported_with_their_reason() {
    let slow = FixedAnswer::new(200, 6_000);
    let through = |count, to| Replay::of(events(count)).raw().through(to);
    let report = through(3, slow).concurrency(3).run().await.unwrap();
    let summary = report.summary();
    let failures = BTreeMap::from([("no answer within 5000 ms".to_owned(), 3)]);
    assert_eq!((summary.unanswered, summary.by_failure), (3, failures));
    assert_eq!((summary.latency, report.all_accepted()), (None, false));
    let dead = through(2, FixedAnswer::new(0, 0)).run().await.unwrap();
    let summary = dead.summary();
    let failures = BTreeMap::from([("the line is dead".to_owned(), 2)]);
    assert_eq!(summary.by_failure, failures);
    says(&summary, "no answer  2  (the line is dead)");
    assert!(!summary.to_string().contains("commit"), "{summary}");
}

#[tokio::test(start_paused = true)]
async fn it_ends_on_request_and_reports_the_answers_until_then() {
    let mut answered_lines = Vec::new();
    let says = FixedAnswer::new(200, 1_000);
    let through = Replay::of(events(10)).raw().through(says.clone());
    assert_eq!(through.planned(), 10);
    let report = through
        .on_answer(|answered| answered_lines.push(answered.line))
        .until(tokio::time::sleep(Duration::from_millis(3_500)))
        .run()
        .await
        .unwrap();
    assert!(report.interrupted && !report.all_accepted());
    assert_eq!((report.answers.len(), report.planned), (3, 10));
    assert_eq!(answered_lines, [1, 2, 3]);
    assert_eq!(says.ids().len(), 4, "the fourth was under way");
    let text = report.summary().to_string();
    let begin = "interrupted: 3 of 10 deliveries sent and answered\n";
    assert!(text.starts_with(begin), "{text}");
}

#[tokio::test(start_paused = true)]
async fn percentiles_are_times_that_answers_took() {
    #[derive(Clone, Default)]
    struct Slower(Arc<AtomicUsize>);
    impl Transport for Slower {
        async fn deliver(&self, _: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
            let millis = self.0.fetch_add(1, Ordering::SeqCst) as u64 + 1;
            tokio::time::sleep(Duration::from_millis(millis)).await;
            Ok(Response::new(Bytes::new()))
        }
    }
    let report = Replay::of(events(200)).raw().through(Slower::default());
    let latency = report.run().await.unwrap().summary().latency.unwrap();
    let (p50, p90) = (latency.p50_us, latency.p90_us);
    let all = [p50, p90, latency.p99_us, latency.max_us];
    for (measured, expected) in all.into_iter().zip([100_u64, 180, 198, 200]) {
        // Tokio's timers end on whole milliseconds.
        assert!(measured.abs_diff(expected * 1_000) <= 1_000, "{latency:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_can_not_be_sent_is_an_error() {
    let kind = async |log: DeliveryLog, secret: Option<Secret>| {
        let mut replay = Replay::of(log).resigned();
        if let Some(secret) = secret {
            replay = replay.secret(secret);
        }
        let run = replay.through(FixedAnswer::new(200, 0)).run().await;
        run.unwrap_err().kind()
    };
    assert_eq!(kind(log([]), Some(secret())).await, Kind::Empty);
    assert_eq!(kind(events(1), None).await, Kind::NoSecret);
    let mut bad: LoggedDelivery = logged("evt_1", 0);
    bad.method = "NO METHOD".into();
    assert_eq!(kind(log([bad]), Some(secret())).await, Kind::Unsendable);
}

/// Nothing claims and nothing runs before the answer, so the inbox shows the result: each authentic
/// event is in it once.
#[tokio::test]
async fn a_log_goes_into_an_inbox_and_is_handled_from_there() {
    use hookgate_inbox::Workers;

    let name = format!("hookgate-it-replay-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let inbox = hookgate_sqlite::open_inbox(folder.join("inbox.db")).unwrap();
    let acceptor = Receiver::builder().secret(secret());
    let acceptor = acceptor.accept_into(inbox.clone()).unwrap();
    let replay = play(small_log()).resigned();
    let through = replay.through(InProcess::new(acceptor));
    let through = through.duplicated(2).shuffled(7).concurrency(4);
    let summary = through.run().await.unwrap().summary();
    // Seven deliveries three times each, one of the seven forged; five events.
    let by_status = BTreeMap::from([(200, 18), (401, 3)]);
    assert_eq!((summary.by_status, summary.replayed), (by_status, 13));
    assert_eq!(inbox.stats().await.unwrap().queued, 5);

    let handled = Arc::new(Mutex::new(Vec::new()));
    let ids = Arc::clone(&handled);
    let workers = Workers::new(&inbox).start_handler(move |event: Delivery| {
        ids.lock().unwrap().push(event.event_id().to_owned());
        async { StatusCode::NO_CONTENT }
    });
    let workers = workers.unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while inbox.stats().await.unwrap().done < 5 {
        assert!(Instant::now() < until, "{:?}", inbox.stats().await);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    workers.shutdown(Duration::from_secs(60)).await;
    let mut handled = handled.lock().unwrap().clone();
    handled.sort();
    assert_eq!(handled, ["evt_1", "evt_2", "evt_3", "evt_4", "evt_5"]);
    inbox.close().await;
    std::fs::remove_dir_all(folder).unwrap();
}
