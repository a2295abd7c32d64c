//! A file that can't serve as an inbox is refused with an error; a new file is readable by its
//! owner alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hookgate::dedupe::StoreErrorKind;
use hookgate_sqlite::{InboxOptions, open_inbox};
use rusqlite::Connection;

use super::full::mounts;
use super::{back_up, delivery, queued_in, receiver};
use crate::support::{Child, Folder, given, needed, says};
use hookgate::sink::{Accepted, Sink};

const HOUR: Duration = Duration::from_secs(3_600);

fn refused(path: &std::path::Path) -> (StoreErrorKind, String) {
    let error = open_inbox(path).unwrap_err();
    let shown = format!("{}: ", path.display());
    assert!(error.to_string().starts_with(&shown), "{error}");
    (error.kind(), format!("{error:?}"))
}

#[track_caller]
fn refused_as(path: &std::path::Path, kind: StoreErrorKind, words: &str) {
    let (refused, told) = refused(path);
    assert_eq!(refused, kind, "{told}");
    says(told, words);
}

// fault O4: a mistyped path makes an empty inbox, and all seems well
#[test]
fn what_is_not_an_inbox_is_refused_and_left_alone() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    let missing = |path| {
        let existing = InboxOptions::default().existing().open(path);
        assert_eq!(existing.unwrap_err().kind(), StoreErrorKind::Missing);
    };

    refused_as(
        folder.path(),
        StoreErrorKind::NotAStore,
        "this is not a file",
    );

    refused_as(
        &at("missing/inbox.db"),
        StoreErrorKind::Missing,
        "make it first",
    );
    missing(at("none.db"));
    assert!(!at("none.db").exists());
    fs::write(at("empty"), "").unwrap();
    missing(at("empty"));
    assert_eq!(fs::read(at("empty")).unwrap().len(), 0);

    fs::write(at("text"), "no database ".repeat(1_000)).unwrap();
    refused_as(
        &at("text"),
        StoreErrorKind::NotAStore,
        "not an SQLite database",
    );
    assert_eq!(fs::read(at("text")).unwrap().len(), 12_000);

    let foreign = Connection::open(at("foreign.db")).unwrap();
    let table = "CREATE TABLE shop (id INTEGER)";
    foreign.execute_batch(table).unwrap();
    drop(foreign);
    let before = fs::read(at("foreign.db")).unwrap();
    refused_as(
        &at("foreign.db"),
        StoreErrorKind::NotAStore,
        "another program",
    );
    assert_eq!(fs::read(at("foreign.db")).unwrap(), before);

    // As where a volume is not mounted.
    for (link, target, file) in [
        ("link.db", "unmounted/inbox.db", "link.db"),
        ("data", "unmounted", "data/inbox.db"),
    ] {
        std::os::unix::fs::symlink(at(target), at(link)).unwrap();
        assert_eq!(refused(&at(file)).0, StoreErrorKind::Missing);
        missing(at(file));
        assert!(!at(target).exists());
    }

    for path in [":memory:", "", "file:inbox.db?mode=memory"] {
        let error = open_inbox(path).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::NotDurable, "{path}");
    }
    assert!(!std::path::Path::new(":memory:").exists());
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused() {
    let folder = Folder::new();
    let file = folder.path().join("inbox.db");
    open_inbox(&file).unwrap().close().await;
    let version = Connection::open(&file).unwrap();
    version.execute_batch("PRAGMA user_version = 2").unwrap();
    drop(version);
    refused_as(&file, StoreErrorKind::Newer, "its tables have version 2");
}

/// Its two connections are never closed at once: then neither would be the last, and the log would
/// stay. Threads that compete for the processors bring the two together now and then.
// fault Q24: a log stays beside a file that was closed
#[tokio::test]
async fn what_is_closed_leaves_one_file() {
    let folder = Folder::new();
    let file = folder.path().join("inbox.db");
    let over = Arc::new(AtomicBool::new(false));
    let compete = |over: Arc<AtomicBool>| move || while !over.load(Ordering::Relaxed) {};
    let busy: Vec<_> = (0..3)
        .map(|_| std::thread::spawn(compete(Arc::clone(&over))))
        .collect();
    let mut left = Vec::new();
    for _ in 0..1_000 {
        open_inbox(&file).unwrap().close().await;
        left = fs::read_dir(folder.path()).unwrap().collect();
        // The reserve for a full disk stays, as the next process needs it.
        if left.len() > 2 {
            break;
        }
    }
    over.store(true, Ordering::Relaxed);
    busy.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(left.len(), 2, "{left:?}");
    let reserve = fs::metadata(folder.path().join("inbox.db-reserve"));
    assert_eq!(reserve.unwrap().len(), 16 * 1024 * 1024);
}

/// As after a kill: the log stays beside the file, and a backup is put in the file's place.
// fault Q42: a backup replaces the file, and the log that was left makes it malformed, as the file is open or at the next start
#[tokio::test]
async fn a_log_of_another_file_is_refused_and_that_of_the_file_is_read() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    let (file, log, backup) = (at("inbox.db"), at("inbox.db-wal"), at("backup.db"));
    let receiver = receiver();
    // In the later rounds the file is one that was restored from the same backup.
    for round in 0..3 {
        let inbox = open_inbox(&file).unwrap();
        for number in 0..100 {
            let delivery = delivery(&receiver, &format!("evt_{round}_{number}"));
            inbox.accept(&delivery, HOUR).await.unwrap();
            if (round, number) == (0, 49) {
                back_up(&file, &backup);
            }
        }
        let queued = inbox.stats().await.unwrap().queued;
        fs::copy(&file, at("killed.db")).unwrap();
        fs::copy(&log, at("killed.db-wal")).unwrap();
        inbox.close().await;

        fs::copy(&backup, &file).unwrap();
        fs::copy(at("killed.db-wal"), &log).unwrap();
        for _ in 0..2 {
            refused_as(&file, StoreErrorKind::Corrupt, "delete -wal and -shm");
        }
        fs::remove_file(&log).unwrap();
        let _ = fs::remove_file(at("inbox.db-shm"));

        assert_eq!(queued_in(&at("killed.db")).await, queued);
    }
    assert_eq!(queued_in(&file).await, 50);
}

/// As after a kill, where the file alone is moved away or emptied. SQLite deletes a log beside an
/// empty file.
// fault Q46: the file is moved away or emptied, and a full log stays beside it: the next start makes a new file, and SQLite deletes the log without an error
#[tokio::test]
async fn a_log_beside_a_missing_or_empty_file_is_kept_and_opening_is_refused() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    let inbox = open_inbox(at("inbox.db")).unwrap();
    let accepted = inbox.accept(&delivery(&receiver(), "evt_1"), HOUR).await;
    assert_eq!(accepted.unwrap(), Accepted::New);
    let log = fs::read(at("inbox.db-wal")).unwrap();
    inbox.close().await;
    fs::write(at("killed.db-wal"), &log).unwrap();
    for is_there in [false, true] {
        if is_there {
            fs::write(at("killed.db"), "").unwrap();
        }
        for _ in 0..2 {
            refused_as(
                &at("killed.db"),
                StoreErrorKind::Corrupt,
                "put the file back",
            );
            assert_eq!(at("killed.db").exists(), is_there);
        }
        assert!(fs::read(at("killed.db-wal")).unwrap() == log);
    }
}

/// An erasure writes the file anew, which changes its schema version by one, as the copy for a
/// backup does.
// fault Q47: an erasure or a second copy gives the file the schema version of its backup: the log beside a backup from before is taken for its own
#[tokio::test]
async fn a_backup_from_before_an_erasure_is_told_from_the_file() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    let (receiver, file) = (receiver(), at("inbox.db"));
    let inbox = open_inbox(&file).unwrap();
    let accept = async |id: &str| inbox.accept(&delivery(&receiver, id), HOUR).await.unwrap();
    accept("evt_1").await;
    back_up(&file, &at("backup.db"));
    inbox.erase(&[]).await.unwrap();
    accept("evt_2").await;
    for (from, to) in [("inbox.db", "killed.db"), ("backup.db", "restored.db")] {
        fs::copy(at(from), at(to)).unwrap();
        fs::copy(at("inbox.db-wal"), at(&format!("{to}-wal"))).unwrap();
    }
    inbox.close().await;
    assert_eq!(queued_in(&at("killed.db")).await, 2);
    let (kind, _) = refused(&at("restored.db"));
    assert_eq!(kind, StoreErrorKind::Corrupt);
}

/// The log lies beside one name only.
// fault Q44: the file alone is mounted, or has two names: the log is in the container, or beside the other name, and what is acknowledged is not found again
#[tokio::test]
async fn a_file_with_two_names_is_refused_and_one_with_a_symbolic_link_is_opened() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    open_inbox(at("inbox.db")).unwrap().close().await;
    fs::hard_link(at("inbox.db"), at("second.db")).unwrap();
    for name in ["inbox.db", "second.db"] {
        refused_as(
            &at(name),
            StoreErrorKind::NotDurable,
            "remove the other name",
        );
    }
    fs::remove_file(at("second.db")).unwrap();
    std::os::unix::fs::symlink(at("inbox.db"), at("second.db")).unwrap();
    let inbox = open_inbox(at("second.db")).unwrap();
    assert!(at("inbox.db-wal").exists());
    inbox.close().await;
}

/// As with `docker run -v …/inbox.db:/data/inbox.db`: the log would be in the container.
// fault Q44: the file alone is mounted, or has two names: the log is in the container, or beside the other name, and what is acknowledged is not found again
#[tokio::test]
async fn a_file_that_is_mounted_alone_is_refused() {
    if let Some(file) = given() {
        refused_as(
            std::path::Path::new(&file),
            StoreErrorKind::NotDurable,
            "mount the folder",
        );
        return;
    }
    let folder = Folder::new();
    let file = folder.path().join("inbox.db");
    open_inbox(&file).unwrap().close().await;
    let mounts = needed!(mounts());
    let test = "opening::a_file_that_is_mounted_alone_is_refused";
    let file = file.to_str().unwrap();
    let mount = r#"mount --bind "$0" "$0" && exec "$@""#;
    let program = [mounts, &["sh", "-c", mount, file]].concat();
    let mut child = Child::start_under(&program, &[], test, file);
    assert!(child.wait().success());
}

#[tokio::test]
async fn a_damaged_file_is_said_to_be_so() {
    let folder = Folder::new();
    let file = folder.path().join("inbox.db");
    open_inbox(&file).unwrap().close().await;
    let mut bytes = fs::read(&file).unwrap();
    // The schema, behind the header.
    bytes[100..4_096].fill(0xa5);
    fs::write(&file, bytes).unwrap();
    refused_as(&file, StoreErrorKind::Corrupt, "put a backup in its place");
}

#[tokio::test]
async fn the_file_and_those_beside_it_are_their_owners_alone() {
    let folder = Folder::new();
    let file = folder.path().join("inbox.db");
    let inbox = open_inbox(&file).unwrap();
    let accepted = inbox.accept(&delivery(&receiver(), "evt_1"), HOUR).await;
    assert_eq!(accepted.unwrap(), Accepted::New);
    for beside in ["", "-wal", "-shm", "-reserve"] {
        let file = fs::metadata(folder.path().join(format!("inbox.db{beside}")));
        let mode = file.unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{beside}");
    }
    inbox.close().await;
    // Closed cleanly: everything is in the one file.
    assert!(!folder.path().join("inbox.db-wal").exists());
}

#[test]
fn settings_that_could_never_work_are_refused() {
    let folder = Folder::new();
    let file = folder.path().join("inbox.db");
    let options = InboxOptions::default;
    for options in [
        options().busy_timeout(Duration::ZERO),
        options().busy_timeout(Duration::from_secs(61)),
        options().max_group(0),
        options().max_waiting(0),
        options().max_pages(0),
        options().forget_at_once(0),
    ] {
        let error = options.clone().open(&file).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Setting, "{options:?}");
    }
    assert!(!file.exists());
    let error = options().max_pages(2).open(&file).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Full);
}

/// As the user `nobody`, who may read the file and not write it. Root may write any file, so
/// another process takes its place.
#[tokio::test]
async fn a_file_that_can_only_be_read_is_refused() {
    if let Some(file) = given() {
        let (kind, words) = refused(std::path::Path::new(&file));
        assert_eq!(kind, StoreErrorKind::Denied, "{words}");
        return;
    }
    let folder = Folder::new();
    let file = folder.path().join("inbox.db");
    open_inbox(&file).unwrap().close().await;
    let mode = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let reserve = folder.path().join("inbox.db-reserve");
    mode(&file, 0o444);
    mode(&reserve, 0o666);
    mode(folder.path(), 0o555);
    let root =
        fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let test = "opening::a_file_that_can_only_be_read_is_refused";
    let nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups";
    let nobody: Vec<_> = nobody.split(' ').collect();
    // The test program may lie in a folder that other users may not read.
    let copy = Folder::new();
    mode(copy.path(), 0o755);
    let program = copy.path().join("test");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    mode(&program, 0o755);
    let under: &[&str] = if root { &nobody } else { &[] };
    let mut child = Child::start_program(&program, under, &[], test, file.to_str().unwrap());
    assert!(child.wait().success());
    mode(folder.path(), 0o755);
    // The reserve of a receiver that runs is not released.
    assert_eq!(fs::metadata(&reserve).unwrap().len(), 16 * 1024 * 1024);
}
