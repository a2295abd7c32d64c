//! A file system that another program fills to its last byte.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use axum::http::StatusCode;
use hookgate::{
    Delivery, Receiver,
    dedupe::StoreErrorKind,
    sink::{Accepted, Sink},
};
use hookgate_inbox::{Backoff, EntryState, Inbox, Page, RunningWorkers, Selection, Workers};
use hookgate_sqlite::{InboxOptions, open_inbox};

use super::{RETAIN, body, delivery, delivery_of, receiver, secret, until};
use crate::support::{Child, Folder, given, needed};

const MOUNT: &str = r#"mount -t tmpfs -o size=64m none "$0" && exec "$@""#;

/// The commands that mount a file system which only a child sees, where this user may do so.
pub(super) fn mounts() -> Option<&'static [&'static str]> {
    const WAYS: [&[&str]; 3] = [
        &["unshare", "-m"],
        &["unshare", "-Urm"],
        &["sudo", "-n", "-E", "unshare", "-m"],
    ];
    let folder = Folder::new();
    let can = |way: &&&[&str]| {
        let mut command = Command::new(way[0]);
        command.args(&way[1..]).args(["sh", "-c", MOUNT]);
        command.arg(folder.path()).arg("true").stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let way = WAYS.iter().find(can).copied();
    if way.is_none() {
        println!("left out: this user may mount nothing, not in a namespace of its own either");
    }
    way
}

/// Runs this in a child, whose folder is a file system of 64 MB that it alone sees.
pub(super) fn in_a_small_file_system(test: &str, work: impl AsyncFnOnce(PathBuf)) {
    if let Some(disk) = given() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build();
        return runtime.unwrap().block_on(work(PathBuf::from(disk)));
    }
    let mounts = needed!(mounts());
    let folder = Folder::new();
    let disk = folder.path().to_str().unwrap();
    let program = [mounts, &["sh", "-c", MOUNT, disk]].concat();
    let mut child = Child::start_under(&program, &[], test, disk);
    assert!(child.wait().success());
}

/// Takes every byte that is left.
pub(super) fn fill(disk: &Path) {
    let mut file = File::options()
        .append(true)
        .create(true)
        .open(disk.join("filler"))
        .unwrap();
    for size in [1 << 20, 4_096, 1] {
        let bytes = vec![0xa5; size];
        loop {
            match file.write(&bytes) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Handles everything; an event with `fails` in its id fails each time, with a long error message.
fn work(inbox: &Inbox) -> RunningWorkers {
    Workers::new(inbox)
        .lease(Duration::from_secs(1))
        .backoff(Backoff::exponential(
            Duration::from_secs(3_600),
            Duration::from_secs(3_600),
        ))
        .start_handler(async |delivery: Delivery| {
            if delivery.event_id().contains("slow") {
                tokio::time::sleep(Duration::from_secs(2)).await; // its lease is renewed
            }
            if delivery.event_id().contains("fails") {
                StatusCode::INTERNAL_SERVER_ERROR
            } else {
                StatusCode::OK
            }
        })
        .unwrap()
}

// fault F14: a full disk stops the work, and the inbox can't be opened, also where an operator's change used the reserve before
#[test]
fn on_a_full_disk_accepts_are_503_and_the_work_goes_on() {
    let test = "full::on_a_full_disk_accepts_are_503_and_the_work_goes_on";
    in_a_small_file_system(test, async |disk| on_a_full_disk(&disk).await);
}

async fn on_a_full_disk(disk: &Path) {
    let file = disk.join("inbox.db");
    let (inbox, receiver) = (open_inbox(&file).unwrap(), receiver());
    let accept = async |inbox: &Inbox, id: &str| {
        let body = body(id).replace("{}", &format!("\"{}\"", "x".repeat(4_000)));
        inbox.accept(&delivery_of(&receiver, body), RETAIN).await
    };
    for number in 0..300 {
        let kind = ["works", "fails", "slow"]
            [usize::from(number % 10 == 0) + usize::from(number % 100 == 0)];
        let id = format!("evt_{kind}_{number}");
        assert_eq!(accept(&inbox, &id).await.unwrap(), Accepted::New);
    }
    fill(disk);
    let mut accepted = 300;
    let refused = loop {
        match accept(&inbox, &format!("evt_works_{accepted}")).await {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 10_000, "it is full");
    };
    assert_eq!(refused.kind(), StoreErrorKind::Full);

    // Entries are leased, renewed and settled all the same, as done or to be tried again.
    let workers = work(&inbox);
    until("all is worked off", async || {
        let stats = inbox.stats().await.unwrap();
        stats.queued == stats.retrying && stats.running == 0
    })
    .await;
    workers.shutdown(Duration::MAX).await;
    let stats = inbox.stats().await.unwrap();
    assert_eq!((stats.retrying, stats.done), (27, accepted - 27));
    // Duplicates are recognized.
    let again = accept(&inbox, "evt_works_1").await.unwrap();
    assert_eq!(again, Accepted::Duplicate { same_body: true });

    // An operator's command opens the file meanwhile, looks and acts.
    fill(disk);
    let operator = InboxOptions::default().existing().open(&file).unwrap();
    let waits = Selection::all().state(EntryState::Queued);
    let listed = operator.list(waits.clone(), Page::first(99)).await.unwrap();
    assert_eq!(listed.len(), 27);
    let shown = operator.show(listed[0].id).await.unwrap().unwrap();
    assert!(shown.body.is_some());
    let one = Selection::all().id(listed[0].id);
    assert_eq!(
        operator.dead_letter(one.clone(), "by hand").await.unwrap(),
        1
    );
    assert_eq!(operator.purge(one).await.unwrap(), 1);
    // The log may have had no room for these changes: then they took the reserve.
    File::create(disk.join("inbox.db-reserve")).unwrap();
    operator.close().await;

    // A receiver that is started again, after all that its end gave back was taken as well.
    inbox.close().await;
    fill(disk);
    let inbox = open_inbox(&file).unwrap();
    assert_eq!(inbox.retry(waits).await.unwrap(), 26);
    let workers = work(&inbox);
    until("what failed has failed again", async || {
        let queued = Selection::all().state(EntryState::Queued);
        let listed = inbox.list(queued, Page::first(99)).await.unwrap();
        listed.len() == 26 && listed.iter().all(|listed| listed.tries == 1)
    })
    .await;
    workers.shutdown(Duration::MAX).await;
    for number in 0..2_000 {
        fill(disk);
        match accept(&inbox, &format!("evt_late_{number}")).await {
            Ok(accepted) => assert_eq!(accepted, Accepted::New),
            Err(error) => {
                assert_eq!(error.kind(), StoreErrorKind::Full);
                break;
            }
        }
        assert!(number < 1_999, "it is full");
    }

    // There is room again, and nothing is started again.
    fs::remove_file(disk.join("filler")).unwrap();
    until("deliveries are accepted again", async || {
        accept(&inbox, "evt_after").await.is_ok()
    })
    .await;
    inbox.close().await;
}

/// The reserve was used, another program has taken its room, and the log has reached the end of its
/// room.
// fault Q45: on a full disk without a reserve, workers stop at the end of the log though copying it needs no space
#[test]
fn without_any_reserve_the_log_is_copied_and_the_work_goes_on() {
    let test = "full::without_any_reserve_the_log_is_copied_and_the_work_goes_on";
    in_a_small_file_system(test, async |disk| without_any_reserve(&disk).await);
}

async fn without_any_reserve(disk: &Path) {
    const ENTRIES: u64 = 200;
    let file = disk.join("inbox.db");
    let (inbox, receiver) = (open_inbox(&file).unwrap(), receiver());
    let accepts = (0..ENTRIES).map(|number| {
        let (inbox, delivery) = (inbox.clone(), delivery(&receiver, &format!("evt_{number}")));
        tokio::spawn(async move { inbox.accept(&delivery, RETAIN).await.unwrap() })
    });
    for accept in accepts.collect::<Vec<_>>() {
        accept.await.unwrap();
    }
    // Free pages in the file, so that it need not grow for the leases.
    let large = body("evt_large").replace("{}", &format!("\"{}\"", "x".repeat(200_000)));
    let large = delivery_of(&receiver, large);
    inbox.accept(&large, RETAIN).await.unwrap();
    let one = Selection::all().event_id("evt_large");
    inbox.dead_letter(one.clone(), "not needed").await.unwrap();
    assert_eq!(inbox.purge(one).await.unwrap(), 1);
    let outside = rusqlite::Connection::open(&file).unwrap();
    let copy = "PRAGMA wal_checkpoint(PASSIVE)";
    outside.query_row(copy, [], |_| Ok(())).unwrap();
    fill(disk);
    File::create(disk.join("inbox.db-reserve")).unwrap();
    fill(disk);
    let workers = Workers::new(&inbox)
        .concurrency(1)
        .start_handler(async |_: Delivery| StatusCode::OK)
        .unwrap();
    until("all is worked off", async || {
        inbox.stats().await.unwrap().done == ENTRIES
    })
    .await;
    workers.shutdown(Duration::MAX).await;
    inbox.close().await;
}

/// The log has its most pages and the largest body that the reserve covers, and the file grows by
/// all of them.
#[test]
fn the_largest_body_that_the_reserve_covers_is_handled_on_a_full_disk() {
    let test = "full::the_largest_body_that_the_reserve_covers_is_handled_on_a_full_disk";
    in_a_small_file_system(test, async |disk| the_largest_body(&disk).await);
}

async fn the_largest_body(disk: &Path) {
    const LARGEST: usize = 8 * 1024 * 1024;
    let receiver = Receiver::builder()
        .secret(secret())
        .without_deduplication()
        .max_body(LARGEST)
        .body_budget(4 * LARGEST)
        .build()
        .unwrap();
    let inbox = open_inbox(disk.join("inbox.db")).unwrap();
    let accept = async |id: &str, bytes: usize| {
        let body = body(id).replace("{}", &format!("\"{}\"", "x".repeat(bytes)));
        inbox.accept(&delivery_of(&receiver, body), RETAIN).await
    };
    // Fewer pages than those after which the log is copied.
    let first = accept("evt_first", 900 * 4_096).await;
    assert_eq!(first.unwrap(), Accepted::New);
    // The log has room for the largest body, and the file has none for it.
    fill(disk);
    let filler = File::options().write(true).open(disk.join("filler"));
    let filler = filler.unwrap();
    let filled = filler.metadata().unwrap().len();
    filler.set_len(filled - 9 * 1024 * 1024).unwrap();
    let largest = accept("evt_largest", LARGEST - 1_000).await;
    assert_eq!(largest.unwrap(), Accepted::New);
    let workers = work(&inbox);
    until("both are worked off", async || {
        inbox.stats().await.unwrap().done == 2
    })
    .await;
    workers.shutdown(Duration::MAX).await;
    let reserve = fs::metadata(disk.join("inbox.db-reserve")).unwrap();
    assert!(reserve.len() < 16 * 1024 * 1024, "it was needed");
    inbox.close().await;
}

/// Where the reserve can't be kept, as there is no room for it, the workers go on and no delivery
/// is accepted.
// fault F14: a full disk stops the work, and the inbox can't be opened, also where an operator's change used the reserve before
#[tokio::test]
async fn without_its_reserve_an_inbox_accepts_nothing_new_and_works_on() {
    let folder = Folder::new();
    let file = folder.path().join("inbox.db");
    let receiver = receiver();
    let inbox = open_inbox(&file).unwrap();
    let accept = async |id| inbox.accept(&delivery(&receiver, id), RETAIN).await;
    assert_eq!(accept("evt_1").await.unwrap(), Accepted::New);
    assert_eq!(accept("evt_2").await.unwrap(), Accepted::New);
    let reserve = folder.path().join("inbox.db-reserve");
    fs::remove_file(&reserve).unwrap();
    fs::create_dir(&reserve).unwrap();
    let refused = accept("evt_new").await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Full);
    let again = accept("evt_1").await.unwrap();
    assert_eq!(again, Accepted::Duplicate { same_body: true });
    let workers = work(&inbox);
    until("all is worked off", async || {
        inbox.stats().await.unwrap().done == 2
    })
    .await;
    workers.shutdown(Duration::MAX).await;

    fs::remove_dir(&reserve).unwrap();
    until("deliveries are accepted again", async || {
        accept("evt_new").await.is_ok()
    })
    .await;
}

/// A file that may not grow takes no delivery more, and each entry in it is leased, and keeps why
/// it failed.
// fault F14: a full disk stops the work, and the inbox can't be opened, also where an operator's change used the reserve before
#[tokio::test]
async fn a_full_file_at_its_limit_still_handles_its_entries() {
    let folder = Folder::new();
    let receiver = receiver();
    let inbox = InboxOptions::default()
        .max_pages(40)
        .open(folder.path().join("inbox.db"))
        .unwrap();
    let fill = async |name: &str| {
        for accepted in 0..10_000 {
            let delivery = delivery(&receiver, &format!("evt_fails_{name}_{accepted}"));
            if let Err(error) = inbox.accept(&delivery, RETAIN).await {
                assert_eq!(error.kind(), StoreErrorKind::Full);
                return accepted;
            }
        }
        panic!("no limit holds");
    };
    let accepted = fill("first").await;
    let workers = work(&inbox);
    until("each has failed", async || {
        inbox.stats().await.unwrap().retrying == accepted
    })
    .await;
    workers.shutdown(Duration::MAX).await;
    // Room that the work has left on its pages is used; the limit holds for deliveries as before.
    assert!(fill("second").await <= accepted);
}
