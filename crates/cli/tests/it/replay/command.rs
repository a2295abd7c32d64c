//! `hookgate replay`, run as a user runs it: against the example `receiver`.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use hookgate_testing::log::LoggedDeliveryExt;
use serde_json::json;

use super::*;
use crate::cli::{Folder, Ran, typed};
use crate::send::receiver;

/// A log in a file of its own.
fn file(log: &DeliveryLog) -> (Folder, String) {
    let folder = Folder::new();
    let mut file = Vec::new();
    log.write_to(&mut file).unwrap();
    let path = folder.file("log.jsonl", file);
    (folder, path)
}

fn run(line: &str) -> Ran {
    Ran::typed(&format!("replay {line}"))
}

fn only_authentic() -> DeliveryLog {
    let authentic = |logged: &&LoggedDelivery| logged.answer.as_ref().unwrap().status != 401;
    log(small_log().deliveries().iter().filter(authentic).cloned())
}

#[test]
fn a_log_is_signed_again_and_delivered_with_copies_in_another_order() {
    let (mut example, url) = receiver();
    let (_folder, path) = file(&only_authentic());
    let how = "--duplicate=2 --reorder --seed=7 --concurrency=4";
    let ran = run(&format!("{path} --to {url} {how}")).ends(0);
    ran.begins("18 of 18 answered 2xx, in ");
    ran.says(&[" (13 of them done before)\n", "  204  5\n", "  200  13\n"]);
    ran.says(&["\nanswered after: p50 ", ", max "])
        .lacks(&["whsec", "commit"]);
    // The order is named, no progress bar is drawn where no user looks, and no secret is printed.
    assert_eq!(
        ran.stderr,
        "note: the same order again: --reorder --seed 7\n"
    );
    assert!(example.terminate());
    assert_eq!(example.count_lines_with("deleted by Ada"), 5);
}

#[test]
fn filters_choose_and_json_is_a_line_each() {
    let (_example, url) = receiver();
    let (_folder, path) = file(&small_log());
    let of_lines = [0, 2].map(|at: usize| small_log().deliveries()[at].event_id().unwrap());
    let of_lines = of_lines.each_ref().map(|id| &**id);
    // The forged one stays forged: 401, as the log says.
    let forged = json!({ "refused": 1, "asTheyCame": 1, "differing": 0 });
    let accepted = json!({ "accepted": 2, "byStatus": { "204": 2 } });
    for (filters, ids, counts) in [
        ("--id=evt_1 --id=evt_3", &["evt_1", "evt_3"][..], accepted),
        ("--line=1 --line=3", &of_lines, json!({})),
        ("--outcome=replayed", &["evt_2"], json!({})),
        ("--outcome=401", &["evt_9"], forged),
        ("--type=row.* --id=evt_4", &["evt_4"], json!({})),
    ] {
        let values = run(&format!("{path} --to {url} --json {filters}"))
            .ends(0)
            .lines();
        let (summary, answers) = values.split_last().unwrap();
        let found: Vec<_> = answers
            .iter()
            .map(|value| &value["answer"]["eventId"])
            .collect();
        assert_eq!(found, ids, "{filters}");
        let summary = &summary["summary"];
        assert!(
            summary["latency"]["p99Us"].as_u64().unwrap() > 0,
            "{filters}"
        );
        for (name, count) in counts.as_object().unwrap() {
            assert_eq!(summary[name], *count, "{filters}: {name}");
        }
    }
    let nothing = run(&format!("{path} --to {url} --type=page.created")).ends(3);
    nothing.tells(&["--type, --id, --line and --outcome"]);
}

/// The same answer again says that nothing has changed.
#[test]
fn what_was_refused_and_is_refused_again_is_no_failure() {
    let (_example, url) = receiver();
    let four = ["evt_1", "evt_2", "evt_3", "evt_4"].map(|id| forged(id, 0));
    let (_folder, path) = file(&log(four));
    let ran = run(&format!("{path} --to {url}")).ends(0);
    ran.begins("0 of 4 answered 2xx");
    ran.says(&["\n4 of those not answered 2xx are answered as logged\n"]);
    // Another answer than the log's is a failure, and its line names the event that the log names.
    let mut accepted = forged("evt_5", 0);
    accepted.answer = Some(answer(204, "handled"));
    let is_named = |name: &str| name.starts_with("x-service-event");
    accepted.headers.retain(|(name, _)| !is_named(name));
    let (_folder, path) = file(&log([forged("evt_4", 0), accepted]));
    let ran = run(&format!("{path} --to {url} --raw")).ends(1);
    let line = "line 2 evt_5 row.deleted: 401; logged: 204\n0 of 2 answered 2xx";
    ran.begins(line);
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
    let folder = Folder::new();
    let mut one = logged("evt_1", 0);
    let body = body("evt_1").replace("Orders", &"Orders ".repeat(600));
    one.body = Some(body.into());
    let line = one.to_line() + "\n";
    let most_of = |deliveries: usize| {
        let path = folder.file("long.jsonl", line.repeat(deliveries));
        let replay = format!("replay {path} --to {url} --raw --concurrency=8");
        let mut child = typed(&replay).spawn().unwrap();
        let status = format!("/proc/{}/status", child.id());
        let mut most = 0;
        while child.try_wait().unwrap().is_none() {
            let status = fs::read_to_string(&status).unwrap_or_default();
            let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let peak = peak.map(|peak| peak.trim().trim_end_matches(" kB"));
            most = peak.map_or(most, |peak| peak.parse::<u64>().unwrap());
            std::thread::sleep(Duration::from_millis(5));
        }
        let ran = Ran::with(child.wait_with_output().unwrap());
        let all = format!("{deliveries} of {deliveries} answered 2xx");
        ran.begins(&all);
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
    let (_folder, path) = file(&only_authentic());
    let mut command = typed(&format!("replay {path} --to {url} --raw"));
    let ran = Ran::to_its_end(command.env_remove("WEBHOOK_SECRET")).ends(1);
    ran.says(&["line 1 evt_1 row.deleted: 401; logged: 204\n"]);
    ran.says(&["0 of 6 answered 2xx", "\n  401  6\n"]);
    // All have one answer, so it says what that means, as `hookgate send` does.
    ran.says(&["not authentic or not fresh: "]);
    let wrong_path = url.replace("/webhooks", "/other");
    let ran = run(&format!("{path} --to {wrong_path} --raw"));
    ran.says(&["compare it with the path of"]);
}

// fault X2: a replay signs an empty body for a delivery whose body was not recorded, and sends it
#[test]
fn a_delivery_without_a_recorded_body_is_skipped_and_counted() {
    let (_example, url) = receiver();
    let mut unread = logged("evt_2", 1);
    unread.body = None;
    unread.answer = Some(answer(404, "wrong_path"));
    let (_folder, path) = file(&log([logged("evt_1", 0), unread]));
    let ran = run(&format!("{path} --to {url} --duplicate=1")).ends(0);
    ran.begins("2 of 2 answered 2xx, in ");
    ran.says(&["\n1 skipped, whose body was not recorded\n"]);
    let lines = run(&format!("{path} --to {url} --raw --json")).lines();
    let summary = &lines.last().unwrap()["summary"];
    assert_eq!(
        json!([summary["skipped"], summary["planned"]]),
        json!([1, 1])
    );
    let ran = run(&format!("{path} --to {url} --line=2")).ends(3);
    ran.tells(&["a body that was not recorded can't be sent"]);
}

#[test]
fn a_log_comes_through_a_pipe_too() {
    let (_example, url) = receiver();
    let mut log = Vec::new();
    only_authentic().write_to(&mut log).unwrap();
    let ran = Ran::fed(&mut typed(&format!("replay - --to {url} --rate=50")), &log).ends(0);
    ran.begins("6 of 6 answered 2xx");
}

#[test]
fn a_receiver_that_does_not_run_is_named() {
    let (_folder, path) = file(&small_log());
    // No server listens there.
    let ran = run(&format!("{path} --to http://127.0.0.1:1/webhooks")).ends(4);
    ran.tells(&["is the receiver running"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_gives_the_summary_so_far() {
    // It takes connections and answers nothing by itself.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (_folder, path) = file(&only_authentic());
    let child = typed(&format!("replay {path} --to {url}")).spawn().unwrap();
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
    first.read_exact(&mut [0; 1]).unwrap();
    crate::process::signal(&child, "INT");
    let ran = Ran::with(child.wait_with_output().unwrap()).ends(130);
    let so_far = "interrupted: 1 of 6 deliveries sent and answered\n1 of 1 answered 2xx";
    ran.begins(so_far);
}

/// The progress bar is for a user at the terminal, on standard error; the results stand below it.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_shows_how_far_it_is() {
    use crate::terminal::Terminal;

    let (_example, url) = receiver();
    let (_folder, path) = file(&only_authentic());
    let arguments = ["replay", &path, "--to", &url, "--rate=4"];
    let mut terminal = Terminal::start(&arguments, &[("WEBHOOK_SECRET", SECRET)], (12, 90));
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
    let (_folder, path) = file(&log(many));
    let began = std::time::Instant::now();
    let arguments = ["replay", &path, "--to", &url, "--raw"];
    let mut terminal = Terminal::start(&arguments, &[], (12, 90));
    terminal.shows(&["3000 of 3000 answered 2xx"]);
    assert!(terminal.end().success());
    // A bar of 90 columns has less than 400 bytes.
    let most = 4_000 * (began.elapsed().as_secs() as usize + 5);
    assert!(terminal.bytes < most, "{} of {most}", terminal.bytes);
}

/// The bar counts from the start too, so that both show one rate.
#[cfg(target_os = "linux")]
#[test]
fn the_time_of_the_summary_is_that_since_the_start() {
    let url = answering();
    let mut command = typed(&format!("--json replay - --to {url} --raw"));
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    writeln!(pipe, "{}", logged("evt_1", 0).to_line()).unwrap();
    drop(pipe);
    let lines = Ran::with(child.wait_with_output().unwrap()).lines();
    let elapsed = lines.last().unwrap()["summary"]["elapsedUs"].as_u64();
    assert!(elapsed.unwrap() > 200_000, "{lines:?}");
}

/// `| head -1`: a reader that closes the pipe early is not an error.
#[test]
fn a_closed_pipe_is_not_an_error() {
    let (_example, url) = receiver();
    let many = (0..400).map(|number| logged(&format!("evt_{number}"), number));
    let (_folder, path) = file(&log(many));
    let mut child = typed(&format!("--json replay {path} --to {url}"))
        .spawn()
        .unwrap();
    let mut pipe = child.stdout.take().unwrap();
    pipe.read_exact(&mut [0; 10]).unwrap();
    drop(pipe);
    Ran::with(child.wait_with_output().unwrap())
        .ends(0)
        .warns_of_nothing();
}
