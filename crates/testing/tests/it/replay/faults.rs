//! Each fault does exactly as named, and a correct receiver withstands it.

use std::collections::BTreeSet;
use std::time::Duration;

use hookgate::dedupe::RetrySchedule;
use hookgate_testing::Faults;
use hookgate_testing::replay::{AttemptReport, Origin, Report, RunEnd, Verdict};

use super::apps::{Effects, durably, forgetfully};
use super::*;
use crate::says;

async fn replayed(faults: Faults) -> Report {
    let effects = Effects::default();
    let report = forgetfully(play(small_log()).with(faults), &effects).await;
    assert!(report.each_event_committed_once(), "{report}");
    assert!(effects.each_once(5), "{report}");
    report
}

fn faulted<'r>(report: &'r Report, fault: &str) -> Vec<&'r AttemptReport> {
    let attempts = report.attempts();
    let has = |it: &&AttemptReport| it.faults.iter().any(|own| own == fault);
    attempts.filter(has).collect()
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
            // Copies of authentic deliveries are answered as replays, and those of the forged one
            // as it is.
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
    let apart = [("evt_1", 0), ("evt_2", 7_200), ("evt_3", 14_400)];
    let apart = log(apart.map(|(id, after)| logged(id, after)));
    let effects = Effects::default();
    let report = forgetfully(
        play(apart).with(Faults::seeded(1).share(1.0).reorder()),
        &effects,
    )
    .await;
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
            let answer = (attempt.status, &*attempt.outcome);
            assert_eq!(answer, (Some(401), "not_authentic"));
        }
        for it in report.attempts() {
            let is_retry = matches!(it.origin, Origin::Retry(_));
            assert!(!is_retry || !it.outside_window, "signed afresh: {it}");
        }
    }
    // Retries with their first timestamp are as late as the first attempt, and the report lists the
    // events that were lost to it.
    let effects = Effects::default();
    let report = forgetfully(
        play(log([logged("evt_1", 0)]))
            .with(Faults::seeded(1).delay_past_window())
            .retries_keep_their_signature(),
        &effects,
    )
    .await;
    let event = report.event("evt_1").unwrap();
    assert_eq!((event.verdict(), event.discarded()), (Verdict::Never, true));
    assert_eq!(event.attempts.len(), 6);
    let is_stale = |it: &AttemptReport| it.outside_window && it.status == Some(401);
    assert!(event.attempts.iter().all(is_stale));
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
            let hung_up = attempt.outcome.starts_with("the sender hung up after");
            assert!(hung_up, "{attempt}");
        }
        // A copy behind a finished one is answered before the sender stops waiting.
        assert!(unheard.count() >= 1, "{report}");
        let mut events = report.events().iter();
        assert!(events.all(|event| event.runs.len() == 1), "{report}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_or_panics_is_called_again() {
    let faults = || Faults::seeded(1);
    let fails = (
        faults().handler_fails(3),
        RunEnd::MadeToFail,
        "handler_status",
    );
    let panics = (faults().handler_panics(3), RunEnd::MadeToPanic, "panicked");
    for (faults, end, outcome) in [fails, panics] {
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
    let report = forgetfully(
        play(small_log()).with(Faults::seeded(3).share(0.1).handler_fails(6)),
        &effects,
    )
    .await;
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
        let (first, last) = (&event.attempts[0], event.attempts.last().unwrap());
        assert_eq!((first.status, &*first.outcome), (Some(503), "runs_on"));
        assert_eq!(event.runs.len(), 1, "{report}");
        assert_eq!(last.outcome, "replayed", "{report}");
    }
    // The handler's own slowness is not different.
    let effects = Effects::default();
    durably(play(small_log()), &effects, by).await;
    assert!(effects.each_once(5));
}

/// The last attempt is late: the sender has given up when the run succeeds, and the event is
/// handled all the same.
#[tokio::test(start_paused = true)]
async fn the_replay_waits_for_the_last_run() {
    let effects = Effects::default();
    let report = forgetfully(
        play(log([logged("evt_1", 0)]))
            .schedule(RetrySchedule::new([]))
            .with(Faults::seeded(1).handler_is_slow(1, Duration::from_secs(300))),
        &effects,
    )
    .await;
    assert!(report.each_event_committed_once(), "{report}");
    let event = report.event("evt_1").unwrap();
    let is_late = event.commits[0].after_ms >= 300_000;
    assert!(event.discarded() && is_late, "{report}");
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
    let (first, again) = (replayed(all(5)).await, replayed(all(5)).await);
    let other = replayed(all(6)).await;
    assert_eq!(first, again);
    assert_ne!(first, other);
    let expression = "Faults::seeded(5).duplicate().reorder().delay_past_window().sender_hangs_up().handler_fails(1)\
        .handler_is_slow(1, Duration::from_millis(7000))";
    let end = format!("repeat it with {expression}");
    assert!(first.to_string().ends_with(&end), "{first}");
    // The choice of deliveries for one kind of fault does not depend on the other kinds.
    let alone = replayed(Faults::seeded(5).sender_hangs_up()).await;
    let lines = |report: &Report| -> BTreeSet<_> {
        let hung_up = faulted(report, "sender hangs up");
        hung_up.iter().map(|it| it.line).collect()
    };
    let more = Faults::seeded(5).sender_hangs_up().handler_fails(1);
    let more = replayed(more.duplicate()).await;
    assert_eq!(lines(&alone), lines(&more));
}
