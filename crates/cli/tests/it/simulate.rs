//! `hookgate simulate`, run as a user runs it, against receivers in processes of their own.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Output;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::process::Example;
use crate::send::{SECRET, hookgate, stderr, stdout};

/// A server that answers each request of an event by a script: from the number of the request, counted from 1.
struct Answering {
    address: SocketAddr,
    seen: Arc<Mutex<BTreeMap<String, Vec<String>>>>,
}

impl Answering {
    fn start(script: impl Fn(usize) -> u16 + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<BTreeMap<String, Vec<String>>>> = Arc::default();
        let told = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let (mut head, mut length) = (String::new(), 0);
                while !head.ends_with("\r\n\r\n") {
                    let mut line = String::new();
                    if stream.read_line(&mut line).unwrap_or_default() == 0 {
                        break;
                    }
                    if let Some(value) = line.strip_prefix("content-length: ") {
                        length = value.trim().parse().unwrap();
                    }
                    head += &line;
                }
                let mut body = vec![0; length];
                let _ = stream.read_exact(&mut body);
                let id = header(&head, "x-service-event-id").to_owned();
                let number = {
                    let mut seen = told.lock().unwrap();
                    let requests = seen.entry(id).or_default();
                    requests.push(head);
                    requests.len()
                };
                let status = script(number);
                let answer = format!(
                    "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
                );
                let _ = stream.get_mut().write_all(answer.as_bytes());
            }
        });
        Self { address, seen }
    }

    fn url(&self) -> String {
        format!("http://{}/hooks", self.address)
    }

    fn seen(&self) -> BTreeMap<String, Vec<String>> {
        self.seen.lock().unwrap().clone()
    }
}

fn header<'h>(head: &'h str, name: &str) -> &'h str {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines
        .find(|(other, _)| *other == name)
        .map_or("", |(_, value)| value)
}

fn conformance() -> (Example, String) {
    let example = Example::start("conformance", &[("SECRET", SECRET)]);
    let url = format!("http://{}/webhooks", example.address);
    (example, url)
}

fn handled(example: &Example) -> u64 {
    let value: Value = serde_json::from_str(&example.get("/count").body).unwrap();
    value["total"].as_u64().unwrap()
}

fn simulate(url: &str, arguments: &[&str]) -> Output {
    let always = ["simulate", "--to", url, "--rate=1000"];
    hookgate(&[&always, arguments].concat()).output().unwrap()
}

fn json(output: &Output) -> (Vec<Value>, Value) {
    let text = stdout(output);
    let mut lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let summary = lines.pop().unwrap();
    assert_eq!(summary["kind"], "summary", "{text}");
    assert!(lines.iter().all(|line| line["kind"] == "attempt"), "{text}");
    (lines, summary)
}

#[test]
fn a_stream_of_rows_is_delivered_and_summed_up() {
    let (example, url) = conformance();
    let output = simulate(&url, &["--count=40", "--seed=7"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    assert_eq!(handled(&example), 40);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 40 + 3, "{text}");
    assert!(text.contains(" evt_7_1 row.created: 204 in "), "{text}");
    for event_type in ["row.created", "row.updated", "row.deleted"] {
        assert!(text.contains(event_type), "{text}");
    }
    assert!(text.contains("\n40 events: 40 delivered, 0 discarded, 0 under way; 40 attempts\n"));
    assert!(
        lines[42].ends_with("the same events again: --seed 7"),
        "{text}"
    );

    // The same events again: nothing of them is handled twice.
    let output = simulate(&url, &["--count=40", "--seed=7", "--json"]);
    let (lines, summary) = json(&output);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        lines
            .iter()
            .all(|line| line["replayed"] == true && line["status"] == 200)
    );
    assert_eq!(
        (&summary["events"], &summary["delivered"]),
        (&40.into(), &40.into())
    );
    assert_eq!(handled(&example), 40);
}

#[test]
fn a_receiver_that_always_fails_gets_every_attempt_and_the_exit_code_says_so() {
    for (attempts, arguments) in [
        (5, ["--attempts=5", "--json"]),
        (6, ["--attempts=6", "--json"]),
    ] {
        let server = Answering::start(|_| 503);
        let output = simulate(
            &server.url(),
            &[
                &["--count=3", "--speed=100000", "--seed=1"],
                arguments.as_slice(),
            ]
            .concat(),
        );
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let (lines, summary) = json(&output);
        let seen = server.seen();
        assert_eq!(seen.len(), 3);
        assert!(seen.values().all(|requests| requests.len() == attempts));
        assert_eq!(summary["discarded"].as_array().unwrap().len(), 3);
        assert_eq!(summary["attempts"], 3 * attempts);
        let of_one: Vec<_> = lines
            .iter()
            .filter(|line| line["eventId"] == "evt_1_1")
            .collect();
        let numbers: Vec<_> = of_one
            .iter()
            .map(|line| line["attempt"].as_u64().unwrap())
            .collect();
        assert!(
            numbers.iter().copied().eq(1..=attempts as u64),
            "{numbers:?}"
        );
        let fates: Vec<_> = of_one
            .iter()
            .map(|line| line["disposition"].as_str().unwrap())
            .collect();
        assert_eq!(fates[..attempts - 1], vec!["under_way"; attempts - 1]);
        assert_eq!(fates[attempts - 1], "discarded");
    }
}

#[test]
fn failures_are_followed_through_their_retries() {
    let server = Answering::start(|number| if number < 3 { 500 } else { 204 });
    let output = simulate(&server.url(), &["--count=2", "--speed=1000"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(
        text.matches("attempt 1 of 5, again in 60 ms").count(),
        2,
        "{text}"
    );
    assert_eq!(
        text.matches("attempt 2 of 5, again in 300 ms").count(),
        2,
        "{text}"
    );
    assert_eq!(text.matches("delivered at attempt 3").count(), 2, "{text}");
    assert!(
        text.contains("2 events: 2 delivered, 0 discarded, 0 under way; 6 attempts"),
        "{text}"
    );
    let head = &server.seen().into_values().next().unwrap()[0];
    assert!(head.starts_with("POST /hooks HTTP/1.1\r\n"), "{head}");
    assert_eq!(header(head, "user-agent"), "Service-Webhook/1.0");
    assert_eq!(header(head, "x-service-webhook-id"), "wh_1");
}

#[test]
fn retries_can_carry_their_first_timestamp() {
    let signatures = |arguments: &[&str]| {
        let server = Answering::start(|_| 500);
        let always = ["--count=1", "--speed=4000", "--subscription=wh_x"];
        simulate(&server.url(), &[&always, arguments].concat());
        let requests = server.seen().into_values().next().unwrap();
        assert_eq!(requests.len(), 5);
        assert_eq!(header(&requests[0], "x-service-webhook-id"), "wh_x");
        let signatures = requests
            .iter()
            .map(|head| header(head, "x-service-signature").to_owned());
        signatures.collect::<HashSet<_>>().len()
    };
    // Five attempts take 2.3 s at this speed.
    assert_eq!(signatures(&["--first-timestamp"]), 1);
    assert!(signatures(&[]) > 1);
}

#[test]
fn a_network_that_fails_by_percent_loses_nothing_at_the_receiver() {
    let (example, url) = conformance();
    let arguments = [
        "--count=60",
        "--speed=10000",
        "--duplicated=30",
        "--answers-lost=20%",
        "--refused=10",
    ];
    let output = simulate(&url, &[&arguments[..], &["--seed=4", "--json"]].concat());
    let (lines, summary) = json(&output);
    let faults: HashSet<_> = lines
        .iter()
        .filter_map(|line| line["fault"].as_str())
        .collect();
    assert_eq!(
        faults,
        HashSet::from(["connection refused", "answer lost", "delivered twice"])
    );
    let discarded = summary["discarded"].as_array().unwrap().len();
    assert_eq!(output.status.code(), Some(i32::from(discarded > 0)));
    assert!(lines.iter().any(|line| line["replayed"] == true));
    let handled = handled(&example);
    assert!(
        handled <= 60 && handled + discarded as u64 >= 60,
        "{handled} {discarded}"
    );
}

#[test]
fn a_receiver_of_one_data_model_is_sent_its_rows_alone() {
    let mut example = Example::start_with("receiver", &["--try"], &[]);
    let url = format!("http://{}/webhooks", example.address);
    let output = simulate(&url, &["--count=30", "--data-model=dm_orders"]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(example.line_with("ordered for").contains("row.created: "));
    assert!(stdout(&output).contains("30 events: 30 delivered"));
}

#[test]
fn the_events_of_files_are_delivered_byte_for_byte_once_each() {
    let receiver = Answering::start(|number| if number == 1 { 503 } else { 204 });
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = |name: &str, text: &str| {
        let path = folder.join(format!("simulate-{name}-{}.json", std::process::id()));
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let first = file(
        "first",
        r#"{"id": "evt_a",  "type":"page.created","data":{"n":12.50}}"#,
    );
    let second = file("second", r#"{"id":"evt_b","type":"row.deleted","data":{}}"#);
    let arguments = [
        "--body-file",
        &first,
        "--body-file",
        &second,
        "--speed=1000000",
        "--json",
    ];
    let output = simulate(&receiver.url(), &arguments);
    let (lines, summary) = json(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(
        (&summary["events"], &summary["delivered"]),
        (&2.into(), &2.into())
    );
    assert_eq!(lines.len(), 4);
    let seen = receiver.seen();
    assert_eq!(seen.keys().collect::<Vec<_>>(), ["evt_a", "evt_b"]);
    let length = std::fs::metadata(&first).unwrap().len();
    assert_eq!(
        header(&seen["evt_a"][0], "content-length"),
        length.to_string()
    );
    let output = simulate(&receiver.url(), &["--body-file", &second]);
    let said = stdout(&output);
    assert!(
        said.contains("1 delivered") && !said.contains("--seed"),
        "its event is of no seed: {said}"
    );
    let sent = receiver.seen();
    for (text, said) in [
        ("[]", "holds no event"),
        ("{", "holds no event"),
        (
            "\u{feff}{\"id\":\"e\",\"type\":\"t\"}",
            "holds no event: it begins with a byte order mark",
        ),
        (
            "{\"id\":\"e\",\"type\":\"t\"}\n{\"id\":\"f\",\"type\":\"t\"}\n",
            "holds more than one event, or a broken one: trailing characters at line 2",
        ),
    ] {
        let bad = file("bad", text);
        let output = simulate(
            &receiver.url(),
            &["--body-file", &second, "--body-file", &bad],
        );
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
    assert_eq!(
        receiver.seen(),
        sent,
        "nothing is sent where a file is refused"
    );
    let output = simulate(&receiver.url(), &["--body-file", "none.json"]);
    assert!(stderr(&output).contains("the body in none.json can't be read"));
}

#[test]
fn it_stops_after_its_time() {
    let (example, url) = conformance();
    let output = hookgate(&["simulate", "--to", &url, "--rate=20", "--duration=1s"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        (10..=21).contains(&handled(&example)),
        "{}",
        handled(&example)
    );
    // However rare its events are.
    let output = hookgate(&[
        "simulate",
        "--to",
        &url,
        "--rate=0.0001",
        "--duration=500ms",
    ])
    .output()
    .unwrap();
    assert!(
        stdout(&output).contains("1 events: 1 delivered"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn an_unreachable_receiver_is_retried_like_one_that_fails() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let output = simulate(&url, &["--count=1", "--speed=100000"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.to_lowercase().contains("connection refused"), "{text}");
    assert!(
        text.contains("DISCARDED after attempt 5") && text.contains("\ndiscarded: evt_"),
        "{text}"
    );
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_with_what_is_known_so_far_and_130() {
    for json in [false, true] {
        let server = Answering::start(|number| if number == 1 { 500 } else { 204 });
        let url = server.url();
        let mut arguments = vec!["simulate", "--to", &url, "--count=1"];
        arguments.extend(json.then_some("--json"));
        let mut child = hookgate(&arguments).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        assert!(
            first.contains(if json {
                "\"nextWaitMs\":60000"
            } else {
                "again in 1 min"
            }),
            "{first}"
        );
        crate::process::signal(&child, "INT");
        let rest: Vec<_> = lines.map(Result::unwrap).collect();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        let rest = rest.join("\n");
        let says = if json {
            "\"underWay\":[\"evt_"
        } else {
            "1 events: 0 delivered, 0 discarded, 1 under way"
        };
        assert!(rest.contains(says), "{rest}");
        assert!(
            json || rest.contains("what is under way stays undelivered"),
            "{rest}"
        );
        let mut said = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert_eq!(said, "");
    }
}

#[test]
fn a_closed_pipe_ends_it_without_an_error() {
    let (_example, url) = conformance();
    let mut child = hookgate(&["simulate", "--to", &url, "--rate=100", "--duration=1h"])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    drop(lines);
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
}
