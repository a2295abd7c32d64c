//! The shutdown of workers: no run begins any more, runs in progress may end, and those that do not
//! end in time are returned.

use std::sync::atomic::AtomicBool;

use hookgate::{Outcome, outcome::Failure};

use super::*;
use crate::Disposition;

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_what_runs_and_begins_nothing() {
    let bench = Bench::with(&["evt_1", "evt_2", "evt_3"]).await;
    let running = bench.start(bench.workers().concurrency(2), async |_, _| {
        sleep(secs(40)).await;
        OK
    });
    sleep(secs(1)).await;
    let before = bench.elapsed();
    assert_eq!(running.shutdown(Duration::MAX).await, 0);
    assert_eq!((bench.elapsed() - before).as_secs(), 39);
    // Their leases were renewed until the end.
    assert_eq!(bench.calls("renew").len(), 2 * 3);
    let stats = bench.stats().await;
    assert_eq!((stats.done, stats.queued, stats.running), (2, 1, 0));
    assert_eq!(bench.listed("evt_3").await.tries, 0);
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_outlasts_the_limit_is_returned_and_its_try_does_not_count() {
    let bench = Bench::with(&["evt_1", "evt_2"]).await;
    let running = bench.start(bench.workers().max_tries(1), async |delivery, _| {
        let long = delivery.event_id() == "evt_1";
        sleep(secs(if long { 500 } else { 5 })).await;
        OK
    });
    sleep(secs(1)).await;
    assert_eq!(running.active(), 2);
    let before = bench.elapsed();
    assert_eq!(running.shutdown(secs(10)).await, 1);
    assert!(bench.elapsed() - before < millis(10_100));
    let listed = bench.listed("evt_1").await;
    assert_eq!((listed.state, listed.tries), (EntryState::Queued, 0));
    assert_eq!(bench.state("evt_2").await, EntryState::Done);
    let attempts = bench.attempts();
    let cut = attempts
        .iter()
        .find(|attempt| attempt.disposition == Disposition::Returned)
        .unwrap();
    assert_eq!(cut.outcome, Outcome::Failed(Failure::Drained));
    assert!(
        bench.reports.failed.lock().unwrap().is_empty(),
        "it is not a failure"
    );

    // The next process gets it at once, with its count of runs at zero.
    let next = bench.start(bench.workers().max_tries(1), async |_, _| OK);
    sleep(millis(1)).await;
    assert_eq!(bench.state("evt_1").await, EntryState::Done);
    drop(next);
}

/// This test uses real time: its handler is always ready to run, and tokio moves a paused clock
/// only when no task is ready.
// fault F43: a worker's handler spends the budget of its task at each poll: a shutdown does not abort it, and its entry stays leased
#[tokio::test]
async fn an_entry_whose_handler_spends_the_budget_of_its_task_is_returned_too() {
    let bench = Bench::with(&["evt_1"]).await;
    let running = bench.start(bench.workers(), async |_, _| {
        for _ in 0..u64::MAX {
            tokio::task::consume_budget().await;
        }
        OK
    });
    while running.active() == 0 {
        sleep(millis(1)).await;
    }
    assert_eq!(running.shutdown(millis(20)).await, 1);
    let listed = bench.listed("evt_1").await;
    assert_eq!((listed.state, listed.tries), (EntryState::Queued, 0));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_also_where_the_store_hangs() {
    let bench = Bench::with(&["evt_1"]).await;
    let running = bench.start(bench.workers(), async |_, _| {
        sleep(secs(5)).await;
        OK
    });
    sleep(secs(1)).await;
    bench.engine.with_faults(|_| Fault::Slow(DAY));
    let before = bench.elapsed();
    running.shutdown(secs(10)).await;
    let took = bench.elapsed() - before;
    assert!((secs(10)..millis(11_100)).contains(&took), "{took:?}");
    bench.engine.with_faults(|_| Fault::None);
    // The workers have stopped completely: the lease ends, and the next process takes the entry.
    let calls = bench.engine.calls.lock().unwrap().len();
    sleep(secs(60)).await;
    assert_eq!(bench.engine.calls.lock().unwrap().len(), calls);
    let next = bench.start(bench.workers(), async |_, _| OK);
    sleep(millis(10)).await;
    assert_eq!(bench.listed("evt_1").await.tries, 2);
    drop(next);
}

/// The entries are leased at the moment when the workers must stop.
#[tokio::test(start_paused = true)]
async fn an_entry_that_was_leased_and_not_begun_is_returned() {
    let bench = Bench::with(&["evt_1", "evt_2"]).await;
    bench.engine.with_faults(|call| match call {
        "lease" => Fault::Slow(secs(2)),
        _ => Fault::None,
    });
    let called = Arc::new(AtomicBool::new(false));
    let sets = Arc::clone(&called);
    let running = bench.start(bench.workers(), move |_, _| {
        sets.store(true, Ordering::SeqCst);
        async { OK }
    });
    sleep(secs(1)).await;
    assert_eq!(running.shutdown(secs(30)).await, 0);
    assert!(!called.load(Ordering::SeqCst));
    for id in ["evt_1", "evt_2"] {
        let listed = bench.listed(id).await;
        assert_eq!(
            (listed.state, listed.tries),
            (EntryState::Queued, 0),
            "{id}"
        );
    }
    assert!(bench.elapsed() < secs(3));
}

#[tokio::test(start_paused = true)]
async fn dropped_workers_begin_nothing_and_end_what_runs() {
    let bench = Bench::with(&["evt_1"]).await;
    let running = bench.start(bench.workers(), async |_, _| {
        sleep(secs(40)).await;
        OK
    });
    sleep(secs(1)).await;
    drop(running);
    bench.accept(entry("evt_2")).await;
    sleep(secs(60)).await;
    assert_eq!(bench.state("evt_1").await, EntryState::Done);
    assert_eq!(bench.state("evt_2").await, EntryState::Queued);
    assert_eq!(bench.attempts().len(), 1);
    // No task of the workers is left.
    let calls = bench.engine.calls.lock().unwrap().len();
    sleep(secs(600)).await;
    assert_eq!(bench.engine.calls.lock().unwrap().len(), calls);
    assert_eq!(Arc::strong_count(&bench.engine), 1);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_that_is_given_up_leaves_what_runs_to_end() {
    let bench = Bench::with(&["evt_1"]).await;
    let running = bench.start(bench.workers(), async |_, _| {
        sleep(secs(5)).await;
        OK
    });
    sleep(secs(1)).await;
    let given_up = tokio::time::timeout(secs(1), running.shutdown(secs(60))).await;
    assert!(given_up.is_err());
    sleep(secs(10)).await;
    assert_eq!(bench.state("evt_1").await, EntryState::Done);
}
