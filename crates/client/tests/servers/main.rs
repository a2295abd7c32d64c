//! The mirrors and ledgers that a restart does not forget: in a file of SQLite, and in a PostgreSQL
//! that the test starts on a free loopback port.
//!
//! Where PostgreSQL is missing, its tests print that and are left out; `scripts/test` installs it,
//! and sets `HOOKGATE_REQUIRE_TOOLS`, with which no test is left out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // a failed expectation must stop the test
#![allow(unreachable_pub, missing_debug_implementations)] // a test has no API
#![cfg(unix)]

// Shared with the tests of the library.
#[path = "../../../../tests/servers/support/folder.rs"]
mod folder;
#[path = "../it/ledger/contract.rs"]
mod ledger_contract;
#[allow(dead_code)]
#[path = "../../../../tests/servers/support/postgres.rs"]
mod postgres;
#[allow(dead_code)]
#[path = "../../../../tests/servers/support/server.rs"]
mod server;
#[allow(dead_code)]
#[path = "../it/ledger/service.rs"]
mod service;
#[allow(dead_code)]
#[path = "../it/support.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use folder::Folder;
use hookgate::{
    Properties,
    dedupe::StoreErrorKind,
    event::{DataModelId, RowId},
};
use hookgate_client::reconcile::{
    Life, Mirror, PostgresMirror, RowHash, RowState, SqliteMirror, contract,
};
use hookgate_client::{ErrorKind, Ledger, Options, Rows};
use postgres::PostgresServer;

fn url(server: &PostgresServer) -> String {
    format!("postgres://hookgate@{}/postgres", server.server.address)
}

/// A client of the server itself.
async fn connected(server: &PostgresServer) -> tokio_postgres::Client {
    let connected = tokio_postgres::connect(&url(server), tokio_postgres::NoTls).await;
    let (client, connection) = connected.unwrap();
    tokio::spawn(connection);
    client
}

/// Another program holds the ledger's table.
const HELD: &str = "BEGIN; LOCK TABLE hookgate_ledger";

/// A writer of `sync`, whose service is not asked.
fn unasked(ledger: &Ledger, options: Options) -> Rows<Properties> {
    let client = service::client(|_| async { panic!("a request") });
    client
        .with(options)
        .writer("sync", ledger)
        .rows("dm_orders")
}

async fn keeps_the_contract(mirror: &impl Mirror) {
    contract::check(mirror).await.unwrap();
}

fn state(updated_at: i64) -> RowState {
    RowState {
        life: Life::Live,
        updated_at: Some(updated_at),
        read_at: None,
        hash: RowHash::default(),
        values: None,
    }
}

/// Of ten replicas that write on the same revision, one writes.
async fn one_of_ten_writes(mirror: Arc<dyn Mirror>) {
    let model = DataModelId::from("dm_race");
    let row = RowId::from("row_1");
    for revision in 0..20 {
        let writers = (0..10).map(|writer| {
            let (mirror, model, row) = (Arc::clone(&mirror), model.clone(), row.clone());
            tokio::spawn(async move {
                mirror
                    .swap(&model, &row, revision, state(writer))
                    .await
                    .unwrap()
            })
        });
        let mut written = 0;
        for writer in writers.collect::<Vec<_>>() {
            written += u32::from(writer.await.unwrap());
        }
        assert_eq!(written, 1, "revision {revision}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mirror_on_sqlite_keeps_the_contract_and_survives_a_restart() {
    let folder = Folder::new();
    let path = folder.path().join("mirror.db");
    keeps_the_contract(&SqliteMirror::open(&path).unwrap()).await;
    let mirror = SqliteMirror::open(&path).unwrap();
    let listed = mirror.list(&"dm_contract_2".into(), None, 100).await;
    assert_eq!(listed.unwrap().len(), 8);
    let other = folder.path().join("values.db");
    let with_values = SqliteMirror::open(&other).unwrap().with_values();
    keeps_the_contract(&with_values).await;
    one_of_ten_writes(Arc::new(SqliteMirror::open(&other).unwrap())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mirror_and_ledger_on_sqlite_share_the_file_of_a_store_of_claims() {
    let folder = Folder::new();
    let path = folder.path().join("both.db");
    drop(hookgate_sqlite::SqliteStore::open(&path).unwrap());
    keeps_the_contract(&SqliteMirror::open(&path).unwrap()).await;
    drop(Ledger::open_sqlite(&path).unwrap());
    hookgate_sqlite::SqliteStore::open(&path).unwrap();
}

#[test]
fn a_file_that_is_not_a_database_is_refused() {
    let folder = Folder::new();
    let path = folder.path().join("notes.txt");
    let text = "no database, but a text that is long enough to be read as one";
    std::fs::write(&path, text).unwrap();
    let error = SqliteMirror::open(&path).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::NotAStore);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mirror_on_postgresql_keeps_the_contract() {
    let Some(server) = PostgresServer::start(&[]) else {
        return;
    };
    let mirror = PostgresMirror::open(&url(&server)).unwrap();
    let missing = mirror.list(&"dm_1".into(), None, 1).await.unwrap_err();
    assert_eq!(missing.kind(), StoreErrorKind::Missing);
    // Replicas start at the same time, and each makes the table.
    let made = (0..4).map(|_| {
        let mirror = mirror.clone();
        tokio::spawn(async move { mirror.migrate().await })
    });
    for made in made.collect::<Vec<_>>() {
        made.await.unwrap().unwrap();
    }
    keeps_the_contract(&mirror).await;
    one_of_ten_writes(Arc::new(mirror.clone())).await;
    drop(mirror);
    let other = PostgresServer::start(&[]).unwrap();
    let mirror = PostgresMirror::open(&url(&other)).unwrap().with_values();
    mirror.migrate().await.unwrap();
    keeps_the_contract(&mirror).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_on_sqlite_passes_the_suite_and_keeps_nothing_in_clear() {
    let folder = Folder::new();
    let path = folder.path().join("ledger.db");
    ledger_contract::check(|| Ledger::open_sqlite(&path).unwrap()).await;
    let ledger = Ledger::open_sqlite(&path).unwrap();
    write_secretly(&ledger).await;
    drop(ledger);
    let file = rusqlite::Connection::open(&path).unwrap();
    let count = "SELECT count(*) FROM hookgate_ledger";
    let count: i64 = file.query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(count, 3, "the suite's entries are over, and deleted");
    let mut kept = Vec::new();
    for end in ["", "-wal"] {
        let path = format!("{}{end}", path.display());
        kept.extend(std::fs::read(path).unwrap_or_default());
    }
    let has = |text: &str| kept.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("sync") && !has("top secret") && !has("row_secret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_on_postgresql_passes_the_suite_and_keeps_nothing_in_clear() {
    let Some(server) = PostgresServer::start(&[]) else {
        return;
    };
    let open = || Ledger::open_postgres(&url(&server)).unwrap();
    let ledger = open();
    let missing = ledger.echo(&service::deleted("evt_1", "row_1")).await;
    assert_eq!(missing.unwrap_err().kind(), StoreErrorKind::Missing);
    let made = (0..4).map(|_| {
        let ledger = ledger.clone();
        tokio::spawn(async move { ledger.migrate().await })
    });
    for made in made.collect::<Vec<_>>() {
        made.await.unwrap().unwrap();
    }
    ledger_contract::check(open).await;
    write_secretly(&ledger).await;
    let client = connected(&server).await;
    // A `bytea` in the form `escape` shows the texts in it.
    let all =
        "SELECT string_agg(encode(written, 'escape') || encode(coalesce(answered, ''), 'escape')
        || encode(place, 'escape') || writer, ' ') FROM hookgate_ledger";
    let kept: String = client.query_one(all, &[]).await.unwrap().get(0);
    let count = "SELECT count(*) FROM hookgate_ledger";
    let count: i64 = client.query_one(count, &[]).await.unwrap().get(0);
    assert_eq!(count, 3, "the suite's entries are over, and deleted");
    assert!(kept.contains("sync") && !kept.contains("secret"));
    client.batch_execute(HELD).await.unwrap();
    let quick = Options::default().total_timeout(Duration::from_millis(300));
    let error = unasked(&ledger, quick).delete("row_1").await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Timeout, 0));
    assert!(!error.is_outcome_unknown());
    client.batch_execute("ROLLBACK").await.unwrap();
}

/// The server of a hung call neither answers nor ends. Its time passes at once.
// fault L3: the ledger's PostgreSQL does not answer, and `echo` waits for ever
#[tokio::test]
async fn a_ledger_whose_postgresql_does_not_answer_fails_in_time() {
    let Some(server) = PostgresServer::start(&[]) else {
        return;
    };
    let ledger = Ledger::open_postgres(&url(&server)).unwrap();
    ledger.migrate().await.unwrap();
    let event = service::deleted("evt_1", "row_1");
    assert_eq!(ledger.echo(&event).await.unwrap(), None);
    let client = connected(&server).await;
    client.batch_execute(HELD).await.unwrap();
    tokio::time::pause();
    let hung = tokio::time::timeout(Duration::from_secs(60), ledger.echo(&event)).await;
    tokio::time::resume();
    let error = hung.expect("the call has a limit").unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::TimedOut);
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(ledger.echo(&event).await.unwrap(), None);
}

// fault L4: a write is not sent because old entries can't be forgotten, but its entry stays and fits a foreign event
#[tokio::test]
async fn a_write_that_was_not_sent_leaves_no_entry() {
    let Some(server) = PostgresServer::start(&[]) else {
        return;
    };
    let ledger = Ledger::open_postgres(&url(&server)).unwrap();
    let ledger = ledger.with_clock(service::clock());
    ledger.migrate().await.unwrap();
    let client = connected(&server).await;
    let refuse = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no deletion'; END $$;
        CREATE TRIGGER refuse BEFORE DELETE ON hookgate_ledger EXECUTE FUNCTION refuse()";
    client.batch_execute(refuse).await.unwrap();
    let orders = unasked(&ledger, Options::default().retries(0));
    let error = orders.delete("row_1").await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Ledger, 0));
    let event = service::deleted("evt_1", "row_1");
    assert_eq!(ledger.echo(&event).await.unwrap(), None);
}

/// Three writes of today, with values and ids that must not be found.
async fn write_secretly(ledger: &Ledger) {
    let orders = service::orders(ledger, service::usual);
    let values = serde_json::json!({ "Customer": "top secret" });
    orders.create(&values).await.unwrap();
    orders.update("row_secret", &values).await.unwrap();
    orders.delete("row_secret").await.unwrap();
}
