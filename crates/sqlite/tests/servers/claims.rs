//! `SqliteStore`: the contract, restarts, several processes, and files that can't serve.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hookgate::{
    DedupeStore,
    clock::{ManualClock, UnixSeconds},
    dedupe::{Capacity, ClaimToken, Claimed, EventKey, Ownership, StoreErrorKind},
};
use hookgate_sqlite::{InboxOptions, SqliteStore, open_inbox};
use hookgate_testing::{StoreConformance, StoreUnderTest};
use rusqlite::Connection;

use super::full::{fill, in_a_small_file_system};
use super::{RETAIN, back_up, until};
use crate::support::{Folder, one_run_in_two_processes};

const LEASE: Duration = Duration::from_secs(30);

fn key(id: &str) -> EventKey {
    EventKey::new("default", id)
}

fn clock() -> ManualClock {
    ManualClock::at(UnixSeconds::new(1_763_690_000))
}

async fn claim(store: &SqliteStore, id: &str) -> Claimed {
    let token = ClaimToken::new(b"{}");
    store.claim(&key(id), token, LEASE).await.unwrap()
}

async fn fails(store: &SqliteStore, id: &str) -> StoreErrorKind {
    let token = ClaimToken::new(b"{}");
    let claimed = store.claim(&key(id), token, LEASE).await;
    claimed.unwrap_err().kind()
}

async fn finish(store: &SqliteStore, id: &str) {
    let token = ClaimToken::new(b"{}");
    let claimed = store.claim(&key(id), token, LEASE).await.unwrap();
    assert_eq!(claimed, Claimed::Fresh);
    let held = store.commit(&key(id), token, RETAIN).await.unwrap();
    assert_eq!(held, Ownership::Held);
}

/// Each store in a file of its own, in the time of a manual clock.
struct Files(Folder, ManualClock, AtomicU32);

impl StoreUnderTest for Files {
    async fn open(&self, capacity: Option<Capacity>) -> Option<Arc<dyn DedupeStore>> {
        if capacity.is_some() {
            return None; // it is as large as the disk
        }
        let name = format!("{}.db", self.2.fetch_add(1, Ordering::Relaxed));
        let path = self.0.path().join(name);
        let store = SqliteStore::open_with_clock(path, self.1.clone());
        Some(Arc::new(store.unwrap()))
    }

    async fn advance(&self, time: Duration) {
        self.1.advance(time);
    }

    fn races(&self) -> usize {
        20
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_in_a_file_keeps_the_contract() {
    let files = Files(Folder::new(), clock(), AtomicU32::new(0));
    StoreConformance::new(files).run().await.assert_kept();
}

#[tokio::test]
async fn a_restart_remembers_what_is_done_and_what_runs() {
    let folder = Folder::new();
    let path = folder.path().join("claims.db");
    let token = ClaimToken::new(b"{}");
    {
        let store = SqliteStore::open(&path).unwrap();
        finish(&store, "evt_done").await;
        let runs = store.claim(&key("evt_runs"), token, LEASE).await.unwrap();
        assert_eq!(runs, Claimed::Fresh);
    }
    let store = SqliteStore::open(&path).unwrap();
    let body_mark = token.body_mark();
    assert_eq!(claim(&store, "evt_done").await, Claimed::Done { body_mark });
    let running = claim(&store, "evt_runs").await;
    assert!(matches!(running, Claimed::Running { retry_after } if retry_after <= LEASE));
    let held = store.commit(&key("evt_runs"), token, RETAIN).await;
    assert_eq!(held.unwrap(), Ownership::Held);
    assert_eq!(claim(&store, "evt_new").await, Claimed::Fresh);
}

#[test]
fn one_run_of_256_racers_in_two_processes_on_one_file() {
    one_run_in_two_processes(
        "claims::one_run_of_256_racers_in_two_processes_on_one_file",
        || {
            let folder = Folder::new();
            let path = folder.path().join("claims.db");
            let path = path.display().to_string();
            Some((folder, path))
        },
        async |path| SqliteStore::open(path).unwrap(),
    );
}

fn refused(path: impl AsRef<Path>) -> StoreErrorKind {
    let error = SqliteStore::open(&path).unwrap_err();
    let shown = format!("{}: ", path.as_ref().display());
    assert!(error.to_string().starts_with(&shown), "{error}");
    error.kind()
}

#[tokio::test]
async fn a_file_that_can_keep_no_claims_is_refused_and_left_alone() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    assert_eq!(refused(folder.path()), StoreErrorKind::NotAStore);
    assert_eq!(refused(at("missing/claims.db")), StoreErrorKind::Missing);
    for path in [":memory:", "", "file:claims.db?mode=memory"] {
        assert_eq!(refused(path), StoreErrorKind::NotDurable, "{path}");
    }

    fs::write(at("text"), "no database ".repeat(1_000)).unwrap();
    assert_eq!(refused(at("text")), StoreErrorKind::NotAStore);
    assert_eq!(fs::read(at("text")).unwrap().len(), 12_000);

    let foreign = Connection::open(at("foreign.db")).unwrap();
    let table = "CREATE TABLE shop (id INTEGER)";
    foreign.execute_batch(table).unwrap();
    drop(foreign);
    let before = fs::read(at("foreign.db")).unwrap();
    assert_eq!(refused(at("foreign.db")), StoreErrorKind::NotAStore);
    assert_eq!(fs::read(at("foreign.db")).unwrap(), before);

    // A new file is its owner's alone, with all beside it.
    let store = SqliteStore::open(at("claims.db")).unwrap();
    finish(&store, "evt_1").await;
    for beside in ["", "-wal", "-shm", "-reserve"] {
        let file = fs::metadata(at(&format!("claims.db{beside}"))).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o600, "{beside}");
    }

    let newer = Connection::open(at("claims.db")).unwrap();
    newer.execute_batch("PRAGMA user_version = 2").unwrap();
    drop((newer, store));
    assert_eq!(refused(at("claims.db")), StoreErrorKind::Newer);
}

/// Each call is an error, and no event looks new that was done.
#[tokio::test]
async fn a_damaged_file_is_an_error_and_forgets_nothing() {
    let folder = Folder::new();
    let path = folder.path().join("claims.db");
    {
        let store = SqliteStore::open(&path).unwrap();
        for number in 0..300 {
            finish(&store, &format!("evt_{number}")).await;
        }
        // Copies the log into the file.
        let other = Connection::open(&path).unwrap();
        let copied = other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
            row.get::<_, i64>(0)
        });
        assert_eq!(copied.unwrap(), 0);
    }
    let log = folder.path().join("claims.db-wal");
    until("the file is closed", async || !log.exists()).await;
    let mut bytes = fs::read(&path).unwrap();
    for byte in &mut bytes[1_024..] {
        *byte = 0xa5;
    }
    fs::write(&path, bytes).unwrap();
    let kind = match SqliteStore::open(&path) {
        Err(error) => error.kind(),
        Ok(store) => fails(&store, "evt_1").await,
    };
    assert_eq!(kind, StoreErrorKind::Corrupt);
}

#[tokio::test]
async fn what_would_be_claimed_in_a_deleted_file_is_an_error() {
    let folder = Folder::new();
    let path = folder.path().join("claims.db");
    let store = SqliteStore::open(&path).unwrap();
    finish(&store, "evt_1").await;
    fs::remove_file(&path).unwrap();
    assert_eq!(fails(&store, "evt_2").await, StoreErrorKind::Unavailable);
}

/// A copy keeps the number of the file, and its log has pages of what was there before.
// fault Q42: a backup replaces the file, and the log that was left makes it malformed, as the file is open or at the next start
#[tokio::test]
async fn a_backup_that_is_copied_over_the_open_file_is_an_error() {
    let folder = Folder::new();
    let [path, backup] = ["claims.db", "backup.db"].map(|name| folder.path().join(name));
    let store = SqliteStore::open(&path).unwrap();
    for number in 0..200 {
        finish(&store, &format!("evt_{number}")).await;
    }
    back_up(&path, &backup);
    let other = Connection::open(&path).unwrap();
    // With nothing left in the log to copy.
    let copy = "PRAGMA wal_checkpoint";
    other.query_row(copy, [], |_| Ok(())).unwrap();
    drop(other);
    assert_eq!(claim(&store, "evt_after").await, Claimed::Fresh);
    fs::copy(&backup, &path).unwrap();
    assert_eq!(fails(&store, "evt_1").await, StoreErrorKind::Unavailable);
    let token = ClaimToken::new(b"{}");
    let committed = store.commit(&key("evt_after"), token, RETAIN).await;
    assert!(committed.is_err());
    drop(store);
    until("the next start is refused", async || {
        SqliteStore::open(&path).is_err_and(|error| error.kind() == StoreErrorKind::Corrupt)
    })
    .await;
}

#[tokio::test]
async fn an_inbox_and_claims_share_a_file_whichever_is_first() {
    for inbox_first in [true, false] {
        let folder = Folder::new();
        let path = folder.path().join("both.db");
        let (store, inbox);
        if inbox_first {
            inbox = open_inbox(&path).unwrap();
            store = SqliteStore::open(&path).unwrap();
        } else {
            store = SqliteStore::open(&path).unwrap();
            let existing = InboxOptions::default().existing().open(&path);
            assert_eq!(existing.unwrap_err().kind(), StoreErrorKind::Missing);
            inbox = open_inbox(&path).unwrap();
        }
        let accepted = super::deliver(&super::app(&inbox), "evt_1").await;
        assert!(accepted.is_success());
        // The inbox's entry is not a claim.
        finish(&store, "evt_1").await;
        assert!(matches!(claim(&store, "evt_1").await, Claimed::Done { .. }));
        assert_eq!(inbox.stats().await.unwrap().queued, 1);
        inbox.close().await;
    }
}

#[tokio::test]
async fn another_processs_lock_is_an_error_in_time_and_passes() {
    let folder = Folder::new();
    let path = folder.path().join("claims.db");
    let store = SqliteStore::open(&path).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(fails(&store, "evt_1").await, StoreErrorKind::TimedOut);
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(claim(&store, "evt_1").await, Claimed::Fresh);
}

#[tokio::test]
async fn a_lease_written_by_a_clock_that_was_ahead_ends_in_its_own_time() {
    let folder = Folder::new();
    let path = folder.path().join("claims.db");
    let (ahead, right) = (clock(), clock());
    ahead.advance(Duration::from_secs(86_400));
    let store = SqliteStore::open_with_clock(&path, ahead).unwrap();
    assert_eq!(claim(&store, "evt_runs").await, Claimed::Fresh);
    finish(&store, "evt_done").await;
    drop(store);
    let store = SqliteStore::open_with_clock(&path, right.clone()).unwrap();
    let running = claim(&store, "evt_runs").await;
    assert_eq!(running, Claimed::Running { retry_after: LEASE });
    right.advance(LEASE);
    assert_eq!(claim(&store, "evt_runs").await, Claimed::Fresh);
    right.advance(RETAIN - LEASE);
    let done = claim(&store, "evt_done").await;
    assert!(matches!(done, Claimed::Done { .. }), "remembered longer");
}

#[tokio::test]
async fn ended_records_are_deleted_from_the_file() {
    let folder = Folder::new();
    let path = folder.path().join("claims.db");
    let clock = clock();
    let store = SqliteStore::open_with_clock(&path, clock.clone()).unwrap();
    for number in 0..700 {
        finish(&store, &format!("evt_{number}")).await;
    }
    assert_eq!(claim(&store, "evt_cut_off").await, Claimed::Fresh);
    clock.advance(RETAIN);
    assert_eq!(claim(&store, "evt_next").await, Claimed::Fresh);
    let other = Connection::open(&path).unwrap();
    let count = || -> i64 {
        let count = "SELECT count(*) FROM hookgate_claims";
        other.query_row(count, [], |row| row.get(0)).unwrap()
    };
    // One chunk with each commit, and the rest by a writer that has nothing else to do.
    assert!(count() < 300, "{}", count());
    until("the rest is deleted", async || count() == 1).await;
}

#[test]
fn on_a_full_disk_claims_are_503_and_runs_are_committed() {
    in_a_small_file_system(
        "claims::on_a_full_disk_claims_are_503_and_runs_are_committed",
        async |disk| {
            let path = disk.join("claims.db");
            let store = SqliteStore::open(&path).unwrap();
            finish(&store, "evt_done").await;
            let mut running = Vec::new();
            fill(&disk);
            // The log has room for some more, as it was written before.
            let refused = loop {
                let (id, token) = (format!("evt_{}", running.len()), ClaimToken::new(b"{}"));
                match store.claim(&key(&id), token, LEASE * 100).await {
                    Ok(claimed) => {
                        assert_eq!(claimed, Claimed::Fresh);
                        running.push((id, token));
                        fill(&disk);
                    }
                    Err(error) => break error,
                }
                assert!(running.len() < 10_000, "it is full");
            };
            assert_eq!(refused.kind(), StoreErrorKind::Full);
            assert!(!running.is_empty());
            for (id, token) in &running {
                let held = store.commit(&key(id), *token, RETAIN).await.unwrap();
                assert_eq!(held, Ownership::Held, "{id}");
            }
            // Started again, after all that its end gave back was taken: nothing was lost.
            drop(store);
            let memory = disk.join("claims.db-shm");
            until("the file is closed", async || !memory.exists()).await;
            fill(&disk);
            let store = SqliteStore::open(&path).unwrap();
            for (id, _) in &running {
                let known = claim(&store, id).await;
                assert!(matches!(known, Claimed::Done { .. }), "{id}: {known:?}");
            }
            assert_eq!(fails(&store, "evt_new").await, StoreErrorKind::Full);
            fs::remove_file(disk.join("filler")).unwrap();
            until("there is room", async || {
                let token = ClaimToken::new(b"{}");
                store.claim(&key("evt_new"), token, LEASE).await.is_ok()
            })
            .await;
        },
    );
}
