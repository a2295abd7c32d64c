//! A process ends, and another begins: no work of the first continues, and the memory that only it
//! had is gone.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use hookgate::{Delivery, Receiver};
use hookgate_testing::Faults;
use hookgate_testing::replay::{ReplayError, RunEnd};
use http::StatusCode;

use super::apps::{Effects, durable, durably, forgetful, forgetfully};
use super::*;

#[tokio::test(start_paused = true)]
async fn a_durable_store_outlives_processes_and_one_in_memory_does_not() {
    let (mut cut_off, mut twice) = (0, 0);
    for seed in 0..40 {
        let faults = Faults::seeded(seed).restarts(2).duplicate();
        let effects = Effects::default();
        let replay = play(small_log()).with(faults.clone());
        let report = durably(replay, &effects, Duration::ZERO).await;
        assert!(effects.each_once(5), "{report}");
        assert_eq!(report.processes, 3);
        let runs = report.events().iter().flat_map(|event| &event.runs);
        cut_off += runs.filter(|run| run.end == RunEnd::CutOff).count();

        let effects = Effects::default();
        let report = forgetfully(play(small_log()).with(faults), &effects).await;
        for event in report.events() {
            // The report agrees with the effects.
            assert_eq!(effects.of(&event.id), event.handled(), "{report}");
            assert_eq!(event.commits.len(), event.handled(), "{report}");
        }
        assert_eq!(report.never().count(), 0, "{report}");
        twice += report.twice().count();
    }
    assert!(cut_off >= 5, "{cut_off} runs cut off");
    assert!(twice >= 5, "{twice} events twice");
}

/// Neither the handler, nor a commit, nor a hook of the first process takes effect again.
#[tokio::test(start_paused = true)]
async fn nothing_of_a_process_that_has_ended_goes_on() {
    for seed in 0..20 {
        // Each run takes longer than its request, and so has moved to a task of its own when the
        // process ends.
        let takes = Duration::from_secs(40);
        let (effects, told) = (Effects::default(), Arc::<Mutex<Vec<&str>>>::default());
        let replay = play(log([logged("evt_1", 0)])).with(Faults::seeded(seed).restarts(1));
        let store = durable(replay.clock());
        let alive = Arc::new(AtomicUsize::new(0));
        let report = replay
            .against(|harness| {
                let process = harness.process() as usize;
                alive.store(process, Ordering::SeqCst);
                let (effects, alive) = (effects.clone(), Arc::clone(&alive));
                let handler = move |delivery: Delivery| async move {
                    for _ in 0..takes.as_secs() {
                        tokio::time::sleep(Duration::from_secs(1)).await;
                        assert_eq!(alive.load(Ordering::SeqCst), process);
                    }
                    effects.add(delivery.event_id());
                    StatusCode::NO_CONTENT
                };
                let [settled, failed] = [Arc::clone(&told), Arc::clone(&told)];
                let settings = Receiver::builder()
                    .store(store.clone())
                    // A killed process drains nothing, and reports nothing.
                    .on_settled(move |run| settled.lock().unwrap().push(run.outcome.name()))
                    .on_failed(move |failure| failed.lock().unwrap().push(failure.outcome.name()));
                let guard = harness.layer(settings)?;
                Ok::<_, ReplayError>(Router::new().route("/webhooks", post(handler).layer(guard)))
            })
            .await
            .unwrap();
        assert!(report.each_event_committed_once(), "{report}");
        assert_eq!(effects.of("evt_1"), 1, "{report}");
        let event = report.event("evt_1").unwrap();
        assert_eq!(event.commits.len(), 1);
        assert_eq!(*told.lock().unwrap(), ["handled"], "{report}");
        // The lease of the first run ends before the second begins, so none is refused for it for
        // ever.
        assert!(event.runs.len() <= 2, "{report}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_a_restart_has_cut_off_begins_again_when_its_lease_has_ended() {
    let effects = Effects::default();
    let replay = play(log([logged("evt_1", 0)])).with(Faults::seeded(2).restarts(1));
    let report = durably(replay, &effects, Duration::from_secs(90)).await;
    let event = report.event("evt_1").unwrap();
    let ends = event.runs.iter().map(|run| (run.process, run.end));
    let expected = [(0, RunEnd::CutOff), (1, RunEnd::Succeeded)];
    assert_eq!(ends.collect::<Vec<_>>(), expected, "{report}");
}

/// A process that is killed releases nothing: its claim is held until the lease ends, and a copy
/// that comes before that runs nothing.
#[tokio::test(start_paused = true)]
async fn what_a_killed_process_has_claimed_stays_claimed() {
    let mut found = 0;
    for seed in 0..10 {
        let effects = Effects::default();
        let replay = play(log([logged("evt_1", 0), logged("evt_1", 4)]))
            .with(Faults::seeded(seed).restarts(1));
        let takes = Duration::from_secs(90);
        let report = durably(replay, &effects, takes).await;
        let event = report.event("evt_1").unwrap();
        let copy = &event.attempts[1];
        if copy.process == 1 {
            assert_eq!(event.runs[0].end, RunEnd::CutOff);
            let answer = (copy.status, &*copy.outcome);
            assert_eq!(answer, (Some(503), "still_running"), "{report}");
            found += 1;
        }
    }
    assert!(found > 0);
}

/// The handler would be done in the very moment in which its process ends: it is not.
#[tokio::test(start_paused = true)]
async fn a_run_that_finishes_as_its_process_ends_is_not_done() {
    let mut cut_off = 0;
    for seed in 0..200 {
        let effects = Effects::default();
        let replay = play(small_log()).with(
            Faults::seeded(seed)
                .handler_is_slow(1, Duration::from_secs(3))
                .restarts(1),
        );
        let report = durably(replay, &effects, Duration::ZERO).await;
        let runs = report.events().iter().flat_map(|event| &event.runs);
        cut_off += runs.filter(|run| run.end == RunEnd::CutOff).count();
    }
    assert!(cut_off > 20, "{cut_off}");
}

#[tokio::test(start_paused = true)]
async fn a_killed_process_ends_at_the_seed_that_found_it() {
    let effects = Effects::default();
    let replay = play(small_log()).with(
        Faults::seeded(2_553_960_611_825_779_574)
            .handler_is_slow(1, Duration::from_secs(3))
            .restarts(1),
    );
    let report = durably(replay, &effects, Duration::ZERO).await;
    assert!(effects.each_once(5), "{report}");
    let event = report.event("evt_2").unwrap();
    assert_eq!(event.runs[0].end, RunEnd::CutOff, "{report}");
}

#[tokio::test(start_paused = true)]
async fn a_second_process_that_can_not_begin_is_an_error() {
    let effects = Effects::default();
    let error = play(small_log())
        .with(Faults::seeded(1).restarts(1))
        .against(|harness| match harness.process() {
            0 => forgetful(&harness, &effects).map_err(|error| error.to_string()),
            _ => Err("the migration failed".to_owned()),
        })
        .await
        .unwrap_err();
    assert_eq!(error.kind(), hookgate_testing::replay::ReplayErrorKind::App);
}
