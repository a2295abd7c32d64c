//! Tests on a PostgreSQL server that each test starts.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout
)] // as in `tests/servers`

mod back_off;
#[path = "../../../../tests/servers/support/folder.rs"]
mod folder;
mod notify;
mod plans;
#[path = "../../../../tests/servers/support/postgres.rs"]
mod postgres;
#[path = "../../../../tests/servers/support/proxy.rs"]
mod proxy;
#[path = "../../tests/servers/rights.rs"]
mod rights;
#[path = "../../../../tests/servers/support/server.rs"]
mod server;

use std::future::Future;
use std::str::FromStr;

use hookgate_inbox::EntryState;
use hookgate_inbox::contract::{Subject, Time, run_all};
use hookgate_inbox::engine::Job;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, NoTls};

use self::postgres::PostgresServer;
use super::*;
use crate::migrate;

/// Long enough for a busy machine. What waits for so long hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A busy machine answers no call within the usual limit.
fn patient(config: Config) -> Postgres {
    Postgres::new(config, NoTls).with_timeout(PATIENCE)
}

async fn connect(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Creates a new database with the table on this server, and returns its configuration.
async fn database(server: &str, name: &str) -> Config {
    let mut config = Config::from_str(server).unwrap();
    let client = connect(&config).await;
    client
        .batch_execute(&format!("CREATE DATABASE {name}"))
        .await
        .unwrap();
    config.dbname(name);
    migrate(&connect(&config).await).await.unwrap();
    config
}

// fault Q3: a worker that stood still settles over its successor
// fault Q18: what runs in this process is leased a second time, or its row, where its entry waits again
// fault Q19: workers ask again and again for an entry whose row runs
// fault F13: a handler commits and its process dies; days later the claim is forgotten, and the entry has a second effect
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_passes_the_contract() {
    let Some(server) = PostgresServer::start(&["fsync=off"]) else {
        return;
    };
    let config = server.config();
    run_all(move |test| {
        let mut config = Config::from_str(&config).unwrap();
        async move {
            let create = format!("CREATE DATABASE {test}");
            connect(&config).await.batch_execute(&create).await.unwrap();
            let config = rights::as_on_the_page(config.dbname(test), "public").await;
            let table = Table::new(patient(config), "default");
            Subject::new(Arc::new(table), Time::Real)
        }
    })
    .await;
}

/// Inserts `each` entries of each of `rows` rows: the first of each row, then the second of each.
async fn fill(client: &Client, rows: i32, each: i32) {
    let fill = "INSERT INTO hookgate_inbox (key, row_key, digest, event_id, event_type, signed_at, received_at, scope, key_name,
        body, accepted_at, due_at, forget_at)
      SELECT decode(md5(e || ':' || r), 'hex'), decode(md5(r::text), 'hex'), 0, 'evt_' || e || '_' || r, 'row.created',
        '1700000000', 1700000000, 'default', 'key-1', '{}', now(), now(), now() + interval '2 days'
      FROM generate_series(1, $1::int) AS r, generate_series(1, $2::int) AS e ORDER BY e, r
      ON CONFLICT DO NOTHING";
    client.execute(fill, &[&rows, &each]).await.unwrap();
    client
        .batch_execute("ANALYZE hookgate_inbox")
        .await
        .unwrap();
}

/// Returns a new database in which a row has this number of entries, of which the first one runs.
async fn hot_row(server: &PostgresServer, name: &str, entries: i32) -> (Client, Table, Job) {
    let config = database(&server.config(), name).await;
    let client = connect(&config).await;
    fill(&client, 1, entries).await;
    let table = Table::new(patient(config), "default");
    let mut first = table.lease(request(1, true)).await.unwrap().jobs;
    let job = first.pop().unwrap();
    assert!(first.is_empty() && job.entry.event_id == "evt_1_1");
    (client, table, job)
}

fn request(most: usize, serial_by_row: bool) -> LeaseRequest {
    LeaseRequest {
        most,
        lease: Duration::from_secs(600),
        max_tries: 10,
        run_within: None,
        serial_by_row,
        except: Vec::new(),
    }
}

/// A process has selected an entry and is blocked before it locks the row; in the meantime another
/// process leases an entry of the same row. The first process must then see newer data of the row
/// than it saw when it selected.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_row_is_looked_at_again_once_it_is_locked() {
    // A connection with this schema first in its path finds this function before the server's own.
    // It waits until the test releases it.
    const SLOW: &str = "CREATE SCHEMA slow;
      CREATE FUNCTION slow.pg_try_advisory_xact_lock(integer, integer) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
      BEGIN
        PERFORM pg_advisory_lock_shared(1);
        PERFORM pg_advisory_unlock_shared(1);
        RETURN pg_catalog.pg_try_advisory_xact_lock($1, $2);
      END $$";
    const WAITS: &str = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    let Some(server) = PostgresServer::start(&["fsync=off"]) else {
        return;
    };
    let config = database(&server.config(), "race").await;
    let client = connect(&config).await;
    client.batch_execute(SLOW).await.unwrap();
    let mut behind = config.clone();
    behind.options("-c search_path=slow,pg_catalog,public");
    let slow = Arc::new(Table::new(patient(behind), "default"));
    let quick = Table::new(patient(config), "default");
    // A call has a time limit: on a very busy machine it may end too soon, and is repeated.
    for _ in 0..50 {
        client
            .batch_execute("TRUNCATE hookgate_inbox; SELECT pg_advisory_lock(1)")
            .await
            .unwrap();
        fill(&client, 1, 2).await;
        let late = tokio::spawn({
            let slow = Arc::clone(&slow);
            async move { slow.lease(request(1, true)).await }
        });
        while client.query(WAITS, &[]).await.unwrap().is_empty() && !late.is_finished() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let first = quick.lease(request(1, true)).await;
        client
            .batch_execute("SELECT pg_advisory_unlock(1)")
            .await
            .unwrap();
        if let (Ok(first), Ok(late)) = (first, late.await.unwrap()) {
            let events = |batch: &Batch| {
                let jobs = batch.jobs.iter();
                jobs.map(|job| job.entry.event_id.clone())
                    .collect::<Vec<_>>()
            };
            // The late process had locked the first entry, so the quick one leased the second, and
            // with it the row.
            assert_eq!(events(&first), ["evt_2_1"]);
            assert_eq!(events(&late), [""; 0], "two of a row run");
            assert_ne!(late.next_in, None, "it comes again");
            return;
        }
    }
    panic!("no call was in time");
}

/// Another program has changed the entries.
// fault Q22: one entry that can't be read keeps all others from being listed
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_entry_that_is_none_keeps_no_other_of_its_batch() {
    let Some(server) = PostgresServer::start(&["fsync=off"]) else {
        return;
    };
    let config = database(&server.config(), "broken").await;
    let client = connect(&config).await;
    let table = Table::new(patient(config), "default");
    for serial_by_row in [false, true] {
        client
            .batch_execute("TRUNCATE hookgate_inbox")
            .await
            .unwrap();
        fill(&client, 3, 1).await;
        client
            .batch_execute(
                "UPDATE hookgate_inbox SET key = 'x' WHERE event_id = 'evt_1_1';
                 UPDATE hookgate_inbox SET event_id = '', state = 1, tries = 99 WHERE event_id = 'evt_1_2'",
            )
            .await
            .unwrap();
        let batch = table.lease(request(9, serial_by_row)).await.unwrap();
        let ids: Vec<_> = batch.jobs.iter().map(|job| &*job.entry.event_id).collect();
        assert_eq!(ids, ["evt_1_3"]);
        assert_eq!(table.stats().await.unwrap().dead, 1);
        // An operator finds it in the list.
        let dead = Selection::all().state(EntryState::Dead);
        let dead = table.list(dead, Page::first(9)).await.unwrap();
        assert_eq!(dead[0].event_id.as_str(), "unreadable");
    }
}

/// The only connection is held, so that each call of the pool would wait for it.
// fault Q26: ids are not forgotten while all connections are in use
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_pool_keeps_no_id_from_being_forgotten() {
    const CHUNKS: i32 = 5;
    const INTERVAL: Duration = Duration::from_millis(400);
    let Some(server) = PostgresServer::start(&["fsync=off"]) else {
        return;
    };
    let config = database(&server.config(), "busy").await;
    let client = connect(&config).await;
    fill(&client, CHUNKS * i32::try_from(table::CHUNK).unwrap(), 1).await;
    let done = "UPDATE hookgate_inbox SET state = 2, forget_at = now()";
    client.batch_execute(done).await.unwrap();
    let mut table = Table::new(patient(config).with_connections(1), "default");
    table.clean_interval = INTERVAL;
    let held = table.postgres.client_within(PATIENCE).await.unwrap();
    let began = tokio::time::Instant::now();
    table.clean();
    let mut left = i64::from(CHUNKS) * table::CHUNK;
    while left > table::CHUNK {
        tokio::time::sleep(INTERVAL / 8).await;
        let count = "SELECT count(*) FROM hookgate_inbox";
        left = client.query_one(count, &[]).await.unwrap().get(0);
        let deleted = i64::from(CHUNKS) - left / table::CHUNK;
        let intervals = began.elapsed().as_secs_f64() / INTERVAL.as_secs_f64();
        assert!(
            deleted as f64 <= intervals + 1.0,
            "{deleted} chunks in {intervals} intervals"
        );
        assert!(began.elapsed() < PATIENCE, "{left} are not forgotten");
    }
    drop(held);
}
