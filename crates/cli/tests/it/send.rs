//! `hookgate send`, run as a user runs it: a program with arguments, pipes and an exit code.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use hookgate::{
    Secret, Verifier,
    clock::UnixSeconds,
    verify::{DeliveryHeaders, VerifyErrorKind},
};
use hookgate_testing::factory::EVENT_TYPES;
use serde_json::Value;

use crate::process::Example;

/// What the example `receiver` takes with `--try`.
pub const SECRET: &str = "whsec_made_up_for_local_tries";

/// The built program, with the secret in its environment.
pub fn hookgate(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hookgate"));
    command
        .args(arguments)
        .env("WEBHOOK_SECRET", SECRET)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(arguments: &[&str]) -> Output {
    hookgate(arguments).output().unwrap()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The output of `--dry-run --json`: headers by name, and the body.
fn dry_run(arguments: &[&str]) -> (Vec<(String, String)>, String) {
    let always = [
        "send",
        "--to",
        "http://127.0.0.1:1/hooks",
        "--dry-run",
        "--json",
    ];
    let output = run(&[&always, arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["url"], "http://127.0.0.1:1/hooks");
    let headers = serde_json::from_value(value["headers"].clone()).unwrap();
    (headers, value["body"].as_str().unwrap().to_owned())
}

fn header<'h>(headers: &'h [(String, String)], name: &str) -> &'h str {
    let found = headers.iter().find(|(other, _)| other == name);
    &found.unwrap_or_else(|| panic!("no {name}")).1
}

fn verdict(headers: &[(String, String)], body: &str) -> Result<(), VerifyErrorKind> {
    let head = DeliveryHeaders::from_pairs(headers.iter().map(|(name, value)| (name, value)));
    let now = hookgate::clock::Clock::now(&hookgate::clock::SystemClock);
    Verifier::new(Secret::new(SECRET).unwrap())
        .verify(&head.unwrap(), body.as_bytes(), now)
        .map(drop)
        .map_err(|error| error.kind())
}

fn receiver() -> (Example, String) {
    let example = Example::start_with("receiver", &["--try"], &[]);
    let url = format!("http://{}/webhooks", example.address);
    (example, url)
}

#[test]
fn what_it_would_send_is_authentic_and_says_so_in_the_services_headers() {
    for event_type in EVENT_TYPES {
        let (headers, body) = dry_run(&[event_type, "--subscription", "wh_7"]);
        assert_eq!(verdict(&headers, &body), Ok(()), "{event_type}");
        let event: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(event["type"], event_type);
        assert_eq!(header(&headers, "x-service-event-type"), event_type);
        assert_eq!(header(&headers, "x-service-event-id"), event["id"]);
        assert_eq!(header(&headers, "x-service-webhook-id"), "wh_7");
        assert_eq!(header(&headers, "user-agent"), "Service-Webhook/1.0");
        assert_eq!(header(&headers, "content-type"), "application/json");
    }
    let (headers, one) = dry_run(&["row.created"]);
    let (_, other) = dry_run(&["row.created"]);
    let id = header(&headers, "x-service-webhook-id");
    assert_eq!(id, "wh_1", "the service names one on each delivery");
    let id = |body: &str| serde_json::from_str::<Value>(body).unwrap()["id"].clone();
    assert_ne!(id(&one), id(&other), "each has an id of its own");
}

#[test]
fn places_are_set_as_they_are_written() {
    let (headers, body) = dry_run(&[
        "row.created",
        "--id=evt_mine",
        "--set=data.properties.Total=12.50",
        "--set",
        "data.properties.Note=a=b",
        "--set",
        "data.new.place=18446744073709551617",
    ]);
    assert_eq!(verdict(&headers, &body), Ok(()));
    for part in [
        r#""id":"evt_mine""#,
        r#""Total":12.50"#,
        r#""Note":"a=b""#,
        r#""new":{"place":18446744073709551617}"#,
    ] {
        assert!(body.contains(part), "{part} in {body}");
    }
    assert_eq!(header(&headers, "x-service-event-id"), "evt_mine");
}

#[test]
fn a_body_goes_out_byte_by_byte() {
    let body = "{ \"id\":\"evt_b\",\r\n \"type\":\"page.created\", \"data\":{\"a\":1.0} }\n";
    let mut child = hookgate(&["send", "--to=http://127.0.0.1:1/", "--dry-run", "--body=-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(body.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let text = stdout(&output);
    assert!(text.ends_with(&format!("\n\n{body}\n")), "{text:?}");
    assert!(
        text.starts_with("POST / HTTP/1.1\nhost: 127.0.0.1:1\n"),
        "{text:?}"
    );
    assert!(text.contains(&format!("content-length: {}\n", body.len())));
    assert!(text.contains("x-service-event-id: evt_b\n"), "{text:?}");

    let output = run(&[
        "send",
        "--to=http://127.0.0.1:1/",
        "--body=/nowhere/at-all.json",
    ]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("/nowhere/at-all.json can't be read"));
}

#[test]
fn ages_and_tampering_are_refused_as_they_should_be() {
    let verdict_of = |arguments: &[&str]| {
        let (headers, body) = dry_run(&[&["row.created"], arguments].concat());
        verdict(&headers, &body)
    };
    assert_eq!(verdict_of(&["--age=290s"]), Ok(()));
    assert_eq!(verdict_of(&["--age", "-4m"]), Ok(()));
    let stale = verdict_of(&["--age=400s"]);
    assert!(matches!(stale, Err(VerifyErrorKind::Stale(_))), "{stale:?}");
    let ahead = verdict_of(&["--age=-6m"]);
    assert!(matches!(ahead, Err(VerifyErrorKind::Ahead(_))), "{ahead:?}");
    for what in ["body", "signature", "timestamp"] {
        let tampered = verdict_of(&["--tamper", what]);
        assert_eq!(tampered, Err(VerifyErrorKind::SignatureMismatch), "{what}");
    }
    let (headers, body) = dry_run(&["row.created", "--tamper=header"]);
    assert_eq!(verdict(&headers, &body), Ok(()), "the header is not signed");
    let event: Value = serde_json::from_str(&body).unwrap();
    assert_ne!(header(&headers, "x-service-event-id"), event["id"]);
}

#[test]
fn an_age_is_that_of_the_event_and_its_signature() {
    let (headers, body) = dry_run(&["row.created", "--age=1h"]);
    let timestamp: i64 = header(&headers, "x-service-timestamp").parse().unwrap();
    let now = hookgate::clock::Clock::now(&hookgate::clock::SystemClock).as_i64();
    assert!((now - timestamp - 3_600).abs() < 30);
    let created = hookgate_testing::iso8601(UnixSeconds::new(timestamp));
    let event: Value = serde_json::from_str(&body).unwrap();
    let created_at = event["createdAt"].as_str().unwrap();
    assert_eq!(created_at[..16], created[..16], "to the minute");
}

#[test]
fn answers_are_printed_with_what_they_mean() {
    let (mut example, url) = receiver();
    let send = |arguments: &[&str]| run(&[&["send", "--to", url.as_str()], arguments].concat());

    let output = send(&[
        "row.created",
        "--id=evt_1",
        "--set=data.properties.Total=12.50",
        "--repeat=2",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    example.line_with("evt_1 row.created: Ada Lovelace ordered for 12.50");
    let text = stdout(&output);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("evt_1 row.created: 204 in "), "{text}");
    assert!(lines[1].starts_with("evt_1 row.created: 200 in "), "{text}");
    assert!(lines[2].contains("handled before"), "{text}");

    for (arguments, status, says) in [
        (
            ["row.created", "--tamper=body"],
            "401",
            "not authentic or not fresh",
        ),
        (["row.created", "--age=400s"], "401", "a clock that is off"),
        (
            ["row.created", "--tamper=header"],
            "400",
            "a header names another event",
        ),
        (
            ["row.created", "--set=data.properties.Total=much"],
            "422",
            "does not fit the type",
        ),
        (["row.created", "--set=id="], "400", "no usable id"),
        (
            ["row.created", "--header=content-type: text/plain"],
            "415",
            "application/json",
        ),
    ] {
        let output = send(&arguments);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {text}");
        assert!(text.contains(&format!(": {status} in ")), "{text}");
        assert!(
            text.contains(says) && text.contains("the receiver said: {\"error\""),
            "{text}"
        );
    }

    let output = send(&["row.created", "--json", "--repeat=3", "--id=evt_3"]);
    let lines: Vec<Value> = stdout(&output)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let statuses: Vec<_> = lines.iter().map(|line| &line["status"]).collect();
    assert_eq!(statuses, [204, 200, 200]);
    assert_eq!(lines[0]["eventId"], "evt_3");
    assert_eq!(
        (&lines[0]["replayed"], &lines[1]["replayed"]),
        (&false.into(), &true.into())
    );
}

#[test]
fn types_that_are_made_up_are_sent_with_a_note() {
    let (_example, url) = receiver();
    let output = run(&["send", "row.craeted", "--to", &url]);
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    let told = stderr(&output);
    assert!(
        told.contains("row.craeted is none of the service's types: did you mean row.created?"),
        "{told}"
    );
    let output = run(&["send", "row.restored", "--to", &url]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("row.restored is none of the service's types"));
    let output = run(&["send", "member.invited", "--to", &url]);
    assert!(stderr(&output).contains("made up"));
    let output = run(&["send", "row.deleted", "--to", &url]);
    assert_eq!(stderr(&output), "");
}

#[test]
fn a_server_that_does_not_answer_is_distinguished_from_an_unreachable_one() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let started = Instant::now();
    let output = run(&["send", "row.created", "--to", &url]);
    assert!(started.elapsed() >= Duration::from_secs(5));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stdout(&output).contains("no answer within 5 s"),
        "{}",
        stdout(&output)
    );

    drop(listener);
    let output = run(&["send", "row.created", "--to", &url]);
    assert_eq!(output.status.code(), Some(4));
    let said = stderr(&output);
    assert!(
        said.contains("no answer from 127.0.0.1:") && said.contains("is the receiver running"),
        "{said}"
    );
}

#[test]
fn a_redirect_is_an_answer_and_is_not_followed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = vec![0; 64 << 10];
        let length = stream.read(&mut request).unwrap();
        let head =
            format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{address}/next\r\n");
        write!(
            stream,
            "{head}content-length: 0\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        listener.set_nonblocking(true).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        assert!(listener.accept().is_err(), "nobody came again");
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let url = format!("http://{address}/hooks?a=1");
    let twice = [
        "--header=X-Mine: 1",
        "--header",
        "x-mine: 2",
        "--header=User-Agent: curl",
    ];
    let output = run(&[["send", "row.created", "--to", &url].as_slice(), &twice].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stdout(&output).contains("the service does not follow"),
        "{}",
        stdout(&output)
    );
    let request = served.join().unwrap();
    assert!(
        request.starts_with("POST /hooks?a=1 HTTP/1.1\r\n"),
        "{request}"
    );
    assert_eq!(request.matches("x-mine: ").count(), 2);
    assert!(request.contains("user-agent: curl") && !request.contains("Service-Webhook"));
}

#[test]
fn a_printed_curl_command_delivers_the_same() {
    if !crate::process::tools_are_there(&["curl"], "the printed curl command") {
        return;
    }
    let (mut example, url) = receiver();
    let output = run(&[
        "send",
        "row.created",
        "--id=evt_curl",
        "--to",
        &url,
        "--dry-run=curl",
        "--set=data.properties.Customer=O'Neil \"the\\first\" $HOME `id` é",
    ]);
    let command = stdout(&output);
    assert!(command.starts_with("curl -i --url "), "{command}");
    assert_eq!(example.count_lines_with("evt_curl"), 0);
    let sent = Command::new("sh").args(["-c", &command]).output().unwrap();
    assert!(sent.status.success(), "{}", stderr(&sent));
    // Longer than the longest argument of a program.
    let long = |name: &str| format!("--set=data.properties.{name}={}", "é".repeat(40_000));
    let (one, other) = (long("One"), long("Other"));
    let output = run(&[
        "send",
        "row.created",
        "--id=evt_long",
        "--to",
        &url,
        "--dry-run=curl",
        &one,
        &other,
    ]);
    let mut child = Command::new("sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(&output.stdout)
        .unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    example.line_with("evt_long row.created: Ada Lovelace ordered");
    example.line_with("evt_curl row.created: O'Neil \"the\\first\" $HOME `id` é ordered");
}
