//! The metrics as a real exporter shows them, and the data that they never show.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use hookgate::{
    DeadLetter, Delivery, Event, KeyRing, MemoryStore, Receiver, Secret,
    dedupe::{StoreError, StoreErrorKind, StoreFuture},
    layer::{DURATION_BUCKETS, STALE_AGE_BUCKETS},
    sink::{Accepted, Sink},
};
use http::{Request, StatusCode};
use metrics::{LocalRecorderGuard, Recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};
use tokio::time::sleep;
use tower::ServiceExt;

use crate::harness::*;

fn recorder() -> PrometheusRecorder {
    PrometheusBuilder::new()
        .set_buckets_for_metric(
            Matcher::Suffix("_duration_seconds".into()),
            &DURATION_BUCKETS,
        )
        .unwrap()
        .set_buckets_for_metric(
            Matcher::Full("hookgate_stale_age_seconds".into()),
            &STALE_AGE_BUCKETS,
        )
        .unwrap()
        .build_recorder()
}

/// For this thread, on which the whole test runs.
fn install(recorder: &dyn Recorder) -> LocalRecorderGuard<'_> {
    metrics::set_default_local_recorder(recorder)
}

/// Every sample, by its name with its labels.
fn scrape(recorder: &PrometheusRecorder) -> BTreeMap<String, f64> {
    let text = recorder.handle().render();
    let samples = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let samples = samples.map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    });
    samples.collect()
}

/// The samples of one metric, by their labels except `receiver="default"`.
fn of(recorder: &PrometheusRecorder, name: &str) -> BTreeMap<String, f64> {
    let samples = scrape(recorder).into_iter();
    let samples = samples.filter_map(|(sample, value)| {
        let labels = sample.strip_prefix(name)?.strip_suffix('}')?;
        let labels = labels.strip_prefix("{receiver=\"default\"")?;
        Some((labels.trim_start_matches(',').replace('"', ""), value))
    });
    samples.collect()
}

fn is(expected: &[(&str, f64)]) -> BTreeMap<String, f64> {
    let own = |(labels, value): &(&str, f64)| ((*labels).to_owned(), *value);
    expected.iter().map(own).collect()
}

/// The one sample of a metric without labels of its own.
fn value(recorder: &PrometheusRecorder, name: &str) -> Option<f64> {
    of(recorder, name).remove("")
}

/// Each of these once, by outcome and reason, with the scope and the key of the harness.
fn of_its_scope(outcomes: &[(&str, &str)]) -> BTreeMap<String, f64> {
    let labels = |(outcome, reason): &(&str, &str)| {
        format!("outcome={outcome},reason={reason},scope=default,key=primary")
    };
    outcomes
        .iter()
        .map(|labelled| (labels(labelled), 1.0))
        .collect()
}

/// The sender's first attempt is at 01:53:20 of 21 November 2025, when the harness's time begins.
const SEVEN_MINUTES_BEFORE: &str = "2025-11-21T01:46:20Z";
/// The fifth attempt comes then, which may be the last.
const THREE_HOURS_BEFORE: &str = "2025-11-20T22:53:20Z";

fn created_at(id: &str, date: &str) -> Sent {
    let sent = Sent::event(id);
    let body = sent.body.replace("2025-11-21T01:53:20Z", date);
    sent.with_body(body)
}

#[tokio::test(start_paused = true)]
async fn every_request_is_counted_once_by_what_became_of_it_and_why() {
    let recorder = recorder();
    let _installed = install(&recorder);
    let harness = Harness::of(|_, run| async move {
        match run {
            1 => return StatusCode::BAD_GATEWAY,
            2 => panic!("made-up panic"),
            4 => sleep(Duration::from_secs(7)).await,
            _ => {}
        }
        OK
    });
    let sent = Sent::event("evt_1");
    for status in [502, 500, 204, 200] {
        assert_eq!(harness.send(&sent).await.status(), status);
    }
    // Another body under the same id.
    let mut other = sent.clone();
    other.body.push(' ');
    assert_eq!(harness.send(&other).await.status(), 200);
    // Outlives its request.
    assert_eq!(harness.status("evt_2").await, 503);
    // Not authentic, in three ways; the last one only looks stale.
    for (secret, age) in [(FORGER, 0), (SECRET, -301), (FORGER, 3 * 86_400)] {
        let bad = sent.clone().signed_by(secret).aged(age);
        assert_eq!(harness.send(&bad).await.status(), 401);
    }
    let get = Request::get("/webhooks").body(Body::empty()).unwrap();
    assert_eq!(harness.ask(get).await.status(), 405);
    // Authentic, and unusable.
    let unusable = sent.clone().with_body("[]");
    assert_eq!(harness.send(&unusable).await.status(), 400);
    // The sender hangs up, over a run and over a body.
    let waiting = harness.begin(&Sent::event("evt_2")).await;
    waiting.abort();
    pass(0).await;
    let stalled = sent.request(&harness.clock).map(|_| stalled_body());
    let stalled = tokio::spawn(harness.ask(stalled));
    pass(0).await;
    stalled.abort();
    pass(10_000).await;

    let mut expected = of_its_scope(&[
        ("failed", "handler_status"),
        ("failed", "panicked"),
        ("handled", "none"),
        ("replayed", "none"),
        ("replayed", "replayed_with_other_body"),
        ("runs_on", "none"),
        ("refused", "unusable_event"),
        ("hung_up", "none"),
    ]);
    expected.extend(is(&[
        (
            "outcome=refused,reason=signature_mismatch,scope=none,key=none",
            1.0,
        ),
        ("outcome=refused,reason=ahead,scope=none,key=none", 1.0),
        ("outcome=refused,reason=stale,scope=none,key=none", 1.0),
        (
            "outcome=refused,reason=method_not_allowed,scope=none,key=none",
            1.0,
        ),
        ("outcome=hung_up,reason=none,scope=none,key=none", 1.0),
    ]));
    assert_eq!(of(&recorder, "hookgate_deliveries_total"), expected);
    assert_eq!(
        of(&recorder, "hookgate_runs_total"),
        is(&[
            ("outcome=failed,reason=handler_status,late=false", 1.0),
            ("outcome=failed,reason=panicked,late=false", 1.0),
            ("outcome=handled,reason=none,late=false", 1.0),
            ("outcome=handled,reason=none,late=true", 1.0),
        ])
    );
}

#[tokio::test(start_paused = true)]
async fn acceptances_are_counted_and_timed_like_runs() {
    #[derive(Debug, Default)]
    struct ByTurns(std::sync::atomic::AtomicUsize);

    impl Sink for ByTurns {
        fn accept<'a>(&'a self, _: &'a Delivery, _: Duration) -> StoreFuture<'a, Accepted> {
            let turn = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            StoreFuture::boxed(async move {
                sleep(Duration::from_secs(if turn == 3 { 7 } else { 1 })).await;
                match turn {
                    1 => Ok(Accepted::Duplicate { same_body: true }),
                    2 => Err(StoreError::new(StoreErrorKind::Full)),
                    _ => Ok(Accepted::New),
                }
            })
        }
    }

    let recorder = recorder();
    let _installed = install(&recorder);
    let clock = TokioClock::start();
    let acceptor = Receiver::builder()
        .secret(Secret::new(SECRET).unwrap())
        .clock(clock.clone())
        .accept_into(ByTurns::default())
        .unwrap();
    for status in [200, 200, 503, 503] {
        let sent = Sent::event("evt_1").request(&clock);
        assert_eq!(acceptor.handle(sent).await.status(), status);
    }
    pass(10_000).await;
    let expected = [
        ("accepted", "none"),
        ("replayed", "none"),
        ("refused", "store_full"),
        ("runs_on", "none"),
    ];
    let counted = of(&recorder, "hookgate_deliveries_total");
    assert_eq!(counted, of_its_scope(&expected));
    assert_eq!(
        of(&recorder, "hookgate_runs_total"),
        is(&[
            ("outcome=accepted,reason=none,late=false", 1.0),
            ("outcome=accepted,reason=none,late=true", 1.0),
            ("outcome=replayed,reason=none,late=false", 1.0),
            ("outcome=refused,reason=store_full,late=false", 1.0),
        ])
    );
    let times = of(&recorder, "hookgate_handler_duration_seconds_sum");
    assert_eq!(times["outcome=accepted,event_type=row.deleted"], 8.0);
}

#[tokio::test(start_paused = true)]
async fn a_layer_over_a_layer_of_the_same_receiver_counts_once() {
    let recorder = recorder();
    let _installed = install(&recorder);
    let harness = Harness::of(in_turn(&[204]));
    let app: Router = harness.app.clone().layer(harness.receiver.layer());
    let sent = Sent::event("evt_1").request(&harness.clock);
    assert_eq!(app.oneshot(sent).await.unwrap().status(), 204);
    let total: f64 = of(&recorder, "hookgate_deliveries_total").values().sum();
    assert_eq!(total, 1.0);
}

#[tokio::test(start_paused = true)]
async fn durations_are_those_of_the_answer_and_of_the_handler() {
    let recorder = recorder();
    let _installed = install(&recorder);
    let harness = Harness::of(|_, run| async move {
        sleep(Duration::from_secs(if run == 1 { 7 } else { 1 })).await;
        if run == 3 {
            StatusCode::BAD_GATEWAY
        } else {
            OK
        }
    });
    for id in ["evt_1", "evt_2", "evt_3"] {
        harness.send(&Sent::event(id)).await;
    }
    pass(10_000).await;
    let sum = |name: &str| of(&recorder, &format!("{name}_sum"));
    assert_eq!(
        sum("hookgate_answer_duration_seconds"),
        is(&[
            ("outcome=runs_on", 4.5),
            ("outcome=handled", 1.0),
            ("outcome=failed", 1.0)
        ])
    );
    assert_eq!(
        sum("hookgate_handler_duration_seconds"),
        is(&[
            ("outcome=handled,event_type=row.deleted", 8.0),
            ("outcome=failed,event_type=row.deleted", 1.0),
        ])
    );
    let buckets = of(&recorder, "hookgate_answer_duration_seconds_bucket");
    assert_eq!(buckets["outcome=runs_on,le=4"], 0.0);
    assert_eq!(buckets["outcome=runs_on,le=4.5"], 1.0);
}

#[tokio::test(start_paused = true)]
async fn attempts_are_numbered_and_the_last_ones_that_fail_are_counted() {
    let recorder = recorder();
    let _installed = install(&recorder);
    let fails = Harness::of(in_turn(&[502]));
    fails.receiver.record_metrics();
    let last = || value(&recorder, "hookgate_last_attempts_failed_total");
    assert_eq!(last(), Some(0.0), "known before it counts");
    for (id, date, failed) in [
        ("evt_1", "2025-11-21T01:53:20Z", 0.0),
        ("evt_2", SEVEN_MINUTES_BEFORE, 0.0),
        ("evt_3", THREE_HOURS_BEFORE, 1.0),
    ] {
        assert_eq!(fails.send(&created_at(id, date)).await.status(), 502);
        assert_eq!(last(), Some(failed), "{date}");
    }
    let mut undated = Sent::event("evt_undated");
    undated.body = undated.body.replace("createdAt", "made");
    fails.send(&undated).await;
    assert_eq!(last(), Some(1.0));
    // A last attempt that succeeds is not a failure; one that is refused is.
    let handles = Harness::of(in_turn(&[204]));
    handles
        .send(&created_at("evt_good", THREE_HOURS_BEFORE))
        .await;
    assert_eq!(last(), Some(1.0));
    handles.receiver.drain(Duration::ZERO).await;
    handles
        .send(&created_at("evt_late", THREE_HOURS_BEFORE))
        .await;
    assert_eq!(last(), Some(2.0));
    assert_eq!(
        of(&recorder, "hookgate_attempts_total"),
        is(&[
            ("attempt=1,outcome=failed", 1.0),
            ("attempt=3,outcome=failed", 1.0),
            ("attempt=5,outcome=failed", 1.0),
            ("attempt=unknown,outcome=failed", 1.0),
            ("attempt=5,outcome=handled", 1.0),
            ("attempt=5,outcome=refused", 1.0),
        ])
    );
}

/// A restart of the program is not a failure of a handler.
#[tokio::test(start_paused = true)]
async fn a_run_that_a_shutdown_ended_has_no_time_in_the_handler() {
    let recorder = recorder();
    let _installed = install(&recorder);
    let harness = Harness::of(|_, _| ok_after(60));
    assert_eq!(harness.status("evt_1").await, 503);
    harness.receiver.drain(Duration::ZERO).await;
    pass(1_000).await;
    let runs = of(&recorder, "hookgate_runs_total");
    let drained = "outcome=failed,reason=drained,late=true";
    assert_eq!(runs, is(&[(drained, 1.0)]));
    let times = of(&recorder, "hookgate_handler_duration_seconds_count");
    assert_eq!(times, is(&[]));
}

#[tokio::test(start_paused = true)]
async fn a_last_attempt_that_fails_late_is_counted_at_its_end() {
    let recorder = recorder();
    let _installed = install(&recorder);
    let harness = Harness::of(|_, _| async {
        sleep(Duration::from_secs(9)).await;
        StatusCode::BAD_GATEWAY
    });
    let last_one = created_at("evt_1", THREE_HOURS_BEFORE);
    assert_eq!(harness.send(&last_one).await.status(), 503);
    let last = || value(&recorder, "hookgate_last_attempts_failed_total");
    assert_eq!(last(), None, "it may yet succeed");
    pass(10_000).await;
    assert_eq!(last(), Some(1.0));
}

#[tokio::test(start_paused = true)]
async fn the_ages_of_stale_refusals_are_a_histogram() {
    let recorder = recorder();
    let _installed = install(&recorder);
    let harness = Harness::of(in_turn(&[204]));
    // The ages of a sender's retries whose timestamps are the first one's, and one that is in time.
    for age in [60, 360, 361, 2_160, 9_360, 95_760] {
        harness.send(&Sent::event("evt_1").aged(age)).await;
    }
    let sum = value(&recorder, "hookgate_stale_age_seconds_sum");
    assert_eq!(sum, Some(108_001.0));
    let buckets = of(&recorder, "hookgate_stale_age_seconds_bucket");
    let at_most = |seconds: f64| buckets[&format!("le={seconds}")];
    for (above, below, found) in [
        (350.0, 420.0, 2.0),
        (2_150.0, 2_250.0, 1.0),
        (9_350.0, 9_450.0, 1.0),
        (95_700.0, 95_900.0, 1.0),
    ] {
        assert_eq!(at_most(below) - at_most(above), found, "{below}");
    }
}

#[tokio::test(start_paused = true)]
async fn keys_and_scopes_have_labels_up_to_their_limit() {
    let recorder = recorder();
    let _installed = install(&recorder);
    let clock = TokioClock::start();
    let names: Vec<&'static str> = (0..66)
        .map(|number| &*format!("wh_{number:02}").leak())
        .collect();
    let secret = |name: &str| format!("whsec_made_up_secret_of_{name}");
    let ring = |name: &&'static str| (*name, Secret::new(&secret(name)).unwrap());
    let receiver = Receiver::builder()
        .subscriptions(names.iter().map(ring))
        .clock(clock.clone())
        .store(MemoryStore::default().with_clock(clock.clone()))
        .build()
        .unwrap();
    let handler = post(async |_: Delivery| OK).layer(receiver.layer());
    let app = Router::new().route("/webhooks", handler);
    for name in &names {
        let sent = Sent::event(name).signed_by(secret(name).leak()).of(name);
        let answer = app.clone().oneshot(sent.request(&clock)).await.unwrap();
        assert_eq!(answer.status(), 204);
    }
    let mut counted = of(&recorder, "hookgate_deliveries_total");
    assert_eq!(counted.len(), 65);
    counted.retain(|labels, _| labels.contains("key=other"));
    assert!(counted.into_values().eq([2.0]));
}

#[tokio::test(start_paused = true)]
async fn nothing_that_a_sender_writes_becomes_a_label() {
    const MARKER: &str = "marker_7f3a9c";
    let recorder = recorder();
    let _installed = install(&recorder);
    let clock = TokioClock::start();
    let secret = |text| Secret::new(text).unwrap();
    let orders = KeyRing::named("2026-11", secret(SECRET)).unwrap();
    let orders = orders
        .with_key("2026-05", secret("whsec_made_up_old_secret"))
        .unwrap();
    let invoices = KeyRing::new(secret("whsec_made_up_for_invoices"));
    let receiver = Receiver::builder()
        .subscriptions([("wh_orders", orders), ("wh_invoices", invoices)])
        .clock(clock.clone())
        .store(MemoryStore::default().with_clock(clock.clone()))
        .build()
        .unwrap();
    let handler = async |event: Event| match event.event_type().contains("7f3a9c_3") {
        true => Err(DeadLetter::new(MARKER)),
        false => Ok(OK),
    };
    let app = Router::new().route("/webhooks", post(handler).layer(receiver.layer()));
    let mut series = Vec::new();
    for round in 0..3 {
        for number in 0..20 {
            let text = format!("{MARKER}_{number}_{round}");
            let sent = Sent::event(&text).of("wh_orders");
            let body = sent.body.replace("row.deleted", &text);
            let sent = sent.with_body(body);
            let known = number % 2 == 0;
            let mut request = sent.request(&clock);
            let headers = request.headers_mut();
            headers.insert("x-service-event-id", text.parse().unwrap());
            headers.insert("x-service-event-type", text.parse().unwrap());
            if !known {
                let unknown = format!("wh_{text}").parse().unwrap();
                headers.insert("x-service-webhook-id", unknown);
            }
            let status = app.clone().oneshot(request).await.unwrap().status();
            assert_eq!(status == 401, !known, "{status}");
            // An unknown method.
            let odd = Request::builder().method(text.as_str()).uri("/webhooks");
            let odd = odd.body(Body::empty()).unwrap();
            assert_eq!(app.clone().oneshot(odd).await.unwrap().status(), 405);
        }
        receiver.record_metrics();
        series.push(scrape(&recorder).into_keys().collect::<Vec<_>>());
    }
    // The second and third round of twenty senders have added not one.
    assert_eq!(series[0], series[2]);
    let text = recorder.handle().render();
    for needle in [MARKER, "evt_", "whsec_", "row_1", "ws_1"] {
        assert!(!text.contains(needle), "{needle} in {text}");
    }
    assert!(text.contains("event_type=\"other\""), "{text}");
}

#[cfg(feature = "lookup")]
#[tokio::test(start_paused = true)]
async fn what_is_looked_up_is_counted_as_the_docs_say() {
    let recorder = recorder();
    let _installed = install(&recorder);
    let provider = async |id: hookgate::lookup::SubscriptionId| {
        sleep(Duration::from_millis(500)).await;
        let known = id.as_str() == "wh_1";
        known.then(|| Secret::new(SECRET)).transpose()
    };
    let harness = Harness::without_secret(|builder, _| builder.provider(provider), in_turn(&[204]));
    let from = |subscription, id| Sent::event(id).of(subscription);
    let lookups = || {
        harness.receiver.record_metrics();
        let all = scrape(&recorder).into_iter();
        let all = all.map(|(name, value)| (name.replace("receiver=\"default\"", ""), value));
        all.filter(|(name, _)| name.starts_with("hookgate_lookups"))
            .collect::<BTreeMap<_, _>>()
    };
    let mut expected = is(&[
        ("hookgate_lookups_active{}", 2.0),
        ("hookgate_lookups_cached{,answer=\"found\"}", 0.0),
        ("hookgate_lookups_cached{,answer=\"unknown\"}", 0.0),
        ("hookgate_lookups_evictions_total{}", 0.0),
        ("hookgate_lookups_waiting{}", 0.0),
    ]);
    let begun = [
        harness.begin(&from("wh_1", "evt_1")).await,
        harness.begin(&from("wh_1", "evt_2")).await,
        harness.begin(&from("wh_2", "evt_3")).await,
    ];
    assert_eq!(lookups(), expected);
    let mut statuses = Vec::new();
    for answer in begun {
        statuses.push(answer.await.unwrap().status().as_u16());
    }
    assert_eq!(statuses, [204, 204, 401]);
    expected.extend(is(&[
        ("hookgate_lookups_active{}", 0.0),
        ("hookgate_lookups_cached{,answer=\"found\"}", 1.0),
        ("hookgate_lookups_cached{,answer=\"unknown\"}", 1.0),
        ("hookgate_lookups_waiting{}", 0.0),
    ]));
    assert_eq!(lookups(), expected);

    let docs = include_str!("../../docs/operations.md");
    for name in expected.keys() {
        let (name, labels) = name.split_once('{').unwrap();
        let kind = if name.ends_with("_total") {
            "counter"
        } else {
            "gauge"
        };
        let label = if labels == "}" { " " } else { " `answer` " };
        let line = format!("| `{name}` | {kind} |{label}|");
        assert!(docs.contains(&line), "{line}");
    }
}

#[cfg(feature = "inbox")]
#[tokio::test]
async fn what_an_inbox_does_is_counted_as_the_docs_say() {
    use hookgate::{HandlerError, sink::Sink};
    use hookgate_inbox::Workers;
    use hookgate_sqlite::open_inbox;

    let recorder = recorder();
    let _installed = install(&recorder);
    let folder = crate::support::Folder::new("inbox-metrics");
    let inbox = open_inbox(folder.file("inbox.db")).unwrap();
    for (id, event_type) in [
        ("evt_good", "row.created"),
        ("evt_dead", "made.up"),
        ("evt_bad", "row.updated"),
    ] {
        let body = format!(r#"{{"id":"{id}","type":"{event_type}"}}"#);
        let delivery = hookgate_testing::delivery(&body).unwrap();
        let retain = Duration::from_secs(3_600);
        inbox.accept(&delivery, retain).await.unwrap();
    }
    let held = async || {
        inbox.record_metrics("orders").await.unwrap();
        let mut scraped = scrape(&recorder);
        // Durations depend on the machine.
        scraped.retain(|name, _| !name.contains("_seconds"));
        let name = |name: String| name.replace("{inbox=\"orders\"", "{").replace("{,", "{");
        let short = scraped
            .into_iter()
            .map(|(sample, value)| (name(sample).replace("hookgate_inbox_", ""), value));
        short.collect::<BTreeMap<_, _>>()
    };
    let mut expected = is(&[
        ("dead_letters_total{}", 0.0),
        ("lost_leases_total{}", 0.0),
        ("entries{state=\"queued\"}", 3.0),
        ("entries{state=\"retrying\"}", 0.0),
        ("entries{state=\"running\"}", 0.0),
        ("entries{state=\"dead\"}", 0.0),
        ("entries{state=\"done\"}", 0.0),
    ]);
    assert_eq!(held().await, expected);
    assert!(scrape(&recorder)["hookgate_inbox_oldest_age_seconds{inbox=\"orders\"}"] < 3_600.0);

    let (told, mut settled) = tokio::sync::mpsc::unbounded_channel();
    let running = Workers::new(&inbox)
        .metrics_name("orders")
        .on_settled(move |tried| told.send(tried.disposition).unwrap())
        .start_handler(async |delivery: Delivery| match delivery.event_id() {
            "evt_good" => Ok(()),
            "evt_dead" => Err(Err(DeadLetter::new("no such customer"))),
            _ => Err(Ok(HandlerError::from("made up"))),
        })
        .unwrap();
    for _ in 0..3 {
        settled.recv().await.unwrap();
    }
    running.shutdown(Duration::from_secs(30)).await;
    expected.extend(is(&[
        ("dead_letters_total{}", 1.0),
        ("entries{state=\"queued\"}", 0.0),
        ("entries{state=\"retrying\"}", 1.0),
        ("entries{state=\"dead\"}", 1.0),
        ("entries{state=\"done\"}", 1.0),
    ]));
    for (outcome, reason, disposition) in [
        ("handled", "none", "done"),
        ("dead_lettered", "none", "dead"),
        ("failed", "handler_status", "retry"),
    ] {
        let labels = format!("outcome={outcome:?},reason={reason:?},disposition={disposition:?}");
        expected.insert(format!("tries_total{{{labels}}}"), 1.0);
    }
    assert_eq!(held().await, expected);
    let text = recorder.handle().render();
    for labels in [
        "outcome=\"handled\",event_type=\"row.created\"",
        "outcome=\"dead_lettered\",event_type=\"other\"",
        "outcome=\"failed\",event_type=\"row.updated\"",
    ] {
        let count = format!(
            "hookgate_inbox_handler_duration_seconds_count{{inbox=\"orders\",{labels}}} 1\n"
        );
        assert!(text.contains(&count), "{count} in {text}");
    }
    assert!(!text.contains("evt_") && !text.contains("made"), "{text}");

    // Each metric that is served, and the one that is served only where a store fails, has its line
    // in the docs, with its type and labels; each line of the docs is served.
    let docs = include_str!("../../docs/operations.md");
    let mut types: BTreeMap<_, _> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .collect();
    types.insert("hookgate_inbox_store_failures_total", "counter");
    let labels = |name: &str| match name.trim_start_matches("hookgate_inbox_") {
        "entries" => "`inbox`, `state`",
        "tries_total" => "`inbox`, `outcome`, `reason`, `disposition`",
        "handler_duration_seconds" => "`inbox`, `outcome`, `event_type`",
        "store_failures_total" => "`inbox`, `call`",
        _ => "`inbox`",
    };
    for (name, kind) in &types {
        let line = format!("| `{name}` | {kind} | {} |", labels(name));
        assert!(docs.contains(&line), "{line}");
    }
    assert_eq!(docs.matches("\n| `hookgate_inbox_").count(), types.len());
}

#[tokio::test(start_paused = true)]
async fn gauges_report_the_state_at_the_time_of_the_call() {
    let recorder = recorder();
    let _installed = install(&recorder);
    let harness = Harness::new(
        |builder, clock| {
            builder
                .store(MemoryStore::new(1).with_clock(clock.clone()))
                .max_runs(3)
        },
        |_, _| ok_after(2),
    );
    let now = || {
        harness.receiver.record_metrics();
        let mut all = scrape(&recorder);
        let others = ["_total", "_bucket", "_sum", "_count"];
        all.retain(|name, _| !others.iter().any(|end| name.contains(end)));
        let all = all.into_iter().map(|(name, value)| {
            let name = name.replace("receiver=\"default\"", "");
            (name.replace("hookgate_", "").replace("{}", ""), value)
        });
        all.collect::<BTreeMap<_, _>>()
    };
    let mut expected = is(&[
        ("active_runs", 0.0),
        ("active_runs_limit", 3.0),
        ("attempt_timeout_seconds", 5.0),
        ("body_bytes", 0.0),
        ("body_bytes_limit", 67_108_864.0),
        ("ready", 1.0),
        ("retention_needed_seconds", 96_390.0),
        ("retention_seconds", 172_800.0),
        ("started_timestamp_seconds", 1_763_690_000.0),
        ("store_claims", 0.0),
        ("store_records", 0.0),
        ("store_records_limit", 1.0),
        ("unready{,reason=\"draining\"}", 0.0),
        ("unready{,reason=\"no_permit_free\"}", 0.0),
        ("unready{,reason=\"store_failing\"}", 0.0),
        ("waiting_copies", 0.0),
        ("waiting_copies_limit", 64.0),
    ]);
    // No delivery has come yet: the time of the last one is absent, and not false.
    pass(10_000).await;
    assert_eq!(now(), expected);

    let runs = [
        harness.begin(&Sent::event("evt_1")).await,
        harness.begin(&Sent::event("evt_2")).await,
    ];
    let copy = harness.begin(&Sent::event("evt_1")).await;
    let mut change = |changes: &[(&str, f64)]| {
        expected.extend(is(changes));
        assert_eq!(now(), expected);
    };
    change(&[
        ("active_runs", 2.0),
        ("last_authentic_timestamp_seconds", 1_763_690_010.0),
        ("store_claims", 2.0),
        ("waiting_copies", 1.0),
    ]);
    for run in runs {
        assert_eq!(run.await.unwrap().status(), 204);
    }
    // The second commit has pushed the first one out, so the copy runs again, for two seconds.
    pass(1_000).await;
    change(&[
        ("active_runs", 1.0),
        ("last_accepted_timestamp_seconds", 1_763_690_012.0),
        ("store_claims", 1.0),
        ("store_records", 1.0),
        ("store_last_eviction_age_seconds", 0.0),
        ("store_youngest_eviction_age_seconds", 0.0),
        ("waiting_copies", 0.0),
    ]);
    let evicted = || value(&recorder, "hookgate_store_evictions_total");
    assert_eq!(evicted(), Some(1.0));
    copy.await.unwrap();
    pass(100_000).await;
    harness.send(&Sent::event("evt_3")).await;
    harness.receiver.drain(Duration::ZERO).await;
    let last = now();
    assert_eq!(last["store_youngest_eviction_age_seconds"], 0.0);
    let age = last["store_last_eviction_age_seconds"];
    assert!((102.0..104.0).contains(&age), "{age}");
    assert_eq!(last["ready"], 0.0);
    assert_eq!(last["unready{,reason=\"draining\"}"], 1.0);
    assert_eq!(evicted(), Some(3.0));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_say_is_not_guessed_at() {
    let begins = |harness: &Harness, begin: &str| {
        let recorder = recorder();
        let _installed = install(&recorder);
        harness.receiver.record_metrics();
        scrape(&recorder).keys().any(|name| name.starts_with(begin))
    };
    let store = crate::support::CountingStore::default();
    let silent = Harness::new(move |builder, _| builder.store(store), in_turn(&[204]));
    assert!(!begins(&silent, "hookgate_store"));
    assert!(begins(&silent, "hookgate_retention"));
    let forgets =
        |builder: hookgate::ReceiverBuilder, _: &TokioClock| builder.without_deduplication();
    let forgets = Harness::without_store(forgets, in_turn(&[204]));
    assert!(!begins(&forgets, "hookgate_retention"));
}

#[tokio::test(start_paused = true)]
async fn two_receivers_have_two_names() {
    let recorder = recorder();
    let _installed = install(&recorder);
    let named = |name| Harness::new(|builder, _| builder.metrics_name(name), in_turn(&[204]));
    let [orders, invoices] = ["orders", "invoices"].map(named);
    orders.send(&Sent::event("evt_1")).await;
    invoices.receiver.drain(Duration::ZERO).await;
    for harness in [&orders, &invoices] {
        harness.receiver.record_metrics();
    }
    let scraped = scrape(&recorder);
    assert_eq!(scraped["hookgate_ready{receiver=\"orders\"}"], 1.0);
    assert_eq!(scraped["hookgate_ready{receiver=\"invoices\"}"], 0.0);
    assert!(
        scraped.keys().all(|name| name.contains("{receiver=\"")),
        "{scraped:?}"
    );
}

#[test]
fn buckets_rise_and_end_where_the_sender_gives_up() {
    assert!(DURATION_BUCKETS.windows(2).all(|pair| pair[0] < pair[1]));
    let schedule = hookgate::dedupe::RetrySchedule::default();
    let gives_up = schedule.attempt_timeout().as_secs_f64();
    assert_eq!(DURATION_BUCKETS.last(), Some(&gives_up));
    assert!(DURATION_BUCKETS.contains(&4.5), "the default budget");
}
