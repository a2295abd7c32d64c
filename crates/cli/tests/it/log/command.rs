//! `hookgate log`, over real pipes.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use hookgate::clock::UnixSeconds;
use hookgate_record::LoggedAnswer;
use hookgate_testing::log::DeliveryLog;
use serde_json::{Value, json};

use super::{Folder, delivery, delivery_of};
use crate::cli::{Ran, hookgate};

/// Six deliveries: handled, refused, a duplicate, failed, one whose sender hung up, one refused on its head.
fn log() -> DeliveryLog {
    let mut all = ["evt_1", "evt_2", "evt_1", "evt_3", "evt_4", "evt_5"].map(delivery);
    for (at, delivery) in all.iter_mut().enumerate() {
        delivery.received_at = UnixSeconds::new(1_763_690_000 + 60 * at as i64);
    }
    let mut answer = |at: usize, status, outcome: &str, reason: Option<&str>| {
        let mut answer = LoggedAnswer::new(status, outcome);
        answer.reason = reason.map(Into::into);
        answer.elapsed = Duration::from_micros(1_500);
        all[at].answer = Some(answer);
    };
    answer(
        1,
        401,
        "not_authentic",
        Some(
            "delivery refused: not authentic or not fresh: the signature is not that of these bytes",
        ),
    );
    answer(2, 200, "replayed", None);
    answer(3, 500, "panicked", Some("\u{1b}[31mred\u{7}"));
    answer(5, 401, "not_authentic", Some("stale"));
    let refused = all[1].answer.as_mut().unwrap();
    refused.claimed_subscription = Some("wh_\u{1b}1".to_owned());
    all[4].answer = None;
    all[4].hung_up_after = Some(Duration::from_secs(5));
    all[5].body = None;
    let typed = br#"{"id":"evt_3","type":"row.updated","n":1.50,"data":{"b":"\u00e9","a":[]}}"#;
    all[3].body = Some(Bytes::from_static(typed));
    all.into_iter().collect()
}

fn written(folder: &Folder, name: &str, log: &DeliveryLog) -> String {
    let mut file = Vec::new();
    log.write_to(&mut file).unwrap();
    fs::write(folder.path(name), file).unwrap();
    folder.path(name).to_str().unwrap().to_owned()
}

fn ran(arguments: &[&str]) -> Ran {
    Ran::of(&[&["log"], arguments].concat())
}

/// The lines of standard output that are JSON each.
fn lines(ran: &Ran) -> Vec<Value> {
    ran.stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

// fault E9: the command that explains a delivery takes `--line`, and the list of deliveries refuses it
#[test]
fn list_has_a_line_for_each_delivery_and_filters() {
    let folder = Folder::new();
    let path = written(&folder, "log.jsonl", &log());
    let all = ran(&["list", &path]);
    assert_eq!((all.code, &*all.stderr), (Some(0), ""));
    let rows: Vec<_> = all.stdout.lines().collect();
    assert_eq!(rows.len(), 7);
    assert!(
        rows[0].starts_with("LINE ") && rows[0].ends_with("REASON"),
        "{}",
        rows[0]
    );
    let cells: Vec<_> = rows[2].split_whitespace().take(6).collect();
    assert_eq!(
        cells,
        [
            "2",
            "2025-11-21T01:54:20Z",
            "401",
            "not_authentic",
            "page.created",
            "evt_2"
        ]
    );
    // What the outcome says already is not repeated.
    assert!(rows[2].ends_with(
        " evt_2             the signature is not that of these bytes (claimed subscription, unproven: wh_\\u{1b}1)"
    ));
    let json = lines(&ran(&[
        "list",
        &path,
        "--json",
        "--outcome",
        "not_authentic",
    ]));
    assert_eq!(json[0]["claimedSubscription"], "wh_\u{1b}1");
    assert_eq!(json[1]["claimedSubscription"], Value::Null);
    let shown = ran(&["show", &path, "2"]).stdout;
    let note = "  claimed subscription, unproven: wh_\\u{1b}1\n";
    assert!(shown.contains(note), "{shown}");
    // The text of a reason can't control a terminal.
    assert!(
        !all.stdout.contains('\u{1b}') && rows[4].contains("red"),
        "{}",
        rows[4]
    );
    assert!(rows[5].contains(" -       hung_up"), "{}", rows[5]);

    let listed = |filters: &[&str]| {
        let ran = ran(&[&["list", &path, "--json"], filters].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let numbers = lines(&ran)
            .into_iter()
            .map(|line| line["line"].as_u64().unwrap());
        numbers.collect::<Vec<_>>()
    };
    for (filters, expected) in [
        (&[][..], &[1, 2, 3, 4, 5, 6][..]),
        (&["--line", "4"], &[4]),
        (&["--line", "7"], &[]),
        (&["--line", "2", "--type", "row.*"], &[]),
        (&["--type", "row.*"], &[4]),
        (
            &["--type", "row.updated", "--type", "page.created"],
            &[1, 2, 3, 4, 5],
        ),
        (&["--outcome", "not_authentic"], &[2, 6]),
        (&["--outcome", "hung_up"], &[5]),
        (&["--outcome", "refused"], &[2, 5, 6]),
        (&["--outcome", "again", "--outcome", "failed"], &[3, 4]),
        (&["--status", "4xx", "--status", "500"], &[2, 4, 6]),
        (&["--id", "evt_1"], &[1, 3]),
        (&["--id", "evt_1", "--status", "200"], &[3]),
        (&["--since", "2025-11-21T01:56:20Z"], &[4, 5, 6]),
        (&["--since", "1763690300"], &[6]),
        (&["--since", "1h"], &[]),
    ] {
        assert_eq!(listed(filters), expected, "{filters:?}");
    }
    let one = &lines(&ran(&["list", &path, "--json", "--id", "evt_2"]))[0];
    assert_eq!(
        (
            &one["status"],
            &one["receivedAt"],
            &one["elapsedMs"],
            &one["verifiable"]
        ),
        (
            &json!(401),
            &json!("2025-11-21T01:54:20Z"),
            &json!(1.5),
            &json!(false)
        )
    );
    for (filters, found) in [
        (&["--search", "EVT_3"][..], &[4][..]),
        (&["--search", "Panicked"], &[4]),
        (&["--search", "signature is not"], &[2]),
        (&["--limit", "2"], &[1, 2]),
        (&["--limit", "1", "--id", "evt_1"], &[1]),
        (&["--until", "2025-11-21T01:55:20Z"], &[1, 2]),
        (&["--since", "1763690060", "--until", "1763690180"], &[2, 3]),
    ] {
        let ran = ran(&[&["list", &path, "--json"], filters].concat());
        let listed: Vec<_> = lines(&ran)
            .iter()
            .map(|line| line["line"].clone())
            .collect();
        assert_eq!(listed, found, "{filters:?}");
    }
    let none = ran(&["list", &path, "--outcome", "not_authentik"]);
    assert_eq!(none.code, Some(0));
    assert!(
        none.stderr.contains("no delivery of this log fits"),
        "{}",
        none.stderr
    );
    let wrong = ran(&["list", &path, "--status", "four"]);
    assert_eq!(wrong.code, Some(2));
}

#[test]
fn what_is_missing_is_said_and_a_bad_line_named() {
    let folder = Folder::new();
    let line = delivery("evt_1").to_line();
    let path = folder.path("log.jsonl");
    fs::write(
        &path,
        format!("{line}\n{{\"dropped\":7}}\n{line}\n{}", &line[..40]),
    )
    .unwrap();
    let path = path.to_str().unwrap();
    let listed = ran(&["list", path, "--json"]);
    assert_eq!((listed.code, lines(&listed).len()), (Some(0), 2));
    // The number is that of the line.
    assert_eq!(lines(&listed)[1]["line"], 3);
    assert!(
        listed.stderr.contains("7 deliveries are missing"),
        "{}",
        listed.stderr
    );
    assert!(listed.stderr.contains("the last line"), "{}", listed.stderr);

    fs::write(folder.path("bad"), format!("{line}\nno JSON\n{line}\n")).unwrap();
    let bad = folder.path("bad");
    let bad = ran(&["list", bad.to_str().unwrap(), "--json"]);
    assert_eq!((bad.code, lines(&bad).len()), (Some(3), 1));
    let fault = bad.fault();
    assert!(
        fault["error"]
            .as_str()
            .unwrap()
            .contains("line 2 of the log is not a delivery"),
        "{fault}"
    );
    assert!(
        fault["advice"].as_str().unwrap().contains("sed '2d'"),
        "{fault}"
    );
    let missing = ran(&["list", "/no/such/log", "--json"]);
    assert_eq!(missing.code, Some(3));
    missing.fault();
}

#[test]
fn a_log_comes_through_a_pipe_and_rotated_files_are_one() {
    let folder = Folder::new();
    let path = written(&folder, "log.jsonl", &log());
    let mut child = hookgate(&["log", "list", "-", "--json"]);
    child.stdin(Stdio::from(fs::File::open(&path).unwrap()));
    assert_eq!(lines(&Ran::to_its_end(&mut child)).len(), 6);
    fs::rename(&path, folder.path("log.jsonl.1")).unwrap();
    written(
        &folder,
        "log.jsonl",
        &[delivery("evt_9")].into_iter().collect(),
    );
    let both = lines(&ran(&["list", &path, "--rotated", "--json"]));
    assert_eq!((both.len(), &both[6]["eventId"]), (7, &json!("evt_9")));
    assert_eq!(ran(&["show", &path, "7", "--rotated"]).code, Some(0));
}

#[cfg(unix)]
#[test]
fn a_log_is_followed_beyond_its_end_and_into_the_next_file() {
    let folder = Folder::new();
    let path = written(
        &folder,
        "log.jsonl",
        &[delivery("evt_1")].into_iter().collect(),
    );
    let mut child = hookgate(&["log", "list", &path, "--follow", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        (line["line"].clone(), line["eventId"].clone())
    };
    assert_eq!(next(), (json!(1), json!("evt_1")));
    let mut log = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let line = delivery("evt_2").to_line();
    // A line that is being written waits for its end.
    log.write_all(&line.as_bytes()[..40]).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    writeln!(log, "{}", &line[40..]).unwrap();
    assert_eq!(next(), (json!(2), json!("evt_2")));
    fs::rename(&path, folder.path("log.jsonl.1")).unwrap();
    writeln!(log, "{}", delivery("evt_3").to_line()).unwrap();
    written(
        &folder,
        "log.jsonl",
        &[delivery("evt_4")].into_iter().collect(),
    );
    assert_eq!(next(), (json!(3), json!("evt_3")));
    assert_eq!(next(), (json!(4), json!("evt_4")));
    child.kill().unwrap();
    child.wait().unwrap();
    // A limit ends it.
    let two = ran(&["list", &path, "--follow", "--limit", "1"]);
    assert_eq!(two.code, Some(0));
}

#[test]
fn show_prints_head_answer_and_body() {
    let folder = Folder::new();
    let path = written(&folder, "log.jsonl", &log());
    let shown = ran(&["show", &path, "evt_3"]);
    assert_eq!((shown.code, &*shown.stderr), (Some(0), ""));
    for part in [
        "received 2025-11-21T01:56:20Z, 180 s after it was signed",
        "POST /",
        "x-service-timestamp: 1763690000",
        "answered 500 panicked",
        "  reason: \\u{1b}[31mred",
        // Readable, with its own digits, order and escapes.
        "  \"n\": 1.50,",
        "    \"b\": \"\\u00e9\",",
    ] {
        assert!(shown.stdout.contains(part), "{part} in {}", shown.stdout);
    }
    let hung_up = ran(&["show", &path, "5"]);
    assert!(
        hung_up.stdout.contains("the sender hung up after 5 s"),
        "{}",
        hung_up.stdout
    );
    let bodiless = ran(&["show", &path, "6"]);
    assert!(
        bodiless.stdout.contains("body: not recorded"),
        "{}",
        bodiless.stdout
    );
    // As JSON it is the log's line, with names as all commands write them.
    let json = ran(&["show", &path, "2", "--json"]).json();
    assert_eq!(json["receivedAt"], 1_763_690_060);
    assert_eq!(json["answer"]["elapsedUs"], 1_500);
    assert_eq!(json["answer"]["claimedSubscription"], "wh_\u{1b}1");
    let headers = json["headers"].as_array().unwrap();
    assert!(headers.iter().any(|pair| pair[0] == "x-service-timestamp"));

    let ambiguous = ran(&["show", &path, "evt_1", "--json"]);
    assert_eq!(ambiguous.code, Some(3));
    assert!(
        ambiguous.fault()["advice"]
            .as_str()
            .unwrap()
            .contains("1, 3")
    );
    for missing in ["7", "evt_7"] {
        let missing = ran(&["show", &path, missing, "--json"]);
        assert_eq!(missing.code, Some(3));
        missing.fault();
    }
    let raw = ran(&["show", &path, "6", "--raw", "--json"]);
    assert_eq!(raw.code, Some(3));
    raw.fault();
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
    bodies.push(Bytes::from((0..=255).collect::<Vec<u8>>()));
    bodies.push(Bytes::from(vec![b'x'; 1 << 20]));
    bodies.push(Bytes::from(vec![b'\''; 40_000]));
    bodies
}

#[test]
fn show_raw_gives_the_very_bytes() {
    let folder = Folder::new();
    let bodies = awkward_bodies();
    let log: DeliveryLog = bodies.iter().cloned().map(delivery_of).collect();
    let path = written(&folder, "log.jsonl", &log);
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
    stream
        .write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
        .unwrap();
}

#[test]
fn curl_sends_the_same_bytes_and_the_recorded_headers() {
    if Command::new("curl").arg("--version").output().is_err() {
        println!("there is no curl here");
        return;
    }
    let folder = Folder::new();
    let mut log = Vec::new();
    for body in awkward_bodies() {
        let mut delivery = delivery_of(body);
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
        log.push(delivery);
    }
    let bodies = awkward_bodies();
    let path = written(&folder, "log.jsonl", &log.into_iter().collect());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!(
        "http://{}/webhooks?a={{1}}&b=[2]",
        listener.local_addr().unwrap()
    );
    for (number, body) in (1..).zip(&bodies) {
        let curl = ran(&["curl", &path, &number.to_string(), "--to", &url]);
        assert_eq!((curl.code, &*curl.stderr), (Some(0), ""));
        let pasted: Vec<_> = curl
            .stdout
            .chars()
            .filter(|char| char.is_control() && *char != '\n')
            .collect();
        assert!(pasted.is_empty(), "{pasted:?}");
        // Longer than an argument may be, so through the shell's standard input: as pasting is.
        let mut shell = Command::new("bash")
            .env_remove("http_proxy")
            .env("no_proxy", "*")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = shell.stdin.take().unwrap();
        let text = curl.stdout.clone();
        let paste = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
        let (head, came) = received(&listener);
        let _ = paste.join().unwrap();
        let output = shell.wait_with_output().unwrap();
        assert!(output.status.success(), "{number}: {output:?}");
        assert!(
            came == *body,
            "{number}: {} bytes for {}",
            came.len(),
            body.len()
        );
        assert_eq!(head[0], "POST /webhooks?a={1}&b=[2] HTTP/1.1");
        let mut names = head[1..]
            .iter()
            .map(|line| line.to_ascii_lowercase())
            .collect::<Vec<_>>();
        names
            .retain(|line| !line.starts_with("host: 127") && !line.starts_with("content-length: "));
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
    let path = written(&folder, "odd.jsonl", &[odd].into_iter().collect());
    let curl = ran(&["curl", &path, "1", "--to", &url, "--json"]).json();
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
    let mut redacted = delivery("evt_1");
    redacted.unverifiable = true;
    let mut bodiless = delivery("evt_2");
    bodiless.body = None;
    let path = written(
        &folder,
        "log.jsonl",
        &[redacted, bodiless].into_iter().collect(),
    );
    let curl = ran(&["curl", &path, "1"]);
    assert_eq!(curl.code, Some(0));
    assert!(
        curl.stdout.contains("'http://localhost:8080/'"),
        "{}",
        curl.stdout
    );
    assert!(
        curl.stderr.contains("does not send what was signed"),
        "{}",
        curl.stderr
    );
    let curl = ran(&["curl", &path, "2", "--json"]);
    assert_eq!(curl.code, Some(3));
    curl.fault();
}

// fault X8: what one command takes, another does not: a data model behind `rows`, the kind `data-model`, `--id`
#[test]
fn a_line_and_an_id_are_named_by_their_options_for_every_command() {
    let folder = Folder::new();
    let path = written(&folder, "log.jsonl", &log());
    for command in ["show", "curl"] {
        let (by_place, by_option) = (
            ran(&[command, &path, "2"]),
            ran(&[command, &path, "--line", "2"]),
        );
        assert_eq!(
            (by_option.code, &by_option.stdout),
            (Some(0), &by_place.stdout)
        );
        assert_eq!(ran(&[command, &path, "2", "--line", "2"]).code, Some(2));
        assert_eq!(ran(&[command, &path]).code, Some(2));
        let by_id = ran(&[command, &path, "--id", "evt_2"]);
        assert_eq!((by_id.code, &by_id.stdout), (Some(0), &by_place.stdout));
        for twice in [&["2"][..], &["--line", "2"]] {
            let twice = [&[command, &*path, "--id", "evt_2"], twice].concat();
            assert_eq!(ran(&twice).code, Some(2));
        }
    }
}

#[test]
fn curl_sends_to_the_recorded_host() {
    let folder = Folder::new();
    let with = |headers: &[(&str, &'static str)]| {
        let mut logged = delivery("evt_1");
        logged.target = "/hooks?a=1".into();
        let headers = headers.iter();
        let headers = headers.map(|(name, value)| ((*name).to_owned(), Bytes::from(*value)));
        logged.headers.extend(headers);
        logged
    };
    let log = [
        with(&[("host", "127.0.0.1:8787")]),
        with(&[
            ("host", "hooks.example.org"),
            ("x-forwarded-proto", "https"),
        ]),
        with(&[("host", "no host'; rm")]),
    ];
    let path = written(&folder, "log.jsonl", &log.into_iter().collect());
    for (line, url) in [
        ("1", "http://127.0.0.1:8787/hooks?a=1"),
        ("2", "https://hooks.example.org/hooks?a=1"),
        ("3", "http://localhost:8080/hooks?a=1"),
    ] {
        let curl = ran(&["curl", &path, line]);
        assert!(
            curl.stdout.contains(&format!("--url '{url}'")),
            "{}",
            curl.stdout
        );
        let other = ran(&["curl", &path, line, "--to", "http://localhost:1/"]);
        assert!(
            other.stdout.contains("--url 'http://localhost:1/'"),
            "{}",
            other.stdout
        );
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let folder = Folder::new();
    let many = std::iter::repeat_n(delivery("evt_1"), 20_000);
    let path = written(&folder, "log.jsonl", &many.collect());
    for command in [&["list", &path][..], &["list", &path, "--json"]] {
        let mut child = hookgate(&[&["log"], command].concat());
        child.stdin(Stdio::from(fs::File::open("/dev/null").unwrap()));
        let mut child = child
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            !stderr.contains("panicked") && stderr.is_empty(),
            "{stderr}"
        );
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "{:?}",
            output.status
        );
    }
}
