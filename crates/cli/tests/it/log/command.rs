//! `hookgate log`, over real pipes.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use hookgate::clock::UnixSeconds;
use hookgate_record::{LoggedAnswer, LoggedDelivery};
use hookgate_testing::log::DeliveryLog;
use serde_json::{Value, json};

use super::{delivery, delivery_of};
use crate::cli::{Folder, Ran, has, hookgate, typed};

/// Six deliveries: handled, refused, a duplicate, failed, one whose sender hung up, one refused on
/// its head.
fn log() -> [LoggedDelivery; 6] {
    let mut all = ["evt_1", "evt_2", "evt_1", "evt_3", "evt_4", "evt_5"].map(delivery);
    for (at, delivery) in all.iter_mut().enumerate() {
        delivery.received_at = UnixSeconds::new(1_763_690_000 + 60 * at as i64);
    }
    let refused =
        "delivery refused: not authentic or not fresh: the signature is not that of these bytes";
    for (at, status, outcome, reason) in [
        (1, 401, "not_authentic", Some(refused)),
        (2, 200, "replayed", None),
        (3, 500, "panicked", Some("\u{1b}[31mred\u{7}")),
        (5, 401, "not_authentic", Some("stale")),
    ] {
        let mut answer = LoggedAnswer::new(status, outcome);
        answer.reason = reason.map(Into::into);
        answer.elapsed = Duration::from_micros(1_500);
        all[at].answer = Some(answer);
    }
    let refused = all[1].answer.as_mut().unwrap();
    refused.claimed_subscription = Some("wh_\u{1b}1".to_owned());
    all[4].answer = None;
    all[4].hung_up_after = Some(Duration::from_secs(5));
    all[5].body = None;
    let typed = br#"{"id":"evt_3","type":"row.updated","n":1.50,"data":{"b":"\u00e9","a":[]}}"#;
    all[3].body = Some(Bytes::from_static(typed));
    all
}

fn written(folder: &Folder, name: &str, log: impl IntoIterator<Item = LoggedDelivery>) -> String {
    let mut file = Vec::new();
    let log: DeliveryLog = log.into_iter().collect();
    log.write_to(&mut file).unwrap();
    folder.file(name, file)
}

fn ran(line: &str) -> Ran {
    let mut command = typed(&format!("log {line}"));
    Ran::to_its_end(command.env_remove("WEBHOOK_SECRET"))
}

/// Filters of `log list`, and the lines that it prints with them.
const FILTERS: &[(&str, &[u64])] = &[
    ("", &[1, 2, 3, 4, 5, 6]),
    ("--line 4", &[4]),
    ("--line 7", &[]),
    ("--line 2 --type row.*", &[]),
    ("--type row.*", &[4]),
    ("--type row.updated --type page.created", &[1, 2, 3, 4, 5]),
    ("--outcome not_authentic", &[2, 6]),
    ("--outcome hung_up", &[5]),
    ("--outcome refused", &[2, 5, 6]),
    ("--outcome again --outcome failed", &[3, 4]),
    ("--status 4xx --status 500", &[2, 4, 6]),
    ("--id evt_1", &[1, 3]),
    ("--id evt_1 --status 200", &[3]),
    ("--since 2025-11-21T01:56:20Z", &[4, 5, 6]),
    ("--since 1763690300", &[6]),
    ("--since 1h", &[]),
    ("--search EVT_3", &[4]),
    ("--search Panicked", &[4]),
    ("--search signature~is~not", &[2]),
    ("--limit 2", &[1, 2]),
    ("--limit 1 --id evt_1", &[1]),
    ("--until 2025-11-21T01:55:20Z", &[1, 2]),
    ("--since 1763690060 --until 1763690180", &[2, 3]),
];

// fault E9: the command that explains a delivery takes `--line`, and the list of deliveries refuses it
#[test]
fn list_has_a_line_for_each_delivery_and_filters() {
    let folder = Folder::new();
    let path = written(&folder, "log.jsonl", log());
    let all = ran(&format!("list {path}")).ends(0).warns_of_nothing();
    let rows: Vec<_> = all.stdout.lines().collect();
    assert_eq!(rows.len(), 7);
    assert!(
        rows[0].starts_with("LINE ") && rows[0].ends_with("REASON"),
        "{}",
        rows[0]
    );
    let cells: Vec<_> = rows[2].split_whitespace().take(6).collect();
    let of_the_second = "2 2025-11-21T01:54:20Z 401 not_authentic page.created evt_2";
    assert_eq!(cells.join(" "), of_the_second);
    // What the outcome says already is not repeated.
    let reason = " evt_2             the signature is not that of these bytes (claimed subscription, unproven: wh_\\u{1b}1)";
    assert!(rows[2].ends_with(reason), "{}", rows[2]);
    let json = ran(&format!("list {path} --json --outcome not_authentic")).lines();
    assert_eq!(json[0]["claimedSubscription"], "wh_\u{1b}1");
    assert_eq!(json[1]["claimedSubscription"], Value::Null);
    let shown = ran(&format!("show {path} 2"));
    shown.says(&["  claimed subscription, unproven: wh_\\u{1b}1\n"]);
    // The text of a reason can't control a terminal.
    all.lacks(&["\u{1b}"]);
    has(rows[4], &["red"]);
    has(rows[5], &[" -       hung_up"]);

    for (filters, expected) in FILTERS {
        let listed = ran(&format!("list {path} --json {filters}"))
            .ends(0)
            .lines();
        let listed: Vec<_> = listed
            .iter()
            .map(|row| row["line"].as_u64().unwrap())
            .collect();
        assert_eq!(listed, *expected, "{filters:?}");
    }
    let one = &ran(&format!("list {path} --json --id evt_2")).lines()[0];
    let cells = ["status", "receivedAt", "elapsedMs", "verifiable"].map(|name| &one[name]);
    assert_eq!(
        json!(cells),
        json!([401, "2025-11-21T01:54:20Z", 1.5, false])
    );
    let none = ran(&format!("list {path} --outcome not_authentik")).ends(0);
    none.tells(&["no delivery of this log fits"]);
}

#[test]
fn what_is_missing_is_said_and_a_bad_line_named() {
    let folder = Folder::new();
    let line = delivery("evt_1").to_line();
    let torn = format!("{line}\n{{\"dropped\":7}}\n{line}\n{}", &line[..40]);
    let path = folder.file("log.jsonl", torn);
    let listed = ran(&format!("list {path} --json")).ends(0);
    assert_eq!(listed.lines().len(), 2);
    // The number is that of the line.
    assert_eq!(listed.lines()[1]["line"], 3);
    listed.tells(&["7 deliveries are missing", "the last line"]);

    let bad = folder.file("bad", format!("{line}\nno JSON\n{line}\n"));
    let bad = ran(&format!("list {bad} --json")).ends(3);
    assert_eq!(bad.lines().len(), 1);
    has(
        &bad.fault(),
        &["line 2 of the log is not a delivery", "sed '2d'"],
    );
    ran("list /no/such/log --json").ends(3).fault();
}

#[test]
fn a_log_comes_through_a_pipe_and_rotated_files_are_one() {
    let folder = Folder::new();
    let path = written(&folder, "log.jsonl", log());
    let piped = Ran::fed(&mut typed("log list - --json"), &fs::read(&path).unwrap());
    assert_eq!(piped.lines().len(), 6);
    fs::rename(&path, folder.path("log.jsonl.1")).unwrap();
    written(&folder, "log.jsonl", [delivery("evt_9")]);
    let both = ran(&format!("list {path} --rotated --json")).lines();
    assert_eq!((both.len(), &both[6]["eventId"]), (7, &json!("evt_9")));
    ran(&format!("show {path} 7 --rotated")).ends(0);
}

#[cfg(unix)]
#[test]
fn a_log_is_followed_beyond_its_end_and_into_the_next_file() {
    let folder = Folder::new();
    let path = written(&folder, "log.jsonl", [delivery("evt_1")]);
    let mut child = typed(&format!("log list {path} --follow --json"))
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        json!([line["line"], line["eventId"]])
    };
    assert_eq!(next(), json!([1, "evt_1"]));
    let mut log = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let line = delivery("evt_2").to_line();
    // A line that is being written waits for its end.
    log.write_all(&line.as_bytes()[..40]).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    writeln!(log, "{}", &line[40..]).unwrap();
    assert_eq!(next(), json!([2, "evt_2"]));
    fs::rename(&path, folder.path("log.jsonl.1")).unwrap();
    writeln!(log, "{}", delivery("evt_3").to_line()).unwrap();
    written(&folder, "log.jsonl", [delivery("evt_4")]);
    assert_eq!(next(), json!([3, "evt_3"]));
    assert_eq!(next(), json!([4, "evt_4"]));
    child.kill().unwrap();
    child.wait().unwrap();
    // A limit ends it.
    ran(&format!("list {path} --follow --limit 1")).ends(0);
}

#[test]
fn show_prints_head_answer_and_body() {
    let folder = Folder::new();
    let path = written(&folder, "log.jsonl", log());
    let show = |rest: &str| ran(&format!("show {path} {rest}"));
    show("evt_3").ends(0).warns_of_nothing().says(&[
        "received 2025-11-21T01:56:20Z, 180 s after it was signed",
        "POST /",
        "x-service-timestamp: 1763690000",
        "answered 500 panicked",
        "  reason: \\u{1b}[31mred",
        // Readable, with its own digits, order and escapes.
        "  \"n\": 1.50,",
        "    \"b\": \"\\u00e9\",",
    ]);
    show("5").says(&["the sender hung up after 5 s"]);
    show("6").says(&["body: not recorded"]);
    // As JSON it is the log's line, with names as all commands write them.
    let json = show("2 --json").json();
    assert_eq!(json["receivedAt"], 1_763_690_060);
    assert_eq!(json["answer"]["elapsedUs"], 1_500);
    assert_eq!(json["answer"]["claimedSubscription"], "wh_\u{1b}1");
    let headers = json["headers"].as_array().unwrap();
    assert!(headers.iter().any(|pair| pair[0] == "x-service-timestamp"));

    has(&show("evt_1 --json").ends(3).fault(), &["1, 3"]);
    for missing in ["7 --json", "evt_7 --json", "6 --raw --json"] {
        show(missing).ends(3).fault();
    }
}

/// Bodies that a user's shell, terminal or curl might change.
fn awkward_bodies() -> Vec<Bytes> {
    let mut bodies: Vec<Bytes> = [
        "",
        "{}",
        "@/etc/hostname",
        r#"{"a":"it's \"quoted\" \\ \/ $HOME `id` $(id) !! %s"}"#,
        "'",
        "{\n  \"a\": 1,\n\n}\n",
        "\r\n\t{\"crlf\":1}\r\n",
        "\u{feff}{}",
        "Grüße 東京 🧾",
        "\u{202e}turned\u{200d}\u{0}\u{1b}[31m",
        "-d --next",
    ]
    .map(|text| Bytes::from_static(text.as_bytes()))
    .into();
    let binary = (0..=255).collect::<Vec<u8>>();
    bodies.extend([binary, vec![b'x'; 1 << 20], vec![b'\''; 40_000]].map(Bytes::from));
    bodies
}

#[test]
fn show_raw_gives_the_very_bytes() {
    let folder = Folder::new();
    let bodies = awkward_bodies();
    let path = written(
        &folder,
        "log.jsonl",
        bodies.iter().cloned().map(delivery_of),
    );
    for (number, body) in (1..).zip(bodies) {
        let number = u64::to_string(&number);
        let output = hookgate(&["log", "show", &path, &number, "--raw"])
            .output()
            .unwrap();
        assert!(output.status.success());
        assert_eq!(output.stdout, body, "{number}");
    }
}

/// One request, as it comes over the wire: its head in lower case, and its body.
pub(crate) fn received(listener: &TcpListener) -> (Vec<String>, Vec<u8>) {
    let (stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(&stream);
    let mut head = Vec::new();
    let mut length = 0;
    loop {
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line).unwrap();
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
        head.push(line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    answer_204(&stream);
    (head, body)
}

fn answer_204(mut stream: &TcpStream) {
    let answer = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
    stream.write_all(answer).unwrap();
}

#[test]
fn curl_sends_the_same_bytes_and_the_recorded_headers() {
    if Command::new("curl").arg("--version").output().is_err() {
        println!("there is no curl here");
        return;
    }
    let folder = Folder::new();
    let bodies = awkward_bodies();
    let log = bodies.iter().map(|body| {
        let mut delivery = delivery_of(body.clone());
        delivery.headers = [
            ("host", "receiver.example.org"),
            ("content-length", "9999"),
            ("transfer-encoding", "chunked"),
            ("connection", "close"),
            ("authorization", "[redacted]"),
            ("x-quoted", "it's \"$HOME\" \\"),
            ("x-empty", ""),
            ("x-twice", "1"),
            ("x-twice", "2"),
            ("x-service-signature", "sha256=00"),
        ]
        .map(|(name, value)| (name.to_owned(), Bytes::from_static(value.as_bytes())))
        .into();
        delivery
    });
    let path = written(&folder, "log.jsonl", log);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let url = format!("http://{address}/webhooks?a={{1}}&b=[2]");
    for (number, body) in (1..).zip(&bodies) {
        let curl = ran(&format!("curl {path} {number} --to {url}"))
            .ends(0)
            .warns_of_nothing();
        let acts = |char: char| char.is_control() && char != '\n';
        assert!(!curl.stdout.contains(acts), "{number}: {curl:?}");
        // Longer than an argument may be, so through the shell's standard input: as pasting is.
        let mut shell = Command::new("bash");
        shell.env_remove("http_proxy").env("no_proxy", "*");
        let pasted = std::thread::spawn(move || Ran::fed(&mut shell, curl.stdout.as_bytes()));
        let (head, came) = received(&listener);
        pasted.join().unwrap().ends(0);
        assert!(
            came == *body,
            "{number}: {} bytes for {}",
            came.len(),
            body.len()
        );
        assert_eq!(head[0], "POST /webhooks?a={1}&b=[2] HTTP/1.1");
        let mut names: Vec<_> = head[1..]
            .iter()
            .map(|line| line.to_ascii_lowercase())
            .collect();
        let of_curl = ["host: 127", "content-length: "];
        names.retain(|line| !of_curl.iter().any(|name| line.starts_with(name)));
        let expected = [
            "x-quoted: it's \"$home\" \\",
            "x-empty:",
            "x-twice: 1",
            "x-twice: 2",
            "x-service-signature: sha256=00",
        ];
        assert_eq!(names, expected, "{number}");
    }
    // Of another method, with a header that is not text, and as JSON.
    let mut odd = delivery_of("{}");
    odd.method = "PUT".into();
    odd.headers = vec![("x-odd".into(), Bytes::from_static(b"caf\xe9 '\\"))];
    let path = written(&folder, "odd.jsonl", [odd]);
    let curl = ran(&format!("curl {path} 1 --to {url} --json")).json();
    let text = curl["curl"].as_str().unwrap().to_owned();
    let shell =
        std::thread::spawn(move || Command::new("bash").args(["-c", &text]).output().unwrap());
    let (stream, _) = listener.accept().unwrap();
    let mut head = vec![0; 4_096];
    let read = (&stream).read(&mut head).unwrap();
    answer_204(&stream);
    assert!(head.starts_with(b"PUT /webhooks"));
    let odd = b"x-odd: caf\xe9 '\\\r\n";
    assert!(head[..read].windows(odd.len()).any(|window| window == odd));
    assert!(shell.join().unwrap().status.success());
}

#[test]
fn curl_says_what_can_not_be_sent_as_it_was() {
    let folder = Folder::new();
    let (mut redacted, mut bodiless) = (delivery("evt_1"), delivery("evt_2"));
    redacted.unverifiable = true;
    bodiless.body = None;
    let path = written(&folder, "log.jsonl", [redacted, bodiless]);
    let curl = ran(&format!("curl {path} 1")).ends(0);
    curl.says(&["'http://localhost:8080/'"]);
    curl.tells(&["does not send what was signed"]);
    ran(&format!("curl {path} 2 --json")).ends(3).fault();
}

// fault X8: what one command takes, another does not: a data model behind `rows`, the kind `data-model`, `--id`
#[test]
fn a_line_and_an_id_are_named_by_their_options_for_every_command() {
    let folder = Folder::new();
    let path = written(&folder, "log.jsonl", log());
    for command in ["show", "curl"] {
        let by = |which: &str| ran(&format!("{command} {path} {which}")).ends(0).stdout;
        assert_eq!(by("--line 2"), by("2"), "{command}");
        assert_eq!(by("--id evt_2"), by("2"), "{command}");
    }
}

#[test]
fn curl_sends_to_the_recorded_host() {
    let folder = Folder::new();
    let cases: [(&[(&str, &str)], &str); 3] = [
        (
            &[("host", "127.0.0.1:8787")],
            "http://127.0.0.1:8787/hooks?a=1",
        ),
        (
            &[
                ("host", "hooks.example.org"),
                ("x-forwarded-proto", "https"),
            ],
            "https://hooks.example.org/hooks?a=1",
        ),
        (
            &[("host", "no host'; rm")],
            "http://localhost:8080/hooks?a=1",
        ),
    ];
    let log = cases.map(|(headers, _)| {
        let mut logged = delivery("evt_1");
        logged.target = "/hooks?a=1".into();
        let headers = headers.iter();
        let headers = headers.map(|(name, value)| ((*name).to_owned(), Bytes::from(*value)));
        logged.headers.extend(headers);
        logged
    });
    let path = written(&folder, "log.jsonl", log);
    for (line, (_, url)) in (1..).zip(cases) {
        ran(&format!("curl {path} {line}")).says(&[&format!("--url '{url}'")]);
        let other = ran(&format!("curl {path} {line} --to http://localhost:1/"));
        other.says(&["--url 'http://localhost:1/'"]);
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let folder = Folder::new();
    let many = std::iter::repeat_n(delivery("evt_1"), 20_000);
    let path = written(&folder, "log.jsonl", many);
    for json in ["", "--json"] {
        let mut child = typed(&format!("log list {path} {json}")).spawn().unwrap();
        let mut first = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let ran = Ran::with(child.wait_with_output().unwrap()).warns_of_nothing();
        assert!(matches!(ran.code, Some(0 | 1)), "{ran:?}");
    }
}
