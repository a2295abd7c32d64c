//! A store that refuses a settlement permanently.

use hookgate::DeadLetter;

use super::*;
use crate::workers::Disposition;

/// Starts workers whose entries all become dead letters with this reason.
fn dead_lettering(bench: &Bench, reason: &'static str) -> RunningWorkers {
    let workers = bench.workers().concurrency(1).lease(secs(30));
    workers
        .start_handler(async move |_: Delivery| DeadLetter::new(reason))
        .unwrap()
}

// fault F16: a settlement that the database refuses for good holds its worker for ten minutes; a database whose encoding has no room for an id refuses it until the sender gives up
#[tokio::test(start_paused = true)]
async fn a_settlement_that_is_refused_for_good_is_told_once_more_and_frees_its_worker() {
    let bench = Bench::with(&["evt_1", "evt_2"]).await;
    bench.engine.with_faults(|call| match call {
        "settle" => Fault::Refuses,
        _ => Fault::None,
    });
    let running = dead_lettering(&bench, "made-up reason");
    sleep(secs(1)).await;
    // Both entries were handled by the one worker, and each settlement was sent twice.
    assert_eq!(bench.calls("settle").len(), 4);
    let fates: Vec<_> = bench
        .attempts()
        .iter()
        .map(|attempt| attempt.disposition)
        .collect();
    assert_eq!(fates, [Disposition::Unrecorded; 2]);
    assert!(bench.reports.dead.lock().unwrap().is_empty());
    drop(running);
}

// fault F16: a settlement that the database refuses for good holds its worker for ten minutes; a database whose encoding has no room for an id refuses it until the sender gives up
#[tokio::test(start_paused = true)]
async fn a_settlement_without_a_reason_is_told_once_where_it_is_refused_for_good() {
    let bench = Bench::with(&["evt_1"]).await;
    bench.engine.with_faults(|call| match call {
        "settle" => Fault::Refuses,
        _ => Fault::None,
    });
    let running = bench.start(bench.workers(), async |_, _| OK);
    sleep(secs(1)).await;
    assert_eq!(bench.calls("settle").len(), 1);
    assert_eq!(bench.attempts()[0].disposition, Disposition::Unrecorded);
    drop(running);
}

// fault F16: a settlement that the database refuses for good holds its worker for ten minutes; a database whose encoding has no room for an id refuses it until the sender gives up
#[tokio::test(start_paused = true)]
async fn a_reason_that_is_refused_is_kept_in_plain_letters() {
    for (reason, kept) in [
        (
            "Bestellung \u{fc}ber 1\u{202f}\u{20ac}",
            "dead_lettered: Bestellung ?ber 1??",
        ),
        ("plain", "the store refused the reason of this failure"),
    ] {
        let bench = Bench::with(&["evt_1"]).await;
        let calls = AtomicUsize::new(0);
        bench.engine.with_faults(move |call| {
            if call == "settle" && calls.fetch_add(1, Ordering::SeqCst) == 0 {
                Fault::Refuses
            } else {
                Fault::None
            }
        });
        let running = dead_lettering(&bench, reason);
        sleep(secs(1)).await;
        let listed = bench.listed("evt_1").await;
        assert_eq!(listed.state, EntryState::Dead);
        assert_eq!(listed.last_error.as_deref(), Some(kept));
        // The hook gets the text that is stored with the entry.
        assert_eq!(bench.reports.dead.lock().unwrap()[0].error, kept);
        assert_eq!(bench.attempts()[0].disposition, Disposition::Dead);
        drop(running);
    }
}
