//! strace shows which files are flushed, and when.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use hookgate::{
    DedupeStore,
    dedupe::{ClaimToken, Claimed, EventKey, Ownership},
    sink::{Accepted, Sink},
};
use hookgate_sqlite::{InboxOptions, SqliteStore, open_inbox};
use hookgate_testing::Signer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{RETAIN, app, body, delivery, receiver, secret, write, written};
use crate::support::{Child, Folder, given, needed, program};

const DELIVERIES: usize = 8;
const PRODUCERS: usize = 32;
const EACH: usize = 8;

fn strace(folder: &Path, test: &str, given: &str) -> Option<Child> {
    program("strace", &[])?;
    let trace = folder.join("trace");
    let calls = "trace=fsync,fdatasync,write,writev,sendto,sendmsg";
    let strace = format!(
        "strace -f -qq -y -s 32 -e {calls} -e signal=none -o {}",
        trace.display()
    );
    let strace: Vec<_> = strace.split(' ').collect();
    Some(Child::start_under(&strace, &[], test, given))
}

/// In the order in which they ended.
fn calls(folder: &Path) -> Vec<String> {
    let trace = fs::read_to_string(folder.join("trace")).unwrap();
    trace.lines().map(str::to_owned).collect()
}

/// The end of a flush of the log: in one line, or resumed after another thread's call.
fn flushes(calls: &[String]) -> impl Iterator<Item = usize> {
    let mut waiting: Vec<&str> = Vec::new();
    let mut ends = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        let thread = call.split(' ').next().unwrap();
        let is_flush = call.contains(" fdatasync(") || call.contains(" fsync(");
        let of_log = call.contains("inbox.db-wal>");
        if is_flush && of_log && call.contains("<unfinished") {
            waiting.push(thread);
        } else if is_flush && of_log && call.ends_with("= 0") {
            ends.push(at);
        } else if call.contains("sync resumed>")
            && call.ends_with("= 0")
            && let Some(index) = waiting.iter().position(|&other| other == thread)
        {
            waiting.remove(index);
            ends.push(at);
        }
    }
    ends.into_iter()
}

// fault Q1: commits are not flushed, on one of several connections
// fault Q2: the answer goes before the commit
#[tokio::test]
async fn the_log_is_flushed_before_the_answer_is_written() {
    if let Some(folder) = given() {
        return serve(Path::new(&folder)).await;
    }
    let folder = Folder::new();
    let test = "durable::the_log_is_flushed_before_the_answer_is_written";
    let given = folder.path().to_str().unwrap();
    let mut child = needed!(strace(folder.path(), test, given));
    let address = written(folder.path().join("address")).await;
    for number in 0..DELIVERIES {
        let body = body(&format!("evt_{number}"));
        let mut request = "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n".to_owned();
        for (name, value) in Signer::new(secret()).headers(&body) {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("content-length: {}\r\n\r\n{body}", body.len());
        let mut stream = TcpStream::connect(address.trim()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
    }
    write(folder.path().join("stop"), "\n");
    assert!(child.wait().success());

    let calls = calls(folder.path());
    let flushes: Vec<_> = flushes(&calls).collect();
    let is_answer = |call: &str| call.contains("\"HTTP/1.1 20");
    let answers: Vec<_> = (0..calls.len())
        .filter(|&at| is_answer(&calls[at]))
        .collect();
    assert_eq!(answers.len(), DELIVERIES, "{calls:#?}");
    let mut before = 0;
    for answer in answers {
        let mut flushes = flushes.iter();
        let flushed = flushes.any(|&flush| before < flush && flush < answer);
        assert!(flushed, "none between {before} and {answer}: {calls:#?}");
        before = answer;
    }
}

async fn serve(folder: &Path) {
    let inbox = open_inbox(folder.join("inbox.db")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = app(&inbox);
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    write(folder.join("address"), &format!("{address}\n"));
    written(folder.join("stop")).await;
    server.abort();
}

/// Counted and not timed: the duration of a flush depends on the disk, and on the moment.
#[tokio::test]
async fn concurrent_accepts_share_a_flush() {
    if let Some(given) = given() {
        let (folder, group) = given.split_once('\n').unwrap();
        return burst(Path::new(folder), group.parse().unwrap()).await;
    }
    let test = "durable::concurrent_accepts_share_a_flush";
    let mut counts = Vec::new();
    for group in ["1", "256"] {
        let folder = Folder::new();
        let given = format!("{}\n{group}", folder.path().display());
        let mut child = needed!(strace(folder.path(), test, &given));
        assert!(child.wait().success());
        counts.push(flushes(&calls(folder.path())).count());
    }
    let (alone, together) = (counts[0], counts[1]);
    assert!(alone >= PRODUCERS * EACH, "{counts:?}");
    // Each producer waits for its answer, so that there are as many rounds as each has deliveries,
    // at least.
    assert!(together >= EACH, "{counts:?}");
    assert!(together * 5 <= alone, "{counts:?}");
}

async fn burst(folder: &Path, group: usize) {
    let options = InboxOptions::default().max_group(group);
    let inbox = options.open(folder.join("inbox.db")).unwrap();
    let receiver = Arc::new(receiver());
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let (inbox, receiver) = (inbox.clone(), Arc::clone(&receiver));
            tokio::spawn(async move {
                for number in 0..EACH {
                    let delivery = delivery(&receiver, &format!("evt_{producer}_{number}"));
                    let accepted = inbox.accept(&delivery, RETAIN).await.unwrap();
                    assert_eq!(accepted, Accepted::New);
                }
            })
        })
        .collect();
    for producer in producers {
        producer.await.unwrap();
    }
}

/// A claim and a commit each wait for a flush, which those that come together share; a duplicate
/// waits for none.
#[tokio::test]
async fn concurrent_claims_share_a_flush() {
    if let Some(given) = given() {
        let (folder, calls) = given.split_once('\n').unwrap();
        return claims(Path::new(folder), calls).await;
    }
    let test = "durable::concurrent_claims_share_a_flush";
    let mut counts = Vec::new();
    for calls_in_child in ["one by one", "together", "duplicates"] {
        let folder = Folder::new();
        let given = format!("{}\n{calls_in_child}", folder.path().display());
        let mut child = needed!(strace(folder.path(), test, &given));
        assert!(child.wait().success());
        counts.push(flushes(&calls(folder.path())).count());
    }
    let both = 2 * PRODUCERS * EACH;
    assert!(counts[0] >= both, "{counts:?}");
    assert!(counts[1] * 5 <= both, "{counts:?}");
    assert!(counts[2] < 20, "{counts:?}");
}

async fn claims(folder: &Path, calls: &str) {
    const HOUR: std::time::Duration = std::time::Duration::from_secs(3_600);
    let store = SqliteStore::open(folder.join("inbox.db")).unwrap();
    let finish = async |store: &SqliteStore, id: &str| {
        let (key, token) = (EventKey::new("default", id), ClaimToken::new(b"{}"));
        match store.claim(&key, token, HOUR).await.unwrap() {
            Claimed::Fresh => {
                let held = store.commit(&key, token, RETAIN).await.unwrap();
                assert_eq!(held, Ownership::Held);
            }
            claimed => assert!(matches!(claimed, Claimed::Done { .. })),
        }
    };
    let one_by_one = async |producer: usize, store: &SqliteStore| {
        for number in 0..EACH {
            finish(store, &format!("evt_{producer}_{number}")).await;
        }
    };
    match calls {
        "duplicates" => {
            for _ in 0..PRODUCERS * EACH {
                finish(&store, "evt_1").await;
            }
        }
        "together" => {
            let producers = (0..PRODUCERS).map(|producer| one_by_one(producer, &store));
            futures(producers).await;
        }
        _ => {
            for producer in 0..PRODUCERS {
                one_by_one(producer, &store).await;
            }
        }
    }
}

/// Runs all of them at the same time, in this task.
async fn futures<F: Future<Output = ()>>(all: impl Iterator<Item = F>) {
    let mut all: Vec<_> = all.map(|future| Some(Box::pin(future))).collect();
    std::future::poll_fn(|context| {
        for slot in &mut all {
            if let Some(future) = slot
                && future.as_mut().poll(context).is_ready()
            {
                *slot = None;
            }
        }
        match all.iter().all(Option::is_none) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
}
