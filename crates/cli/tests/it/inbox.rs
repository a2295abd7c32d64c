//! `hookgate inbox`, over real pipes, while this process has the inbox open and works it off.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hookgate::{
    Delivery, Receiver, Secret,
    receiver::RequestHead,
    sink::{Accepted, Sink},
};
use hookgate_inbox::{Inbox, Workers};
use hookgate_testing::Signer;
use http::StatusCode;
use serde_json::Value;

use crate::cli::{Ran, hookgate};

/// A generous time limit, so that a busy machine fails no test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with an inbox, gone with its test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("hookgate-it-inbox-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self) -> String {
        self.0.join("inbox.db").to_str().unwrap().to_owned()
    }

    pub(crate) fn inbox(&self) -> Inbox {
        hookgate_sqlite::open_inbox(self.file()).unwrap()
    }

    /// Runs the command on the inbox.
    fn run(&self, command: &str, arguments: &[&str]) -> Ran {
        let file = self.file();
        let mut all = vec!["inbox", command, "--db", &*file];
        all.extend(arguments);
        // A process's command blocks this one, which has the inbox's threads to itself.
        tokio::task::block_in_place(|| Ran::of(&all))
    }

    fn json(&self, command: &str, arguments: &[&str]) -> Value {
        let ran = self.run(command, &[arguments, &["--json"]].concat());
        assert_eq!(ran.stderr, "");
        let value = ran.json();
        for key in value.as_object().unwrap().keys() {
            let plain = key.chars().all(|char| char.is_ascii_alphanumeric());
            assert!(plain && key != "id" && key != "type", "{key}");
        }
        value
    }

    /// The numbers of the entries that a list shows.
    fn listed(&self, arguments: &[&str]) -> Vec<String> {
        let ran = self.run("list", &[arguments, &["--json"]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let lines = ran.stdout.lines();
        let of = |line| serde_json::from_str::<Value>(line).unwrap()["entry"].clone();
        lines
            .map(|line| of(line).as_str().unwrap().to_owned())
            .collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn accept(inbox: &Inbox, id: &str) {
    accept_body(
        inbox,
        &format!(r#"{{"id":"{id}","type":"page.created","data":{{"n":1}}}}"#),
    )
    .await;
}

pub(crate) async fn accept_body(inbox: &Inbox, body: &str) {
    let delivery = hookgate_testing::delivery(body).unwrap();
    let day = Duration::from_secs(86_400);
    assert_eq!(inbox.accept(&delivery, day).await.unwrap(), Accepted::New);
}

/// The trace of a request, by its header, leads from an entry to the request's trace.
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_is_shown_with_the_trace_of_its_request() {
    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let secret = || Secret::new("whsec_made_up_for_this_test").unwrap();
    let body = r#"{"id":"evt_traced","type":"page.created"}"#;
    let mut headers = Signer::new(secret()).headers(body);
    headers.push(("traceparent", TRACE.to_owned()));
    let receiver = Receiver::builder().secret(secret());
    let receiver = receiver.without_deduplication().build().unwrap();
    let head = RequestHead::new("POST", headers.iter().map(|(name, value)| (*name, value)));
    let mut received = receiver.check_head(&head).unwrap();
    received.push(body.into()).unwrap();
    let delivery = receiver.verify(received, &head).unwrap();

    let folder = Folder::new();
    let inbox = folder.inbox();
    accept(&inbox, "evt_1").await;
    let day = Duration::from_secs(86_400);
    inbox.accept(&delivery, day).await.unwrap();
    let all = folder.listed(&[]);
    let shown = folder.run("show", &[&all[1]]).stdout;
    assert!(
        shown.contains(&format!("traceparent: {TRACE}\n")),
        "{shown}"
    );
    assert_eq!(folder.json("show", &[&all[1]])["traceparent"], TRACE);
    let without = folder.run("show", &[&all[0]]).stdout;
    assert!(!without.contains("traceparent"), "{without}");
    inbox.close().await;
}

/// An inbox that holds these events, and that no process has open.
pub(crate) fn filled(ids: &[&str]) -> Folder {
    let folder = Folder::new();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(async {
        let inbox = folder.inbox();
        for id in ids {
            accept(&inbox, id).await;
        }
        inbox.close().await;
    });
    folder
}

// fault O1: a selection is ignored, or one of several options: other events are retried, dead-lettered or deleted than were meant
#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_in_use_is_listed_shown_and_counted() {
    let folder = Folder::new();
    let inbox = folder.inbox();
    for id in ["evt_1", "evt_2", "evt_3"] {
        accept(&inbox, id).await;
    }
    let ran = folder.run(
        "dead-letter",
        &["--event-id", "evt_2", "--reason", "no such customer"],
    );
    assert_eq!(
        (ran.code, &*ran.stdout),
        (Some(0), "1 entry dead-lettered\n")
    );

    let ran = folder.run("list", &[]);
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert_eq!((ran.code, lines.len()), (Some(0), 4), "{ran:?}");
    assert!(lines[0].starts_with("ENTRY") && lines[0].ends_with("LAST ERROR"));
    for (line, parts) in lines[1..].iter().zip([
        ["queued", "page.created", "evt_1"],
        ["dead", "evt_2", "no such customer"],
        ["queued", "page.created", "evt_3"],
    ]) {
        assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    }
    let all = folder.listed(&[]);
    assert_eq!(all.len(), 3);
    assert_eq!(folder.listed(&["--state", "dead"]), all[1..2]);
    assert_eq!(folder.listed(&["--event-id", "evt_3"]), all[2..]);
    assert_eq!(folder.listed(&["--older-than", "1h"]), [""; 0]);
    assert_eq!(folder.listed(&["--after", &all[0]]), all[1..]);
    let paged = folder.run("list", &["--limit", "2"]);
    assert_eq!(paged.stdout.lines().count(), 3);
    assert_eq!(
        paged.stderr,
        format!("note: there may be more: --after {}\n", all[1])
    );

    let shown = folder.run("show", &[&all[1]]);
    assert_eq!(shown.code, Some(0));
    for part in [
        &*format!("entry {}: dead", all[1]),
        "last error: no such customer",
        "page.created evt_2",
        "by the key ",
        "\"n\": 1",
    ] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    let whole = folder.json("show", &[&all[0]]);
    assert_eq!(
        (&whole["state"], &whole["eventId"]),
        (&"queued".into(), &"evt_1".into())
    );
    let body: Value = serde_json::from_str(whole["body"].as_str().unwrap()).unwrap();
    assert_eq!(body["data"]["n"], 1);
    let raw = folder.run("show", &[&all[0], "--raw"]);
    assert_eq!(raw.stdout, whole["body"].as_str().unwrap());
    let none = folder.run("show", &["9999"]);
    assert_eq!((none.code, &*none.stdout), (Some(3), ""));
    assert!(none.stderr.contains("there is no entry 9999"));

    let stats = folder.json("stats", &[]);
    assert_eq!((&stats["queued"], &stats["dead"]), (&2.into(), &1.into()));
    assert!(stats["oldestSeconds"].is_u64());
    let text = folder.run("stats", &[]).stdout;
    assert!(text.starts_with("2 queued (0 of them failed before), 0 running, 1 dead, 0 done"));
    // This process has it open all the while.
    accept(&inbox, "evt_4").await;
    assert_eq!(folder.listed(&[]).len(), 4);
    inbox.close().await;
}

// fault O1: a selection is ignored, or one of several options: other events are retried, dead-lettered or deleted than were meant
// fault O6: an operator who looks holds up the work, or sees what is long past
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_another_process_retries_is_handled_here() {
    let folder = Folder::new();
    let inbox = folder.inbox();
    let mended = Arc::new(AtomicBool::new(false));
    let is_mended = Arc::clone(&mended);
    let workers = Workers::new(&inbox)
        .max_tries(1)
        .start_handler(move |_: Delivery| {
            let mended = is_mended.load(Ordering::SeqCst);
            async move {
                if mended {
                    StatusCode::OK
                } else {
                    StatusCode::BAD_GATEWAY
                }
            }
        })
        .unwrap();
    accept(&inbox, "evt_1").await;
    accept(&inbox, "evt_2").await;
    let reach = async |state: &str, count: u64| {
        let until = Instant::now() + PATIENCE;
        while folder.json("stats", &[])[state] != count {
            assert!(Instant::now() < until, "{}", folder.json("stats", &[]));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    reach("dead", 2).await;
    mended.store(true, Ordering::SeqCst);
    let retried = folder.json("retry", &["--event-id", "evt_1"]);
    assert_eq!(retried["retried"], 1);
    reach("done", 1).await;
    let all_the_same = ["--all", "--even-if-older-than-claims"];
    assert_eq!(folder.json("retry", &all_the_same)["retried"], 1);
    reach("done", 2).await;
    // An entry that is done is left alone. It was named, so the exit code is 1.
    let ran = folder.run("retry", &["--event-id", "evt_1"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(1), "0 entries due now\n"));
    assert!(ran.stderr.contains("hookgate inbox list"), "{ran:?}");
    let done = folder.listed(&["--state", "done"]);
    let shown = folder.run("show", &[&done[0]]);
    assert!(shown.stdout.contains("body: deleted"), "{}", shown.stdout);
    assert_eq!(folder.run("show", &[&done[0], "--raw"]).code, Some(3));
    workers.shutdown(PATIENCE).await;
    inbox.close().await;
}

// fault O1: a selection is ignored, or one of several options: other events are retried, dead-lettered or deleted than were meant
// fault O2: dead letters are deleted without `--yes`
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_deleted_unasked() {
    let folder = Folder::new();
    let inbox = folder.inbox();
    for id in ["evt_1", "evt_2", "evt_3"] {
        accept(&inbox, id).await;
    }
    folder.run(
        "dead-letter",
        &["--event-id", "evt_1", "--reason", "made up"],
    );
    folder.run(
        "dead-letter",
        &["--event-id", "evt_2", "--reason", "made up"],
    );
    let unasked = folder.run("purge", &["--all"]);
    assert_eq!(unasked.code, Some(0));
    assert!(
        unasked
            .stdout
            .contains("nothing deleted yet, --yes deletes 2 entries")
    );
    assert_eq!(folder.json("purge", &["--all"])["dryRun"], true);
    assert_eq!(folder.run("purge", &["--event-id", "evt_9"]).code, Some(1));
    let waiting = folder.run("purge", &["--all", "--yes", "--state", "queued"]);
    assert_eq!(waiting.code, Some(2));
    assert!(waiting.stderr.contains("dead letters first"));
    assert_eq!(folder.listed(&[]).len(), 3);
    let young = folder.json("purge", &["--older-than", "1h", "--yes"]);
    assert_eq!(young["purged"], 0);
    assert_eq!(
        folder.json("purge", &["--event-id", "evt_1", "--yes"])["purged"],
        1
    );
    assert_eq!(
        folder.run("purge", &["--event-id", "evt_1", "--yes"]).code,
        Some(1)
    );
    assert_eq!(folder.json("purge", &["--all", "--yes"])["purged"], 1);
    assert_eq!(folder.listed(&["--state", "queued"]).len(), 1);
    // It is forgotten, and so its event is new.
    accept(&inbox, "evt_1").await;
    inbox.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_sender_wrote_does_nothing_to_a_terminal() {
    let folder = Folder::new();
    let inbox = folder.inbox();
    let body = "{\"id\":\"evt_\u{202e}1\",\"type\":\"t\",\"data\":\"\u{1b}[2J\u{9b}31m\"}";
    accept_body(&inbox, body).await;
    let acts = |text: &str| {
        text.chars()
            .any(|char| char.is_control() && char != '\n' || char == '\u{202e}')
    };
    let entry = folder.listed(&[]).remove(0);
    for (command, arguments) in [
        ("list", &[][..]),
        ("list", &["--json"]),
        ("show", &[&*entry]),
        ("show", &[&*entry, "--json"]),
    ] {
        let ran = folder.run(command, arguments);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!acts(&ran.stdout), "{command}: {:?}", ran.stdout);
    }
    // Byte for byte on request, where the output is not a terminal.
    assert_eq!(folder.run("show", &[&entry, "--raw"]).stdout, body);
    inbox.close().await;
}

// fault O4: a mistyped path makes an empty inbox, and all seems well
#[test]
fn a_missing_file_is_an_error_and_is_not_made() {
    let folder = Folder::new();
    for command in [
        &["list"][..],
        &["show", "1"],
        &["retry", "--all"],
        &["dead-letter", "--entry", "1", "--reason", "made up"],
        &["purge", "--all", "--yes"],
        &["stats"],
    ] {
        let file = folder.file();
        let mut asked = hookgate(&["--json", "inbox"]);
        let ran = Ran::to_its_end(asked.args(command).args(["--db", &file]));
        assert_eq!((ran.code, &*ran.stdout), (Some(3), ""), "{command:?}");
        ran.fault();
        assert!(std::fs::read_dir(&folder.0).unwrap().next().is_none());
    }
    // A file that is not an inbox is not touched either, and no file becomes an inbox.
    for found in ["made up", ""] {
        std::fs::write(folder.file(), found).unwrap();
        let ran = Ran::of(&["inbox", "stats", "--db", &folder.file()]);
        assert_eq!(ran.code, Some(3), "{found:?}: {ran:?}");
        assert!(ran.stderr.contains("creates no inbox"), "{ran:?}");
        assert_eq!(std::fs::read(folder.file()).unwrap(), found.as_bytes());
    }
}

#[test]
fn a_command_line_that_does_not_say_which_is_wrong() {
    for wrong in [
        &["stats"][..],
        &["stats", "--db", "a.db", "--database-url-env", "URL"],
        &["retry", "--db", "a.db"],
        &["dead-letter", "--db", "a.db", "--reason", "made up"],
        &["dead-letter", "--db", "a.db", "--entry", "1"],
        &["purge", "--db", "a.db", "--yes"],
        &["list", "--db", "a.db", "--state", "lost"],
        &["list", "--db", "a.db", "--limit", "0"],
        &["show", "--db", "a.db", "-1"],
        &["show", "--db", "a.db", "evt_1"],
        &["retry", "--db", "a.db", "--state", "running"],
        &["retry", "--db", "a.db", "--state", "done"],
        &["list", "--db", "a.db", "--older-than", "5"],
    ] {
        let ran = Ran::to_its_end(hookgate(&["inbox"]).args(wrong));
        assert_eq!(
            (ran.code, &*ran.stdout),
            (Some(2), ""),
            "{wrong:?}: {ran:?}"
        );
    }
}

// fault O5: an error repeats the URL of a database with its password
#[test]
fn a_database_is_named_by_variable_or_file_and_its_password_is_not_repeated() {
    let stats = |name: &str, url: Option<&str>| {
        let mut asked = hookgate(&["inbox", "stats", "--json", "--database-url-env", name]);
        if let Some(url) = url {
            asked.env(name, url);
        }
        let ran = Ran::to_its_end(&mut asked);
        assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
        ran.fault();
        ran
    };
    let unset = stats("NO_SUCH_URL", None);
    assert_eq!(unset.code, Some(2));
    assert!(unset.stderr.contains("NO_SUCH_URL"));
    let url = "postgres://me:hunter2@127.0.0.1:1/orders";
    let ran = stats("MADE_UP_URL", Some(url));
    if cfg!(feature = "postgres") {
        assert_eq!(ran.code, Some(4));
        let wrong = stats("MADE_UP_URL", Some("postgres://me:hunter2@[/?x"));
        assert_eq!(wrong.code, Some(2));
    } else {
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("without the feature `postgres`"));
    }
    let folder = Folder::new();
    let missing = folder.file();
    let ran = Ran::of(&["inbox", "stats", "--database-url-file", &missing]);
    assert_eq!(ran.code, Some(3));
}
