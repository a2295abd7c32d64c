//! The outcomes table and promises 3, 4 and 8, in virtual time.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::response::IntoResponse;
use hookgate::extract::EventRejection;
use hookgate::{
    DeadLetter, DedupeStore, Delivery, EventData, HandlerError, MemoryStore, Outcome, Properties,
    Secret,
    dedupe::{ClaimToken, Claimed, EventKey, StoreError, StoreErrorKind, StoreFuture},
    layer::{AlreadyHandled, Answer},
    outcome::{Failure, RefusalKind, Unrecorded},
};
use http::StatusCode;
use tokio::time::{Instant, sleep};

use crate::harness::{Harness, SECRET, Sent, TokioClock, late_body, pass, replayed};
use crate::store_proxy::{Call, StoreProxy, store_proxy};
use crate::support::PATIENCE;

const OK: StatusCode = StatusCode::NO_CONTENT;

#[tokio::test(start_paused = true)]
async fn a_copy_runs_when_the_run_it_waited_for_has_failed() {
    let harness = Harness::of(|_, run| async move {
        sleep(Duration::from_secs(1)).await;
        if run == 1 {
            StatusCode::INTERNAL_SERVER_ERROR
        } else {
            OK
        }
    });
    let first = harness.begin(&Sent::event("evt_1")).await;
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
    assert_eq!(first.await.unwrap().status(), 500);
    assert_eq!(harness.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_an_unfinished_run_never_hears_2xx() {
    let harness = Harness::of(|_, _| async {
        sleep(Duration::from_secs(20)).await;
        StatusCode::INTERNAL_SERVER_ERROR
    });
    let first = harness.begin(&Sent::event("evt_1")).await;
    let began = Instant::now();
    let copy = harness.send(&Sent::event("evt_1")).await;
    assert_eq!(copy.status(), 503);
    assert!(copy.headers().contains_key("retry-after"));
    assert_eq!(began.elapsed().as_millis(), 4_500);
    assert_eq!(
        harness.told.last_answer(),
        Outcome::Refused(RefusalKind::StillRunning)
    );
    assert_eq!(first.await.unwrap().status(), 503);
    pass(30_000).await;
    assert_eq!(harness.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn at_most_four_copies_wait_for_one_event_and_64_in_all() {
    let harness = Harness::of(|_, _| async {
        sleep(Duration::from_secs(3)).await;
        OK
    });
    let first = harness.begin(&Sent::event("evt_1")).await;
    let mut copies = Vec::new();
    for _ in 0..4 {
        copies.push(harness.begin(&Sent::event("evt_1")).await);
    }
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), 503);
    let refused = Outcome::Refused(RefusalKind::StillRunning);
    assert_eq!(harness.told.last_answer(), refused);
    // 15 more events with 4 copies each make 64.
    let mut others = Vec::new();
    for event in 2..=16 {
        for _ in 0..5 {
            others.push(harness.begin(&Sent::event(&format!("evt_{event}"))).await);
        }
    }
    let last = harness.begin(&Sent::event("evt_17")).await;
    assert_eq!(harness.send(&Sent::event("evt_17")).await.status(), 503);
    assert_eq!(harness.told.last_answer(), refused);
    for copy in copies.into_iter().chain(others) {
        assert!(copy.await.unwrap().status().is_success());
    }
    assert!(first.await.unwrap().status() == OK && last.await.unwrap().status() == OK);
    assert_eq!(harness.runs(), 17);
    // Each of them came beside a run that reports its own end: nothing was lost here.
    assert!(harness.told.failed.lock().unwrap().is_empty());
    // All places are free again.
    let again = harness.begin(&Sent::event("evt_18")).await;
    assert!(replayed(&harness.send(&Sent::event("evt_18")).await));
    assert_eq!(again.await.unwrap().status(), OK);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_copy_that_hangs_up_leaves_nothing_behind() {
    let harness = Harness::new(
        |builder, _| builder,
        |_, _| async {
            sleep(Duration::from_secs(3)).await;
            OK
        },
    );
    let first = harness.begin(&Sent::event("evt_1")).await;
    harness.begin(&Sent::event("evt_1")).await.abort();
    pass(100).await;
    // Its place is free.
    assert!(replayed(&harness.send(&Sent::event("evt_1")).await));
    assert_eq!(first.await.unwrap().status(), OK);
    assert_eq!(harness.runs(), 1);
}

// fault F30: a handler panics, and the operator learns only that it did, unless the panic hook's output is kept
#[tokio::test(start_paused = true)]
async fn a_panic_anywhere_in_the_handler_is_500_and_releases() {
    struct PanicsWhenDropped;
    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("made-up panic in a destructor");
        }
    }
    let harness = Harness::of(|_, run| {
        assert_ne!(run, 1, "made-up panic in the call");
        async move {
            assert_ne!(run, 2, "made-up panic in the first poll");
            sleep(Duration::from_secs(1)).await;
            assert_ne!(run, 3, "made-up panic in a later poll");
            let _bomb = (run == 4).then(|| PanicsWhenDropped);
            OK
        }
    });
    for said in [
        "in the call",
        "in the first poll",
        "in a later poll",
        "in a destructor",
    ] {
        let answer = harness.send(&Sent::event("evt_1")).await;
        assert_eq!(answer.status(), 500);
        let panicked = Outcome::Failed(Failure::Panicked);
        assert_eq!(harness.told.last_answer(), panicked);
        // The operator gets the message. The sender gets the text of every other failure.
        let told = answer.extensions().get::<Answer>().unwrap().to_string();
        assert!(
            told.starts_with("500 panicked: ") && told.contains(said),
            "{told}"
        );
        let failed = harness
            .told
            .failed
            .lock()
            .unwrap()
            .last()
            .unwrap()
            .to_string();
        assert!(failed.contains(said), "{failed}");
        let body = axum::body::to_bytes(answer.into_body(), 999).await.unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(
            body.contains("INTERNAL_ERROR") && !body.contains("made-up"),
            "{body}"
        );
    }
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
    assert_eq!(harness.runs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_run_over_its_limit_is_aborted_released_and_reported() {
    let harness = Harness::of(|_, run| async move {
        if run == 1 {
            sleep(Duration::from_secs(3_600)).await;
        }
        OK
    });
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), 503);
    pass(590_000).await;
    assert!(harness.told.settled().is_empty());
    pass(10_000).await;
    assert_eq!(harness.told.settled(), [Outcome::Failed(Failure::RunLimit)]);
    assert_eq!(harness.told.failed.lock().unwrap().len(), 1);
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
}

#[tokio::test(start_paused = true)]
async fn renewal_holds_the_claim_of_a_long_run() {
    let harness = Harness::of(|_, _| async {
        sleep(Duration::from_secs(200)).await;
        OK
    });
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), 503);
    for _ in 0..3 {
        pass(45_000).await; // longer than a lease
        assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), 503);
    }
    pass(120_000).await;
    assert!(replayed(&harness.send(&Sent::event("evt_1")).await));
    assert_eq!(harness.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_shorter_than_the_budget_is_renewed_as_well() {
    let harness = Harness::new(
        |builder, _| builder.lease(Duration::from_millis(300)),
        |_, _| async {
            sleep(Duration::from_secs(2)).await;
            OK
        },
    );
    let first = harness.begin(&Sent::event("evt_1")).await;
    pass(1_000).await;
    assert!(replayed(&harness.send(&Sent::event("evt_1")).await));
    assert_eq!(first.await.unwrap().status(), OK);
    assert_eq!(harness.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_runs_out_of_time_aborts_and_releases() {
    let store = Arc::new(MemoryStore::default().with_clock(TokioClock::start()));
    let shared = Arc::clone(&store);
    let harness = Harness::new(
        |builder, _| builder.store(shared),
        |_, _| async {
            sleep(Duration::from_secs(100)).await;
            OK
        },
    );
    let attached = harness.begin(&Sent::event("evt_1")).await;
    let began = Instant::now();
    let drained = harness.receiver.drain(Duration::from_secs(2)).await;
    assert_eq!((drained, began.elapsed().as_secs()), (1, 2));
    assert_eq!(attached.await.unwrap().status(), 503);
    assert_eq!(harness.told.settled(), [Outcome::Failed(Failure::Drained)]);
    assert_eq!(harness.receiver.runs(), 0);
    let key = EventKey::new("default", "evt_1");
    let claim = store.claim(&key, ClaimToken::new(b""), Duration::from_secs(1));
    assert_eq!(claim.await.unwrap(), Claimed::Fresh);
}

// fault Q8: what a handler found done is run again, or makes a success of a failure
#[tokio::test(start_paused = true)]
async fn what_the_handler_finds_done_is_answered_as_a_replay_and_committed() {
    for already in [AlreadyHandled::new(), AlreadyHandled::with_other_body()] {
        let same_body = already.same_body();
        let harness = Harness::of(move |_, _| async move {
            (AlreadyHandled::mark(already, "unused".into_response())).into_response()
        });
        let answer = harness.send(&Sent::event("evt_1")).await;
        assert!(replayed(&answer));
        assert_eq!(answer.status(), 200);
        let body = axum::body::to_bytes(answer.into_body(), 100).await.unwrap();
        assert!(body.is_empty());
        assert!(replayed(&harness.send(&Sent::event("evt_1")).await));
        assert_eq!(harness.runs(), 1, "the claim was not committed");
        assert_eq!(harness.told.settled(), [Outcome::Replayed { same_body }]);
        let answers = harness.told.answers.lock().unwrap().clone();
        assert_eq!(
            answers,
            [
                Outcome::Replayed { same_body },
                Outcome::Replayed { same_body: true }
            ]
        );
        assert!(harness.told.failed.lock().unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_of_no_need_to_say_that_an_event_is_done() {
    let harness = Harness::without_store(
        |builder, _| builder.without_deduplication(),
        |_, _| async { AlreadyHandled::new() },
    );
    for _ in 0..2 {
        assert!(replayed(&harness.send(&Sent::event("evt_1")).await));
    }
    assert_eq!(harness.runs(), 2);
    let replay = Outcome::Replayed { same_body: true };
    assert_eq!(harness.told.settled(), [replay, replay]);
}

#[tokio::test(start_paused = true)]
async fn what_is_found_done_late_is_done_for_the_retry() {
    let harness = Harness::of(|_, _| async {
        sleep(Duration::from_secs(20)).await;
        AlreadyHandled::new()
    });
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), 503);
    sleep(Duration::from_secs(20)).await;
    assert!(replayed(&harness.send(&Sent::event("evt_1")).await));
    assert_eq!(harness.runs(), 1);
    let settled = harness.told.settled.lock().unwrap().clone();
    assert!(settled.len() == 1 && settled[0].late);
    assert_eq!(settled[0].outcome, Outcome::Replayed { same_body: true });
}

// fault Q8: what a handler found done is run again, or makes a success of a failure
#[tokio::test(start_paused = true)]
async fn no_failure_becomes_a_success_by_the_mark_of_one() {
    let harness = Harness::of(|_, _| async {
        (StatusCode::BAD_GATEWAY, AlreadyHandled::new()).into_response()
    });
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), 502);
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), 502);
    let failed = Outcome::Failed(Failure::Status(502));
    assert_eq!(harness.told.settled(), [failed, failed]);
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_is_done_once_its_hook_has_it() {
    let letters = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&letters);
    let harness = Harness::new(
        |builder, _| {
            builder.on_dead_letter(move |delivery, letter| {
                kept.lock().unwrap().push((delivery, letter));
                async { Ok(()) }
            })
        },
        |_, _| async { DeadLetter::new("no such customer") },
    );
    let answer = harness.send(&Sent::event("evt_1")).await;
    assert_eq!(answer.status(), 200);
    assert!(!replayed(&answer));
    assert!(replayed(&harness.send(&Sent::event("evt_1")).await));
    let letters = letters.lock().unwrap();
    let (delivery, letter) = &letters[0];
    assert_eq!(letter.reason(), "no such customer");
    assert_eq!(*delivery.body(), Sent::event("evt_1").body);
    assert_eq!(harness.told.settled(), [Outcome::DeadLettered]);
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_hook_that_fails_or_panics_loses_nothing() {
    let calls = Arc::new(AtomicUsize::new(0));
    let harness = Harness::new(
        |builder, _| {
            builder.on_dead_letter(move |_, _| {
                let call = calls.fetch_add(1, Ordering::SeqCst) + 1;
                async move {
                    assert_ne!(call, 2, "made-up panic in the hook");
                    if call == 1 {
                        Err("disk full".into())
                    } else {
                        Ok(())
                    }
                }
            })
        },
        |_, _| async { DeadLetter::new("never") },
    );
    for expected in [500, 500, 200] {
        let status = harness.send(&Sent::event("evt_1")).await.status();
        assert_eq!(status, expected);
    }
    let failed = Outcome::Failed(Failure::DeadLetterFailed);
    assert_eq!(
        harness.told.settled(),
        [failed, failed, Outcome::DeadLettered]
    );
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_without_a_hook_says_which_setting_is_missing() {
    let harness = Harness::of(|_, _| async { DeadLetter::new("never") });
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), 500);
    let failed = harness.told.failed.lock().unwrap();
    let missing = Outcome::Failed(Failure::DeadLetterHookMissing);
    assert_eq!(failed[0].outcome, missing);
    let reason = failed[0].reason.as_ref().unwrap().to_string();
    assert!(reason.contains("on_dead_letter"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn panicking_hooks_and_shapes_harm_nothing() {
    let harness = Harness::new(
        |builder, _| {
            builder
                .on_answer(|_| panic!("made-up panic in on_answer"))
                .on_settled(|_| panic!("made-up panic in on_settled"))
                .on_failed(|_| panic!("made-up panic in on_failed"))
                .map_own_responses(|_, _| panic!("made-up panic in a shape"))
        },
        |_, run| async move {
            if run == 1 {
                StatusCode::INTERNAL_SERVER_ERROR
            } else {
                OK
            }
        },
    );
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), 500);
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
    assert!(replayed(&harness.send(&Sent::event("evt_1")).await));
}

#[tokio::test(start_paused = true)]
async fn own_answers_can_be_replaced_whole() {
    let harness = Harness::new(
        |builder, _| {
            builder.map_own_responses(|outcome, response| {
                let text = outcome
                    .error()
                    .map_or("fine", |(code, _)| code)
                    .to_lowercase();
                http::Response::builder()
                    .status(response.status())
                    .header("x-shaped", "yes")
                    .body(text.into())
                    .unwrap()
            })
        },
        |_, _| async { OK },
    );
    let mut sent = Sent::event("evt_1");
    sent.age = 301;
    let answer = harness.send(&sent).await;
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["x-shaped"]),
        (401, &"yes".parse().unwrap())
    );
    let body = axum::body::to_bytes(answer.into_body(), 100).await.unwrap();
    assert_eq!(body, "unauthorized");
}

#[tokio::test(start_paused = true)]
async fn a_failure_report_has_the_raw_delivery_and_the_probable_attempt() {
    let harness = Harness::of(|_, _| async { StatusCode::INTERNAL_SERVER_ERROR });
    // The body says that the event was created when the harness's clock started.
    for (minutes, attempt, may_be_last) in [
        (0, 1, false),
        (1, 2, false),
        (5, 3, false),
        (30, 4, false),
        (120, 5, true),
        (1_440, 6, true),
    ] {
        pass(minutes * 60_000).await;
        harness.send(&Sent::event("evt_1")).await;
        let failed = harness.told.failed.lock().unwrap();
        let last = failed.last().unwrap();
        let told = last.attempt.as_ref().unwrap();
        assert_eq!((told.number, told.may_be_last), (attempt, may_be_last));
        assert_eq!(last.verified.body(), Sent::event("evt_1").body.as_bytes());
    }
}

#[tokio::test(start_paused = true)]
async fn another_body_under_the_same_id_is_a_duplicate_and_reported_as_such() {
    let harness = Harness::of(|_, _| async { OK });
    let sent = Sent::event("evt_1");
    harness.send(&sent).await;
    let other = Sent {
        body: sent.body.replace("row_1", "row_2"),
        ..sent
    };
    assert!(replayed(&harness.send(&other).await));
    assert_eq!(
        harness.told.last_answer(),
        Outcome::Replayed { same_body: false }
    );
    assert_eq!(harness.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_deduplication_every_copy_runs() {
    let harness = Harness::without_store(
        |builder, _| builder.without_deduplication(),
        |_, _| async { OK },
    );
    for _ in 0..3 {
        assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
    }
    assert_eq!(harness.runs(), 3);
}

/// A store whose calls fail, hang or answer as set, over a `MemoryStore`.
#[derive(Debug)]
struct Faulty {
    inner: MemoryStore,
    claim: Mutex<Fault>,
    commit: Mutex<Fault>,
    release: Mutex<Fault>,
    calls: AtomicUsize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// Fails this many times without effect.
    Fails(usize),
    /// Takes effect, and loses its reply this many times.
    LosesReply(usize),
    /// Takes effect, and answers after this many milliseconds.
    Slow(u64),
    SlowlyFails(u64),
}

impl Faulty {
    fn new(clock: &TokioClock) -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryStore::default().with_clock(clock.clone()),
            claim: Mutex::new(Fault::None),
            commit: Mutex::new(Fault::None),
            release: Mutex::new(Fault::None),
            calls: AtomicUsize::new(0),
        })
    }

    fn fault(&self, call: Call) -> Option<&Mutex<Fault>> {
        match call {
            Call::Claim => Some(&self.claim),
            Call::Renew => None,
            Call::Commit => Some(&self.commit),
            Call::Release => Some(&self.release),
        }
    }
}

impl StoreProxy for Faulty {
    fn pass<'a, T: Send + Unpin + 'static>(
        &'a self,
        call: Call,
        call_inner: impl FnOnce(&'a MemoryStore) -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        let Some(fault) = self.fault(call) else {
            return call_inner(&self.inner);
        };
        self.calls.fetch_add(1, Ordering::SeqCst);
        StoreFuture::boxed(async move {
            let lost = || StoreError::new(StoreErrorKind::Unavailable);
            let now = *fault.lock().unwrap();
            match now {
                Fault::None | Fault::Fails(0) | Fault::LosesReply(0) => {
                    call_inner(&self.inner).await
                }
                Fault::Fails(times) => {
                    *fault.lock().unwrap() = Fault::Fails(times - 1);
                    Err(lost())
                }
                Fault::LosesReply(times) => {
                    *fault.lock().unwrap() = Fault::LosesReply(times - 1);
                    call_inner(&self.inner).await?;
                    Err(lost())
                }
                Fault::Slow(millis) => {
                    let answer = call_inner(&self.inner).await;
                    sleep(Duration::from_millis(millis)).await;
                    answer
                }
                Fault::SlowlyFails(millis) => {
                    sleep(Duration::from_millis(millis)).await;
                    Err(lost())
                }
            }
        })
    }
}

store_proxy!(Faulty);

fn with_faulty_store(
    script: impl Fn(usize) -> StatusCode + Clone + Send + Sync + 'static,
) -> (Harness, Arc<Faulty>) {
    let mut store = None;
    let harness = Harness::new(
        |builder, clock| {
            let faulty = Faulty::new(clock);
            store = Some(Arc::clone(&faulty));
            builder.store(faulty)
        },
        move |_, run| {
            let status = script(run);
            async move { status }
        },
    );
    (harness, store.unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_claim_is_503_and_leaves_no_claim_behind() {
    let (harness, store) = with_faulty_store(|_| OK);
    for fault in [Fault::Fails(1), Fault::LosesReply(1)] {
        *store.claim.lock().unwrap() = fault;
        assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), 503);
        let refused = Outcome::Refused(RefusalKind::StoreUnavailable);
        assert_eq!(harness.told.last_answer(), refused);
    }
    assert_eq!(harness.runs(), 0);
    assert_eq!(harness.told.failed.lock().unwrap().len(), 2);
    // Not blocked by the claim whose reply was lost.
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
}

#[tokio::test(start_paused = true)]
async fn a_slow_claim_is_503_after_a_second_and_is_released_when_it_lands() {
    let (harness, store) = with_faulty_store(|_| OK);
    *store.claim.lock().unwrap() = Fault::Slow(3_000);
    let began = Instant::now();
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), 503);
    assert_eq!(began.elapsed().as_millis(), 1_000);
    let refused = Outcome::Refused(RefusalKind::StoreTooSlow);
    assert_eq!(harness.told.last_answer(), refused);
    *store.claim.lock().unwrap() = Fault::None;
    pass(2_500).await;
    assert_eq!(harness.receiver.runs(), 0);
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
    assert_eq!(harness.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hang_up_during_the_claim_is_reported_once_and_an_answer_once() {
    let (harness, store) = with_faulty_store(|_| OK);
    let failed = || -> Vec<_> {
        let failed = harness.told.failed.lock().unwrap();
        failed.iter().map(|failed| failed.outcome).collect()
    };
    let told = |kind| vec![Outcome::Refused(kind)];
    for (fault, kind) in [
        (Fault::Slow(500), RefusalKind::StoreTooSlow),
        // Answered after a second, and reported then: not again when the claim is granted.
        (Fault::Slow(3_000), RefusalKind::StoreTooSlow),
    ] {
        *store.claim.lock().unwrap() = fault;
        harness.told.failed.lock().unwrap().clear();
        let request = harness.begin(&Sent::event("evt_1")).await;
        pass(if matches!(fault, Fault::Slow(500)) {
            100
        } else {
            1_000
        })
        .await;
        request.abort();
        pass(5_000).await;
        assert_eq!(failed(), told(kind), "{fault:?}");
    }
    // A store that fails after the sender is gone.
    *store.claim.lock().unwrap() = Fault::SlowlyFails(500);
    harness.told.failed.lock().unwrap().clear();
    let request = harness.begin(&Sent::event("evt_1")).await;
    request.abort();
    pass(5_000).await;
    assert_eq!(failed(), told(RefusalKind::StoreUnavailable));
    // One that is done already is not a failure.
    *store.claim.lock().unwrap() = Fault::None;
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
    *store.claim.lock().unwrap() = Fault::Slow(500);
    harness.told.failed.lock().unwrap().clear();
    harness.begin(&Sent::event("evt_1")).await.abort();
    pass(5_000).await;
    assert_eq!(failed(), []);
    assert_eq!((harness.runs(), harness.receiver.runs()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_hang_up_during_the_claim_releases_it() {
    let (harness, store) = with_faulty_store(|_| OK);
    *store.claim.lock().unwrap() = Fault::Slow(500);
    harness.begin(&Sent::event("evt_1")).await.abort();
    *store.claim.lock().unwrap() = Fault::None;
    pass(1_000).await;
    assert_eq!((harness.runs(), harness.receiver.runs()), (0, 0));
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
}

#[tokio::test(start_paused = true)]
async fn a_success_is_answered_2xx_whatever_its_commit_does() {
    let (harness, store) = with_faulty_store(|_| OK);
    for (event, fault, outcome, millis) in [
        // A commit is repeated at once: its token makes that safe.
        ("evt_1", Fault::Fails(1), Outcome::Handled, 0),
        ("evt_2", Fault::LosesReply(1), Outcome::Handled, 0),
        (
            "evt_3",
            Fault::Fails(9),
            Outcome::HandledUnrecorded(Unrecorded::StoreFailed),
            0,
        ),
        (
            "evt_4",
            Fault::Slow(9_000),
            Outcome::HandledUnrecorded(Unrecorded::TooSlow),
            1_000,
        ),
    ] {
        *store.commit.lock().unwrap() = fault;
        let began = Instant::now();
        assert_eq!(harness.send(&Sent::event(event)).await.status(), OK);
        assert_eq!(began.elapsed().as_millis(), millis, "{event}");
        assert_eq!(harness.told.last_answer(), outcome, "{event}");
    }
    pass(10_000).await;
    // The slow commit has landed, and so has the one that failed first: their runs were late for that.
    let settled = harness.told.settled.lock().unwrap().clone();
    let late: Vec<_> = settled.iter().map(|run| (run.outcome, run.late)).collect();
    let (in_time, late) = late.split_at(2);
    assert_eq!(in_time, [(Outcome::Handled, false); 2]);
    assert_eq!(late, [(Outcome::Handled, true); 2]);
    *store.commit.lock().unwrap() = Fault::None;
    for event in ["evt_3", "evt_4"] {
        assert!(replayed(&harness.send(&Sent::event(event)).await));
    }
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_fails_is_repeated_behind_the_answer_until_the_store_is_back() {
    let (harness, store) = with_faulty_store(|_| OK);
    *store.commit.lock().unwrap() = Fault::Fails(usize::MAX);
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
    let failed = Outcome::HandledUnrecorded(Unrecorded::StoreFailed);
    assert_eq!(harness.told.last_answer(), failed);
    pass(6_000).await;
    assert!(harness.told.settled().is_empty());
    *store.commit.lock().unwrap() = Fault::None;
    pass(1_000).await;
    let settled = harness.told.settled.lock().unwrap().clone();
    let settled: Vec<_> = settled.iter().map(|run| (run.outcome, run.late)).collect();
    assert_eq!(settled, [(Outcome::Handled, true)]);
    assert!(replayed(&harness.send(&Sent::event("evt_1")).await));
    assert_eq!((harness.runs(), harness.receiver.runs()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_commit_is_given_up_when_its_lease_ends_or_the_receiver_is_drained() {
    let (harness, store) = with_faulty_store(|_| OK);
    *store.commit.lock().unwrap() = Fault::Fails(usize::MAX);
    let failed = Outcome::HandledUnrecorded(Unrecorded::StoreFailed);
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
    pass(28_000).await;
    assert_eq!(harness.receiver.runs(), 1);
    pass(2_000).await;
    assert_eq!(harness.told.settled(), [failed]);
    assert_eq!(harness.receiver.runs(), 0);
    // The event is free again, as after a crash.
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
    let drained = harness.receiver.drain(Duration::from_secs(1)).await;
    assert_eq!((drained, harness.receiver.runs()), (1, 0));
    assert_eq!(harness.told.settled(), [failed, failed]);
    assert_eq!(harness.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_slow_release_does_not_keep_the_answer() {
    let (harness, store) = with_faulty_store(|_| StatusCode::BAD_GATEWAY);
    *store.release.lock().unwrap() = Fault::Slow(20_000);
    let began = Instant::now();
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), 502);
    assert_eq!(began.elapsed().as_millis(), 1_000);
    assert_eq!(
        harness.told.last_answer(),
        Outcome::Failed(Failure::Status(502))
    );
}

/// A store whose calls panic on demand: all of one kind, at once or when their future is polled.
#[derive(Debug)]
struct Panicking {
    inner: MemoryStore,
    /// The kind of call, and whether it panics before there is a future.
    panics: Mutex<Option<(Call, bool)>>,
    times: AtomicUsize,
}

impl StoreProxy for Panicking {
    fn pass<'a, T: Send + Unpin + 'static>(
        &'a self,
        call: Call,
        call_inner: impl FnOnce(&'a MemoryStore) -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        let panics = *self.panics.lock().unwrap();
        match panics {
            Some((kind, at_once)) if kind == call => {
                self.times.fetch_add(1, Ordering::SeqCst);
                assert!(!at_once, "made-up panic of a store's call");
                StoreFuture::boxed(async { panic!("made-up panic of a store's future") })
            }
            _ => call_inner(&self.inner),
        }
    }
}

store_proxy!(Panicking);

fn with_panicking_store<F>(
    script: impl Fn(usize) -> F + Clone + Send + Sync + 'static,
) -> (Harness, Arc<Panicking>)
where
    F: Future<Output = StatusCode> + Send + 'static,
{
    let mut store = None;
    let harness = Harness::new(
        |builder, clock| {
            let panicking = Arc::new(Panicking {
                inner: MemoryStore::default().with_clock(clock.clone()),
                panics: Mutex::new(None),
                times: AtomicUsize::new(0),
            });
            store = Some(Arc::clone(&panicking));
            builder.store(panicking)
        },
        move |_, run| script(run),
    );
    (harness, store.expect("made above"))
}

// fault F3: a store that panics is answered 500 and blamed on the handler; no `on_failed`, and the receiver stays ready
#[tokio::test(start_paused = true)]
async fn a_store_that_panics_is_answered_like_one_that_fails() {
    let unavailable = Outcome::Refused(RefusalKind::StoreUnavailable);
    for at_once in [true, false] {
        let (harness, store) = with_panicking_store(|_| async { OK });
        *store.panics.lock().unwrap() = Some((Call::Claim, at_once));
        // By the layer twice, and then as one call: three calls in a row that have failed.
        for way in 0..3 {
            let sent = Sent::event("evt_1");
            let (parts, told) = if way < 2 {
                let (mut parts, _) = harness.send(&sent).await.into_parts();
                let told = parts.extensions.remove::<Answer>().expect("an answer");
                (parts, told)
            } else {
                let request = sent.request(&harness.clock);
                let never = async |_: Delivery| -> StatusCode { panic!("no claim") };
                let answer = harness.receiver.handle(request, never).await;
                let (mut parts, _) = answer.into_parts();
                let told = parts.extensions.remove::<Answer>().expect("an answer");
                (parts, told)
            };
            assert_eq!(
                (parts.status, told.status),
                (StatusCode::SERVICE_UNAVAILABLE, 503)
            );
            assert_eq!(parts.headers["retry-after"], "10");
            assert_eq!(
                told.to_string(),
                "503 store_unavailable: delivery refused: the store could not answer: the store is unavailable: the store panicked"
            );
            assert_eq!(harness.receiver.health().is_ready(), way < 2);
        }
        assert_eq!(*harness.told.answers.lock().unwrap(), [unavailable; 3]);
        let failed = harness.told.failed.lock().unwrap().clone();
        let failed: Vec<_> = failed.iter().map(|failed| failed.outcome).collect();
        assert_eq!(failed, [unavailable; 3]);
        assert_eq!((harness.runs(), harness.receiver.runs()), (0, 0));
        // It has come back.
        *store.panics.lock().unwrap() = None;
        assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
        assert!(harness.receiver.health().is_ready());
    }
}

// fault F3: a store that panics is answered 500 and blamed on the handler; no `on_failed`, and the receiver stays ready
#[tokio::test(start_paused = true)]
async fn a_store_that_panics_behind_a_run_leaves_its_answer_alone() {
    for at_once in [true, false] {
        let (harness, store) = with_panicking_store(|run| async move {
            if run == 1 {
                StatusCode::BAD_GATEWAY
            } else {
                OK
            }
        });
        let panics = |call| *store.panics.lock().unwrap() = Some((call, at_once));
        // A run that failed is not released: a copy finds it claimed until its lease ends.
        panics(Call::Release);
        assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), 502);
        assert_eq!(
            harness.told.settled(),
            [Outcome::Failed(Failure::Status(502))]
        );
        pass(30_000).await;
        // A run that succeeded is answered as a success, and reported as not recorded.
        panics(Call::Commit);
        assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
        let lost = Outcome::HandledUnrecorded(Unrecorded::StoreFailed);
        assert_eq!(harness.told.last_answer(), lost);
        assert_eq!(harness.receiver.runs(), 1, "the commit is repeated");
        pass(30_000).await;
        assert_eq!(harness.told.settled()[1..], [lost]);
        assert_eq!(harness.receiver.runs(), 0);
        assert!(harness.receiver.health().store_failing);
    }
}

// fault F3: a store that panics is answered 500 and blamed on the handler; no `on_failed`, and the receiver stays ready
#[tokio::test(start_paused = true)]
async fn a_store_that_panics_in_a_step_is_an_error_of_the_step() {
    use hookgate::receiver::{Admission, RequestHead};

    let (harness, store) = with_panicking_store(|_| async { OK });
    let receiver = &harness.receiver;
    let request = Sent::event("evt_1").request(&harness.clock);
    let head = RequestHead::new("POST", request.headers());
    let mut received = receiver.check_head(&head).unwrap();
    received.push(Sent::event("evt_1").body.into()).unwrap();
    let delivery = receiver.verify(received, &head).unwrap();
    let fresh = async || match receiver.admit(&delivery).await.unwrap() {
        Admission::Fresh(claim) => claim,
        other => panic!("{other:?}"),
    };
    for at_once in [true, false] {
        let panics = |call| *store.panics.lock().unwrap() = Some((call, at_once));
        panics(Call::Claim);
        let refusal = receiver.admit(&delivery).await.unwrap_err();
        assert_eq!(refusal.kind(), RefusalKind::StoreUnavailable);
        panics(Call::Renew);
        let claim = fresh().await;
        let renewed = claim.renew().await.unwrap_err();
        panics(Call::Release);
        let released = claim.release().await.unwrap_err();
        pass(31_000).await;
        panics(Call::Commit);
        let committed = fresh().await.commit().await.unwrap_err();
        for error in [renewed, released, committed] {
            assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        }
        pass(31_000).await;
        assert_eq!(receiver.runs(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_lost_its_lease_cannot_undo_its_successor() {
    // The clock of the store runs ahead while the first run is under way: its lease ends, a copy takes over.
    let clock = hookgate::clock::ManualClock::at(hookgate::clock::UnixSeconds::new(1_763_690_000));
    let store = MemoryStore::default().with_clock(clock.clone());
    let harness = Harness::new(
        |builder, _| builder.store(store),
        |_, run| async move {
            sleep(Duration::from_secs(if run == 1 { 3 } else { 1 })).await;
            if run == 1 {
                StatusCode::INTERNAL_SERVER_ERROR
            } else {
                OK
            }
        },
    );
    let first = harness.begin(&Sent::event("evt_1")).await;
    clock.advance(Duration::from_secs(31));
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
    assert_eq!(first.await.unwrap().status(), 500);
    assert!(replayed(&harness.send(&Sent::event("evt_1")).await));
    assert_eq!(harness.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lost_claim_is_reported_and_answered_2xx() {
    let clock = hookgate::clock::ManualClock::at(hookgate::clock::UnixSeconds::new(1_763_690_000));
    let store = MemoryStore::default().with_clock(clock.clone());
    let harness = Harness::new(
        |builder, _| builder.store(store),
        |_, _| async {
            sleep(Duration::from_secs(3)).await;
            OK
        },
    );
    let first = harness.begin(&Sent::event("evt_1")).await;
    clock.advance(Duration::from_secs(31));
    assert_eq!(first.await.unwrap().status(), OK);
    let lost = Outcome::HandledUnrecorded(Unrecorded::Lost);
    assert_eq!(harness.told.settled(), [lost]);
}

#[tokio::test(start_paused = true)]
async fn with_too_little_time_left_nothing_is_claimed() {
    let mut store = None;
    let harness = Harness::new(
        |builder, clock| {
            let faulty = Faulty::new(clock);
            store = Some(Arc::clone(&faulty));
            builder
                .store(faulty)
                .answer_within(Duration::from_millis(2_050))
        },
        |_, _| async { OK },
    );
    let request = Sent::event("evt_1").request(&harness.clock);
    let request = request.map(|body| late_body(Duration::from_millis(1_980), body));
    let answer = tower::ServiceExt::oneshot(harness.app.clone(), request)
        .await
        .unwrap();
    assert_eq!(answer.status(), 503);
    assert_eq!(
        harness.told.last_answer(),
        Outcome::Refused(RefusalKind::OutOfTime)
    );
    assert_eq!(store.unwrap().calls.load(Ordering::SeqCst), 0);
}

/// The budget starts at `call`, and a queue between may poll the future long after it.
#[tokio::test(start_paused = true)]
async fn a_delivery_that_is_first_polled_late_has_the_time_that_is_left() {
    for (late, outcome) in [
        (1_900, Outcome::Handled),
        (1_980, Outcome::Refused(RefusalKind::OutOfTime)),
        (2_060, Outcome::Refused(RefusalKind::BodyTooSlow)),
    ] {
        let harness = Harness::new(
            |builder, _| {
                let store = MemoryStore::default();
                builder
                    .store(store)
                    .answer_within(Duration::from_millis(2_050))
            },
            |_, _| async { OK },
        );
        let request = Sent::event("evt_1").request(&harness.clock);
        let inner = tower::service_fn(|_| async {
            Ok::<_, std::convert::Infallible>(http::Response::new(String::new()))
        });
        let mut guarded = tower::Layer::layer(&harness.receiver.layer(), inner);
        let answer = tower::Service::call(&mut guarded, request);
        sleep(Duration::from_millis(late)).await;
        let answer = answer.await.unwrap();
        assert_eq!(harness.told.last_answer(), outcome, "{late} ms");
        assert_eq!(answer.status().is_success(), outcome == Outcome::Handled);
    }
}

#[tokio::test(start_paused = true)]
async fn an_inner_service_that_fails_keeps_its_error_and_releases() {
    use tower::{Layer, Service, ServiceExt};
    let harness = Harness::of(|_, _| async { OK });
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let failing = tower::service_fn(move |_: http::Request<hookgate::layer::VerifiedBody>| {
        let call = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            if call == 0 {
                Err("made-up failure")
            } else {
                Ok(().into_response())
            }
        }
    });
    let mut guarded = harness.receiver.layer().layer(failing);
    let request = || Sent::event("evt_1").request(&harness.clock);
    let mut send = async || {
        let ready = ServiceExt::<http::Request<axum::body::Body>>::ready(&mut guarded)
            .await
            .unwrap();
        ready.call(request()).await
    };
    assert_eq!(send().await.err(), Some("made-up failure"));
    assert_eq!(
        harness.told.settled(),
        [Outcome::Failed(Failure::ServiceError)]
    );
    assert_eq!(send().await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn the_answer_lies_in_the_extensions_of_the_response() {
    let harness = Harness::of(|_, _| async { OK });
    let mut sent = Sent::event("evt_1");
    let good = harness.send(&sent).await;
    let answer = good.extensions().get::<hookgate::layer::Answer>().unwrap();
    assert_eq!(answer.outcome, Outcome::Handled);
    assert_eq!(answer.delivery.as_ref().unwrap().event_id(), "evt_1");
    sent.secret = "whsec_made_up_by_somebody_else";
    let bad = harness.send(&sent).await;
    let answer = bad.extensions().get::<hookgate::layer::Answer>().unwrap();
    let reason = answer.reason.as_ref().unwrap();
    let below = std::error::Error::source(&**reason).unwrap().to_string();
    assert!(below.contains("signature"), "{below}");
}

#[test]
fn a_runtime_that_ends_takes_its_runs_along_without_a_panic() {
    let dropped = Arc::new(AtomicBool::new(false));
    let saw = Arc::clone(&dropped);
    struct Notes(Arc<AtomicBool>);
    impl Drop for Notes {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let harness = Harness::of(move |_, _| {
            let notes = Notes(Arc::clone(&saw));
            async move {
                let _notes = notes;
                sleep(Duration::from_secs(3_600)).await;
                OK
            }
        });
        harness.begin(&Sent::event("evt_1")).await;
    });
    drop(runtime);
    assert!(dropped.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn a_handlers_own_reason_reaches_the_operator_and_not_the_sender() {
    let harness = Harness::of(|_, _| async {
        let answer = StatusCode::SERVICE_UNAVAILABLE.into_response();
        HandlerError::from("the database is down").mark(answer)
    });
    let answer = harness.send(&Sent::event("evt_1")).await;
    assert_eq!(answer.status(), 503);
    let told = answer.extensions().get::<Answer>().unwrap();
    assert_eq!(told.to_string(), "503 handler_status: the database is down");
    let failed = harness.told.failed.lock().unwrap();
    assert_eq!(failed[0].outcome, Outcome::Failed(Failure::Status(503)));
    assert_eq!(
        failed[0].reason.as_ref().unwrap().to_string(),
        "the database is down"
    );
}

#[tokio::test(start_paused = true)]
async fn a_part_that_does_not_fit_is_answered_as_an_argument_would_be() {
    #[derive(serde::Deserialize)]
    struct Order {
        #[serde(rename = "Total")]
        _total: f64,
    }
    async fn ask(delivery: Delivery) -> Result<StatusCode, EventRejection> {
        let event = delivery.event::<Properties>()?;
        if let EventData::RowCreated(row) = event.data {
            row.properties.to::<Order>()?;
        }
        Ok(OK)
    }
    let harness = Harness::of(|delivery, _| ask(delivery));
    let body = Sent::event("evt_1").body;
    let created = body
        .replace("row.deleted", "row.created")
        .replace("deletedBy", "createdBy")
        .replace(r#""rowId""#, r#""properties":{"Total":"x"},"rowId""#);
    let sent = Sent {
        body: created,
        ..Sent::event("evt_1")
    };
    assert_eq!(harness.send(&sent).await.status(), 422);
    assert_eq!(
        harness.told.settled(),
        [Outcome::Failed(Failure::TypeMismatch)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_2xx_with_a_failure_reason_counts_as_handled() {
    let harness = Harness::of(|delivery, _| async move {
        let found = delivery.event::<Vec<u8>>().map(|_| ()).err();
        assert!(found.is_none(), "a deleted row fits any type");
        HandlerError::from("found something odd").mark(OK.into_response())
    });
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
    assert!(replayed(&harness.send(&Sent::event("evt_1")).await));
}

#[test]
fn settings_that_cannot_work_are_refused_by_name() {
    use hookgate::{ConfigErrorKind, MemoryStore, Receiver, ReceiverBuilder};

    let secret = || Receiver::builder().secret(Secret::new(SECRET).unwrap());
    let with_store = || secret().store(MemoryStore::default());
    let kind = |builder: ReceiverBuilder| builder.build().map(drop).map_err(|error| error.kind());
    for (builder, name) in [
        (
            with_store().answer_within(Duration::from_millis(100)),
            "answer_within",
        ),
        (
            with_store().answer_within(Duration::from_millis(5_001)),
            "answer_within",
        ),
        (with_store().body_deadline(Duration::ZERO), "body_deadline"),
        (with_store().run_limit(Duration::MAX), "run_limit"),
        (with_store().lease(Duration::from_secs(61)), "lease"),
        (with_store().max_runs(0), "max_runs"),
        (with_store().max_body(0), "max_body"),
    ] {
        match kind(builder) {
            Err(
                ConfigErrorKind::OutOfRange { setting, .. } | ConfigErrorKind::Zero { setting },
            ) => {
                assert_eq!(setting, name);
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    assert_eq!(
        kind(with_store().answer_within(Duration::from_secs(1))),
        Ok(())
    );
    let unclaimed = secret()
        .without_deduplication()
        .lease(Duration::from_secs(90));
    assert_eq!(kind(unclaimed), Ok(()));
    let needed = Duration::from_secs(26 * 3_600 + 36 * 60 + 6 * 5 + 600);
    let given = needed - Duration::from_secs(1);
    let short = ConfigErrorKind::RetentionTooShort { needed, given };
    assert_eq!(kind(with_store().retention(given)), Err(short));
    assert_eq!(kind(secret()), Err(ConfigErrorKind::NoStore));
    let no_secret = Receiver::builder().without_deduplication();
    assert_eq!(kind(no_secret), Err(ConfigErrorKind::NoSecret));
}

#[tokio::test(start_paused = true)]
async fn the_source_of_a_refusal_can_be_downcast() {
    let (harness, store) = with_faulty_store(|_| OK);
    let source = |answer: &axum::response::Response| {
        let told = answer.extensions().get::<Answer>().unwrap();
        let refusal = told.reason.clone().unwrap();
        let source = std::error::Error::source(&*refusal).unwrap();
        (
            source.is::<hookgate::verify::VerifyError>(),
            source.is::<hookgate::event::EventError>(),
            source.is::<StoreError>(),
        )
    };
    let stale = Sent {
        age: 400,
        ..Sent::event("evt_1")
    };
    assert_eq!(source(&harness.send(&stale).await), (true, false, false));
    let unusable = Sent {
        body: "[]".into(),
        ..Sent::event("evt_1")
    };
    assert_eq!(source(&harness.send(&unusable).await), (false, true, false));
    *store.claim.lock().unwrap() = Fault::Fails(1);
    let sent = Sent::event("evt_1");
    assert_eq!(source(&harness.send(&sent).await), (false, false, true));
}

#[tokio::test(start_paused = true)]
async fn a_waiting_copy_asks_after_25_ms_doubling_to_400() {
    let (harness, store) = {
        let mut store = None;
        let harness = Harness::new(
            |builder, clock| {
                let faulty = Faulty::new(clock);
                store = Some(Arc::clone(&faulty));
                builder.store(faulty)
            },
            |_, _| async {
                sleep(Duration::from_secs(60)).await;
                OK
            },
        );
        (harness, store.unwrap())
    };
    let _first = harness.begin(&Sent::event("evt_1")).await;
    let _copy = harness.begin(&Sent::event("evt_1")).await;
    let asked = || store.calls.load(Ordering::SeqCst) - 1;
    let mut at = Vec::new();
    for millis in 0..2_000 {
        while at.len() < asked() {
            at.push(millis);
        }
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(at.len(), 9, "{at:?}");
    for (asked, expected) in at
        .iter()
        .zip([0, 25, 75, 175, 375, 775, 1_175, 1_575, 1_975])
    {
        assert!((expected..expected + 12).contains(asked), "{at:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_without_a_limit_waits_for_as_long_as_it_takes() {
    let harness = Harness::of(|_, _| async {
        sleep(Duration::from_secs(300)).await;
        OK
    });
    harness.send(&Sent::event("evt_1")).await;
    let drained = harness.receiver.drain(Duration::MAX).await;
    assert_eq!(drained, 0);
    assert_eq!(harness.told.settled(), [Outcome::Handled]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_uses_its_whole_poll_budget_delays_no_timer() {
    // Spends all of tokio's cooperative budget at each poll, and real time with it. It ends when
    // its future is dropped; where no timer comes, it gives up.
    async fn busy() {
        let began = std::time::Instant::now();
        while began.elapsed() < PATIENCE {
            tokio::task::consume_budget().await;
        }
    }
    tokio::time::resume();
    let harness = Harness::new(
        |builder, _| {
            builder
                .answer_within(Duration::from_secs(1))
                .run_limit(Duration::from_secs(2))
        },
        |_, _| async {
            busy().await;
            OK
        },
    );
    let answer = harness.send(&Sent::event("evt_1")).await;
    // By the budget and not by the end of the run, which would be a 2xx.
    assert_eq!(answer.status(), 503);
    let drained = harness.receiver.drain(PATIENCE).await;
    assert_eq!(drained, 0);
    assert_eq!(harness.told.settled(), [Outcome::Failed(Failure::RunLimit)]);
}

#[tokio::test(start_paused = true)]
async fn a_request_dropped_outside_the_runtime_ends_nothing() {
    let harness = Harness::of(|_, _| async {
        sleep(Duration::from_secs(2)).await;
        OK
    });
    let mut request = Box::pin(harness.send(&Sent::event("evt_1")));
    let begun = std::future::poll_fn(|context| {
        std::task::Poll::Ready(request.as_mut().poll(context).is_pending())
    });
    assert!(begun.await);
    pass(100).await; // the handler has begun
    std::thread::spawn(move || drop(request)).join().unwrap();
    pass(3_000).await;
    assert_eq!(harness.told.settled(), [Outcome::Handled]);
}

#[tokio::test(start_paused = true)]
async fn two_layers_of_one_receiver_are_one() {
    let harness = Harness::of(|_, _| async { OK });
    let twice = harness.app.clone().layer(harness.receiver.layer());
    let send = || {
        let request = Sent::event("evt_1").request(&harness.clock);
        tower::ServiceExt::oneshot(twice.clone(), request)
    };
    assert_eq!(send().await.unwrap().status(), OK);
    assert!(replayed(&send().await.unwrap()));
    assert_eq!(harness.runs(), 1);
}

// fault F3: a store that panics is answered 500 and blamed on the handler; no `on_failed`, and the receiver stays ready
#[tokio::test(start_paused = true)]
async fn a_store_that_panics_in_a_renewal_does_not_end_the_run() {
    for at_once in [true, false] {
        let (harness, store) = with_panicking_store(|_| async {
            sleep(Duration::from_secs(20)).await;
            OK
        });
        *store.panics.lock().unwrap() = Some((Call::Renew, at_once));
        assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), 503);
        pass(20_000).await;
        assert_eq!(store.times.load(Ordering::SeqCst), 1);
        assert_eq!(harness.told.settled(), [Outcome::Handled]);
    }
}
