//! `hookgate inbox` as a process of its own, on SQLite and on PostgreSQL, while workers work the
//! inbox off here.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
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
use serde_json::{Value, json};
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
    let output = tokio::task::block_in_place(|| command.output().unwrap());
    let [out, err] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    (output.status.code(), out, err)
}

/// Counts the inbox at this address, with these options more.
pub(crate) fn stats(url: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let mut command = hookgate(&["inbox", "stats", "--database-url-env", "INBOX_URL"]);
    ran(command.args(more).env("INBOX_URL", url))
}

/// The text has each of these texts.
pub(crate) fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// These fields of an object.
pub(crate) fn fields<const N: usize>(of: &Value, names: [&str; N]) -> Value {
    names.iter().map(|name| of[*name].clone()).collect()
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

    /// The command of this line, in whose words `~` stands for a blank.
    fn command(&self, line: &str) -> Command {
        let mut command = hookgate(&["inbox"]);
        command.args(line.split(' ').map(|word| word.replace('~', " ")));
        command.args(&self.options);
        if let Some(url) = &self.url {
            command.env("INBOX_URL", url);
        }
        command
    }

    /// The lines of JSON that it prints, and its exit code.
    pub(crate) fn json(&self, line: &str) -> (Option<i32>, Vec<Value>) {
        let (code, printed, said) = ran(self.command(line).arg("--json"));
        // A "no" has a reason.
        assert!(code == Some(0) || !said.is_empty(), "{line} says nothing");
        let lines = printed.lines();
        let values = lines.map(|line| serde_json::from_str(line).unwrap());
        (code, values.collect())
    }

    /// The text that it prints, and its exit code.
    pub(crate) fn text(&self, line: &str) -> (Option<i32>, String) {
        let (code, printed, _) = ran(&mut self.command(line));
        (code, printed)
    }

    /// So many entries are changed, and this is the exit code.
    fn changes(&self, line: &str, count: u64, expected: i32) {
        let key = match line.split(' ').next() {
            Some("retry") => "retried",
            Some("dead-letter") => "deadLettered",
            _ => "purged",
        };
        let (code, values) = self.json(line);
        assert_eq!(
            json!([code, values[0][key]]),
            json!([expected, count]),
            "{line}"
        );
    }

    /// The entry of an event, as a list shows it.
    pub(crate) fn entry(&self, event: &str) -> Option<Value> {
        let (code, mut values) = self.json(&format!("list --event-id {event}"));
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
            let stats = self.json("stats").1.remove(0);
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

/// Fills the inbox, has workers handle the entries, and uses the command as an operator does, step
/// by step; new events arrive and are handled all the while.
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
    assert_eq!(place.json("list"), (Some(0), vec![]));
    let empty = place.until("empty", |_| true).await;
    let found = fields(&empty, ["queued", "done", "oldestSeconds"]);
    assert_eq!(found, json!([0, 0, null]));

    let ids = ["dead_1", "dead_2", "dead_3", "late_1", "late_2", "slow"];
    for id in ids {
        accept(&inbox, &format!("evt_{id}")).await;
    }
    let is_ready = |it: &Value| fields(it, ["dead", "retrying", "running"]) == json!([3, 2, 1]);
    place.until("dead, waiting, running", is_ready).await;
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
    assert_eq!(fields(&late, ["state", "tries"]), json!(["queued", 1]));
    has(late["lastError"].as_str().unwrap(), &["the shop is closed"]);
    let (code, dead) = place.json("list --state dead --limit 2");
    assert_eq!((code, dead.len()), (Some(0), 2));
    let last = dead[1]["entry"].as_str().unwrap();
    let rest = place.json(&format!("list --state dead --after {last}"));
    assert_eq!(rest.1.len(), 1);
    let (code, listed, said) = ran(&mut place.command("list --state dead"));
    assert_eq!((code, &*said, listed.lines().count()), (Some(0), "", 4));
    has(&listed, &["no such customer"]);

    let slow = place.number("evt_slow");
    let (code, shown) = place.text(&format!("show {slow}"));
    assert_eq!(code, Some(0));
    has(
        &shown,
        &[": running, leased until 20", "page.created evt_slow"],
    );
    has(&shown, &["\"n\": 1"]);
    let raw = place.text(&format!("show {slow} --raw"));
    assert_eq!(raw, (Some(0), body("evt_slow")));

    // A running entry belongs to its worker alone.
    for line in [
        "retry --entry SLOW",
        "dead-letter --entry SLOW --reason made~up",
        "purge --entry SLOW --yes",
        "purge --entry SLOW --yes --state done",
    ] {
        place.changes(&line.replace("SLOW", &slow), 0, 1);
    }
    assert_eq!(place.entry("evt_slow").unwrap()["state"], "running");

    // One of them is given up, and deleted: it is forgotten, and so the event is new.
    place.changes(
        "dead-letter --event-id evt_late_2 --reason sent~twice",
        1,
        0,
    );
    let entry = place.entry("evt_late_2").unwrap();
    assert_eq!(
        fields(&entry, ["state", "lastError"]),
        json!(["dead", "sent twice"])
    );
    place.changes("purge --event-id evt_late_2 --yes", 1, 0);
    assert_eq!(place.entry("evt_late_2"), None);
    let gone = entry["entry"].as_str().unwrap();
    let (code, _, said) = ran(&mut place.command(&format!("show {gone}")));
    assert_eq!(code, Some(3));
    has(&said, &["there is no entry"]);

    // The handler works again. The entries that failed are made due now; their own wait has an hour
    // to go.
    here.mended.store(true, Ordering::SeqCst);
    place.changes("retry --state dead", 3, 0);
    place.changes("retry --event-id evt_late_1", 1, 0);
    accept(&inbox, "evt_late_2").await;
    released.add_permits(1);
    ends.store(true, Ordering::SeqCst);
    let all = live.await.unwrap() + 6;
    let stats = place.until("all done", |stats| stats["done"] == all).await;
    let found = fields(&stats, ["dead", "running", "oldestSeconds"]);
    assert_eq!(found, json!([0, 0, null]));
    workers.shutdown(PATIENCE).await;
    let handled = here.handled.lock().unwrap();
    assert_eq!(handled.len(), all);
    assert!(handled.values().all(|times| *times == 1), "{handled:?}");

    // The reader stops early, as behind `| head`.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut listing = place.command("list");
    let listing = listing.stdout(writer).stderr(Stdio::piped()).output();
    let listing = listing.unwrap();
    assert_eq!(listing.status.code(), Some(0));
    assert_eq!(String::from_utf8(listing.stderr).unwrap(), "");
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

    let (code, printed, said) = stats(&right, &[]);
    assert!(code == Some(0) && printed.starts_with("1 queued"), "{said}");
    let other = certificates.path("other.pem");
    for (host, rest, code, words) in [
        ("localhost", "sslmode=require", 4, "signed by no authority"),
        (
            "localhost",
            "sslrootcert=OTHER",
            4,
            "signed by no authority",
        ),
        (
            "other.example",
            "sslrootcert=ITS&hostaddr=127.0.0.1",
            4,
            "another host name",
        ),
        ("localhost", "sslmode=disable", 3, "sslmode=verify-full"),
    ] {
        let rest = rest.replace("OTHER", &other).replace("ITS", &ca);
        let (ended, _, said) = stats(&by(host, rest), &[]);
        assert_eq!(ended, Some(code), "{words}: {said}");
        has(&said, &[words]);
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
    place.changes("dead-letter --event-id evt_1 --reason made~up", 1, 0);
    place.changes("retry --event-id evt_1", 1, 0);
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
    let expect = |url: &str, code: i32, parts: &[&str]| {
        let (came, printed, said) = stats(url, &[]);
        assert_eq!((came, &*printed), (Some(code), ""), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
        has(&said, parts);
    };
    let plain = url(&server, "");
    expect(
        &plain,
        3,
        &["a table is missing", "the receiver's database"],
    );
    let nowhere = plain.replace("/postgres", "/nowhere");
    let nobody = plain.replace("hookgate@", "nobody:hunter2@");
    let no_tls = &["can't be reached", "does not support TLS"];
    for (url, code, parts) in [
        (nowhere, 3, &["database \"nowhere\" does not exist"][..]),
        (nobody, 3, &["role \"nobody\" does not exist"]),
        (url(&server, "?sslmode=require"), 4, no_tls),
        (url(&server, "?sslmode=verify-full"), 4, no_tls),
        (url(&server, "?sslmode=verify-ca"), 4, no_tls),
        (url(&server, "?sslmode=hunter2"), 2, &["sslmode is unknown"]),
        (
            url(&server, "?sslrootcert=/nowhere.pem"),
            2,
            &["sslrootcert", "/nowhere.pem"],
        ),
    ] {
        expect(&url, code, parts);
    }
    server.crash();
    expect(&plain, 4, &["can't be reached", "is it running"]);
}
