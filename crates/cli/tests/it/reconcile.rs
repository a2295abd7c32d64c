//! `hookgate reconcile`, against an emulator in this process.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;

use hookgate_client::reconcile::{Reconcile, Settings, SqliteMirror};
use hookgate_client::{ApiKey, Client};
use serde_json::{Value, json};

use crate::api::Service;
use crate::cli::{Folder, Ran, Scratch, has, typed};

const KEY: &str = "tk_test_read";

impl Service {
    /// A mirror that has the rows as they are now.
    fn mirror(&self) -> (Folder, String) {
        let folder = Folder::new();
        let path = folder.path("mirror.db");
        let mirror = SqliteMirror::open(&path).unwrap().with_values();
        let client = Client::new(&self.emulator.base_url(), ApiKey::new(KEY).unwrap()).unwrap();
        let mut settings = Settings::default();
        settings.is_filling = true;
        let mut filling = Reconcile::new(client, mirror, "dm_orders", settings);
        let filled = filling.pass(async |_| Ok::<_, String>(()));
        self.runtime.block_on(filled).unwrap();
        (folder, path)
    }

    fn command(&self, options: &str) -> Command {
        let mut command = typed(&format!("reconcile --model dm_orders {options}"));
        command
            .env("HOOKGATE_API_URL", self.emulator.base_url())
            .env("HOOKGATE_API_KEY", KEY);
        command
    }

    fn reconcile(&self, options: &str) -> Ran {
        Ran::to_its_end(&mut self.command(options))
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

#[test]
fn rows_that_changed_are_printed_once_and_the_mirror_stays() {
    let service = Service::start();
    let (_folder, mirror) = service.mirror();
    let same = service.reconcile(&format!("--mirror {mirror}")).ends(0);
    same.tells(&["note: pass 3, complete: "]).prints_nothing();

    let created = service.change();
    // Nothing is written, so another run prints the same.
    for _ in 0..2 {
        let ran = service
            .reconcile(&format!("--mirror {mirror} --passes 4 --json"))
            .ends(1);
        let mut lines = ran.lines();
        lines.sort_by_key(|line| line["kind"].to_string());
        let of = |key: &str| {
            lines
                .iter()
                .map(|line| line[key].clone())
                .collect::<Vec<_>>()
        };
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
    let text = service.reconcile(&format!("--mirror {mirror}"));
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
    let mut child = service.command("--passes 3 --pause 2s").spawn().unwrap();
    let mut notes = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap);
    for expected in [
        "note: nothing is known of the time before, since there is no mirror",
        "note: filling pass, complete: 3 rows in 2 pages",
    ] {
        assert_eq!(notes.next().unwrap(), expected);
    }
    service.change();
    let rest = std::thread::spawn(move || notes.collect::<Vec<_>>());
    let ran = Ran::with(child.wait_with_output().unwrap()).ends(1);
    ran.says(&[
        "created",
        "deleted     row_order_2",
        "updated     row_order_1",
    ]);
    assert_eq!(ran.stdout.lines().count(), 3);
    for (note, number) in rest.join().unwrap().iter().zip(1..) {
        let pass = format!("note: pass {number}, complete: ");
        assert!(note.starts_with(&pass), "{note}");
    }
}

#[test]
fn faults_of_a_mirror_and_of_the_service_have_their_codes() {
    let service = Service::start();
    let missing = service
        .reconcile("--mirror /nowhere/mirror.db --json")
        .ends(3);
    has(&missing.fault(), &["docs/reconciliation.md"]);
    // Neither made nor changed.
    let folder = Folder::new();
    let fresh = folder.path("none.db");
    service.reconcile(&format!("--mirror {fresh}")).ends(3);
    assert!(!Path::new(&fresh).exists());
    let other = Scratch::file("no-mirror.db", b"");
    service
        .reconcile(&format!("--mirror {}", other.path()))
        .ends(3);
    assert_eq!(std::fs::read(other.path()).unwrap(), b"");

    service.reconcile("--url http://127.0.0.1:1/api/v1").ends(4);
    let mut stranger = service.command("");
    stranger.env("HOOKGATE_API_KEY", "tk_test_of_nobody");
    Ran::to_its_end(&mut stranger)
        .ends(5)
        .lacks(&["tk_test_of_nobody"]);
    for wrong in ["--passes 0", "--guard-percent 101"] {
        service.reconcile(wrong).ends(2);
    }
}

#[test]
fn a_mirror_without_rows_does_not_prove_that_all_are_new() {
    let service = Service::start();
    let orders = service.emulator.rows("dm_orders");
    for number in 0..60 {
        orders.create(json!({ "prop_quantity": number })).unwrap();
    }
    let folder = Folder::new();
    let empty = folder.path("empty.db");
    drop(SqliteMirror::open(&empty).unwrap());
    let ran = service
        .reconcile(&format!("--mirror {empty} --json"))
        .ends(3);
    ran.prints_nothing().fault();
}

/// Pages overlap: a row of two pages is counted once.
#[test]
fn more_rows_than_the_guard_takes_are_named_and_counted_once() {
    let service = Service::start();
    let orders = service.emulator.rows("dm_orders");
    let made = (0..400).map(|number| orders.create(json!({ "prop_quantity": number })));
    let made: Vec<_> = made.map(Result::unwrap).collect();
    let (_folder, mirror) = service.mirror();
    for row in &made[..120] {
        orders
            .update(row, json!({ "prop_customer": "Cy" }))
            .unwrap();
    }
    let passes = format!("--mirror {mirror} --passes 2");
    let ran = service.reconcile(&format!("{passes} --json")).ends(1);
    let found = ran.lines();
    assert_eq!(found.len(), 120);
    for line in &found {
        let cells = ["kind", "difference", "reason"].map(|name| &line[name]);
        let expected = ["unresolved", "updated", "too many rows differ at once"];
        assert_eq!(cells, expected);
        assert_eq!(line["properties"]["Customer"], "Cy");
    }
    for pass in ran.stderr.lines() {
        has(pass, &[", 120 differ, 0 absent"]);
    }
    let text = service.reconcile(&passes);
    let first = text.stdout.lines().next().unwrap();
    assert!(first.starts_with("unresolved  row_"), "{first}");
    has(
        first,
        &["  updated: too many rows differ at once {\"Customer\":\"Cy\",\"Quantity\":"],
    );
    let most = service.reconcile(&format!("{passes} --json --guard-percent 50"));
    let kinds: Vec<_> = most
        .lines()
        .iter()
        .map(|line| line["kind"].clone())
        .collect();
    assert_eq!(kinds, vec![json!("updated"); 120], "{most:?}");
}

#[test]
fn ctrl_c_ends_it_between_two_pages() {
    let service = Service::start();
    let (_folder, mirror) = service.mirror();
    service.change();
    let options = format!("--mirror {mirror} --passes 9 --pause 1h");
    let mut child = service.command(&options).spawn().unwrap();
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = notes.next().unwrap().unwrap();
    assert!(first.starts_with("note: pass 1, complete: "), "{first}");
    crate::process::signal(&child, "INT");
    assert_eq!(crate::cli::ends(&mut child).code(), Some(130));
}
