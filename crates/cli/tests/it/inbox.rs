//! `hookgate inbox`, over real pipes, while this process has the inbox open and works it off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hookgate::{
    Delivery, Receiver, Secret,
    receiver::RequestHead,
    sink::{Accepted, Sink},
};
use hookgate_inbox::{Inbox, Workers};
use hookgate_testing::Signer;
use http::StatusCode;
use serde_json::{Value, json};

use crate::cli::printable::acts;
use crate::cli::{Folder, PATIENCE, Ran, hookgate};

/// A folder with an inbox, gone with its test.
pub(crate) struct Filed(Folder);

impl Filed {
    pub(crate) fn new() -> Self {
        Self(Folder::new())
    }

    pub(crate) fn file(&self) -> String {
        self.0.path("inbox.db")
    }

    pub(crate) fn inbox(&self) -> Inbox {
        hookgate_sqlite::open_inbox(self.file()).unwrap()
    }

    /// Runs the command on the inbox.
    fn run(&self, line: &str) -> Ran {
        let (command, options) = line.split_once(' ').unwrap_or((line, ""));
        let line = format!("inbox {command} --db {} {options}", self.file());
        // A process's command blocks this one, which has the inbox's threads to itself.
        tokio::task::block_in_place(|| Ran::typed(&line))
    }

    fn json(&self, line: &str) -> Value {
        self.run(&format!("{line} --json"))
            .warns_of_nothing()
            .json()
    }

    /// The numbers of the entries that a list shows.
    fn listed(&self, options: &str) -> Vec<String> {
        let lines = self.run(&format!("list {options} --json")).ends(0).lines();
        let number = |line: &Value| line["entry"].as_str().unwrap().to_owned();
        lines.iter().map(number).collect()
    }
}

async fn accept(inbox: &Inbox, id: &str) {
    let body = format!(r#"{{"id":"{id}","type":"page.created","data":{{"n":1}}}}"#);
    accept_body(inbox, &body).await;
}

async fn accept_body(inbox: &Inbox, body: &str) {
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

    let folder = Filed::new();
    let inbox = folder.inbox();
    accept(&inbox, "evt_1").await;
    let day = Duration::from_secs(86_400);
    inbox.accept(&delivery, day).await.unwrap();
    let [without, with] = &folder.listed("")[..] else {
        panic!("two")
    };
    let shown = folder.run(&format!("show {with}"));
    shown.says(&[&format!("traceparent: {TRACE}\n")]);
    assert_eq!(folder.json(&format!("show {with}"))["traceparent"], TRACE);
    folder
        .run(&format!("show {without}"))
        .lacks(&["traceparent"]);
    inbox.close().await;
}

/// An inbox that holds these events, and that no process has open.
pub(crate) fn filled(ids: &[&str]) -> Filed {
    let folder = Filed::new();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    runtime.block_on(async { open(&folder, ids).await.close().await });
    folder
}

/// The inbox, open, with these events.
async fn open(folder: &Filed, ids: &[&str]) -> Inbox {
    let inbox = folder.inbox();
    for id in ids {
        accept(&inbox, id).await;
    }
    inbox
}

// fault O1: a selection is ignored, or one of several options: other events are retried, dead-lettered or deleted than were meant
#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_in_use_is_listed_shown_and_counted() {
    let folder = Filed::new();
    let inbox = open(&folder, &["evt_1", "evt_2", "evt_3"]).await;
    let ran = folder
        .run("dead-letter --event-id evt_2 --reason no~such~customer")
        .ends(0);
    assert_eq!(ran.stdout, "1 entry dead-lettered\n");

    let ran = folder.run("list").ends(0);
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{ran:?}");
    assert!(lines[0].starts_with("ENTRY") && lines[0].ends_with("LAST ERROR"));
    for (line, parts) in lines[1..].iter().zip([
        ["queued", "page.created", "evt_1"],
        ["dead", "evt_2", "no such customer"],
        ["queued", "page.created", "evt_3"],
    ]) {
        crate::cli::has(line, &parts);
    }
    let all = folder.listed("");
    let [first, second, _] = &all[..] else {
        panic!("three")
    };
    for (options, expected) in [
        ("--state dead", &all[1..2]),
        ("--event-id evt_3", &all[2..]),
        ("--older-than 1h", &[]),
        (&*format!("--after {first}"), &all[1..]),
    ] {
        assert_eq!(folder.listed(options), expected, "{options}");
    }
    let paged = folder.run("list --limit 2");
    assert_eq!(paged.stdout.lines().count(), 3);
    assert_eq!(
        paged.stderr,
        format!("note: there may be more: --after {second}\n")
    );

    folder.run(&format!("show {second}")).ends(0).says(&[
        &format!("entry {second}: dead"),
        "last error: no such customer",
        "page.created evt_2",
        "by the key ",
        "\"n\": 1",
    ]);
    let whole = folder.json(&format!("show {first}"));
    assert_eq!(
        json!([whole["state"], whole["eventId"]]),
        json!(["queued", "evt_1"])
    );
    let body = whole["body"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(body).unwrap()["data"]["n"], 1);
    assert_eq!(folder.run(&format!("show {first} --raw")).stdout, body);
    let none = folder.run("show 9999").ends(3);
    none.tells(&["there is no entry 9999"]).prints_nothing();

    let stats = folder.json("stats");
    assert_eq!(json!([stats["queued"], stats["dead"]]), json!([2, 1]));
    assert!(stats["oldestSeconds"].is_u64());
    let text = folder.run("stats").stdout;
    assert!(text.starts_with("2 queued (0 of them failed before), 0 running, 1 dead, 0 done"));
    // This process has it open all the while.
    accept(&inbox, "evt_4").await;
    assert_eq!(folder.listed("").len(), 4);
    inbox.close().await;
}

// fault O1: a selection is ignored, or one of several options: other events are retried, dead-lettered or deleted than were meant
// fault O6: an operator who looks holds up the work, or sees what is long past
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_another_process_retries_is_handled_here() {
    let folder = Filed::new();
    let inbox = folder.inbox();
    let mended = Arc::new(AtomicBool::new(false));
    let is_mended = Arc::clone(&mended);
    let workers = Workers::new(&inbox)
        .max_tries(1)
        .start_handler(move |_: Delivery| {
            let is_mended = is_mended.load(Ordering::SeqCst);
            let status = if is_mended {
                StatusCode::OK
            } else {
                StatusCode::BAD_GATEWAY
            };
            async move { status }
        });
    let workers = workers.unwrap();
    accept(&inbox, "evt_1").await;
    accept(&inbox, "evt_2").await;
    let reach = async |state: &str, count: u64| {
        let until = Instant::now() + PATIENCE;
        while folder.json("stats")[state] != count {
            assert!(Instant::now() < until, "{}", folder.json("stats"));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    reach("dead", 2).await;
    mended.store(true, Ordering::SeqCst);
    assert_eq!(folder.json("retry --event-id evt_1")["retried"], 1);
    reach("done", 1).await;
    let all_the_same = "retry --all --even-if-older-than-claims";
    assert_eq!(folder.json(all_the_same)["retried"], 1);
    reach("done", 2).await;
    // An entry that is done is left alone. It was named, so the exit code is 1.
    let ran = folder.run("retry --event-id evt_1").ends(1);
    assert_eq!(ran.stdout, "0 entries due now\n");
    ran.tells(&["hookgate inbox list"]);
    let done = folder.listed("--state done").remove(0);
    folder.run(&format!("show {done}")).says(&["body: deleted"]);
    folder.run(&format!("show {done} --raw")).ends(3);
    workers.shutdown(PATIENCE).await;
    inbox.close().await;
}

// fault O1: a selection is ignored, or one of several options: other events are retried, dead-lettered or deleted than were meant
// fault O2: dead letters are deleted without `--yes`
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_deleted_unasked() {
    let folder = Filed::new();
    let inbox = open(&folder, &["evt_1", "evt_2", "evt_3"]).await;
    for id in ["evt_1", "evt_2"] {
        folder
            .run(&format!("dead-letter --event-id {id} --reason made~up"))
            .ends(0);
    }
    let unasked = folder.run("purge --all").ends(0);
    unasked.says(&["nothing deleted yet, --yes deletes 2 entries"]);
    assert_eq!(folder.json("purge --all")["dryRun"], true);
    folder.run("purge --event-id evt_9").ends(1);
    let waiting = folder.run("purge --all --yes --state queued").ends(2);
    waiting.tells(&["dead letters first"]);
    assert_eq!(folder.listed("").len(), 3);
    let one = "purge --event-id evt_1 --yes";
    assert_eq!(folder.json("purge --older-than 1h --yes")["purged"], 0);
    assert_eq!(folder.json(one)["purged"], 1);
    folder.run(one).ends(1);
    assert_eq!(folder.json("purge --all --yes")["purged"], 1);
    assert_eq!(folder.listed("--state queued").len(), 1);
    // It is forgotten, and so its event is new.
    accept(&inbox, "evt_1").await;
    inbox.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_sender_wrote_does_nothing_to_a_terminal() {
    let folder = Filed::new();
    let inbox = folder.inbox();
    let body = "{\"id\":\"evt_\u{202e}1\",\"type\":\"t\",\"data\":\"\u{1b}[2J\u{9b}31m\"}";
    accept_body(&inbox, body).await;
    let entry = folder.listed("").remove(0);
    let show = format!("show {entry}");
    for line in ["list", "list --json", &show, &format!("{show} --json")] {
        let ran = folder.run(line).ends(0);
        assert!(!acts(&ran.stdout), "{line}: {:?}", ran.stdout);
    }
    // Byte for byte on request, where the output is not a terminal.
    assert_eq!(folder.run(&format!("{show} --raw")).stdout, body);
    inbox.close().await;
}

// fault O4: a mistyped path makes an empty inbox, and all seems well
#[test]
fn a_missing_file_is_an_error_and_is_not_made() {
    let folder = Filed::new();
    let file = folder.file();
    for line in [
        "list",
        "show 1",
        "retry --all",
        "dead-letter --entry 1 --reason made~up",
        "purge --all --yes",
        "stats",
    ] {
        let ran = Ran::typed(&format!("--json inbox {line} --db {file}")).ends(3);
        ran.prints_nothing().fault();
        let made = std::fs::read_dir(&folder.0.0).unwrap().next();
        assert!(made.is_none(), "{line}: {made:?}");
    }
    // A file that is not an inbox is not touched either, and no file becomes an inbox.
    for found in ["made up", ""] {
        std::fs::write(&file, found).unwrap();
        let ran = Ran::typed(&format!("inbox stats --db {file}")).ends(3);
        ran.tells(&["creates no inbox"]);
        assert_eq!(std::fs::read(&file).unwrap(), found.as_bytes());
    }
}

// fault O5: an error repeats the URL of a database with its password
#[test]
fn a_database_is_named_by_variable_or_file_and_its_password_is_not_repeated() {
    let stats = |url: Option<&str>| {
        let mut asked = hookgate(&["inbox", "stats", "--json", "--database-url-env", "ITS_URL"]);
        if let Some(url) = url {
            asked.env("ITS_URL", url);
        }
        let ran = Ran::to_its_end(&mut asked);
        ran.lacks(&["hunter2"]).fault();
        ran
    };
    stats(None).ends(2).tells(&["ITS_URL"]);
    let ran = stats(Some("postgres://me:hunter2@127.0.0.1:1/orders"));
    if cfg!(feature = "postgres") {
        ran.ends(4);
        stats(Some("postgres://me:hunter2@[/?x")).ends(2);
    } else {
        ran.ends(2).tells(&["without the feature `postgres`"]);
    }
    let missing = Filed::new().file();
    Ran::typed(&format!("inbox stats --database-url-file {missing}")).ends(3);
}
