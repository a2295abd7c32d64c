//! `hookgate emulate`, run as a user runs it.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::cli::Ran;
use crate::process::{Example, Reply, signal, tools_are_there};
use crate::send::{hookgate, stderr};

const KEY: (&str, &str) = ("Authorization", "Bearer tk_test_admin");

/// A running emulator with the lines that it printed.
struct Emulating {
    child: Child,
    out: BufReader<ChildStdout>,
    address: String,
}

impl Emulating {
    fn start(arguments: &[&str]) -> Self {
        let addr = ["--addr", "127.0.0.1:0"];
        let addr: &[&str] = if arguments.contains(&"--addr") {
            &[]
        } else {
            &addr
        };
        let mut command = hookgate(&[&["emulate"], addr, arguments].concat());
        command.env_remove("WEBHOOK_SECRET");
        Self::of(command)
    }

    fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
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
        Reply::to(
            &self.address,
            method,
            path,
            &[(KEY.0, KEY.1.to_owned())],
            body,
        )
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

fn seed(folder: &Path, text: &str) -> String {
    let path = folder.join("seed.json");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn folder(name: &str) -> std::path::PathBuf {
    let folder =
        std::env::temp_dir().join(format!("hookgate-emulate-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn the_first_line_names_the_address_and_the_api_answers_there() {
    let mut emulating = Emulating::start(&[]);
    let reply = emulating.request("GET", "/api/v1/datamodels/dm_orders", "");
    assert_eq!(reply.status, 200);
    assert!(
        reply.body.contains("\"title\":\"Orders\""),
        "{}",
        reply.body
    );
    let mut line = String::new();
    emulating.out.read_line(&mut line).unwrap();
    assert!(line.starts_with("page "), "{line}");
}

#[test]
fn the_sample_signs_with_the_secret_of_the_environment_and_does_not_print_it() {
    let mut command = hookgate(&["emulate", "--addr", "127.0.0.1:0"]);
    command.env("WEBHOOK_SECRET", "whsec_0123456789abcdef_of_a_test");
    let mut emulating = Emulating::of(command);
    let mut lines = String::new();
    for _ in 0..5 {
        emulating.out.read_line(&mut lines).unwrap();
    }
    let last = "with the secret of WEBHOOK_SECRET\nnext    hookgate listen --page\n";
    assert!(lines.ends_with(last), "{lines}");
    assert!(!lines.contains("of_a_test"), "{lines}");
    let snapshot = emulating.request("GET", "/_emulator/snapshot", "");
    assert!(
        snapshot.body.contains("whsec_0123456789abcdef_of_a_test"),
        "{}",
        snapshot.body
    );

    let mut command = hookgate(&["emulate", "--addr", "127.0.0.1:0"]);
    let refused = Ran::to_its_end(command.env("WEBHOOK_SECRET", "whsec_short"));
    assert_eq!(refused.code, Some(5), "{refused:?}");
    assert!(refused.stderr.contains("too short"), "{refused:?}");
}

#[test]
fn the_sample_names_its_keys_and_the_line_to_type_next() {
    let mut emulating = Emulating::start(&[]);
    let mut lines = String::new();
    for _ in 0..5 {
        emulating.out.read_line(&mut lines).unwrap();
    }
    let last = "\
keys    tk_test_read, tk_test_write, tk_test_admin
hooks   to http://127.0.0.1:8787/webhooks, with the secret whsec_made_up_for_local_tries
next    WEBHOOK_SECRET=whsec_made_up_for_local_tries hookgate listen --page
";
    assert!(lines.ends_with(last), "{lines}");
    for key in ["tk_test_read", "tk_test_write", "tk_test_admin"] {
        let bearer = [("Authorization", format!("Bearer {key}"))];
        let reply = Reply::to(&emulating.address, "GET", "/api/v1/datamodels", &bearer, "");
        assert_eq!(reply.status, 200, "{key}");
    }
}

#[test]
fn a_seed_is_read_and_a_wrong_one_told_with_its_place() {
    let folder = folder("seed");
    let path = seed(
        &folder,
        r#"{"keys": [{"name": "ci", "key": "tk_test_admin", "scope": "admin"}], "dataModels": [{"id": "dm_x", "title": "X"}]}"#,
    );
    let emulating = Emulating::start(&["--seed", &path]);
    assert!(
        emulating
            .request("GET", "/api/v1/datamodels", "")
            .body
            .contains("dm_x")
    );
    let path = seed(&folder, "{\n  \"keis\": []}");
    let refused = hookgate(&["emulate", "--seed", &path]).output().unwrap();
    assert_eq!(refused.status.code(), Some(3));
    assert!(
        stderr(&refused).contains("line 2, column 8"),
        "{}",
        stderr(&refused)
    );
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn an_address_that_others_reach_is_asked_for_and_has_a_token() {
    let refused = hookgate(&["emulate", "--addr", "0.0.0.0:0"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("--expose"),
        "{}",
        stderr(&refused)
    );
    // A tunnel leads to a loopback address too.
    let tunnelled = Emulating::start(&["--expose"]);
    assert_eq!(tunnelled.request("GET", "/_emulator/clock", "").status, 401);
    let mut emulating = Emulating::start(&["--addr", "0.0.0.0:0", "--expose"]);
    let address = emulating.address.replace("0.0.0.0", "127.0.0.1");
    emulating.address = address;
    assert_eq!(emulating.request("GET", "/_emulator/clock", "").status, 401);
    let token = emulating
        .out
        .by_ref()
        .lines()
        .map(Result::unwrap)
        .find_map(|line| Some(line.strip_prefix("token   ")?.to_owned()));
    let header = ("Authorization", format!("Bearer {}", token.unwrap()));
    assert_eq!(
        Reply::to(&emulating.address, "GET", "/_emulator/clock", &[header], "").status,
        200
    );
}

#[test]
fn switches_are_given_and_a_wrong_one_is_told() {
    let emulating = Emulating::start(&["--switch", "rateLimit=off"]);
    let switches = emulating.request("GET", "/_emulator/switches", "").body;
    let switches: serde_json::Value = serde_json::from_str(&switches).unwrap();
    assert_eq!(switches["data"]["rateLimit"]["value"], "off");
    for (wrong, told) in [
        (["--switch", "rateLimit=never"], "on, off"),
        (["--switch", "rateLimit"], "NAME=VALUE"),
        (["--switch", "none=on"], "expected one of apiEmits"),
        (["--fault", "none=1"], "expected one of altered-byte"),
        (["--fault", "stale=0"], "at least 1"),
        (["--fault", "stale=many"], "FAULT=seed:N"),
    ] {
        let arguments = [&["emulate", "--addr", "127.0.0.1:0"][..], &wrong].concat();
        let refused = hookgate(&arguments).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}");
        assert!(stderr(&refused).contains(told), "{}", stderr(&refused));
    }
}

#[test]
fn faults_are_on_from_the_start() {
    let emulating = Emulating::start(&["--fault", "status-500=1", "--fault", "gzip=seed:7"]);
    assert_eq!(emulating.request("GET", "/api/v1/blocks", "").status, 500);
    assert_eq!(emulating.request("GET", "/api/v1/blocks", "").status, 200);
    let faults = emulating.request("GET", "/_emulator/faults", "").body;
    let faults: serde_json::Value = serde_json::from_str(&faults).unwrap();
    assert_eq!(
        (&faults["data"][0]["hits"], &faults["data"][1]["seed"]),
        (&serde_json::json!(1), &serde_json::json!(7))
    );
}

#[test]
fn a_seed_that_delivers_elsewhere_is_told() {
    let folder = folder("elsewhere");
    let path = seed(
        &folder,
        r#"{"subscriptions": [{"id": "wh_1", "url": "http://example.com/"}]}"#,
    );
    let arguments = ["emulate", "--addr", "127.0.0.1:0", "--seed", &path];
    let refused = hookgate(&arguments).output().unwrap();
    assert_eq!(refused.status.code(), Some(3));
    let told = stderr(&refused);
    assert!(
        told.contains("wh_1") && told.contains("--deliver-anywhere"),
        "{told}"
    );
    let _ = std::fs::remove_dir_all(folder);
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
    let emulating = Emulating::start(&[]);
    // Where the receiver's own address is taken, another one, and the subscription's URL with it.
    let is_free = std::net::TcpListener::bind(RECEIVER).is_ok();
    let address = if is_free { RECEIVER } else { "127.0.0.1:0" };
    let mut receiver = Example::start_with("receiver", &["--try"], &[("ADDR", address)]);
    if !is_free {
        let body = format!("{{\"url\": \"http://{}/webhooks\"}}", receiver.address);
        let changed = emulating.request("PATCH", "/_emulator/subscriptions/wh_1", &body);
        assert_eq!(changed.status, 200, "{}", changed.body);
    }
    let blocks: Vec<_> = PAGE
        .split("```sh\n")
        .skip(1)
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
        let answered = std::process::Command::new("bash")
            .args(["-c", &block])
            .envs([("no_proxy", "*"), ("NO_PROXY", "*")])
            .output()
            .unwrap();
        assert!(answered.status.success(), "{answered:?}");
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
    let folder = folder("state");
    let path = folder.join("state.json");
    let path = path.to_str().unwrap();
    let receiver = "http://127.0.0.1:9/orders";
    let emulating = Emulating::start(&["--state", path, "--to", receiver]);
    let made = emulating.request(
        "POST",
        "/api/v1/blocks",
        "{\"note\": \"kept over a restart\"}",
    );
    assert_eq!(made.status, 200);
    // A file that others read, and that links to a third, is not the one that secrets are written to.
    let (beside, third) = (
        folder.join("state.json.new"),
        folder.with_extension("third"),
    );
    std::fs::write(&third, "untouched").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&third, &beside).unwrap();
    // The file is new, so the workspace is the sample.
    let told = emulating.terminate();
    let hooks = format!("hooks   to {receiver}, with the secret whsec_made_up_for_local_tries");
    assert!(
        told.contains("tk_test_admin") && told.contains(&hooks),
        "{told}"
    );
    let next = "hookgate listen --page --addr 127.0.0.1:9 --path /orders\n";
    assert!(told.ends_with(next), "{told}");
    assert_eq!(std::fs::read_to_string(&third).unwrap(), "untouched");
    std::fs::remove_file(third).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().collect();
    assert_eq!(files.len(), 1, "nothing is left beside it");
    // The state has subscriptions of its own.
    let other = hookgate(&["emulate", "--state", path, "--to", "http://127.0.0.1:9/x"]);
    let refused = Ran::to_its_end(&mut { other });
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("leave out --to"), "{refused:?}");
    let again = Emulating::start(&["--state", path]);
    assert!(
        again
            .request("GET", "/api/v1/blocks", "")
            .body
            .contains("kept over a restart")
    );
    let told = again.terminate();
    assert!(
        !told.contains("tk_test_admin") && !told.contains("whsec_"),
        "{told}"
    );
    let _ = std::fs::remove_dir_all(folder);
}
