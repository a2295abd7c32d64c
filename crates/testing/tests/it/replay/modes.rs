//! At the recorded time, signed again, or raw; and logs that can't be replayed, which fail before a
//! delivery goes out.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use hookgate::receiver::{Admission, RequestHead};
use hookgate::{
    Delivery, KeyRing, MemoryStore, Receiver, Refusal, Secret, WebhookLayer,
    clock::{Clock, SystemClock, UnixSeconds},
    lookup::Keys,
};
use hookgate_record::{LoggedAnswer, LoggedDelivery};
use hookgate_testing::replay::{ReplayError, ReplayErrorKind as Kind, Report};
use hookgate_testing::{Faults, Harness, Replay};
use http::StatusCode;
use http_body_util::{BodyExt, Full};

use super::apps::{Effects, forgetful, forgetfully, in_memory};
use super::*;
use crate::says;

#[tokio::test(start_paused = true)]
async fn a_log_is_replayed_as_it_was_recorded() {
    let effects = Effects::default();
    let began = std::time::Instant::now();
    let report = forgetfully(play(small_log()), &effects).await;
    assert!(report.each_event_committed_once(), "{report}");
    assert!(effects.each_once(5));
    assert_eq!((report.events().len(), report.runs()), (5, 5));
    assert_eq!(report.answered_otherwise().count(), 0, "{report}");
    let copied = report.event("evt_2").unwrap();
    let outcomes: Vec<_> = copied.attempts.iter().map(|it| &*it.outcome).collect();
    assert_eq!(outcomes, ["handled", "replayed"]);
    assert_eq!(copied.lines, [2, 3]);
    let [forged] = &report.others[..] else {
        panic!("{report}");
    };
    assert_eq!((forged.line, forged.authentic, forged.runs), (4, false, 0));
    assert_eq!(forged.attempts[0].status, Some(401));
    assert_eq!(forged.attempts.len(), 1, "nobody tries a forged one again");
    let really = began.elapsed();
    assert!(really < Duration::from_secs(60), "two minutes passed");
}

/// The receiver's clock, and a store's, stand at each delivery's own time.
#[tokio::test(start_paused = true)]
async fn the_clock_stands_where_each_delivery_was_received() {
    let (day, seen) = (24 * 3_600, Arc::<Mutex<Vec<i64>>>::default());
    // The third was logged late, as one that took long to answer.
    let deliveries = [("evt_1", 0), ("evt_2", 3 * day), ("evt_3", 2 * day)];
    let deliveries = deliveries.map(|(id, after)| logged(id, after));
    let report = play(log(deliveries))
        .against(|harness| {
            let (clock, seen) = (harness.clock(), Arc::clone(&seen));
            let handler = move |delivery: Delivery| {
                assert_eq!(delivery.received_at(), clock.now());
                seen.lock().unwrap().push(clock.now().as_i64() - NOW);
                async { StatusCode::NO_CONTENT }
            };
            let guard = harness.layer(in_memory(&harness))?;
            Ok::<_, ReplayError>(Router::new().route("/webhooks", post(handler).layer(guard)))
        })
        .await
        .unwrap();
    assert!(report.each_event_committed_once(), "{report}");
    assert_eq!(*seen.lock().unwrap(), [0, 2 * day, 3 * day]);
}

/// No header and no extension moves a receiver's clock, not even under replay.
#[tokio::test(start_paused = true)]
async fn nothing_in_a_request_sets_the_time() {
    use tower::ServiceExt;

    let clock = hookgate::clock::ManualClock::at(UnixSeconds::new(NOW + 301));
    let receiver = Receiver::builder()
        .secret(secret())
        .store(MemoryStore::default())
        .clock(clock.clone())
        .build()
        .unwrap();
    let handler = async |_: Delivery| StatusCode::NO_CONTENT;
    let app = Router::new().route("/webhooks", post(handler).layer(receiver.layer()));
    let stale = || {
        let signer = Signer::new(secret()).at(UnixSeconds::new(NOW));
        signer.request("/webhooks", body("evt_1"))
    };
    let (then, text) = (UnixSeconds::new(NOW), NOW.to_string());
    let replay = Replay::of(log([logged("evt_1", 0)])).clock();
    let mut request = stale();
    let date = "Fri, 21 Nov 2025 01:53:20 GMT";
    for (name, value) in [
        ("date", date),
        ("x-service-now", &text),
        ("x-service-time", &text),
        ("x-service-received-at", &text),
        ("x-received-at", &text),
        ("x-hookgate-now", &text),
        ("x-hookgate-replay", "1"),
        ("x-replay-at", &text),
        ("age", "0"),
        ("x-request-start", &text),
    ] {
        request.headers_mut().append(name, value.parse().unwrap());
    }
    let extensions = request.extensions_mut();
    extensions.insert(then);
    extensions.insert(replay.clone());
    extensions.insert(hookgate::clock::ManualClock::at(then));
    extensions.insert(hookgate_testing::TokioClock::starting_at(then));
    extensions.insert(Arc::new(replay) as Arc<dyn Clock>);
    extensions.insert(logged("evt_1", 0));
    let answer = app.clone().oneshot(request.map(axum::body::Body::from));
    assert_eq!(answer.await.unwrap().status(), 401);
    // Only its age was wrong.
    clock.set_wall(UnixSeconds::new(NOW + 300));
    let answer = app.oneshot(stale().map(axum::body::Body::from)).await;
    assert_eq!(answer.unwrap().status(), 204);
}

#[tokio::test(start_paused = true)]
async fn an_old_log_can_be_signed_again() {
    // Refused as stale when it was recorded, and now by its recorded signature too.
    let mut late = logged_at("evt_1", NOW, NOW - 1_000);
    late.answer = Some(answer(401, "not_authentic"));
    let replay = |late: &LoggedDelivery| {
        let log = log([late.clone(), forged("evt_2", 1)]);
        play(log)
    };
    let effects = Effects::default();
    let report = forgetfully(
        replay(&late).schedule(hookgate::dedupe::RetrySchedule::new([])),
        &effects,
    )
    .await;
    assert_eq!(report.never().count(), 1, "{report}");
    assert!(report.events[0].attempts[0].outside_window);
    assert_eq!(effects.of("evt_1"), 0);
    let report = forgetfully(replay(&late).resigned(), &effects).await;
    assert!(report.each_event_committed_once(), "{report}");
    // The forged one is still forged.
    assert_eq!((report.events().len(), report.others[0].runs), (1, 0));
    assert_eq!(report.others[0].attempts[0].status, Some(401));
}

#[tokio::test(start_paused = true)]
async fn a_log_replayed_raw_gets_no_delivery_in() {
    let effects = Effects::default();
    for at in [None, Some(NOW + 500), Some(NOW - 500)] {
        let mut replay = play(small_log()).raw();
        if let Some(at) = at {
            replay = replay.at(UnixSeconds::new(at));
        }
        let clock = replay.clock();
        let report = replay
            .against(|harness| forgetful(&harness, &effects))
            .await
            .unwrap();
        assert_eq!(report.runs(), 0, "{report}");
        assert_eq!(report.attempts().count(), 7, "and nobody tries again");
        assert!(report.attempts().all(|it| it.status == Some(401)));
        assert_eq!(report.never().count(), 5);
        if at.is_none() {
            assert!(clock.now() >= UnixSeconds::new(SystemClock.now().as_i64() - 60));
        }
    }
    // Within the window the result is as recorded.
    let report = forgetfully(
        play(small_log()).raw().at(UnixSeconds::new(NOW + 100)),
        &effects,
    )
    .await;
    assert!(report.each_event_committed_once(), "{report}");
}

#[tokio::test(start_paused = true)]
async fn redacted_deliveries_are_named_or_signed_again() {
    let redacted = |id: &str, after| {
        let mut redacted = logged(id, after);
        let body = body(id).replace("Ada", "***");
        redacted.body = Some(body.into());
        redacted.unverifiable = true;
        redacted
    };
    let mut refused = redacted("evt_9", 2);
    refused.answer = Some(answer(401, "not_authentic"));
    let mut imported = redacted("evt_3", 3);
    (imported.headers, imported.answer) = (Vec::new(), None);
    let deliveries = [logged("evt_1", 0), redacted("evt_2", 1), refused, imported];
    let effects = Effects::default();
    let replay = || play(log(deliveries.clone()));
    let error = replay().against(|harness| forgetful(&harness, &effects));
    let error = error.await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unverifiable);
    assert_eq!(error.lines(), &[2, 3, 4][..]);
    assert!(error.to_string().ends_with(": line 2, 3, 4"), "{error}");
    let signed_again = forgetfully(replay().resign_unverifiable(), &effects).await;
    let all = forgetfully(replay().resigned(), &effects).await;
    for report in [signed_again, all] {
        assert!(report.each_event_committed_once(), "{report}");
        // A delivery that was refused as not authentic can't be checked any more, and is not
        // signed.
        assert_eq!((report.events().len(), report.others.len()), (3, 1));
        assert_eq!(report.others[0].attempts[0].status, Some(401));
    }
}

// fault X2: a replay signs an empty body for a delivery whose body was not recorded, and sends it
#[tokio::test(start_paused = true)]
async fn a_delivery_without_a_recorded_body_is_never_signed() {
    let mut lost = logged("evt_2", 1);
    (lost.body, lost.unverifiable) = (None, true);
    // Refused for its size: its body was not read.
    let mut large = logged("evt_3", 2);
    (large.body, large.answer) = (None, Some(LoggedAnswer::new(413, "body_too_large")));
    let replay = || {
        let log = log([logged("evt_1", 0), lost.clone(), large.clone()]);
        play(log)
    };
    let effects = Effects::default();
    let recorded = forgetfully(replay(), &effects).await;
    let resigned = forgetfully(replay().resigned(), &effects).await;
    for report in [recorded, resigned] {
        assert!(report.each_event_committed_once(), "{report}");
        assert_eq!((report.attempts().count(), report.skipped), (1, 2));
        says(&report, "2 skipped, whose body");
    }
}

#[tokio::test(start_paused = true)]
async fn each_subscription_is_signed_with_its_own_secret() {
    let other = || Secret::new("whsec_made_up_for_invoices").unwrap();
    let of = |id: &str, secret: Secret, event: &str, after: i64| {
        let at = UnixSeconds::new(NOW + after);
        let headers = Signer::new(secret)
            .subscription(id)
            .at(at)
            .headers(body(event));
        let mut logged = LoggedDelivery::new(at, headers, body(event));
        logged.target = "/webhooks".into();
        logged
    };
    let deliveries = [
        of("wh_1", secret(), "evt_1", 0),
        of("wh_2", other(), "evt_1", 1), // the same id under another subscription is another event
        of("wh_2", secret(), "evt_2", 2),
    ];
    let effects = Effects::default();
    let replay = || {
        let replay = Replay::of(log(deliveries.clone()));
        let replay = replay.subscription("wh_1", secret());
        replay.subscription("wh_2", other())
    };
    let recorded = forgetfully(replay(), &effects).await;
    let resigned = forgetfully(replay().resigned(), &effects).await;
    for report in [recorded, resigned] {
        assert!(report.each_event_committed_once(), "{report}");
        let scopes: Vec<_> = report.events().iter().map(|it| &*it.scope).collect();
        assert_eq!(scopes, ["wh_1", "wh_2"]);
        assert_eq!((report.others.len(), report.others[0].runs), (1, 0));
    }
    // A key ring of the user verifies, the secrets sign.
    let scoped = KeyRing::new(secret()).with_scope("orders").unwrap();
    let report = forgetfully(
        play(log([logged("evt_1", 0)]))
            .keys(Keys::single(scoped))
            .resigned(),
        &effects,
    )
    .await;
    assert!(report.each_event_committed_once(), "{report}");
    assert_eq!(report.events()[0].scope, "orders");
}

#[tokio::test(start_paused = true)]
async fn a_rotated_log_is_signed_again_by_the_key_that_had_signed() {
    let old = || Secret::new("whsec_made_up_old_secret").unwrap();
    let at = UnixSeconds::new(NOW);
    let headers = Signer::new(old()).at(at).headers(body("evt_1"));
    let mut first = LoggedDelivery::new(at, headers, body("evt_1"));
    first.target = "/webhooks".into();
    first.answer = Some(answer(204, "handled"));
    first.answer.as_mut().unwrap().key = Some("2026-05".into());
    let replay = || {
        Replay::of(log([first.clone(), logged("evt_2", 1)]))
            .named_secret("2026-11", secret())
            .named_secret("2026-05", old())
    };
    let effects = Effects::default();
    let recorded = forgetfully(replay(), &effects).await;
    assert!(recorded.each_event_committed_once());
    let keys = Arc::<Mutex<Vec<String>>>::default();
    let told = Arc::clone(&keys);
    let report = replay()
        .resigned()
        .against(|harness| {
            let keys = Arc::clone(&told);
            let handler = move |delivery: Delivery| {
                let key = delivery.verified().key_name().to_owned();
                keys.lock().unwrap().push(key);
                async { StatusCode::NO_CONTENT }
            };
            let guard = harness.layer(Receiver::builder().store(MemoryStore::default()))?;
            Ok::<_, ReplayError>(Router::new().route("/webhooks", post(handler).layer(guard)))
        })
        .await
        .unwrap();
    assert!(report.each_event_committed_once(), "{report}");
    assert_eq!(*keys.lock().unwrap(), ["2026-05", "2026-11"]);
}

#[tokio::test(start_paused = true)]
async fn what_can_not_be_replayed_is_said_before_a_delivery_goes_out() {
    let effects = Effects::default();
    let none = |_: Harness| -> Result<Router, ReplayError> { panic!("no app is needed") };
    let kind = |error: Result<Report, ReplayError>| error.unwrap_err().kind();

    let empty = play(log([])).against(none);
    assert_eq!(kind(empty.await), Kind::Empty);
    let nothing = play(small_log()).only(|_| false);
    assert_eq!(kind(nothing.against(none).await), Kind::Empty);
    let without = Replay::of(small_log()).against(none);
    assert_eq!(kind(without.await), Kind::NoSecret);
    let mixed = play(small_log());
    let mixed = mixed.subscription("wh_1", secret()).against(none);
    assert_eq!(kind(mixed.await), Kind::Keys);
    let twice = play(small_log()).secret(secret());
    assert_eq!(kind(twice.against(none).await), Kind::Keys);

    let wrong = Secret::new("whsec_made_up_and_not_the_logs").unwrap();
    let wrong = Replay::of(small_log()).secret(wrong).against(none).await;
    let error = wrong.unwrap_err();
    // The forged one was not authentic then either.
    assert_eq!(error.kind(), Kind::WrongSecret);
    assert_eq!(error.lines(), &[1, 2, 3, 5, 6, 7][..]);
    assert!(!format!("{error:?}").contains("whsec"), "{error:?}");

    let mut bad = [logged("evt_1", 0), logged("evt_2", 0), logged("evt_3", 0)];
    bad[0].target = "no path\n".into();
    bad[1].headers.push(("x-odd".into(), "line\nbreak".into()));
    bad[2].received_at = UnixSeconds::new(-5);
    let unsendable = play(log(bad)).against(none).await;
    let error = unsendable.unwrap_err();
    assert_eq!(error.kind(), Kind::Unsendable);
    assert_eq!(error.lines(), &[1, 2, 3][..]);

    let replay = || play(small_log());
    let without = replay().against(|harness: Harness| {
        let layer = harness.layer(Receiver::builder().without_deduplication())?;
        let handler = async || StatusCode::NO_CONTENT;
        Ok::<_, ReplayError>(Router::new().route("/webhooks", post(handler).layer(layer)))
    });
    let error = without.await.unwrap_err();
    assert_eq!(error.kind(), Kind::NoDeduplication);
    says(&error, ".without_deduplication()");
    let unset = replay().against(|harness: Harness| {
        harness.receiver(Receiver::builder())?;
        forgetful(&harness, &effects)
    });
    let error = unset.await.unwrap_err();
    assert_eq!(error.kind(), Kind::Settings);
    says(format!("{error:?}"), "no store");
    let store = MemoryStore::default();
    let other = Secret::new("whsec_made_up_for_another_route").unwrap();
    let other = Receiver::builder().secret(other).store(store.clone());
    let _other = other.build().unwrap();
    let shared = replay().against(|harness: Harness| {
        // The scope that a user names goes with the user's keys, which are not these.
        let settings = Receiver::builder().scope("ledger").store(store.clone());
        harness.receiver(settings)?;
        forgetful(&harness, &effects)
    });
    let error = shared.await.unwrap_err();
    assert_eq!(error.kind(), Kind::Settings);
    says(format!("{error:?}"), ".scope(");
    let failed = replay().against(|_| Err::<Router, _>("no database"));
    let error = failed.await.unwrap_err();
    assert_eq!(error.kind(), Kind::App);
    assert!(format!("{error:?}").ends_with("no database"), "{error:?}");
    // The box that an app's own code returns, and an error of the library.
    type Boxed = Box<dyn std::error::Error>;
    let boxed = replay().against(|_| Err::<Router, Boxed>("no file".into()));
    assert!(format!("{:?}", boxed.await.unwrap_err()).ends_with("no file"));
    let config = replay().against(|_| {
        Secret::new("tk_live_0123456789abcdef")?;
        Ok::<Router, Boxed>(Router::new())
    });
    let error = config.await.unwrap_err();
    says(format!("{error:?}"), "this is an API key");
    let inner = replay().against(|harness| {
        let settings = Receiver::builder();
        harness.receiver(settings)?;
        Ok::<Router, Boxed>(Router::new())
    });
    assert_eq!(inner.await.unwrap_err().kind(), Kind::Settings);
    let unguarded = replay().against(|_| Ok::<_, ReplayError>(Router::new()));
    assert_eq!(kind(unguarded.await), Kind::NoReceiver);
}

/// The function that makes the router is that of production: it takes the layer, or the receiver.
#[tokio::test(start_paused = true)]
async fn an_app_of_production_is_replayed_as_it_is() {
    fn router(guard: WebhookLayer) -> Router {
        let handler = async |_: Delivery| StatusCode::NO_CONTENT;
        Router::new().route("/webhooks", post(handler).layer(guard))
    }
    fn production(receiver: &Receiver) -> Router {
        router(receiver.layer())
    }
    let settings = || Receiver::builder().store(MemoryStore::default());
    let _ = production(&settings().secret(secret()).build().unwrap());
    let replay = || {
        let faults = Faults::seeded(1).share(1.0).handler_fails(1);
        play(small_log()).with(faults)
    };
    let by_layer = replay().against(|harness| harness.layer(settings()).map(router));
    let by_receiver = replay().against(|harness| {
        let receiver = harness.receiver(settings())?;
        Ok::<_, ReplayError>(production(&receiver))
    });
    for report in [by_layer.await.unwrap(), by_receiver.await.unwrap()] {
        assert!(report.each_event_committed_once(), "{report}");
        assert!(report.runs_were_seen && report.runs() == 10, "{report}");
    }
}

async fn by_steps(
    receiver: Receiver,
    request: http::Request<Full<Bytes>>,
) -> Result<http::Response<Full<Bytes>>, Infallible> {
    let status = match handled_by_steps(&receiver, request).await {
        Ok(status) => status,
        Err(refusal) => refusal.kind().status(),
    };
    let answer = http::Response::builder().status(status);
    Ok(answer.body(Full::default()).unwrap())
}

async fn handled_by_steps(
    receiver: &Receiver,
    request: http::Request<Full<Bytes>>,
) -> Result<u16, Refusal> {
    let (head, body) = request.into_parts();
    let pairs = head.headers.iter();
    let pairs = pairs.map(|(name, value)| (name.as_str(), value.as_bytes()));
    let head = RequestHead::new(head.method.as_str(), pairs);
    let mut received = receiver.check_head(&head)?;
    received.push(body.collect().await.unwrap().to_bytes())?;
    let delivery = receiver.verify(received, &head)?;
    match receiver.admit(&delivery).await? {
        Admission::Fresh(claim) => {
            claim.commit().await.unwrap();
            Ok(204)
        }
        Admission::Replayed { .. } => Ok(200),
        _ => Ok(503),
    }
}

/// Of a server that calls the steps itself only the commits are seen.
#[tokio::test(start_paused = true)]
async fn an_app_that_calls_the_steps_itself_is_seen_by_its_commits() {
    let report = play(small_log()).against(|harness| {
        let receiver = harness.receiver(in_memory(&harness))?;
        Ok::<_, ReplayError>(tower::service_fn(move |request| {
            by_steps(receiver.clone(), request)
        }))
    });
    let report = report.await.unwrap();
    assert!(report.each_event_committed_once(), "{report}");
    assert!(!report.runs_were_seen && report.runs() == 0);
    says(&report, "runs were not");
}

#[tokio::test]
async fn time_that_is_not_paused_is_an_error_that_names_the_fix() {
    let effects = Effects::default();
    let replay = || play(log([logged("evt_1", 0), logged("evt_2", 3_600)]));
    let running = replay()
        .against(|harness| forgetful(&harness, &effects))
        .await;
    let error = running.unwrap_err();
    assert_eq!(error.kind(), Kind::TimeNotPaused);
    says(&error, "start_paused = true");
    // Or on purpose, with the long waits cut short.
    let began = std::time::Instant::now();
    let replay = replay().in_real_time(Duration::from_millis(20));
    let clock = replay.clock();
    let report = replay
        .against(|harness| forgetful(&harness, &effects))
        .await
        .unwrap();
    assert!(report.each_event_committed_once(), "{report}");
    assert!(clock.now() >= UnixSeconds::new(NOW + 3_600));
    assert!(began.elapsed() < Duration::from_secs(60));
}
