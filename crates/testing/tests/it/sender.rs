//! The sender delivers as the specification requires, second by second, and reports the result of
//! each event.

mod process;
mod receivers;

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookgate::{Secret, clock::UnixSeconds, dedupe::RetrySchedule};
use hookgate_testing::factory::EventFactory;
use hookgate_testing::sender::Disposition::{Delivered, Discarded};
use hookgate_testing::sender::{
    AttemptEnd, Disposition, NetworkFault, NetworkFaults, Reading, RetryTimestamps, Sender,
    SenderBuilder, SenderErrorKind, SenderReport, SentEvent, Subscription,
};
use hookgate_testing::{Signer, TokioClock};
use http::StatusCode;
use tokio::time::Instant;

use crate::says;
use receivers::{Gate, Plain, START};

const SECRET: &str = "whsec_made_up_for_the_sender";
const MINUTE: u64 = 60;
const HOUR: u64 = 3_600;

fn secret() -> Secret {
    Secret::new(SECRET).unwrap()
}

fn to(receiver: &Plain) -> Subscription {
    Subscription::new("wh_1", "/webhooks", secret(), receiver.way()).unwrap()
}

fn sender(receiver: &Plain) -> SenderBuilder {
    Sender::builder()
        .subscription(to(receiver))
        .clock(TokioClock::starting_at(START))
}

/// Emits so many events, and returns the report once each has come to its end.
async fn settled(builder: SenderBuilder, events: usize) -> SenderReport {
    let (mut sender, factory) = (builder.build(), EventFactory::new());
    for _ in 0..events {
        assert_eq!(sender.emit(factory.row_created()).unwrap(), 1);
    }
    sender.settle().await
}

async fn one_event(builder: SenderBuilder) -> SentEvent {
    settled(builder, 1).await.events()[0].clone()
}

/// How it ended, after how many attempts.
fn end(event: &SentEvent) -> (Disposition, usize) {
    (event.disposition, event.attempts.len())
}

/// When the attempts began, in seconds since the event.
fn begun(event: &SentEvent) -> Vec<u64> {
    let seconds = |attempt: &hookgate_testing::sender::SentAttempt| {
        let wall = attempt.at.as_i64() - event.emitted_at.as_i64();
        assert_eq!(wall as u64, attempt.since_emitted.as_secs());
        attempt.since_emitted.as_secs()
    };
    event.attempts.iter().map(seconds).collect()
}

const FIVE: [u64; 5] = [0, MINUTE, 6 * MINUTE, 36 * MINUTE, 2 * HOUR + 36 * MINUTE];

#[tokio::test(start_paused = true)]
async fn attempts_begin_at_the_seconds_of_the_specification_in_both_readings() {
    let receiver = Plain::answering(500);
    let event = one_event(sender(&receiver)).await;
    assert_eq!(begun(&event), FIVE);
    assert_eq!(
        (event.disposition, receiver.requests().len()),
        (Discarded, 5)
    );

    let receiver = Plain::answering(500);
    let event = one_event(sender(&receiver).reading(Reading::EveryWait)).await;
    let six = [&FIVE[..], &[26 * HOUR + 36 * MINUTE]].concat();
    assert_eq!(begun(&event), six);
    assert_eq!(
        (event.disposition, receiver.requests().len()),
        (Discarded, 6)
    );
    let numbers: Vec<_> = event.attempts.iter().map(|one| one.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    assert_eq!(event.next_wait, None);
}

#[tokio::test(start_paused = true)]
async fn each_wait_begins_when_the_attempt_has_failed() {
    let receiver = Plain::new(|_| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        StatusCode::OK
    });
    let event = one_event(sender(&receiver).reading(Reading::EveryWait)).await;
    let late = [0, 1, 6, 36, 156, 26 * 60 + 36].into_iter().zip(0..);
    let late = late.map(|(minutes, timed_out)| minutes * MINUTE + 5 * timed_out);
    assert_eq!(begun(&event), late.collect::<Vec<_>>());
    for attempt in &event.attempts {
        assert_eq!(attempt.end, AttemptEnd::TimedOut);
        assert_eq!(attempt.elapsed.as_secs(), 5);
    }
    assert_eq!(receiver.hung_up(), 6, "it hangs up on each");
}

#[tokio::test(start_paused = true)]
async fn five_seconds_are_waited_for_an_answer_and_no_longer() {
    for (millis, in_time) in [(0, true), (4_999, true), (5_000, true), (5_001, false)] {
        let receiver = Plain::new(move |_| async move {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            StatusCode::NO_CONTENT
        });
        let event = one_event(sender(&receiver)).await;
        let expected = match in_time {
            true => (Delivered, 1, 0),
            false => (Discarded, 5, 5),
        };
        let found = (event.disposition, event.attempts.len(), receiver.hung_up());
        assert_eq!(found, expected, "{millis} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_but_2xx_is_a_success_and_no_redirect_is_followed() {
    for status in [200, 201, 202, 204, 299] {
        let receiver = Plain::answering(status);
        let event = one_event(sender(&receiver)).await;
        assert_eq!(
            (event.disposition, receiver.requests().len()),
            (Delivered, 1),
            "{status}"
        );
    }
    let clients = [400, 401, 404, 409, 410, 429];
    for status in [
        &[300, 301, 302, 304, 307, 308][..],
        &clients,
        &[500, 503, 599],
    ]
    .concat()
    {
        let receiver = Plain::answering(status);
        let event = one_event(sender(&receiver)).await;
        assert_eq!(
            (event.disposition, receiver.requests().len()),
            (Discarded, 5),
            "{status}"
        );
        assert_eq!(event.attempts[4].end, AttemptEnd::Answered(status));
        // No redirect is followed: every request went to the same path.
        let requests = receiver.requests();
        assert!(requests.iter().all(|request| request.uri() == "/webhooks"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_success_ends_the_course_at_whatever_attempt() {
    for successful in 1..=5_usize {
        let receiver = Plain::scripted(move |run| if run < successful { 500 } else { 204 });
        let event = one_event(sender(&receiver)).await;
        assert_eq!(end(&event), (Delivered, successful));
        assert_eq!(begun(&event), FIVE[..successful]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_delivery_has_the_headers_of_the_specification_and_the_bytes_of_the_event() {
    let receiver = Plain::answering(204);
    let mut sender = sender(&receiver).build();
    let event = EventFactory::new().row_created().id("evt_ä🚀");
    sender.emit(&event).unwrap();
    let _ = sender.settle().await;
    let requests = receiver.requests();
    let request = &requests[0];
    assert_eq!(request.method(), "POST");
    assert_eq!(request.body(), &event.body());
    let value = |name: &str| {
        assert_eq!(request.headers().get_all(name).iter().count(), 1, "{name}");
        request.headers()[name].as_bytes().to_vec()
    };
    let expected = Signer::new(secret()).at(START).headers(event.body());
    let mut headers = expected.iter();
    let signature = headers.find(|(name, _)| name.ends_with("signature"));
    let (_, signature) = signature.unwrap();
    let timestamp = START.to_string();
    for (name, expected) in [
        ("content-type", "application/json"),
        ("user-agent", "Service-Webhook/1.0"),
        ("x-service-webhook-id", "wh_1"),
        ("x-service-event-id", "evt_ä🚀"),
        ("x-service-event-type", "row.created"),
        ("x-service-timestamp", &timestamp),
        ("x-service-signature", signature),
    ] {
        assert_eq!(value(name), expected.as_bytes(), "{name}");
    }
    assert_eq!(request.headers().len(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_broken_behind_its_head_is_sent_as_it_is() {
    let receiver = Plain::answering(204);
    let mut sender = sender(&receiver).build();
    let body = br#"{"id":"evt_1","type":"row.created","id":"evt_2","data":["#.as_slice();
    assert_eq!(sender.emit(body).unwrap(), 1);
    for headless in ["", "[]", r#"{"type":"row.created"}"#, r#"{"id":"evt_1"}"#] {
        assert!(sender.emit(headless).is_err(), "{headless}");
    }
    let report = sender.settle().await;
    assert_eq!(report.events().len(), 1);
    let requests = receiver.requests();
    assert_eq!(requests[0].headers()["x-service-event-id"], "evt_1");
    assert_eq!(requests[0].body(), body);
}

#[tokio::test(start_paused = true)]
async fn each_subscription_gets_its_own_events_under_its_own_secret() {
    let another = Secret::new("whsec_made_up_for_another_one").unwrap();
    let receivers: [Plain; 4] = std::array::from_fn(|_| Plain::answering(204));
    let [all, created, orders, pages] = &receivers;
    let subscription = |id: &str, receiver: &Plain, secret| {
        Subscription::new(id, "/webhooks", secret, receiver.way()).unwrap()
    };
    let mut sender = Sender::builder()
        .clock(TokioClock::starting_at(START))
        .subscription(subscription("wh_all", all, secret()))
        .subscription(subscription("wh_created", created, another).events(["row.created"]))
        .subscription(subscription("wh_orders", orders, secret()).data_model("dm_orders"))
        .subscription(subscription("wh_none", pages, secret()).events([]))
        .build();
    let factory = EventFactory::new();
    assert_eq!(sender.emit(factory.row_created()).unwrap(), 3);
    assert_eq!(sender.emit(factory.row_updated()).unwrap(), 2);
    let of_another = factory.row_created().model("dm_x", "X");
    assert_eq!(sender.emit(of_another).unwrap(), 2);
    let about_no_row = factory.page_created();
    assert_eq!(sender.emit(about_no_row).unwrap(), 1);
    let report = sender.settle().await;
    let counts = receivers.each_ref();
    let counts = counts.map(|receiver| receiver.requests().len());
    assert_eq!(counts, [4, 2, 2, 0]);
    assert_eq!(report.events().len(), 8);

    let requests = [&all.requests()[0], &created.requests()[0]]
        .map(|request| request.headers()["x-service-signature"].clone());
    assert_ne!(requests[0], requests[1], "same event, another secret");
    let subscription = &created.requests()[0].headers()["x-service-webhook-id"].clone();
    assert_eq!(subscription, "wh_created");
}

#[tokio::test(start_paused = true)]
async fn retries_are_signed_again_or_carry_their_first_timestamp() {
    let fresh = Plain::answering(500);
    let event = one_event(sender(&fresh)).await;
    for attempt in &event.attempts {
        assert_eq!(attempt.timestamp, attempt.at);
    }
    let header = |receiver: &Plain, name: &str| -> HashSet<_> {
        let requests = receiver.requests().into_iter();
        requests.map(|one| one.headers()[name].clone()).collect()
    };
    assert_eq!(header(&fresh, "x-service-signature").len(), 5);

    let first = Plain::answering(500);
    let event = one_event(sender(&first).retry_timestamps(RetryTimestamps::First)).await;
    let mut attempts = event.attempts.iter();
    assert!(attempts.all(|attempt| attempt.timestamp == START));
    assert_eq!(begun(&event), FIVE, "the attempts themselves come as ever");
    assert_eq!(header(&first, "x-service-signature").len(), 1);
    assert_eq!(header(&first, "x-service-timestamp").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_first_timestamp_makes_retries_stale_from_the_third_on() {
    let gate = Gate::new(|_| async { StatusCode::INTERNAL_SERVER_ERROR });
    let first = gate.sender().retry_timestamps(RetryTimestamps::First);
    let event = one_event(first).await;
    let ends: Vec<_> = event.attempts.iter().map(|one| one.end.status()).collect();
    assert_eq!(ends, [500, 500, 401, 401, 401].map(Some));
    assert_eq!((gate.runs("evt_1"), gate.stale()), (2, 3));

    let gate = Gate::new(|_| async { StatusCode::INTERNAL_SERVER_ERROR });
    one_event(gate.sender().reading(Reading::EveryWait)).await;
    assert_eq!((gate.runs("evt_1"), gate.stale()), (6, 0));
}

#[tokio::test(start_paused = true)]
async fn the_test_event_goes_to_one_subscription_whatever_its_filters() {
    let (asked, other) = (Plain::answering(500), Plain::answering(204));
    let filtered = to(&asked).events(["row.deleted"]).data_model("dm_orders");
    let second = Subscription::new("wh_2", "/", secret(), other.way()).unwrap();
    let mut sender = Sender::builder()
        .subscription(filtered)
        .subscription(second)
        .clock(TokioClock::starting_at(START))
        .build();
    sender.send_test_event("wh_1").unwrap();
    sender.send_test_event("wh_1").unwrap();
    let unknown = sender.send_test_event("wh_3").unwrap_err();
    assert_eq!(unknown.kind(), SenderErrorKind::UnknownSubscription);
    let report = sender.settle().await;
    assert_eq!((asked.requests().len(), other.requests().len()), (2, 0));
    let [one, another] = report.events() else {
        panic!("{report}")
    };
    assert_eq!(end(one), (Discarded, 1));
    assert_ne!(one.id, another.id);
    // It is an event that a receiver recognises.
    let requests = asked.requests();
    let body = requests[0].body();
    assert_eq!(hookgate_testing::delivery(body).unwrap().event_id(), one.id);
    assert!(hookgate_testing::event::<hookgate::Properties>(body).is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_the_network_refuses_never_arrives() {
    let receiver = Plain::answering(204);
    let faults = NetworkFaults::seeded(1).refused(1.0);
    let event = one_event(sender(&receiver).faults(faults)).await;
    assert_eq!(
        (event.disposition, receiver.requests().len()),
        (Discarded, 0)
    );
    assert_eq!(begun(&event), FIVE);
    assert_eq!(event.attempts[0].fault, Some(NetworkFault::Refused));
    let failed = AttemptEnd::Failed("connection refused".into());
    assert_eq!(event.attempts[0].end, failed);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_a_failure_to_the_sender_and_a_copy_to_the_receiver() {
    let gate = Gate::new(|_| async { StatusCode::NO_CONTENT });
    let faults = NetworkFaults::seeded(1).answers_lost(1.0);
    let event = one_event(gate.sender().faults(faults)).await;
    assert_eq!(end(&event), (Discarded, 5));
    let failed = AttemptEnd::Failed("the answer was lost".into());
    assert_eq!(event.attempts[0].end, failed);
    assert_eq!((gate.runs("evt_1"), gate.answers()), (1, 5));
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_arrives_twice_runs_once_at_once_or_in_turn() {
    let gate = Gate::new(|_| async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        StatusCode::NO_CONTENT
    });
    let faults = NetworkFaults::seeded(1).duplicated(1.0);
    let report = settled(gate.sender().faults(faults), 20).await;
    assert_eq!(report.delivered().count(), 20, "{report}");
    assert_eq!(gate.answers(), 40);
    for event in report.events() {
        assert_eq!(gate.runs(&event.id), 1, "{event}");
        let attempt = &event.attempts[0];
        assert_eq!(attempt.fault, Some(NetworkFault::Duplicated));
        let is_heard = matches!(attempt.copy, Some(AttemptEnd::Answered(200 | 204)));
        assert!(is_heard, "{attempt:?}");
        // The copy takes nothing of the first one's time.
        assert!(attempt.elapsed < Duration::from_millis(500), "{attempt:?}");
    }
    // At once, both are in before the first is answered; in turn, the second comes behind.
    let events = report.events().iter();
    let most = events.map(|event| gate.most_at_once(&event.id));
    assert_eq!(most.collect::<HashSet<_>>(), HashSet::from([1, 2]));
}

#[tokio::test(start_paused = true)]
async fn a_slow_network_makes_the_sender_hang_up_on_what_arrives() {
    let gate = Gate::new(|_| async { StatusCode::NO_CONTENT });
    let faults = NetworkFaults::seeded(5).slow(1.0, Duration::from_secs(8));
    let report = settled(gate.sender().faults(faults), 40).await;
    let attempts = report.events().iter().flat_map(|event| &event.attempts);
    let ends = attempts.map(|attempt| (attempt.end.clone(), attempt.replayed));
    let ends: HashSet<_> = ends.collect();
    assert!(ends.contains(&(AttemptEnd::TimedOut, false)), "{ends:?}");
    assert!(
        ends.contains(&(AttemptEnd::Answered(204), false)),
        "{ends:?}"
    );
    // Handled, though the sender had hung up: its retry gets a replay.
    assert!(
        ends.contains(&(AttemptEnd::Answered(200), true)),
        "{ends:?}"
    );
    for event in report.events() {
        let limit = Duration::from_millis(5_002);
        let in_time = event.attempts.iter().all(|one| one.elapsed <= limit);
        assert!(in_time && gate.runs(&event.id) <= 1, "{event}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_panics_is_a_connection_that_breaks_off() {
    let receiver = Plain::new(|run| async move {
        assert!(run > 1, "made up");
        StatusCode::NO_CONTENT
    });
    let event = one_event(sender(&receiver)).await;
    assert_eq!(end(&event), (Delivered, 2));
    let failed = AttemptEnd::Failed("the receiver panicked".into());
    assert_eq!(event.attempts[0].end, failed);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_has_so_many_requests_at_once_and_its_retries_wait_outside() {
    let busy = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let counted = Arc::clone(&busy);
    let receiver = Plain::new(move |_| {
        let busy = Arc::clone(&counted);
        async move {
            let now = busy.0.fetch_add(1, Ordering::SeqCst) + 1;
            busy.1.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(1)).await;
            busy.0.fetch_sub(1, Ordering::SeqCst);
            StatusCode::INTERNAL_SERVER_ERROR
        }
    });
    let sender = Sender::builder().subscription(to(&receiver).at_once(2));
    let report = settled(sender.clock(TokioClock::starting_at(START)), 6).await;
    assert_eq!(busy.1.load(Ordering::SeqCst), 2);
    let begun = |attempt: usize| -> Vec<_> {
        let events = report.events().iter();
        events.map(|event| begun(event)[attempt]).collect()
    };
    assert_eq!(begun(0), [0, 0, 1, 1, 2, 2]);
    // While the first waits for its retry, the others are served: no place is held over a wait.
    assert_eq!(begun(1), [61, 61, 62, 62, 63, 63]);
}

#[tokio::test(start_paused = true)]
async fn waits_are_divided_and_nothing_else_is() {
    let receiver = Plain::new(|_| async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        StatusCode::OK
    });
    let event = one_event(sender(&receiver).speed(60).reading(Reading::EveryWait)).await;
    let scaled = [0, 1, 6, 36, 156, 1_596].into_iter().zip(0..);
    let scaled = scaled.map(|(seconds, timed_out)| seconds + 5 * timed_out);
    assert_eq!(begun(&event), scaled.collect::<Vec<_>>());
    let event = one_event(sender(&Plain::answering(500)).speed(0)).await;
    assert_eq!(begun(&event), FIVE, "0 counts as 1");
}

#[tokio::test(start_paused = true)]
async fn another_senders_schedule_is_followed() {
    let seconds = Duration::from_secs;
    let schedule = RetrySchedule::new([seconds(10), seconds(20)]).with_attempt_timeout(seconds(1));
    let receiver = Plain::new(|_| async {
        tokio::time::sleep(Duration::from_millis(1_001)).await;
        StatusCode::OK
    });
    let event = one_event(sender(&receiver).schedule(schedule.clone())).await;
    assert_eq!(begun(&event), [0, 11, 32]);
    let receiver = Plain::answering(500);
    let builder = sender(&receiver).schedule(schedule.with_fewest_attempts(2));
    assert_eq!(begun(&one_event(builder.clone()).await), [0, 10]);
    let event = one_event(builder.reading(Reading::EveryWait)).await;
    assert_eq!(begun(&event), [0, 10, 30]);
    let once = sender(&receiver).schedule(RetrySchedule::new([]));
    let event = one_event(once).await;
    assert_eq!(end(&event), (Discarded, 1));
}

#[tokio::test(start_paused = true)]
async fn every_attempt_is_reported_with_its_next_wait() {
    let receiver = Plain::scripted(|run| if run < 3 { 500 } else { 204 });
    let told = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&told);
    let builder = sender(&receiver).on_attempt(move |event| {
        let last = event.attempts.last().unwrap();
        let attempt = (last.number, event.disposition, event.next_wait);
        seen.lock().unwrap().push(attempt);
    });
    one_event(builder).await;
    let minutes = |minutes| Some(Duration::from_secs(minutes * MINUTE));
    let expected = [
        (1, Disposition::UnderWay, minutes(1)),
        (2, Disposition::UnderWay, minutes(5)),
        (3, Delivered, None),
    ];
    assert_eq!(*told.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "made up in a hook")]
async fn a_hook_that_panics_fails_the_test() {
    let builder = sender(&Plain::answering(204)).on_attempt(|_| panic!("made up in a hook"));
    one_event(builder).await;
}

#[tokio::test(start_paused = true)]
async fn a_report_can_be_had_at_any_time_and_a_dropped_sender_sends_no_more() {
    let receiver = Plain::answering(500);
    let mut sender = sender(&receiver).build();
    sender.emit(EventFactory::new().row_created()).unwrap();
    // The end of one wait ends nothing else.
    let minutes = Duration::from_secs(7 * MINUTE);
    let waited = tokio::time::timeout(minutes, sender.settle()).await;
    assert!(waited.is_err());
    let report = sender.report();
    assert_eq!(report.under_way().count(), 1);
    assert_eq!(report.events()[0].attempts.len(), 3);
    let half_an_hour = Some(Duration::from_secs(30 * MINUTE));
    assert_eq!(report.events()[0].next_wait, half_an_hour);
    tokio::time::sleep(Duration::from_secs(30 * MINUTE)).await;
    assert_eq!(receiver.requests().len(), 4);
    drop(sender);
    tokio::time::sleep(Duration::from_secs(100 * HOUR)).await;
    assert_eq!(receiver.requests().len(), 4);
}

#[test]
fn a_subscription_that_can_not_be_is_refused() {
    let receiver = Plain::answering(204);
    for (id, url, kind) in [
        ("wh_1", "http://exa mple/", SenderErrorKind::BadUrl),
        ("wh_1", "", SenderErrorKind::BadUrl),
        ("", "/", SenderErrorKind::BadSubscriptionId),
        ("wh\n1", "/", SenderErrorKind::BadSubscriptionId),
    ] {
        let refused = Subscription::new(id, url, secret(), receiver.way()).unwrap_err();
        assert!(!refused.to_string().is_empty());
        assert_eq!(refused.kind(), kind, "{id:?} {url:?}");
    }
}

/// Handlers that fail, panic and are slow at random, over a network with random faults.
async fn chaos(seed: u64) -> (SenderReport, Gate) {
    let luck = Arc::new(Mutex::new(fastrand::Rng::with_seed(seed)));
    let gate = Gate::new(move |_| {
        let (drawn, millis) = {
            let mut luck = luck.lock().unwrap();
            (luck.u8(..100), luck.u64(..9_000))
        };
        async move {
            match drawn {
                0..30 => return StatusCode::INTERNAL_SERVER_ERROR,
                30..35 => panic!("made up"),
                35..50 => tokio::time::sleep(Duration::from_millis(millis)).await,
                _ => {}
            }
            StatusCode::NO_CONTENT
        }
    });
    let faults = NetworkFaults::seeded(seed)
        .refused(0.1)
        .answers_lost(0.1)
        .duplicated(0.2)
        .slow(0.2, Duration::from_secs(7));
    let reading = [Reading::FewestAttempts, Reading::EveryWait][seed as usize % 2];
    let mut sender = gate.sender().faults(faults).reading(reading).build();
    let factory = EventFactory::seeded(seed).with_clock(gate.clock);
    for _ in 0..60 {
        sender.emit(factory.row_created()).unwrap();
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    let report = sender.settle().await;
    // A run may go on when its sender has given up.
    tokio::time::sleep(Duration::from_secs(MINUTE)).await;
    (report, gate)
}

#[tokio::test(start_paused = true)]
async fn every_event_is_handled_once_or_discarded_after_the_last_attempt() {
    let mut fates: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..40 {
        let (report, gate) = chaos(seed).await;
        for event in report.events() {
            let handled = gate.handled(&event.id);
            assert!(handled <= 1, "handled {handled} times: {event}\n{report}");
            match event.disposition {
                Delivered => assert_eq!(handled, 1, "lost: {event}\n{report}"),
                Discarded => assert!(event.attempts.len() >= 5, "{event}\n{report}"),
                other => panic!("{other:?}: {event}\n{report}"),
            }
            let what = format!("{:?}, handled {handled}", event.disposition);
            *fates.entry(what).or_default() += 1;
        }
    }
    // Discarded and handled all the same: the case in which the answer to the last attempt was
    // lost.
    assert!(fates["Delivered, handled 1"] > 2_000, "{fates:?}");
    assert!(fates["Discarded, handled 0"] > 3, "{fates:?}");
}

#[tokio::test(start_paused = true)]
async fn a_seed_repeats_a_run_and_a_report_names_it() {
    let told = |report: &SenderReport| {
        let attempts = report.events().iter().flat_map(|event| &event.attempts);
        attempts
            .map(|one| format!("{:?} {:?} {:?}", one.at, one.end, one.fault))
            .collect::<Vec<_>>()
    };
    let (one, _) = chaos(7).await;
    let (same, _) = chaos(7).await;
    let (other, _) = chaos(8).await;
    assert_eq!(told(&one), told(&same));
    assert_ne!(told(&one), told(&other));
    assert_eq!(one.seed(), Some(7));
    let text = one.to_string();
    assert!(text.starts_with("60 events: "), "{text}");
    says(&text, "network faults by the seed 7");
    let discarded: HashSet<_> = one.discarded().map(|event| &event.id).collect();
    for id in &discarded {
        says(&text, format!("discarded: {id} row.created for wh_1: "));
    }
    assert_eq!(text.matches("\ndiscarded: ").count(), discarded.len());
}

/// The wall clock need not be tokio's.
#[tokio::test(start_paused = true)]
async fn deliveries_are_signed_by_the_clock_that_is_given() {
    let clock = hookgate::clock::ManualClock::at(UnixSeconds::new(5));
    let receiver = Plain::answering(500);
    let builder = Sender::builder()
        .subscription(to(&receiver))
        .clock(clock.clone());
    let event = one_event(builder).await;
    assert!(event.attempts.iter().all(|one| one.timestamp.as_i64() == 5));
    // The service writes no time before 1970.
    clock.set_wall(UnixSeconds::new(-7));
    let event = one_event(Sender::builder().subscription(to(&receiver)).clock(clock)).await;
    assert_eq!(event.attempts.len(), 5);
    assert_eq!(receiver.requests()[9].headers()["x-service-timestamp"], "1");
    // Without any, it is that of the system.
    let started = Instant::now();
    let event = one_event(Sender::builder().subscription(to(&receiver))).await;
    let now = hookgate::clock::Clock::now(&hookgate::clock::SystemClock).as_i64();
    assert!(event.emitted_at.as_i64().abs_diff(now) < 60);
    assert!(started.elapsed() > Duration::from_secs(2 * HOUR));
}
