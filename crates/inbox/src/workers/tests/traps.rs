//! The four faults that were measured in a well-known library, and the poison pill: an event that
//! kills its process.

use super::*;
use tokio::sync::Notify;

/// In that library, acknowledgements and heartbeats waited while a buffer of fetched jobs was not
/// empty: finished jobs ran again.
// fault Q4: acknowledgements and renewals wait behind a full buffer, or never come
#[tokio::test(start_paused = true)]
async fn a_settlement_and_a_renewal_wait_behind_nothing() {
    let bench = Bench::with(&["evt_1", "evt_2", "evt_3", "evt_4", "evt_5", "evt_6"]).await;
    let workers = bench.workers().concurrency(1).lease(secs(3));
    let running = bench.start(workers, async |_, _| {
        sleep(secs(2)).await;
        OK
    });
    // A second process leases all the time, and gets each entry once: none that is running, none
    // that is done.
    let other = bench.start(
        bench.workers().concurrency(1).lease(secs(3)),
        async |_, _| {
            sleep(secs(2)).await;
            OK
        },
    );
    sleep(secs(7)).await;
    assert_eq!(bench.stats().await.done, 6);
    let mut ids: Vec<_> = bench.attempts().iter().map(|attempt| attempt.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 6, "each once");
    assert_eq!(bench.attempts().len(), 6);
    // Each settlement was sent at the end of its handler, and each lease was renewed after a third
    // of its time.
    let settled: Vec<_> = bench
        .calls("settle")
        .iter()
        .map(Duration::as_millis)
        .collect();
    assert!(settled.iter().all(|at| at % 2_000 <= 3), "{settled:?}");
    assert_eq!(bench.calls("renew").len(), 6);
    drop((running, other));
}

/// In that library, a job that panicked stayed *running*: not retried, not dead.
// fault Q5: a job that panicked stays *running*
#[tokio::test(start_paused = true)]
async fn a_panicked_job_is_not_left_running() {
    let bench = Bench::with(&["evt_1"]).await;
    let running = bench.start(bench.workers().max_tries(2), async |_, _| {
        panic!("made-up panic")
    });
    sleep(millis(10)).await;
    let listed = bench.listed("evt_1").await;
    assert_eq!((listed.state, listed.tries), (EntryState::Queued, 1));
    assert_eq!(
        listed.last_error.as_deref(),
        Some("panicked: made-up panic")
    );
    sleep(secs(2)).await;
    assert_eq!(bench.state("evt_1").await, EntryState::Dead);
    assert_eq!(running.active(), 0);
}

/// In that library, an error was retried at once: three tries within ten milliseconds.
// fault Q7: a retry without a wait, or with one that is not written down
#[tokio::test(start_paused = true)]
async fn a_retry_always_waits_and_longer_each_time() {
    let bench = Bench::with(&["evt_1"]).await;
    let times = Times::new();
    let noted = times.clone();
    let workers = bench.workers().max_tries(6).poll_interval(DAY);
    let running = bench.start(workers, move |_, _| {
        noted.note();
        async { BAD }
    });
    sleep(secs(100)).await;
    // 1, 2, 4, 8 and 16 s after the end of the previous run, to the millisecond of tokio's timers.
    let expected = [0, 1_000, 3_000, 7_000, 15_000, 31_000];
    let seen = times.millis();
    assert_eq!(seen.len(), expected.len(), "{seen:?}");
    for (seen, expected) in seen.iter().zip(expected) {
        assert!(
            (expected..expected + 50).contains(seen),
            "{seen} for {expected}"
        );
    }
    assert_eq!(bench.state("evt_1").await, EntryState::Dead);
    assert_eq!(bench.listed("evt_1").await.tries, 6);
    drop(running);
}

/// In that library, a worker with the name of a killed one refused to start for half a minute.
// fault Q10: a worker that refuses to start again under its name
#[tokio::test(start_paused = true)]
async fn a_restart_at_once_works_at_once() {
    let bench = Bench::with(&["evt_1"]).await;
    let begun = Arc::new(Notify::new());
    let notifies = Arc::clone(&begun);
    // A kill: all tasks end at once, and no entry is settled.
    let killed = bench.workers();
    let running = bench.start(killed, move |_, _| {
        notifies.notify_one();
        std::future::pending()
    });
    begun.notified().await;
    running.kill().await;

    bench.accept(entry("evt_2")).await;
    let times = Times::new();
    let noted = times.clone();
    let again = bench.start(bench.workers(), move |_, _| {
        noted.note();
        async { OK }
    });
    sleep(secs(29)).await;
    assert_eq!(bench.state("evt_2").await, EntryState::Done);
    assert_eq!(times.millis()[0], 0, "new work is done at once");
    assert_eq!(bench.state("evt_1").await, EntryState::Running);
    sleep(secs(2)).await;
    // The entry of the killed worker is due again when its lease has ended.
    assert_eq!(bench.state("evt_1").await, EntryState::Done);
    assert!(
        (29_990..30_100).contains(&times.millis()[1]),
        "{:?}",
        times.millis()
    );
    drop(again);
}

/// In that library, one failed heartbeat or acknowledgement ended the worker.
#[tokio::test(start_paused = true)]
async fn a_store_that_fails_hangs_or_panics_ends_no_worker() {
    for fault in [Fault::Fails, Fault::Slow(DAY), Fault::Panics] {
        let bench = Bench::with(&["evt_1"]).await;
        let times = Times::new();
        let noted = times.clone();
        let running = bench.start(bench.workers(), move |_, _| {
            noted.note();
            async {
                sleep(secs(1)).await;
                OK
            }
        });
        sleep(millis(500)).await;
        // All calls fail: the settlement of the first run, and the next lease.
        bench.engine.with_faults(move |_| fault);
        sleep(secs(300)).await;
        bench.engine.with_faults(|_| Fault::None);
        let leases = bench.calls("lease").len();
        assert!(leases < 1_000, "it backs off: {leases} calls");
        bench.accept(entry("evt_2")).await;
        sleep(secs(60)).await;
        assert_eq!(bench.stats().await.done, 2, "{fault:?}");
        // The first entry was run once, although the store accepted its settlement five minutes
        // later.
        assert_eq!(times.millis().len(), 2, "{fault:?}");
        drop(running);
    }
}

/// An event whose handler kills the process each time: its runs are counted, and it becomes a dead
/// letter.
// fault Q14: a dead letter that nobody is told of
// fault Q16: an event that kills its process does so for ever
#[tokio::test(start_paused = true)]
async fn a_poison_pill_becomes_a_dead_letter() {
    let bench = Bench::with(&["evt_pill"]).await;
    let mut deaths = 0;
    for _ in 0..10 {
        let begun = Arc::new(Notify::new());
        let notifies = Arc::clone(&begun);
        let running = bench.start(bench.workers().max_tries(3), move |_, _| {
            notifies.notify_one();
            std::future::pending()
        });
        let met = tokio::time::timeout(secs(60), begun.notified())
            .await
            .is_ok();
        running.kill().await;
        if !met {
            break;
        }
        deaths += 1;
    }
    assert_eq!(deaths, 3);
    let listed = bench.listed("evt_pill").await;
    assert_eq!((listed.state, listed.tries), (EntryState::Dead, 3));
    let dead = bench.reports.dead.lock().unwrap();
    assert_eq!(dead.len(), 1);
    assert!(dead[0].delivery.is_none() && dead[0].tries == 3);
    assert_eq!(dead[0].event_id.as_str(), "evt_pill");
    assert!(!dead[0].error.is_empty());
}
