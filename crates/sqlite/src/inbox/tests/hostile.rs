//! Changes to the file from outside, and failures that must not spread.

use std::sync::atomic::{AtomicBool, Ordering};

use hookgate::clock::{Clock, Monotonic, SystemClock};

use super::*;

/// The process may have been killed before it had flushed its writes: a copy of such a delivery
/// would be answered as a duplicate.
// fault Q20: a copy of what a killed process had written and not flushed is answered as known
#[test]
fn what_a_killed_process_has_left_in_the_log_is_flushed_at_the_next_start() {
    let (folder, killed) = (Folder::new(), Folder::new());
    let options = InboxOptions::default();
    let engine = SqliteEngine::open(&folder.file(), &options).unwrap();
    block_on(engine.accept(entry("evt_1", None), DAY)).unwrap();
    // The state after a kill: file and log, and no process has them open.
    let log = |folder: &Folder| PathBuf::from(format!("{}-wal", folder.file().display()));
    for (from, to) in [(folder.file(), killed.file()), (log(&folder), log(&killed))] {
        std::fs::copy(from, to).unwrap();
    }
    let _engine = SqliteEngine::open(&killed.file(), &options).unwrap();
    let (pages, copied): (i64, i64) = outside(&killed)
        .query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| {
            Ok((row.get(1)?, row.get(2)?))
        })
        .unwrap();
    // The log was copied into the file, and SQLite flushes the log for that.
    assert!(pages > 0);
    assert_eq!(pages, copied);
}

/// A lease begins when its holder can have it, and not when the call began to wait for the file.
// fault Q21: a wait for the file's lock shortens a lease
#[test]
fn a_wait_for_the_file_shortens_no_lease() {
    let (folder, clock) = (Folder::new(), manual());
    let options = InboxOptions::default()
        .clock(clock.clone())
        .busy_timeout(Duration::from_secs(30));
    let engine = Arc::new(SqliteEngine::open(&folder.file(), &options).unwrap());
    block_on(engine.accept(entry("evt_1", None), DAY)).unwrap();
    let other = outside(&folder);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let waiting = std::thread::spawn({
        let engine = Arc::clone(&engine);
        move || block_on(engine.lease(request())).unwrap()
    });
    // Gives the call time to begin its wait; if it begins later, the test checks less.
    std::thread::sleep(Duration::from_millis(300));
    clock.advance(10 * SECOND);
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(waiting.join().unwrap().jobs.len(), 1);
    let listed = block_on(engine.list(Selection::all(), Page::first(1))).unwrap();
    let lease = u64::try_from(request().lease.as_millis()).unwrap();
    assert_eq!(listed[0].until, Some(clock.unix_millis() + lease));
}

/// Read back here and not only where it was set, since SQLite refuses a setting without an error.
// fault Q1: commits are not flushed, on one of several connections
#[test]
fn every_connection_flushes_each_commit() {
    let folder = Folder::new();
    let options = InboxOptions::default();
    let opened = open(&folder.file(), true, |file| open_file(file, &options));
    let ((writer, reader, _), _) = opened.unwrap();
    for connection in [&writer, &reader] {
        let number = |pragma: &str| -> i64 {
            let pragma = format!("PRAGMA {pragma}");
            connection.query_row(&pragma, [], |row| row.get(0)).unwrap()
        };
        assert_eq!(number("synchronous"), 2, "FULL");
        let mode: String = connection
            .query_row("PRAGMA journal_mode", [], |row| row.get(0))
            .unwrap();
        assert_eq!(mode, "wal");
        assert_eq!(number("trusted_schema"), 0);
    }
}

// fault Q2: the answer goes before the commit
#[test]
fn what_is_answered_is_committed_by_then() {
    let (folder, clock) = (Folder::new(), manual());
    let engine = engine(&folder, &clock);
    let outside = outside(&folder);
    let mut seen = outside
        .prepare("SELECT count(*) FROM entries WHERE event_id = ?1")
        .unwrap();
    for number in 0..200 {
        let id = format!("evt_{number}");
        assert_eq!(accept(&engine, &id), Accepted::New);
        let count: i64 = seen.query_row([&id], |row| row.get(0)).unwrap();
        assert_eq!(count, 1, "{id} was answered and is not there");
    }
}

/// A clock is the user's own code.
#[derive(Debug, Clone)]
struct Breaking(Arc<AtomicBool>);

impl Clock for Breaking {
    fn now(&self) -> UnixSeconds {
        assert!(!self.0.swap(false, Ordering::SeqCst), "made-up panic");
        SystemClock.now()
    }

    fn monotonic(&self) -> Monotonic {
        SystemClock.monotonic()
    }
}

// fault Q13: a panic ends the thread that writes, and each delivery is refused until a restart
#[test]
fn a_panic_is_one_calls_failure_and_ends_no_thread() {
    let folder = Folder::new();
    let breaks = Arc::new(AtomicBool::new(false));
    let options = InboxOptions::default().clock(Breaking(Arc::clone(&breaks)));
    let engine = SqliteEngine::open(&folder.file(), &options).unwrap();
    assert_eq!(accept(&engine, "evt_1"), Accepted::New);
    for round in 0..3 {
        breaks.store(true, Ordering::SeqCst);
        let failed = block_on(engine.accept(entry("evt_2", None), DAY));
        // The check of an idle writer may have met the panic in place of this call.
        if let Err(error) = &failed {
            assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        }
        breaks.store(false, Ordering::SeqCst);
        let known = block_on(engine.accept(entry("evt_1", None), DAY));
        assert!(
            known.is_ok(),
            "round {round}: the writer is gone: {known:?}"
        );
    }
    accept(&engine, "evt_2");
    breaks.store(true, Ordering::SeqCst);
    let _ = block_on(engine.stats());
    breaks.store(false, Ordering::SeqCst);
    assert_eq!(stats(&engine).queued, 2, "the reader is gone");
}

/// SQLite would go on to write commits into the deleted log, and they would be lost at the end of
/// the process.
#[cfg(unix)]
// fault Q11: the file, or the log beside it, is deleted while it is open: all that is acknowledged goes with the process
#[test]
fn nothing_is_acknowledged_into_a_log_that_was_deleted() {
    let (folder, clock) = (Folder::new(), manual());
    let engine = engine(&folder, &clock);
    accept(&engine, "evt_1");
    let log = folder.0.join("inbox.db-wal");
    std::fs::rename(&log, folder.0.join("away")).unwrap();
    let refused = block_on(engine.accept(entry("evt_2", None), DAY));
    assert_eq!(refused.unwrap_err().kind(), StoreErrorKind::Unavailable);
    std::fs::rename(folder.0.join("away"), &log).unwrap();
    assert!(block_on(engine.accept(entry("evt_2", None), DAY)).is_ok());
}

/// What is written into the whole part of a damaged file might never be read again.
#[cfg(unix)]
// fault Q43: a file that was found to be malformed takes more deliveries
#[test]
fn once_the_file_is_found_damaged_no_delivery_is_acknowledged() {
    use std::os::unix::fs::FileExt;
    let (folder, clock) = (Folder::new(), manual());
    let engine = engine(&folder, &clock);
    let mut large = entry("evt_1", None);
    large.body = Bytes::from(vec![b'x'; 20_000]);
    block_on(engine.accept(large, DAY)).unwrap();
    let copy = "PRAGMA wal_checkpoint(TRUNCATE)";
    outside(&folder).query_row(copy, [], |_| Ok(())).unwrap();
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(folder.file())
        .unwrap();
    let mut page = [0; 1_024];
    for at in (0..file.metadata().unwrap().len()).step_by(page.len()) {
        file.read_exact_at(&mut page, at).unwrap();
        // A page of the body, after the number of the next one.
        if page[4..] == [b'x'; 1_020] {
            file.write_all_at(&[0xff; 4], at).unwrap();
        }
    }
    let found = block_on(engine.lease(request())).unwrap_err();
    assert_eq!(found.kind(), StoreErrorKind::Corrupt);
    let refused = block_on(engine.accept(entry("evt_2", None), DAY));
    assert_eq!(refused.unwrap_err().kind(), StoreErrorKind::Corrupt);
}

/// Another program has changed the entries, or the disk has damaged them.
// fault Q12: one entry that can't be read keeps all others from their turn
// fault Q22: one entry that can't be read keeps all others from being listed
#[test]
fn an_entry_that_is_none_keeps_no_other_from_its_turn() {
    let (folder, clock) = (Folder::new(), manual());
    let engine = engine(&folder, &clock);
    for id in ["evt_1", "evt_2", "evt_3", "evt_4", "evt_5"] {
        block_on(engine.accept(entry(id, Some(id)), DAY)).unwrap();
    }
    outside(&folder)
        .execute_batch(
            "UPDATE entries SET key = x'00' WHERE event_id = 'evt_1';
             UPDATE entries SET timestamp = CAST(x'ff' AS TEXT) WHERE event_id = 'evt_2';
             UPDATE entries SET row = x'00' WHERE event_id = 'evt_3';
             UPDATE entries SET event_id = '', event_type = '', scope = CAST(x'ff' AS TEXT), last_error = CAST(x'ff' AS TEXT),
               state = 1, tries = 99, until = 1, token = x'00' WHERE event_id = 'evt_4';",
        )
        .unwrap();
    for serial_by_row in [true, false] {
        let request = LeaseRequest {
            serial_by_row,
            ..request()
        };
        let batch = block_on(engine.lease(request)).unwrap();
        let ids: Vec<_> = batch.jobs.iter().map(|job| &*job.entry.event_id).collect();
        let expected: &[&str] = if serial_by_row { &["evt_5"] } else { &[] };
        assert_eq!(ids, expected);
    }
    let now = stats(&engine);
    assert_eq!((now.queued, now.running, now.dead), (0, 1, 4));
    // An operator finds them in the list.
    let dead = Selection::all().state(EntryState::Dead);
    let dead = block_on(engine.list(dead, Page::first(9))).unwrap();
    let ids: Vec<_> = dead.iter().map(|listed| listed.event_id.as_str()).collect();
    assert_eq!(ids, ["evt_1", "evt_2", "evt_3", "unreadable"]);
    assert_eq!(dead[3].event_type.as_str(), "unreadable");
}

/// The caller stops waiting after the answer was sent, and before it has received it.
// fault Q15: a lease whose asker has gone keeps its entries until it ends
#[tokio::test]
async fn a_lease_that_is_answered_and_not_received_is_given_back() {
    let (folder, clock) = (Folder::new(), manual());
    let engine = engine(&folder, &clock);
    let accepted = engine.accept(entry("evt_1", None), DAY).await;
    assert_eq!(accepted.unwrap(), Accepted::New);
    let mut call = engine.lease(request());
    let asked = std::future::poll_fn(|context| {
        let _ = std::pin::Pin::new(&mut call).poll(context);
        std::task::Poll::Ready(())
    });
    asked.await;
    // This call is answered after the lease.
    engine.accept(entry("evt_1", None), DAY).await.unwrap();
    drop(call);
    let jobs = engine.lease(request()).await.unwrap().jobs;
    assert_eq!((jobs.len(), jobs[0].tries), (1, 1));
}
