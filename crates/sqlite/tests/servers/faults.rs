//! A delivery that the file can't take is answered 503, and later deliveries are accepted again.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use hookgate::{
    dedupe::{StoreError, StoreErrorKind},
    sink::{Accepted, Sink},
};
use hookgate_inbox::{EntryState, Inbox, Selection};
use hookgate_sqlite::{InboxOptions, open_inbox};
use rusqlite::Connection;

use super::{RETAIN, app, back_up, deliver, delivery, queued_in, receiver, until, write, written};
use crate::support::{Child, Folder, given, says};

const UNAVAILABLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;

/// The error of an accept.
async fn refused(inbox: &Inbox, id: &str) -> StoreError {
    let accepted = inbox.accept(&delivery(&receiver(), id), RETAIN).await;
    accepted.unwrap_err()
}

// fault Q9: a delivery is acknowledged that could not be stored
#[tokio::test]
async fn a_full_file_is_503_until_there_is_room() {
    let folder = Folder::new();
    let file = folder.path().join("inbox.db");
    let inbox = InboxOptions::default().max_pages(40).open(file).unwrap();
    let app = app(&inbox);
    // One that needs a new page is refused before one whose key falls on a page with room.
    let (mut accepted, mut number, mut in_a_row) = (0_u64, 0, 0);
    while in_a_row < 100 {
        number += 1;
        let answer = deliver(&app, &format!("evt_{number}")).await;
        accepted += u64::from(answer.is_success());
        in_a_row = if answer.is_success() { 0 } else { in_a_row + 1 };
        assert!(number < 10_000, "no limit holds");
    }
    assert!(accepted > 20);
    let too_much = format!("evt_{number}");
    assert_eq!(deliver(&app, &too_much).await, UNAVAILABLE);
    assert_eq!(
        refused(&inbox, &too_much).await.kind(),
        StoreErrorKind::Full
    );
    // Duplicates are recognized, also where nothing more can be written.
    assert_eq!(deliver(&app, "evt_1").await, StatusCode::OK);
    assert_eq!(inbox.stats().await.unwrap().queued, accepted);

    let dead = inbox.dead_letter(Selection::all(), "no room").await;
    assert_eq!(dead.unwrap(), accepted);
    assert_eq!(inbox.purge(Selection::all()).await.unwrap(), accepted);
    for number in 0..accepted / 2 {
        let answer = deliver(&app, &format!("evt_again_{number}")).await;
        assert!(answer.is_success(), "{answer}, {number} of {accepted}");
    }
    assert_eq!(inbox.stats().await.unwrap().queued, accepted / 2);
}

#[tokio::test]
async fn another_processs_lock_is_503_and_passes() {
    if let Some(folder) = given() {
        return hold_the_lock(Path::new(&folder)).await;
    }
    let folder = Folder::new();
    let inbox = InboxOptions::default()
        .busy_timeout(Duration::from_millis(200))
        .max_waiting(1)
        .open(folder.path().join("inbox.db"))
        .unwrap();
    let app = app(&inbox);
    assert!(deliver(&app, "evt_before").await.is_success());
    let test = "faults::another_processs_lock_is_503_and_passes";
    let mut child = Child::start(test, folder.path().to_str().unwrap());
    written(folder.path().join("locked")).await;

    let receiver = receiver();
    let locked = refused(&inbox, "evt_locked").await;
    assert_eq!(locked.kind(), StoreErrorKind::TimedOut);
    assert_eq!(deliver(&app, "evt_locked").await, UNAVAILABLE);
    // Readers do not block writers, nor the other way round.
    assert_eq!(inbox.stats().await.unwrap().queued, 1);
    // One waits already, so that another one gets the error at once.
    let waits = tokio::spawn({
        let (inbox, delivery) = (inbox.clone(), delivery(&receiver, "evt_waits"));
        async move { inbox.accept(&delivery, RETAIN).await }
    });
    // It asks first.
    tokio::task::yield_now().await;
    until("one is refused at once", async || {
        let begun = Instant::now();
        let kind = refused(&inbox, "evt_crowd").await.kind();
        kind == StoreErrorKind::Unavailable && begun.elapsed() < Duration::from_millis(150)
            || waits.is_finished()
    })
    .await;
    let waited = waits.await.unwrap().unwrap_err();
    assert_eq!(waited.kind(), StoreErrorKind::TimedOut);

    write(folder.path().join("release"), "\n");
    assert!(child.wait().success());
    assert!(deliver(&app, "evt_locked").await.is_success());
    assert_eq!(inbox.stats().await.unwrap().queued, 2);
}

async fn hold_the_lock(folder: &Path) {
    let connection = Connection::open(folder.join("inbox.db")).unwrap();
    connection.busy_timeout(Duration::from_secs(30)).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    write(folder.join("locked"), "\n");
    written(folder.join("release")).await;
    connection.execute_batch("ROLLBACK").unwrap();
}

// fault Q11: the file, or the log beside it, is deleted while it is open: all that is acknowledged goes with the process
#[tokio::test]
async fn what_would_be_written_to_a_deleted_file_is_503() {
    let folder = Folder::new();
    let file = folder.path().join("inbox.db");
    let inbox = InboxOptions::default().open(&file).unwrap();
    let app = app(&inbox);
    assert!(deliver(&app, "evt_before").await.is_success());
    let away = folder.path().join("away.db");
    fs::rename(&file, &away).unwrap();
    assert_eq!(deliver(&app, "evt_lost").await, UNAVAILABLE);
    // Nor into one that has taken its place.
    fs::write(&file, "").unwrap();
    assert_eq!(deliver(&app, "evt_lost").await, UNAVAILABLE);
    fs::rename(&away, &file).unwrap();
    assert!(deliver(&app, "evt_lost").await.is_success());
}

// fault Q42: a backup replaces the file, and the log that was left makes it malformed, as the file is open or at the next start
#[tokio::test]
async fn a_backup_that_replaces_the_open_file_is_503_and_stays_whole() {
    let put: [fn(&Path, &Path); 2] = [
        |backup, file| {
            fs::copy(backup, file).unwrap();
        },
        |backup, file| fs::rename(backup, file).unwrap(),
    ];
    for put in put {
        let folder = Folder::new();
        let at = |name: &str| folder.path().join(name);
        let (file, backup) = (at("inbox.db"), at("backup.db"));
        let inbox = open_inbox(&file).unwrap();
        let app = app(&inbox);
        for number in 0..200 {
            let answer = deliver(&app, &format!("evt_{number}")).await;
            assert!(answer.is_success());
        }
        back_up(&file, &backup);
        let bytes = fs::read(&backup).unwrap();
        assert!(deliver(&app, "evt_after").await.is_success());
        put(&backup, &file);
        let refused = refused(&inbox, "evt_late").await;
        assert_eq!(refused.kind(), StoreErrorKind::Unavailable);
        says(
            &refused,
            "end every program that uses the file, delete -wal and -shm, and start again",
        );
        assert_eq!(deliver(&app, "evt_late").await, UNAVAILABLE);
        drop(app);
        inbox.close().await;

        // A restart without the order that the message gives.
        let refused = open_inbox(&file).unwrap_err();
        assert_eq!(refused.kind(), StoreErrorKind::Corrupt);
        says(
            &refused,
            "the log beside it (-wal) was written for another file",
        );
        assert!(fs::read(&file).unwrap() == bytes, "the backup is changed");
        fs::remove_file(at("inbox.db-wal")).unwrap();
        fs::remove_file(at("inbox.db-shm")).unwrap();
        assert_eq!(queued_in(&file).await, 200);
    }
}

/// As when a compressed backup is copied over the open file.
// fault Q48: a file that is no database, such as a compressed backup, is copied over the open one: it passes for the file, and the log is written into it
#[tokio::test]
async fn a_file_that_is_not_a_database_is_503_and_is_not_written_over() {
    let folder = Folder::new();
    let file = folder.path().join("inbox.db");
    let inbox = open_inbox(&file).unwrap();
    let app = app(&inbox);
    assert!(deliver(&app, "evt_1").await.is_success());
    let bytes = b"\x1f\x8b".repeat(4_096);
    fs::write(&file, &bytes).unwrap();
    let copy = fs::File::options().append(true).open(&file).unwrap();
    copy.set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(deliver(&app, "evt_2").await, UNAVAILABLE);
    drop(app);
    inbox.close().await;
    let refused = open_inbox(&file).unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Corrupt);
    assert!(fs::read(&file).unwrap() == bytes, "the copy is changed");
}

/// SQLite's shell makes an empty log, and the deliveries are in the one that has no name any more.
// fault Q50: the log was deleted, and a look from outside makes an empty one: the log without a name is dropped when the file is closed
#[tokio::test]
async fn a_look_from_outside_after_the_log_was_deleted_costs_no_delivery() {
    let folder = Folder::new();
    let [file, log] = ["inbox.db", "inbox.db-wal"].map(|name| folder.path().join(name));
    let inbox = open_inbox(&file).unwrap();
    let app = app(&inbox);
    assert!(deliver(&app, "evt_1").await.is_success());
    fs::remove_file(&log).unwrap();
    let outside = Connection::open(&file).unwrap();
    // With the index of the old log, it may find nothing.
    let _ = outside.query_row("SELECT count(*) FROM entries", [], |_| Ok(()));
    drop(outside);
    assert_eq!(fs::metadata(&log).unwrap().len(), 0);
    says(
        refused(&inbox, "evt_2").await,
        "-wal or -shm beside the file",
    );
    drop(app);
    inbox.close().await;
    assert_eq!(queued_in(&file).await, 1);
}

#[tokio::test]
async fn a_call_that_is_dropped_harms_no_other() {
    let folder = Folder::new();
    let inbox = open_inbox(folder.path().join("inbox.db")).unwrap();
    let receiver = receiver();
    for number in 0..50 {
        let gone = delivery(&receiver, &format!("evt_gone_{number}"));
        let mut call = Box::pin(inbox.accept(&gone, RETAIN));
        // Asked, and dropped before there is an answer, or just as it comes.
        tokio::select! {
            biased;
            _ = &mut call => {}
            () = tokio::task::yield_now() => {}
        }
        drop(call);
        let stays = delivery(&receiver, &format!("evt_{number}"));
        assert_eq!(inbox.accept(&stays, RETAIN).await.unwrap(), Accepted::New);
    }
    let queued = inbox.stats().await.unwrap().queued;
    assert!((50..=100).contains(&queued), "{queued}");
}

#[tokio::test]
async fn chunks_of_an_operators_command_leave_nothing_out() {
    let folder = Folder::new();
    let inbox = open_inbox(folder.path().join("inbox.db")).unwrap();
    let receiver = receiver();
    let calls = (0..1_203).map(|number| {
        let (inbox, delivery) = (inbox.clone(), delivery(&receiver, &format!("evt_{number}")));
        tokio::spawn(async move { inbox.accept(&delivery, RETAIN).await })
    });
    for call in calls.collect::<Vec<_>>() {
        // As many as may wait: the others are refused, and not looked for here.
        let _ = call.await.unwrap();
    }
    let queued = inbox.stats().await.unwrap().queued;
    assert!(queued > 1_000, "{queued}");
    let waiting = Selection::all().state(EntryState::Queued);
    assert_eq!(inbox.dead_letter(waiting, "so many").await.unwrap(), queued);
    assert_eq!(inbox.retry(Selection::all()).await.unwrap(), queued);
    assert_eq!(inbox.purge(Selection::all()).await.unwrap(), 0);
    assert_eq!(inbox.stats().await.unwrap().queued, queued);
}
