//! `hookgate sign`, `verify` and `explain`, over real pipes.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hookgate::clock::UnixSeconds;
use hookgate_record::{LoggedAnswer, LoggedDelivery};
use serde_json::Value;

use super::mistakes::{self, BODY, NOW, SECRET};

/// The body of these tests is authentic, and no whole event.
const NO_EVENT: &str =
    "a handler that takes `Event` answers 422: workspaceId is missing, at line 1 column 191";

/// A folder of its own, gone at the end of its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("explain-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The built program, with this secret in its environment.
fn hookgate(secret: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hookgate"));
    command
        .args(arguments)
        .env("WEBHOOK_SECRET", secret)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(secret: &str, arguments: &[&str]) -> (i32, String, String) {
    told(hookgate(secret, arguments).output().unwrap())
}

fn run_with(stdin: &[u8], secret: &str, arguments: &[&str]) -> (i32, String, String) {
    let mut child = hookgate(secret, arguments)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin).unwrap();
    told(child.wait_with_output().unwrap())
}

fn told(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn signature(key: &[u8], body: &[u8]) -> String {
    let message = [NOW.to_string().as_bytes(), b".", body].concat();
    hex::encode(mistakes::mac(key, &message))
}

/// A head that was signed over this body.
fn head(key: &[u8], body: &[u8]) -> String {
    format!(
        "X-Service-Timestamp: {NOW}\r\nX-Service-Signature: sha256={}\r\n",
        signature(key, body)
    )
}

#[test]
fn sign_prints_what_the_service_would_send() {
    let folder = Folder::new("sign");
    let body = folder.file("body.json", BODY);
    let expected = signature(SECRET.as_bytes(), BODY.as_bytes());
    let at = NOW.to_string();
    for at in [
        at.as_str(),
        "2025-11-21T01:53:20Z",
        "2025-11-21T02:53:20+01:00",
    ] {
        let arguments = [
            "sign",
            "--body",
            &body,
            "--at",
            at,
            "--subscription",
            "wh_7",
        ];
        let (code, out, err) = run(SECRET, &arguments);
        assert_eq!((code, err.as_str()), (0, ""));
        assert!(
            out.contains(&format!("x-service-signature: sha256={expected}\n")),
            "{out}"
        );
        assert!(
            out.contains("x-service-timestamp: 1763690000\n")
                && out.contains("x-service-webhook-id: wh_7\n"),
            "{out}"
        );
        assert!(out.contains("x-service-event-id: evt_1\n"), "{out}");
        let (code, out, _) = run(SECRET, &[&arguments[..], &["--json"]].concat());
        assert_eq!(code, 0);
        assert_eq!(
            json(&out)["headers"]["x-service-signature"],
            format!("sha256={expected}")
        );
    }
    // `verify` accepts the output of `sign`: as headers, and from standard input.
    let (_, headers, _) = run(SECRET, &["sign", "--body", &body]);
    let head = folder.file("head.txt", &headers);
    let (code, out, _) = run(SECRET, &["verify", "--headers", &head, "--body", &body]);
    assert!(
        code == 0 && out.starts_with("authentic: signed at 20"),
        "{out}"
    );
    let request = format!("{headers}\n{BODY}");
    let (code, out, _) = run_with(
        request.as_bytes(),
        SECRET,
        &["verify", "--headers", "-", "--json"],
    );
    assert_eq!(
        (code, &json(&out)["authentic"], &json(&out)["key"]),
        (0, &true.into(), &"WEBHOOK_SECRET".into())
    );
    // From a pipe as well, and its bytes as they are.
    let (code, out, _) = run_with(
        b"\xff\n",
        SECRET,
        &["sign", "--body", "-", "--at", &NOW.to_string()],
    );
    assert!(
        code == 0 && out.contains(&signature(SECRET.as_bytes(), b"\xff\n")),
        "{out}"
    );
}

#[test]
fn verify_says_the_verdict_and_the_exact_error() {
    let folder = Folder::new("verify");
    let body = folder.file("body.json", BODY);
    let good = folder.file("good.txt", head(SECRET.as_bytes(), BODY.as_bytes()));
    let at = |seconds: i64| (NOW + seconds).to_string();
    let verify = |head: &str, at: &str, more: &[&str]| {
        run(
            SECRET,
            &[
                &["verify", "--headers", head, "--body", &body, "--at", at],
                more,
            ]
            .concat(),
        )
    };
    let (code, out, _) = verify(&good, &at(7), &[]);
    assert_eq!(
        (code, out.as_str()),
        (
            0,
            &*format!(
                "authentic: signed at 2025-11-21T01:53:20Z with WEBHOOK_SECRET, 7 s before its receipt\n{NO_EVENT}\n"
            )
        )
    );
    let (code, out, _) = verify(&good, &at(301), &[]);
    assert!(
        code == 1 && out.starts_with("not authentic: the delivery is stale"),
        "{out}"
    );
    assert_eq!(verify(&good, &at(301), &["--window-past", "10min"]).0, 0);
    assert_eq!(verify(&good, &at(-301), &[]).0, 1);
    assert_eq!(verify(&good, &at(-301), &["--window-ahead", "301s"]).0, 0);
    let wrong = folder.file("wrong.txt", head(b"another", BODY.as_bytes()));
    let (code, out, _) = verify(&wrong, &at(0), &["--json"]);
    let told = json(&out);
    assert_eq!(
        (code, &told["authentic"], &told["error"]["kind"]),
        (1, &false.into(), &"signature_mismatch".into())
    );
    let doubled = folder.file(
        "doubled.txt",
        head(SECRET.as_bytes(), BODY.as_bytes()) + &head(SECRET.as_bytes(), BODY.as_bytes()),
    );
    let (code, out, _) = verify(&doubled, &at(0), &[]);
    assert!(
        code == 1 && out.contains("header x-service-signature appears more than once"),
        "{out}"
    );
    // The right MAC is never shown.
    for text in [out, told.to_string()] {
        assert!(
            !text.contains(&signature(SECRET.as_bytes(), BODY.as_bytes())),
            "{text}"
        );
    }
    // A ring, by files.
    let old = folder.file("old", format!("{SECRET}\n"));
    let new = folder.file("new", "whsec_made_up_successor_of_it\n");
    let (code, out, _) = verify(
        &good,
        &at(0),
        &["--secret-file", &new, "--secret-file", &old],
    );
    assert!(code == 0 && out.contains(&format!("with {old}, ")), "{out}");
    // A file with a byte order mark is named as that, in either encoding.
    for (name, bytes) in [
        ("utf8", format!("\u{feff}{SECRET}\n").into_bytes()),
        (
            "utf16",
            format!("\u{feff}{SECRET}\n")
                .encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect(),
        ),
    ] {
        let file = folder.file(name, bytes);
        let (code, _, err) = verify(&good, &at(0), &["--secret-file", &file]);
        assert!(
            code == 5 && err.contains("a byte order mark in front of the secret"),
            "{err}"
        );
        assert!(err.contains("printf"), "{err}");
        let explain = ["explain", "--headers", &good, "--body", &body, "--at"];
        let told = run(
            SECRET,
            &[&explain[..], &[&at(0), "--secret-file", &file]].concat(),
        );
        assert!(
            told.0 == 1 && (told.1.contains("byte order mark") || told.1.contains("UTF-16")),
            "{}",
            told.1
        );
    }
    // A secret that can't be right is refused before anything is read.
    let (code, _, err) = run(
        "\"quoted\"",
        &["verify", "--headers", &good, "--body", &body],
    );
    assert!(
        code == 5 && err.contains("quotes around the secret"),
        "{err}"
    );
}

#[test]
fn explain_says_the_causes_and_how_to_fix_them() {
    let folder = Folder::new("explain");
    let good = folder.file("good.txt", head(SECRET.as_bytes(), BODY.as_bytes()));
    let changed = folder.file("changed.json", format!("{BODY}\n"));
    let at = NOW.to_string();
    let arguments = [
        "explain",
        "--headers",
        &good,
        "--body",
        &changed,
        "--at",
        &at,
    ];
    let quoted = format!("\"{SECRET}\"");
    let (code, out, err) = run(&quoted, &arguments);
    assert_eq!((code, err.as_str()), (1, ""));
    for part in [
        "refused with 401: ",
        "2 mistakes together",
        "secret_quoted (secret)",
        "body_line_break_added (body)",
        "  fix    ",
        "tried: ",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let (code, printed, _) = run(&quoted, &[&arguments[..], &["--json"]].concat());
    let told = json(&printed);
    let names: Vec<_> = told["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| cause["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        (code, names),
        (1, vec!["secret_quoted", "body_line_break_added"])
    );
    for cause in told["causes"].as_array().unwrap() {
        assert!(cause["fix"].as_str().is_some_and(|fix| fix.len() > 10));
    }
    // No right MAC, no secret and no body in either.
    let message = [at.as_bytes(), b".", BODY.as_bytes(), b"\n"].concat();
    let right = mistakes::mac(SECRET.as_bytes(), &message);
    let needles = [
        signature(SECRET.as_bytes(), BODY.as_bytes()),
        hex::encode(&right),
        STANDARD.encode(&right),
        SECRET.to_owned(),
        "Größe".to_owned(),
    ];
    for needle in needles {
        assert!(
            !out.contains(&needle) && !printed.contains(&needle),
            "{needle}"
        );
    }
    // Authentic: 0. With another's secret the output names that secret.
    let body = folder.file("body.json", BODY);
    let arguments = ["explain", "--headers", &good, "--body", &body, "--at", &at];
    let (code, out, _) = run(SECRET, &arguments);
    assert_eq!(
        (code, out.as_str()),
        (
            0,
            &*format!("authentic and fresh, signed with WEBHOOK_SECRET\n{NO_EVENT}\n")
        )
    );
    let other = folder.file("staging", format!("{SECRET}\n"));
    let (code, out, _) = run(
        "whsec_made_up_secret_of_production",
        &[&arguments[..], &["--other-file", &other]].concat(),
    );
    assert!(
        code == 1 && out.contains(&format!("that of {other}")),
        "{out}"
    );
    // None fits, and the secret can't be right.
    let (code, out, _) = run("tk_live_0123456789abcdef", &arguments);
    assert!(
        code == 1 && out.contains("none of ") && out.contains("this is an API key"),
        "{out}"
    );
}

#[test]
fn what_a_handler_that_takes_event_would_answer_is_told_by_verify_and_explain() {
    let folder = Folder::new("no-event");
    let at = NOW.to_string();
    let body = r#"{"id":"evt_1","type":"row.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1"}"#;
    let head = head(SECRET.as_bytes(), body.as_bytes());
    let request = folder.file("request.txt", format!("{head}\n{body}"));
    for command in ["verify", "explain"] {
        let arguments = [command, "--headers", &request, "--at", &at];
        let (code, out, err) = run(SECRET, &arguments);
        let line = out.lines().nth(1);
        // It is authentic all the same, and another handler may take it.
        assert_eq!(code, 0, "{out}{err}");
        assert_eq!(
            line,
            Some("a handler that takes `Event` answers 422: data is missing"),
            "{out}"
        );
        let (_, out, _) = run(SECRET, &[&arguments[..], &["--json"]].concat());
        assert_eq!(json(&out)["eventError"], "data is missing");
    }
}

/// The signature is right in each of them.
// fault E2: a delivery is called authentic and fresh whose receiver answers 405, 415 or 400
#[test]
fn a_request_that_a_receiver_refuses_is_named_by_verify_and_explain() {
    let folder = Folder::new("request");
    let at = NOW.to_string();
    let good = head(SECRET.as_bytes(), BODY.as_bytes());
    for (first, more, said, cause) in [
        (
            "GET /hooks HTTP/1.1\n",
            "",
            "deliveries are sent with POST",
            "request_method",
        ),
        (
            "",
            "content-type: text/plain\n",
            "sent as application/json",
            "request_type",
        ),
        (
            "",
            "content-encoding: gzip\n",
            "without content encoding",
            "request_encoding",
        ),
        (
            "",
            "x-service-event-id: evt_9\n",
            "x-service-event-id differs",
            "event_header",
        ),
    ] {
        let request = folder.file("request.txt", format!("{first}{good}{more}\n{BODY}"));
        let arguments = ["--headers", &request, "--at", &at];
        let (code, out, err) = run(SECRET, &[&["verify"], &arguments[..]].concat());
        assert_eq!(code, 1, "{out}{err}");
        assert!(
            out.starts_with("not accepted: ") && out.contains(said),
            "{out}"
        );
        let (code, out, _) = run(SECRET, &[&["explain"], &arguments[..]].concat());
        assert!(
            code == 1 && out.contains(cause) && out.contains(said),
            "{out}"
        );
        assert!(!out.contains("authentic and fresh"), "{out}");
    }
    // The answer of the log is quoted, in the text and as JSON.
    let headers = good.lines().filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name, value.to_owned()));
    let mut logged = LoggedDelivery::new(UnixSeconds::new(NOW), headers, BODY);
    logged.answer = Some(LoggedAnswer::new(401, "not_authentic"));
    let log = folder.file("log.jsonl", logged.to_line());
    let arguments = ["explain", "--log", &log];
    let (_, out, _) = run(SECRET, &arguments);
    assert!(
        out.contains("answered, says the log: 401 not_authentic"),
        "{out}"
    );
    assert!(!out.contains("authentic and fresh"), "{out}");
    let (_, out, _) = run(SECRET, &[&arguments[..], &["--json"]].concat());
    assert_eq!(json(&out)["answer"]["status"], 401);
}

#[test]
fn a_delivery_is_taken_from_a_log_at_its_own_time() {
    let folder = Folder::new("log");
    let line = |id: &str, received: i64| {
        let body = BODY.replace("evt_1", id);
        let headers = [
            ("x-service-timestamp", NOW.to_string()),
            (
                "x-service-signature",
                format!("sha256={}", signature(SECRET.as_bytes(), body.as_bytes())),
            ),
        ];
        LoggedDelivery::new(UnixSeconds::new(received), headers, body)
    };
    // Those that a receiver refused are named with their answers.
    let mut answered = [line("evt_1", NOW), line("evt_2", NOW), line("evt_3", NOW)];
    for (delivery, (status, outcome)) in answered.iter_mut().zip([
        (204, "handled"),
        (401, "not_authentic"),
        (415, "media_not_supported"),
    ]) {
        delivery.answer = Some(LoggedAnswer::new(status, outcome));
    }
    let answered = answered.map(|delivery| delivery.to_line()).join("\n");
    let answered = folder.file("answered.jsonl", answered);
    let (code, _, err) = run(SECRET, &["explain", "--log", &answered]);
    let refused = "refused: 2 (401 not_authentic), 3 (415 media_not_supported)\n";
    assert!(code == 3 && err.contains(refused), "{err}");
    let mut redacted = line("evt_4", NOW);
    redacted.unverifiable = true;
    let mut unread = line("evt_5", NOW);
    unread.body = None;
    let mut answer = LoggedAnswer::new(415, "media_not_supported");
    answer.reason = Some("delivery refused: deliveries are sent as application/json".into());
    unread.answer = Some(answer);
    let lines = [
        line("evt_1", NOW),
        line("evt_2", NOW + 400),
        line("evt_1", NOW + 60),
        redacted,
        unread,
    ];
    let lines: Vec<_> = lines.iter().map(LoggedDelivery::to_line).collect();
    let log = folder.file("log.jsonl", lines.join("\n") + "\nnonsense\n{\"torn");
    let verify = |more: &[&str]| run(SECRET, &[&["verify", "--log", &log], more].concat());
    assert_eq!(verify(&["--line", "1"]).0, 0);
    assert_eq!(verify(&["--id", "evt_2"]).0, 1);
    assert_eq!(verify(&["--id", "evt_2", "--at", &NOW.to_string()]).0, 0);
    let (code, out, _) = run(SECRET, &["explain", "--log", &log, "--line", "2"]);
    assert!(code == 1 && out.contains("clock_retry"), "{out}");
    for (arguments, said, advice) in [
        (
            &["--id", "evt_1"][..],
            "2 deliveries in",
            "--line N, of 1, 3",
        ),
        (&["--id", "evt_9"], "is of event evt_9", "--line N"),
        (&["--line", "9"], "no delivery at line 9", "has 7 lines"),
        (&["--line", "6"], "line 6 of", ""),
        (&[], "5 deliveries are in", "--line N"),
        (&["--line", "4"], "something was taken out", "sign it again"),
        (
            &["--line", "5"],
            "refused before its body was read (415 deliveries are sent as application/json)",
            "log show",
        ),
    ] {
        let (code, _, err) = verify(arguments);
        assert!(
            code == 3 && err.contains(said) && err.contains(advice),
            "{arguments:?}: {err}"
        );
    }
    let (code, out, _) = run(SECRET, &["explain", "--log", &log, "--line", "5"]);
    assert!(code == 1 && out.contains("no_body"), "{out}");
}

#[test]
fn what_can_not_be_read_is_said_with_what_to_do_next() {
    let folder = Folder::new("faults");
    let good = folder.file("good.txt", head(SECRET.as_bytes(), BODY.as_bytes()));
    let bad = folder.file("bad.txt", "X-A: 1\nnonsense\n");
    for command in ["verify", "explain"] {
        for (arguments, code, said, advice) in [
            (&[][..], 2, "no delivery is given", "--headers FILE"),
            (
                &["--headers", "none.txt"],
                3,
                "the headers in none.txt can't be read",
                "check the path",
            ),
            (&["--headers", &good], 2, "no body", "--body FILE"),
            (
                &["--headers", "-", "--body", "-"],
                2,
                "can't both come from standard input",
                "whole request",
            ),
            (
                &["--headers", &bad],
                3,
                "line 2: that is not a header",
                "Name: value",
            ),
            (
                &["--log", "none.jsonl"],
                3,
                "the log none.jsonl can't be read",
                "",
            ),
            (
                &["--headers", &good, "--at", "yesterday"],
                2,
                "ISO 8601",
                "",
            ),
            (&["--line", "1"], 2, "--log", ""),
        ] {
            let (status, out, err) = run(SECRET, &[&[command], arguments].concat());
            assert_eq!((status, out.as_str()), (code, ""), "{arguments:?}: {err}");
            assert!(
                err.contains(said) && err.contains(advice),
                "{arguments:?}: {err}"
            );
            let (status, _, err) = run(SECRET, &[&[command, "--json"], arguments].concat());
            assert!(status == code && json(&err)["error"].is_string(), "{err}");
        }
    }
    let (code, _, err) = run(SECRET, &["sign", "--body", "none.json"]);
    assert!(
        code == 3 && err.contains("the body in none.json can't be read"),
        "{err}"
    );
    let body = folder.file("body.json", BODY);
    let (code, _, err) = run(SECRET, &["sign", "--body", &body, "--at", "0"]);
    assert!(
        code == 2 && err.contains("no timestamp can be written for"),
        "{err}"
    );
    let explain = ["explain", "--headers", &good, "--body", &body];
    let unread = "the secret in none can't be read";
    for (more, exits, said) in [
        (
            ["--secret-env", "HOOKGATE_TEST_UNSET"],
            5,
            "the environment has no HOOKGATE_TEST_UNSET",
        ),
        (["--secret-file", "none"], 3, unread),
        (["--other-file", "none"], 3, unread),
    ] {
        let (code, _, err) = run(SECRET, &[&explain[..], &more].concat());
        assert!(code == exits && err.contains(said), "{err}");
    }
    let mut unset = hookgate(SECRET, &explain);
    let (code, _, err) = told(unset.env_remove("WEBHOOK_SECRET").output().unwrap());
    assert!(code == 5 && err.contains("set WEBHOOK_SECRET"), "{err}");
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let folder = Folder::new("pipe");
    let body = folder.file("body.json", BODY);
    let good = folder.file("good.txt", head(SECRET.as_bytes(), BODY.as_bytes()));
    // Fresh then, so that the answer is the same where the pipe is closed too late to be noticed.
    let at = NOW.to_string();
    let input = ["--headers", &good, "--body", &body, "--at", &at];
    for arguments in [
        vec!["sign", "--body", &body],
        [&["verify"], &input[..]].concat(),
        [&["explain"], &input[..]].concat(),
        [&["explain", "--json"], &input[..]].concat(),
    ] {
        // Closed before it begins: a reader that goes a moment later may have been written to, and then there is an answer.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = hookgate(SECRET, &arguments);
        let child = command.stdout(writer).spawn().unwrap();
        let (code, _, err) = told(child.wait_with_output().unwrap());
        assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}");
    }
}
