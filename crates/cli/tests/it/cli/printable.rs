//! Text from others never reaches a terminal unescaped, and text that was typed in the wrong place is not repeated.

use std::fs;

use hookgate::clock::UnixSeconds;
use hookgate_record::{LoggedAnswer, LoggedDelivery};

use super::{Ran, SECRET, Scratch, hookgate};
use crate::terminal::Terminal;

/// Sets a title, in both ways that terminals know, clears the screen, and turns the direction of writing.
const HOSTILE: &str = "x\u{1b}]0;owned\u{7}\u{9b}2J\u{1b}[31m\u{202e}\u{7f}y";

fn is_printable(ran: &Ran) {
    let all = format!("{}{}", ran.stdout, ran.stderr);
    let acts = |char: char| (char.is_control() && char != '\n') || char == '\u{202e}';
    assert!(!all.contains(acts), "{ran:?}");
}

/// A log with one delivery that is hostile in every field.
fn log(name: &str) -> Scratch {
    let body = serde_json::json!({ "id": HOSTILE, "type": HOSTILE, "data": { HOSTILE: HOSTILE } });
    let headers = [
        ("x-service-event-id", HOSTILE),
        ("x-service-timestamp", HOSTILE),
        ("x-service-signature", HOSTILE),
    ];
    let at = UnixSeconds::new(1_763_690_000);
    let mut delivery = LoggedDelivery::new(at, headers, format!("{body}{HOSTILE}"));
    delivery.target = HOSTILE.into();
    delivery.method = HOSTILE.into();
    let mut answer = LoggedAnswer::new(500, HOSTILE);
    answer.reason = Some(HOSTILE.into());
    answer.key = Some(HOSTILE.into());
    delivery.answer = Some(answer);
    Scratch::file(name, format!("{}\n", delivery.to_line()).as_bytes())
}

#[test]
fn no_command_prints_what_a_terminal_acts_on() {
    let log = log("hostile.jsonl");
    let path = log.0.to_str().unwrap();
    let nowhere = format!("/nowhere/{HOSTILE}");
    let commands: &[&[&str]] = &[
        &["log", "list", path],
        &["log", "show", path, "1"],
        &["log", "curl", path, "1"],
        &["log", "show", path, HOSTILE],
        &["log", "list", &nowhere],
        &["log", "import", &nowhere],
        &["verify", "--log", path],
        &["verify", "--headers", &nowhere, "--body", "/dev/null"],
        &["explain", "--log", path],
        &["explain", "--headers", &nowhere],
        &["replay", path, "--to", "http://127.0.0.1:1/", "--raw"],
        &["replay", &nowhere, "--to", "http://127.0.0.1:1/"],
        &[
            "send",
            HOSTILE,
            "--to",
            "http://127.0.0.1:1/",
            "--dry-run=curl",
        ],
        &["sign", "--body", &nowhere],
        &["sign", "--body", "/dev/null", "--secret-file", &nowhere],
        &["sign", "--body", "/dev/null", "--secret-env", HOSTILE],
        &["doctor", "--log", &nowhere],
        &["doctor", "--log", path],
        &["doctor", "--secret-env", HOSTILE],
        &["doctor", "--url", HOSTILE],
        &["listen", "--addr", HOSTILE],
        &["listen", "--forward", HOSTILE],
        &["simulate", "--to", HOSTILE],
        &[HOSTILE],
        &["doctor", "--retention", HOSTILE],
    ];
    for command in commands {
        for json in [&[][..], &["--json"]] {
            let arguments = [json, command].concat();
            let mut command = hookgate(&arguments);
            let ran = Ran::to_its_end(command.env("WEBHOOK_SECRET", SECRET));
            is_printable(&ran);
            if !json.is_empty() {
                for line in ran.stdout.lines().chain(ran.stderr.lines()) {
                    serde_json::from_str::<serde_json::Value>(line).expect(line);
                }
            }
        }
    }
}

#[test]
fn json_that_is_printable_says_the_same() {
    let log = log("same.jsonl");
    let ran = Ran::of(&["--json", "log", "show", log.0.to_str().unwrap(), "1"]);
    let line = fs::read(&log.0).unwrap();
    let [shown, recorded] = [ran.stdout.as_bytes(), &line]
        .map(|line| serde_json::from_slice::<serde_json::Value>(line).unwrap());
    assert!(shown["body"].is_string(), "{shown}");
    assert_eq!(shown["body"], recorded["body"]);
    assert_eq!(shown["headers"], recorded["headers"]);
}

/// In a pipe, the library that reads arguments removes such characters by itself.
#[test]
fn wrong_arguments_are_escaped_on_a_terminal() {
    for arguments in [
        &[HOSTILE][..],
        &["doctor", "--retention", HOSTILE],
        &["log", "list", HOSTILE],
    ] {
        let mut terminal = Terminal::start(arguments, &[], (24, 120));
        terminal.end();
        assert_eq!(terminal.heard().titles, 0, "{}", terminal.text());
        let text = terminal.text();
        let told = ["unrecognized", "invalid value", "can't be read"];
        assert!(told.iter().any(|told| text.contains(told)), "{text}");
    }
}

#[test]
fn a_raw_body_that_acts_goes_to_a_pipe_and_to_no_terminal() {
    let log = log("raw.jsonl");
    let path = log.0.to_str().unwrap();
    let mut terminal = Terminal::start(&["log", "show", path, "1", "--raw"], &[], (24, 120));
    terminal.shows(&["a terminal acts on", "| xxd"]);
    assert_eq!(terminal.end().code(), Some(3));
    assert_eq!(terminal.heard().titles, 0);
    let piped = Ran::of(&["log", "show", path, "1", "--raw"]);
    assert!(piped.stdout.contains(HOSTILE), "{piped:?}");

    let plain = Scratch::file("plain.jsonl", b"");
    let at = UnixSeconds::new(1_763_690_000);
    let delivery = LoggedDelivery::new(at, [("a", "b")], "{\"a\":\r\n\t\"Grüße\"}\n");
    fs::write(&plain.0, delivery.to_line()).unwrap();
    let path = plain.0.to_str().unwrap();
    let mut terminal = Terminal::start(&["log", "show", path, "1", "--raw"], &[], (24, 120));
    terminal.shows(&["Grüße"]);
    assert_eq!(terminal.end().code(), Some(0));
}

#[test]
fn a_secret_in_the_wrong_place_is_not_repeated() {
    for arguments in [
        &["sign", "--body", "/dev/null", "--secret-env", SECRET][..],
        &["sign", "--body", "/dev/null", "--secret-file", SECRET],
        &["doctor", "--secret-env", SECRET],
        &["explain", "--headers", "/dev/null", "--other-env", SECRET],
        &["sign", SECRET],
        &["sign", "--secret", SECRET],
        &["listen", "--addr", SECRET],
        &[SECRET],
    ] {
        for json in [&[][..], &["--json"]] {
            let ran = Ran::of(&[json, arguments].concat());
            assert_ne!(ran.code, Some(0), "{ran:?}");
            assert!(!format!("{ran:?}").contains("made_up_for"), "{ran:?}");
        }
    }
}

#[test]
fn a_password_in_a_url_is_refused_by_every_command_and_not_repeated() {
    let url = "http://me:hunter2@127.0.0.1:1/";
    for arguments in [
        &["send", "row.created", "--to", url][..],
        &["simulate", "--to", url],
        &["replay", "/dev/null", "--to", url],
        &["listen", "--forward", url],
        &["doctor", "--url", url],
    ] {
        let mut command = hookgate(&[&["--json"], arguments].concat());
        let ran = Ran::to_its_end(command.env("WEBHOOK_SECRET", SECRET));
        assert_eq!(ran.code, Some(2), "{ran:?}");
        ran.fault();
        assert!(!format!("{ran:?}").contains("hunter2"), "{ran:?}");
    }
}

#[test]
fn numbers_that_no_machine_can_hold_are_refused_at_once() {
    for wrong in [["--duplicate", "4294967295"], ["--rate", "1e-300"]] {
        let to = ["replay", "/dev/null", "--to", "http://127.0.0.1:1/"];
        let ran = Ran::of(&[&to[..], &wrong].concat());
        assert_eq!((ran.code, &*ran.stdout), (Some(2), ""), "{ran:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_without_an_end_takes_no_more_memory_than_it_may() {
    for arguments in [
        "log list /dev/zero",
        "verify --log /dev/zero --line 1",
        "sign --body /dev/zero",
    ] {
        // In KiB: without a limit of its own, the command would take all of it.
        let limited = format!(
            "ulimit -v 2000000; exec {} --json {arguments}",
            env!("CARGO_BIN_EXE_hookgate")
        );
        let mut shell = std::process::Command::new("sh");
        let ran = Ran::to_its_end(shell.args(["-c", &limited]).env("WEBHOOK_SECRET", SECRET));
        assert_eq!((ran.code, &*ran.stdout), (Some(3), ""), "{ran:?}");
        let error = ran.fault()["error"].to_string();
        assert!(error.contains("longer than 256 MiB"), "{error}");
    }
}
