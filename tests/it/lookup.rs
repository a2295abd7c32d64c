//! Rings that a provider looks up: which ids are looked up, how often, how long, and with which
//! results.

mod hostile;
mod provider;

use std::collections::BTreeSet;
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use axum::response::Response;
use hookgate::{
    ConfigErrorKind, KeyRing, MemoryStore, Outcome, Receiver, Refusal, Secret, Verifier, block_on,
    clock::UnixSeconds,
    layer::Answer,
    lookup::{Keys, SubscriptionId},
    outcome::RefusalKind,
    receiver::RequestHead,
    verify::{DeliveryHeaders, Signature, Timestamp, VerifyErrorKind},
};
use http::StatusCode;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tower::{Layer, ServiceExt};

use crate::harness::{Harness, SECRET, Sent, late_body, pass};
use crate::support;
use provider::{Found, Provider, ProviderError, found, ring_of};

const OTHER: &str = "whsec_made_up_for_another_one";

/// A guarded route whose secrets `provider` looks up.
fn guarded(provider: &Provider) -> Harness {
    let provider = provider.clone();
    Harness::without_secret(
        |builder, _| builder.provider(provider),
        async |_, _| StatusCode::NO_CONTENT,
    )
}

fn event_of(subscription: &str, id: &str) -> Sent {
    Sent::event(id).of(String::leak(subscription.to_owned()))
}

/// A receiver whose secrets `provider` looks up, on a clock of its own.
fn receiver(provider: &Provider) -> Receiver {
    let builder = Receiver::builder().provider(provider.clone());
    let builder = builder
        .store(MemoryStore::default())
        .clock(support::manual());
    builder.build().unwrap()
}

/// A delivery to such a receiver, which names this subscription.
fn sent_to(subscription: impl AsRef<[u8]>) -> support::Sent {
    let sent = support::Sent::at(support::NOW, support::event("evt_1"));
    sent.with("X-Service-Webhook-Id", subscription)
}

/// How many look-ups run, and how many wait.
fn under_way(receiver: &Receiver) -> (usize, usize) {
    let stats = receiver.keys().lookup_stats().unwrap();
    (stats.running, stats.waiting)
}

/// The refusal that the operator sees for an answer.
fn refusal(response: &Response) -> Refusal {
    let answer: &Answer = response.extensions().get().unwrap();
    let reason = answer.reason.as_ref().expect("a reason");
    reason.downcast_ref::<Refusal>().unwrap().clone()
}

fn lookup_error(response: &Response) -> String {
    let refusal = refusal(response);
    std::error::Error::source(&refusal).unwrap().to_string()
}

fn unavailable() -> ProviderError {
    "made up: connection refused".into()
}

fn verify_error(response: &Response) -> VerifyErrorKind {
    refusal(response).verify_error().unwrap().kind()
}

fn assert_refused(response: &Response, kind: RefusalKind) {
    assert_eq!(response.status(), 503, "{:?}", response.extensions());
    assert!(response.headers().contains_key("retry-after"));
    assert_eq!(refusal(response).kind(), kind);
}

// Which ids are looked up.

// fault S2-04: the webhook-id header names another subscription, or none that is known
#[tokio::test]
async fn only_ids_of_the_services_form_are_looked_up_and_all_others_are_unknown() {
    let provider = Provider::new(async |_, _| Ok(None));
    let probe = support::Probe::new();
    let app = support::app(&receiver(&provider), &probe);
    let tail = |length: usize| format!("wh_{}", "Az09_-xy".repeat(9).split_at(length).0);
    let good = [tail(1), tail(63), tail(64), "wh_-".into(), "wh___".into()].map(String::into_bytes);
    let bad = "|wh_|wh|WH_1|Wh_1|wh-1|evt_1|1|wh_1 2|wh_1,wh_2|wh_'--|wh_%|wh_*|wh_..|wh_/|wh_1;|wh_\"1\"|wh_$1|xwh_1|wh_1\t2";
    let mut bad: Vec<_> = bad.split('|').map(|id| id.as_bytes().to_vec()).collect();
    bad.extend([tail(65), tail(66), "wh_".repeat(3_000)].map(String::into_bytes));
    bad.extend([&b"wh_\xe9"[..], b"wh_\xff", "wh_\u{661}".as_bytes()].map(<[u8]>::to_vec));
    let mut answers = Vec::new();
    for id in bad.iter().chain(&good) {
        answers.push(support::ask(&app, &sent_to(id)).await);
    }
    // No id at all is a missing header.
    let nobody = sent_to("").without("X-Service-Webhook-Id");
    answers.push(support::ask(&app, &nobody).await);
    for answer in &answers {
        assert_eq!(
            (answer.status, &answer.headers, &answer.body),
            (401, &answers[0].headers, &answers[0].body)
        );
    }
    let good = good.map(|id| String::from_utf8(id).unwrap());
    assert_eq!(provider.asked(), good);
    assert_eq!(probe.started(), 0);
}

// fault S2-29: timing tells how much of a signature was right, or which subscriptions exist
#[tokio::test]
async fn an_unknown_id_that_was_looked_up_costs_the_body_like_a_known_one() {
    let provider = Provider::new(async |id, _| match id.as_str() {
        "wh_1" => found(),
        _ => Ok(None),
    });
    let service = receiver(&provider).layer().layer(support::Never);
    let forged = support::Sent::signed(OTHER, support::NOW, support::event("evt_1"));
    let mut seen = Vec::new();
    // Found, unknown, of another form; looked up first and cached then.
    for id in ["wh_1", "wh_2", "2", "wh_1", "wh_2", "2"] {
        let sent = forged.clone().with("X-Service-Webhook-Id", id);
        let (body, polls) = support::CountedBody::in_pieces(&sent.body, 10);
        let answer = service.clone().oneshot(sent.request_with(body)).await;
        let answer = support::Received::of(answer.unwrap()).await;
        let polls = polls.load(Ordering::SeqCst);
        seen.push((answer.status, answer.headers, answer.body, polls));
    }
    assert_eq!(seen[0].0, 401);
    assert!(seen[0].3 > forged.body.len() / 10);
    assert!(seen.iter().all(|one| *one == seen[0]), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_stale_or_refused_by_its_head_is_not_looked_up() {
    let provider = Provider::all();
    let harness = guarded(&provider);
    for age in [301, 400, 40 * 3_600, -301] {
        let stale = event_of("wh_1", "evt_1").aged(age);
        assert_eq!(harness.send(&stale).await.status(), 401);
    }
    // Neither is a head that is refused, nor one without an id.
    let mut request = event_of("wh_3", "evt_1").request(&harness.clock);
    *request.method_mut() = http::Method::PUT;
    assert_eq!(harness.ask(request).await.status(), 405);
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), 401);
    assert_eq!(provider.count(), 0);
}

// How often.

#[tokio::test(start_paused = true)]
async fn copies_at_one_moment_share_one_look_up() {
    let provider = Provider::after(100);
    let harness = guarded(&provider);
    let mut answers = JoinSet::new();
    for number in 0..64 {
        answers.spawn(harness.send(&event_of("wh_1", &format!("evt_{number}"))));
    }
    pass(50).await;
    assert_eq!(under_way(&harness.receiver), (1, 0));
    while let Some(answer) = answers.join_next().await {
        assert_eq!(answer.unwrap().status(), 204);
    }
    assert_eq!(provider.count(), 1);
    assert_eq!(harness.runs(), 64);
    assert_eq!(under_way(&harness.receiver), (0, 0));
    assert_eq!(harness.receiver.keys().lookup_stats().unwrap().found, 1);
}

#[tokio::test(start_paused = true)]
async fn no_more_than_sixteen_look_ups_run_at_once_and_all_are_answered() {
    let provider = Provider::new(async |_, _| {
        sleep(Duration::from_millis(10)).await;
        tokio::task::yield_now().await;
        found()
    });
    let harness = guarded(&provider);
    // Ids that were not found lately leave a quarter to those that were.
    for (round, most) in [(0, 12), (1, 16), (2, 16)] {
        let mut answers = JoinSet::new();
        for number in 0..200 {
            let id = format!("evt_{round}_{number}");
            answers.spawn(harness.send(&event_of(&format!("wh_{number}"), &id)));
        }
        while let Some(answer) = answers.join_next().await {
            assert_eq!(answer.unwrap().status(), 204);
        }
        assert_eq!(provider.most(), most);
        assert_eq!(provider.count(), 200 * (round + 1));
        pass(60_000).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_look_up_continues_when_its_first_request_is_gone() {
    let provider = Provider::new(async |_, _| {
        for _ in 0..4 {
            sleep(Duration::from_millis(100)).await;
        }
        found()
    });
    let harness = guarded(&provider);
    let leader = harness.begin(&event_of("wh_1", "evt_1")).await;
    let others = [
        harness.begin(&event_of("wh_1", "evt_2")).await,
        harness.begin(&event_of("wh_1", "evt_3")).await,
    ];
    pass(150).await;
    leader.abort();
    assert!(leader.await.unwrap_err().is_cancelled());
    for other in others {
        assert_eq!(other.await.unwrap().status(), 204);
    }
    assert_eq!(provider.count(), 1);
    // Even where all are gone, it serves the retry.
    let all = harness.begin(&event_of("wh_2", "evt_1")).await;
    pass(50).await;
    all.abort();
    pass(500).await;
    assert_eq!(harness.send(&event_of("wh_2", "evt_1")).await.status(), 204);
    assert_eq!(provider.count(), 2);
    assert_eq!(provider.running(), 0);
}

#[test]
fn without_a_runtime_a_look_up_ends_with_its_future_and_another_begins() {
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let provider = Provider::new(move |_, _| {
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await.unwrap().forget();
            found()
        }
    });
    let (receiver, sent) = (receiver(&provider), sent_to("wh_1"));
    let head = sent.request_head();
    let running = || receiver.keys().lookup_stats().unwrap().running;
    let begin = || {
        let mut opening = Box::pin(receiver.check_head_async(&head));
        let mut context = Context::from_waker(Waker::noop());
        assert!(opening.as_mut().poll(&mut context).is_pending());
        opening
    };
    let (first, second, third) = (begin(), begin(), begin());
    assert_eq!((running(), provider.count()), (1, 1));
    drop(third);
    assert_eq!((running(), provider.running()), (1, 1));
    drop(first);
    assert_eq!((running(), provider.running()), (0, 0));
    opened.add_permits(1);
    assert!(block_on(second).is_ok());
    assert_eq!((running(), provider.count()), (0, 2));
    receiver.keys().forget("wh_1").unwrap();
    let last = begin();
    assert_eq!((running(), provider.running()), (1, 1));
    drop(last);
    assert_eq!((running(), provider.running()), (0, 0));
}

// How long an answer counts.

#[tokio::test(start_paused = true)]
async fn a_removed_subscription_is_refused_after_a_minute_and_not_before() {
    let there = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&there);
    let provider = Provider::new(move |_, _| {
        // Read when the look-up begins; the answer takes its time.
        let there = asked.load(Ordering::SeqCst);
        async move {
            sleep(Duration::from_millis(800)).await;
            if there { found() } else { Ok(None) }
        }
    });
    let harness = guarded(&provider);
    let began = Instant::now();
    assert_eq!(harness.send(&event_of("wh_1", "evt_1")).await.status(), 204);
    assert_eq!(began.elapsed().as_millis(), 800);
    there.store(false, Ordering::SeqCst);
    pass(59_100).await; // 59.9 s since the look-up began
    assert_eq!(harness.send(&event_of("wh_1", "evt_2")).await.status(), 204);
    assert_eq!(provider.count(), 1);
    pass(100).await; // 60 s
    let response = harness.send(&event_of("wh_1", "evt_3")).await;
    assert_eq!(response.status(), 401);
    let unknown = VerifyErrorKind::UnknownSubscription;
    assert_eq!((verify_error(&response), provider.count()), (unknown, 2));
    // An "unknown" answer is remembered just as long, and no longer.
    there.store(true, Ordering::SeqCst);
    pass(59_000).await;
    assert_eq!(harness.send(&event_of("wh_1", "evt_3")).await.status(), 401);
    assert_eq!(provider.count(), 2);
    pass(300).await;
    assert_eq!(harness.send(&event_of("wh_1", "evt_3")).await.status(), 204);
    assert_eq!(provider.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_look_up_that_wakes_itself_while_it_is_polled_continues() {
    let provider = Provider::new(async |_, _| {
        for _ in 0..3 {
            let mut woken = false;
            std::future::poll_fn(|context: &mut Context<'_>| {
                if std::mem::replace(&mut woken, true) {
                    return std::task::Poll::Ready(());
                }
                context.waker().wake_by_ref();
                std::task::Poll::Pending
            })
            .await;
        }
        found()
    });
    let harness = guarded(&provider);
    let began = Instant::now();
    assert_eq!(harness.send(&event_of("wh_1", "evt_1")).await.status(), 204);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_rotated_ring_is_seen_at_once_when_the_old_one_is_forgotten() {
    let secret = Arc::new(Mutex::new(SECRET));
    let current = Arc::clone(&secret);
    let provider = Provider::new(move |_, _| {
        let secret = *current.lock().unwrap();
        async move {
            let ring = KeyRing::named(&secret[14..], Secret::new(secret).unwrap());
            Ok(Some(ring.unwrap()))
        }
    });
    let names: Arc<Mutex<Vec<String>>> = Arc::default();
    let (told, looked_up) = (Arc::clone(&names), provider.clone());
    let harness = Harness::without_secret(
        |builder, _| builder.provider(looked_up),
        move |delivery, _| {
            let name = delivery.verified().key_name().to_owned();
            told.lock().unwrap().push(name);
            async { StatusCode::NO_CONTENT }
        },
    );
    let with = |secret, id: &str| event_of("wh_1", id).signed_by(secret);
    assert_eq!(harness.send(&with(SECRET, "evt_1")).await.status(), 204);
    *secret.lock().unwrap() = OTHER;
    assert_eq!(harness.send(&with(OTHER, "evt_2")).await.status(), 401);
    pass(60_000).await;
    assert_eq!(harness.send(&with(OTHER, "evt_2")).await.status(), 204);
    assert_eq!(harness.send(&with(SECRET, "evt_3")).await.status(), 401);

    *secret.lock().unwrap() = SECRET;
    assert_eq!(harness.send(&with(SECRET, "evt_3")).await.status(), 401);
    harness.receiver.keys().forget("wh_2").unwrap();
    assert_eq!(harness.send(&with(SECRET, "evt_3")).await.status(), 401);
    harness.receiver.keys().forget("wh_1").unwrap();
    assert_eq!(harness.send(&with(SECRET, "evt_3")).await.status(), 204);
    *secret.lock().unwrap() = OTHER;
    harness.receiver.keys().forget_all().unwrap();
    assert_eq!(harness.send(&with(OTHER, "evt_4")).await.status(), 204);
    assert_eq!(provider.count(), 4);
    // Rotation changes none of the remembered events.
    assert_eq!(harness.send(&with(OTHER, "evt_1")).await.status(), 200);
    let names = names.lock().unwrap().clone();
    let (first, other) = (SECRET[14..].to_owned(), OTHER[14..].to_owned());
    assert_eq!(names, [first.clone(), other.clone(), first, other]);
}

#[tokio::test(start_paused = true)]
async fn where_no_key_fits_the_provider_is_asked_again_once_in_ten_seconds() {
    let secret = Arc::new(Mutex::new(SECRET));
    let current = Arc::clone(&secret);
    let provider = Provider::new(move |_, _| {
        let secret = *current.lock().unwrap();
        async move { ring_of(secret) }
    });
    let harness = guarded(&provider);
    let with = |secret, id: &str| event_of("wh_1", id).signed_by(secret);
    assert_eq!(harness.send(&with(SECRET, "evt_1")).await.status(), 204);
    *secret.lock().unwrap() = OTHER;
    assert_eq!(harness.send(&with(OTHER, "evt_2")).await.status(), 401);
    pass(9_900).await;
    assert_eq!(harness.send(&with(OTHER, "evt_2")).await.status(), 401);
    assert_eq!(provider.count(), 1);
    pass(100).await;
    assert_eq!(harness.send(&with(OTHER, "evt_2")).await.status(), 204);
    assert_eq!(provider.count(), 2);
    // A ring that fits is remembered for a minute.
    pass(59_000).await;
    assert_eq!(harness.send(&with(OTHER, "evt_3")).await.status(), 204);
    assert_eq!(provider.count(), 2);
    // A misfit after these ten seconds: the very next delivery asks.
    *secret.lock().unwrap() = SECRET;
    assert_eq!(harness.send(&with(SECRET, "evt_4")).await.status(), 401);
    assert_eq!(harness.send(&with(SECRET, "evt_4")).await.status(), 204);
    assert_eq!(provider.count(), 3);
    // An attacker with wrong signatures, for 100 s.
    for round in 0..1_000 {
        pass(100).await;
        let forged = with("whsec_made_up_for_an_attacker", &format!("evt_{round}"));
        assert_eq!(harness.send(&forged).await.status(), 401);
    }
    let asked = provider.count() - 3;
    assert!((9..=10).contains(&asked), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn a_closure_may_find_a_list_of_keys_with_names_and_end_dates() {
    let end = UnixSeconds::new(1);
    let keys = move |id: SubscriptionId| async move {
        let key = |name: &str, text, end| (name.to_owned(), Secret::new(text).unwrap(), end);
        Ok::<_, std::io::Error>(match id.as_str() {
            "wh_1" => Some(vec![key("new", OTHER, None), key("old", SECRET, None)]),
            "wh_2" => Some(vec![key("new", OTHER, None), key("old", SECRET, Some(end))]),
            "wh_3" => Some(vec![key("new", OTHER, None), key("new", SECRET, None)]),
            "wh_4" => Some(vec![]),
            _ => None,
        })
    };
    let harness = Harness::without_secret(
        |builder, _| builder.provider(keys),
        async |delivery, _| {
            assert_eq!(delivery.verified().key_name(), "old");
            StatusCode::NO_CONTENT
        },
    );
    assert_eq!(harness.send(&event_of("wh_1", "evt_1")).await.status(), 204);
    let ended = harness.send(&event_of("wh_2", "evt_1")).await;
    assert_eq!(ended.status(), 401);
    assert_eq!(verify_error(&ended), VerifyErrorKind::KeyEnded);
    let twice = harness.send(&event_of("wh_3", "evt_1")).await;
    assert_refused(&twice, RefusalKind::SecretsUnavailable);
    assert!(lookup_error(&twice).contains("can't be used"));
    for unknown in ["wh_4", "wh_5"] {
        let response = harness.send(&event_of(unknown, "evt_1")).await;
        let kind = verify_error(&response);
        assert_eq!(kind, VerifyErrorKind::UnknownSubscription);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_forgotten_amid_its_look_up_serves_no_later_delivery() {
    for old_ends_last in [false, true] {
        // The first look-up reads the old secret.
        let provider = Provider::new(move |_, number| async move {
            let old = number == 1;
            let takes = if old == old_ends_last { 400 } else { 200 };
            sleep(Duration::from_millis(takes)).await;
            ring_of(if old { OTHER } else { SECRET })
        });
        let harness = guarded(&provider);
        let with = |secret, id: &str| event_of("wh_1", id).signed_by(secret);
        let before = harness.begin(&with(OTHER, "evt_1")).await;
        pass(50).await;
        harness.receiver.keys().forget("wh_1").unwrap();
        let after = harness.begin(&with(SECRET, "evt_2")).await;
        // Began before: ends under the keys that were valid then.
        assert_eq!(before.await.unwrap().status(), 204);
        assert_eq!(after.await.unwrap().status(), 204);
        assert_eq!(harness.send(&with(OTHER, "evt_3")).await.status(), 401);
        assert_eq!(harness.send(&with(SECRET, "evt_3")).await.status(), 204);
        assert_eq!(provider.count(), 2, "{old_ends_last}");
    }
}

// The effects of a flood.

// fault S2-27: forged ids fill the store
#[tokio::test(start_paused = true)]
async fn a_flood_of_invented_ids_evicts_no_ring() {
    let provider = Provider::new(async |id, _| match id.as_str() {
        "wh_real_1" | "wh_real_2" => found(),
        _ => Ok(None),
    });
    let harness = guarded(&provider);
    let real = |number, id: &str| event_of(&format!("wh_real_{number}"), id);
    for number in [1, 2] {
        assert_eq!(harness.send(&real(number, "evt_1")).await.status(), 204);
    }
    let sent = Sent::event("evt_flood").request(&harness.clock);
    for number in 0..100_000 {
        let id = format!("wh_invented_{number}");
        let headers = sent.headers().iter();
        let headers = headers.map(|(name, value)| (name.as_str(), value.as_bytes()));
        let id = ("x-service-webhook-id", id.as_bytes());
        let head = RequestHead::new("POST", headers.chain([id]));
        assert!(harness.receiver.check_head_async(&head).await.is_ok());
    }
    let stats = harness.receiver.keys().lookup_stats().unwrap();
    assert_eq!((stats.found, stats.unknown, stats.evicted), (2, 4_096, 0));
    assert_eq!(under_way(&harness.receiver), (0, 0));
    assert_eq!(provider.count(), 100_002);
    for number in [1, 2] {
        assert_eq!(harness.send(&real(number, "evt_2")).await.status(), 204);
    }
    assert_eq!(provider.count(), 100_002, "the rings are still there");
}

// fault S2-27: forged ids fill the store
// fault F9: during a flood of invented ids, or of ids whose look-ups fail, a known one is refused for as long as the flood lasts
#[tokio::test(start_paused = true)]
async fn a_flood_of_invented_ids_leaves_room_for_the_look_ups_of_known_ones() {
    let provider = Provider::new(async |id, _| {
        if id.as_str().starts_with("wh_invented") {
            sleep(Duration::from_millis(900)).await;
            return Ok(None);
        }
        sleep(Duration::from_millis(10)).await;
        found()
    });
    let harness = guarded(&provider);
    assert_eq!(harness.send(&event_of("wh_1", "evt_1")).await.status(), 204);
    pass(60_000).await; // its ring has ended
    let mut flood = JoinSet::new();
    for number in 0..1_000 {
        let invented = event_of(&format!("wh_invented_{number}"), "evt_1");
        flood.spawn(harness.send(&invented));
    }
    pass(1).await;
    assert_eq!(under_way(&harness.receiver), (12, 988));
    assert_eq!(provider.running(), 12);
    let began = Instant::now();
    assert_eq!(harness.send(&event_of("wh_1", "evt_2")).await.status(), 204);
    assert!(began.elapsed() < Duration::from_millis(20));
    // A subscription's first delivery looks the same as the flood, and queues with it.
    let first = harness.send(&event_of("wh_2", "evt_1")).await;
    assert_refused(&first, RefusalKind::SecretsUnavailable);
    let mut statuses = std::collections::BTreeMap::new();
    while let Some(answer) = flood.join_next().await {
        let status = answer.unwrap().status().as_u16();
        *statuses.entry(status).or_insert(0) += 1;
    }
    // Twelve had their turn within a second.
    assert_eq!(statuses, [(401, 12), (503, 988)].into());
    pass(6_000).await;
    assert_eq!(under_way(&harness.receiver), (0, 0));
    assert_eq!(provider.running(), 0);
    assert_eq!(harness.send(&event_of("wh_2", "evt_1")).await.status(), 204);
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_one_id_leaves_room_for_all_others() {
    let provider = Provider::new(async |id, _| {
        let wait = if id.as_str() == "wh_1" { 500 } else { 10 };
        sleep(Duration::from_millis(wait)).await;
        found()
    });
    let harness = guarded(&provider);
    let mut burst = JoinSet::new();
    for number in 0..1_000 {
        let event = event_of("wh_1", &format!("evt_{number}"));
        burst.spawn(harness.send(&event));
    }
    pass(1).await;
    assert_eq!(under_way(&harness.receiver), (1, 0));
    assert_eq!(harness.send(&event_of("wh_2", "evt_1")).await.status(), 204);
    while let Some(answer) = burst.join_next().await {
        assert_eq!(answer.unwrap().status(), 204);
    }
    assert_eq!(provider.count(), 2);
}

// Failures.

#[tokio::test(start_paused = true)]
async fn a_failing_provider_is_503_with_its_error_and_the_next_delivery_calls_it_again() {
    let provider = Provider::new(async |_, number| match number {
        1 => Err(std::io::Error::other("no route to the database").into()),
        2 => Err(Secret::new("whsec_short").unwrap_err().into()),
        3 => panic!("made up: the provider breaks"),
        4 => {
            tokio::task::yield_now().await;
            panic!("made up: the provider breaks later")
        }
        _ => found(),
    });
    let harness = guarded(&provider);
    for kind in [
        "the provider of secrets could not answer",
        "the keys that the provider of secrets found can't be used",
        "the provider of secrets panicked",
        "the provider of secrets panicked",
    ] {
        let response = harness.send(&event_of("wh_1", "evt_1")).await;
        assert_refused(&response, RefusalKind::SecretsUnavailable);
        assert_eq!(lookup_error(&response), kind);
        if kind.ends_with("could not answer") {
            let refusal = refusal(&response);
            let below = std::error::Error::source(&refusal)
                .unwrap()
                .source()
                .unwrap();
            assert!(
                below.to_string().contains("no route to the database"),
                "{below}"
            );
        }
    }
    assert_eq!(harness.send(&event_of("wh_1", "evt_1")).await.status(), 204);
    assert_eq!((provider.count(), harness.runs()), (5, 1));
    let refused = Outcome::Refused(RefusalKind::SecretsUnavailable);
    assert_eq!(harness.told.answers()[0], refused);
}

#[tokio::test(start_paused = true)]
async fn a_failed_look_up_answers_all_waiting_deliveries_and_no_old_answer_replaces_it() {
    let down = Arc::new(AtomicBool::new(false));
    let is_down = Arc::clone(&down);
    let provider = Provider::new(move |_, _| {
        let down = is_down.load(Ordering::SeqCst);
        async move {
            sleep(Duration::from_millis(50)).await;
            if down { Err(unavailable()) } else { found() }
        }
    });
    let harness = guarded(&provider);
    assert_eq!(harness.send(&event_of("wh_1", "evt_0")).await.status(), 204);
    down.store(true, Ordering::SeqCst);
    pass(59_000).await;
    assert_eq!(harness.send(&event_of("wh_1", "evt_1")).await.status(), 204);
    pass(1_000).await;
    let mut answers = JoinSet::new();
    for number in 0..20 {
        answers.spawn(harness.send(&event_of("wh_1", &format!("evt_{number}"))));
    }
    while let Some(answer) = answers.join_next().await {
        assert_refused(&answer.unwrap(), RefusalKind::SecretsUnavailable);
    }
    assert_eq!(provider.count(), 2);
    down.store(false, Ordering::SeqCst);
    assert_eq!(harness.send(&event_of("wh_1", "evt_2")).await.status(), 204);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_hangs_is_503_within_its_share_and_is_recovered_from() {
    for (budget, share) in [(4_500, 1_000), (400, 200)] {
        let hangs = Arc::new(AtomicBool::new(true));
        let is_hanging = Arc::clone(&hangs);
        let provider = Provider::new(move |_, _| {
            let hangs = is_hanging.load(Ordering::SeqCst);
            async move {
                if hangs {
                    pending::<()>().await;
                }
                found()
            }
        });
        let looked_up = provider.clone();
        let harness = Harness::without_secret(
            |builder, _| {
                let budget = Duration::from_millis(budget);
                builder.provider(looked_up).answer_within(budget)
            },
            async |_, _| StatusCode::NO_CONTENT,
        );
        let began = Instant::now();
        // More than may run at a time, and one that is always asked for, so that at least one
        // request always waits.
        let mut answers = JoinSet::new();
        for number in 0..40 {
            answers.spawn(harness.send(&event_of(&format!("wh_{number}"), "evt_1")));
        }
        while let Some(answer) = answers.join_next().await {
            assert_refused(&answer.unwrap(), RefusalKind::SecretsUnavailable);
        }
        assert_eq!(began.elapsed().as_millis(), share);
        hangs.store(false, Ordering::SeqCst);
        let mut refused = 0;
        while harness.send(&event_of("wh_0", "evt_1")).await.status() != 204 {
            refused += 1;
            assert!(refused < 100, "never recovers");
        }
        let elapsed = began.elapsed();
        assert!(elapsed <= Duration::from_secs(7), "{elapsed:?}");
        pass(6_000).await;
        let another = harness.send(&event_of("wh_30", "evt_1")).await;
        assert_eq!(another.status(), 204);
        assert_eq!(under_way(&harness.receiver), (0, 0));
        assert_eq!(provider.running(), 0, "what hung was let go");
    }
}

#[tokio::test(start_paused = true)]
async fn a_look_up_slower_than_its_share_serves_the_retry() {
    let provider = Provider::after(2_500);
    let harness = guarded(&provider);
    let began = Instant::now();
    let first = harness.send(&event_of("wh_1", "evt_1")).await;
    assert_refused(&first, RefusalKind::SecretsUnavailable);
    assert!(lookup_error(&first).ends_with("did not answer in time"));
    pass(60).await;
    let second = harness.send(&event_of("wh_1", "evt_1")).await;
    assert_refused(&second, RefusalKind::SecretsUnavailable);
    pass(1_000).await;
    assert_eq!(harness.send(&event_of("wh_1", "evt_1")).await.status(), 204);
    assert_eq!(provider.count(), 1);
    // And it counts from its beginning.
    tokio::time::sleep_until(began + Duration::from_millis(59_990)).await;
    assert_eq!(harness.send(&event_of("wh_1", "evt_2")).await.status(), 204);
    tokio::time::sleep_until(began + Duration::from_secs(60)).await;
    let late = harness.send(&event_of("wh_1", "evt_2")).await;
    assert_refused(&late, RefusalKind::SecretsUnavailable);
    assert_eq!(provider.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_look_up_is_not_taken_from_the_body() {
    let provider = Provider::after(900);
    let harness = guarded(&provider);
    let send = |millis| {
        let request = event_of("wh_1", "evt_1").request(&harness.clock);
        harness.ask(request.map(|body| late_body(Duration::from_millis(millis), body)))
    };
    assert_eq!(send(2_800).await.status(), 204);
    assert_eq!(send(2_800).await.status(), 408, "cached now");
    harness.receiver.keys().forget("wh_1").unwrap();
    let began = Instant::now();
    assert_eq!(send(3_000).await.status(), 408);
    assert_eq!(began.elapsed().as_millis(), 2_900);
}

// The memory of events.

#[tokio::test(start_paused = true)]
async fn each_subscription_remembers_for_itself_unless_rings_name_one_scope() {
    let provider = Provider::new(async |id, _| {
        let ring = KeyRing::new(Secret::new(SECRET).unwrap());
        Ok(Some(match id.as_str() {
            "wh_3" | "wh_4" => ring.with_scope("shared").unwrap(),
            "wh_5" => ring.with_workspace("ws_1").unwrap(),
            "wh_6" => ring.with_workspace("ws_2").unwrap(),
            _ => ring,
        }))
    });
    let harness = guarded(&provider);
    let mut statuses = Vec::new();
    for subscription in ["wh_1", "wh_2", "wh_1", "wh_3", "wh_4", "wh_5", "wh_6"] {
        let response = harness.send(&event_of(subscription, "evt_1")).await;
        statuses.push(response.status().as_u16());
    }
    assert_eq!(statuses, [204, 204, 200, 204, 200, 204, 401]);
    assert_eq!(harness.runs(), 4);
}

// Without the layer.

#[test]
fn the_step_that_does_not_wait_answers_from_the_cache_and_refuses_no_id_as_unknown() {
    let provider = Provider::new(async |id, _| match id.as_str() {
        "wh_1" => ring_of(support::SECRET),
        _ => Ok(None),
    });
    let clock = support::manual();
    let receiver = Receiver::builder()
        .provider(provider.clone())
        .store(MemoryStore::default())
        .clock(clock.clone())
        .build()
        .unwrap();
    let open = |id: &str, asynchronous: bool| {
        let sent = sent_to(id);
        let head = sent.request_head();
        let received = match asynchronous {
            true => block_on(receiver.check_head_async(&head)),
            false => receiver.check_head(&head),
        };
        let mut received = received.map_err(|refusal| refusal.kind())?;
        received.push(sent.body.clone().into()).unwrap();
        let delivery = receiver.verify(received, &head);
        let delivery = delivery.map_err(|refusal| refusal.kind())?;
        Ok(delivery.verified().scope().to_owned())
    };
    for id in ["wh_1", "wh_2"] {
        assert_eq!(open(id, false), Err(RefusalKind::NotLookedUp));
    }
    assert_eq!(RefusalKind::NotLookedUp.status(), 503);
    assert_eq!(open("2", false), Err(RefusalKind::NotAuthentic));
    assert_eq!(provider.count(), 0);
    assert_eq!(open("wh_1", true), Ok("wh_1".to_owned()));
    assert_eq!(open("wh_2", true), Err(RefusalKind::NotAuthentic));
    assert_eq!(open("wh_1", false), Ok("wh_1".to_owned()));
    assert_eq!(open("wh_2", false), Err(RefusalKind::NotAuthentic));

    // A bare verifier over the same keys, and a second receiver, use the same cache.
    let verifier = Verifier::new(receiver.keys().clone());
    let (now, body) = (UnixSeconds::new(support::NOW), b"bare");
    let timestamp = Timestamp::at(now).unwrap();
    let secret = Secret::new(support::SECRET).unwrap();
    let signature = Signature::sign(&secret, &timestamp, body).to_header_value();
    let verify = |id| {
        let pairs = [
            ("x-service-timestamp", timestamp.as_str()),
            ("x-service-signature", &signature),
            ("x-service-webhook-id", id),
        ];
        let head = DeliveryHeaders::from_pairs(pairs).unwrap();
        let verified = verifier.verify(&head, body, now);
        verified.map(|_| ()).map_err(|error| error.kind())
    };
    assert_eq!(verify("wh_1"), Ok(()));
    assert_eq!(verify("wh_2"), Err(VerifyErrorKind::UnknownSubscription));
    assert_eq!(verify("wh_3"), Err(VerifyErrorKind::NotLookedUp));
    clock.advance(Duration::from_secs(60));
    assert_eq!(verify("wh_1"), Err(VerifyErrorKind::NotLookedUp));
    assert_eq!(provider.count(), 2);
}

#[test]
fn keys_that_are_looked_up_are_changed_where_they_are_found() {
    let receiver = receiver(&Provider::all());
    let secret = || Secret::new(SECRET).unwrap();
    let keys = receiver.keys();
    for error in [
        keys.replace(secret()).unwrap_err(),
        keys.replace_subscription("wh_1", secret()).unwrap_err(),
        keys.remove_subscription("wh_1").unwrap_err(),
    ] {
        assert_eq!(error.kind(), ConfigErrorKind::UnusableKeys);
        assert!(error.to_string().contains(".forget(id)"), "{error}");
    }
    assert!(keys.forget("not of the form").is_ok());
    let held = Keys::single(secret());
    for error in [held.forget("wh_1"), held.forget_all()] {
        assert_eq!(error.unwrap_err().kind(), ConfigErrorKind::UnusableKeys);
    }
    assert!(held.lookup_stats().is_none());
}

#[test]
fn with_keys_that_are_here_the_step_that_could_wait_does_not() {
    let receiver = support::receiver().clock(support::manual());
    let (receiver, sent) = (receiver.build().unwrap(), sent_to("wh_1"));
    let head = sent.request_head();
    let mut opening = pin!(receiver.check_head_async(&head));
    let mut context = Context::from_waker(Waker::noop());
    assert!(opening.as_mut().poll(&mut context).is_ready());
}

// Under real threads.

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_order_of_arrivals_departures_and_forgetting_loses_a_look_up() {
    let turn = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&turn);
    let nudge = Arc::new(Notify::new());
    let nudged = Arc::clone(&nudge);
    let provider = Provider::new(move |_, number| {
        let nudge = Arc::clone(&nudged);
        async move {
            match number % 5 {
                0 => tokio::task::yield_now().await,
                1 => nudge.notified().await,
                2 => sleep(Duration::from_micros(300)).await,
                3 => return Err(unavailable()),
                _ => {}
            }
            ring_of(support::SECRET)
        }
    });
    let receiver = receiver(&provider);
    let mut tasks = JoinSet::new();
    for worker in 0..32_usize {
        let (receiver, counter, nudge) =
            (receiver.clone(), Arc::clone(&counter), Arc::clone(&nudge));
        tasks.spawn(async move {
            let mut kinds = BTreeSet::new();
            for round in 0..300 {
                let step = counter.fetch_add(1, Ordering::Relaxed) + worker;
                let id = format!("wh_{}", step % 24);
                let sent = sent_to(&id);
                let head = sent.request_head();
                let opening = receiver.check_head_async(&head);
                nudge.notify_one();
                if step % 3 == 0 {
                    // Gone at some point on the way.
                    let limit = Duration::from_micros((step % 700) as u64);
                    let _ = tokio::time::timeout(limit, opening).await;
                } else {
                    let nudging = async {
                        loop {
                            nudge.notify_waiters();
                            sleep(Duration::from_millis(1)).await;
                        }
                    };
                    tokio::select! {
                        opened = opening => { kinds.extend(opened.err().map(|refusal| refusal.kind().name())); }
                        () = nudging => {}
                    }
                }
                if round % 4 == 0 {
                    receiver.keys().forget(&id).unwrap();
                }
            }
            kinds
        });
    }
    let all = tokio::time::timeout(support::PATIENCE, tasks.join_all()).await;
    for kind in all.expect("nobody waits for ever").into_iter().flatten() {
        assert_eq!(kind, "secrets_unavailable");
    }
    // Look-ups that all deliveries have left go on, for 5 s at most.
    let ended = async {
        while under_way(&receiver).0 > 0 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let ended = tokio::time::timeout(support::PATIENCE, ended).await;
    assert!(ended.is_ok());
    assert_eq!((under_way(&receiver), provider.running()), ((0, 0), 0));
    assert!(provider.most() <= 16);
    assert!(provider.count() > 1_000, "{}", provider.count());
}
