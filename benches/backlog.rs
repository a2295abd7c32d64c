//! The inbox beside a large backlog: how long its calls take where 20,000, 200,000 and a million
//! entries wait, or 100,000 rows are in back-off; the bytes that an event writes; what idle workers
//! cost an accept; what is forgotten while all connections are in use; and how much work is done
//! where the default isolation is SERIALIZABLE.
//!
//! ```text
//! cargo bench -p hookgate-benches --bench backlog --all-features
//! cargo bench -p hookgate-benches --bench backlog --all-features -- --entries 20000 --only sqlite
//! cargo bench -p hookgate-benches --bench backlog --all-features -- --rows 100000 --only rows
//! ```
//!
//! `--only` takes some of `postgres`, `sqlite`, `bytes`, `rows`, `idle`, `forget` and `isolation`,
//! with commas between them. `--record FILE` adds a round to the file.
//!
//! PostgreSQL is started on a free loopback port and stopped. The backlog is written directly into
//! the tables. The figures are times of the machine, so they are for comparisons of two builds in
//! one run: run the two programs in turn, some rounds.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)] // A bench prints, and panics on an unexpected result.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hookgate::{
    Delivery,
    sink::{Accepted, Sink},
};
use hookgate_inbox::{EntryState, Inbox, Page, RunningWorkers, Selection, Workers};
use hookgate_postgres::Postgres;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, Config, NoTls};

#[path = "../tests/servers/support/mod.rs"]
#[allow(dead_code, unreachable_pub, unused_imports)] // the tests need more of it
mod servers;
mod support;

use support::{Arguments, Case};

const RETAIN: Duration = Duration::from_secs(48 * 3600);
const DAY: Duration = Duration::from_secs(86_400);
/// The events of other rows, beside a backlog in one row.
const OTHERS: usize = 100;

/// The figures of this run, which are printed and can be recorded.
struct Figures(RefCell<Vec<Case>>);

impl Figures {
    fn add(&self, case: &str, name: &str, value: f64, unit: &str) {
        println!("{case:<44} {name:<44} {value:>9.1} {unit}");
        let mut cases = self.0.borrow_mut();
        let at = cases.iter().position(|known| known.name == case);
        let at = at.unwrap_or_else(|| {
            cases.push(Case::new(case));
            cases.len() - 1
        });
        cases[at].add(&format!("{name}, {unit}"), value);
    }

    async fn timed<T>(&self, case: &str, call: &str, future: impl Future<Output = T>) -> T {
        let start = Instant::now();
        let output = future.await;
        self.add(case, call, millis(start), "ms");
        output
    }
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn main() {
    let arguments = Arguments::read();
    println!("CPU: {}", support::cpu());
    let sizes: Vec<i64> = match arguments.after("--entries") {
        Some(entries) => vec![entries.parse().unwrap()],
        None => vec![20_000, 200_000, 1_000_000],
    };
    let is_meant = |part: &str| {
        let only = arguments.after("--only");
        only.is_none_or(|only| only.split(',').any(|one| one == part))
    };
    let figures = Figures(RefCell::new(arguments.recorded()));
    let rows: i64 = arguments
        .after("--rows")
        .map_or(100_000, |rows| rows.parse().unwrap());
    let runtime = Runtime::new().unwrap();
    if ["postgres", "rows", "idle", "forget", "isolation"]
        .iter()
        .any(|part| is_meant(part))
    {
        let server = servers::PostgresServer::start(&[]).expect("PostgreSQL");
        let config: Config = server.config().parse().unwrap();
        runtime.block_on(async {
            let client = connect(&config).await;
            hookgate_postgres::migrate(&client).await.unwrap();
            for &entries in sizes.iter().filter(|_| is_meant("postgres")) {
                fill_table(&client, entries, 0).await;
                let (case, inbox) = (waiting("PostgreSQL", entries), on_postgres(&config));
                // The first call opens a connection and reads the catalog.
                inbox.list(Selection::all(), Page::first(1)).await.unwrap();
                calls_of_an_operator(&figures, &case, entries, &inbox).await;
                beside_a_backlog(&figures, &case, &inbox).await;
            }
            if is_meant("rows") {
                fill_table(&client, 20_000, rows).await;
                beside_a_backlog(
                    &figures,
                    &in_back_off("PostgreSQL", rows),
                    &on_postgres(&config),
                )
                .await;
            }
            if is_meant("idle") {
                empty(&client).await;
                beside_idle_workers(&figures, &client, &config).await;
            }
            if is_meant("forget") {
                forgotten_beside_work(&figures, &client, &config).await;
            }
            if is_meant("isolation") {
                work_by_isolation(&figures, &client, &config).await;
            }
        });
    }
    if is_meant("rows") {
        let folder = servers::Folder::new();
        let path = folder.path().join("inbox.db");
        fill_file(&runtime, &path, 20_000, rows);
        let inbox = hookgate_sqlite::open_inbox(&path).unwrap();
        runtime.block_on(beside_a_backlog(
            &figures,
            &in_back_off("SQLite", rows),
            &inbox,
        ));
    }
    if is_meant("sqlite") {
        for &entries in &sizes {
            let folder = servers::Folder::new();
            let path = folder.path().join("inbox.db");
            fill_file(&runtime, &path, entries, 0);
            let inbox = hookgate_sqlite::open_inbox(&path).unwrap();
            runtime.block_on(async {
                let case = waiting("SQLite", entries);
                let first = accept(&inbox, "first");
                figures.timed(&case, "the first accept", first).await;
                calls_of_an_operator(&figures, &case, entries, &inbox).await;
                beside_a_backlog(&figures, &case, &inbox).await;
            });
        }
    }
    if is_meant("bytes") {
        bytes_written(&figures, &runtime);
    }
    arguments.record("backlog", "see each name", &figures.0.into_inner());
}

fn waiting(engine: &str, entries: i64) -> String {
    format!("{engine}, {entries} wait in one row")
}

fn in_back_off(engine: &str, rows: i64) -> String {
    format!("{engine}, 20000 wait, {rows} rows in back-off")
}

async fn connect(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn on_postgres(config: &Config) -> Inbox {
    Postgres::new(config.clone(), NoTls)
        .inbox("default")
        .unwrap()
}

async fn empty(client: &Client) {
    let empty = "TRUNCATE hookgate_inbox";
    client.batch_execute(empty).await.unwrap();
}

/// Fills the empty table with entries of one row, of which the oldest 50 are three days old, and
/// with one entry of each of so many other rows, which has failed and is due in an hour.
async fn fill_table(client: &Client, entries: i64, rows: i64) {
    let fill = format!(
        "TRUNCATE hookgate_inbox;
         INSERT INTO hookgate_inbox (key, row_key, digest, event_id, event_type, signed_at, received_at, scope, key_name, body,
           accepted_at, due_at, forget_at)
         SELECT decode(md5(e::text), 'hex'), decode(md5('one'), 'hex'), 0, 'evt_b_' || e, 'row.created', '1700000000', 1700000000,
           'default', 'default', convert_to('{{\"id\":\"evt_b_' || e || '\",\"type\":\"row.created\",\"createdAt\":\"2026-11-21T09:30:00Z\",\"data\":{{\"note\":\"' || repeat('x', 400) || '\"}}}}', 'UTF8'),
           at, at, at + interval '30 days'
         FROM generate_series(1, {entries}) AS e, LATERAL (SELECT now() - CASE WHEN e <= 50 THEN interval '3 days' ELSE interval '1 minute' END AS at) AS time
         ORDER BY e;
         INSERT INTO hookgate_inbox (key, row_key, digest, event_id, event_type, signed_at, received_at, scope, key_name, body,
           accepted_at, due_at, forget_at, tries, token, last_error, first_leased_at)
         SELECT decode(md5('row' || e), 'hex'), decode(md5('row' || e), 'hex'), 0, 'evt_r_' || e, 'row.created', '1700000000', 1700000000,
           'default', 'default', '{{}}', now(), now() + interval '1 hour', now() + interval '30 days', 1,
           decode(md5('token'), 'hex'), '500', now()
         FROM generate_series(1, {rows}) AS e;"
    );
    client.batch_execute(&fill).await.unwrap();
    client
        .batch_execute("VACUUM ANALYZE hookgate_inbox")
        .await
        .unwrap();
}

/// Fills a new file in the same way.
fn fill_file(runtime: &Runtime, path: &Path, entries: i64, rows: i64) {
    let inbox = hookgate_sqlite::open_inbox(path).unwrap();
    runtime.block_on(inbox.close());
    let connection = rusqlite::Connection::open(path).unwrap();
    let now = std::time::SystemTime::now();
    let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = i64::try_from(now.as_millis()).unwrap();
    connection
        .execute_batch(&format!(
            "BEGIN;
             CREATE TEMP TABLE numbers AS WITH RECURSIVE n (e) AS (SELECT 1 UNION ALL SELECT e + 1 FROM n WHERE e < {entries}) SELECT e FROM n;
             INSERT INTO entries (key, digest, until, since, row, accepted_at, forget_at, received_at, body_bytes, event_id, event_type,
               timestamp, scope, key_name)
             SELECT randomblob(16), 0, at, at, x'00112233445566778899aabbccddeeff', at, at + 30 * 86400000, 1700000000, 500, 'evt_b_' || e,
               'row.created', '1700000000', 'default', 'default'
             FROM (SELECT e, {now} - iif(e <= 50, 3 * 86400000, 60000) AS at FROM numbers) ORDER BY e;
             WITH RECURSIVE n (e) AS (SELECT 1 WHERE {rows} > 0 UNION ALL SELECT e + 1 FROM n WHERE e < {rows})
             INSERT INTO entries (key, digest, until, since, row, accepted_at, forget_at, received_at, body_bytes, event_id, event_type,
               timestamp, scope, key_name, tries, token, last_error, first_leased_at)
             SELECT randomblob(16), 0, {now} + 3600000, {now}, randomblob(16), {now}, {now} + 30 * 86400000, 1700000000, 500,
               'evt_r_' || e, 'row.created', '1700000000', 'default', 'default', 1, randomblob(16), '500', {now}
             FROM n;
             INSERT INTO bodies (id, body) SELECT id, CAST('{{\"id\":\"' || event_id || '\",\"type\":\"row.created\",\"createdAt\":\"2026-11-21T09:30:00Z\",\"data\":{{\"note\":\"' || printf('%.400c', 'x') || '\"}}}}' AS BLOB) FROM entries;
             COMMIT;
             PRAGMA wal_checkpoint(TRUNCATE);"
        ))
        .unwrap();
}

fn event(name: &str) -> Delivery {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let run = COUNT.fetch_add(1, Ordering::Relaxed);
    let filling = "x".repeat(300);
    let body = format!(
        r#"{{"id":"evt_{name}_{run}","type":"row.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{{"datamodelId":"dm_1","rowId":"row_{name}_{run}","note":"{filling}"}}}}"#
    );
    hookgate_testing::delivery(body).unwrap()
}

async fn accept(inbox: &Inbox, name: &str) {
    let accepted = inbox.accept(&event(name), RETAIN).await.unwrap();
    assert_eq!(accepted, Accepted::New);
}

async fn calls_of_an_operator(figures: &Figures, case: &str, entries: i64, inbox: &Inbox) {
    for (name, which) in [
        ("list", Selection::all()),
        (
            "list --state running",
            Selection::all().state(EntryState::Running),
        ),
        ("list --older-than 1d", Selection::all().older_than(DAY)),
        (
            "list --state queued --older-than 1d",
            Selection::all().state(EntryState::Queued).older_than(DAY),
        ),
        (
            "list --event-id",
            Selection::all().event_id(format!("evt_b_{}", entries / 2)),
        ),
    ] {
        let listed = inbox.list(which, Page::first(1_000));
        figures.timed(case, name, listed).await.unwrap();
    }
}

/// Handles events of new rows, while an event of the row that has the backlog runs.
async fn beside_a_backlog(figures: &Figures, case: &str, inbox: &Inbox) {
    for number in 0..OTHERS {
        accept(inbox, &format!("other{number}")).await;
    }
    let handled = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&handled);
    let start = Instant::now();
    let workers = Workers::new(inbox).concurrency(16).serial_by_row();
    let workers = workers.start_handler(move |delivery: Delivery| {
        let is_other = delivery.event_id().starts_with("evt_other");
        counted.fetch_add(usize::from(is_other), Ordering::SeqCst);
        async move {
            if !is_other {
                // An event of the row that has the backlog runs all the time.
                tokio::time::sleep(Duration::from_secs(30)).await;
            }
        }
    });
    let workers = workers.unwrap();
    let until_handled = async |count: usize| {
        let limit = Instant::now() + Duration::from_secs(180);
        while handled.load(Ordering::SeqCst) < count {
            assert!(Instant::now() < limit, "not handled: {case}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    until_handled(OTHERS).await;
    let name = "serial_by_row: 100 events of other rows";
    figures.add(case, name, millis(start), "ms");
    // While no other event is due, so that no lease finds work and is followed by another at once.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let start = Instant::now();
    accept(inbox, "other").await;
    until_handled(OTHERS + 1).await;
    let name = "serial_by_row: one event of another row";
    figures.add(case, name, millis(start), "ms");
    workers.shutdown(Duration::from_secs(3)).await;
}

/// Accepts one at a time, while none, and then 40, processes have idle workers.
async fn beside_idle_workers(figures: &Figures, client: &Client, config: &Config) {
    const ACCEPTS: usize = 400;
    let server = postmaster(client).await;
    let acceptor = on_postgres(config);
    let mut idle: Vec<RunningWorkers> = Vec::new();
    for workers in [1, 40] {
        while idle.len() < workers {
            let inbox = Postgres::new(config.clone(), NoTls)
                .with_connections(1)
                .inbox("default");
            let workers = Workers::new(&inbox.unwrap()).poll_interval(Duration::from_secs(60));
            idle.push(workers.start_handler(async |_: Delivery| ()).unwrap());
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
        let (mut took, cpu) = (Vec::new(), cpu_time(server));
        for _ in 0..ACCEPTS {
            let start = Instant::now();
            accept(&acceptor, "idle").await;
            took.push(millis(start));
            tokio::time::sleep(Duration::from_millis(12)).await;
        }
        took.sort_by(f64::total_cmp);
        let case = format!("PostgreSQL, idle workers in {workers} processes");
        figures.add(&case, "p50 of an accept", took[ACCEPTS / 2], "ms");
        figures.add(&case, "p99 of an accept", took[ACCEPTS * 99 / 100], "ms");
        let cpu = (cpu_time(server) - cpu) / ACCEPTS as f64;
        let name = "CPU time of the server for each accept";
        figures.add(&case, name, cpu, "ms");
    }
    for workers in idle {
        workers.shutdown(Duration::from_secs(3)).await;
    }
}

/// Returns the process that started the session of this client.
async fn postmaster(client: &Client) -> u32 {
    let session: i32 = client
        .query_one("SELECT pg_backend_pid()", &[])
        .await
        .unwrap()
        .get(0);
    stat(&session.to_string()).unwrap()[1].parse().unwrap()
}

/// Returns the milliseconds of CPU time that the living sessions of this server have used.
fn cpu_time(postmaster: u32) -> f64 {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| stat(process.file_name().to_str()?))
        .filter(|stat| stat[1] == postmaster.to_string())
        // Ticks of the system's clock, which are hundredths of a second.
        .map(|stat| stat[11].parse::<f64>().unwrap() + stat[12].parse::<f64>().unwrap())
        .sum::<f64>()
        * 10.0
}

/// Returns what `/proc` tells of a process behind its name: its state, its parent and others
/// (`man 5 proc`).
fn stat(process: &str) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, behind) = stat.rsplit_once(") ")?;
    Some(behind.split(' ').map(str::to_owned).collect())
}

/// Accepts events in so many tasks for some time, while workers on the same connections handle
/// them. Returns the numbers of events that were accepted and handled.
async fn work(inbox: &Inbox, tasks: usize, time: Duration) -> (usize, usize) {
    let (accepted, handled) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&handled);
    let workers = Workers::new(inbox).concurrency(16);
    let workers = workers.start_handler(move |_: Delivery| {
        counted.fetch_add(1, Ordering::SeqCst);
        async {}
    });
    let workers = workers.unwrap();
    let until = Instant::now() + time;
    let senders: Vec<_> = (0..tasks)
        .map(|_| {
            let (inbox, accepted) = (inbox.clone(), Arc::clone(&accepted));
            tokio::spawn(async move {
                while Instant::now() < until {
                    let answer = inbox.accept(&event("work"), RETAIN).await;
                    accepted.fetch_add(usize::from(answer.is_ok()), Ordering::SeqCst);
                }
            })
        })
        .collect();
    for sender in senders {
        sender.await.unwrap();
    }
    let done = (
        accepted.load(Ordering::SeqCst),
        handled.load(Ordering::SeqCst),
    );
    workers.shutdown(Duration::from_secs(5)).await;
    done
}

/// 100,000 ids can be forgotten, while all connections are in use.
async fn forgotten_beside_work(figures: &Figures, client: &Client, config: &Config) {
    const TIME: Duration = Duration::from_secs(31);
    fill_table(client, 100_000, 0).await;
    let done = "UPDATE hookgate_inbox SET state = 2, body = '', forget_at = now()";
    client.batch_execute(done).await.unwrap();
    let vacuum = "VACUUM ANALYZE hookgate_inbox";
    client.batch_execute(vacuum).await.unwrap();
    let postgres = Postgres::new(config.clone(), NoTls).with_connections(4);
    let inbox = postgres.inbox("default").unwrap();
    let (came, _) = work(&inbox, 64, TIME).await;
    let left = "SELECT 100000 - count(*) FROM hookgate_inbox WHERE event_id LIKE 'evt\\_b\\_%'";
    let forgotten: i64 = client.query_one(left, &[]).await.unwrap().get(0);
    let case = format!(
        "PostgreSQL, all connections in use for {} s",
        TIME.as_secs()
    );
    figures.add(&case, "events that came", came as f64, "events");
    figures.add(&case, "ids that were forgotten", forgotten as f64, "ids");
}

async fn work_by_isolation(figures: &Figures, client: &Client, config: &Config) {
    const TIME: Duration = Duration::from_secs(10);
    for isolation in ["read committed", "serializable"] {
        empty(client).await;
        // The role's default: one in the configuration's options is left to the user.
        let set =
            format!("ALTER ROLE CURRENT_USER SET default_transaction_isolation = '{isolation}'");
        client.batch_execute(&set).await.unwrap();
        let inbox = on_postgres(config);
        let (accepted, handled) = work(&inbox, 32, TIME).await;
        let case = format!("PostgreSQL, the role's default isolation is {isolation}");
        figures.add(&case, "accepted in 10 s", accepted as f64, "events");
        figures.add(&case, "handled in 10 s", handled as f64, "events");
    }
}

/// Accepts and handles 20, 50 and 100 events a second for some seconds, and reads the bytes that
/// this process has written.
fn bytes_written(figures: &Figures, runtime: &Runtime) {
    let folder = servers::Folder::new();
    runtime.block_on(async {
        let inbox = hookgate_sqlite::open_inbox(folder.path().join("inbox.db")).unwrap();
        let workers = Workers::new(&inbox);
        let workers = workers.start_handler(async |_: Delivery| ()).unwrap();
        // The tables have some depth, and the reserve is written.
        for _ in 0..2_000 {
            accept(&inbox, "warm").await;
        }
        for rate in [20, 50, 100] {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let before = written();
            let events = rate * 8;
            let mut every = tokio::time::interval(Duration::from_secs(1) / rate);
            for _ in 0..events {
                every.tick().await;
                accept(&inbox, "written").await;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            let bytes = |index: usize| {
                (written()[index] - before[index]) as f64 / f64::from(events) / 1_024.0
            };
            let case = format!("SQLite, {rate} events of 0.5 KB a second");
            figures.add(&case, "passed to the system for each", bytes(0), "KiB");
            figures.add(&case, "written to the disk for each", bytes(1), "KiB");
        }
        workers.shutdown(Duration::from_secs(3)).await;
    });
}

/// The bytes that this process has passed to `write`, and those that reached the disk.
fn written() -> [u64; 2] {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    ["wchar", "write_bytes"].map(|name| {
        let line = io.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    })
}
