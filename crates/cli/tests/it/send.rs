//! `hookgate send`, run as a user runs it: a program with arguments, pipes and an exit code.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use hookgate::{
    Secret, Verifier,
    clock::UnixSeconds,
    verify::{DeliveryHeaders, VerifyErrorKind},
};
use hookgate_testing::factory::EVENT_TYPES;
use serde_json::{Value, json};

use crate::cli::{Ran, SECRET, hookgate, typed};
use crate::process::Example;

fn send(line: &str) -> Ran {
    Ran::typed(&format!("send {line}"))
}

/// The output of `--dry-run --json`: headers by name, and the body.
fn dry_run(options: &str) -> (Vec<(String, String)>, String) {
    let line = format!("--to http://127.0.0.1:1/hooks --dry-run --json {options}");
    let value = send(&line).ends(0).json();
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
    let verifier = Verifier::new(Secret::new(SECRET).unwrap());
    let verified = verifier.verify(&head.unwrap(), body.as_bytes(), now);
    verified.map(drop).map_err(|error| error.kind())
}

fn parsed(body: &str) -> Value {
    serde_json::from_str(body).unwrap()
}

/// The example `receiver`, and the URL of its deliveries.
pub(crate) fn receiver() -> (Example, String) {
    let example = Example::start_with("receiver", &["--try"], &[]);
    let url = format!("http://{}/webhooks", example.address);
    (example, url)
}

#[test]
fn what_it_would_send_is_authentic_and_says_so_in_the_services_headers() {
    for event_type in EVENT_TYPES {
        let (headers, body) = dry_run(&format!("{event_type} --subscription wh_7"));
        assert_eq!(verdict(&headers, &body), Ok(()), "{event_type}");
        let event = parsed(&body);
        assert_eq!(event["type"], event_type);
        for (name, value) in [
            ("x-service-event-type", event_type),
            ("x-service-event-id", event["id"].as_str().unwrap()),
            ("x-service-webhook-id", "wh_7"),
            ("user-agent", "Service-Webhook/1.0"),
            ("content-type", "application/json"),
        ] {
            assert_eq!(header(&headers, name), value, "{event_type}: {name}");
        }
    }
    let (headers, one) = dry_run("row.created");
    let (_, other) = dry_run("row.created");
    let id = header(&headers, "x-service-webhook-id");
    assert_eq!(id, "wh_1", "the service names one on each delivery");
    assert_ne!(
        parsed(&one)["id"],
        parsed(&other)["id"],
        "each has an id of its own"
    );
}

#[test]
fn places_are_set_as_they_are_written() {
    let places = "--set=data.properties.Total=12.50 --set data.properties.Note=a=b --set data.new.place=18446744073709551617";
    let (headers, body) = dry_run(&format!("row.created --id=evt_mine {places}"));
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
    let to = "--to=http://127.0.0.1:1/";
    let ran = Ran::fed(
        &mut typed(&format!("send {to} --dry-run --body=-")),
        body.as_bytes(),
    );
    assert!(ran.stdout.ends_with(&format!("\n\n{body}\n")), "{ran:?}");
    let head = "POST / HTTP/1.1\nhost: 127.0.0.1:1\n";
    ran.begins(head);
    let length = format!("content-length: {}\n", body.len());
    ran.says(&[&length, "x-service-event-id: evt_b\n"]);
    let ran = send(&format!("{to} --body=/nowhere/at-all.json")).ends(3);
    ran.tells(&["/nowhere/at-all.json can't be read"]);
}

#[test]
fn ages_and_tampering_are_refused_as_they_should_be() {
    let refused = |options: &str| {
        let (headers, body) = dry_run(&format!("row.created {options}"));
        verdict(&headers, &body).err()
    };
    assert_eq!(refused("--age=290s"), None);
    assert_eq!(refused("--age -4m"), None);
    let stale = refused("--age=400s");
    assert!(
        matches!(stale, Some(VerifyErrorKind::Stale(_))),
        "{stale:?}"
    );
    let ahead = refused("--age=-6m");
    assert!(
        matches!(ahead, Some(VerifyErrorKind::Ahead(_))),
        "{ahead:?}"
    );
    for what in ["body", "signature", "timestamp"] {
        let tampered = refused(&format!("--tamper {what}"));
        assert_eq!(tampered, Some(VerifyErrorKind::SignatureMismatch), "{what}");
    }
    let (headers, body) = dry_run("row.created --tamper=header");
    assert_eq!(verdict(&headers, &body), Ok(()), "the header is not signed");
    assert_ne!(header(&headers, "x-service-event-id"), parsed(&body)["id"]);
}

#[test]
fn an_age_is_that_of_the_event_and_its_signature() {
    let (headers, body) = dry_run("row.created --age=1h");
    let timestamp: i64 = header(&headers, "x-service-timestamp").parse().unwrap();
    let now = hookgate::clock::Clock::now(&hookgate::clock::SystemClock).as_i64();
    assert!((now - timestamp - 3_600).abs() < 30);
    let created = hookgate_testing::iso8601(UnixSeconds::new(timestamp));
    let event = parsed(&body);
    let created_at = event["createdAt"].as_str().unwrap();
    assert_eq!(created_at[..16], created[..16], "to the minute");
}

#[test]
fn answers_are_printed_with_what_they_mean() {
    let (mut example, url) = receiver();
    let send = |options: &str| send(&format!("row.created --to {url} {options}"));
    let ran = send("--id=evt_1 --set=data.properties.Total=12.50 --repeat=2").ends(0);
    example.line_with("evt_1 row.created: Ada Lovelace ordered for 12.50");
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert!(
        lines[0].starts_with("evt_1 row.created: 204 in "),
        "{ran:?}"
    );
    assert!(
        lines[1].starts_with("evt_1 row.created: 200 in "),
        "{ran:?}"
    );
    assert!(lines[2].contains("handled before"), "{ran:?}");

    for (option, status, says) in [
        ("--tamper=body", "401", "not authentic or not fresh"),
        ("--age=400s", "401", "a clock that is off"),
        ("--tamper=header", "400", "a header names another event"),
        (
            "--set=data.properties.Total=much",
            "422",
            "does not fit the type",
        ),
        ("--set=id=", "400", "no usable id"),
        (
            "--header=content-type:~text/plain",
            "415",
            "application/json",
        ),
    ] {
        let ran = send(option).ends(1);
        ran.says(&[
            &format!(": {status} in "),
            says,
            "the receiver said: {\"error\"",
        ]);
    }

    let lines = send("--json --repeat=3 --id=evt_3").lines();
    let statuses: Vec<_> = lines.iter().map(|line| &line["status"]).collect();
    assert_eq!(statuses, [204, 200, 200]);
    assert_eq!(lines[0]["eventId"], "evt_3");
    assert_eq!(
        json!([lines[0]["replayed"], lines[1]["replayed"]]),
        json!([false, true])
    );
}

#[test]
fn types_that_are_made_up_are_sent_with_a_note() {
    let (_example, url) = receiver();
    let none = "is none of the service's types";
    for (event_type, code, told) in [
        (
            "row.craeted",
            2,
            format!("row.craeted {none}: did you mean row.created?"),
        ),
        ("row.restored", 0, format!("row.restored {none}")),
        ("member.invited", 0, "made up".to_owned()),
    ] {
        let ran = send(&format!("{event_type} --to {url}"));
        assert_eq!(
            ran.tells(&[&told]).code,
            Some(code),
            "{event_type}: {ran:?}"
        );
    }
    send(&format!("row.deleted --to {url}")).warns_of_nothing();
}

#[test]
fn a_server_that_does_not_answer_is_distinguished_from_an_unreachable_one() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let line = format!(
        "row.created --to http://{}/",
        listener.local_addr().unwrap()
    );
    let started = Instant::now();
    send(&line).ends(1).says(&["no answer within 5 s"]);
    assert!(started.elapsed() >= Duration::from_secs(5));
    drop(listener);
    let ran = send(&line).ends(4);
    ran.tells(&["no answer from 127.0.0.1:", "is the receiver running"]);
}

#[test]
fn a_redirect_is_an_answer_and_is_not_followed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = vec![0; 64 << 10];
        let length = stream.read(&mut request).unwrap();
        let status =
            "HTTP/1.1 307 Temporary Redirect\r\nconnection: close\r\ncontent-length: 0\r\n";
        write!(stream, "{status}location: http://{address}/next\r\n\r\n").unwrap();
        listener.set_nonblocking(true).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        assert!(listener.accept().is_err(), "nobody came again");
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let headers = "--header=X-Mine:~1 --header x-mine:~2 --header=User-Agent:~curl";
    let ran = send(&format!(
        "row.created --to http://{address}/hooks?a=1 {headers}"
    ))
    .ends(1);
    ran.says(&["the service does not follow"]);
    let request = served.join().unwrap();
    let line = "POST /hooks?a=1 HTTP/1.1\r\n";
    assert!(request.starts_with(line), "{request}");
    assert_eq!(request.matches("x-mine: ").count(), 2);
    assert!(request.contains("user-agent: curl"), "{request}");
    assert!(!request.contains("Service-Webhook"), "{request}");
}

#[test]
fn a_printed_curl_command_delivers_the_same() {
    if !crate::process::tools_are_there(&["curl"], "the printed curl command") {
        return;
    }
    let (mut example, url) = receiver();
    let printed = |id: &str, set: &[&str]| {
        let always = [
            "send",
            "row.created",
            "--id",
            id,
            "--to",
            &url,
            "--dry-run=curl",
        ];
        let mut command = hookgate(&[&always, set].concat());
        Ran::to_its_end(command.env("WEBHOOK_SECRET", SECRET)).stdout
    };
    let odd = "--set=data.properties.Customer=O'Neil \"the\\first\" $HOME `id` é";
    let command = printed("evt_curl", &[odd]);
    assert!(command.starts_with("curl -i --url "), "{command}");
    assert_eq!(example.count_lines_with("evt_curl"), 0);
    Ran::to_its_end(Command::new("sh").args(["-c", &command])).ends(0);
    // Longer than the longest argument of a program.
    let long = |name: &str| format!("--set=data.properties.{name}={}", "é".repeat(40_000));
    let command = printed("evt_long", &[&long("One"), &long("Other")]);
    Ran::fed(&mut Command::new("sh"), command.as_bytes()).ends(0);
    example.line_with("evt_long row.created: Ada Lovelace ordered");
    example.line_with("evt_curl row.created: O'Neil \"the\\first\" $HOME `id` é ordered");
}
