//! A second process looks into the file while the first one works on it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use hookgate::{Delivery, sink::Sink};
use hookgate_inbox::{EntryState, Inbox, Page, Selection, Workers};
use hookgate_sqlite::{InboxOptions, open_inbox};
use rusqlite::Connection;

use super::{RETAIN, body, delivery, receiver, until, write, written};
use crate::support::{Child, Folder, given};

const DEAD: usize = 20;

// fault O6: an operator who looks holds up the work, or sees what is long past
#[tokio::test]
async fn a_second_process_looks_and_acts_while_the_first_one_works() {
    if let Some(folder) = given() {
        return operator(Path::new(&folder)).await;
    }
    let folder = Folder::new();
    let inbox = open_inbox(folder.path().join("inbox.db")).unwrap();
    let receiver = receiver();
    for number in 0..DEAD {
        let dead = delivery(&receiver, &format!("evt_dead_{number}"));
        inbox.accept(&dead, RETAIN).await.unwrap();
    }
    let dead_lettered = inbox
        .dead_letter(Selection::all(), "made for this test")
        .await;
    assert_eq!(dead_lettered.unwrap(), DEAD as u64);

    let handled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&handled);
    // Polls so seldom that only a notification can wake it.
    let workers = Workers::new(&inbox)
        .poll_interval(Duration::from_secs(3_600))
        .start_handler(async move |delivery: Delivery| {
            assert!(!delivery.body().is_empty());
            count.fetch_add(1, Ordering::SeqCst);
            StatusCode::OK
        })
        .unwrap();
    let test = "two_processes::a_second_process_looks_and_acts_while_the_first_one_works";
    let mut child = Child::start(test, folder.path().to_str().unwrap());
    // Work goes on all the while.
    let (mut number, done) = (0, folder.path().join("looked"));
    while !done.exists() {
        let next = delivery(&receiver, &format!("evt_live_{number}"));
        inbox.accept(&next, RETAIN).await.unwrap();
        number += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    until("all are handled", async || {
        handled.load(Ordering::SeqCst) == number
    })
    .await;
    write(folder.path().join("retry"), "\n");
    assert!(child.wait().success());
    until("what the other process retried is handled", async || {
        handled.load(Ordering::SeqCst) == number + DEAD
    })
    .await;
    workers.shutdown(Duration::MAX).await;
    let stats = inbox.stats().await.unwrap();
    assert_eq!((stats.done, stats.dead), ((number + DEAD) as u64, 0));
}

async fn operator(folder: &Path) {
    let inbox = InboxOptions::default()
        .existing()
        .open(folder.join("inbox.db"))
        .unwrap();
    let dead = || Selection::all().state(EntryState::Dead);
    for _ in 0..50 {
        let listed = inbox.list(dead(), Page::first(100)).await.unwrap();
        assert_eq!(listed.len(), DEAD);
        assert_eq!(inbox.stats().await.unwrap().dead, DEAD as u64);
        inbox
            .list(Selection::all(), Page::first(100))
            .await
            .unwrap();
    }
    let first = inbox.list(dead(), Page::first(1)).await.unwrap().remove(0);
    assert_eq!(first.last_error.as_deref(), Some("made for this test"));
    let shown = inbox.show(first.id).await.unwrap().unwrap();
    let stored = shown.body.as_ref().unwrap();
    assert_eq!(&stored[..], body("evt_dead_0").as_bytes());
    let delivery = shown.delivery.as_ref().unwrap();
    assert_eq!(delivery.event_id(), "evt_dead_0");
    assert!(
        !format!("{shown:?}").contains("page.created\","),
        "{shown:?}"
    );
    write(folder.join("looked"), "\n");
    written(folder.join("retry")).await;
    assert_eq!(inbox.retry(dead()).await.unwrap(), DEAD as u64);
    inbox.close().await;
}

/// As a clean-up script does. The next process has an index of the log, and locks, of its own.
// fault Q41: the index of the log is deleted beside a running receiver: the next process has another index and other locks, the file becomes malformed, and what is acknowledged is lost
// fault Q51: the index of the log is deleted a second time: the process that has the first one copies by it over what another process has written
#[tokio::test]
async fn a_deleted_index_of_the_log_costs_no_delivery() {
    const EACH: usize = 300;
    let receiver = receiver();
    let accept = async |inbox: &Inbox, name: &str| {
        let mut accepted = 0;
        for number in 0..EACH {
            let delivery = delivery(&receiver, &format!("evt_{name}_{number}"));
            accepted += usize::from(inbox.accept(&delivery, RETAIN).await.is_ok());
        }
        accepted
    };
    if let Some(file) = given() {
        let inbox = open_inbox(file).unwrap();
        assert_eq!(accept(&inbox, "second").await, EACH);
        return inbox.close().await;
    }
    for is_deleted_again in [false, true] {
        let folder = Folder::new();
        let file = folder.path().join("inbox.db");
        let index = folder.path().join("inbox.db-shm");
        let inbox = open_inbox(&file).unwrap();
        let mut accepted = accept(&inbox, "first").await;
        fs::remove_file(&index).unwrap();
        let test = "two_processes::a_deleted_index_of_the_log_costs_no_delivery";
        let mut child = Child::start(test, file.to_str().unwrap());
        assert!(child.wait().success());
        if is_deleted_again {
            fs::remove_file(&index).unwrap();
        }
        accepted += EACH + accept(&inbox, "late").await;
        inbox.close().await;
        let inbox = open_inbox(&file).unwrap();
        assert_eq!(inbox.stats().await.unwrap().queued, accepted as u64);
        inbox.close().await;
        assert_eq!(integrity(&file), "ok");
        assert_eq!(accepted, 2 * EACH, "no late one is acknowledged");
    }
}

fn integrity(file: &Path) -> String {
    let connection = Connection::open(file).unwrap();
    let check = "PRAGMA integrity_check(1)";
    connection.query_row(check, [], |row| row.get(0)).unwrap()
}
