//! The outcomes table and promises 3, 4 and 8, in virtual time.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::response::IntoResponse;
use hookgate::extract::EventRejection;
use hookgate::{
    DeadLetter, Delivery, EventData, HandlerError, MemoryStore, Outcome, Properties, Secret,
    clock::{ManualClock, UnixSeconds},
    dedupe::{StoreError, StoreErrorKind},
    layer::{AlreadyHandled, Answer},
    outcome::{Failure, RefusalKind, Unrecorded},
};
use http::StatusCode;
use tokio::time::{Instant, sleep};

use crate::faulty::{DOWN, Fault, FaultyStore, with_faulty_store};
use crate::harness::*;
use crate::store_proxy::Call;
use crate::support::PATIENCE;

#[tokio::test(start_paused = true)]
async fn a_copy_runs_when_the_run_it_waited_for_has_failed() {
    let harness = Harness::of(|_, run| async move {
        sleep(Duration::from_secs(1)).await;
        StatusCode::from_u16(if run == 1 { 500 } else { 204 }).unwrap()
    });
    let first = harness.begin(&Sent::event("evt_1")).await;
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
    assert_eq!(first.await.unwrap().status(), 500);
    assert_eq!(harness.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_an_unfinished_run_never_hears_2xx() {
    let harness = Harness::of(|_, _| ok_after(20));
    let first = harness.begin(&Sent::event("evt_1")).await;
    let began = Instant::now();
    let copy = harness.send(&Sent::event("evt_1")).await;
    assert_eq!(copy.status(), 503);
    assert!(copy.headers().contains_key("retry-after"));
    assert_eq!(began.elapsed().as_millis(), 4_500);
    let running = Outcome::Refused(RefusalKind::StillRunning);
    assert_eq!(harness.told.last_answer(), running);
    assert_eq!(first.await.unwrap().status(), 503);
    pass(30_000).await;
    assert_eq!(harness.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn at_most_four_copies_wait_for_one_event_and_64_in_all() {
    let harness = Harness::of(|_, _| ok_after(3));
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
    let harness = Harness::of(|_, _| ok_after(3));
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
        let last = harness.told.failed.lock().unwrap().last().cloned();
        let failed = last.unwrap().to_string();
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
    let harness = Harness::of(|_, _| ok_after(200));
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
    let short = Duration::from_millis(300);
    let harness = Harness::new(|builder, _| builder.lease(short), |_, _| ok_after(2));
    let first = harness.begin(&Sent::event("evt_1")).await;
    pass(1_000).await;
    assert!(replayed(&harness.send(&Sent::event("evt_1")).await));
    assert_eq!(first.await.unwrap().status(), OK);
    assert_eq!(harness.runs(), 1);
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
        let answers = [same_body, true].map(|same_body| Outcome::Replayed { same_body });
        assert_eq!(harness.told.answers(), answers);
        assert_eq!(harness.told.failed(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn without_deduplication_each_copy_runs_and_may_say_that_its_event_is_done() {
    let harness = Harness::without_store(
        |builder, _| builder.without_deduplication(),
        |_, run| async move {
            match run {
                1 | 2 => OK.into_response(),
                _ => AlreadyHandled::new().into_response(),
            }
        },
    );
    for (status, replay) in [(204, false), (204, false), (200, true), (200, true)] {
        let answer = harness.send(&Sent::event("evt_1")).await;
        assert_eq!(
            (answer.status().as_u16(), replayed(&answer)),
            (status, replay)
        );
    }
    assert_eq!(harness.runs(), 4);
    let replay = Outcome::Replayed { same_body: true };
    assert_eq!(
        harness.told.settled(),
        [Outcome::Handled, Outcome::Handled, replay, replay]
    );
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
    let replay = Outcome::Replayed { same_body: true };
    assert_eq!(harness.told.settled_late(), [(replay, true)]);
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
    for status in [500, 500, 200] {
        assert_eq!(harness.status("evt_1").await, status);
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
        in_turn(&[500, 204]),
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
                let shaped = http::Response::builder().status(response.status());
                shaped.header("x-shaped", "yes").body(text.into()).unwrap()
            })
        },
        in_turn(&[204]),
    );
    let answer = harness.send(&Sent::event("evt_1").aged(301)).await;
    assert_eq!(
        (
            answer.status().as_u16(),
            answer.headers()["x-shaped"].as_bytes()
        ),
        (401, &b"yes"[..])
    );
    let body = axum::body::to_bytes(answer.into_body(), 100).await.unwrap();
    assert_eq!(body, "unauthorized");
}

#[tokio::test(start_paused = true)]
async fn a_failure_report_has_the_raw_delivery_and_the_probable_attempt() {
    let harness = Harness::of(in_turn(&[500]));
    // The body says that the event was created when the harness's clock started.
    let attempts = [(0, 1, false), (1, 2, false), (5, 3, false), (30, 4, false)];
    let last_ones = [(120, 5, true), (1_440, 6, true)];
    for (minutes, attempt, may_be_last) in attempts.into_iter().chain(last_ones) {
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
    let harness = Harness::of(in_turn(&[204]));
    let sent = Sent::event("evt_1");
    harness.send(&sent).await;
    let other = sent.body.replace("row_1", "row_2");
    assert!(replayed(&harness.send(&sent.with_body(other)).await));
    let other = Outcome::Replayed { same_body: false };
    assert_eq!((harness.told.last_answer(), harness.runs()), (other, 1));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_claim_is_503_and_leaves_no_claim_behind() {
    let (harness, store) = with_faulty_store(in_turn(&[204]));
    for fault in [Fault::Fails(1), Fault::LosesReply(1)] {
        store.set(Call::Claim, fault);
        assert_eq!(harness.status("evt_1").await, 503);
        let refused = Outcome::Refused(RefusalKind::StoreUnavailable);
        assert_eq!(harness.told.last_answer(), refused);
    }
    assert_eq!(harness.runs(), 0);
    assert_eq!(harness.told.failed().len(), 2);
    // Not blocked by the claim whose reply was lost.
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
}

#[tokio::test(start_paused = true)]
async fn a_slow_claim_is_503_after_a_second_and_is_released_when_it_lands() {
    let (harness, store) = with_faulty_store(in_turn(&[204]));
    store.set(Call::Claim, Fault::Slow(3_000));
    let began = Instant::now();
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), 503);
    assert_eq!(began.elapsed().as_millis(), 1_000);
    let refused = Outcome::Refused(RefusalKind::StoreTooSlow);
    assert_eq!(harness.told.last_answer(), refused);
    store.set(Call::Claim, Fault::None);
    pass(2_500).await;
    assert_eq!(harness.receiver.runs(), 0);
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
    assert_eq!(harness.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hang_up_during_the_claim_is_reported_once_and_an_answer_once() {
    let (harness, store) = with_faulty_store(in_turn(&[204]));
    // After the last one, all claims before it have been released.
    #[rustfmt::skip] // a row a case
    let cases = [
        ("before the answer", Fault::Slow(500), 100, Some(RefusalKind::StoreTooSlow)),
        // Answered after a second, and reported then: not again when the claim is granted.
        ("after it", Fault::Slow(3_000), 1_000, Some(RefusalKind::StoreTooSlow)),
        ("and the store fails", Fault::SlowlyFails(500), 0, Some(RefusalKind::StoreUnavailable)),
        ("no fault, no hang-up", Fault::None, 5_000, None),
        ("done already", Fault::Slow(500), 0, None),
    ];
    for (what, fault, after, told) in cases {
        store.set(Call::Claim, fault);
        harness.told.failed.lock().unwrap().clear();
        let request = harness.begin(&Sent::event("evt_1")).await;
        pass(after).await;
        request.abort();
        pass(5_000).await;
        let told: Vec<_> = told.into_iter().map(Outcome::Refused).collect();
        assert_eq!(harness.told.failed(), told, "{what}");
        let runs = usize::from(fault == Fault::None || what == "done already");
        assert_eq!(
            (harness.runs(), harness.receiver.runs()),
            (runs, 0),
            "{what}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_success_is_answered_2xx_whatever_its_commit_does() {
    let (harness, store) = with_faulty_store(in_turn(&[204]));
    let unrecorded = Outcome::HandledUnrecorded;
    for (event, fault, outcome, millis) in [
        // A commit is repeated at once: its token makes that safe.
        ("evt_1", Fault::Fails(1), Outcome::Handled, 0),
        ("evt_2", Fault::LosesReply(1), Outcome::Handled, 0),
        (
            "evt_3",
            Fault::Fails(9),
            unrecorded(Unrecorded::StoreFailed),
            0,
        ),
        (
            "evt_4",
            Fault::Slow(9_000),
            unrecorded(Unrecorded::TooSlow),
            1_000,
        ),
    ] {
        store.set(Call::Commit, fault);
        let began = Instant::now();
        assert_eq!(harness.send(&Sent::event(event)).await.status(), OK);
        assert_eq!(began.elapsed().as_millis(), millis, "{event}");
        assert_eq!(harness.told.last_answer(), outcome, "{event}");
    }
    pass(10_000).await;
    // The slow commit has landed, and so has the one that failed first: their runs were late for
    // that.
    let settled = harness.told.settled_late();
    let (in_time, late) = settled.split_at(2);
    assert_eq!(in_time, [(Outcome::Handled, false); 2]);
    assert_eq!(late, [(Outcome::Handled, true); 2]);
    store.set(Call::Commit, Fault::None);
    for event in ["evt_3", "evt_4"] {
        assert!(replayed(&harness.send(&Sent::event(event)).await));
    }
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_fails_is_repeated_behind_the_answer_until_the_store_is_back() {
    let (harness, store) = with_faulty_store(in_turn(&[204]));
    store.set(Call::Commit, DOWN);
    assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
    let failed = Outcome::HandledUnrecorded(Unrecorded::StoreFailed);
    assert_eq!(harness.told.last_answer(), failed);
    pass(6_000).await;
    assert!(harness.told.settled().is_empty());
    store.set(Call::Commit, Fault::None);
    pass(1_000).await;
    assert_eq!(harness.told.settled_late(), [(Outcome::Handled, true)]);
    assert!(replayed(&harness.send(&Sent::event("evt_1")).await));
    assert_eq!((harness.runs(), harness.receiver.runs()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_commit_is_given_up_when_its_lease_ends_or_the_receiver_is_drained() {
    let (harness, store) = with_faulty_store(in_turn(&[204]));
    store.set(Call::Commit, DOWN);
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
    let (harness, store) = with_faulty_store(in_turn(&[502]));
    store.set(Call::Release, Fault::Slow(20_000));
    let began = Instant::now();
    assert_eq!(harness.status("evt_1").await, 502);
    assert_eq!(began.elapsed().as_millis(), 1_000);
    let failed = Outcome::Failed(Failure::Status(502));
    assert_eq!(harness.told.last_answer(), failed);
}
// fault F3: a store that panics is answered 500 and blamed on the handler; no `on_failed`, and the receiver stays ready
#[tokio::test(start_paused = true)]
async fn a_store_that_panics_is_answered_like_one_that_fails() {
    let unavailable = Outcome::Refused(RefusalKind::StoreUnavailable);
    for at_once in [true, false] {
        let (harness, store) = with_faulty_store(in_turn(&[204]));
        store.set(Call::Claim, Fault::Panics { at_once });
        // By the layer twice, and then as one call: three calls in a row that have failed.
        for way in 0..3 {
            let sent = Sent::event("evt_1");
            let (status, headers, told) = if way < 2 {
                let answer = harness.send(&sent).await;
                let told = answer.extensions().get::<Answer>().cloned();
                (answer.status(), answer.headers().clone(), told)
            } else {
                let never = async |_: Delivery| -> StatusCode { panic!("no claim") };
                let request = sent.request(&harness.clock);
                let answer = harness.receiver.handle(request, never).await;
                let told = answer.extensions().get::<Answer>().cloned();
                (answer.status(), answer.headers().clone(), told)
            };
            assert_eq!(
                (status.as_u16(), headers["retry-after"].as_bytes()),
                (503, &b"10"[..])
            );
            assert_eq!(
                told.expect("an answer").to_string(),
                "503 store_unavailable: delivery refused: the store could not answer: the store is unavailable: the store panicked"
            );
            assert_eq!(harness.receiver.health().is_ready(), way < 2);
        }
        assert_eq!(harness.told.answers(), [unavailable; 3]);
        assert_eq!(harness.told.failed(), [unavailable; 3]);
        assert_eq!((harness.runs(), harness.receiver.runs()), (0, 0));
        // It has come back.
        store.set(Call::Claim, Fault::None);
        assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), OK);
        assert!(harness.receiver.health().is_ready());
    }
}

// fault F3: a store that panics is answered 500 and blamed on the handler; no `on_failed`, and the receiver stays ready
#[tokio::test(start_paused = true)]
async fn a_store_that_panics_behind_a_run_leaves_its_answer_alone() {
    for at_once in [true, false] {
        let (harness, store) = with_faulty_store(in_turn(&[502, 204]));
        let panics = |call| store.set(call, Fault::Panics { at_once });
        // A run that failed is not released: a copy finds it claimed until its lease ends.
        panics(Call::Release);
        assert_eq!(harness.send(&Sent::event("evt_1")).await.status(), 502);
        let failed = Outcome::Failed(Failure::Status(502));
        assert_eq!(harness.told.settled(), [failed]);
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

    let (harness, store) = with_faulty_store(in_turn(&[204]));
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
        let panics = |call| {
            store.set_all(Fault::None);
            store.set(call, Fault::Panics { at_once });
        };
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

/// A store whose clock runs ahead while a run is under way: its lease ends.
fn with_a_store_that_runs_ahead<F: Handling>(
    script: impl Fn(Delivery, usize) -> F + Clone + Send + Sync + 'static,
) -> (Harness, ManualClock) {
    let clock = ManualClock::at(UnixSeconds::new(1_763_690_000));
    let store = MemoryStore::default().with_clock(clock.clone());
    let harness = Harness::new(|builder, _| builder.store(store), script);
    (harness, clock)
}

#[tokio::test(start_paused = true)]
async fn a_run_that_lost_its_lease_cannot_undo_its_successor() {
    let (harness, clock) = with_a_store_that_runs_ahead(|_, run| async move {
        sleep(Duration::from_secs(if run == 1 { 3 } else { 1 })).await;
        StatusCode::from_u16(if run == 1 { 500 } else { 204 }).unwrap()
    });
    let first = harness.begin(&Sent::event("evt_1")).await;
    clock.advance(Duration::from_secs(31));
    assert_eq!(harness.status("evt_1").await, 204, "a copy takes over");
    assert_eq!(first.await.unwrap().status(), 500);
    assert!(harness.replays("evt_1").await);
    assert_eq!(harness.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lost_claim_is_reported_and_answered_2xx() {
    let (harness, clock) = with_a_store_that_runs_ahead(|_, _| ok_after(3));
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
            let budget = Duration::from_millis(2_050);
            let faulty = store.insert(FaultyStore::new(clock)).clone();
            builder.store(faulty).answer_within(budget)
        },
        in_turn(&[204]),
    );
    let request = Sent::event("evt_1").request(&harness.clock);
    let late = request.map(|body| late_body(Duration::from_millis(1_980), body));
    assert_eq!(harness.ask(late).await.status(), 503);
    let out_of_time = Outcome::Refused(RefusalKind::OutOfTime);
    assert_eq!(harness.told.last_answer(), out_of_time);
    assert_eq!(store.unwrap().calls(Call::Claim), 0);
}

/// The budget starts at `call`, and a queue between may poll the future long after it.
#[tokio::test(start_paused = true)]
async fn a_delivery_that_is_first_polled_late_has_the_time_that_is_left() {
    for (late, outcome) in [
        (1_900, Outcome::Handled),
        (1_980, Outcome::Refused(RefusalKind::OutOfTime)),
        (2_060, Outcome::Refused(RefusalKind::BodyTooSlow)),
    ] {
        let budget = Duration::from_millis(2_050);
        let harness = Harness::new(|builder, _| builder.answer_within(budget), in_turn(&[204]));
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

#[test]
fn a_runtime_that_ends_takes_its_runs_along_without_a_panic() {
    let held = Arc::new(());
    let holds = Arc::clone(&held);
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        let harness = Harness::of(move |_, _| {
            let held = Arc::clone(&holds);
            async move {
                let answer = ok_after(3_600).await;
                drop(held);
                answer
            }
        });
        harness.begin(&Sent::event("evt_1")).await;
        assert!(Arc::strong_count(&held) > 1);
    });
    drop(runtime);
    assert_eq!(Arc::strong_count(&held), 1);
}

/// What a success says is no reason for a failure.
#[tokio::test(start_paused = true)]
async fn a_handlers_own_reason_reaches_the_operator_and_changes_no_answer() {
    let failed = Outcome::Failed(Failure::Status(503));
    for (status, told, failed, retried) in [
        (
            503,
            "503 handler_status: the database is down",
            vec![failed],
            503,
        ),
        (204, "204 handled", vec![], 200),
    ] {
        let harness = Harness::of(move |_, _| async move {
            let answer = StatusCode::from_u16(status).unwrap().into_response();
            HandlerError::from("the database is down").mark(answer)
        });
        let answer = harness.send(&Sent::event("evt_1")).await;
        assert_eq!(answer.status(), status);
        let said = answer.extensions().get::<Answer>().unwrap().to_string();
        assert!(said.starts_with(told), "{said}");
        assert_eq!(harness.told.failed(), failed);
        for failed in &*harness.told.failed.lock().unwrap() {
            assert_eq!(
                failed.reason.as_ref().unwrap().to_string(),
                "the database is down"
            );
        }
        assert_eq!(harness.status("evt_1").await, retried);
    }
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
    let sent = Sent::row_created("evt_1", r#"{"Total":"x"}"#);
    assert_eq!(harness.send(&sent).await.status(), 422);
    let mismatch = Outcome::Failed(Failure::TypeMismatch);
    assert_eq!(harness.told.settled(), [mismatch]);
}

#[test]
fn settings_that_cannot_work_are_refused_by_name() {
    use hookgate::{ConfigErrorKind, MemoryStore, Receiver, ReceiverBuilder};

    let secret = || Receiver::builder().secret(Secret::new(SECRET).unwrap());
    let with_store = || secret().store(MemoryStore::default());
    let kind = |builder: ReceiverBuilder| builder.build().map(drop).map_err(|error| error.kind());
    let (seconds, millis) = (Duration::from_secs, Duration::from_millis);
    for (name, builder) in [
        ("answer_within", with_store().answer_within(millis(100))),
        ("answer_within", with_store().answer_within(millis(5_001))),
        ("body_deadline", with_store().body_deadline(Duration::ZERO)),
        ("run_limit", with_store().run_limit(Duration::MAX)),
        ("lease", with_store().lease(seconds(61))),
        ("max_runs", with_store().max_runs(0)),
        ("max_body", with_store().max_body(0)),
    ] {
        match kind(builder) {
            Err(
                ConfigErrorKind::OutOfRange { setting, .. } | ConfigErrorKind::Zero { setting },
            ) => assert_eq!(setting, name),
            other => panic!("{name}: {other:?}"),
        }
    }
    assert_eq!(kind(with_store().answer_within(seconds(1))), Ok(()));
    let unclaimed = secret().without_deduplication().lease(seconds(90));
    assert_eq!(kind(unclaimed), Ok(()));
    let needed = seconds(26 * 3_600 + 36 * 60 + 6 * 5 + 600);
    let given = needed - seconds(1);
    let short = ConfigErrorKind::RetentionTooShort { needed, given };
    assert_eq!(kind(with_store().retention(given)), Err(short));
    assert_eq!(kind(secret()), Err(ConfigErrorKind::NoStore));
    let no_secret = Receiver::builder().without_deduplication();
    assert_eq!(kind(no_secret), Err(ConfigErrorKind::NoSecret));
}

#[tokio::test(start_paused = true)]
async fn the_source_of_a_refusal_can_be_downcast() {
    let (harness, store) = with_faulty_store(in_turn(&[204]));
    let told = async |sent: Sent| {
        let answer = harness.send(&sent).await;
        answer.extensions().get::<Answer>().unwrap().clone()
    };
    let source = async |sent: Sent| {
        let refusal = told(sent).await.reason.unwrap();
        let source = std::error::Error::source(&*refusal).unwrap();
        (
            source.is::<hookgate::verify::VerifyError>(),
            source.is::<hookgate::event::EventError>(),
            source.is::<StoreError>(),
        )
    };
    let sent = || Sent::event("evt_1");
    assert_eq!(source(sent().aged(400)).await, (true, false, false));
    assert_eq!(source(sent().with_body("[]")).await, (false, true, false));
    store.set(Call::Claim, Fault::Fails(1));
    assert_eq!(source(sent()).await, (false, false, true));
    let handled = told(sent()).await;
    assert_eq!(handled.outcome, Outcome::Handled);
    assert_eq!(handled.delivery.unwrap().event_id(), "evt_1");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_copy_asks_after_25_ms_doubling_to_400() {
    let (harness, store) = with_faulty_store(|_, _| ok_after(60));
    let _first = harness.begin(&Sent::event("evt_1")).await;
    let _copy = harness.begin(&Sent::event("evt_1")).await;
    let asked = || store.calls(Call::Claim) - 1;
    let mut at = Vec::new();
    for millis in 0..2_000 {
        while at.len() < asked() {
            at.push(millis);
        }
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(at.len(), 9, "{at:?}");
    let expected = [0, 25, 75, 175, 375, 775, 1_175, 1_575, 1_975];
    for (asked, expected) in at.iter().zip(expected) {
        assert!((expected..expected + 12).contains(asked), "{at:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_without_a_limit_waits_for_as_long_as_it_takes() {
    let harness = Harness::of(|_, _| ok_after(300));
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
    let harness = Harness::of(|_, _| ok_after(2));
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

// fault F3: a store that panics is answered 500 and blamed on the handler; no `on_failed`, and the receiver stays ready
#[tokio::test(start_paused = true)]
async fn a_store_that_panics_in_a_renewal_does_not_end_the_run() {
    for at_once in [true, false] {
        let (harness, store) = with_faulty_store(|_, _| ok_after(20));
        store.set(Call::Renew, Fault::Panics { at_once });
        assert_eq!(harness.status("evt_1").await, 503);
        pass(20_000).await;
        assert_eq!(store.calls(Call::Renew), 1);
        assert_eq!(harness.told.settled(), [Outcome::Handled]);
    }
}
