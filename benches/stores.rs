//! The cost of claims that outlast a process and of durable accepts, as ratios: each store compared
//! with two bare round trips to its server or two bare transactions in its file, and with
//! `MemoryStore`; each inbox compared with a plain insert that is committed alone.
//!
//! ```text
//! cargo bench -p hookgate-benches --bench stores --all-features
//! ```
//!
//! Servers are started on free loopback ports and stopped; redis-server and PostgreSQL must be
//! installed, as for `scripts/test`. Contestants run in turn, round by round; a ratio is the median
//! of the rounds' ratios. Redis writes nothing to disk here unless the name says so, and PostgreSQL
//! flushes each commit: such figures depend on the disk, so they hold for the named machine.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)] // A bench prints, and panics on an unexpected result.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hookgate::{
    DedupeStore, Delivery, MemoryStore,
    dedupe::{ClaimToken, Claimed, EventKey, Ownership},
    sink::{Accepted, Sink},
};
use hookgate_inbox::{Inbox, Workers};
use hookgate_postgres::{Postgres, PostgresStore};
use hookgate_redis::RedisStore;
use hookgate_sqlite::{InboxOptions, SqliteStore};
use rusqlite::{Connection, params};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

#[path = "../tests/servers/support/mod.rs"]
#[allow(dead_code, unreachable_pub, unused_imports)] // the tests need more of it
mod servers;
mod support;

use support::{Arguments, Case};

const LEASE: Duration = Duration::from_secs(30);
const RETAIN: Duration = Duration::from_secs(48 * 3600);

const MEMORY: &str = "MemoryStore";
const PINGS: &str = "two PINGs to Redis";
const REDIS: &str = "RedisStore";
const DURABLE: &str = "RedisStore, append-only file, always";
const SELECTS: &str = "two SELECT 1 to PostgreSQL";
const POSTGRES: &str = "PostgresStore";
const TRANSACTIONS: &str = "two bare transactions in SQLite";
const SQLITE: &str = "SqliteStore";
const SQLITE_INBOX: &str = "inbox on SQLite";
const ALONE: &str = "inbox on SQLite, each commit alone";
const POSTGRES_INBOX: &str = "inbox on PostgreSQL";

fn main() {
    let arguments = Arguments::read();
    println!("CPU: {}", support::cpu());
    let runtime = Runtime::new().unwrap();
    let mut cases = claims(&runtime);
    cases.extend(inboxes(&runtime));
    arguments.record("stores", "ns", &cases);
}

/// A contestant: runs a call `count` times, this many at a time, and returns how long one took.
type Calls<'a> = (&'a str, Box<dyn Fn() -> Call + 'a>);
type Call = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs each contestant in turn, round by round, with `together` calls under way at a time.
fn rounds(
    runtime: &Runtime,
    case: &str,
    (rounds, calls, together): (usize, usize, usize),
    contestants: &[Calls<'_>],
) -> Case {
    let mut measured = Case::new(case);
    for round in 0..=rounds {
        for (name, call) in contestants {
            let calls: Vec<Call> = (0..calls).map(|_| call()).collect();
            let count = calls.len();
            let start = Instant::now();
            runtime.block_on(all(calls, together));
            let nanos = start.elapsed().as_secs_f64() * 1e9 / count as f64;
            // The first round is for connections, caches and prepared statements.
            if round > 0 {
                measured.add(name, nanos);
            }
        }
    }
    measured
}

async fn all(calls: Vec<Call>, together: usize) {
    let mut lanes: Vec<Vec<Call>> = (0..together).map(|_| Vec::new()).collect();
    for (number, call) in calls.into_iter().enumerate() {
        lanes[number % together].push(call);
    }
    let mut running = JoinSet::new();
    for lane in lanes {
        running.spawn(async move {
            for call in lane {
                call.await;
            }
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
}

/// Returns the id of an event that was never used.
fn fresh() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let run = std::process::id();
    format!("evt_{run}_{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Claims an event, and commits it.
fn claim_and_commit(store: &Arc<dyn DedupeStore>) -> Call {
    let (store, key) = (Arc::clone(store), EventKey::new("default", &fresh()));
    Box::pin(async move {
        let token = ClaimToken::new(b"{}");
        let claimed = store.claim(&key, token, LEASE).await.unwrap();
        assert_eq!(claimed, Claimed::Fresh);
        let committed = store.commit(&key, token, RETAIN).await.unwrap();
        assert_eq!(committed, Ownership::Held);
    })
}

/// A file with one table, whose commits are flushed as those of `SqliteStore` are.
fn bare_sqlite(folder: &servers::Folder) -> Arc<Mutex<Connection>> {
    let connection = Connection::open(folder.path().join("bare.db")).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
            CREATE TABLE marks (id TEXT PRIMARY KEY, done INTEGER NOT NULL) WITHOUT ROWID;",
        )
        .unwrap();
    Arc::new(Mutex::new(connection))
}

/// Marks an event, and then marks it as done: two transactions, each of one statement.
fn mark_twice(file: &Arc<Mutex<Connection>>) -> Call {
    let (file, id) = (Arc::clone(file), fresh());
    Box::pin(async move {
        for (statement, done) in [
            ("INSERT INTO marks (id, done) VALUES (?1, ?2)", 0),
            ("UPDATE marks SET done = ?2 WHERE id = ?1", 1),
        ] {
            let changed = file.lock().unwrap().execute(statement, params![id, done]);
            assert_eq!(changed.unwrap(), 1);
        }
    })
}

fn claims(runtime: &Runtime) -> Vec<Case> {
    let folder = servers::Folder::new();
    let bare = bare_sqlite(&folder);
    let redis = servers::RedisServer::start(&[]).expect("redis-server");
    let durable = servers::RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let durable = durable.expect("redis-server");
    let postgres = servers::PostgresServer::start(&[]).expect("PostgreSQL");
    let config: tokio_postgres::Config = postgres.config().parse().unwrap();
    let database = Postgres::new(config.clone(), tokio_postgres::NoTls);

    let (pinged, asked, stores) = runtime.block_on(async {
        let client = redis::Client::open(redis.url()).unwrap();
        let pinged = client.get_connection_manager().await.unwrap();
        let (asked, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        hookgate_postgres::migrate(&asked).await.unwrap();
        let ping = asked.prepare("SELECT 1").await.unwrap();
        let stores: [(&str, Arc<dyn DedupeStore>); 5] = [
            (MEMORY, Arc::new(MemoryStore::new(10_000_000))),
            (
                SQLITE,
                Arc::new(SqliteStore::open(folder.path().join("claims.db")).unwrap()),
            ),
            (
                REDIS,
                Arc::new(RedisStore::connect(&redis.url()).await.unwrap()),
            ),
            (
                DURABLE,
                Arc::new(RedisStore::connect(&durable.url()).await.unwrap()),
            ),
            (POSTGRES, Arc::new(PostgresStore::new(&database, "bench"))),
        ];
        (pinged, (Arc::new(asked), ping), stores)
    });
    let two_pings = || -> Call {
        let mut connection = pinged.clone();
        Box::pin(async move {
            for _ in 0..2 {
                let _: String = redis::cmd("PING")
                    .query_async(&mut connection)
                    .await
                    .unwrap();
            }
        })
    };
    let two_selects = || -> Call {
        let (client, ping) = (Arc::clone(&asked.0), asked.1.clone());
        Box::pin(async move {
            for _ in 0..2 {
                client.query_one(&ping, &[]).await.unwrap();
            }
        })
    };
    let mut cases = Vec::new();
    for (case, size) in [
        ("claim and commit, one at a time", (15, 200, 1)),
        ("claim and commit, 64 at a time", (15, 3_200, 64)),
    ] {
        let mut contestants: Vec<Calls<'_>> = vec![
            (PINGS, Box::new(two_pings)),
            (SELECTS, Box::new(two_selects)),
            (TRANSACTIONS, Box::new(|| mark_twice(&bare))),
        ];
        for (name, store) in &stores {
            contestants.push((name, Box::new(move || claim_and_commit(store))));
        }
        let measured = rounds(runtime, case, size, &contestants);
        println!("\n{case}");
        for (name, base) in [
            (REDIS, PINGS),
            (DURABLE, PINGS),
            (POSTGRES, SELECTS),
            (SQLITE, TRANSACTIONS),
            (DURABLE, SQLITE),
            (POSTGRES, SQLITE),
            (SQLITE, MEMORY),
            (REDIS, MEMORY),
            (DURABLE, MEMORY),
            (POSTGRES, MEMORY),
        ] {
            let ratio = measured.ratio(name, base);
            println!("  {name:<38} {ratio:>8.2} x {base}");
        }
        for (name, _) in &contestants {
            let rate = 1e9 / measured.median(name);
            println!("  {name:<38} {rate:>8.0} a second here");
        }
        cases.push(measured);
    }
    cases
}

/// Accepts an event of 600 bytes.
fn accept(inbox: &Inbox) -> Call {
    let (inbox, delivery) = (inbox.clone(), event());
    Box::pin(async move {
        let accepted = inbox.accept(&delivery, RETAIN).await.unwrap();
        assert_eq!(accepted, Accepted::New);
    })
}

fn event() -> Delivery {
    let (id, filling) = (fresh(), "x".repeat(400));
    let row = format!(r#"{{"datamodelId":"dm_1","rowId":"{id}","note":"{filling}"}}"#);
    let body = format!(
        r#"{{"id":"{id}","type":"row.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{row}}}"#
    );
    hookgate_testing::delivery(body).unwrap()
}

fn inboxes(runtime: &Runtime) -> Vec<Case> {
    let postgres = servers::PostgresServer::start(&[]).expect("PostgreSQL");
    let config: tokio_postgres::Config = postgres.config().parse().unwrap();
    let folder = servers::Folder::new();
    let inboxes = runtime.block_on(async {
        let database = Postgres::new(config.clone(), tokio_postgres::NoTls);
        let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        hookgate_postgres::migrate(&client).await.unwrap();
        let alone = InboxOptions::default().max_group(1);
        [
            (
                SQLITE_INBOX,
                hookgate_sqlite::open_inbox(folder.path().join("inbox.db")).unwrap(),
            ),
            (ALONE, alone.open(folder.path().join("alone.db")).unwrap()),
            (POSTGRES_INBOX, database.inbox("bench").unwrap()),
        ]
    });
    let mut cases = Vec::new();
    for (case, size) in [
        ("accept, one producer", (9, 100, 1)),
        ("accept, 32 producers", (9, 3_200, 32)),
    ] {
        let contestants: Vec<Calls<'_>> = inboxes
            .iter()
            .map(|(name, inbox)| {
                (
                    *name,
                    Box::new(move || accept(inbox)) as Box<dyn Fn() -> Call>,
                )
            })
            .collect();
        let measured = rounds(runtime, case, size, &contestants);
        println!("\n{case}");
        for name in [ALONE, POSTGRES_INBOX] {
            let ratio = measured.ratio(name, SQLITE_INBOX);
            println!("  {name:<38} {ratio:>8.2} x {SQLITE_INBOX}");
        }
        for (name, _) in &contestants {
            let rate = 1e9 / measured.median(name);
            println!("  {name:<38} {rate:>8.0} a second here");
        }
        cases.push(measured);
    }
    // The entries accepted above are handled first; then each round accepts, and waits until all
    // entries are handled.
    let mut worked = Case::new("accepted and worked, 32 producers, 32 at a time");
    for (name, inbox) in [&inboxes[0], &inboxes[2]] {
        let workers = runtime.block_on(async {
            let workers = Workers::new(inbox).concurrency(32);
            workers.start_handler(|_: Delivery| async {}).unwrap()
        });
        let idle = async || {
            while inbox.stats().await.unwrap().oldest.is_some() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        runtime.block_on(idle());
        for _ in 0..5 {
            let calls: Vec<Call> = (0..3_200).map(|_| accept(inbox)).collect();
            let (count, start) = (calls.len(), Instant::now());
            runtime.block_on(async {
                all(calls, 32).await;
                idle().await;
            });
            worked.add(name, start.elapsed().as_secs_f64() * 1e9 / count as f64);
        }
        let _ = runtime.block_on(workers.shutdown(Duration::from_secs(5)));
        println!(
            "{}\n  {name:<38} {:>8.0} a second here",
            if cases.len() == 2 {
                "\naccepted and worked"
            } else {
                ""
            },
            1e9 / worked.median(name)
        );
    }
    cases.push(worked);
    cases
}
