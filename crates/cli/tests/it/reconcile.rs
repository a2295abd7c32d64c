//! `hookgate reconcile`, against an emulator in this process.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hookgate_client::reconcile::{Reconcile, Settings, SqliteMirror};
use hookgate_client::{ApiKey, Client};
use hookgate_emulator::{Emulator, Seed};
use serde_json::{Value, json};

use crate::cli::{Ran, Scratch, ends, hookgate};

const KEY: &str = "tk_test_read";

struct Service {
    emulator: Emulator,
    runtime: tokio::runtime::Runtime,
}

/// A file of SQLite, gone with its neighbours.
struct MirrorFile(PathBuf);

impl MirrorFile {
    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for MirrorFile {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", self.path()));
        }
    }
}

impl Service {
    fn start() -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let emulator = runtime.block_on(Emulator::start(Seed::orders())).unwrap();
        Self { emulator, runtime }
    }

    /// A mirror that has the rows as they are now.
    fn mirror(&self) -> MirrorFile {
        let port = self.emulator.address().port();
        let name = format!("hookgate-cli-{}-mirror-{port}.db", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mirror = SqliteMirror::open(&path).unwrap().with_values();
        let client = Client::new(&self.emulator.base_url(), ApiKey::new(KEY).unwrap()).unwrap();
        let mut settings = Settings::default();
        settings.is_filling = true;
        let mut filling = Reconcile::new(client, mirror, "dm_orders", settings);
        let filled = filling.pass(async |_| Ok::<_, String>(()));
        self.runtime.block_on(filled).unwrap();
        MirrorFile(path)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = hookgate(&[&["reconcile", "--model", "dm_orders"], arguments].concat());
        command
            .env("HOOKGATE_API_URL", self.emulator.base_url())
            .env("HOOKGATE_API_KEY", KEY);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::to_its_end(&mut self.command(arguments))
    }

    /// Changes that no handled event told of.
    fn change(&self) -> String {
        let orders = self.emulator.rows("dm_orders");
        orders
            .update("row_order_1", json!({ "prop_quantity": 77 }))
            .unwrap();
        orders.delete("row_order_2").unwrap();
        orders.create(json!({ "prop_customer": "Cy" })).unwrap()
    }
}

fn lines(ran: &Ran) -> Vec<Value> {
    let lines = ran.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect()
}

#[test]
fn rows_that_changed_are_printed_once_and_the_mirror_stays() {
    let service = Service::start();
    let mirror = service.mirror();
    let same = service.run(&["--mirror", mirror.path()]);
    assert_eq!((same.code, &*same.stdout), (Some(0), ""), "{same:?}");
    assert!(same.stderr.contains("note: pass 3, complete: "), "{same:?}");

    let created = service.change();
    // Nothing is written, so another run prints the same.
    for _ in 0..2 {
        let ran = service.run(&["--mirror", mirror.path(), "--passes", "4", "--json"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let mut lines = lines(&ran);
        lines.sort_by_key(|line| line["kind"].to_string());
        let of = |key: &str| -> Vec<_> { lines.iter().map(|line| line[key].clone()).collect() };
        assert_eq!(of("kind"), ["created", "deleted", "updated"]);
        assert_eq!(of("rowId"), [&created, "row_order_2", "row_order_1"]);
        assert_eq!(lines[0]["properties"]["Customer"], "Cy");
        assert_eq!(lines[1]["before"]["Customer"], "North Mill");
        assert_eq!(lines[2]["properties"]["Quantity"], 77);
        assert!(lines[2]["updatedAt"].is_string() && lines[2]["id"].is_string());
        for note in ran.stderr.lines() {
            let note: Value = serde_json::from_str(note).unwrap();
            assert!(note["note"].as_str().unwrap().starts_with("pass "));
        }
    }
    let text = service.run(&["--mirror", mirror.path()]);
    let mut lines: Vec<_> = text.stdout.lines().collect();
    lines.sort_unstable();
    assert!(lines[0].starts_with(&format!("created     {created}  {{\"Customer\":\"Cy\"")));
    assert_eq!(lines[1], "deleted     row_order_2");
    assert!(lines[2].starts_with("updated     row_order_1  {"));
}

// fault X3: the pass that fills a mirror in memory is counted as the first of the passes that compare
#[test]
fn without_a_mirror_later_changes_are_found_and_the_filling_pass_has_no_number() {
    let service = Service::start();
    let mut child = service
        .command(&["--passes", "3", "--pause", "2s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = notes.next().unwrap().unwrap();
    assert_eq!(
        first,
        "note: nothing is known of the time before, since there is no mirror"
    );
    let second = notes.next().unwrap().unwrap();
    assert_eq!(second, "note: filling pass, complete: 3 rows in 2 pages");
    service.change();
    let rest = std::thread::spawn(move || notes.map(Result::unwrap).collect::<Vec<_>>());
    let printed = std::io::read_to_string(child.stdout.take().unwrap()).unwrap();
    assert_eq!(ends(&mut child).code(), Some(1));
    for found in [
        "created",
        "deleted     row_order_2",
        "updated     row_order_1",
    ] {
        assert!(printed.contains(found), "{printed}");
    }
    assert_eq!(printed.lines().count(), 3);
    for (note, number) in rest.join().unwrap().iter().zip(1..) {
        assert!(
            note.starts_with(&format!("note: pass {number}, complete: ")),
            "{note}"
        );
    }
}

#[test]
fn faults_of_a_mirror_and_of_the_service_have_their_codes() {
    let service = Service::start();
    let missing = service.run(&["--mirror", "/nowhere/mirror.db", "--json"]);
    assert_eq!(missing.code, Some(3));
    let advice = missing.fault()["advice"].to_string();
    assert!(advice.contains("docs/reconciliation.md"), "{advice}");
    // Neither made nor changed.
    let fresh = std::env::temp_dir().join(format!("hookgate-cli-{}-none.db", std::process::id()));
    assert_eq!(
        service.run(&["--mirror", fresh.to_str().unwrap()]).code,
        Some(3)
    );
    assert!(!Path::new(&fresh).exists());
    let other = Scratch::file("no-mirror.db", b"");
    assert_eq!(service.run(&["--mirror", other.path()]).code, Some(3));
    assert_eq!(std::fs::read(other.path()).unwrap(), b"");

    let unreached = service.run(&["--url", "http://127.0.0.1:1/api/v1"]);
    assert_eq!(unreached.code, Some(4), "{unreached:?}");
    let mut stranger = service.command(&[]);
    stranger.env("HOOKGATE_API_KEY", "tk_test_of_nobody");
    let stranger = Ran::to_its_end(&mut stranger);
    assert_eq!(stranger.code, Some(5));
    assert!(!stranger.stderr.contains("tk_test_of_nobody"));
    assert_eq!(service.run(&["--passes", "0"]).code, Some(2));
}

#[test]
fn a_mirror_without_rows_does_not_prove_that_all_are_new() {
    let service = Service::start();
    let orders = service.emulator.rows("dm_orders");
    for number in 0..60 {
        orders.create(json!({ "prop_quantity": number })).unwrap();
    }
    let empty = std::env::temp_dir().join(format!("hookgate-cli-{}-empty.db", std::process::id()));
    let empty = MirrorFile(empty);
    drop(SqliteMirror::open(empty.path()).unwrap());
    let ran = service.run(&["--mirror", empty.path(), "--json"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(3), ""), "{ran:?}");
    ran.fault();
}

/// Pages overlap: a row of two pages is counted once.
#[test]
fn more_rows_than_the_guard_takes_are_named_and_counted_once() {
    let service = Service::start();
    let orders = service.emulator.rows("dm_orders");
    let made = (0..400).map(|number| orders.create(json!({ "prop_quantity": number })));
    let made: Vec<_> = made.map(Result::unwrap).collect();
    let mirror = service.mirror();
    for row in &made[..120] {
        orders
            .update(row, json!({ "prop_customer": "Cy" }))
            .unwrap();
    }
    let passes = ["--mirror", mirror.path(), "--json", "--passes", "2"];
    let ran = service.run(&passes);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let found = lines(&ran);
    assert_eq!(found.len(), 120);
    for line in &found {
        assert_eq!(
            (&line["kind"], &line["difference"]),
            (&json!("unresolved"), &json!("updated"))
        );
        assert_eq!(line["reason"], "too many rows differ at once");
        assert_eq!(line["properties"]["Customer"], "Cy");
    }
    for pass in ran.stderr.lines() {
        assert!(pass.contains(", 120 differ, 0 absent"), "{pass}");
    }
    let text = service.run(&["--mirror", mirror.path(), "--passes", "2"]);
    let first = text.stdout.lines().next().unwrap();
    let named = "  updated: too many rows differ at once {\"Customer\":\"Cy\",\"Quantity\":";
    assert!(
        first.starts_with("unresolved  row_") && first.contains(named),
        "{first}"
    );
    let most = service.run(&[&passes[..], &["--guard-percent", "50"]].concat());
    let kinds: Vec<_> = lines(&most)
        .iter()
        .map(|line| line["kind"].clone())
        .collect();
    assert_eq!(kinds, vec![json!("updated"); 120], "{most:?}");
    assert_eq!(service.run(&["--guard-percent", "101"]).code, Some(2));
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_it_between_two_pages() {
    use rustix::process::{Pid, Signal, kill_process};

    let service = Service::start();
    let mirror = service.mirror();
    service.change();
    let mut child = service
        .command(&["--mirror", mirror.path(), "--passes", "9", "--pause", "1h"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = notes.next().unwrap().unwrap();
    assert!(first.starts_with("note: pass 1, complete: "), "{first}");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(ends(&mut child).code(), Some(130));
}
