//! Rows in doubt: what a crash, another handler or an uncertain order may have left wrong in the
//! user's table.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use hookgate::{Event, MemoryStore, block_on};
use hookgate_client::reconcile::{
    Fed, Life, MemoryMirror, Mirror, Reconcile, Reconciled, begin, feed, is_known,
};
use hookgate_order::Order;
use serde_json::json;

use super::driver::{Kinds, Source, filled, quick, reconcile, rename, settings};
use super::service::{self, MODEL, deleted, event};

/// An update of the fourth row.
fn renamed(seconds: u64, before: &str, after: &str) -> Event {
    service::renamed(seconds, "row_4", before, after)
}

/// The findings of one pass of another process.
async fn found(source: &Source, mirror: &Arc<MemoryMirror>) -> Vec<String> {
    let found = Mutex::new(Vec::new());
    let note = |finding: Reconciled| {
        let line = format!("{} {}", finding.kind(), finding.row_id());
        found.lock().unwrap().push(line);
        ready(Ok::<_, Infallible>(()))
    };
    let mut passes = reconcile(source, Arc::clone(mirror));
    passes.pass(note).await.unwrap();
    found.into_inner().unwrap()
}

/// Begins the event, which does not end.
async fn killed(mirror: &MemoryMirror, event: &Event, order: Order) {
    assert!(begin(mirror, event, order).await.unwrap().is_some());
}

/// One more pass finds the fourth row, and the one after it nothing.
async fn is_found_once(source: &Source, mirror: &Arc<MemoryMirror>) {
    assert_eq!(found(source, mirror).await, ["updated row_4"]);
    assert_eq!(found(source, mirror).await, [""; 0]);
}

/// Begins the event, and ends it.
async fn handled(mirror: &MemoryMirror, event: &Event, order: Order) -> Fed {
    let begun = begin(mirror, event, order).await.unwrap();
    begun.unwrap().finish().await.unwrap()
}

/// Row 4 is called Bo since second 21, in the service and in the mirror.
async fn renamed_to_bo() -> (Source, Arc<MemoryMirror>) {
    let source = Source::with_rows(10);
    let mirror = filled(&source).await;
    rename(&source, &[3]);
    let update = renamed(21, "name 4", "Bo");
    assert_eq!(handled(&mirror, &update, Order::Newest).await, Fed::Written);
    // Nothing is in doubt.
    assert_eq!(found(&source, &mirror).await, [""; 0]);
    (source, mirror)
}

// fault M21: the process is killed in a handler, and the event does not come again: the table stays wrong, and the mirror equals the service
#[tokio::test]
async fn an_event_that_does_not_end_leaves_its_row_to_the_next_pass() {
    let (source, mirror) = renamed_to_bo().await;
    // Killed, or failed, before or after the table was written.
    killed(&mirror, &renamed(22, "Bo", "Bo"), Order::Newest).await;
    is_found_once(&source, &mirror).await;

    // Later events do not end the doubt.
    killed(&mirror, &renamed(23, "Bo", "Cy"), Order::Newest).await;
    handled(&mirror, &renamed(24, "Cy", "Bo"), Order::Newest).await;
    feed(&mirror, &renamed(25, "Bo", "Bo")).await.unwrap();
    assert_eq!(found(&source, &mirror).await, ["updated row_4"]);

    // The first event of a row, which is not in the service.
    killed(&mirror, &deleted(20, "row_99"), Order::Newest).await;
    assert_eq!(found(&source, &mirror).await, [""; 0]);
    let mut passes = reconcile(&source, mirror);
    for handled in [0, 0, 1, 0] {
        assert_eq!(passes.pass(quick).await.unwrap().handled, handled);
    }
}

// fault M19: two events of one row overlap, or their order is unknown: the user's table stays wrong, and as the mirror is right no pass repairs it
#[tokio::test]
async fn an_event_whose_order_is_not_certain_leaves_its_row_to_the_next_pass() {
    for order in [Order::Stale, Order::Unknown] {
        let (source, mirror) = renamed_to_bo().await;
        let late = renamed(19, "name 4", "Al");
        let begun = begin(&mirror, &late, order).await.unwrap().unwrap();
        assert_eq!(begun.order(), order);
        begun.finish().await.unwrap();
        is_found_once(&source, &mirror).await;
        // The pass has read what it says, and an event whose values are there, whatever its order.
        let same = renamed(25, "name 4", "Bo");
        for event in [&late, &same] {
            let begun = begin(&mirror, event, order).await.unwrap();
            assert!(begun.is_none(), "{event:?}");
        }
        let (source, mirror) = renamed_to_bo().await;
        handled(&mirror, &same, order).await;
        assert_eq!(found(&source, &mirror).await, [""; 0]);
    }
}

/// A crash came between the newer event's `finish` and its record in the guard's store.
// fault M20: the process is killed after an event was written to the mirror and before its order was recorded: its redelivery is taken as known, and never handled
#[tokio::test]
async fn the_newest_event_of_a_guard_is_unknown_beside_a_newer_one_of_the_mirror() {
    for (late, expected) in [
        (renamed(19, "name 4", "Al"), Order::Unknown),
        (renamed(21, "name 4", "Al"), Order::Unknown),
        (deleted(22, "row_4"), Order::Newest),
    ] {
        let (source, mirror) = renamed_to_bo().await;
        let begun = begin(&mirror, &late, Order::Newest).await.unwrap();
        assert_eq!(begun.unwrap().order(), expected, "{late:?}");
        assert_eq!(found(&source, &mirror).await, ["updated row_4"]);
    }
}

// fault M19: two events of one row overlap, or their order is unknown: the user's table stays wrong, and as the mirror is right no pass repairs it
#[tokio::test]
async fn two_events_at_the_same_time_leave_their_row_to_the_next_pass() {
    let (source, mirror) = renamed_to_bo().await;
    let (one, other) = (renamed(22, "Al", "Cy"), renamed(23, "Cy", "Bo"));
    // As in two processes, whichever ends last.
    for is_last in [true, false] {
        let begun = async |event| begin(&mirror, event, Order::Newest).await.unwrap();
        let (one, other) = (begun(&one).await.unwrap(), begun(&other).await.unwrap());
        let (first, last) = if is_last { (one, other) } else { (other, one) };
        first.finish().await.unwrap();
        last.finish().await.unwrap();
        is_found_once(&source, &mirror).await;
    }
}

/// The table may have the older of the two states, and the process is killed before it looks again.
// fault M22: an event overtakes the repair of its row, or the repair the event, and the process is killed before it looks at the row again
#[tokio::test]
async fn an_event_during_a_finding_leaves_the_row_to_the_next_pass_of_another_process() {
    for begins_before in [true, false] {
        let (source, mirror) = renamed_to_bo().await;
        // In doubt, so that the next pass gives it to the handler.
        killed(&mirror, &renamed(21, "Bo", "Bo"), Order::Newest).await;
        let update = renamed(22, "Bo", "Bo");
        let begun = async || begin(&mirror, &update, Order::Newest).await.unwrap();
        let before = match begins_before {
            true => begun().await,
            false => None,
        };
        let before = Mutex::new(before);
        let handle = async |_| {
            let before = before.lock().unwrap().take();
            let begun = match before {
                Some(before) => before,
                None => begun().await.unwrap(),
            };
            begun.finish().await.map(drop)
        };
        let mut passes = reconcile(&source, Arc::clone(&mirror));
        assert_eq!(passes.pass(handle).await.unwrap().handled, 1);
        is_found_once(&source, &mirror).await;
    }
}

/// The event is written to the mirror after the finding, whose handler may have written the table
/// last.
// fault M22: an event overtakes the repair of its row, or the repair the event, and the process is killed before it looks at the row again
#[tokio::test]
async fn an_event_that_a_finding_overtook_leaves_the_row_to_the_next_pass() {
    let (source, mirror) = renamed_to_bo().await;
    let update = renamed(22, "Bo", "Bo");
    let begun = begin(&mirror, &update, Order::Newest).await.unwrap();
    assert_eq!(found(&source, &mirror).await, ["updated row_4"]);
    begun.unwrap().finish().await.unwrap();
    is_found_once(&source, &mirror).await;
}

/// The state is the one that was repaired before, under an id that is claimed for two days.
// fault M23: a row is repaired, and its table is left wrong in the same state again: the claim of the first repair hides the second
#[tokio::test]
async fn a_row_that_is_in_doubt_again_is_handled_again_with_claims() {
    let (source, mirror) = renamed_to_bo().await;
    let store = Arc::new(MemoryStore::default());
    let replica = || reconcile(&source, Arc::clone(&mirror)).claims(Arc::clone(&store), "shop");
    for seconds in [22, 23] {
        killed(&mirror, &renamed(seconds, "Bo", "Cy"), Order::Newest).await;
        for handled in [1, 0] {
            let report = replica().pass(quick).await.unwrap();
            assert_eq!(report.handled, handled, "{seconds}");
        }
    }
}

// fault M19: two events of one row overlap, or their order is unknown: the user's table stays wrong, and as the mirror is right no pass repairs it
#[tokio::test]
async fn a_deletion_in_doubt_is_found_in_the_next_pass_and_does_not_stop_at_the_guard() {
    let source = Source::with_rows(100);
    let mirror = filled(&source).await;
    let gone: Vec<_> = source.change(|service| service.rows.drain(..60).collect());
    // The last one exists all the same.
    for row in gone.iter().map(|row| &*row.id).chain(["row_100"]) {
        handled(&mirror, &deleted(200, row), Order::Unknown).await;
    }
    let mut passes = reconcile(&source, mirror);
    let kinds = Kinds::default();
    for expected in [vec!["deleted"; 60], vec!["created"], vec![]] {
        let passed = passes.pass(|finding| kinds.handle(finding)).await;
        passed.unwrap();
        assert_eq!(kinds.sorted(), expected);
    }
}

/// The mirror is fed before the order is recorded and the claim is committed: a crash in between
/// must not hide the event.
// fault M20: the process is killed after an event was written to the mirror and before its order was recorded: its redelivery is taken as known, and never handled
#[test]
fn an_event_is_known_only_once_a_pass_has_read_its_row() {
    let mirror = Arc::new(MemoryMirror::default());
    let source = Source::with_rows(0);
    let properties = json!({ "properties": { "Name": "Al" } });
    let created = event("row.created", 10, "row_4", properties);
    let events = [created, renamed(11, "Al", "Bo"), deleted(12, "row_4")];
    let is_known = |event| block_on(is_known(&mirror, event)).unwrap();
    let known = || events.each_ref().map(is_known);
    for event in &events {
        block_on(feed(&mirror, event)).unwrap();
        assert_eq!(known(), [false; 3], "{event:?}");
    }
    block_on(killed(&mirror, &events[2], Order::Unknown));
    assert_eq!(block_on(found(&source, &mirror)), ["deleted row_4"]);
    assert_eq!(known(), [true; 3]);
    let states = block_on(mirror.list(&MODEL.into(), None, 1)).unwrap();
    let state = &states[0].1.state;
    assert_eq!((state.life, state.is_doubtful()), (Life::Deleted, false));
}

// fault M24: a filling pass fills the mirror alone: the rows are listed a second time for the table, and what changes in between is in one of the two
#[tokio::test]
async fn a_filling_pass_fills_the_table_too_and_reads_each_page_once() {
    let source = Source::with_rows(700);
    let mirror = Arc::new(MemoryMirror::default());
    let mut filling = settings(true);
    filling.fills_table = true;
    let mut passes = Reconcile::new(source.clone(), Arc::clone(&mirror), MODEL, filling.clone());
    let (table, fails) = (Mutex::new(Vec::new()), Mutex::new(true));
    let handle = |finding: Reconciled| {
        let row = finding.row_id().to_string();
        // One row can't be written at first.
        if row == "row_7" && std::mem::take(&mut *fails.lock().unwrap()) {
            return ready(Err("no room"));
        }
        assert_eq!(finding.kind(), "created");
        table.lock().unwrap().push(row);
        ready(Ok(()))
    };
    let report = passes.pass(handle).await.unwrap();
    assert_eq!((report.handled, report.failed), (699, 1));
    assert_eq!(source.pages.load(Relaxed), 2);
    assert_eq!(passes.pass(handle).await.unwrap().handled, 1);
    let mut rows = table.into_inner().unwrap();
    rows.sort();
    rows.dedup();
    assert_eq!(rows.len(), 700);
    assert_eq!(found(&source, &mirror).await, [""; 0]);

    // Without the table, a row in doubt stays so.
    let update = renamed(900, "name 4", "Cy");
    killed(&mirror, &update, Order::Newest).await;
    filling.fills_table = false;
    for names in [&[][..], &[3]] {
        rename(&source, names);
        let mirror = Arc::clone(&mirror);
        let mut passes = Reconcile::new(source.clone(), mirror, MODEL, filling.clone());
        let never = |_| -> Ready<Result<(), Infallible>> { panic!("not the table") };
        passes.pass(never).await.unwrap();
    }
    assert_eq!(found(&source, &mirror).await, ["updated row_4"]);
}
