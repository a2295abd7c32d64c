//! Workers that were woken, and wake others.

use super::*;

/// A worker has room for one entry, and is woken for two.
#[tokio::test(start_paused = true)]
async fn a_worker_that_is_full_passes_on_for_which_it_was_woken() {
    let bench = Bench::with(&["evt_1", "evt_2", "evt_3"]).await;
    let running = bench.start(bench.workers().concurrency(1), async |_, _| {
        sleep(secs(10)).await;
        OK
    });
    let passed_on = || bench.calls("wake_another").len();
    // It was woken for none of these.
    sleep(secs(31)).await;
    assert_eq!((bench.stats().await.done, passed_on()), (3, 0));
    for id in ["evt_4", "evt_5"] {
        bench.accept(entry(id)).await;
    }
    sleep(secs(1)).await;
    assert_eq!((bench.stats().await.queued, passed_on()), (1, 1));
    // Once is enough.
    sleep(secs(30)).await;
    assert_eq!((bench.stats().await.done, passed_on()), (5, 1));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_has_room_left_passes_nothing_on() {
    let bench = Bench::new();
    let running = bench.start(bench.workers().concurrency(2), async |_, _| {
        sleep(secs(1)).await;
        OK
    });
    for number in 0..3 {
        sleep(secs(2)).await;
        bench.accept(entry(&format!("evt_{number}"))).await;
    }
    sleep(secs(2)).await;
    assert_eq!(bench.stats().await.done, 3);
    assert!(bench.calls("wake_another").is_empty());
    drop(running);
}
