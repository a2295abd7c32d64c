//! `hookgate simulate`, run as a user runs it, against receivers in processes of their own.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::cli::{Folder, Ran, SECRET, typed};
use crate::process::Example;
use crate::send::receiver;

/// The heads of the requests of each event.
type Seen = BTreeMap<String, Vec<String>>;

/// A server that answers each request of an event by a script: from the number of the request,
/// counted from 1.
struct Answering {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

impl Answering {
    fn start(script: impl Fn(usize) -> u16 + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Seen>> = Arc::default();
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
                let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n");
                let answer = head + "content-length: 0\r\n\r\n";
                let _ = stream.get_mut().write_all(answer.as_bytes());
            }
        });
        Self { address, seen }
    }

    fn url(&self) -> String {
        format!("http://{}/hooks", self.address)
    }

    fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }
}

fn header<'h>(head: &'h str, name: &str) -> &'h str {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    let found = lines.find(|(other, _)| *other == name);
    found.map_or("", |(_, value)| value)
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

fn simulate(url: &str, options: &str) -> Ran {
    Ran::typed(&format!("simulate --to {url} --rate=1000 {options}"))
}

/// The attempts, and the summary.
fn attempts(ran: &Ran) -> (Vec<Value>, Value) {
    let mut lines = ran.lines();
    let summary = lines.pop().unwrap();
    assert_eq!(summary["kind"], "summary", "{ran:?}");
    assert!(
        lines.iter().all(|line| line["kind"] == "attempt"),
        "{ran:?}"
    );
    (lines, summary)
}

#[test]
fn a_stream_of_rows_is_delivered_and_summed_up() {
    let (example, url) = conformance();
    let ran = simulate(&url, "--count=40 --seed=7").ends(0);
    assert_eq!(handled(&example), 40);
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 40 + 3, "{ran:?}");
    ran.says(&[
        " evt_7_1 row.created: 204 in ",
        "row.updated",
        "row.deleted",
    ]);
    ran.says(&["\n40 events: 40 delivered, 0 discarded, 0 under way; 40 attempts\n"]);
    assert!(
        lines[42].ends_with("the same events again: --seed 7"),
        "{ran:?}"
    );

    // The same events again: nothing of them is handled twice.
    let ran = simulate(&url, "--count=40 --seed=7 --json").ends(0);
    let (lines, summary) = attempts(&ran);
    for line in &lines {
        assert_eq!(
            json!([line["replayed"], line["status"]]),
            json!([true, 200])
        );
    }
    assert_eq!(
        json!([summary["events"], summary["delivered"]]),
        json!([40, 40])
    );
    assert_eq!(handled(&example), 40);
}

#[test]
fn a_receiver_that_always_fails_gets_every_attempt_and_the_exit_code_says_so() {
    for count in [5, 6] {
        let server = Answering::start(|_| 503);
        let options = format!("--count=3 --speed=100000 --seed=1 --attempts={count} --json");
        let ran = simulate(&server.url(), &options).ends(1);
        let (lines, summary) = attempts(&ran);
        let seen = server.seen();
        assert_eq!(seen.len(), 3);
        assert!(seen.values().all(|requests| requests.len() == count));
        assert_eq!(summary["discarded"].as_array().unwrap().len(), 3);
        assert_eq!(summary["attempts"], 3 * count);
        let of_one = lines.iter().filter(|line| line["eventId"] == "evt_1_1");
        let of_one: Vec<_> = of_one
            .map(|line| json!([line["attempt"], line["disposition"]]))
            .collect();
        let fate = |attempt| {
            if attempt == count {
                "discarded"
            } else {
                "under_way"
            }
        };
        let expected: Vec<_> = (1..=count)
            .map(|attempt| json!([attempt, fate(attempt)]))
            .collect();
        assert_eq!(of_one, expected);
    }
}

#[test]
fn failures_are_followed_through_their_retries() {
    let server = Answering::start(|number| if number < 3 { 500 } else { 204 });
    let ran = simulate(&server.url(), "--count=2 --speed=1000").ends(0);
    for line in [
        "attempt 1 of 5, again in 60 ms",
        "attempt 2 of 5, again in 300 ms",
        "delivered at attempt 3",
    ] {
        assert_eq!(ran.stdout.matches(line).count(), 2, "{line}: {ran:?}");
    }
    ran.says(&["2 events: 2 delivered, 0 discarded, 0 under way; 6 attempts"]);
    let head = &server.seen().into_values().next().unwrap()[0];
    assert!(head.starts_with("POST /hooks HTTP/1.1\r\n"), "{head}");
    assert_eq!(header(head, "user-agent"), "Service-Webhook/1.0");
    assert_eq!(header(head, "x-service-webhook-id"), "wh_1");
}

#[test]
fn retries_can_carry_their_first_timestamp() {
    let signatures = |option: &str| {
        let server = Answering::start(|_| 500);
        let always = "--count=1 --speed=4000 --subscription=wh_x";
        simulate(&server.url(), &format!("{always} {option}"));
        let requests = server.seen().into_values().next().unwrap();
        assert_eq!(requests.len(), 5);
        assert_eq!(header(&requests[0], "x-service-webhook-id"), "wh_x");
        let signatures = requests
            .iter()
            .map(|head| header(head, "x-service-signature"));
        signatures.collect::<HashSet<_>>().len()
    };
    // Five attempts take 2.3 s at this speed.
    assert_eq!(signatures("--first-timestamp"), 1);
    assert!(signatures("") > 1);
}

#[test]
fn a_network_that_fails_by_percent_loses_nothing_at_the_receiver() {
    let (example, url) = conformance();
    let faults = "--duplicated=30 --answers-lost=20% --refused=10";
    let ran = simulate(
        &url,
        &format!("--count=60 --speed=10000 {faults} --seed=4 --json"),
    );
    let (lines, summary) = attempts(&ran);
    let faults: HashSet<_> = lines
        .iter()
        .filter_map(|line| line["fault"].as_str())
        .collect();
    assert_eq!(
        faults,
        HashSet::from(["connection refused", "answer lost", "delivered twice"])
    );
    let discarded = summary["discarded"].as_array().unwrap().len() as u64;
    assert_eq!(ran.code, Some(i32::from(discarded > 0)));
    assert!(lines.iter().any(|line| line["replayed"] == true));
    let handled = handled(&example);
    assert!(
        handled <= 60 && handled + discarded >= 60,
        "{handled} {discarded}"
    );
}

#[test]
fn a_receiver_of_one_data_model_is_sent_its_rows_alone() {
    let (mut example, url) = receiver();
    let ran = simulate(&url, "--count=30 --data-model=dm_orders").ends(0);
    assert!(example.line_with("ordered for").contains("row.created: "));
    ran.says(&["30 events: 30 delivered"]);
}

#[test]
fn the_events_of_files_are_delivered_byte_for_byte_once_each() {
    let receiver = Answering::start(|number| if number == 1 { 503 } else { 204 });
    let folder = Folder::new();
    let text = r#"{"id": "evt_a",  "type":"page.created","data":{"n":12.50}}"#;
    let first = folder.file("first.json", text);
    let second = r#"{"id":"evt_b","type":"row.deleted","data":{}}"#;
    let second = folder.file("second.json", second);
    let files = format!("--body-file {first} --body-file {second}");
    let ran = simulate(&receiver.url(), &format!("{files} --speed=1000000 --json")).ends(0);
    let (lines, summary) = attempts(&ran);
    assert_eq!(
        json!([summary["events"], summary["delivered"]]),
        json!([2, 2])
    );
    assert_eq!(lines.len(), 4);
    let seen = receiver.seen();
    assert_eq!(seen.keys().collect::<Vec<_>>(), ["evt_a", "evt_b"]);
    let length = header(&seen["evt_a"][0], "content-length");
    assert_eq!(length, text.len().to_string());
    // Its event is of no seed.
    let ran = simulate(&receiver.url(), &format!("--body-file {second}"));
    ran.says(&["1 delivered"]).lacks(&["--seed"]);
    let sent = receiver.seen();
    let two = "{\"id\":\"e\",\"type\":\"t\"}\n{\"id\":\"f\",\"type\":\"t\"}\n";
    let marked = "\u{feff}{\"id\":\"e\",\"type\":\"t\"}";
    let more = "holds more than one event, or a broken one: trailing characters at line 2";
    for (text, said) in [
        ("[]", "holds no event"),
        ("{", "holds no event"),
        (marked, "holds no event: it begins with a byte order mark"),
        (two, more),
    ] {
        let bad = folder.file("bad.json", text);
        let files = format!("--body-file {second} --body-file {bad}");
        let ran = simulate(&receiver.url(), &files).ends(3);
        ran.tells(&[said]).prints_nothing();
    }
    assert_eq!(
        receiver.seen(),
        sent,
        "nothing is sent where a file is refused"
    );
    let ran = simulate(&receiver.url(), "--body-file none.json");
    ran.tells(&["the body in none.json can't be read"]);
}

#[test]
fn it_stops_after_its_time() {
    let (example, url) = conformance();
    Ran::typed(&format!("simulate --to {url} --rate=20 --duration=1s")).ends(0);
    let handled = handled(&example);
    assert!((10..=21).contains(&handled), "{handled}");
    // However rare its events are.
    let ran = Ran::typed(&format!(
        "simulate --to {url} --rate=0.0001 --duration=500ms"
    ));
    ran.says(&["1 events: 1 delivered"]);
}

#[test]
fn an_unreachable_receiver_is_retried_like_one_that_fails() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let ran = simulate(&url, "--count=1 --speed=100000").ends(1);
    let refused = ran.stdout.to_lowercase().contains("connection refused");
    assert!(refused, "{ran:?}");
    ran.says(&["DISCARDED after attempt 5", "\ndiscarded: evt_"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_with_what_is_known_so_far_and_130() {
    let text = "1 events: 0 delivered, 0 discarded, 1 under way";
    let stays = "what is under way stays undelivered";
    for (json, waits, says) in [
        ("", "again in 1 min", [text, stays]),
        (
            "--json",
            "\"nextWaitMs\":60000",
            ["\"underWay\":[\"evt_", ""],
        ),
    ] {
        let server = Answering::start(|number| if number == 1 { 500 } else { 204 });
        let line = format!("simulate --to {} --count=1 {json}", server.url());
        let mut child = typed(&line).spawn().unwrap();
        let mut first = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut first).unwrap();
        assert!(first.contains(waits), "{first}");
        crate::process::signal(&child, "INT");
        crate::cli::has(&std::io::read_to_string(output).unwrap(), &says);
        Ran::with(child.wait_with_output().unwrap())
            .ends(130)
            .warns_of_nothing();
    }
}

#[test]
fn a_closed_pipe_ends_it_without_an_error() {
    let (_example, url) = conformance();
    let line = format!("simulate --to {url} --rate=100 --duration=1h");
    let mut child = typed(&line).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut String::new()).unwrap();
    drop(output);
    Ran::with(child.wait_with_output().unwrap())
        .ends(0)
        .warns_of_nothing();
}
