//! `serial_by_row`: at most one event of a row at a time, others in parallel.

use std::collections::HashMap;

use super::*;
use crate::cases::each_case;

// fault Q6: two jobs of one row run at a time
#[tokio::test(start_paused = true)]
async fn one_of_a_row_at_a_time_and_others_beside_it() {
    let bench = Bench::new();
    for (id, row) in [
        ("evt_1", Some("row_a")),
        ("evt_2", Some("row_a")),
        ("evt_3", Some("row_b")),
        ("evt_4", None),
        ("evt_5", None),
    ] {
        bench.accept(entry_of_row(id, row)).await;
    }
    // Only the end of the first run shows that the second may begin.
    let workers = bench
        .workers()
        .serial_by_row()
        .poll_interval(DAY)
        .lease(secs(600));
    let running = bench.start(workers, async |_, _| {
        sleep(secs(10)).await;
        OK
    });
    sleep(secs(1)).await;
    assert_eq!(running.active(), 4);
    sleep(secs(10)).await;
    assert_eq!(running.active(), 1);
    sleep(secs(10)).await;
    assert_eq!(bench.stats().await.done, 5);
    assert_eq!(bench.elapsed().as_secs(), 21);
}

#[tokio::test(start_paused = true)]
async fn without_it_a_row_has_many() {
    let bench = Bench::new();
    for number in 0..5 {
        bench
            .accept(entry_of_row(&format!("evt_{number}"), Some("row_a")))
            .await;
    }
    let running = bench.start(bench.workers(), async |_, _| {
        sleep(secs(10)).await;
        OK
    });
    sleep(secs(1)).await;
    assert_eq!(running.active(), 5);
}

/// Three processes with random rows, times and failures: never two events of a row at a time, and
/// in the end all are done.
#[test]
fn no_interleaving_runs_two_of_a_row() {
    each_case(64, |case| {
        let (seed, rows) = (case.u64(..), case.u32(1..6));
        let (count, concurrency) = (case.usize(1..40), case.usize(1..6));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let bench = Bench::new();
            let chance = Arc::new(Mutex::new(fastrand::Rng::with_seed(seed)));
            let inside = Arc::new(Mutex::new(HashMap::<String, u32>::new()));
            let overlapping = Arc::new(AtomicUsize::new(0));
            let start = || {
                let (chance, inside, overlapping) = (
                    Arc::clone(&chance),
                    Arc::clone(&inside),
                    Arc::clone(&overlapping),
                );
                let workers = bench
                    .workers()
                    .concurrency(concurrency)
                    .serial_by_row()
                    .max_tries(1_000)
                    .backoff(Backoff::exponential(millis(100), secs(1)));
                bench.start(workers, move |delivery, _| {
                    let row = delivery.body().clone();
                    let row = String::from_utf8(row.to_vec()).unwrap();
                    let row = row.split("rowId\":\"").nth(1).unwrap().to_owned();
                    let (chance, inside, overlapping) = (
                        Arc::clone(&chance),
                        Arc::clone(&inside),
                        Arc::clone(&overlapping),
                    );
                    async move {
                        {
                            let mut inside = inside.lock().unwrap();
                            let here = inside.entry(row.clone()).or_default();
                            *here += 1;
                            assert_eq!(*here, 1, "two of a row");
                            let others = inside.values().filter(|here| **here > 0).count();
                            overlapping.fetch_max(others, Ordering::SeqCst);
                        }
                        let (time, fails) = {
                            let mut dice = chance.lock().unwrap();
                            (dice.u64(..4_000), dice.u32(..5) == 0)
                        };
                        sleep(millis(time)).await;
                        *inside.lock().unwrap().get_mut(&row).unwrap() -= 1;
                        if fails { BAD } else { OK }
                    }
                })
            };
            let processes = [start(), start(), start()];
            for number in 0..count {
                let (row, pause) = {
                    let mut dice = chance.lock().unwrap();
                    (dice.u32(..rows), dice.u64(..300))
                };
                bench
                    .accept(entry_of_row(
                        &format!("evt_{number}"),
                        Some(&format!("row_{row}")),
                    ))
                    .await;
                sleep(millis(pause)).await;
            }
            sleep(secs(3_600)).await;
            assert_eq!(bench.stats().await.done, count as u64);
            // A handler that finds another run of its row panics, and its entry would be run again.
            assert!(
                bench
                    .attempts()
                    .iter()
                    .all(|attempt| attempt.outcome.name() != "panicked")
            );
            assert!(overlapping.load(Ordering::SeqCst) <= rows as usize);
            drop(processes);
        });
    });
}
