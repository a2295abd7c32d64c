//! Behind a PgBouncer in transaction mode: each transaction has another session, and other clients
//! have the rest.

use std::time::Duration;

use deadpool_postgres::{Manager, Pool};
use hookgate::{
    DedupeStore,
    dedupe::{ClaimValues, ClaimedIn},
    sink::{Accepted, Sink},
};
use hookgate_inbox::{Inbox, Workers};
use hookgate_postgres::{Postgres, PostgresStore, forget, migrate};
use hookgate_testing::delivery;
use tokio_postgres::{Config, NoTls};

use super::sessions::claim_and_commit;
use super::{claimed_in, key, patient, token};
use crate::support::{Pooler, PostgresServer, client_at, done_by, needed};

const LONG: Duration = Duration::from_secs(600);
const SESSIONS: usize = 3;
/// Notes the settings under which a row was inserted.
const NOTED: &str = "CREATE TABLE noted (level text, statement text, lock text, idle text);
  CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO noted VALUES (current_setting('transaction_isolation'), current_setting('statement_timeout'),
      current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout'));
    RETURN NEW; END $$;
  CREATE TRIGGER note BEFORE INSERT ON hookgate_claims FOR EACH ROW EXECUTE FUNCTION note();
  CREATE TRIGGER note BEFORE INSERT ON hookgate_inbox FOR EACH ROW EXECUTE FUNCTION note()";

/// Claims and commits so many events, each twice at once.
async fn work(store: &PostgresStore, name: &str, events: usize) {
    let copies = (0..events * 2).map(|number| {
        let (store, key) = (store.clone(), key(&format!("{name} {}", number / 2)));
        tokio::spawn(async move {
            let committed = claim_and_commit(&store, &key).await;
            if let Some(by) = committed {
                let found = store.claim(&key, token(), LONG).await;
                assert_eq!(found.unwrap(), done_by(by));
            }
            committed.is_some()
        })
    });
    let copies: Vec<_> = copies.collect();
    let mut fresh = 0;
    for copy in copies {
        fresh += usize::from(copy.await.unwrap());
    }
    assert_eq!(fresh, events, "{name}");
}

/// Handles so many events of three rows, one at a time of each row.
async fn handle(inbox: &Inbox, events: usize) {
    let (handled, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let workers = Workers::new(inbox)
        .serial_by_row()
        .poll_interval(Duration::from_millis(100));
    let workers = workers.start_handler(move |event: hookgate::Delivery| {
        handled.send(event.event_id().to_owned()).unwrap();
        async { axum::http::StatusCode::NO_CONTENT }
    });
    let workers = workers.unwrap();
    for number in 0..events {
        let body = format!(
            r#"{{"id":"evt_{number}","type":"row.deleted","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_{}"}}}}"#,
            number % 3
        );
        let accepted = inbox.accept(&delivery(body).unwrap(), LONG).await;
        assert_eq!(accepted.unwrap(), Accepted::New);
    }
    for _ in 0..events {
        let next = tokio::time::timeout(Duration::from_secs(60), seen.recv()).await;
        next.unwrap().unwrap();
    }
    workers.shutdown(Duration::from_secs(30)).await;
    assert_eq!(inbox.stats().await.unwrap().done, events as u64);
}

/// What another client finds in each session: its time-outs, prepared statements and channels.
async fn left_behind(config: &str) -> Vec<(String, i64)> {
    let mut clients = Vec::new();
    for _ in 0..SESSIONS {
        let client = client_at(config).await;
        client.batch_execute("BEGIN").await.unwrap();
        clients.push(client);
    }
    let asked = "SELECT concat_ws(' ', current_setting('statement_timeout'), current_setting('lock_timeout'),
        current_setting('idle_in_transaction_session_timeout'), current_setting('default_transaction_isolation')),
      (SELECT count(*) FROM pg_prepared_statements) + (SELECT count(*) FROM pg_listening_channels())";
    let mut found = Vec::new();
    for client in &clients {
        let row = client.query_typed_one(asked, &[]).await.unwrap();
        found.push((row.get(0), row.get(1)));
    }
    found
}

// fault P2: through a pooler of transactions, the time-outs of our connections become those of other clients
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_in_sessions_that_others_use() {
    let server = needed!(PostgresServer::start(&["fsync=off"]));
    let pooler = needed!(Pooler::before(&server, SESSIONS));
    let config = PostgresServer::config_at(pooler.server.address);
    let untouched = vec![("0 0 0 read committed".to_owned(), 0); SESSIONS];
    migrate(&client_at(&config).await).await.unwrap();
    // Without this, some statement soon meets a session that does not know it.
    let unaware = patient(&config);
    let mut refused = None;
    for number in 0..1_000 {
        let store = PostgresStore::new(&unaware, "unaware");
        let claims = (0..4).map(|copy| {
            let (store, key) = (store.clone(), key(&format!("{number} {copy}")));
            tokio::spawn(async move { store.claim(&key, token(), LONG).await })
        });
        for claim in claims.collect::<Vec<_>>() {
            let error = claim.await.unwrap().err().map(|error| error.to_string());
            refused = refused.or(error.filter(|error| error.contains("behind_pooler")));
        }
        if refused.is_some() {
            break;
        }
    }
    assert!(refused.is_some());
    drop((unaware, pooler));

    let pooler = Pooler::before(&server, SESSIONS).unwrap();
    let config = PostgresServer::config_at(pooler.server.address);
    let noting = client_at(&server.config()).await;
    noting.batch_execute(NOTED).await.unwrap();
    let mut client = client_at(&config).await;
    let postgres = patient(&config).behind_pooler();
    work(&PostgresStore::new(&postgres, "test"), "ours", 40).await;
    let inbox = postgres.inbox("test").unwrap();
    handle(&inbox, 30).await;
    assert_eq!(left_behind(&config).await, untouched);
    let noted = "SELECT DISTINCT concat_ws(' ', level, statement, lock, idle) FROM noted";
    let rows = client.query_typed(noted, &[]).await.unwrap();
    let noted: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(noted, ["read committed 5s 800ms 10s"]);

    // On a pool of the user, whose settings are the user's own.
    let manager = Manager::new(config.parse::<Config>().unwrap(), NoTls);
    let pool = Pool::builder(manager).max_size(8).build().unwrap();
    let theirs = Postgres::with_pool(pool).with_timeout(LONG).behind_pooler();
    work(&PostgresStore::new(&theirs, "test"), "theirs", 40).await;
    let values = ClaimValues::new("test", key("1"), b"{}", LONG);
    assert_eq!(claimed_in(&mut client, &values).await, ClaimedIn::Fresh);
    forget(&client, 10).await.unwrap();
    assert_eq!(left_behind(&config).await, untouched);
}
