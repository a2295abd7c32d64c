//! Two processes on one table: each entry handled by one, one of a row at a time.

use std::collections::{HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::*;
use crate::support::{self, Child, Folder, PostgresServer, migrated, needed, until};

/// Writes a line, whole, from whichever process.
fn note(file: &Path, line: &str) {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(file)
        .unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn lines(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Workers that write down where each handler begins and ends.
fn work(inbox: &Inbox, file: PathBuf, serial: bool, pause: Duration) -> RunningWorkers {
    let workers = Workers::new(inbox).concurrency(8);
    let workers = super::serial(workers.poll_interval(Duration::from_millis(200)), serial);
    let file = Arc::new(file);
    let process = std::process::id();
    workers
        .start_handler(move |event: Delivery| {
            let file = Arc::clone(&file);
            async move {
                let id = event.event_id().to_owned();
                note(&file, &format!("begin {id} {process}"));
                tokio::time::sleep(pause).await;
                note(&file, &format!("end {id} {process}"));
                StatusCode::OK
            }
        })
        .unwrap()
}

/// As the child: works until it is killed.
async fn as_child(given: &str, serial: bool, pause: Duration) {
    let (file, config) = given.split_once('\n').unwrap();
    let _workers = work(&inbox(config), PathBuf::from(file), serial, pause);
    note(Path::new(file), "ready");
    std::future::pending().await
}

/// An inbox on which this process and another one work, and the file in which both write.
struct Two {
    inbox: Inbox,
    file: PathBuf,
    workers: RunningWorkers,
    _other: Child,
    _server: PostgresServer,
    _folder: Folder,
}

impl Two {
    async fn start(test: &str, serial: bool, pause: Duration) -> Option<Self> {
        let server = migrated(&["fsync=off"]).await?;
        let folder = Folder::new();
        let file = folder.path().join("runs");
        let given = format!("{}\n{}", file.display(), server.config());
        let other = Child::start(test, &given);
        until("the other works", async || !lines(&file).is_empty()).await;
        let inbox = inbox(&server.config());
        Some(Self {
            workers: work(&inbox, file.clone(), serial, pause),
            inbox,
            file,
            _other: other,
            _server: server,
            _folder: folder,
        })
    }

    /// What both have written, once so many are done.
    async fn ended(self, entries: usize) -> Vec<String> {
        until_done(&self.inbox, entries as u64).await;
        self.workers.shutdown(PATIENCE).await;
        lines(&self.file)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_entry_is_handled_by_one_process() {
    const ENTRIES: usize = 2_000;
    let pause = Duration::from_millis(1);
    if let Some(given) = support::given() {
        return as_child(&given, false, pause).await;
    }
    let test = "inbox::processes::each_entry_is_handled_by_one_process";
    let two = needed!(Two::start(test, false, pause).await);
    for number in 0..ENTRIES {
        let accepted = accept(&two.inbox, &format!("evt_{number}")).await;
        assert_eq!(accepted.unwrap(), Accepted::New);
    }
    let (mut events, mut of) = (HashSet::new(), HashMap::<_, usize>::new());
    for line in two.ended(ENTRIES).await {
        if let Some(rest) = line.strip_prefix("begin ") {
            let (event, process) = rest.split_once(' ').unwrap();
            assert!(events.insert(event.to_owned()), "{event} is handled twice");
            *of.entry(process.to_owned()).or_default() += 1;
        }
    }
    assert_eq!(events.len(), ENTRIES);
    assert_eq!(of.len(), 2, "one process did all: {of:?}");
}

// fault Q6: two jobs of one row run at a time
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_handle_one_of_a_row_at_a_time() {
    const ROWS: usize = 4;
    const EACH: usize = 60;
    let pause = Duration::from_millis(3);
    if let Some(given) = support::given() {
        return as_child(&given, true, pause).await;
    }
    let test = "inbox::processes::two_processes_handle_one_of_a_row_at_a_time";
    let two = needed!(Two::start(test, true, pause).await);
    for number in 0..EACH {
        for row in 0..ROWS {
            let event = event(&format!("evt-{row}-{number}"), &format!("row_{row}"));
            let accepted = two.inbox.accept(&event, RETAIN).await;
            assert_eq!(accepted.unwrap(), Accepted::New);
        }
    }
    let (mut running, mut of) = (HashMap::<String, String>::new(), HashSet::new());
    let mut at_once = 0;
    for line in two.ended(ROWS * EACH).await {
        let Some((what, rest)) = line.split_once(' ') else {
            continue;
        };
        let (event, process) = rest.split_once(' ').unwrap();
        let row = event.split('-').nth(1).unwrap().to_owned();
        if what == "begin" {
            let other = running.insert(row, event.to_owned());
            assert_eq!(other, None, "runs beside {event}");
            at_once = at_once.max(running.len());
            of.insert(process.to_owned());
        } else {
            assert_eq!(running.remove(&row).as_deref(), Some(event));
        }
    }
    assert_eq!(of.len(), 2, "one process did all");
    assert!(at_once > 1, "rows waited for each other");
}

/// The entries that a killed process had leased are handled by the other one, and no other entry
/// twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_process_had_is_handled_by_another() {
    const ENTRIES: usize = 40;
    let pause = Duration::from_millis(20);
    if let Some(given) = support::given() {
        let (file, config) = given.split_once('\n').unwrap();
        let file = PathBuf::from(file);
        let _workers = Workers::new(&inbox(config))
            .concurrency(4)
            .lease(Duration::from_secs(1))
            .start_handler(move |event: Delivery| {
                note(&file, &format!("held {}", event.event_id()));
                // Until it is killed.
                std::future::pending::<StatusCode>()
            })
            .unwrap();
        return std::future::pending().await;
    }
    let server = needed!(migrated(&["fsync=off"]).await);
    let inbox = inbox(&server.config());
    for number in 0..ENTRIES {
        accept(&inbox, &format!("evt_{number}")).await.unwrap();
    }
    let folder = Folder::new();
    let (held, runs) = (folder.path().join("held"), folder.path().join("runs"));
    let given = format!("{}\n{}", held.display(), server.config());
    let test = "inbox::processes::what_a_killed_process_had_is_handled_by_another";
    let mut other = Child::start(test, &given);
    until("four are held", async || lines(&held).len() >= 4).await;
    other.kill();
    let workers = work(&inbox, runs.clone(), false, pause);
    until_done(&inbox, ENTRIES as u64).await;
    workers.shutdown(PATIENCE).await;
    let begun = lines(&runs)
        .into_iter()
        .filter(|line| line.starts_with("begin "));
    assert_eq!(begun.count(), ENTRIES);
    assert_eq!(lines(&held).len(), 4);
}
