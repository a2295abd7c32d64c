//! Workers of an inbox on SQLite, in processes that are killed, stand still, or have much to do.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hookgate::{
    DeadLetter, Delivery,
    sink::{Accepted, Sink},
};
use hookgate_inbox::{Backoff, Inbox, Page, RunningWorkers, Selection, Workers};
use hookgate_sqlite::open_inbox;
use http::StatusCode;
use tokio::time::sleep;

use crate::support::{Child, Folder, given, until};

/// A generous time limit, so that a busy machine fails no test.
const PATIENCE: Duration = Duration::from_secs(120);
const RETAIN: Duration = Duration::from_secs(48 * 3_600);

fn delivery(number: usize) -> Delivery {
    let body = format!(r#"{{"id":"evt_{number}","type":"page.created","data":{{}}}}"#);
    hookgate_testing::delivery(&body).unwrap()
}

async fn accept(inbox: &Inbox, numbers: std::ops::Range<usize>) {
    let mut accepts = tokio::task::JoinSet::new();
    for number in numbers {
        let inbox = inbox.clone();
        accepts.spawn(async move {
            let accepted = inbox.accept(&delivery(number), RETAIN).await.unwrap();
            assert_eq!(accepted, Accepted::New);
        });
    }
    while let Some(accept) = accepts.join_next().await {
        accept.unwrap();
    }
}

/// The effects of handlers, in a file that all processes add lines to.
#[derive(Clone)]
struct Effects(PathBuf);

impl Effects {
    fn within(folder: &str) -> Self {
        Self(Path::new(folder).join("effects"))
    }

    fn add(&self, line: &str) {
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.0);
        // In one write: lines of several processes don't mix.
        file.unwrap()
            .write_all(format!("{line}\n").as_bytes())
            .unwrap();
    }

    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    async fn line(&self, line: &str) {
        let is_there = async || self.lines().iter().any(|seen| seen == line);
        until(format!("a line {line}"), is_there).await;
    }
}

fn inbox(folder: &str) -> Inbox {
    open_inbox(Path::new(folder).join("inbox.db")).unwrap()
}

fn run<F: Future<Output = ()>>(test: F) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(test);
}

#[test]
fn whatever_is_killed_each_accepted_event_is_handled() {
    const TEST: &str = "workers::whatever_is_killed_each_accepted_event_is_handled";
    if let Some(folder) = given() {
        // The child: works until it is killed.
        return run(async {
            let effects = Effects::within(&folder);
            let _running = Workers::new(&inbox(&folder))
                .lease(Duration::from_millis(500))
                .concurrency(8)
                .max_tries(1_000)
                .start_handler(move |delivery: Delivery| {
                    let effects = effects.clone();
                    async move {
                        sleep(Duration::from_millis(5)).await;
                        effects.add(delivery.event_id());
                    }
                })
                .unwrap();
            std::future::pending().await
        });
    }
    run(async {
        let folder = Folder::new();
        let path = folder.path().to_str().unwrap();
        let (inbox, effects) = (inbox(path), Effects::within(path));
        let mut accepted = 0;
        let mut cut_off = 0;
        for kill in 0..6 {
            accept(&inbox, accepted..accepted + 300).await;
            accepted += 300;
            // Restarted at once each time. It gets far enough to have work to lose.
            let mut child = Child::start(TEST, path);
            let (before, began) = (effects.lines().len(), Instant::now());
            let enough = before + 20 + 10 * kill;
            while effects.lines().len() < enough {
                assert!(began.elapsed() < PATIENCE, "nothing happens");
                sleep(Duration::from_millis(2)).await;
            }
            child.kill();
            cut_off += inbox.stats().await.unwrap().running;
        }
        assert!(cut_off > 0, "no kill has met a job");
        let _child = Child::start(TEST, path);
        until("all are done", async || {
            inbox.stats().await.unwrap().done == accepted as u64
        })
        .await;
        let lines = effects.lines();
        let distinct: BTreeSet<_> = lines.iter().collect();
        assert_eq!(distinct.len(), accepted, "an event was not handled");
        // Only events whose run was cut off by a kill may have been handled again.
        let repeated = lines.len() - distinct.len();
        let is_few = repeated as u64 <= cut_off;
        assert!(is_few, "{repeated} repeated, {cut_off} cut off");
        println!("{accepted} events, 6 kills, {cut_off} jobs cut off, {repeated} effects repeated");
    });
}

// fault Q3: a worker that stood still settles over its successor
#[test]
fn a_process_that_was_paused_changes_nothing_of_its_successors_result() {
    const TEST: &str =
        "workers::a_process_that_was_paused_changes_nothing_of_its_successors_result";
    if let Some(folder) = given() {
        return run(async {
            let effects = Effects::within(&folder);
            let [lost, settled] = [effects.clone(), effects.clone()];
            let go = Path::new(&folder).join("go");
            let _running = Workers::new(&inbox(&folder))
                .lease(Duration::from_secs(1))
                .on_lost_lease(move |_| lost.add("lost"))
                .on_settled(move |tried| settled.add(&format!("{:?}", tried.disposition)))
                .start_handler(move |_: Delivery| {
                    let (effects, go) = (effects.clone(), go.clone());
                    async move {
                        effects.add("begun");
                        while !go.exists() {
                            sleep(Duration::from_millis(20)).await;
                        }
                        effects.add("ended");
                    }
                })
                .unwrap();
            std::future::pending().await
        });
    }
    run(async {
        let folder = Folder::new();
        let path = folder.path().to_str().unwrap();
        let (inbox, effects) = (inbox(path), Effects::within(path));
        accept(&inbox, 1..2).await;
        let child = Child::start(TEST, path);
        effects.line("begun").await;
        child.signal("STOP");

        // The successor comes to an end of its own.
        let log = effects.clone();
        let successor = Workers::new(&inbox)
            .lease(Duration::from_secs(30))
            .start_handler(move |_: Delivery| {
                log.add("successor");
                async { DeadLetter::new("the successor says so") }
            })
            .unwrap();
        effects.line("successor").await;
        until("it is dead", async || inbox.stats().await.unwrap().dead > 0).await;
        drop(successor);

        child.signal("CONT");
        // The first worker finds that its lease is lost, is not cut off, and its success changes
        // nothing.
        effects.line("lost").await;
        std::fs::write(folder.path().join("go"), "").unwrap();
        effects.line("ended").await;
        effects.line("Unrecorded").await;
        let stats = inbox.stats().await.unwrap();
        assert_eq!((stats.dead, stats.done, stats.running), (1, 0, 0));
        let listed = inbox.list(Selection::default(), Page::first(1)).await;
        let listed = listed.unwrap();
        assert_eq!(listed[0].tries, 2);
        let error = listed[0].last_error.as_deref();
        assert_eq!(error, Some("dead_lettered: the successor says so"));
    });
}

#[test]
fn ten_thousand_jobs_are_each_done_once() {
    run(async {
        const JOBS: usize = 10_000;
        let folder = Folder::new();
        let inbox = inbox(folder.path().to_str().unwrap());
        let began = Instant::now();
        for start in (0..JOBS).step_by(500) {
            accept(&inbox, start..start + 500).await;
        }
        let accepted = began.elapsed();
        let (told, mut handled) = tokio::sync::mpsc::unbounded_channel();
        let inside = std::sync::Arc::new(tokio::sync::Semaphore::new(32));
        let running: RunningWorkers = Workers::new(&inbox)
            .concurrency(32)
            .backoff(Backoff::exponential(
                Duration::from_millis(10),
                Duration::from_millis(50),
            ))
            .start_handler(move |delivery: Delivery| {
                let (told, inside) = (told.clone(), inside.clone());
                async move {
                    let _place = inside.try_acquire().expect("more than 32 at a time");
                    tokio::task::yield_now().await;
                    let id = delivery.event_id().to_owned();
                    // Some fail the first time.
                    let again = id.ends_with("77") && told.send(format!("{id} failed")).is_ok();
                    told.send(id).unwrap();
                    if again && rarely() {
                        StatusCode::BAD_GATEWAY
                    } else {
                        StatusCode::NO_CONTENT
                    }
                }
            })
            .unwrap();
        let began = Instant::now();
        while inbox.stats().await.unwrap().done < JOBS as u64 {
            assert!(began.elapsed() < 2 * PATIENCE, "{:?}", inbox.stats().await);
            sleep(Duration::from_millis(50)).await;
        }
        let worked = began.elapsed();
        assert_eq!(running.shutdown(PATIENCE).await, 0);
        let mut counts = BTreeMap::<String, usize>::new();
        while let Ok(id) = handled.try_recv() {
            *counts.entry(id).or_default() += 1;
        }
        let done = counts.iter().filter(|(id, _)| !id.ends_with("failed"));
        let (once, more): (Vec<_>, Vec<_>) = done.partition(|(_, count)| **count == 1);
        assert_eq!(once.len() + more.len(), JOBS);
        assert!(more.iter().all(|(id, _)| id.ends_with("77")), "{more:?}");
        println!("10,000 accepted in {accepted:?}, worked off in {worked:?}");
    });
}

/// Every second time.
fn rarely() -> bool {
    use std::sync::atomic::{AtomicBool, Ordering};
    static LAST: AtomicBool = AtomicBool::new(false);
    LAST.fetch_xor(true, Ordering::SeqCst)
}
