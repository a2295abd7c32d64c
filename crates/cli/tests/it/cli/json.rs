//! `--json` has one format: a script that reads one command's output can read the next one's alike.

use serde_json::Value;
use std::io::{BufRead as _, BufReader};

use super::{Ran, Scratch, ends, typed};

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
fn run(line: &str) {
    let ran = Ran::typed(&format!("{line} --json"));
    assert!(matches!(ran.code, Some(0 | 1)), "{line}: {ran:?}");
    assert!(!ran.stdout.is_empty(), "{line}");
    for value in ran.lines() {
        check(line, &value);
    }
}

#[test]
fn every_command_names_its_fields_alike() {
    let mut listening = typed("listen --json --addr 127.0.0.1:0").spawn().unwrap();
    let mut lines = BufReader::new(listening.stdout.take().unwrap()).lines();
    let mut line = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    let first = line();
    let url = first["listening"].as_str().unwrap();
    let mut log = String::new();
    for sends in [
        "send row.created",
        "send row.created --tamper body",
        "simulate --count=1 --rate=100",
    ] {
        run(&format!("{sends} --to {url}"));
        let heard = line();
        check("listen", &heard);
        log += &format!("{}\n", heard["delivery"]);
    }
    let log = Scratch::file("json.jsonl", log.as_bytes());
    let log = log.path();
    run(&format!("replay {log} --to {url}"));
    listening.kill().unwrap();
    ends(&mut listening);

    for looks in [
        "log list LOG",
        "log show LOG 2",
        "log curl LOG 1",
        "verify --log LOG --line 2",
        "explain --log LOG --line 2",
        "sign --body LOG",
        "doctor --log LOG",
    ] {
        run(&looks.replace("LOG", log));
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn every_command_of_an_inbox_names_its_fields_alike() {
    let inbox = crate::inbox::filled(&["evt_1", "evt_2"]);
    let inbox = inbox.file();
    for line in [
        "list",
        "show 1",
        "dead-letter --event-id evt_2 --reason made~up",
        "show 2",
        "retry --event-id evt_2",
        "dead-letter --event-id evt_2 --reason made~up",
        "purge --all --yes",
        "stats",
    ] {
        run(&format!("inbox {line} --db {inbox}"));
    }
}
