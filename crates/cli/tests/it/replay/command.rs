//! `hookgate replay`, run as a user runs it: against the example `receiver`.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use hookgate_testing::log::LoggedDeliveryExt;
use serde_json::Value;

use super::*;
use crate::process::Example;
use crate::send::{hookgate, stderr, stdout};

/// A log in a file of its own.
fn file(name: &str, log: &DeliveryLog) -> PathBuf {
    let path = format!(
        "{}/replay-{name}-{}.jsonl",
        env!("CARGO_TARGET_TMPDIR"),
        std::process::id()
    );
    let lines = log
        .deliveries()
        .iter()
        .map(|logged| logged.to_line() + "\n");
    fs::write(&path, lines.collect::<String>()).unwrap();
    path.into()
}

fn receiver() -> (Example, String) {
    let example = Example::start_with("receiver", &["--try"], &[]);
    let url = format!("http://{}/webhooks", example.address);
    (example, url)
}

fn run(arguments: &[&str]) -> Output {
    let mut command = hookgate(&["replay"]);
    command
        .args(arguments)
        .env("WEBHOOK_SECRET", SECRET)
        .output()
        .unwrap()
}

fn only_authentic() -> DeliveryLog {
    let authentic = |logged: &&LoggedDelivery| logged.answer.as_ref().unwrap().status != 401;
    log(small_log().deliveries().iter().filter(authentic).cloned())
}

#[test]
fn a_log_is_signed_again_and_delivered_with_copies_in_another_order() {
    let (mut example, url) = receiver();
    let path = file("good", &only_authentic());
    let path = path.to_str().unwrap();
    let output = run(&[
        path,
        "--to",
        &url,
        "--duplicate=2",
        "--reorder",
        "--seed=7",
        "--concurrency=4",
    ]);
    let (text, told) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{text}{told}");
    assert!(text.starts_with("18 of 18 answered 2xx, in "), "{text}");
    assert!(text.contains(" (13 of them done before)\n"), "{text}");
    assert!(
        text.contains("  204  5\n") && text.contains("  200  13\n"),
        "{text}"
    );
    assert!(
        text.contains("\nanswered after: p50 ") && text.contains(", max "),
        "{text}"
    );
    // The order is named, no progress bar is drawn where no user looks, and no secret is printed.
    assert_eq!(told, "note: the same order again: --reorder --seed 7\n");
    assert!(
        !text.contains("whsec") && !text.contains("commit"),
        "{text}"
    );
    assert!(example.terminate());
    assert_eq!(example.count_lines_with("deleted by Ada"), 5);
}

#[test]
fn filters_choose_and_json_is_a_line_each() {
    let (_example, url) = receiver();
    let path = file("filters", &small_log());
    let path = path.to_str().unwrap();
    let lines = |arguments: &[&str]| {
        let output = run(&[&[path, "--to", &url, "--json"], arguments].concat());
        let text = stdout(&output);
        let values: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let (summary, answers) = values.split_last().unwrap();
        let ids: Vec<_> = answers
            .iter()
            .map(|value| value["answer"]["eventId"].as_str().unwrap().to_owned())
            .collect();
        (ids, summary["summary"].clone(), output.status.code())
    };
    let (ids, summary, code) = lines(&["--id=evt_1", "--id=evt_3"]);
    assert_eq!((ids, code), (vec!["evt_1".into(), "evt_3".into()], Some(0)));
    assert_eq!(
        (&summary["accepted"], &summary["byStatus"]["204"]),
        (&2.into(), &2.into())
    );
    assert!(summary["latency"]["p99Us"].as_u64().unwrap() > 0);
    let (by_line, ..) = lines(&["--line=1", "--line=3"]);
    let logged = small_log();
    let wanted = [0, 2].map(|at: usize| logged.deliveries()[at].event_id().unwrap());
    assert_eq!(by_line, wanted);
    let (ids, ..) = lines(&["--outcome=replayed"]);
    assert_eq!(ids, ["evt_2"]);
    // The forged one stays forged: 401, as the log says.
    let (ids, summary, code) = lines(&["--outcome=401"]);
    assert_eq!((ids, code), (vec!["evt_9".into()], Some(0)));
    assert_eq!(
        (&summary["refused"], &summary["asTheyCame"]),
        (&1.into(), &1.into())
    );
    assert_eq!(summary["differing"], 0);
    let (ids, ..) = lines(&["--type=row.*", "--id=evt_4"]);
    assert_eq!(ids, ["evt_4"]);
    let nothing = run(&[path, "--to", &url, "--type=page.created"]);
    assert_eq!(nothing.status.code(), Some(3));
    assert!(
        stderr(&nothing).contains("--type, --id, --line and --outcome"),
        "{}",
        stderr(&nothing)
    );
}

/// The same answer again says that nothing has changed.
#[test]
fn what_was_refused_and_is_refused_again_is_no_failure() {
    let (_example, url) = receiver();
    let four = ["evt_1", "evt_2", "evt_3", "evt_4"].map(|id| forged(id, 0));
    let path = file("refused", &log(four));
    let output = run(&[path.to_str().unwrap(), "--to", &url]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    assert!(text.starts_with("0 of 4 answered 2xx"), "{text}");
    let as_logged = "\n4 of those not answered 2xx are answered as logged\n";
    assert!(text.contains(as_logged), "{text}");
    // Another answer than the log's is a failure, and its line names the event that the log names.
    let mut accepted = forged("evt_5", 0);
    accepted.answer = Some(answer(204, "handled"));
    accepted
        .headers
        .retain(|(name, _)| !name.starts_with("x-service-event"));
    let path = file("accepted", &log([forged("evt_4", 0), accepted]));
    let output = run(&[path.to_str().unwrap(), "--to", &url, "--raw"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let line = "line 2 evt_5 row.deleted: 401; logged: 204\n0 of 2 answered 2xx";
    assert!(text.starts_with(line), "{text}");
}

/// It answers each request 204.
#[cfg(target_os = "linux")]
fn answering() -> String {
    use std::io::{BufRead, BufReader};

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                let mut stream = BufReader::new(stream.unwrap());
                let (mut line, mut length) = (String::new(), 0);
                while stream.read_line(&mut line).unwrap_or(0) > 0 {
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    if line == "\r\n" {
                        stream.read_exact(&mut vec![0; length]).unwrap();
                        let answer = b"HTTP/1.1 204 No Content\r\n\r\n";
                        stream.get_mut().write_all(answer).unwrap();
                    }
                    line.clear();
                }
            });
        }
    });
    url
}

/// Bodies of 4 KiB, so that the longer log holds 40 MiB.
#[cfg(target_os = "linux")]
#[test]
fn the_memory_of_a_replay_does_not_grow_with_its_log() {
    let url = answering();
    let mut one = logged("evt_1", 0);
    let body = body("evt_1").replace("Orders", &"Orders ".repeat(600));
    one.body = Some(body.into());
    let line = one.to_line() + "\n";
    let most_of = |deliveries: usize| {
        let path = file(&format!("long-{deliveries}"), &log([]));
        fs::write(&path, line.repeat(deliveries)).unwrap();
        let mut child = hookgate(&["replay", path.to_str().unwrap(), "--to", &url, "--raw"])
            .arg("--concurrency=8")
            .spawn()
            .unwrap();
        let status = format!("/proc/{}/status", child.id());
        let mut most = 0;
        while child.try_wait().unwrap().is_none() {
            let status = fs::read_to_string(&status).unwrap_or_default();
            let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let peak = peak.map(|peak| peak.trim().trim_end_matches(" kB"));
            most = peak.map_or(most, |peak| peak.parse::<u64>().unwrap());
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = child.wait_with_output().unwrap();
        let all = format!("{deliveries} of {deliveries} answered 2xx");
        assert!(stdout(&output).starts_with(&all), "{}", stdout(&output));
        fs::remove_file(path).unwrap();
        most
    };
    let (few, many) = (most_of(2_500), most_of(10_000));
    println!("2,500 deliveries {few} kB, 10,000 deliveries {many} kB");
    assert!(many < 40_000, "{many} kB");
    assert!(many < few + 4_000, "{few} kB and {many} kB");
}

#[test]
fn raw_deliveries_are_as_old_as_they_are_and_need_no_secret() {
    let (_example, url) = receiver();
    let path = file("raw", &only_authentic());
    let mut command = hookgate(&["replay", path.to_str().unwrap(), "--to", &url, "--raw"]);
    let output = command.env_remove("WEBHOOK_SECRET").output().unwrap();
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}{}", stderr(&output));
    assert!(
        text.contains("line 1 evt_1 row.deleted: 401; logged: 204\n"),
        "{text}"
    );
    assert!(text.contains("0 of 6 answered 2xx"), "{text}");
    assert!(text.contains("\n  401  6\n"), "{text}");
    // All have one answer, so it says what that means, as `hookgate send` does.
    assert!(text.contains("not authentic or not fresh: "), "{text}");
    let wrong_path = url.replace("/webhooks", "/other");
    let output = run(&[path.to_str().unwrap(), "--to", &wrong_path, "--raw"]);
    let text = stdout(&output);
    assert!(text.contains("compare it with the path of"), "{text}");
}

// fault X2: a replay signs an empty body for a delivery whose body was not recorded, and sends it
#[test]
fn a_delivery_without_a_recorded_body_is_skipped_and_counted() {
    let (_example, url) = receiver();
    let mut unread = logged("evt_2", 1);
    unread.body = None;
    unread.answer = Some(answer(404, "wrong_path"));
    let path = file("unread", &log([logged("evt_1", 0), unread]));
    let path = path.to_str().unwrap();
    let output = run(&[path, "--to", &url, "--duplicate=1"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    assert!(text.starts_with("2 of 2 answered 2xx, in "), "{text}");
    let skipped = "\n1 skipped, whose body was not recorded\n";
    assert!(text.contains(skipped), "{text}");
    let output = run(&[path, "--to", &url, "--raw", "--json"]);
    let text = stdout(&output);
    let summary: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(summary["summary"]["skipped"], 1, "{text}");
    assert_eq!(summary["summary"]["planned"], 1, "{text}");
    let output = run(&[path, "--to", &url, "--line=2"]);
    assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
    let told = stderr(&output);
    assert!(
        told.contains("a body that was not recorded can't be sent"),
        "{told}"
    );
}

#[test]
fn a_log_comes_through_a_pipe_too() {
    let (_example, url) = receiver();
    let mut child = hookgate(&["replay", "-", "--to", &url, "--rate=50"])
        .env("WEBHOOK_SECRET", SECRET)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for logged in only_authentic().deliveries() {
        writeln!(stdin, "{}", logged.to_line()).unwrap();
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stdout(&output).starts_with("6 of 6 answered 2xx"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    let path = file("wrong", &small_log());
    let path = path.to_str().unwrap();
    let url = "http://127.0.0.1:1/webhooks"; // no server listens there
    let output = run(&[path, "--to", url]);
    assert_eq!(output.status.code(), Some(4), "{}", stdout(&output));
    assert!(
        stderr(&output).contains("is the receiver running"),
        "{}",
        stderr(&output)
    );
    let broken = format!(
        "{}/replay-broken-{}.jsonl",
        env!("CARGO_TARGET_TMPDIR"),
        std::process::id()
    );
    fs::write(&broken, "{\"no\":\"delivery\"}\n{}\n").unwrap();
    for (arguments, code, advice) in [
        (&["/no/such/log", "--to", url][..], 3, "can't be opened"),
        (
            &[&broken, "--to", url],
            3,
            "line 1 of the log is not a delivery",
        ),
        (&[path, "--to", "localhost"], 2, "write it whole"),
        (&[path], 2, "--to"),
        (&[path, "--to", url, "--rate=0"], 2, "from 0.000001"),
        (&[path, "--to", url, "--concurrency=0"], 2, "1.."),
        (&[path, "--to", url, "--seed=1"], 2, "--reorder"),
        (
            &[path, "--to", url, "--secret-env=NO_SUCH_SECRET"],
            5,
            "NO_SUCH_SECRET",
        ),
    ] {
        let output = run(arguments);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(advice),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
}

/// A receiver that takes connections and answers nothing.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    (listener, url)
}

#[cfg(unix)]
#[test]
fn ctrl_c_gives_the_summary_so_far() {
    let (listener, url) = silent();
    let path = file("interrupted", &only_authentic());
    let child = hookgate(&["replay", path.to_str().unwrap(), "--to", &url])
        .env("WEBHOOK_SECRET", SECRET)
        .spawn()
        .unwrap();
    // One is answered, the next one waits for ever.
    let (mut first, _) = listener.accept().unwrap();
    first
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut request = Vec::new();
    while !String::from_utf8_lossy(&request).contains("\"Ada\"}}}") {
        let mut some = [0; 1_024];
        let read = first.read(&mut some).unwrap();
        assert!(read > 0);
        request.extend_from_slice(&some[..read]);
    }
    first.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
    let mut again = [0; 1];
    first.read_exact(&mut again).unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(
        text.starts_with("interrupted: 1 of 6 deliveries sent and answered\n1 of 1 answered 2xx"),
        "{text}"
    );
}

/// The progress bar is for a user at the terminal, on standard error; the results stand below it.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_shows_how_far_it_is() {
    use crate::terminal::Terminal;

    let (_example, url) = receiver();
    let path = file("bar", &only_authentic());
    let mut terminal = Terminal::start(
        &["replay", path.to_str().unwrap(), "--to", &url, "--rate=4"],
        &[("WEBHOOK_SECRET", SECRET)],
        (12, 90),
    );
    terminal.shows(&["2 sent, ", "/s"]);
    terminal.shows(&["6 of 6 answered 2xx", "answered after: p50"]);
    assert!(terminal.end().success());
    terminal.assert_whole();
}

/// A bar that is drawn for each delivery slows the replay of a long log down.
#[cfg(target_os = "linux")]
#[test]
fn the_bar_is_drawn_ten_times_a_second_however_many_are_sent() {
    use crate::terminal::Terminal;

    let url = answering();
    let many = (0..3_000).map(|number| logged(&format!("evt_{number}"), 0));
    let path = file("drawn", &log(many));
    let began = std::time::Instant::now();
    let mut terminal = Terminal::start(
        &["replay", path.to_str().unwrap(), "--to", &url, "--raw"],
        &[],
        (12, 90),
    );
    terminal.shows(&["3000 of 3000 answered 2xx"]);
    assert!(terminal.end().success());
    // A bar of 90 columns has less than 400 bytes.
    let most = 4_000 * (began.elapsed().as_secs() as usize + 5);
    assert!(terminal.bytes < most, "{} of {most}", terminal.bytes);
    fs::remove_file(path).unwrap();
}

/// The bar counts from the start too, so that both show one rate.
#[cfg(target_os = "linux")]
#[test]
fn the_time_of_the_summary_is_that_since_the_start() {
    let url = answering();
    let mut child = hookgate(&["--json", "replay", "-", "--to", &url, "--raw"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    writeln!(pipe, "{}", logged("evt_1", 0).to_line()).unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    let text = stdout(&output);
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let elapsed = last["summary"]["elapsedUs"].as_u64().unwrap();
    assert!(elapsed > 200_000, "{text}");
}

/// `| head -1`: a reader that closes the pipe early is not an error.
#[test]
fn a_closed_pipe_is_not_an_error() {
    let (_example, url) = receiver();
    let many = (0..400).map(|number| logged(&format!("evt_{number}"), number));
    let path = file("closed", &log(many));
    let mut child = hookgate(&["--json", "replay", path.to_str().unwrap(), "--to", &url])
        .env("WEBHOOK_SECRET", SECRET)
        .spawn()
        .unwrap();
    let mut some = [0; 10];
    let mut pipe = child.stdout.take().unwrap();
    pipe.read_exact(&mut some).unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
}
