//! Once, and by which receiver: replays, scopes, rotation, full stores, panics, restarts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use hookgate::{
    ConfigErrorKind, Delivery, KeyRing, MemoryStore, Receiver, ReceiverBuilder, Secret,
    clock::{SystemClock, UnixSeconds},
    dedupe::Capacity,
    lookup::Keys,
    receiver::Admission,
};
use http::StatusCode;

use crate::support::*;

const OTHER: &str = "whsec_made_up_for_another_tenant";

fn other() -> Secret {
    Secret::new(OTHER).unwrap()
}

/// With these keys, on a clock and a store of its own.
fn guarded(keys: ReceiverBuilder) -> Guarded {
    Guarded::by(keys.store(MemoryStore::default()).clock(manual()))
}

// fault S2-01: a replay with a fresh event-id header runs again
// fault S2-02: an old id in a new event's header acknowledges it unrun
// fault S2: a layer that verifies nothing by itself; ids from unsigned headers
// fault S5: the unsigned id wins over the signed one
#[tokio::test]
async fn a_replay_runs_once_whatever_its_unsigned_headers_say() {
    let guarded = Guarded::by(receiver().ignore_header_mismatch());
    let sent = Sent::new(event("evt_1"));
    assert_eq!(guarded.status(&sent).await, 204);
    for name in [
        "X-Service-Event-Id",
        "X-Service-Event-Type",
        "X-Service-Webhook-Id",
        "User-Agent",
    ] {
        let renamed = sent.clone().with(name, "evt_fresh");
        assert!(guarded.replays(&renamed).await, "{name}");
    }
    let signed_afresh = Sent::at(now() - 5, event("evt_1"));
    assert!(guarded.replays(&signed_afresh).await);
    assert_eq!(guarded.probe.started(), 1);
    // An old id in a new event's header must not silence it.
    let new = Sent::new(event("evt_2")).with("X-Service-Event-Id", "evt_1");
    assert_eq!(guarded.status(&new).await, 204);
    assert_eq!(guarded.probe.started(), 2);
}

fn now() -> i64 {
    hookgate::clock::Clock::now(&SystemClock).as_i64()
}

// fault S2-04: the webhook-id header names another subscription, or none that is known
// fault S2-08: another tenant uses up a victim's event ids
#[tokio::test]
async fn the_secret_of_another_subscription_neither_verifies_nor_claims() {
    let keys = Keys::by_subscription([("wh_1", secret()), ("wh_2", other())]).unwrap();
    let guarded = guarded(Receiver::builder().keys(keys));
    for (what, secret, id, status) in [
        ("another's secret", OTHER, "wh_1", 401),
        ("another's secret", SECRET, "wh_2", 401),
        ("under its own name", OTHER, "wh_2", 204),
        (
            "the same id, another scope: not silenced",
            SECRET,
            "wh_1",
            204,
        ),
        ("a copy", SECRET, "wh_1", 200),
    ] {
        let sent = Sent::signed(secret, NOW, event("evt_1")).with("X-Service-Webhook-Id", id);
        assert_eq!(guarded.status(&sent).await, status, "{what}");
    }
    assert_eq!(guarded.probe.started(), 2);
}

// fault S2-08: another tenant uses up a victim's event ids
#[tokio::test]
async fn rings_share_their_ids_only_under_one_scope() {
    let ring = |secret: Secret| KeyRing::new(secret).with_scope("both").unwrap();
    let rings = [("wh_1", ring(secret())), ("wh_2", ring(other()))];
    let guarded = guarded(Receiver::builder().subscriptions(rings));
    let first = Sent::at(NOW, event("evt_1")).with("X-Service-Webhook-Id", "wh_1");
    assert_eq!(guarded.status(&first).await, 204);
    let copy = Sent::signed(OTHER, NOW, event("evt_1")).with("X-Service-Webhook-Id", "wh_2");
    assert!(guarded.replays(&copy).await);
}

// fault S2-05: one secret under two subscriptions
#[test]
fn one_secret_under_two_subscriptions_is_refused() {
    let error = Keys::by_subscription([("wh_1", secret()), ("wh_2", secret())]).unwrap_err();
    assert_eq!(error.kind(), ConfigErrorKind::UnusableKeys);
}

// fault S2-09: another tenant claims a victim's workspace
#[tokio::test]
async fn a_pinned_workspace_lets_no_other_in() {
    let ring = |workspace: &str| KeyRing::new(secret()).with_workspace(workspace).unwrap();
    for (workspace, status) in [("ws_1", 204), ("ws_2", 401)] {
        let guarded = guarded(Receiver::builder().key_ring(ring(workspace)));
        let sent = Sent::at(NOW, event("evt_1"));
        assert_eq!(guarded.status(&sent).await, status, "{workspace}");
        let none = event("evt_2").replace(r#""workspaceId":"ws_1","#, "");
        assert_eq!(
            guarded.status(&Sent::at(NOW, none)).await,
            401,
            "{workspace}"
        );
        let runs = usize::from(status == 204);
        assert_eq!(guarded.probe.started(), runs, "{workspace}");
    }
}

#[tokio::test]
async fn a_second_workspace_never_passes_a_pinned_ring_beside_other_rings() {
    let pinned = KeyRing::new(secret()).with_workspace("ws_1").unwrap();
    let free = KeyRing::new(Secret::new("whsec_made_up_for_another_subscription").unwrap());
    let keys = Keys::by_subscription([("wh_1", pinned), ("wh_2", free)]).unwrap();
    let guarded = guarded(Receiver::builder().keys(keys));
    let (first, rest) = (r#""workspaceId":"ws_1","#, event("evt_1"));
    let rest = rest.replace(first, "");
    let inner = &rest[1..rest.len() - 1];
    #[rustfmt::skip] // a row a case
    let cases = [
        (format!("{{{first}{inner}}}"), 204),
        (format!(r#"{{{first}{inner},"workspaceId":"ws_2"}}"#), 401),
        (format!(r#"{{{first}{inner},"workspaceId":"ws_1"}}"#), 401),
        (format!(r#"{{{first}{inner},"workspace\u0049d":"ws_2"}}"#), 401),
        (format!(r#"{{"workspaceId":"ws_2",{first}{inner}}}"#), 401),
        (format!(r#"{{{inner}}}"#), 401),
        // Malformed behind the first workspace: no reader can say which one it names.
        (format!(r#"{{{first}{inner},"#), 400),
        (format!(r#"{{{first}{inner}}}{{}}"#), 400),
    ];
    for (body, status) in cases {
        let sent = Sent::at(NOW, body.clone()).with("X-Service-Webhook-Id", "wh_1");
        assert_eq!(guarded.status(&sent).await, status, "{body}");
    }
    assert_eq!(guarded.probe.started(), 1);
}

// fault S2-39: a rotated secret stays valid
#[tokio::test]
async fn rotation_lets_both_keys_in_and_forgets_nothing() {
    let both = KeyRing::named("new", other()).unwrap();
    let both = both.with_key("old", secret()).unwrap();
    let guarded = guarded(Receiver::builder().secret(secret()));
    let old = |id: &str| Sent::at(NOW, event(id));
    let new = |id: &str| Sent::signed(OTHER, NOW, event(id));
    assert_eq!(guarded.status(&old("evt_1")).await, 204);
    assert_eq!(guarded.status(&new("evt_1")).await, 401);
    guarded.receiver.keys().replace(both).unwrap();
    assert!(guarded.replays(&new("evt_1")).await);
    assert_eq!(guarded.status(&old("evt_2")).await, 204);
    guarded.receiver.keys().replace(other()).unwrap();
    let retired = guarded.status(&old("evt_3")).await;
    assert_eq!(retired, 401, "from the next request on");
    assert!(guarded.replays(&new("evt_2")).await);
    assert_eq!(guarded.probe.started(), 2);
}

// fault S2-07: a replay after silent eviction from a full store
// fault S2-28: an authentic flood fills memory
// fault S4: a store that is scanned at each delivery, unbounded, with too short a memory
#[tokio::test]
async fn a_full_store_that_refuses_loses_nothing_unreported() {
    let store = MemoryStore::new(Capacity::new(2).refusing_when_full());
    let guarded = Guarded::by(receiver().store(store));
    for id in ["evt_1", "evt_2"] {
        assert_eq!(guarded.status(&Sent::new(event(id))).await, 204);
    }
    let refused = ask(&guarded.app, &Sent::new(event("evt_3"))).await;
    assert_eq!(refused.status, 503);
    assert!(refused.headers.contains_key("retry-after"));
    let done = Sent::new(event("evt_1"));
    assert!(guarded.replays(&done).await, "what is done stays done");
    assert_eq!(guarded.probe.started(), 2);
}

// fault S2-06: a replay inside the window, or inside the retry schedule
// fault S4: a store that is scanned at each delivery, unbounded, with too short a memory
#[test]
fn a_retention_that_does_not_cover_the_retries_is_refused() {
    let built = |hours: u64| {
        receiver()
            .retention(Duration::from_secs(hours * 3_600))
            .build()
    };
    for hours in [0, 1, 24, 26] {
        let kind = built(hours).unwrap_err().kind();
        assert!(
            matches!(kind, ConfigErrorKind::RetentionTooShort { .. }),
            "{hours} h"
        );
    }
    assert!(built(27).is_ok());
}

// fault S2-33: a panic keeps the claim or poisons a lock
#[tokio::test]
async fn a_handler_that_panics_harms_neither_its_event_nor_others() {
    let receiver = receiver().build().unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let handler = move |delivery: Delivery| async move {
        if counted.fetch_add(1, Ordering::SeqCst) == 0 {
            panic!("on purpose, with {}", delivery.event_id());
        }
        StatusCode::NO_CONTENT
    };
    let app = Router::new().route("/hook", post(handler).layer(receiver.layer()));
    let server = Server::start(app).await;
    let mut wire = server.connect().await;
    for (id, status) in [
        ("evt_1", 500),
        ("evt_2", 204),
        ("evt_1", 204),
        ("evt_1", 200),
    ] {
        wire.send(&Sent::new(event(id)).bytes()).await;
        let answer = wire.answer().await.unwrap();
        assert_eq!(answer.status, status, "{id}, on the same connection");
    }
    assert_eq!((runs.load(Ordering::SeqCst), receiver.runs()), (3, 0));
}

// fault S3: a finished duplicate is answered 409; a 4xx keeps the claim
// fault S10: failures are cached and replayed to each retry
#[tokio::test]
async fn every_answer_but_2xx_lets_the_retry_run() {
    for status in [300, 302, 400, 404, 409, 410, 422, 429, 500, 503] {
        let receiver = receiver().build().unwrap();
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let handler = move || async move {
            match counted.fetch_add(1, Ordering::SeqCst) {
                0 => StatusCode::from_u16(status).unwrap(),
                _ => StatusCode::CREATED,
            }
        };
        let app = Router::new().route("/hook", post(handler).layer(receiver.layer()));
        let sent = Sent::new(event("evt_1"));
        assert_eq!(ask(&app, &sent).await.status, status);
        assert_eq!(ask(&app, &sent).await.status, 201, "after {status}");
        assert!(ask(&app, &sent).await.is_replay(), "after {status}");
        assert_eq!(runs.load(Ordering::SeqCst), 2);
    }
}

// fault S2-35: a copy is acknowledged while the first one runs
// fault S11: check, then run: two copies at once both run
#[tokio::test(start_paused = true)]
async fn many_copies_at_once_run_once_and_none_is_acknowledged_early() {
    let receiver = receiver().build().unwrap();
    let probe = Probe::new().hold();
    let app = app(&receiver, &probe);
    let sent = Sent::new(event("evt_1"));
    let copies: Vec<_> = (0..20)
        .map(|_| {
            let (app, sent) = (app.clone(), sent.clone());
            tokio::spawn(async move { ask(&app, &sent).await })
        })
        .collect();
    eventually("one runs", || probe.started() == 1).await;
    // Paused time passes when nothing else is left to do: each copy waits or is answered.
    tokio::time::sleep(Duration::from_millis(50)).await;
    probe.let_go();
    let mut statuses = std::collections::BTreeMap::<u16, usize>::new();
    for copy in copies {
        *statuses.entry(copy.await.unwrap().status).or_default() += 1;
    }
    assert_eq!(statuses.get(&204), Some(&1), "{statuses:?}");
    let known = statuses
        .keys()
        .all(|status| [200, 204, 503].contains(status));
    // At most four wait for one event.
    assert!(known && statuses[&200] <= 4, "{statuses:?}");
    assert_eq!(probe.started(), 1);
}

// fault S2-37: a crash between claim and commit
// fault S6: a cancelled handler blocks its event past the first retry
#[tokio::test]
async fn the_claim_of_a_dead_process_is_free_when_its_lease_ends() {
    let clock = manual();
    let store = MemoryStore::default().with_clock(Arc::new(clock.clone()));
    let guarded = Guarded::by(receiver().store(store).clock(clock.clone()));
    let receiver = &guarded.receiver;
    let delivery = Sent::at(NOW, event("evt_1")).delivered_to(receiver);
    // Claimed, and neither committed nor released: as a crash leaves it.
    drop(receiver.admit(&delivery).await.unwrap());
    let again = receiver.admit(&delivery).await.unwrap();
    assert!(matches!(again, Admission::Running { .. }));
    // The first retry comes after a minute.
    clock.advance(Duration::from_secs(60));
    let retry = Sent::at(NOW + 60, event("evt_1"));
    assert_eq!(guarded.status(&retry).await, 204);
    assert_eq!(guarded.probe.started(), 1);
}

// fault S2-37: a crash between claim and commit
// fault S2-38: several processes, each with a memory of its own
#[tokio::test]
async fn a_store_in_memory_forgets_at_a_restart_and_keeps_to_its_process() {
    let sent = Sent::new(event("evt_1"));
    for _ in 0..2 {
        let status = Guarded::by(receiver()).status(&sent).await;
        assert_eq!(status, 204, "at least once across restarts");
    }
    // The shared store makes it run once.
    let shared = Arc::new(MemoryStore::default());
    let replica = || Guarded::by(receiver().store(Arc::clone(&shared)));
    assert_eq!(replica().status(&sent).await, 204);
    assert!(replica().replays(&sent).await);
}

// fault S2-06: a replay inside the window, or inside the retry schedule
#[tokio::test]
async fn what_is_done_is_remembered_for_the_whole_retry_schedule() {
    let clock = manual();
    let store = MemoryStore::default().with_clock(Arc::new(clock.clone()));
    let guarded = Guarded::by(receiver().store(store).clock(clock.clone()));
    assert_eq!(guarded.status(&Sent::at(NOW, event("evt_1"))).await, 204);
    let last_retry = 26 * 3_600 + 36 * 60 + 30;
    clock.advance(Duration::from_secs(last_retry));
    let last_retry = NOW + i64::try_from(last_retry).unwrap();
    clock.set_wall(UnixSeconds::new(last_retry));
    let retry = Sent::at(last_retry, event("evt_1"));
    assert!(guarded.replays(&retry).await);
    assert_eq!(guarded.probe.started(), 1);
}
