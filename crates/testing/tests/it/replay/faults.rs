//! Each fault does exactly as named, and a correct receiver withstands it.

use std::time::Duration;

use hookgate::dedupe::RetrySchedule;
use hookgate_testing::replay::{Origin, Report, RunEnd, Verdict};
use hookgate_testing::{Faults, Replay};

use super::apps::{Effects, forgetful, slow_app};
use super::*;

async fn replayed(faults: Faults) -> Report {
    let effects = Effects::default();
    let report = Replay::of(small_log())
        .secret(secret())
        .with(faults)
        .against(|harness| forgetful(&harness, &effects))
        .await
        .unwrap();
    assert!(report.each_event_committed_once(), "{report}");
    assert!(effects.each_once(5), "{report}");
    report
}

fn faulted<'r>(
    report: &'r Report,
    fault: &str,
) -> Vec<&'r hookgate_testing::replay::AttemptReport> {
    let has = |it: &&_| -> bool {
        let it: &&hookgate_testing::replay::AttemptReport = it;
        it.faults.iter().any(|own| own == fault)
    };
    report.attempts().filter(has).collect()
}

#[tokio::test(start_paused = true)]
async fn copies_come_at_once_and_in_turn() {
    let (mut at_once, mut in_turn) = (0, 0);
    for seed in 0..10 {
        let report = replayed(Faults::seeded(seed).duplicate()).await;
        at_once += faulted(&report, "copy at once").len();
        in_turn += faulted(&report, "copy in turn").len();
        for attempt in report.attempts() {
            let copy = matches!(attempt.origin, Origin::Copy(_));
            assert_eq!(copy, !attempt.faults.is_empty(), "{attempt}");
            // Copies of authentic deliveries are answered as replays, and those of the forged one as it is.
            let expected = if attempt.line == 4 { 401 } else { 200 };
            assert!(!copy || attempt.status == Some(expected), "{attempt}");
        }
    }
    assert!(at_once >= 10 && in_turn >= 10, "{at_once} {in_turn}");
}

#[tokio::test(start_paused = true)]
async fn deliveries_change_places_within_the_window() {
    let mut moved = 0;
    for seed in 0..10 {
        let report = replayed(Faults::seeded(seed).reorder()).await;
        moved += faulted(&report, "reordered").len();
        assert!(report.attempts().all(|it| !it.outside_window), "{report}");
    }
    assert!(moved >= 10, "{moved}");
    // Hours lie between these: a delivery that changed its place would be refused for its age.
    let apart = log([
        logged("evt_1", 0),
        logged("evt_2", 7_200),
        logged("evt_3", 14_400),
    ]);
    let effects = Effects::default();
    let report = Replay::of(apart)
        .secret(secret())
        .with(Faults::seeded(1).share(1.0).reorder())
        .against(|harness| forgetful(&harness, &effects))
        .await
        .unwrap();
    assert!(faulted(&report, "reordered").is_empty(), "{report}");
}

#[tokio::test(start_paused = true)]
async fn what_comes_too_late_is_refused_and_tried_again() {
    for seed in 0..10 {
        let report = replayed(Faults::seeded(seed).delay_past_window()).await;
        let late = faulted(&report, "delayed past the window");
        assert!(!late.is_empty());
        for attempt in late {
            assert!(attempt.outside_window, "{attempt}");
            assert_eq!(
                (attempt.status, &*attempt.outcome),
                (Some(401), "not_authentic")
            );
        }
        let retries = report
            .attempts()
            .filter(|it| matches!(it.origin, Origin::Retry(_)));
        for retry in retries {
            assert!(!retry.outside_window, "signed afresh: {retry}");
        }
    }
    // Retries with their first timestamp are as late as the first attempt, and the report lists the events that were lost to it.
    let effects = Effects::default();
    let report = Replay::of(log([logged("evt_1", 0)]))
        .secret(secret())
        .with(Faults::seeded(1).delay_past_window())
        .retries_keep_their_signature()
        .against(|harness| forgetful(&harness, &effects))
        .await
        .unwrap();
    let event = report.event("evt_1").unwrap();
    assert_eq!((event.verdict(), event.discarded()), (Verdict::Never, true));
    assert_eq!(event.attempts.len(), 6);
    assert!(
        event
            .attempts
            .iter()
            .all(|it| it.outside_window && it.status == Some(401))
    );
    says(&report, "stale to the end");
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_hangs_up_stops_no_run() {
    for seed in 0..10 {
        let report = replayed(Faults::seeded(seed).sender_hangs_up()).await;
        let hung_up = faulted(&report, "sender hangs up");
        assert!(!hung_up.is_empty());
        let unheard = hung_up.iter().filter(|it| it.status.is_none());
        for attempt in unheard.clone() {
            assert!(
                attempt.outcome.starts_with("the sender hung up after"),
                "{attempt}"
            );
        }
        // A copy behind a finished one is answered before the sender stops waiting.
        assert!(unheard.count() >= 1, "{report}");
        assert!(
            report.events().iter().all(|event| event.runs.len() == 1),
            "{report}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_or_panics_is_called_again() {
    for (faults, end, outcome) in [
        (
            Faults::seeded(1).handler_fails(3),
            RunEnd::MadeToFail,
            "handler_status",
        ),
        (
            Faults::seeded(1).handler_panics(3),
            RunEnd::MadeToPanic,
            "panicked",
        ),
    ] {
        let report = replayed(faults.share(1.0)).await;
        for event in report.events() {
            let ends: Vec<_> = event.runs.iter().map(|run| run.end).collect();
            assert_eq!(ends, [end, end, end, RunEnd::Succeeded], "{report}");
            assert_eq!(event.attempts[0].outcome, outcome);
            let waited = event.attempts.last().unwrap().after_ms - event.attempts[0].after_ms;
            // A minute, five and thirty; or less, where the log's own copy took one of the runs.
            assert!(waited >= 360_000, "{report}");
        }
    }
    // Six attempts and no more: an event that fails in each of them is reported as lost.
    let effects = Effects::default();
    let report = Replay::of(small_log())
        .secret(secret())
        .with(Faults::seeded(3).share(0.1).handler_fails(6))
        .against(|harness| forgetful(&harness, &effects))
        .await
        .unwrap();
    let lost: Vec<_> = report.never().collect();
    assert_eq!(lost.len(), 1, "{report}");
    assert!(lost[0].discarded() && lost[0].runs.len() >= 6, "{report}");
    assert!(!report.each_event_committed_once());
}

#[tokio::test(start_paused = true)]
async fn a_slow_handler_outlives_its_request() {
    let by = Duration::from_secs(20);
    let report = replayed(Faults::seeded(1).share(1.0).handler_is_slow(1, by)).await;
    for event in report.events() {
        assert_eq!(
            (event.attempts[0].status, &*event.attempts[0].outcome),
            (Some(503), "runs_on")
        );
        assert_eq!(event.runs.len(), 1, "{report}");
        assert_eq!(
            event.attempts.last().unwrap().outcome,
            "replayed",
            "{report}"
        );
    }
    // The handler's own slowness is not different.
    let effects = Effects::default();
    let report = Replay::of(small_log())
        .secret(secret())
        .against(|harness| {
            let store = hookgate::MemoryStore::default().with_clock(harness.clock());
            slow_app(&harness, store, &effects, by)
        })
        .await
        .unwrap();
    assert!(report.each_event_committed_once(), "{report}");
    assert!(effects.each_once(5));
}

/// The last attempt is late: the sender has given up when the run succeeds, and the event is handled all the same.
#[tokio::test(start_paused = true)]
async fn the_replay_waits_for_the_last_run() {
    let effects = Effects::default();
    let report = Replay::of(log([logged("evt_1", 0)]))
        .secret(secret())
        .schedule(RetrySchedule::new([]))
        .with(Faults::seeded(1).handler_is_slow(1, Duration::from_secs(300)))
        .against(|harness| forgetful(&harness, &effects))
        .await
        .unwrap();
    assert!(report.each_event_committed_once(), "{report}");
    let event = report.event("evt_1").unwrap();
    assert!(
        event.discarded() && event.commits[0].after_ms >= 300_000,
        "{report}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_seed_decides_and_nothing_else() {
    let all = |seed| {
        Faults::seeded(seed)
            .duplicate()
            .reorder()
            .delay_past_window()
            .sender_hangs_up()
            .handler_fails(1)
            .handler_is_slow(1, Duration::from_secs(7))
    };
    let (first, again, other) = (
        replayed(all(5)).await,
        replayed(all(5)).await,
        replayed(all(6)).await,
    );
    assert_eq!(first, again);
    assert_ne!(first, other);
    let expression = "Faults::seeded(5).duplicate().reorder().delay_past_window().sender_hangs_up().handler_fails(1)\
        .handler_is_slow(1, Duration::from_millis(7000))";
    assert!(
        first
            .to_string()
            .ends_with(&format!("repeat it with {expression}")),
        "{first}"
    );
    // The choice of deliveries for one kind of fault does not depend on the other kinds.
    let alone = replayed(Faults::seeded(5).sender_hangs_up()).await;
    let lines = |report: &Report| -> Vec<_> {
        let mut lines: Vec<_> = faulted(report, "sender hangs up")
            .iter()
            .map(|it| it.line)
            .collect();
        lines.sort_unstable();
        lines
    };
    let more = replayed(
        Faults::seeded(5)
            .sender_hangs_up()
            .handler_fails(1)
            .duplicate(),
    )
    .await;
    assert_eq!(lines(&alone), lines(&more));
}
