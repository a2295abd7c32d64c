//! `hookgate doctor`: each check with each of its verdicts, over real pipes.

use hookgate::{
    Secret,
    clock::{Clock as _, SystemClock, UnixSeconds},
};
use hookgate_record::{LoggedAnswer, LoggedDelivery};
use hookgate_testing::Signer;
use serde_json::Value;

use crate::cli::{Ran, Scratch, hookgate as command};
use crate::process::own_secret;

const NOW: i64 = 1_763_690_000;

/// The parts of a check: verdict, sentence, advice.
fn check(arguments: &[&str], name: &str) -> (String, String, String) {
    let ran = Ran::to_its_end(
        command(&[&["--json", "doctor"], arguments].concat()).env("WEBHOOK_SECRET", own_secret()),
    );
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
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (verdict, says, advice) = (
        text(&found["verdict"]),
        text(&found["says"]),
        text(&found["advice"]),
    );
    // Every check has a sentence. One that is not ok has advice too.
    assert!(!says.is_empty(), "{found}");
    assert!(verdict == "ok" || !advice.is_empty(), "{found}");
    (verdict, says, advice)
}

#[test]
fn settings_are_judged_as_build_judges_them() {
    for (name, arguments, verdict, says) in [
        ("retention", &[][..], "ok", "96390 s"),
        ("retention", &["--retention", "96390s"], "ok", "96390 s"),
        (
            "retention",
            &["--retention", "96389s"],
            "bad",
            "remember for 96390 s",
        ),
        (
            "retention",
            &["--retention", "96390s", "--window-past", "301s"],
            "bad",
            "96391 s",
        ),
        (
            "retention",
            &["--retention", "96390s", "--window-ahead", "301s"],
            "bad",
            "96391 s",
        ),
        ("lease", &[], "ok", "30 s before the first retry"),
        (
            "lease",
            &["--lease", "60s"],
            "ok",
            "0 s before the first retry",
        ),
        ("lease", &["--lease", "61s"], "bad", "at most 60 s"),
        ("lease", &["--lease", "100ms"], "bad", "longer than 0.1 s"),
        ("lease", &["--lease", "1s"], "warn", "slow store"),
        ("budget", &[], "ok", "0.5 s for the network"),
        (
            "budget",
            &["--budget", "4999ms"],
            "ok",
            "0.001 s for the network",
        ),
        ("budget", &["--budget", "5s"], "warn", "stops waiting"),
        ("budget", &["--budget", "5001ms"], "bad", "at most 5 s"),
        ("budget", &["--budget", "100ms"], "bad", "longer than 0.1 s"),
        ("deadlines", &[], "ok", "2 s for a body, 600 s for a run"),
        (
            "deadlines",
            &["--body-deadline", "0s"],
            "bad",
            "body_deadline",
        ),
        (
            "deadlines",
            &["--body-deadline", "4500ms"],
            "warn",
            "leave the handler",
        ),
        ("deadlines", &["--run-limit", "31d"], "bad", "run_limit"),
        (
            "limits",
            &[],
            "ok",
            "bodies up to 1 MiB; 1024 runs hold 1 GiB",
        ),
        ("limits", &["--max-body", "0"], "bad", "max_body"),
        ("limits", &["--max-runs", "0"], "bad", "max_runs"),
    ] {
        let (found, said, advice) = check(arguments, name);
        assert_eq!(found, verdict, "{name} {arguments:?}: {said}");
        let all = format!("{said} {advice}");
        assert!(all.contains(says), "{name} {arguments:?}: {all}");
    }
}

#[test]
fn capacity_is_judged_by_rate_and_retention() {
    for (arguments, verdict, says) in [
        // Measured in the docs of the store: 72 bytes an event.
        (
            &[][..],
            "not_measured",
            "262144 events, about 18 MiB in a MemoryStore",
        ),
        (&["--rate", "1"], "ok", "need 172800"),
        (&["--rate", "1.517"], "ok", "need 262138"),
        (
            &["--rate", "1.518"],
            "warn",
            "covers the retries, not the retention",
        ),
        (&["--rate", "2.7"], "warn", "MemoryStore::new(46656"),
        (&["--rate", "2.8"], "bad", "while the sender still retries"),
        (
            &["--rate", "10", "--capacity", "1728000"],
            "ok",
            "118.7 MiB",
        ),
        (
            &["--rate", "10", "--capacity", "1727999"],
            "warn",
            "MemoryStore::new(1728000)",
        ),
        // Not less than the retries need, however short the retention is.
        (
            &["--rate", "10", "--retention", "1h", "--capacity", "1"],
            "bad",
            "MemoryStore::new(963900)",
        ),
        (&["--rate", "0.001", "--capacity", "0"], "bad", "1 events"),
    ] {
        let (found, said, advice) = check(arguments, "capacity");
        let all = format!("{said} {advice}");
        assert_eq!(found, verdict, "{arguments:?}: {all}");
        assert!(all.contains(says), "{arguments:?}: {all}");
    }
}

/// A log of deliveries that were received so many seconds after they were signed.
fn log(name: &str, late: impl IntoIterator<Item = i64>, secret: &str, body: &str) -> Scratch {
    let signer = Signer::new(Secret::new(secret).unwrap());
    let lines: Vec<_> = late
        .into_iter()
        .map(|late| {
            let headers = signer.clone().at(UnixSeconds::new(NOW)).headers(body);
            let mut logged =
                LoggedDelivery::new(UnixSeconds::new(NOW + late), headers, body.to_owned());
            let mut answer = LoggedAnswer::new(204, "handled");
            answer.key = Some("primary".into());
            logged.answer = Some(answer);
            logged.to_line()
        })
        .collect();
    Scratch::file(name, (lines.join("\n") + "\n").as_bytes())
}

#[test]
fn the_clock_is_judged_by_the_median_of_a_log() {
    let clock = |late: Vec<i64>, arguments: &[&str]| {
        let log = log("clock", late, own_secret(), "{}");
        check(
            &[&["--log", log.path()], arguments].concat(),
            "clock by log",
        )
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
        let (found, said, _) = clock(vec![offset; 25], &[]);
        assert_eq!(found, verdict, "{offset}: {said}");
        assert!(said.contains(says), "{offset}: {said}");
        assert!(said.contains("25 authentic deliveries, of 25"), "{said}");
    }
    // Retries with their first timestamp don't move it.
    let (found, said, _) = clock([vec![1; 15], vec![3_600; 10]].concat(), &[]);
    assert_eq!(found, "ok", "{said}");
    assert!(said.contains("which lie from 1 to 3600 s"), "{said}");
    // A few deliveries prove little, and the advice says so.
    let (found, said, advice) = clock(vec![2], &[]);
    assert_eq!(found, "ok", "{said}");
    assert!(advice.contains("20 deliveries or more"), "{advice}");
    // The window is the configured one.
    let (found, said, _) = clock(vec![40; 25], &["--window-past", "30s"]);
    assert_eq!(found, "bad", "{said}");
}

#[test]
fn only_authentic_deliveries_measure() {
    let log = log("foreign", [7; 20], "whsec_made_up_for_someone_else", "{}");
    let (verdict, said, advice) = check(&["--log", log.path()], "clock by log");
    assert_eq!(verdict, "not_measured");
    assert!(
        said.contains("none of 20 deliveries is authentic"),
        "{said}"
    );
    assert!(advice.contains("the right secret"), "{advice}");
    // Without a secret, only the receiver's recorded verdict is known.
    let ran = Ran::of(&["--json", "doctor", "--log", log.path()]);
    let (verdict, said, _) = check_of(&ran, "clock by log");
    assert_eq!(verdict, "ok");
    assert!(said.contains("by the receiver's own verdict"), "{said}");
    assert_eq!(check_of(&ran, "secret").0, "not_measured");
    // A ring with a missing key does not count either.
    let mut broken = command(&["--json", "doctor", "--log", log.path()]);
    broken.args(["--secret-env", "A", "--secret-env", "B"]);
    let ran = Ran::to_its_end(broken.env("A", own_secret()).env("B", "whsec_short"));
    assert!(
        check_of(&ran, "clock by log").1.contains("own verdict"),
        "{ran:?}"
    );
}

#[test]
fn bodies_of_the_log_are_held_against_the_limit() {
    for (limit, verdict) in [
        ("1000", "warn"),
        ("999", "bad"),
        ("1999", "warn"),
        ("2000", "ok"),
    ] {
        let log = log("bodies", [0; 3], own_secret(), &"x".repeat(1_000));
        let (found, said, _) = check(&["--log", log.path(), "--max-body", limit], "limits");
        assert_eq!(found, verdict, "{limit}: {said}");
        assert!(
            said.contains("the longest of 3 in the log has 1000 bytes"),
            "{said}"
        );
    }
}

#[test]
fn a_log_that_is_none_is_named_with_its_line() {
    let log = log("bad", [0], own_secret(), "{}");
    let mut text = std::fs::read_to_string(&log.0).unwrap();
    text.push_str("no line of a log\nnor this\n");
    std::fs::write(&log.0, text).unwrap();
    let ran = Ran::of(&["--json", "doctor", "--log", log.path()]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let error = ran.fault()["error"].as_str().unwrap().to_owned();
    assert!(error.contains("line 2"), "{error}");
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
            let head = format!(
                "HTTP/1.1 405 Nope\r\n{}Content-Length: 0\r\n\r\n",
                date.unwrap_or_default()
            );
            stream.write_all(head.as_bytes()).await.unwrap();
        });
        let asked = tokio::task::spawn_blocking(move || check(&["--url", &url], "clock by URL"));
        let (found, said, _) = asked.await.unwrap();
        assert_eq!(found, verdict, "{date:?}: {said}");
        assert!(said.contains(says), "{date:?}: {said}");
        server.abort();
    }
    assert!(
        SystemClock.now().as_i64() > 784_111_777,
        "this machine's clock is of this century"
    );
}

#[test]
fn checks_that_were_not_requested_are_skipped_without_a_fault() {
    let ran = Ran::of(&["--json", "doctor"]);
    assert_eq!(ran.code, Some(0));
    let not_measured = ["secret", "capacity", "clock by log", "clock by URL"];
    for name in not_measured {
        assert_eq!(check_of(&ran, name).0, "not_measured", "{name}");
    }
    assert_eq!(ran.json()["notMeasured"], not_measured.len());
}

#[test]
fn text_says_what_json_says() {
    let arguments = ["doctor", "--retention", "1h", "--budget", "5s"];
    let text = Ran::of(&arguments);
    let json = Ran::of(&[&["--json"], &arguments[..]].concat());
    assert_eq!((text.code, json.code), (Some(1), Some(1)));
    for check in json.json()["checks"].as_array().unwrap() {
        let verdict = check["verdict"].as_str().unwrap().replace('_', " ");
        let line = text
            .stdout
            .lines()
            .find(|line| line.contains(check["says"].as_str().unwrap()));
        let line = line.unwrap_or_else(|| panic!("{check} is not in {}", text.stdout));
        assert!(line.starts_with(&verdict), "{line}");
        assert!(line.contains(check["check"].as_str().unwrap()), "{line}");
        if let Some(advice) = check["advice"].as_str() {
            assert!(text.stdout.contains(&format!("→ {advice}")), "{advice}");
        }
    }
    assert!(
        text.stdout
            .ends_with("3 ok, 1 to look at, 1 to fix, 4 not measured\n"),
        "{}",
        text.stdout
    );
}
