//! `hookgate inbox` as a process of its own, on SQLite and on PostgreSQL, while workers work the inbox off here.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use hookgate::layer::IntoAnswer as _;
use hookgate::{
    DeadLetter, Delivery, HandlerError,
    sink::{Accepted, Sink},
};
use hookgate_inbox::{Backoff, Inbox, Workers};
use hookgate_postgres::{Postgres, Tls, migrate};
use hookgate_testing::delivery;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_postgres::{Config, NoTls};

use crate::support::{Certificates, Folder, Pooler, PostgresServer, Server, client_at, migrated};

const RETAIN: Duration = Duration::from_secs(48 * 3_600);
/// A generous time limit, so that a busy machine fails no test.
const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) fn hookgate(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hookgate"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// The result of a command: its exit code, its standard output, and its standard error.
pub(crate) fn ran(command: &mut Command) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = tokio::task::block_in_place(|| command.output().unwrap());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// An inbox, and how the command finds it.
pub(crate) struct Place {
    pub(crate) options: Vec<String>,
    pub(crate) url: Option<String>,
}

/// Where the inbox is served by this server, or by another before it.
impl From<&Server> for Place {
    fn from(server: &Server) -> Self {
        Self {
            options: vec!["--database-url-env".into(), "INBOX_URL".into()],
            url: Some(url_at(server, "")),
        }
    }
}

impl Place {
    /// An inbox on a new server, which runs as long as the test keeps it.
    pub(crate) async fn on_postgres() -> Option<(PostgresServer, Inbox, Self)> {
        let server = migrated(&[]).await?;
        let inbox = database(&server).inbox("test").unwrap();
        let place = Self::from(&server.server);
        Some((server, inbox, place))
    }

    /// An inbox in this file.
    pub(crate) fn on_sqlite(file: &Path) -> (Inbox, Self) {
        let place = Self {
            options: vec!["--db".into(), file.to_str().unwrap().into()],
            url: None,
        };
        // On a busy machine another process holds the file for longer than the usual half a second.
        let options = hookgate_sqlite::InboxOptions::default();
        let inbox = options.busy_timeout(Duration::from_secs(60)).open(file);
        (inbox.unwrap(), place)
    }

    fn command(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = hookgate(&["inbox", name]);
        command.args(&self.options).args(arguments);
        if let Some(url) = &self.url {
            command.env("INBOX_URL", url);
        }
        command
    }

    /// The lines of JSON that it prints, and its exit code.
    pub(crate) fn json(&self, name: &str, arguments: &[&str]) -> (Option<i32>, Vec<Value>) {
        let (code, printed, said) = ran(self.command(name, arguments).arg("--json"));
        // A "no" has a reason.
        assert!(code == Some(0) || !said.is_empty(), "{name} says nothing");
        let lines = printed.lines();
        let values = lines.map(|line| serde_json::from_str(line).unwrap());
        (code, values.collect())
    }

    /// The text that it prints, and its exit code.
    pub(crate) fn text(&self, name: &str, arguments: &[&str]) -> (Option<i32>, String) {
        let (code, printed, _) = ran(&mut self.command(name, arguments));
        (code, printed)
    }

    /// The number of changed entries.
    fn changes(&self, name: &str, arguments: &[&str], key: &str) -> (Option<i32>, u64) {
        let (code, values) = self.json(name, arguments);
        (code, values[0][key].as_u64().unwrap())
    }

    /// The entry of an event, as a list shows it.
    pub(crate) fn entry(&self, event: &str) -> Option<Value> {
        let (code, mut values) = self.json("list", &["--event-id", event]);
        assert_eq!(code, Some(0));
        assert!(values.len() < 2, "{values:?}");
        values.pop()
    }

    fn number(&self, event: &str) -> String {
        let entry = self.entry(event).unwrap();
        entry["entry"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn until(&self, what: &str, so: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let stats = self.json("stats", &[]).1.remove(0);
            if so(&stats) {
                return stats;
            }
            assert!(Instant::now() < until, "{what}: {stats}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// The state of the handlers, and the runs so far.
#[derive(Default)]
struct HandlerState {
    mended: AtomicBool,
    handled: Mutex<BTreeMap<String, usize>>,
}

fn body(id: &str) -> String {
    format!(r#"{{"id":"{id}","type":"page.created","data":{{"n":1}}}}"#)
}

pub(crate) async fn accept(inbox: &Inbox, id: &str) {
    let accepted = inbox.accept(&delivery(body(id)).unwrap(), RETAIN).await;
    assert_eq!(accepted.unwrap(), Accepted::New, "{id}");
}

/// Fills the inbox, has workers handle the entries, and uses the command as an operator does, step by step; new events arrive and
/// are handled all the while.
async fn an_operator_inspects_and_repairs(inbox: Inbox, place: Place) {
    let here = Arc::new(HandlerState::default());
    let released = Arc::new(Semaphore::new(0));
    let hour = Duration::from_secs(3_600);
    let workers = Workers::new(&inbox)
        .concurrency(4)
        .poll_interval(Duration::from_millis(500))
        .backoff(Backoff::exponential(hour, hour));
    let (seen, gate) = (Arc::clone(&here), Arc::clone(&released));
    let workers = workers.start_handler(move |event: Delivery| {
        let (here, gate) = (Arc::clone(&seen), Arc::clone(&gate));
        async move {
            let id = event.event_id().to_owned();
            let mended = here.mended.load(Ordering::SeqCst);
            if id.starts_with("evt_dead") && !mended {
                return DeadLetter::new("no such customer").into_answer();
            }
            if id.starts_with("evt_late") && !mended {
                return HandlerError::from("the shop is closed").into_answer();
            }
            if id == "evt_slow" {
                let _ = gate.acquire().await;
            }
            *here.handled.lock().unwrap().entry(id).or_default() += 1;
            StatusCode::NO_CONTENT.into_answer()
        }
    });
    let workers = workers.unwrap();

    // An empty inbox is not a broken one.
    assert_eq!(place.json("list", &[]), (Some(0), vec![]));
    let empty = place.until("empty", |_| true).await;
    assert_eq!((&empty["queued"], &empty["done"]), (&0.into(), &0.into()));
    assert!(empty["oldestSeconds"].is_null());

    for id in [
        "evt_dead_1",
        "evt_dead_2",
        "evt_dead_3",
        "evt_late_1",
        "evt_late_2",
        "evt_slow",
    ] {
        accept(&inbox, id).await;
    }
    place
        .until("dead, waiting, running", |stats| {
            stats["dead"] == 3 && stats["retrying"] == 2 && stats["running"] == 1
        })
        .await;
    // The workers go on beside all that follows.
    let ends = Arc::new(AtomicBool::new(false));
    let (has_ended, filled) = (Arc::clone(&ends), inbox.clone());
    let live = tokio::spawn(async move {
        let mut number = 0;
        while !has_ended.load(Ordering::SeqCst) {
            accept(&filled, &format!("evt_live_{number}")).await;
            number += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        number
    });

    let late = place.entry("evt_late_1").unwrap();
    assert_eq!(
        (&late["state"], &late["tries"]),
        (&"queued".into(), &1.into())
    );
    let why = late["lastError"].as_str().unwrap();
    assert!(why.contains("the shop is closed"), "{why}");
    let dead = place.json("list", &["--state", "dead", "--limit", "2"]);
    assert_eq!((dead.0, dead.1.len()), (Some(0), 2));
    let last = dead.1[1]["entry"].as_str().unwrap().to_owned();
    let rest = place.json("list", &["--state", "dead", "--after", &last]);
    assert_eq!(rest.1.len(), 1);
    let (code, listed, said) = ran(&mut place.command("list", &["--state", "dead"]));
    assert_eq!((code, &*said, listed.lines().count()), (Some(0), "", 4));
    assert!(listed.contains("no such customer"), "{listed}");

    let slow = place.number("evt_slow");
    let (code, shown, _) = ran(&mut place.command("show", &[&slow]));
    assert_eq!(code, Some(0));
    for part in [
        ": running, leased until 20",
        "page.created evt_slow",
        "\"n\": 1",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let (code, raw, _) = ran(&mut place.command("show", &[&slow, "--raw"]));
    assert_eq!((code, raw), (Some(0), body("evt_slow")));

    // A running entry belongs to its worker alone.
    for (name, arguments, key) in [
        ("retry", &[][..], "retried"),
        ("dead-letter", &["--reason", "made up"], "deadLettered"),
        ("purge", &["--yes"], "purged"),
        ("purge", &["--yes", "--state", "done"], "purged"),
    ] {
        let named = [&["--entry", &slow], arguments].concat();
        assert_eq!(place.changes(name, &named, key), (Some(1), 0), "{name}");
    }
    assert_eq!(place.entry("evt_slow").unwrap()["state"], "running");

    // One of them is given up, and deleted: it is forgotten, and so the event is new.
    let one = ["--event-id", "evt_late_2"];
    let dead_lettered = place.changes(
        "dead-letter",
        &[&one[..], &["--reason", "sent twice"]].concat(),
        "deadLettered",
    );
    assert_eq!(dead_lettered, (Some(0), 1));
    let entry = place.entry("evt_late_2").unwrap();
    assert_eq!(
        (&entry["state"], &entry["lastError"]),
        (&"dead".into(), &"sent twice".into())
    );
    let purge = [&one[..], &["--yes"]].concat();
    assert_eq!(place.changes("purge", &purge, "purged"), (Some(0), 1));
    assert_eq!(place.entry("evt_late_2"), None);
    let gone = entry["entry"].as_str().unwrap();
    let (code, _, said) = ran(&mut place.command("show", &[gone]));
    assert_eq!(code, Some(3));
    assert!(said.contains("there is no entry"), "{said}");

    // The handler works again. The entries that failed are made due now; their own wait has an hour to go.
    here.mended.store(true, Ordering::SeqCst);
    let dead = place.changes("retry", &["--state", "dead"], "retried");
    assert_eq!(dead, (Some(0), 3));
    let late = place.changes("retry", &["--event-id", "evt_late_1"], "retried");
    assert_eq!(late, (Some(0), 1));
    accept(&inbox, "evt_late_2").await;
    released.add_permits(1);
    ends.store(true, Ordering::SeqCst);
    let all = live.await.unwrap() + 6;
    let stats = place.until("all done", |stats| stats["done"] == all).await;
    assert_eq!((&stats["dead"], &stats["running"]), (&0.into(), &0.into()));
    assert!(stats["oldestSeconds"].is_null());
    workers.shutdown(PATIENCE).await;
    let handled = here.handled.lock().unwrap();
    assert_eq!(handled.len(), all);
    assert!(handled.values().all(|times| *times == 1), "{handled:?}");

    // The reader stops early, as behind `| head`.
    let mut listing = place.command("list", &[]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let listing = listing.stdout(writer).stderr(Stdio::piped()).output();
    let listing = listing.unwrap();
    assert_eq!(
        (listing.status.code(), &*listing.stderr),
        (Some(0), &[][..])
    );
}

// fault O3: a retry, burial or deletion takes an entry from the worker that runs it: it runs twice, or is gone
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_inspects_and_repairs_an_inbox_on_sqlite_in_use() {
    let folder = Folder::new();
    let file = folder.path().join("inbox.db");
    let (inbox, place) = Place::on_sqlite(&file);
    an_operator_inspects_and_repairs(inbox.clone(), place).await;
    inbox.close().await;
}

pub(crate) fn url(server: &PostgresServer, rest: &str) -> String {
    url_at(&server.server, rest)
}

fn url_at(server: &Server, rest: &str) -> String {
    format!("postgres://hookgate@{}/postgres{rest}", server.address)
}

pub(crate) fn database(server: &PostgresServer) -> Postgres {
    let config = Config::from_str(&server.config()).unwrap();
    // A busy machine answers no call within the usual limit.
    Postgres::new(config, NoTls).with_timeout(PATIENCE)
}

// fault O3: a retry, burial or deletion takes an entry from the worker that runs it: it runs twice, or is gone
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_inspects_and_repairs_an_inbox_on_postgres_in_use() {
    let Some((_server, inbox, place)) = Place::on_postgres().await else {
        return;
    };
    an_operator_inspects_and_repairs(inbox, place).await;
}

/// A server that refuses connections without TLS, whose certificate a made-up authority has signed.
// fault P1: a server that is managed by a provider can't be used for want of TLS; a Redis whose certificate is refused is a time-out without a reason
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inbox_behind_tls_is_reached_by_its_url() {
    let certificates = Certificates::new();
    let Some(server) = certificates.postgres() else {
        return;
    };
    let port = server.server.address.port();
    let by =
        |host: &str, rest: String| format!("postgres://hookgate@{host}:{port}/postgres?{rest}");
    let ca = certificates.path("authority.pem");
    let right = by("localhost", format!("sslmode=verify-full&sslrootcert={ca}"));
    let (config, tls) = Tls::for_url(&right).unwrap();
    let (client, connection) = config.connect(tls).await.unwrap();
    tokio::spawn(connection);
    migrate(&client).await.unwrap();
    let postgres = Postgres::open(&right).unwrap().with_timeout(PATIENCE);
    let inbox = postgres.inbox("test").unwrap();
    accept(&inbox, "evt_1").await;

    let stats = |url: &str| {
        let mut command = hookgate(&["inbox", "stats", "--database-url-env", "INBOX_URL"]);
        ran(command.env("INBOX_URL", url))
    };
    let (code, printed, said) = stats(&right);
    assert!(code == Some(0) && printed.starts_with("1 queued"), "{said}");
    let other = certificates.path("other.pem");
    for (url, words) in [
        (
            by("localhost", "sslmode=require".to_owned()),
            "signed by no authority",
        ),
        (
            by("localhost", format!("sslrootcert={other}")),
            "signed by no authority",
        ),
        (
            by(
                "other.example",
                format!("sslrootcert={ca}&hostaddr=127.0.0.1"),
            ),
            "another host name",
        ),
        (
            by("localhost", "sslmode=disable".to_owned()),
            "sslmode=verify-full",
        ),
    ] {
        let (code, _, said) = stats(&url);
        let refused = words == "sslmode=verify-full";
        assert_eq!(code, Some(if refused { 3 } else { 4 }), "{said}");
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// Through a pooler that gives the command's session to other clients.
// fault P2: through a pooler of transactions, the time-outs of our connections become those of other clients
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_leaves_nothing_in_the_sessions_of_a_pooler() {
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let Some(pooler) = Pooler::before(&server, 1) else {
        return;
    };
    let inbox = database(&server).inbox("test").unwrap();
    accept(&inbox, "evt_1").await;
    let place = Place::from(&pooler.server);
    let one = ["--event-id", "evt_1"];
    let all = [&one[..], &["--reason", "made up"]].concat();
    assert_eq!(
        place.changes("dead-letter", &all, "deadLettered"),
        (Some(0), 1)
    );
    assert_eq!(place.changes("retry", &one, "retried"), (Some(0), 1));
    let other = client_at(&PostgresServer::config_at(pooler.server.address)).await;
    let asked = "SELECT concat_ws(' ', current_setting('statement_timeout'), current_setting('lock_timeout'))";
    let left = other.query_typed_one(asked, &[]).await.unwrap();
    assert_eq!(left.get::<_, String>(0), "0 0");
}

/// The error must name the problem, and the next step for the operator.
// fault O5: an error repeats the URL of a database with its password
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_does_not_answer_is_reported_with_its_cause() {
    let Some(mut server) = PostgresServer::start(&["fsync=off"]) else {
        return;
    };
    let stats = |url: &str| {
        let mut command = hookgate(&["inbox", "stats", "--database-url-env", "INBOX_URL"]);
        ran(command.env("INBOX_URL", url))
    };
    let expect = |url: &str, code: i32, parts: &[&str]| {
        let (came, printed, said) = stats(url);
        assert_eq!((came, &*printed), (Some(code), ""), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
        for part in parts {
            assert!(said.contains(part), "{part}: {said}");
        }
    };
    expect(
        &url(&server, ""),
        3,
        &["a table is missing", "the receiver's database"],
    );
    let other = url(&server, "").replace("/postgres", "/nowhere");
    expect(&other, 3, &["database \"nowhere\" does not exist"]);
    let nobody = url(&server, "").replace("hookgate@", "nobody:hunter2@");
    expect(&nobody, 3, &["role \"nobody\" does not exist"]);
    for asked in ["require", "verify-full", "verify-ca"] {
        let tls = url(&server, &format!("?sslmode={asked}"));
        expect(&tls, 4, &["can't be reached", "does not support TLS"]);
    }
    let unknown = url(&server, "?sslmode=hunter2");
    expect(&unknown, 2, &["sslmode is unknown"]);
    let missing = url(&server, "?sslrootcert=/nowhere.pem");
    expect(&missing, 2, &["sslrootcert", "/nowhere.pem"]);
    server.crash();
    expect(&url(&server, ""), 4, &["can't be reached", "is it running"]);
}
