//! strace shows which files are flushed, and when.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use hookgate::{Accepted, Inbox, InboxOptions, Sink};
use hookgate_testing::Signer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{RETAIN, app, body, delivery, receiver, secret, write, written};
use crate::support::{Child, Folder, given, program};

const DELIVERIES: usize = 8;
const PRODUCERS: usize = 32;
const EACH: usize = 8;

fn strace(folder: &Path, test: &str, given: &str) -> Option<Child> {
    program("strace", &[])?;
    let trace = folder.join("trace");
    let calls = "trace=fsync,fdatasync,write,writev,sendto,sendmsg";
    let strace = [
        "strace",
        "-f",
        "-qq",
        "-y",
        "-s",
        "32",
        "-e",
        calls,
        "-e",
        "signal=none",
        "-o",
        trace.to_str().unwrap(),
    ];
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

#[tokio::test]
async fn the_log_is_flushed_before_the_answer_is_written() {
    if let Some(folder) = given() {
        return serve(Path::new(&folder)).await;
    }
    let folder = Folder::new();
    let test = "sqlite::durable::the_log_is_flushed_before_the_answer_is_written";
    let given = folder.path().to_str().unwrap();
    let Some(mut child) = strace(folder.path(), test, given) else {
        return;
    };
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
        let flushed = flushes
            .iter()
            .any(|&flush| before < flush && flush < answer);
        assert!(
            flushed,
            "no flush between {before} and {answer}: {calls:#?}"
        );
        before = answer;
    }
}

async fn serve(folder: &Path) {
    let inbox = Inbox::open(folder.join("inbox.db")).unwrap();
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
async fn those_who_come_together_share_a_flush() {
    if let Some(given) = given() {
        let (folder, group) = given.split_once('\n').unwrap();
        return burst(Path::new(folder), group.parse().unwrap()).await;
    }
    let test = "sqlite::durable::those_who_come_together_share_a_flush";
    let mut counts = Vec::new();
    for group in ["1", "256"] {
        let folder = Folder::new();
        let given = format!("{}\n{group}", folder.path().display());
        let Some(mut child) = strace(folder.path(), test, &given) else {
            return;
        };
        assert!(child.wait().success());
        counts.push(flushes(&calls(folder.path())).count());
    }
    let (alone, together) = (counts[0], counts[1]);
    assert!(alone >= PRODUCERS * EACH, "{counts:?}");
    // Each producer waits for its answer, so that there are as many rounds as each has deliveries, at least.
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
