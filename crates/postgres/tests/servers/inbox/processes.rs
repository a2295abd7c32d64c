//! Two processes on one table: each entry handled by one, one of a row at a time.

use std::collections::{HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::StatusCode;
use hookgate_inbox::{RunningWorkers, Workers};

use super::*;
use crate::support::{self, Child, Folder, migrated};

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
    let mut workers = Workers::new(inbox)
        .concurrency(8)
        .poll_interval(Duration::from_millis(200));
    if serial {
        workers = workers.serial_by_row();
    }
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_entry_is_handled_by_one_process() {
    const ENTRIES: usize = 2_000;
    let pause = Duration::from_millis(1);
    if let Some(given) = support::given() {
        return as_child(&given, false, pause).await;
    }
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let folder = Folder::new();
    let file = folder.path().join("runs");
    let given = format!("{}\n{}", file.display(), server.config());
    let test = "inbox::processes::each_entry_is_handled_by_one_process";
    let _other = Child::start(test, &given);
    while lines(&file).is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let inbox = inbox(&server.config());
    let workers = work(&inbox, file.clone(), false, pause);
    for number in 0..ENTRIES {
        let accepted = accept(&inbox, &format!("evt_{number}")).await;
        assert_eq!(accepted.unwrap(), Accepted::New);
    }
    until_done(&inbox, ENTRIES as u64).await;
    workers.shutdown(PATIENCE).await;

    let (mut events, mut of) = (HashSet::new(), HashMap::<_, usize>::new());
    for line in lines(&file) {
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
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let folder = Folder::new();
    let file = folder.path().join("runs");
    let given = format!("{}\n{}", file.display(), server.config());
    let test = "inbox::processes::two_processes_handle_one_of_a_row_at_a_time";
    let _other = Child::start(test, &given);
    while lines(&file).is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let inbox = inbox(&server.config());
    let workers = work(&inbox, file.clone(), true, pause);
    for number in 0..EACH {
        for row in 0..ROWS {
            let event = event(&format!("evt-{row}-{number}"), &format!("row_{row}"));
            let accepted = inbox.accept(&event, RETAIN).await;
            assert_eq!(accepted.unwrap(), Accepted::New);
        }
    }
    until_done(&inbox, (ROWS * EACH) as u64).await;
    workers.shutdown(PATIENCE).await;

    let (mut running, mut of) = (HashMap::<String, String>::new(), HashSet::new());
    let mut at_once = 0;
    for line in lines(&file) {
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

/// The entries that a killed process had leased are handled by the other one, and no other entry twice.
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
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let inbox = inbox(&server.config());
    for number in 0..ENTRIES {
        accept(&inbox, &format!("evt_{number}")).await.unwrap();
    }
    let folder = Folder::new();
    let (held, runs) = (folder.path().join("held"), folder.path().join("runs"));
    let given = format!("{}\n{}", held.display(), server.config());
    let test = "inbox::processes::what_a_killed_process_had_is_handled_by_another";
    let mut other = Child::start(test, &given);
    while lines(&held).len() < 4 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    other.kill();
    let workers = work(&inbox, runs.clone(), false, pause);
    until_done(&inbox, ENTRIES as u64).await;
    workers.shutdown(PATIENCE).await;
    let begun: Vec<_> = lines(&runs)
        .into_iter()
        .filter(|line| line.starts_with("begin "))
        .collect();
    assert_eq!(begun.len(), ENTRIES);
    assert_eq!(lines(&held).len(), 4);
}
