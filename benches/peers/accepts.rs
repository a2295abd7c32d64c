//! The speed of durable accepts, 32 producers at a time: the inbox and apalis-sqlite, in turn,
//! round by round.
//!
//! ```text
//! cargo bench --manifest-path benches/peers/Cargo.toml
//! ```
//!
//! apalis-sqlite is measured twice: with its `setup()`, which turns flushes off on one connection
//! of its pool, so that some accepted jobs are not on the disk; and with `synchronous=FULL` on each
//! connection, as in the inbox. Both take one transaction a job. A producer sends its jobs one
//! after the other.

#![allow(clippy::print_stdout, clippy::unwrap_used)] // A bench prints, and panics on an unexpected result.

use std::future::Future;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use apalis_core::backend::TaskSink;
use apalis_core::task::builder::TaskBuilder;
use apalis_sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions, SqliteStorage};
use hookgate::sink::{Accepted, Sink};
use hookgate_inbox::Inbox;
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

const PRODUCERS: usize = 32;
const EACH: usize = 25;
const ROUNDS: usize = 9;
const RETAIN: Duration = Duration::from_secs(48 * 3600);

#[derive(Serialize, Deserialize)]
struct Job {
    body: String,
}

/// Returns an id that was never used, and a body of about 600 bytes.
fn event() -> (String, String) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let id = format!("evt_{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let filling = "x".repeat(400);
    let row = format!(r#"{{"datamodelId":"dm_1","rowId":"{id}","note":"{filling}"}}"#);
    let body = format!(
        r#"{{"id":"{id}","type":"row.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{row}}}"#
    );
    (id, body)
}

/// Returns the nanoseconds an event takes.
fn time<F: Future<Output = ()> + Send + 'static>(
    runtime: &Runtime,
    producer: impl Fn(Vec<(String, String)>) -> F,
) -> f64 {
    let events: Vec<Vec<_>> = (0..PRODUCERS)
        .map(|_| (0..EACH).map(|_| event()).collect())
        .collect();
    let start = Instant::now();
    runtime.block_on(async {
        let mut running: JoinSet<()> = events.into_iter().map(producer).collect();
        while let Some(ended) = running.join_next().await {
            ended.unwrap();
        }
    });
    start.elapsed().as_secs_f64() * 1e9 / (PRODUCERS * EACH) as f64
}

/// Returns a pool as apalis' own `setup` makes it, or with flushes on every connection.
async fn pool(path: &Path, flushed: bool) -> SqlitePool {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .busy_timeout(Duration::from_secs(30));
    if !flushed {
        let pool = SqlitePool::connect_with(options).await.unwrap();
        SqliteStorage::setup(&pool).await.unwrap();
        return pool;
    }
    let options = options
        .pragma("journal_mode", "WAL")
        .pragma("synchronous", "FULL");
    let pool = SqlitePoolOptions::new()
        .connect_with(options)
        .await
        .unwrap();
    SqliteStorage::migrations().run(&pool).await.unwrap();
    pool
}

async fn push(pool: SqlitePool, events: Vec<(String, String)>) {
    let mut storage = SqliteStorage::<Job>::new(&pool);
    for (id, body) in events {
        let job = TaskBuilder::new(Job { body }).idempotency_key(&id).build();
        storage.push_task(job).await.unwrap();
    }
}

async fn accept(inbox: Inbox, events: Vec<(String, String)>) {
    for (_, body) in events {
        let delivery = hookgate_testing::delivery(body).unwrap();
        assert_eq!(
            inbox.accept(&delivery, RETAIN).await.unwrap(),
            Accepted::New
        );
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let folder = std::env::temp_dir().join(format!("hookgate-peers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let runtime = Runtime::new().unwrap();
    let inbox =
        runtime.block_on(async { hookgate_sqlite::open_inbox(folder.join("inbox.db")).unwrap() });
    let as_shipped = runtime.block_on(pool(&folder.join("setup.db"), false));
    let full = runtime.block_on(pool(&folder.join("full.db"), true));
    let (mut shipped_ratios, mut full_ratios, mut own) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let ours = time(&runtime, |events| accept(inbox.clone(), events));
        let shipped = time(&runtime, |events| push(as_shipped.clone(), events));
        let flushed = time(&runtime, |events| push(full.clone(), events));
        // The first round warms up.
        if round > 0 {
            own.push(1e9 / ours);
            shipped_ratios.push(shipped / ours);
            full_ratios.push(flushed / ours);
        }
    }
    println!(
        "{PRODUCERS} producers, {ROUNDS} rounds of {} events, medians",
        PRODUCERS * EACH
    );
    println!(
        "  inbox                                  {:>8.0} a second here",
        median(own)
    );
    println!(
        "  apalis-sqlite, synchronous=FULL        {:>8.2} x as long",
        median(full_ratios)
    );
    println!(
        "  apalis-sqlite, as setup() leaves it    {:>8.2} x as long",
        median(shipped_ratios)
    );
    std::fs::remove_dir_all(&folder).unwrap();
}
