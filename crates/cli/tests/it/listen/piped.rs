//! Over pipes: lines for people, JSON for programs, and the answers to the sender.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use hookgate_record::LoggedDelivery;
use hookgate_testing::DeliveryLog;
use hookgate_testing::log::LoggedDeliveryExt;
use serde_json::Value;

use crate::process::{Reply, row_created, signed};

const SECRET: &str = "whsec_made_up_for_the_pipes";

/// A generous time limit, so that a busy machine fails no test.
const PATIENCE: Duration = Duration::from_secs(60);

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hookgate"));
    command
        .args(["listen", "--addr", "127.0.0.1:0"])
        .args(arguments)
        .env("WEBHOOK_SECRET", SECRET)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A listener whose output is read line by line.
struct Listening {
    child: Child,
    lines: mpsc::Receiver<String>,
    address: String,
    /// The first line that it printed.
    first: String,
}

impl Listening {
    fn start(arguments: &[&str]) -> Self {
        let mut child = command(arguments).spawn().unwrap();
        let lines = read(child.stdout.take().unwrap());
        let mut listening = Self {
            child,
            lines,
            address: String::new(),
            first: String::new(),
        };
        let first = listening.line();
        listening.address = address(&first);
        listening.first = first;
        listening
    }

    /// The next line, as soon as it was written.
    fn line(&mut self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line in time")
    }

    fn json(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    fn deliver(&self, body: &str) -> Reply {
        self.send(&signed(SECRET, body, 0), body)
    }

    fn send(&self, headers: &[(&str, String)], body: &str) -> Reply {
        Reply::to(&self.address, "POST", "/webhooks", headers, body)
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    fn end(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "it goes on");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn errors(&mut self) -> String {
        let mut text = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        text
    }
}

/// HOST:PORT, as the first line says.
fn address(first: &str) -> String {
    let rest = first.split("http://").nth(1);
    let rest = rest.expect("a line that says where it listens");
    rest.split('/').next().unwrap().to_owned()
}

/// Lines as they come, so that waiting for one can end.
fn read(output: ChildStdout) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let output = BufReader::new(output).lines().map_while(Result::ok);
        output.for_each(|line| drop(sender.send(line)));
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
    let mut listening = Listening::start(&[]);
    let body = row_created("evt_1", "{}");
    assert_eq!(listening.deliver(&body).status, 204);
    let line = listening.line();
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(
        words[1..5],
        ["204", "handled", "row.created", "evt_1"],
        "{line}"
    );
    assert!(
        hookgate::event::Date::parse(words[0]).is_ok_and(|date| date.offset_seconds() == Some(0)),
        "{line}"
    );
    assert_eq!(words[6], "ms", "{line}");

    assert!(listening.deliver(&body).is_replay());
    assert!(listening.line().contains(" 200 replayed "));
    let mut headers = signed("whsec_made_up_and_another", &body, 0);
    headers.push(("X-Service-Webhook-Id", "wh_orders".into()));
    let forged = listening.send(&headers, &body);
    assert_eq!(forged.status, 401);
    let line = listening.line();
    assert!(
        line.contains(" 401 not_authentic ") && line.contains("signature is not that of"),
        "{line}"
    );
    assert!(
        line.ends_with("(claimed subscription, unproven: wh_orders)"),
        "{line}"
    );
    // Where the body has no id and type, the headers give them.
    let mut headers = signed(SECRET, "{}", 301);
    headers.push(("X-Service-Event-Id", "evt_stale".into()));
    assert_eq!(listening.send(&headers, "{}").status, 401);
    assert!(listening.line().contains("evt_stale"));
    assert_eq!(
        Reply::to(&listening.address, "GET", "/webhooks", &[], "").status,
        405
    );
    assert!(listening.line().contains(" 405 method_not_allowed "));
    // Another path is the first mistake that users make.
    assert_eq!(
        Reply::to(&listening.address, "POST", "/?a=b", &[], "").status,
        404
    );
    let line = listening.line();
    assert!(
        line.contains(" 404 wrong_path ")
            && line.contains("POST /?a=b: deliveries are taken at /webhooks"),
        "{line}"
    );
}

// fault F7: a stranger writes the log: methods of any length, and a WARN line for each request
#[test]
fn long_text_of_a_sender_is_shown_in_part() {
    let mut listening = Listening::start(&[]);
    let long = "M".repeat(100_000);
    let elsewhere = Reply::to(&listening.address, &long, "/", &[], "");
    assert_eq!(elsewhere.status, 404);
    let line = listening.line();
    assert!(
        line.len() < 1_000 && line.contains("MM… /: deliveries are taken at /webhooks"),
        "{line}"
    );
    let mut headers = signed("whsec_made_up_and_another", "{}", 0);
    headers.push(("X-Service-Event-Id", long));
    assert_eq!(listening.send(&headers, "{}").status, 401);
    let line = listening.line();
    assert!(line.len() < 1_000 && line.contains("MM… "), "{line}");
}

#[test]
fn json_lines_hold_what_a_delivery_log_would() {
    let mut listening = Listening::start(&["--json"]);
    let body = row_created("evt_1", r#"{"Total":12.50}"#);
    listening.deliver(&body);
    let line = listening.json();
    assert_eq!(
        (
            &line["status"],
            &line["outcome"],
            &line["eventType"],
            &line["eventId"]
        ),
        (
            &204.into(),
            &"handled".into(),
            &"row.created".into(),
            &"evt_1".into()
        )
    );
    assert_eq!(
        (&line["authentic"], &line["reason"]),
        (&true.into(), &Value::Null)
    );
    let delivery = LoggedDelivery::from_line(line["delivery"].to_string()).unwrap();
    assert_eq!(delivery.body.as_deref(), Some(body.as_bytes()));
    let secret = hookgate::Secret::new(SECRET).unwrap();
    let head = delivery.head().unwrap();
    assert!(
        hookgate::Verifier::new(secret)
            .verify(&head, &body, delivery.received_at)
            .is_ok()
    );

    let mut headers = signed("whsec_made_up_and_another", &body, 0);
    headers.push(("X-Service-Webhook-Id", "wh_orders".into()));
    listening.send(&headers, &body);
    let line = listening.json();
    assert_eq!(
        (&line["status"], &line["authentic"]),
        (&401.into(), &false.into())
    );
    assert_eq!(line["claimedSubscription"], "wh_orders");
    assert!(
        line["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("signature"))
    );
}

#[test]
fn what_was_sent_can_not_act_on_the_terminal_that_reads_the_lines() {
    let mut listening = Listening::start(&[]);
    let body = "{\"id\":\"evt_\\u001b[2J\\u202e\",\"type\":\"row.\\u0007\\nx\"}";
    let mut headers = signed(SECRET, body, 0);
    headers.push(("X-Service-Event-Id", "\u{9b}31m".into()));
    listening.send(&headers, body);
    let mut other = signed("whsec_made_up_and_another", body, 0);
    other.push(("X-Service-Event-Type", "b\u{202e}c".into()));
    listening.send(&other, "no JSON");
    for _ in 0..2 {
        let line = listening.line();
        assert!(
            !line
                .chars()
                .any(|char| char.is_control() || char == '\u{202e}'),
            "{line:?}"
        );
        assert!(line.contains("\\u{"), "{line}");
    }
}

#[test]
fn answers_are_what_was_asked_for() {
    let mut listening = Listening::start(&["--status", "503", "--fail-first", "1"]);
    for (id, status, reason) in [
        ("evt_1", 500, "--fail-first"),
        ("evt_1", 503, "--status 503"),
        ("evt_2", 503, "--status"),
    ] {
        assert_eq!(listening.deliver(&row_created(id, "{}")).status, status);
        let line = listening.line();
        assert!(
            line.contains("handler_status") && line.contains(reason),
            "{line}"
        );
    }
    // Longer than the budget: the sender gets a 503 and tries again later, and the run continues to its end.
    let mut slow = Listening::start(&["--delay", "5s", "--status", "202"]);
    let body = row_created("evt_slow", "{}");
    let begun = Instant::now();
    assert_eq!(slow.deliver(&body).status, 503);
    assert!(begun.elapsed() < PATIENCE);
    assert!(slow.line().contains(" 503 runs_on "));
    assert!(
        slow.deliver(&body).is_replay(),
        "the copy waited for the run's end"
    );
    // Two lines, in the order in which they were known: what the run answered at last, and the copy.
    let lines = [slow.line(), slow.line()];
    let late = |line: &String| line.contains(" 202 handled ") && line.contains("late: ");
    assert_eq!(
        lines.iter().filter(|line| late(line)).count(),
        1,
        "{lines:?}"
    );
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
}

fn serve(mut stream: TcpStream, answer: &str) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0);
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
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
        "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
    ]);
    let to = format!("http://{}/hooks?a=1", backend.address);
    let mut listening = Listening::start(&["--forward", &to]);
    let body = row_created(
        "evt_1",
        "{ \"Note\":\"\\u00e9 \\/ \u{1f9fe}\" ,\"Total\":12.50 }",
    );
    let mut headers = signed(SECRET, &body, 0);
    headers.push(("X-Service-Event-Id", "evt_1".into()));
    headers.push(("Keep-Alive", "5".into()));
    headers.push(("User-Agent", "Service-Webhook/1.0".into()));
    let reply = listening.send(&headers, &body);
    assert_eq!((reply.status, &*reply.body), (201, "kept"));
    assert!(reply.has("x-from-there: yes"));
    let (head, passed_on) = backend.requests.recv_timeout(PATIENCE).unwrap();
    assert_eq!(passed_on, body.as_bytes());
    assert!(head.starts_with("POST /hooks?a=1 HTTP/1.1\r\n"), "{head}");
    assert!(
        head.contains(&format!("host: {}\r\n", backend.address)),
        "{head}"
    );
    for (name, value) in &headers {
        let line = format!("{}: {value}\r\n", name.to_ascii_lowercase());
        assert_eq!(head.contains(&line), *name != "Keep-Alive", "{line}{head}");
    }
    // An event done there is done here, and goes there no second time.
    assert!(listening.deliver(&body).is_replay());
    // A forged one does not go there at all.
    assert_eq!(
        listening
            .send(&signed("whsec_made_up_and_another", &body, 0), &body)
            .status,
        401
    );
    // A delivery that failed there is tried again.
    let body = row_created("evt_2", "{}");
    assert_eq!(listening.deliver(&body).status, 422);
    assert_eq!(listening.deliver(&body).status, 204);
    assert_eq!(
        backend.requests.recv_timeout(PATIENCE).unwrap().1,
        body.as_bytes()
    );
    assert_eq!(
        backend.requests.recv_timeout(PATIENCE).unwrap().1,
        body.as_bytes()
    );
    // The server is gone.
    assert_eq!(listening.deliver(&row_created("evt_3", "{}")).status, 502);
    let lines: Vec<_> = (0..6).map(|_| listening.line()).collect();
    assert!(lines[3].contains("answered 422"), "{lines:#?}");
    assert!(
        lines[5].contains(" 502 handler_status ") && lines[5].contains("no answer from"),
        "{lines:#?}"
    );
}

#[test]
fn the_answer_of_the_forwarded_server_is_in_the_line_in_json_and_in_the_log() {
    const FAILED: &str = r#"{"error":"NullPointer at line 5"}"#;
    const ANSWER: &str = "HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nSet-Cookie: a=made_up\r\nConnection: close\r\nContent-Length: 33\r\n\r\n{\"error\":\"NullPointer at line 5\"}";
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("answered-{}.jsonl", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let backend = Backend::answering(&[ANSWER, ANSWER]);
    let to = format!("http://{}/", backend.address);
    let mut plain = Listening::start(&["--forward", &to]);
    assert_eq!(plain.deliver(&row_created("evt_1", "{}")).body, FAILED);
    let line = plain.line();
    assert!(line.ends_with(&format!("answered 500: {FAILED}")), "{line}");

    let log = path.to_str().unwrap();
    let mut json = Listening::start(&["--forward", &to, "--json", "--record", log]);
    json.deliver(&row_created("evt_1", "{}"));
    let line = json.json();
    let answer = &line["delivery"]["answer"];
    assert!(answer["elapsedUs"].is_u64(), "{answer}");
    assert_eq!(
        (&answer["status"], &answer["body"]),
        (&500.into(), &FAILED.into())
    );
    let headers = answer["headers"].to_string();
    assert!(
        headers.contains(r#"["content-type","application/json"]"#)
            && headers.contains(r#"["set-cookie","[redacted]"]"#),
        "{headers}"
    );
    let until = Instant::now() + PATIENCE;
    while !std::fs::read_to_string(&path).is_ok_and(|log| log.ends_with('\n')) {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(10));
    }
    let logged = DeliveryLog::open(&path).unwrap();
    let answer = logged.deliveries()[0].answer.clone().unwrap();
    assert_eq!(answer.body.as_deref(), Some(FAILED.as_bytes()));
    // The command shows it too.
    let mut show = Command::new(env!("CARGO_BIN_EXE_hookgate"));
    let shown = show.args(["log", "show", log, "1"]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let (head, rest) = shown
        .split_once("\nbody of the answer: 33 bytes\n\n")
        .unwrap();
    assert!(head.contains("answered 500 handler_status"), "{head}");
    assert!(
        rest.starts_with("content-type: application/json\n"),
        "{rest}"
    );
    let indented = "\n\n{\n  \"error\": \"NullPointer at line 5\"\n}\n\nbody: ";
    assert!(rest.contains(indented), "{rest}");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn what_comes_faster_than_it_is_read_is_counted() {
    let mut child = command(&["--json"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = address(&lines.next().unwrap().unwrap());
    let listening = Listening {
        first: String::new(),
        child,
        lines: mpsc::channel().1,
        address,
    };
    let body = row_created("evt_1", "{}");
    // The display's queue takes 1,024, and the pipe some more.
    for _ in 0..1_400 {
        listening.deliver(&body);
    }
    let missed = lines.find_map(|line| {
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
        let listening = Listening::start(&["--body", body]);
        let reply = listening.deliver(&row_created("evt_1", "{}"));
        assert_eq!((reply.status, &*reply.body), (200, body));
        assert!(reply.has(&format!("content-type: {kind}")), "{body}");
    }
    let backend = Backend::answering(&["HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"]);
    let to = format!("http://{}/", backend.address);
    let arguments = [
        "--forward",
        &to,
        "--header",
        "X-Tenant: acme",
        "--header",
        "user-agent: local",
        "--header",
        "Host: shop.test",
    ];
    let listening = Listening::start(&arguments);
    let body = row_created("evt_1", "{}");
    let mut headers = signed(SECRET, &body, 0);
    headers.push(("User-Agent", "Service-Webhook/1.0".into()));
    assert_eq!(listening.send(&headers, &body).status, 204);
    let (head, _) = backend.requests.recv_timeout(PATIENCE).unwrap();
    assert!(
        head.contains("x-tenant: acme\r\n")
            && head.contains("user-agent: local\r\n")
            && head.contains("host: shop.test\r\n")
            && !head.contains("Service-Webhook"),
        "{head}"
    );
}

#[test]
fn other_types_than_those_of_events_go_nowhere_and_a_filter_chooses_lines() {
    let backend = Backend::answering(&[
        "HTTP/1.1 202 Accepted\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    ]);
    let to = format!("http://{}/", backend.address);
    let mut listening = Listening::start(&["--forward", &to, "--events", "row.deleted,row.c*"]);
    let other = r#"{"id":"evt_page","type":"page.created"}"#;
    assert_eq!(listening.deliver(other).status, 204);
    assert_eq!(listening.deliver(&row_created("evt_1", "{}")).status, 202);
    // The type of a forged one is not known.
    assert_eq!(
        listening
            .send(&signed("whsec_made_up_and_another", other, 0), other)
            .status,
        401
    );
    assert!(listening.line().contains("evt_1"));
    assert!(listening.line().contains("evt_page"));
    #[cfg(unix)]
    {
        assert_eq!(
            listening
                .deliver(&other.replace("evt_page", "evt_2"))
                .status,
            204
        );
        listening.signal(rustix::process::Signal::TERM);
        assert!(listening.end().success());
        let errors = listening.errors();
        let first = "page.created is none of --events: answered 204";
        assert_eq!(errors.matches(first).count(), 1, "{errors}");
        assert!(
            errors.contains("2 deliveries were left out by --events"),
            "{errors}"
        );
    }

    let mut filtered =
        Listening::start(&["--filter", r#"data.properties.Customer:"Ada L" type:row"#]);
    for (id, customer) in [
        ("evt_1", "Ada Smith"),
        ("evt_2", "Ada Lovelace"),
        ("evt_3", "Bo"),
    ] {
        filtered.deliver(&row_created(id, &format!(r#"{{"Customer":"{customer}"}}"#)));
    }
    assert!(filtered.line().contains("evt_2"));
    assert!(
        filtered
            .lines
            .recv_timeout(Duration::from_millis(200))
            .is_err()
    );
}

#[test]
fn a_line_of_the_log_that_cannot_be_read_is_named_and_the_rest_is_shown() {
    let path =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("broken-{}.jsonl", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let log = path.to_str().unwrap();
    let recording = Listening::start(&["--record", log]);
    recording.deliver(&row_created("evt_1", "{}"));
    recording.deliver(&row_created("evt_2", "{}"));
    let until = Instant::now() + PATIENCE;
    let whole = loop {
        let whole = std::fs::read_to_string(&path).unwrap_or_default();
        if whole.lines().count() == 2 && whole.ends_with('\n') {
            break whole;
        }
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(10));
    };
    let (first, second) = whole.split_once('\n').unwrap();
    std::fs::write(&path, format!("{first}\n{{\"recei\n{second}")).unwrap();
    let mut listening = Listening::start(&["--page", "--log", log]);
    let page = listening.first.split("page at ").nth(1).map(address);
    let page = page.expect("an address of a page");
    let list = Reply::to(&page, "GET", "/_listen/deliveries", &[], "");
    let list: Value = serde_json::from_str(&list.body).unwrap();
    assert_eq!(list["meta"]["kept"], 2, "{list}");
    listening.child.kill().unwrap();
    let errors = listening.errors();
    assert!(errors.contains("line 2"), "{errors}");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn everything_is_recorded_and_can_be_explained() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("recorded-{}.jsonl", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let log = path.to_str().unwrap();
    let mut listening = Listening::start(&["--record", log]);
    let body = row_created("evt_1", "{}");
    listening.deliver(&body);
    let other = row_created("evt_2", "{}");
    listening.send(&signed(SECRET, &format!("{other}\n"), 0), &other);
    let credentials = [("Authorization", "Bearer made-up".to_owned())];
    Reply::to(&listening.address, "POST", "/elsewhere", &credentials, "");
    let lines: Vec<_> = (0..3).map(|_| listening.line()).collect();
    #[cfg(unix)]
    {
        listening.signal(rustix::process::Signal::TERM);
        assert!(listening.end().success());
    }
    let recorded = DeliveryLog::open(&path).unwrap();
    let outcomes: Vec<_> = recorded
        .deliveries()
        .iter()
        .map(|delivery| delivery.answer.as_ref().unwrap().outcome.clone())
        .collect();
    assert_eq!(
        outcomes,
        ["handled", "not_authentic", "wrong_path"],
        "{lines:#?}"
    );
    assert_eq!(
        recorded.deliveries()[0].body.as_deref(),
        Some(body.as_bytes())
    );
    assert!(!std::fs::read_to_string(&path).unwrap().contains("made-up"));
    // As in the detail of a refused one.
    let mut command = Command::new(env!("CARGO_BIN_EXE_hookgate"));
    command
        .args(["explain", "--log", log, "--id", "evt_2"])
        .env("WEBHOOK_SECRET", SECRET);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("one mistake"), "{said}");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_server_that_hangs_is_a_502() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("http://{}", silent.local_addr().unwrap());
    let mut listening = Listening::start(&["--forward", &to, "--forward-timeout", "200ms"]);
    assert_eq!(listening.deliver(&row_created("evt_1", "{}")).status, 502);
    assert!(listening.line().contains("no answer within 0.2 s"));
}

#[test]
fn a_late_answer_of_the_forwarded_server_is_shown_and_not_recorded() {
    let backend = Backend::answering(&[
        "HTTP/1.1 500 Oh\r\nContent-Length: 20\r\nConnection: close\r\n\r\n{\"error\":\"too late\"}",
    ]);
    let path = std::env::temp_dir().join(format!("hookgate-late-{}", std::process::id()));
    let log = path.to_str().unwrap();
    let to = format!("http://{}", backend.address);
    let arguments = ["--forward", &to, "--delay", "5s", "--record", log];
    let mut listening = Listening::start(&[&arguments[..], &["--json"]].concat());
    assert_eq!(listening.deliver(&row_created("evt_1", "{}")).status, 503);
    let first = listening.json();
    assert_eq!(first["outcome"], "runs_on", "{first}");
    let late = listening.json();
    assert_eq!(late["outcome"], "handler_status", "{late}");
    assert_eq!(late["status"], 500, "{late}");
    assert!(late.to_string().contains("too late"), "{late}");
    assert!(late["elapsedMs"].as_f64().unwrap() >= 4_900.0, "{late}");
    let recorded = std::fs::read_to_string(&path).unwrap();
    assert_eq!(recorded.lines().count(), 1, "{recorded}");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_reader_that_closes_the_pipe_ends_listen_without_an_error() {
    let mut child = command(&[]).spawn().unwrap();
    let mut first = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut first).unwrap();
    drop(output);
    let mut listening = Listening {
        first: String::new(),
        child,
        lines: mpsc::channel().1,
        address: address(&first),
    };
    // Its line can't be written; this is how it notices.
    listening.deliver(&row_created("evt_1", "{}"));
    assert!(listening.end().success());
    assert_eq!(listening.errors(), "");
}

#[cfg(unix)]
#[test]
fn a_signal_lets_runs_come_to_their_end() {
    use rustix::process::Signal;

    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 0)] {
        let mut listening = Listening::start(&["--delay", "700ms"]);
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
fn what_can_not_work_is_said_with_a_way_out() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (arguments, code, said, advice) in [
        (
            &["--addr", &taken][..],
            4,
            "can't listen on",
            "--addr 127.0.0.1:0",
        ),
        (&["--addr", "no-port"], 2, "no-port", "HOST:PORT"),
        (
            &["--secret-env", "NO_SUCH_VARIABLE"],
            5,
            "NO_SUCH_VARIABLE",
            "set it",
        ),
        (
            &["--forward", "localhost:3000"],
            2,
            "not a URL to deliver to",
            "http://localhost:8080/webhooks",
        ),
        (
            &["--record", "/no/such/directory/log.jsonl"],
            3,
            "can't be recorded to",
            "a directory that exists",
        ),
        (
            &["--page", "0.0.0.0:0"],
            2,
            "reached from other machines",
            "--page alone",
        ),
        (
            &["--page", "no.such.host.invalid:1"],
            4,
            "the page can't listen",
            "check the host",
        ),
        (&["--path", "webhooks"], 2, "--path", "begins with /"),
        (&["--path", "/a?b"], 2, "--path", "no query"),
        (&["--status", "100"], 2, "--status", "200 to 599"),
        (
            &["--status", "204", "--body", "x"],
            2,
            "an answer 204 has no body",
            "--body",
        ),
        (
            &["--events", "row.created, x"],
            2,
            "--events",
            "without blanks",
        ),
        (
            &["--events", "row.creatd"],
            2,
            "--events",
            "mean row.created?",
        ),
        (
            &["--events", "row.created,row"],
            2,
            "--events",
            "mean row.*?",
        ),
        (
            &["--header", "content-length: 3"],
            2,
            "--header",
            "content-length is the connection's own",
        ),
        (
            &["--header", "Transfer-Encoding: chunked"],
            2,
            "--header",
            "transfer-encoding is the connection's own",
        ),
        (
            &["--forward-timeout", "0s"],
            2,
            "--forward-timeout",
            "10s or 500ms",
        ),
        (&["--header", "X: 1"], 2, "--forward", "required"),
        (&["--log", "x.jsonl"], 2, "--page", "required"),
        (
            &["--page", "--log", "/no/such/log.jsonl"],
            3,
            "can't be read",
            "`hookgate listen`, with --record",
        ),
        (&["--delay", "6"], 2, "--delay", "30s"),
        (
            &["--status", "500", "--forward", "http://localhost:1/"],
            2,
            "cannot be used with",
            "--status",
        ),
    ] {
        // A second --addr would be a mistake of its own.
        let mut command = Command::new(env!("CARGO_BIN_EXE_hookgate"));
        command
            .arg("listen")
            .args(arguments)
            .env("WEBHOOK_SECRET", SECRET);
        if arguments[0] != "--addr" {
            command.args(["--addr", "127.0.0.1:0"]);
        }
        let output = command.stdin(Stdio::null()).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(
            errors.contains(said) && errors.contains(advice),
            "{arguments:?}: {errors}"
        );
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(!errors.contains(SECRET));
    }
}

#[test]
fn an_address_that_others_reach_is_warned_of() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hookgate"));
    command
        .args(["listen", "--addr", "0.0.0.0:0"])
        .env("WEBHOOK_SECRET", SECRET);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut warning = String::new();
    BufReader::new(child.stderr.take().unwrap())
        .read_line(&mut warning)
        .unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(warning.contains("other machines"), "{warning}");
}

#[test]
fn the_first_line_says_where_the_page_is_and_the_page_has_what_arrived() {
    let mut child = command(&["--page", "--json"]).spawn().unwrap();
    let lines = read(child.stdout.take().unwrap());
    let first: Value = serde_json::from_str(&lines.recv_timeout(PATIENCE).unwrap()).unwrap();
    let listening = Listening {
        child,
        lines,
        address: address(first["listening"].as_str().unwrap()),
        first: String::new(),
    };
    let page = address(first["page"].as_str().unwrap());
    assert_eq!(listening.deliver(&row_created("evt_1", "{}")).status, 204);
    let until = Instant::now() + PATIENCE;
    loop {
        let list = Reply::to(&page, "GET", "/_listen/deliveries", &[], "");
        let list: Value = serde_json::from_str(&list.body).unwrap();
        if list["data"][0]["eventId"] == "evt_1" {
            assert_eq!(list["data"][0]["state"], "done");
            break;
        }
        assert!(Instant::now() < until, "{list}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
