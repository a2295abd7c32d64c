//! `hookgate emulate`, run as a user runs it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::{Folder, Ran, has, typed};
use crate::process::{Example, Reply, signal, tools_are_there};

const KEY: &str = "tk_test_admin";

/// A running emulator with the lines that it printed.
struct Emulating {
    child: Child,
    out: BufReader<ChildStdout>,
    address: String,
}

impl Emulating {
    fn start(options: &str) -> Self {
        Self::with(None, options)
    }

    /// With this secret in its environment.
    fn with(secret: Option<&str>, options: &str) -> Self {
        let address = if options.contains("--addr") {
            ""
        } else {
            "--addr 127.0.0.1:0"
        };
        let mut command = typed(&format!("emulate {address} {options}"));
        match secret {
            Some(secret) => command.env("WEBHOOK_SECRET", secret),
            None => command.env_remove("WEBHOOK_SECRET"),
        };
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on http://");
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        Self {
            child,
            out,
            address,
        }
    }

    fn request(&self, method: &str, path: &str, body: &str) -> Reply {
        let key = [("Authorization", format!("Bearer {KEY}"))];
        Reply::to(&self.address, method, path, &key, body)
    }

    fn data(&self, path: &str) -> Value {
        let answer = self.request("GET", path, "").body;
        serde_json::from_str::<Value>(&answer).unwrap()["data"].take()
    }

    /// The five lines behind the first.
    fn told(&mut self) -> String {
        let mut lines = String::new();
        for _ in 0..5 {
            self.out.read_line(&mut lines).unwrap();
        }
        lines
    }

    /// Ends it as a supervisor does. Returns the lines behind the first.
    fn terminate(mut self) -> String {
        signal(&self.child, "TERM");
        assert!(self.child.wait().unwrap().success());
        let mut lines = String::new();
        self.out.read_to_string(&mut lines).unwrap();
        lines
    }
}

impl Drop for Emulating {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_sample_signs_with_the_secret_of_the_environment_and_does_not_print_it() {
    let secret = "whsec_0123456789abcdef_of_a_test";
    let mut emulating = Emulating::with(Some(secret), "");
    let lines = emulating.told();
    let last = "with the secret of WEBHOOK_SECRET\nnext    hookgate listen --page\n";
    assert!(lines.ends_with(last), "{lines}");
    assert!(!lines.contains("of_a_test"), "{lines}");
    has(
        &emulating.request("GET", "/_emulator/snapshot", "").body,
        &[secret],
    );

    let mut command = typed("emulate --addr 127.0.0.1:0");
    let refused = Ran::to_its_end(command.env("WEBHOOK_SECRET", "whsec_short")).ends(5);
    refused.tells(&["too short"]);
}

#[test]
fn the_sample_names_its_page_its_keys_and_the_line_to_type_next() {
    let mut emulating = Emulating::start("");
    let lines = emulating.told();
    let last = "\
keys    tk_test_read, tk_test_write, tk_test_admin
hooks   to http://127.0.0.1:8787/webhooks, with the secret whsec_made_up_for_local_tries
next    WEBHOOK_SECRET=whsec_made_up_for_local_tries hookgate listen --page
";
    assert!(lines.ends_with(last), "{lines}");
    assert!(lines.starts_with("page "), "{lines}");
    for key in ["tk_test_read", "tk_test_write", "tk_test_admin"] {
        let bearer = [("Authorization", format!("Bearer {key}"))];
        let model = "/api/v1/datamodels/dm_orders";
        let reply = Reply::to(&emulating.address, "GET", model, &bearer, "");
        assert_eq!(reply.status, 200, "{key}");
        has(&reply.body, &["\"title\":\"Orders\""]);
    }
}

#[test]
fn a_seed_is_read_and_a_wrong_one_told_with_its_place() {
    let folder = Folder::new();
    let seed = folder.file(
        "seed.json",
        r#"{"keys": [{"name": "ci", "key": "tk_test_admin", "scope": "admin"}], "dataModels": [{"id": "dm_x", "title": "X"}]}"#,
    );
    let emulating = Emulating::start(&format!("--seed {seed}"));
    has(
        &emulating.request("GET", "/api/v1/datamodels", "").body,
        &["dm_x"],
    );
    let elsewhere = r#"{"subscriptions": [{"id": "wh_1", "url": "http://example.com/"}]}"#;
    for (text, told) in [
        ("{\n  \"keis\": []}", &["line 2, column 8"][..]),
        (elsewhere, &["wh_1", "--deliver-anywhere"]),
    ] {
        let seed = folder.file("wrong.json", text);
        let line = format!("emulate --addr 127.0.0.1:0 --seed {seed}");
        Ran::typed(&line).ends(3).tells(told);
    }
}

#[test]
fn an_address_that_others_reach_is_asked_for_and_has_a_token() {
    // A tunnel leads to a loopback address too.
    let tunnelled = Emulating::start("--expose");
    assert_eq!(tunnelled.request("GET", "/_emulator/clock", "").status, 401);
    let mut emulating = Emulating::start("--addr 0.0.0.0:0 --expose");
    emulating.address = emulating.address.replace("0.0.0.0", "127.0.0.1");
    assert_eq!(emulating.request("GET", "/_emulator/clock", "").status, 401);
    let mut lines = emulating.out.by_ref().lines().map(Result::unwrap);
    let token = lines.find_map(|line| Some(line.strip_prefix("token   ")?.to_owned()));
    let header = [("Authorization", format!("Bearer {}", token.unwrap()))];
    let reply = Reply::to(&emulating.address, "GET", "/_emulator/clock", &header, "");
    assert_eq!(reply.status, 200);
}

#[test]
fn switches_and_faults_are_on_from_the_start() {
    let given = "--switch rateLimit=off --fault status-500=1 --fault gzip=seed:7";
    let emulating = Emulating::start(given);
    let switches = emulating.data("/_emulator/switches");
    assert_eq!(switches["rateLimit"]["value"], "off");
    for status in [500, 200] {
        assert_eq!(
            emulating.request("GET", "/api/v1/blocks", "").status,
            status
        );
    }
    let faults = emulating.data("/_emulator/faults");
    assert_eq!(json!([faults[0]["hits"], faults[1]["seed"]]), json!([1, 7]));
}

/// The shell lines of the docs, as they stand there but for the port.
#[test]
fn a_cell_changed_as_the_docs_say_prints_in_readmes_receiver_within_a_second() {
    if !tools_are_there(&["bash", "curl"], "the shell lines of docs/emulator.md") {
        return;
    }
    // A busy machine may need longer once.
    let mut took = (0..5).map(|_| printed_after());
    assert!(took.any(|took| took < Duration::from_secs(1)));
}

/// Each line is printed. Returns how long the slower one took.
fn printed_after() -> Duration {
    const PAGE: &str = include_str!("../../../../docs/emulator.md");
    const RECEIVER: &str = "127.0.0.1:8787";
    let emulating = Emulating::start("");
    // Where the receiver's own address is taken, another one, and the subscription's URL with it.
    let is_free = std::net::TcpListener::bind(RECEIVER).is_ok();
    let address = if is_free { RECEIVER } else { "127.0.0.1:0" };
    let mut receiver = Example::start_with("receiver", &["--try"], &[("ADDR", address)]);
    if !is_free {
        let body = format!("{{\"url\": \"http://{}/webhooks\"}}", receiver.address);
        let changed = emulating.request("PATCH", "/_emulator/subscriptions/wh_1", &body);
        assert_eq!(changed.status, 200, "{}", changed.body);
    }
    let blocks = PAGE.split("```sh\n").skip(1);
    let blocks: Vec<_> = blocks
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert_eq!(blocks[0], "cargo run --example receiver -- --try\n");
    assert_eq!(blocks[1], "cargo run -p hookgate-cli -- emulate\n");
    let printed = PAGE.split("```text\n").nth(1).unwrap().lines();
    let printed: Vec<_> = printed.take(2).collect();
    let mut slowest = Duration::ZERO;
    for (block, line) in [blocks[2], blocks[3]].into_iter().zip(printed) {
        assert!(block.contains("http://127.0.0.1:8788/api/v1/"), "{block}");
        let block = block.replace("127.0.0.1:8788", &emulating.address);
        let mut shell = std::process::Command::new("bash");
        let shell = shell.args(["-c", &block]);
        Ran::to_its_end(shell.envs([("no_proxy", "*"), ("NO_PROXY", "*")])).ends(0);
        let since = Instant::now();
        // Behind the event's id, which differs.
        let expected = line.split_once('…').expect(line).1;
        let expected = expected.split(" (").next().unwrap();
        receiver.line_with(expected);
        slowest = slowest.max(since.elapsed());
    }
    slowest
}

// fault F38: the emulator's state, with its secrets, is written to a file that was left beside it and that others read, or through a link
// fault V9: a supervisor sends SIGTERM as soon as `emulate` has printed its first line, and the state is not kept
#[test]
fn the_state_is_kept_in_a_file() {
    use std::os::unix::fs::PermissionsExt as _;

    let (folder, elsewhere) = (Folder::new(), Folder::new());
    let path = folder.path("state.json");
    let receiver = "http://127.0.0.1:9/orders";
    let emulating = Emulating::start(&format!("--state {path} --to {receiver}"));
    let note = "kept over a restart";
    let made = emulating.request(
        "POST",
        "/api/v1/blocks",
        &format!("{{\"note\": \"{note}\"}}"),
    );
    assert_eq!(made.status, 200);
    // A file that others read, and that links to a third, is not the one that secrets are written
    // to.
    let third = elsewhere.file("third", "untouched");
    std::os::unix::fs::symlink(&third, folder.path("state.json.new")).unwrap();
    // The file is new, so the workspace is the sample.
    let told = emulating.terminate();
    let hooks = format!("hooks   to {receiver}, with the secret whsec_made_up_for_local_tries");
    has(&told, &[KEY, &hooks]);
    let next = "hookgate listen --page --addr 127.0.0.1:9 --path /orders\n";
    assert!(told.ends_with(next), "{told}");
    assert_eq!(std::fs::read_to_string(&third).unwrap(), "untouched");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let files = std::fs::read_dir(&folder.0).unwrap().count();
    assert_eq!(files, 1, "nothing is left beside it");
    // The state has subscriptions of its own.
    let other = format!("emulate --state {path} --to http://127.0.0.1:9/x");
    Ran::typed(&other).ends(2).tells(&["leave out --to"]);
    let again = Emulating::start(&format!("--state {path}"));
    has(&again.request("GET", "/api/v1/blocks", "").body, &[note]);
    let told = again.terminate();
    assert!(!told.contains(KEY) && !told.contains("whsec_"), "{told}");
}
