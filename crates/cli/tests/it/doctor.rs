//! `hookgate doctor`: each check with each of its verdicts, over real pipes.

use hookgate::{
    Secret,
    clock::{Clock as _, SystemClock, UnixSeconds},
};
use hookgate_record::{LoggedAnswer, LoggedDelivery};
use hookgate_testing::Signer;

use crate::cli::{Ran, Scratch, has, typed};
use crate::process::own_secret;

const NOW: i64 = 1_763_690_000;

/// The parts of a check: verdict, sentence, advice.
fn check(options: &str, name: &str) -> (String, String, String) {
    let mut command = typed(&format!("--json doctor {options}"));
    let ran = Ran::to_its_end(command.env("WEBHOOK_SECRET", own_secret()));
    check_of(&ran, name)
}

fn check_of(ran: &Ran, name: &str) -> (String, String, String) {
    let report = ran.json();
    let checks = report["checks"].as_array().unwrap();
    let bad = checks.iter().filter(|it| it["verdict"] == "bad").count();
    assert_eq!(report["bad"], bad);
    assert_eq!(ran.code, Some(i32::from(bad > 0)), "{ran:?}");
    let found = checks.iter().find(|it| it["check"] == name);
    let found = found.unwrap_or_else(|| panic!("no {name} in {report}"));
    let text = |part: &str| found[part].as_str().unwrap_or_default().to_owned();
    let (verdict, says, advice) = (text("verdict"), text("says"), text("advice"));
    // Every check has a sentence. One that is not ok has advice too.
    assert!(!says.is_empty(), "{found}");
    assert!(verdict == "ok" || !advice.is_empty(), "{found}");
    (verdict, says, advice)
}

/// A check, the options, its verdict, and a part of its sentence or advice. Measured in the docs of
/// the store: 72 bytes an event.
const VERDICTS: &str = "
retention |                                          | ok   | 96390 s
retention | --retention 96390s                       | ok   | 96390 s
retention | --retention 96389s                       | bad  | remember for 96390 s
retention | --retention 96390s --window-past 301s    | bad  | 96391 s
retention | --retention 96390s --window-ahead 301s   | bad  | 96391 s
lease     |                                          | ok   | 30 s before the first retry
lease     | --lease 60s                              | ok   | 0 s before the first retry
lease     | --lease 61s                              | bad  | at most 60 s
lease     | --lease 100ms                            | bad  | longer than 0.1 s
lease     | --lease 1s                               | warn | slow store
budget    |                                          | ok   | 0.5 s for the network
budget    | --budget 4999ms                          | ok   | 0.001 s for the network
budget    | --budget 5s                              | warn | stops waiting
budget    | --budget 5001ms                          | bad  | at most 5 s
budget    | --budget 100ms                           | bad  | longer than 0.1 s
deadlines |                                          | ok   | 2 s for a body, 600 s for a run
deadlines | --body-deadline 0s                       | bad  | body_deadline
deadlines | --body-deadline 4500ms                   | warn | leave the handler
deadlines | --run-limit 31d                          | bad  | run_limit
limits    |                                          | ok   | bodies up to 1 MiB; 1024 runs hold 1 GiB
limits    | --max-body 0                             | bad  | max_body
limits    | --max-runs 0                             | bad  | max_runs
capacity  |                                          | not_measured | 262144 events, about 18 MiB in a MemoryStore
capacity  | --rate 1                                 | ok   | need 172800
capacity  | --rate 1.517                             | ok   | need 262138
capacity  | --rate 1.518                             | warn | covers the retries, not the retention
capacity  | --rate 2.7                               | warn | MemoryStore::new(46656
capacity  | --rate 2.8                               | bad  | while the sender still retries
capacity  | --rate 10 --capacity 1728000             | ok   | 118.7 MiB
capacity  | --rate 10 --capacity 1727999             | warn | MemoryStore::new(1728000)
capacity  | --rate 10 --retention 1h --capacity 1    | bad  | MemoryStore::new(963900)
capacity  | --rate 0.001 --capacity 0                | bad  | 1 events
";

#[test]
fn settings_are_judged_as_build_judges_them_and_capacity_by_rate_and_retention() {
    for row in VERDICTS.trim().lines() {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let (found, said, advice) = check(cells[1], cells[0]);
        let all = format!("{said} {advice}");
        assert_eq!(found, cells[2], "{row}: {all}");
        assert!(all.contains(cells[3]), "{row}: {all}");
    }
}

/// A log of deliveries that were received so many seconds after they were signed.
fn log(name: &str, late: impl IntoIterator<Item = i64>, secret: &str, body: &str) -> Scratch {
    let signer = Signer::new(Secret::new(secret).unwrap()).at(UnixSeconds::new(NOW));
    let lines = late.into_iter().map(|late| {
        let at = UnixSeconds::new(NOW + late);
        let mut logged = LoggedDelivery::new(at, signer.headers(body), body.to_owned());
        let mut answer = LoggedAnswer::new(204, "handled");
        answer.key = Some("primary".into());
        logged.answer = Some(answer);
        logged.to_line() + "\n"
    });
    Scratch::file(name, lines.collect::<String>().as_bytes())
}

#[test]
fn the_clock_is_judged_by_the_median_of_a_log() {
    let clock = |late: Vec<i64>, option: &str| {
        let log = log("clock", late, own_secret(), "{}");
        check(&format!("--log {} {option}", log.path()), "clock by log")
    };
    for (offset, verdict, says) in [
        (0, "ok", "level with the sender's"),
        (30, "ok", "30 s ahead of the sender's"),
        (31, "warn", "more than a tenth of the window"),
        (-31, "warn", "31 s behind the sender's"),
        (300, "warn", "300 s ahead"),
        (301, "bad", "beyond the window"),
        (-301, "bad", "beyond the window"),
        (86_400, "bad", "86400 s ahead"),
    ] {
        let (found, said, _) = clock(vec![offset; 25], "");
        assert_eq!(found, verdict, "{offset}: {said}");
        has(&said, &[says, "25 authentic deliveries, of 25"]);
    }
    // Retries with their first timestamp don't move it.
    let (found, said, _) = clock([vec![1; 15], vec![3_600; 10]].concat(), "");
    assert_eq!(found, "ok", "{said}");
    has(&said, &["which lie from 1 to 3600 s"]);
    // A few deliveries prove little, and the advice says so.
    let (found, said, advice) = clock(vec![2], "");
    assert_eq!(found, "ok", "{said}");
    has(&advice, &["20 deliveries or more"]);
    // The window is the configured one.
    let (found, said, _) = clock(vec![40; 25], "--window-past 30s");
    assert_eq!(found, "bad", "{said}");
}

#[test]
fn only_authentic_deliveries_measure() {
    let log = log("foreign", [7; 20], "whsec_made_up_for_someone_else", "{}");
    let (verdict, said, advice) = check(&format!("--log {}", log.path()), "clock by log");
    assert_eq!(verdict, "not_measured");
    has(&said, &["none of 20 deliveries is authentic"]);
    has(&advice, &["the right secret"]);
    // Without a secret, only the receiver's recorded verdict is known.
    let ran = Ran::of(&["--json", "doctor", "--log", log.path()]);
    let (verdict, said, _) = check_of(&ran, "clock by log");
    assert_eq!(verdict, "ok");
    has(&said, &["by the receiver's own verdict"]);
    assert_eq!(check_of(&ran, "secret").0, "not_measured");
    // A ring with a missing key does not count either.
    let line = format!(
        "--json doctor --log {} --secret-env A --secret-env B",
        log.path()
    );
    let mut broken = typed(&line);
    let ran = Ran::to_its_end(broken.env("A", own_secret()).env("B", "whsec_short"));
    has(&check_of(&ran, "clock by log").1, &["own verdict"]);
}

#[test]
fn bodies_of_the_log_are_held_against_the_limit() {
    let log = log("bodies", [0; 3], own_secret(), &"x".repeat(1_000));
    for (limit, verdict) in [(1000, "warn"), (999, "bad"), (1999, "warn"), (2000, "ok")] {
        let (found, said, _) = check(
            &format!("--log {} --max-body {limit}", log.path()),
            "limits",
        );
        assert_eq!(found, verdict, "{limit}: {said}");
        has(&said, &["the longest of 3 in the log has 1000 bytes"]);
    }
}

#[test]
fn a_log_that_is_none_is_named_with_its_line() {
    let log = log("bad", [0], own_secret(), "{}");
    let text = std::fs::read_to_string(&log.0).unwrap();
    std::fs::write(&log.0, text + "no line of a log\nnor this\n").unwrap();
    let ran = Ran::of(&["--json", "doctor", "--log", log.path()]).ends(3);
    has(&ran.fault(), &["line 2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_is_judged_by_the_date_of_an_answer() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    for (date, verdict, says) in [
        // From a server that sends the time of this machine, as any server does.
        (Some(None), "ok", "within"),
        (
            Some(Some("Sun, 06 Nov 1994 08:49:37 GMT")),
            "bad",
            "s ahead of that of",
        ),
        (
            Some(Some("Fri, 31 Dec 9999 23:59:59 GMT")),
            "bad",
            "s behind that of",
        ),
        (Some(Some("yesterday")), "not_measured", "without a Date"),
        (None, "not_measured", "without a Date"),
    ] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/webhooks", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            if date == Some(None) {
                let app = axum::Router::new().route("/webhooks", axum::routing::post(|| async {}));
                return axum::serve(listener, app).await.unwrap();
            }
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 1_024]).await.unwrap();
            let date = date.flatten().map(|date| format!("Date: {date}\r\n"));
            let date = date.unwrap_or_default();
            let head = format!("HTTP/1.1 405 Nope\r\n{date}Content-Length: 0\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
        });
        let ask = move || check(&format!("--url {url}"), "clock by URL");
        let (found, said, _) = tokio::task::spawn_blocking(ask).await.unwrap();
        assert_eq!(found, verdict, "{date:?}: {said}");
        assert!(said.contains(says), "{date:?}: {said}");
        server.abort();
    }
    // This machine's clock is of this century.
    assert!(SystemClock.now().as_i64() > 784_111_777);
}

#[test]
fn checks_that_were_not_requested_are_skipped_without_a_fault() {
    let ran = Ran::of(&["--json", "doctor"]).ends(0);
    let not_measured = ["secret", "capacity", "clock by log", "clock by URL"];
    for name in not_measured {
        assert_eq!(check_of(&ran, name).0, "not_measured", "{name}");
    }
    assert_eq!(ran.json()["notMeasured"], not_measured.len());
}

#[test]
fn text_says_what_json_says() {
    let arguments = ["doctor", "--retention", "1h", "--budget", "5s"];
    let text = Ran::of(&arguments).ends(1);
    let json = Ran::of(&[&["--json"], &arguments[..]].concat())
        .ends(1)
        .json();
    for check in json["checks"].as_array().unwrap() {
        let of = |part: &str| check[part].as_str().unwrap_or_default();
        let line = text.stdout.lines().find(|line| line.contains(of("says")));
        let line = line.unwrap_or_else(|| panic!("{check} is not in {}", text.stdout));
        let verdict = of("verdict").replace('_', " ");
        assert!(line.starts_with(&verdict), "{line}");
        has(line, &[of("check")]);
        if check["advice"].is_string() {
            text.says(&[&format!("→ {}", of("advice"))]);
        }
    }
    let counts = "3 ok, 1 to look at, 1 to fix, 4 not measured\n";
    assert!(text.stdout.ends_with(counts), "{text:?}");
}
