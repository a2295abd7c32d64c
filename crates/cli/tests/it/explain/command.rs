//! `hookgate sign`, `verify` and `explain`, over real pipes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hookgate::clock::UnixSeconds;
use hookgate_record::{LoggedAnswer, LoggedDelivery};
use serde_json::json;

use super::mistakes::{self, BODY, NOW, SECRET};
use crate::cli::{Folder, Ran, into_a_closed_pipe, typed};

/// The body of these tests is authentic, and no whole event.
const NO_EVENT: &str =
    "a handler that takes `Event` answers 422: workspaceId is missing, at line 1 column 191";

fn run(line: &str) -> Ran {
    run_with(SECRET, line)
}

/// With this secret in its environment.
fn run_with(secret: &str, line: &str) -> Ran {
    Ran::to_its_end(typed(line).env("WEBHOOK_SECRET", secret))
}

fn signature(key: &[u8], body: &[u8]) -> String {
    let message = [NOW.to_string().as_bytes(), b".", body].concat();
    hex::encode(mistakes::mac(key, &message))
}

/// The signature of the body of these tests.
fn right() -> String {
    signature(SECRET.as_bytes(), BODY.as_bytes())
}

/// A head with this signature.
fn head(signature: &str) -> String {
    format!("X-Service-Timestamp: {NOW}\r\nX-Service-Signature: sha256={signature}\r\n")
}

/// A folder with the body, `good.txt` that was signed over it, and the options that name both.
fn signed() -> (Folder, String) {
    let folder = Folder::new();
    let good = folder.file("good.txt", head(&right()));
    let body = folder.file("body.json", BODY);
    (folder, format!("--headers {good} --body {body}"))
}

#[test]
fn sign_prints_what_the_service_would_send() {
    let (folder, _) = signed();
    let body = folder.path("body.json");
    let expected = format!("sha256={}", right());
    for at in [
        "1763690000",
        "2025-11-21T01:53:20Z",
        "2025-11-21T02:53:20+01:00",
    ] {
        let line = format!("sign --body {body} --at {at} --subscription wh_7");
        run(&line).ends(0).warns_of_nothing().says(&[
            &format!("x-service-signature: {expected}\n"),
            "x-service-timestamp: 1763690000\n",
            "x-service-webhook-id: wh_7\n",
            "x-service-event-id: evt_1\n",
        ]);
        let json = run(&format!("{line} --json")).ends(0).json();
        assert_eq!(json["headers"]["x-service-signature"], expected);
    }
    // `verify` accepts the output of `sign`: as headers, and from standard input.
    let headers = run(&format!("sign --body {body}")).stdout;
    let head = folder.file("head.txt", &headers);
    let verified = run(&format!("verify --headers {head} --body {body}")).ends(0);
    verified.begins("authentic: signed at 20");
    let request = format!("{headers}\n{BODY}");
    let mut verify = typed("verify --headers - --json");
    let verify = verify.env("WEBHOOK_SECRET", SECRET);
    let told = Ran::fed(verify, request.as_bytes()).ends(0).json();
    assert_eq!(
        json!([told["authentic"], told["key"]]),
        json!([true, "WEBHOOK_SECRET"])
    );
    // From a pipe as well, and its bytes as they are.
    let mut sign = typed(&format!("sign --body - --at {NOW}"));
    let piped = Ran::fed(sign.env("WEBHOOK_SECRET", SECRET), b"\xff\n").ends(0);
    piped.says(&[&signature(SECRET.as_bytes(), b"\xff\n")]);
}

#[test]
fn verify_says_the_verdict_and_the_exact_error() {
    let (folder, good) = signed();
    let body = folder.path("body.json");
    let verify = |given: &str, later: i64, more: &str| {
        run(&format!("verify {given} --at {} {more}", NOW + later))
    };
    let with =
        |name: &str, text: String| format!("--headers {} --body {body}", folder.file(name, text));
    let sound = verify(&good, 7, "").ends(0).stdout;
    let signed =
        "authentic: signed at 2025-11-21T01:53:20Z with WEBHOOK_SECRET, 7 s before its receipt";
    assert_eq!(sound, format!("{signed}\n{NO_EVENT}\n"));
    for (later, more, code) in [
        (301, "", 1),
        (301, "--window-past 10min", 0),
        (-301, "", 1),
        (-301, "--window-ahead 301s", 0),
    ] {
        verify(&good, later, more).ends(code);
    }
    let stale = verify(&good, 301, "").stdout;
    assert!(
        stale.starts_with("not authentic: the delivery is stale"),
        "{stale}"
    );
    // The right MAC is never shown.
    let wrong = with("wrong.txt", head(&signature(b"another", BODY.as_bytes())));
    let wrong = verify(&wrong, 0, "--json").ends(1);
    let told = wrong.lacks(&[&right()]).json();
    let said = json!([told["authentic"], told["error"]["kind"]]);
    assert_eq!(said, json!([false, "signature_mismatch"]));
    let doubled = with("doubled.txt", head(&right()).repeat(2));
    let doubled = verify(&doubled, 0, "").ends(1);
    doubled
        .says(&["header x-service-signature appears more than once"])
        .lacks(&[&right()]);
    // A ring, by files.
    let old = folder.file("old", format!("{SECRET}\n"));
    let new = folder.file("new", "whsec_made_up_successor_of_it\n");
    let ring = format!("--secret-file {new} --secret-file {old}");
    verify(&good, 0, &ring)
        .ends(0)
        .says(&[&format!("with {old}, ")]);
    // A file with a byte order mark is named as that, in either encoding.
    let marked = format!("\u{feff}{SECRET}\n");
    let utf16: Vec<_> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (name, bytes) in [("utf8", marked.into_bytes()), ("utf16", utf16)] {
        let file = format!("--secret-file {}", folder.file(name, bytes));
        let told = verify(&good, 0, &file).ends(5);
        told.tells(&["a byte order mark in front of the secret", "printf"]);
        let told = run(&format!("explain {good} --at {NOW} {file}"))
            .ends(1)
            .stdout;
        let names = ["byte order mark", "UTF-16"];
        assert!(names.iter().any(|name| told.contains(name)), "{told}");
    }
    // A secret that can't be right is refused before anything is read.
    let quoted = run_with("\"quoted\"", &format!("verify {good}")).ends(5);
    quoted.tells(&["quotes around the secret"]);
}

#[test]
fn explain_says_the_causes_and_how_to_fix_them() {
    let (folder, good) = signed();
    let head = folder.path("good.txt");
    let changed = folder.file("changed.json", format!("{BODY}\n"));
    let line = format!("explain --headers {head} --body {changed} --at {NOW}");
    let quoted = format!("\"{SECRET}\"");
    let text = run_with(&quoted, &line).ends(1).warns_of_nothing();
    text.says(&[
        "refused with 401: ",
        "2 mistakes together",
        "secret_quoted (secret)",
        "body_line_break_added (body)",
        "  fix    ",
        "tried: ",
    ]);
    let printed = run_with(&quoted, &format!("{line} --json")).ends(1);
    let told = printed.json();
    let causes = told["causes"].as_array().unwrap();
    let names: Vec<_> = causes.iter().map(|cause| &cause["name"]).collect();
    assert_eq!(names, ["secret_quoted", "body_line_break_added"]);
    for cause in causes {
        assert!(cause["fix"].as_str().is_some_and(|fix| fix.len() > 10));
    }
    // No right MAC, no secret and no body in either.
    let message = [NOW.to_string().as_bytes(), b".", BODY.as_bytes(), b"\n"].concat();
    let mac = mistakes::mac(SECRET.as_bytes(), &message);
    let secrets = [right(), hex::encode(&mac), STANDARD.encode(&mac)];
    for ran in [text, printed] {
        ran.lacks(&secrets.each_ref().map(String::as_str))
            .lacks(&[SECRET, "Größe"]);
    }
    // Authentic: 0. With another's secret the output names that secret.
    let line = format!("explain {good} --at {NOW}");
    let sound = run(&line).ends(0).stdout;
    assert_eq!(
        sound,
        format!("authentic and fresh, signed with WEBHOOK_SECRET\n{NO_EVENT}\n")
    );
    let other = folder.file("staging", format!("{SECRET}\n"));
    let production = "whsec_made_up_secret_of_production";
    let told = run_with(production, &format!("{line} --other-file {other}")).ends(1);
    told.says(&[&format!("that of {other}")]);
    // None fits, and the secret can't be right.
    let told = run_with("tk_live_0123456789abcdef", &line).ends(1);
    told.says(&["none of ", "this is an API key"]);
    // None is given.
    let without = Ran::to_its_end(typed(&line).env_remove("WEBHOOK_SECRET")).ends(5);
    without.tells(&["set WEBHOOK_SECRET"]);
}

#[test]
fn what_a_handler_that_takes_event_would_answer_is_told_by_verify_and_explain() {
    let folder = Folder::new();
    let body = r#"{"id":"evt_1","type":"row.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1"}"#;
    let head = head(&signature(SECRET.as_bytes(), body.as_bytes()));
    let request = folder.file("request.txt", format!("{head}\n{body}"));
    for command in ["verify", "explain"] {
        let line = format!("{command} --headers {request} --at {NOW}");
        // It is authentic all the same, and another handler may take it.
        let told = run(&line).ends(0).stdout;
        let says = "a handler that takes `Event` answers 422: data is missing";
        assert_eq!(told.lines().nth(1), Some(says), "{command}: {told}");
        let json = run(&format!("{line} --json")).json();
        assert_eq!(json["eventError"], "data is missing", "{command}");
    }
}

/// The signature is right in each of them.
// fault E2: a delivery is called authentic and fresh whose receiver answers 405, 415 or 400
#[test]
fn a_request_that_a_receiver_refuses_is_named_by_verify_and_explain() {
    let folder = Folder::new();
    let good = head(&right());
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
        let verified = run(&format!("verify --headers {request} --at {NOW}")).ends(1);
        verified.begins("not accepted: ");
        verified.says(&[said]);
        let explained = run(&format!("explain --headers {request} --at {NOW}")).ends(1);
        explained
            .says(&[cause, said])
            .lacks(&["authentic and fresh"]);
    }
    // The answer of the log is quoted, in the text and as JSON.
    let mut logged = logged(BODY, NOW);
    logged.answer = Some(LoggedAnswer::new(401, "not_authentic"));
    let log = folder.file("log.jsonl", logged.to_line());
    let text = run(&format!("explain --log {log}"));
    text.says(&["answered, says the log: 401 not_authentic"])
        .lacks(&["authentic and fresh"]);
    let json = run(&format!("explain --log {log} --json")).json();
    assert_eq!(json["answer"]["status"], 401);
}

/// A delivery with the right signature, received at this time.
fn logged(body: &str, received: i64) -> LoggedDelivery {
    let signature = signature(SECRET.as_bytes(), body.as_bytes());
    let headers = [
        ("x-service-timestamp", NOW.to_string()),
        ("x-service-signature", format!("sha256={signature}")),
    ];
    LoggedDelivery::new(UnixSeconds::new(received), headers, body.to_owned())
}

#[test]
fn a_delivery_is_taken_from_a_log_at_its_own_time() {
    let folder = Folder::new();
    let of = |id: &str, received: i64| logged(&BODY.replace("evt_1", id), received);
    // Those that a receiver refused are named with their answers.
    let answered = [
        ("evt_1", 204, "handled"),
        ("evt_2", 401, "not_authentic"),
        ("evt_3", 415, "media_not_supported"),
    ];
    let answered = answered.map(|(id, status, outcome)| {
        let mut delivery = of(id, NOW);
        delivery.answer = Some(LoggedAnswer::new(status, outcome));
        delivery.to_line()
    });
    let answered = folder.file("answered.jsonl", answered.join("\n"));
    let told = run(&format!("explain --log {answered}")).ends(3);
    told.tells(&["refused: 2 (401 not_authentic), 3 (415 media_not_supported)\n"]);
    let mut redacted = of("evt_4", NOW);
    redacted.unverifiable = true;
    let mut unread = of("evt_5", NOW);
    unread.body = None;
    let mut answer = LoggedAnswer::new(415, "media_not_supported");
    answer.reason = Some("delivery refused: deliveries are sent as application/json".into());
    unread.answer = Some(answer);
    let (first, late, again) = (
        of("evt_1", NOW),
        of("evt_2", NOW + 400),
        of("evt_1", NOW + 60),
    );
    let lines = [first, late, again, redacted, unread].map(|delivery| delivery.to_line());
    let log = folder.file("log.jsonl", lines.join("\n") + "\nnonsense\n{\"torn");
    let verify = |more: &str| run(&format!("verify --log {log} {more}"));
    for (which, code) in [
        ("--line 1", 0),
        ("--id evt_2", 1),
        ("--id evt_2 --at 1763690000", 0),
    ] {
        verify(which).ends(code);
    }
    for (line, cause) in [("2", "clock_retry"), ("5", "no_body")] {
        run(&format!("explain --log {log} --line {line}"))
            .ends(1)
            .says(&[cause]);
    }
    let unread = "refused before its body was read (415 deliveries are sent as application/json)";
    for (which, said, advice) in [
        ("--id evt_1", "2 deliveries in", "--line N, of 1, 3"),
        ("--id evt_9", "is of event evt_9", "--line N"),
        ("--line 9", "no delivery at line 9", "has 7 lines"),
        ("--line 6", "line 6 of", ""),
        ("", "5 deliveries are in", "--line N"),
        ("--line 4", "something was taken out", "sign it again"),
        ("--line 5", unread, "log show"),
    ] {
        verify(which).ends(3).tells(&[said, advice]);
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let (folder, good) = signed();
    let sign = format!("sign --body {}", folder.path("body.json"));
    // Fresh then, so that the answer is the same where the pipe is closed too late to be noticed.
    let of = |command: &str| format!("{command} {good} --at {NOW}");
    for line in [sign, of("verify"), of("explain"), of("explain --json")] {
        let mut command = typed(&line);
        into_a_closed_pipe(command.env("WEBHOOK_SECRET", SECRET))
            .ends(0)
            .warns_of_nothing();
    }
}
