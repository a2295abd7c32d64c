//! `--json` has one format: a script that reads one command's output can read the next one's alike.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;

use super::{Ran, SECRET, Scratch, ends, hookgate};

/// Keys of objects that are not ours and hold others' names: headers, statuses.
const OF_OTHERS: [&str; 3] = ["headers", "byStatus", "byFailure"];

/// Every key of a value, and whether it is written as all are.
fn check(command: &str, value: &Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let plain = key.starts_with(|first: char| first.is_ascii_lowercase())
                    && key.chars().all(|char| char.is_ascii_alphanumeric());
                assert!(plain, "{command}: {key} is not camelCase");
                for other in ["id", "type"] {
                    assert_ne!(key, other, "{command}: eventId and eventType are the names");
                }
                if key == "elapsedMs" {
                    let text = value.to_string();
                    let decimals = text.split_once('.').map_or(0, |(_, behind)| behind.len());
                    assert!(decimals <= 3, "{command}: {text} is finer than it is known");
                }
                if !OF_OTHERS.contains(&&**key) {
                    check(command, value);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| check(command, value)),
        _ => {}
    }
}

/// Runs a command and checks each line.
fn run(arguments: &[&str]) {
    let mut command = hookgate(arguments);
    let ran = Ran::to_its_end(command.arg("--json").env("WEBHOOK_SECRET", SECRET));
    let what = arguments.join(" ");
    assert!(matches!(ran.code, Some(0 | 1)), "{what}: {ran:?}");
    assert!(!ran.stdout.is_empty(), "{what}");
    for line in ran.stdout.lines() {
        check(&what, &serde_json::from_str(line).unwrap());
    }
}

#[test]
fn every_command_names_its_fields_alike() {
    let mut listen = hookgate(&["listen", "--json", "--addr", "127.0.0.1:0"]);
    let listen = listen.env("WEBHOOK_SECRET", SECRET).stdout(Stdio::piped());
    let mut listening = listen.spawn().unwrap();
    let mut lines = BufReader::new(listening.stdout.take().unwrap()).lines();
    let mut line = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    let first = line();
    let url = first["listening"].as_str().unwrap().to_owned();

    let mut log = String::new();
    let mut heard = || {
        let heard = line();
        check("listen", &heard);
        log += &format!("{}\n", heard["delivery"]);
    };
    run(&["send", "row.created", "--to", &url]);
    heard();
    run(&["send", "row.created", "--to", &url, "--tamper", "body"]);
    heard();
    run(&["simulate", "--to", &url, "--count=1", "--rate=100"]);
    heard();
    let log = Scratch::file("json.jsonl", log.as_bytes());
    let log = log.path();
    run(&["replay", log, "--to", &url]);
    listening.kill().unwrap();
    ends(&mut listening);

    run(&["log", "list", log]);
    run(&["log", "show", log, "2"]);
    run(&["log", "curl", log, "1"]);
    run(&["verify", "--log", log, "--line", "2"]);
    run(&["explain", "--log", log, "--line", "2"]);
    run(&["sign", "--body", log]);
    run(&["doctor", "--log", log]);
}

#[cfg(feature = "sqlite")]
#[test]
fn every_command_of_an_inbox_names_its_fields_alike() {
    let inbox = crate::inbox::filled(&["evt_1", "evt_2"]);
    let inbox = inbox.file();
    let run = |command: &str, arguments: &[&str]| {
        run(&[&["inbox", command, "--db", &inbox], arguments].concat());
    };
    run("list", &[]);
    run("show", &["1"]);
    run(
        "dead-letter",
        &["--event-id", "evt_2", "--reason", "made up"],
    );
    run("show", &["2"]);
    run("retry", &["--event-id", "evt_2"]);
    run(
        "dead-letter",
        &["--event-id", "evt_2", "--reason", "made up"],
    );
    run("purge", &["--all", "--yes"]);
    run("stats", &[]);
}
