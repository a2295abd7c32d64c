//! Over pipes: lines for people, JSON for programs, and the answers to the sender.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, ExitStatus};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use hookgate_record::LoggedDelivery;
use hookgate_testing::DeliveryLog;
use hookgate_testing::log::LoggedDeliveryExt;
use serde_json::{Value, json};

use crate::cli::{Folder, OTHER, PATIENCE, Ran, SECRET, ends, has, typed, until};
use crate::process::{Reply, row_created, signed};

const NO_CONTENT: &str = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";

/// A listener whose output is read line by line.
struct Listening {
    child: Child,
    lines: mpsc::Receiver<String>,
    address: String,
    /// The first line that it printed.
    first: String,
}

impl Listening {
    fn start(options: &str) -> Self {
        Self::reading(options, read)
    }

    /// With what reads its lines after the first one.
    fn reading(
        options: &str,
        read: impl FnOnce(BufReader<ChildStdout>) -> mpsc::Receiver<String>,
    ) -> Self {
        let line = format!("listen --addr 127.0.0.1:0 {options}");
        let mut child = typed(&line).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        output.read_line(&mut first).unwrap();
        let (lines, address) = (read(output), address(&first));
        Self {
            child,
            lines,
            address,
            first,
        }
    }

    /// The next line, as soon as it was written.
    fn line(&mut self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line in time")
    }

    /// The next line has each of these texts.
    #[track_caller]
    fn shows(&mut self, texts: &[&str]) -> String {
        let line = self.line();
        has(&line, texts);
        line
    }

    fn json(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    fn deliver(&self, body: &str) -> Reply {
        self.send(&signed(SECRET, body, 0), body)
    }

    fn row(&self, id: &str) -> u16 {
        self.deliver(&row_created(id, "{}")).status
    }

    fn send(&self, headers: &[(&str, String)], body: &str) -> Reply {
        Reply::to(&self.address, "POST", "/webhooks", headers, body)
    }

    /// Signed with another secret. The body is refused, so it has the id and the type of its
    /// headers.
    fn forged(&self, body: &str, header: (&'static str, &str)) -> u16 {
        let mut headers = signed(OTHER, body, 0);
        headers.push((header.0, header.1.to_owned()));
        self.send(&headers, body).status
    }

    #[cfg(unix)]
    fn signal(&self, name: &str) {
        crate::process::signal(&self.child, name);
    }

    fn end(&mut self) -> ExitStatus {
        ends(&mut self.child)
    }

    fn errors(&mut self) -> String {
        std::io::read_to_string(self.child.stderr.take().unwrap()).unwrap()
    }

    /// What the page lists.
    fn listed(&self) -> Value {
        let page = self
            .first
            .split("http://")
            .nth(2)
            .expect("an address of a page");
        let page = page.split('/').next().unwrap();
        let list = Reply::to(page, "GET", "/_listen/deliveries", &[], "");
        serde_json::from_str(&list.body).unwrap()
    }
}

/// HOST:PORT, as the first line says.
fn address(first: &str) -> String {
    let rest = first.split("http://").nth(1);
    let rest = rest.expect("a line that says where it listens");
    rest.split('/').next().unwrap().to_owned()
}

/// Lines as they come, so that waiting for one can end.
fn read(output: BufReader<ChildStdout>) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let lines = output.lines().map_while(Result::ok);
        lines.for_each(|line| drop(sender.send(line)));
    });
    lines
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn each_delivery_is_a_line_with_its_verdict_and_its_reason() {
    let mut listening = Listening::start("");
    let body = row_created("evt_1", "{}");
    assert_eq!(listening.deliver(&body).status, 204);
    let line = listening.line();
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(
        words[1..5],
        ["204", "handled", "row.created", "evt_1"],
        "{line}"
    );
    assert_eq!(words[6], "ms", "{line}");
    let at = hookgate::event::Date::parse(words[0]).expect(&line);
    assert_eq!(at.offset_seconds(), Some(0), "{line}");

    assert!(listening.deliver(&body).is_replay());
    listening.shows(&[" 200 replayed "]);
    let subscription = ("X-Service-Webhook-Id", "wh_orders");
    assert_eq!(listening.forged(&body, subscription), 401);
    let line = listening.shows(&[" 401 not_authentic ", "signature is not that of"]);
    let claimed = "(claimed subscription, unproven: wh_orders)";
    assert!(line.ends_with(claimed), "{line}");
    // Where the body has no id and type, the headers give them.
    let mut headers = signed(SECRET, "{}", 301);
    headers.push(("X-Service-Event-Id", "evt_stale".into()));
    assert_eq!(listening.send(&headers, "{}").status, 401);
    listening.shows(&["evt_stale"]);
    // Another path is the first mistake that users make.
    let elsewhere = "POST /?a=b: deliveries are taken at /webhooks";
    for (method, path, status, shown) in [
        ("GET", "/webhooks", 405, [" 405 method_not_allowed ", ""]),
        ("POST", "/?a=b", 404, [" 404 wrong_path ", elsewhere]),
    ] {
        let reply = Reply::to(&listening.address, method, path, &[], "");
        assert_eq!(reply.status, status, "{method} {path}");
        listening.shows(&shown);
    }
}

// fault F7: a stranger writes the log: methods of any length, and a WARN line for each request
#[test]
fn long_text_of_a_sender_is_shown_in_part() {
    let mut listening = Listening::start("");
    let long = "M".repeat(100_000);
    let elsewhere = Reply::to(&listening.address, &long, "/", &[], "");
    assert_eq!(elsewhere.status, 404);
    assert_eq!(listening.forged("{}", ("X-Service-Event-Id", &long)), 401);
    for shown in ["MM… /: deliveries are taken at /webhooks", "MM… "] {
        let line = listening.shows(&[shown]);
        assert!(line.len() < 1_000, "{line}");
    }
}

#[test]
fn json_lines_hold_what_a_delivery_log_would() {
    let mut listening = Listening::start("--json");
    let body = row_created("evt_1", r#"{"Total":12.50}"#);
    listening.deliver(&body);
    let line = listening.json();
    let of = |line: &Value, names: &[&str]| names.iter().map(|name| line[name].clone()).collect();
    let found: Value = of(
        &line,
        &[
            "status",
            "outcome",
            "eventType",
            "eventId",
            "authentic",
            "reason",
        ],
    );
    assert_eq!(
        found,
        json!([204, "handled", "row.created", "evt_1", true, null])
    );
    let delivery = LoggedDelivery::from_line(line["delivery"].to_string()).unwrap();
    assert_eq!(delivery.body.as_deref(), Some(body.as_bytes()));
    let verifier = hookgate::Verifier::new(hookgate::Secret::new(SECRET).unwrap());
    let head = delivery.head().unwrap();
    verifier.verify(&head, &body, delivery.received_at).unwrap();

    listening.forged(&body, ("X-Service-Webhook-Id", "wh_orders"));
    let line = listening.json();
    let found: Value = of(&line, &["status", "authentic", "claimedSubscription"]);
    assert_eq!(found, json!([401, false, "wh_orders"]));
    has(line["reason"].as_str().unwrap(), &["signature"]);
}

#[test]
fn what_was_sent_can_not_act_on_the_terminal_that_reads_the_lines() {
    let mut listening = Listening::start("");
    let body = "{\"id\":\"evt_\\u001b[2J\\u202e\",\"type\":\"row.\\u0007\\nx\"}";
    let mut headers = signed(SECRET, body, 0);
    headers.push(("X-Service-Event-Id", "\u{9b}31m".into()));
    listening.send(&headers, body);
    listening.forged("no JSON", ("X-Service-Event-Type", "b\u{202e}c"));
    for _ in 0..2 {
        let line = listening.shows(&["\\u{"]);
        let acts = |char: char| char.is_control() || char == '\u{202e}';
        assert!(!line.contains(acts), "{line:?}");
    }
}

#[test]
fn answers_are_what_was_asked_for() {
    let mut listening = Listening::start("--status 503 --fail-first 1");
    for (id, status, reason) in [
        ("evt_1", 500, "--fail-first"),
        ("evt_1", 503, "--status 503"),
        ("evt_2", 503, "--status"),
    ] {
        assert_eq!(listening.row(id), status);
        listening.shows(&["handler_status", reason]);
    }
    // Longer than the budget: the sender gets a 503 and tries again later, and the run continues to
    // its end.
    let mut slow = Listening::start("--delay 5s --status 202");
    let body = row_created("evt_slow", "{}");
    let begun = Instant::now();
    assert_eq!(slow.deliver(&body).status, 503);
    assert!(begun.elapsed() < PATIENCE);
    slow.shows(&[" 503 runs_on "]);
    // The copy waited for the run's end.
    assert!(slow.deliver(&body).is_replay());
    // Two lines, in the order in which they were known: what the run answered at last, and the
    // copy.
    let lines = [slow.line(), slow.line()];
    let late = |line: &&String| line.contains(" 202 handled ") && line.contains("late: ");
    assert_eq!(lines.iter().filter(late).count(), 1, "{lines:?}");
    let copy = |line: &&String| line.contains(" 200 replayed ");
    assert_eq!(lines.iter().filter(copy).count(), 1, "{lines:?}");
}

/// A server that keeps the bytes received, and gives one answer to each connection.
struct Backend {
    address: String,
    requests: mpsc::Receiver<(String, Vec<u8>)>,
}

impl Backend {
    fn answering(answers: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, requests) = mpsc::channel();
        std::thread::spawn(move || {
            for answer in answers {
                let (stream, _) = listener.accept().unwrap();
                sender.send(serve(stream, answer)).unwrap();
            }
        });
        Self { address, requests }
    }

    /// The next request: its head, and its body.
    fn request(&self) -> (String, Vec<u8>) {
        self.requests.recv_timeout(PATIENCE).unwrap()
    }
}

fn serve(mut stream: TcpStream, answer: &str) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0);
    }
    let mut lines = head.lines();
    let length = lines.find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    stream.write_all(answer.as_bytes()).unwrap();
    (head, body)
}

#[test]
fn verified_deliveries_are_passed_on_byte_for_byte_and_answered_as_there() {
    let backend = Backend::answering(&[
        "HTTP/1.1 201 Created\r\nX-From-There: yes\r\nConnection: close\r\nContent-Length: 4\r\n\r\nkept",
        "HTTP/1.1 422 Unprocessable Entity\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        NO_CONTENT,
    ]);
    let address = &backend.address;
    let mut listening = Listening::start(&format!("--forward http://{address}/hooks?a=1"));
    let note = "{ \"Note\":\"\\u00e9 \\/ \u{1f9fe}\" ,\"Total\":12.50 }";
    let body = row_created("evt_1", note);
    let mut headers = signed(SECRET, &body, 0);
    headers.push(("X-Service-Event-Id", "evt_1".into()));
    headers.push(("Keep-Alive", "5".into()));
    headers.push(("User-Agent", "Service-Webhook/1.0".into()));
    let reply = listening.send(&headers, &body);
    assert_eq!((reply.status, &*reply.body), (201, "kept"));
    assert!(reply.has("x-from-there: yes"));
    let (head, passed_on) = backend.request();
    assert_eq!(passed_on, body.as_bytes());
    assert!(head.starts_with("POST /hooks?a=1 HTTP/1.1\r\n"), "{head}");
    has(&head, &[&format!("host: {address}\r\n")]);
    for (name, value) in &headers {
        let line = format!("{}: {value}\r\n", name.to_ascii_lowercase());
        assert_eq!(head.contains(&line), *name != "Keep-Alive", "{line}{head}");
    }
    // An event done there is done here, and goes there no second time. A forged one does not go
    // there at all.
    assert!(listening.deliver(&body).is_replay());
    assert_eq!(listening.forged(&body, ("X-Other", "1")), 401);
    // A delivery that failed there is tried again.
    let body = row_created("evt_2", "{}");
    for status in [422, 204] {
        assert_eq!(listening.deliver(&body).status, status);
        assert_eq!(backend.request().1, body.as_bytes());
    }
    // The server is gone.
    assert_eq!(listening.row("evt_3"), 502);
    let lines: Vec<_> = (0..6).map(|_| listening.line()).collect();
    has(&lines[3], &["answered 422"]);
    has(&lines[5], &[" 502 handler_status ", "no answer from"]);
}

#[test]
fn the_answer_of_the_forwarded_server_is_in_the_line_in_json_and_in_the_log() {
    const FAILED: &str = r#"{"error":"NullPointer at line 5"}"#;
    const ANSWER: &str = "HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nSet-Cookie: a=made_up\r\nConnection: close\r\nContent-Length: 33\r\n\r\n{\"error\":\"NullPointer at line 5\"}";
    let folder = Folder::new();
    let log = folder.path("log.jsonl");
    let backend = Backend::answering(&[ANSWER, ANSWER]);
    let forward = format!("--forward http://{}/", backend.address);
    let mut plain = Listening::start(&forward);
    assert_eq!(plain.deliver(&row_created("evt_1", "{}")).body, FAILED);
    let line = plain.line();
    assert!(line.ends_with(&format!("answered 500: {FAILED}")), "{line}");

    let mut json = Listening::start(&format!("{forward} --json --record {log}"));
    json.row("evt_1");
    let line = json.json();
    let answer = &line["delivery"]["answer"];
    assert!(answer["elapsedUs"].is_u64(), "{answer}");
    assert_eq!(
        json!([answer["status"], answer["body"]]),
        json!([500, FAILED])
    );
    let kind = r#"["content-type","application/json"]"#;
    has(
        &answer["headers"].to_string(),
        &[kind, r#"["set-cookie","[redacted]"]"#],
    );
    until(|| std::fs::read_to_string(&log).is_ok_and(|log| log.ends_with('\n')));
    let logged = DeliveryLog::open(&log).unwrap();
    let answer = logged.deliveries()[0].answer.clone().unwrap();
    assert_eq!(answer.body.as_deref(), Some(FAILED.as_bytes()));
    // The command shows it too.
    let shown = Ran::typed(&format!("log show {log} 1")).stdout;
    let (head, rest) = shown
        .split_once("\nbody of the answer: 33 bytes\n\n")
        .unwrap();
    has(head, &["answered 500 handler_status"]);
    assert!(
        rest.starts_with("content-type: application/json\n"),
        "{rest}"
    );
    has(
        rest,
        &["\n\n{\n  \"error\": \"NullPointer at line 5\"\n}\n\nbody: "],
    );
}

#[test]
fn what_comes_faster_than_it_is_read_is_counted() {
    let mut output = None;
    let listening = Listening::reading("--json", |lines| {
        output = Some(lines.lines());
        mpsc::channel().1
    });
    // The display's queue takes 1,024, and the pipe some more.
    for _ in 0..1_400 {
        listening.row("evt_1");
    }
    let missed = output.unwrap().find_map(|line| {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        line["notShown"].as_u64()
    });
    assert!(matches!(missed, Some(1..400)), "{missed:?}");
}

#[test]
fn a_custom_body_answers_and_headers_are_set_on_what_is_passed_on() {
    for (body, kind) in [
        (r#"{"ok":true}"#, "application/json"),
        ("thanks", "text/plain; charset=utf-8"),
    ] {
        let listening = Listening::start(&format!("--body {body}"));
        let reply = listening.deliver(&row_created("evt_1", "{}"));
        assert_eq!((reply.status, &*reply.body), (200, body));
        assert!(reply.has(&format!("content-type: {kind}")), "{body}");
    }
    let backend = Backend::answering(&[NO_CONTENT]);
    let set = "--header X-Tenant:~acme --header user-agent:~local --header Host:~shop.test";
    let listening = Listening::start(&format!("--forward http://{}/ {set}", backend.address));
    let body = row_created("evt_1", "{}");
    let mut headers = signed(SECRET, &body, 0);
    headers.push(("User-Agent", "Service-Webhook/1.0".into()));
    assert_eq!(listening.send(&headers, &body).status, 204);
    let (head, _) = backend.request();
    has(
        &head,
        &[
            "x-tenant: acme\r\n",
            "user-agent: local\r\n",
            "host: shop.test\r\n",
        ],
    );
    assert!(!head.contains("Service-Webhook"), "{head}");
}

#[test]
fn other_types_than_those_of_events_go_nowhere_and_a_filter_chooses_lines() {
    let backend = Backend::answering(&[
        "HTTP/1.1 202 Accepted\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    ]);
    let forward = format!("--forward http://{}/", backend.address);
    let mut listening = Listening::start(&format!("{forward} --events row.deleted,row.c*"));
    let other = r#"{"id":"evt_page","type":"page.created"}"#;
    assert_eq!(listening.deliver(other).status, 204);
    assert_eq!(listening.row("evt_1"), 202);
    // The type of a forged one is not known.
    assert_eq!(listening.forged(other, ("X-Other", "1")), 401);
    listening.shows(&["evt_1"]);
    listening.shows(&["evt_page"]);
    #[cfg(unix)]
    {
        assert_eq!(
            listening
                .deliver(&other.replace("evt_page", "evt_2"))
                .status,
            204
        );
        listening.signal("TERM");
        assert!(listening.end().success());
        let errors = listening.errors();
        let first = "page.created is none of --events: answered 204";
        assert_eq!(errors.matches(first).count(), 1, "{errors}");
        has(&errors, &["2 deliveries were left out by --events"]);
    }

    let filter = r#"data.properties.Customer:"Ada~L"~type:row"#;
    let mut filtered = Listening::start(&format!("--filter {filter}"));
    for (id, customer) in [
        ("evt_1", "Ada Smith"),
        ("evt_2", "Ada Lovelace"),
        ("evt_3", "Bo"),
    ] {
        filtered.deliver(&row_created(id, &format!(r#"{{"Customer":"{customer}"}}"#)));
    }
    filtered.shows(&["evt_2"]);
    let more = filtered.lines.recv_timeout(Duration::from_millis(200));
    assert!(more.is_err(), "{more:?}");
}

#[test]
fn a_line_of_the_log_that_cannot_be_read_is_named_and_the_rest_is_shown() {
    let folder = Folder::new();
    let log = folder.path("broken.jsonl");
    let recording = Listening::start(&format!("--record {log}"));
    recording.row("evt_1");
    recording.row("evt_2");
    let mut whole = String::new();
    until(|| {
        whole = std::fs::read_to_string(&log).unwrap_or_default();
        whole.lines().count() == 2 && whole.ends_with('\n')
    });
    let (first, second) = whole.split_once('\n').unwrap();
    folder.file("broken.jsonl", format!("{first}\n{{\"recei\n{second}"));
    let mut listening = Listening::start(&format!("--page --log {log}"));
    let list = listening.listed();
    assert_eq!(list["meta"]["kept"], 2, "{list}");
    listening.child.kill().unwrap();
    has(&listening.errors(), &["line 2"]);
}

#[test]
fn everything_is_recorded_and_can_be_explained() {
    let folder = Folder::new();
    let log = folder.path("recorded.jsonl");
    let mut listening = Listening::start(&format!("--record {log}"));
    let body = row_created("evt_1", "{}");
    listening.deliver(&body);
    let other = row_created("evt_2", "{}");
    listening.send(&signed(SECRET, &format!("{other}\n"), 0), &other);
    let credentials = [("Authorization", "Bearer made-up".to_owned())];
    Reply::to(&listening.address, "POST", "/elsewhere", &credentials, "");
    let lines: Vec<_> = (0..3).map(|_| listening.line()).collect();
    #[cfg(unix)]
    {
        listening.signal("TERM");
        assert!(listening.end().success());
    }
    let recorded = DeliveryLog::open(&log).unwrap();
    let outcome = |it: &LoggedDelivery| it.answer.as_ref().unwrap().outcome.to_string();
    let outcomes: Vec<_> = recorded.deliveries().iter().map(outcome).collect();
    assert_eq!(
        outcomes,
        ["handled", "not_authentic", "wrong_path"],
        "{lines:#?}"
    );
    let first = &recorded.deliveries()[0];
    assert_eq!(first.body.as_deref(), Some(body.as_bytes()));
    assert!(!std::fs::read_to_string(&log).unwrap().contains("made-up"));
    // As in the detail of a refused one.
    let explained = Ran::typed(&format!("explain --log {log} --id evt_2")).ends(1);
    explained.says(&["one mistake"]);
}

#[test]
fn a_server_that_hangs_is_a_502() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("http://{}", silent.local_addr().unwrap());
    let mut listening = Listening::start(&format!("--forward {to} --forward-timeout 200ms"));
    assert_eq!(listening.row("evt_1"), 502);
    listening.shows(&["no answer within 0.2 s"]);
}

#[test]
fn a_late_answer_of_the_forwarded_server_is_shown_and_not_recorded() {
    let backend = Backend::answering(&[
        "HTTP/1.1 500 Oh\r\nContent-Length: 20\r\nConnection: close\r\n\r\n{\"error\":\"too late\"}",
    ]);
    let folder = Folder::new();
    let log = folder.path("late.jsonl");
    let forward = format!("--forward http://{}", backend.address);
    let mut listening = Listening::start(&format!("{forward} --delay 5s --record {log} --json"));
    assert_eq!(listening.row("evt_1"), 503);
    let first = listening.json();
    assert_eq!(first["outcome"], "runs_on", "{first}");
    let late = listening.json();
    assert_eq!(
        json!([late["outcome"], late["status"]]),
        json!(["handler_status", 500])
    );
    has(&late.to_string(), &["too late"]);
    assert!(late["elapsedMs"].as_f64().unwrap() >= 4_900.0, "{late}");
    let recorded = std::fs::read_to_string(&log).unwrap();
    assert_eq!(recorded.lines().count(), 1, "{recorded}");
}

#[test]
fn a_reader_that_closes_the_pipe_ends_listen_without_an_error() {
    let mut listening = Listening::reading("", |_| mpsc::channel().1);
    // Its line can't be written; this is how it notices.
    listening.row("evt_1");
    assert!(listening.end().success());
    assert_eq!(listening.errors(), "");
}

#[cfg(unix)]
#[test]
fn a_signal_lets_runs_come_to_their_end() {
    for (signal, code) in [("INT", 130), ("TERM", 0)] {
        let mut listening = Listening::start("--delay 700ms");
        let body = row_created("evt_1", "{}");
        let mut stream = TcpStream::connect(&listening.address).unwrap();
        let head = |(name, value): &(&str, String)| format!("{name}: {value}\r\n");
        let headers: String = signed(SECRET, &body, 0).iter().map(head).collect();
        let length = body.len();
        write!(stream, "POST /webhooks HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}").unwrap();
        // Accepted by now: a second connection was served after it.
        Reply::to(&listening.address, "GET", "/", &[], "");
        listening.signal(signal);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
        assert_eq!(listening.end().code(), Some(code));
    }
}

#[test]
fn an_address_that_others_reach_is_warned_of() {
    let mut child = typed("listen --addr 0.0.0.0:0").spawn().unwrap();
    let mut warning = String::new();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    errors.read_line(&mut warning).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    has(&warning, &["other machines"]);
}

#[test]
fn the_first_line_says_where_the_page_is_and_the_page_has_what_arrived() {
    let listening = Listening::start("--page --json");
    let first: Value = serde_json::from_str(&listening.first).unwrap();
    has(first["listening"].as_str().unwrap(), &[&listening.address]);
    has(first["page"].as_str().unwrap(), &["http://127.0.0.1:"]);
    assert_eq!(listening.row("evt_1"), 204);
    until(|| {
        let list = listening.listed();
        let first = &list["data"][0];
        first["eventId"] == "evt_1" && first["state"] == "done"
    });
}
