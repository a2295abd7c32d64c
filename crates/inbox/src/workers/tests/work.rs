//! Concurrency, leases, and the events that wake a worker.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::cases::each_case;

#[tokio::test(start_paused = true)]
async fn no_more_run_or_are_leased_than_may() {
    let bench = Bench::new();
    for number in 0..50 {
        bench.accept(entry(&format!("evt_{number}"))).await;
    }
    let most = Arc::new(AtomicUsize::new(0));
    let (inside, peak) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&most));
    let running = bench.start(bench.workers().concurrency(4), move |_, number| {
        let (inside, peak) = (Arc::clone(&inside), Arc::clone(&peak));
        async move {
            peak.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            sleep(millis(100 + 7 * number as u64)).await;
            inside.fetch_sub(1, Ordering::SeqCst);
            OK
        }
    });
    while bench.stats().await.done < 50 {
        assert!(bench.stats().await.running <= 4, "leased ahead");
        assert!(running.active() <= 4);
        sleep(millis(10)).await;
    }
    assert_eq!(most.load(Ordering::SeqCst), 4);
    assert_eq!(bench.attempts().len(), 50);
    // Free places are filled while there is work: 50 runs of 275 ms on average, four at a time.
    assert!(bench.elapsed() < secs(4), "{:?}", bench.elapsed());
}

/// Each lease waits for a commit: with one lease for each run, the disk would be the limit.
#[tokio::test(start_paused = true)]
async fn runs_that_end_together_are_followed_by_one_lease() {
    let bench = Bench::new();
    for number in 0..200 {
        bench.accept(entry(&format!("evt_{number}"))).await;
    }
    let workers = bench.workers().concurrency(20);
    let running = bench.start(workers, async |_, _| {
        sleep(millis(10)).await;
        OK
    });
    while bench.stats().await.done < 200 {
        sleep(millis(1)).await;
    }
    let leases = bench.calls("lease").len();
    assert!((10..=40).contains(&leases), "{leases} leases");
    drop(running);
}

// fault Q4: acknowledgements and renewals wait behind a full buffer, or never come
#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_at_a_third_until_the_end() {
    let bench = Bench::with(&["evt_1"]).await;
    let running = bench.start(bench.workers(), async |_, _| {
        sleep(secs(95)).await;
        OK
    });
    sleep(secs(200)).await;
    let renewals: Vec<_> = bench.calls("renew").iter().map(Duration::as_secs).collect();
    assert_eq!(renewals, [10, 20, 30, 40, 50, 60, 70, 80, 90]);
    assert_eq!(bench.attempts().len(), 1);
    assert_eq!(bench.attempts()[0].elapsed.as_secs(), 95);
    assert_eq!(bench.stats().await.done, 1);
    drop(running);
}

/// The answer of the lease call may come late, but the lease counts from the call.
#[tokio::test(start_paused = true)]
async fn a_lease_counts_from_when_it_was_asked_for() {
    let bench = Bench::with(&["evt_1"]).await;
    bench.engine.with_faults(|call| match call {
        "lease" => Fault::Slow(secs(9)),
        _ => Fault::None,
    });
    let running = bench.start(bench.workers(), async |_, _| {
        sleep(secs(15)).await;
        OK
    });
    sleep(secs(25)).await;
    let renewals: Vec<_> = bench.calls("renew").iter().map(Duration::as_secs).collect();
    assert_eq!(renewals, [10, 20]);
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_fails_is_repeated_before_the_lease_is_over() {
    let bench = Bench::with(&["evt_1"]).await;
    let first = AtomicBool::new(true);
    bench.engine.with_faults(move |call| {
        if call == "renew" && first.swap(false, Ordering::SeqCst) {
            Fault::Fails
        } else {
            Fault::None
        }
    });
    let running = bench.start(bench.workers().lease(secs(12)), async |_, _| {
        sleep(secs(11)).await;
        OK
    });
    sleep(secs(20)).await;
    let renewals: Vec<_> = bench.calls("renew").iter().map(Duration::as_secs).collect();
    assert_eq!(renewals, [4, 5, 9]);
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_lets_the_run_go_on_and_its_end_changes_nothing() {
    let bench = Bench::with(&["evt_1"]).await;
    bench.engine.with_faults(|call| match call {
        // As in a process that was blocked.
        "renew" => Fault::Slow(secs(9)),
        _ => Fault::None,
    });
    let ended = Arc::new(AtomicBool::new(false));
    let end = Arc::clone(&ended);
    let stale = bench.start(bench.workers().lease(secs(3)), move |_, _| {
        let end = Arc::clone(&end);
        async move {
            sleep(secs(20)).await;
            end.store(true, Ordering::SeqCst);
            OK
        }
    });
    sleep(secs(4)).await;
    let successor = bench.start(bench.workers().lease(secs(3)), async |_, _| BAD);
    sleep(millis(500)).await;
    assert_eq!(bench.listed("evt_1").await.tries, 2);
    drop(successor);
    bench.engine.with_faults(|_| Fault::None);
    sleep(secs(2)).await;
    let lost = bench.reports.lost.lock().unwrap().len();
    assert_eq!(lost, 1, "told while it still runs");
    assert!(!ended.load(Ordering::SeqCst));
    sleep(secs(30)).await;
    assert!(ended.load(Ordering::SeqCst), "it was not cut off");
    let attempts = bench.attempts();
    let stales = attempts.iter().find(|attempt| attempt.tries == 1).unwrap();
    assert_eq!(stales.disposition, crate::Disposition::Unrecorded);
    assert_eq!(bench.reports.lost.lock().unwrap().len(), 1, "told once");
    drop(stale);
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_to_a_settlement_does_not_lose_the_lease() {
    let bench = Bench::with(&["evt_1"]).await;
    let first = AtomicBool::new(true);
    bench.engine.with_faults(move |call| {
        if call == "settle" && first.swap(false, Ordering::SeqCst) {
            Fault::LosesReply
        } else {
            Fault::None
        }
    });
    // The lease is so short that renewals arrive between the settlements, and find no lease.
    let workers = bench.workers().lease(millis(31));
    let running = bench.start(workers, async |_, _| OK);
    sleep(secs(5)).await;
    assert_eq!(bench.attempts().len(), 1);
    assert_eq!(bench.attempts()[0].disposition, crate::Disposition::Done);
    assert!(bench.reports.lost.lock().unwrap().is_empty());
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn what_comes_is_begun_at_once_and_what_is_quiet_is_polled() {
    let bench = Bench::new();
    let times = Times::new();
    let noted = times.clone();
    let running = bench.start(bench.workers().poll_interval(secs(60)), move |_, _| {
        noted.note();
        async { OK }
    });
    sleep(secs(90)).await;
    let quiet: Vec<_> = bench.calls("lease").iter().map(Duration::as_secs).collect();
    assert_eq!(quiet, [0, 60]);
    bench.accept(entry("evt_1")).await;
    sleep(secs(1)).await;
    assert_eq!(times.millis(), [90_000]);
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_takes_too_long_is_aborted_and_has_failed() {
    struct SetsOnDrop(Arc<AtomicBool>);
    impl Drop for SetsOnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let bench = Bench::with(&["evt_1"]).await;
    let dropped = Arc::new(AtomicBool::new(false));
    let sets = Arc::clone(&dropped);
    let workers = bench.workers().run_limit(secs(50)).max_tries(1);
    let running = bench.start(workers, move |_, _| {
        let guard = SetsOnDrop(Arc::clone(&sets));
        async move {
            let _guard = guard;
            // Uses up its task's poll budget each time: no timer of the same task would fire.
            loop {
                tokio::task::consume_budget().await;
                sleep(millis(1)).await;
            }
        }
    });
    sleep(secs(49)).await;
    assert!(!dropped.load(Ordering::SeqCst));
    sleep(secs(2)).await;
    assert!(dropped.load(Ordering::SeqCst));
    let listed = bench.listed("evt_1").await;
    assert_eq!(listed.state, EntryState::Dead);
    assert_eq!(listed.last_error.as_deref(), Some("run_limit"));
    assert_eq!(bench.reports.failed.lock().unwrap().len(), 1);
    drop(running);
}

#[test]
fn settings_that_could_do_nothing_are_refused() {
    let bench = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
        .block_on(async { Bench::new() });
    let refused = |workers: Workers| workers.check().unwrap_err().to_string();
    assert_eq!(
        refused(bench.workers().concurrency(0)),
        "concurrency must be at least 1"
    );
    assert_eq!(
        refused(bench.workers().max_tries(0)),
        "max_tries must be at least 1"
    );
    assert!(
        refused(bench.workers().lease(millis(30))).starts_with("lease must be longer than 30 ms")
    );
    assert!(refused(bench.workers().run_limit(Duration::ZERO)).starts_with("run_limit"));
    assert!(refused(bench.workers().poll_interval(Duration::MAX)).starts_with("poll_interval"));
    // No run may end after the claims of the first one are forgotten.
    let hours = |hours: u64| secs(hours * 3_600);
    let with = |retention, limit| bench.workers().claim_retention(retention).run_limit(limit);
    assert!(refused(with(hours(3), hours(1))).starts_with("claim_retention must be longer than"));
    assert!(refused(with(hours(48), hours(46))).starts_with("claim_retention"));
    let within = |workers: Workers| {
        workers.check().unwrap();
        workers.run_within()
    };
    assert_eq!(within(with(hours(4), hours(1))), Some(hours(1)));
    assert_eq!(
        within(with(hours(24 * 365), hours(1))),
        Some(hours(24 * 365 - 3))
    );
    assert_eq!(within(bench.workers()), Some(hours(46) - secs(600)));
    // A run limit near its maximum, with claims that are kept for a year.
    assert_eq!(
        within(with(hours(24 * 365), hours(24 * 30 - 1))),
        Some(hours(24 * 335 - 1))
    );
    assert_eq!(within(with(Duration::MAX, hours(720))), None);
    assert!(bench.workers().check().is_ok());
}

/// For all results of handlers and store, each entry comes to one end, and no more runs happen than
/// permitted.
#[test]
fn every_entry_comes_to_its_end() {
    each_case(64, |case| {
        let (seed, count, concurrency) = (case.u64(..), case.usize(1..40), case.usize(1..8));
        let (processes, faults) = (case.usize(1..4), case.u32(..30));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let bench = Bench::new();
            for number in 0..count {
                bench.accept(entry(&format!("evt_{number}"))).await;
            }
            let chance = Arc::new(Mutex::new(fastrand::Rng::with_seed(seed)));
            let dice = Arc::clone(&chance);
            bench.engine.with_faults(move |_| {
                let mut dice = dice.lock().unwrap();
                if dice.u32(..100) >= faults {
                    return Fault::None;
                }
                match dice.u32(..4) {
                    0 => Fault::Fails,
                    1 => Fault::LosesReply,
                    2 => Fault::Panics,
                    _ => Fault::Slow(Duration::from_millis(dice.u64(..2_000))),
                }
            });
            let handled = Arc::new(Mutex::new(BTreeSet::new()));
            let workers = (0..processes)
                .map(|_| {
                    let (chance, handled) = (Arc::clone(&chance), Arc::clone(&handled));
                    let workers = bench
                        .workers()
                        .concurrency(concurrency)
                        .max_tries(1_000)
                        .backoff(Backoff::exponential(secs(1), secs(5)));
                    bench.start(workers, move |delivery, _| {
                        let (chance, handled) = (Arc::clone(&chance), Arc::clone(&handled));
                        async move {
                            let (time, end) = {
                                let mut dice = chance.lock().unwrap();
                                (dice.u64(..3_000), dice.u32(..4))
                            };
                            sleep(millis(time)).await;
                            assert_ne!(end, 0, "made-up panic");
                            if end == 1 {
                                return BAD;
                            }
                            handled
                                .lock()
                                .unwrap()
                                .insert(delivery.event_id().to_owned());
                            OK
                        }
                    })
                })
                .collect::<Vec<_>>();
            for _ in 0..3_600 {
                sleep(secs(1)).await;
                let active = workers.iter().map(RunningWorkers::active).max();
                assert!(active.unwrap() <= concurrency);
                if handled.lock().unwrap().len() == count {
                    break;
                }
            }
            bench.engine.with_faults(|_| Fault::None);
            sleep(secs(120)).await;
            assert_eq!(bench.stats().await.done, count as u64);
            assert_eq!(handled.lock().unwrap().len(), count);
            drop(workers);
        });
    });
}
