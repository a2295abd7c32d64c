//! Text from others never reaches a terminal unescaped, and text that was typed in the wrong place
//! is not repeated.

use std::fs;

use hookgate::clock::UnixSeconds;
use hookgate_record::{LoggedAnswer, LoggedDelivery};

use super::{Ran, SECRET, Scratch, typed};
use crate::terminal::Terminal;

/// Sets a title, in both ways that terminals know, clears the screen, and turns the direction of
/// writing.
const HOSTILE: &str = "x\u{1b}]0;owned\u{7}\u{9b}2J\u{1b}[31m\u{202e}\u{7f}y";

/// Whether a terminal acts on something of it.
pub(crate) fn acts(text: &str) -> bool {
    text.contains(|char: char| (char.is_control() && char != '\n') || char == '\u{202e}')
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
    (delivery.target, delivery.method) = (HOSTILE.into(), HOSTILE.into());
    let mut answer = LoggedAnswer::new(500, HOSTILE);
    (answer.reason, answer.key) = (Some(HOSTILE.into()), Some(HOSTILE.into()));
    delivery.answer = Some(answer);
    Scratch::file(name, format!("{}\n", delivery.to_line()).as_bytes())
}

#[test]
fn no_command_prints_what_a_terminal_acts_on() {
    let log = log("hostile.jsonl");
    for line in [
        "log list LOG",
        "log show LOG 1",
        "log curl LOG 1",
        "log show LOG HOSTILE",
        "log list NOWHERE",
        "log import NOWHERE",
        "verify --log LOG",
        "verify --headers NOWHERE --body /dev/null",
        "explain --log LOG",
        "explain --headers NOWHERE",
        "replay LOG --to http://127.0.0.1:1/ --raw",
        "replay NOWHERE --to http://127.0.0.1:1/",
        "send HOSTILE --to http://127.0.0.1:1/ --dry-run=curl",
        "sign --body NOWHERE",
        "sign --body /dev/null --secret-file NOWHERE",
        "sign --body /dev/null --secret-env HOSTILE",
        "doctor --log NOWHERE",
        "doctor --log LOG",
        "doctor --secret-env HOSTILE",
        "doctor --url HOSTILE",
        "listen --addr HOSTILE",
        "listen --forward HOSTILE",
        "simulate --to HOSTILE",
        "HOSTILE",
        "doctor --retention HOSTILE",
    ] {
        let line = line
            .replace("NOWHERE", "/nowhere/HOSTILE")
            .replace("LOG", log.path());
        let line = line.replace("HOSTILE", HOSTILE);
        for json in ["", "--json "] {
            let ran = Ran::typed(&format!("{json}{line}"));
            assert!(!acts(&ran.stdout) && !acts(&ran.stderr), "{ran:?}");
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
    let shown = Ran::of(&["--json", "log", "show", log.path(), "1"]).json();
    let recorded = fs::read(&log.0).unwrap();
    let recorded: serde_json::Value = serde_json::from_slice(&recorded).unwrap();
    assert!(shown["body"].is_string(), "{shown}");
    assert_eq!(shown["body"], recorded["body"]);
    assert_eq!(shown["headers"], recorded["headers"]);
}

/// In a pipe, the library that reads arguments removes such characters by itself.
#[test]
fn wrong_arguments_are_escaped_on_a_terminal() {
    for (arguments, told) in [
        (&[HOSTILE][..], "unrecognized"),
        (&["doctor", "--retention", HOSTILE], "invalid value"),
        (&["log", "list", HOSTILE], "can't be read"),
    ] {
        let mut terminal = Terminal::start(arguments, &[], (24, 120));
        terminal.end();
        let text = terminal.text();
        assert_eq!(terminal.heard().titles, 0, "{text}");
        assert!(text.contains(told), "{told}: {text}");
    }
}

#[test]
fn a_raw_body_that_acts_goes_to_a_pipe_and_to_no_terminal() {
    let raw = |log: &Scratch| {
        let arguments = ["log", "show", log.path(), "1", "--raw"];
        Terminal::start(&arguments, &[], (24, 120))
    };
    let log = log("raw.jsonl");
    let mut terminal = raw(&log);
    terminal.shows(&["a terminal acts on", "| xxd"]);
    assert_eq!(terminal.end().code(), Some(3));
    assert_eq!(terminal.heard().titles, 0);
    Ran::of(&["log", "show", log.path(), "1", "--raw"]).says(&[HOSTILE]);

    let at = UnixSeconds::new(1_763_690_000);
    let delivery = LoggedDelivery::new(at, [("a", "b")], "{\"a\":\r\n\t\"Grüße\"}\n");
    let plain = Scratch::file("plain.jsonl", delivery.to_line().as_bytes());
    let mut terminal = raw(&plain);
    terminal.shows(&["Grüße"]);
    assert_eq!(terminal.end().code(), Some(0));
}

#[test]
fn a_secret_in_the_wrong_place_is_not_repeated() {
    for line in [
        "sign --body /dev/null --secret-env SECRET",
        "sign --body /dev/null --secret-file SECRET",
        "doctor --secret-env SECRET",
        "explain --headers /dev/null --other-env SECRET",
        "sign SECRET",
        "sign --secret SECRET",
        "listen --addr SECRET",
        "SECRET",
    ] {
        let line = line.replace("SECRET", SECRET);
        for json in ["", "--json "] {
            let mut command = typed(&format!("{json}{line}"));
            let ran = Ran::to_its_end(command.env_remove("WEBHOOK_SECRET"));
            assert_ne!(ran.lacks(&["made_up_for"]).code, Some(0), "{ran:?}");
        }
    }
}

#[test]
fn a_password_in_a_url_is_refused_by_every_command_and_not_repeated() {
    for line in [
        "send row.created --to",
        "simulate --to",
        "replay /dev/null --to",
        "listen --forward",
        "doctor --url",
    ] {
        let ran = Ran::typed(&format!("--json {line} http://me:hunter2@127.0.0.1:1/")).ends(2);
        ran.lacks(&["hunter2"]).fault();
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
        let command = env!("CARGO_BIN_EXE_hookgate");
        let limited = format!("ulimit -v 2000000; exec {command} --json {arguments}");
        let mut shell = std::process::Command::new("sh");
        let ran = Ran::to_its_end(shell.args(["-c", &limited]).env("WEBHOOK_SECRET", SECRET));
        let fault = ran.ends(3).prints_nothing().fault();
        assert!(fault.contains("longer than 256 MiB"), "{fault}");
    }
}
