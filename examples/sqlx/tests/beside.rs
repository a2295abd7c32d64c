//! hookgate beside sqlx: its claim in sqlx's transactions, and one SQLite for both.

#[allow(dead_code)]
#[path = "../../../tests/servers/support/folder.rs"]
mod folder;
#[allow(dead_code)]
#[path = "../../../tests/servers/support/postgres.rs"]
mod postgres;
#[allow(dead_code)]
#[path = "../../../tests/servers/support/server.rs"]
mod server;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::time::Duration;

use hookgate::{
    Delivery, Receiver, Secret,
    dedupe::{ClaimValues, ClaimedIn, EventKey},
    receiver::RequestHead,
    verify::{Signature, Timestamp},
};
use hookgate_order::Order;
use hookgate_order::RowValues;
use hookgate_sqlx::{claim_in, is_conflict, migrate, order_in};
use postgres::PostgresServer;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection, PgPool, Row};

fn event(id: &str) -> ClaimValues {
    let key = EventKey::new("default", id);
    ClaimValues::new("test", key, b"{}", Duration::from_secs(60))
}

async fn orders(pool: &PgPool) -> i64 {
    let count = sqlx::query("SELECT count(*) FROM orders");
    count.fetch_one(pool).await.unwrap().get(0)
}

#[tokio::test]
async fn the_claim_and_the_order_are_one_transaction() {
    let Some(server) = PostgresServer::start(&["fsync=off"]) else {
        return;
    };
    let url = format!("postgres://hookgate@{}/postgres", server.server.address);
    let pool = PgPoolOptions::new()
        .max_connections(8)
        .connect(&url)
        .await
        .unwrap();
    let (one, two) = tokio::join!(migrate(&pool), migrate(&pool));
    one.and(two).unwrap();
    sqlx::query("CREATE TABLE orders (event_id text NOT NULL)")
        .execute(&pool)
        .await
        .unwrap();
    let order = || sqlx::query("INSERT INTO orders VALUES ('evt_1')");
    let same = ClaimedIn::Duplicate { same_body: true };

    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let begin = || pool.begin_with(format!("BEGIN ISOLATION LEVEL {level}").leak() as &str);
        let before = orders(&pool).await;
        let values = event(level);

        let mut open = begin().await.unwrap();
        assert_eq!(
            claim_in(&mut open, &values).await.unwrap(),
            ClaimedIn::Fresh
        );
        order().execute(&mut *open).await.unwrap();
        let mut other = begin().await.unwrap();
        assert_eq!(
            claim_in(&mut other, &values).await.unwrap(),
            ClaimedIn::Running
        );
        open.rollback().await.unwrap();
        assert_eq!(orders(&pool).await, before);

        // The other transaction's snapshot is from before the next commit.
        let mut next = begin().await.unwrap();
        assert_eq!(
            claim_in(&mut next, &values).await.unwrap(),
            ClaimedIn::Fresh
        );
        order().execute(&mut *next).await.unwrap();
        next.commit().await.unwrap();
        match claim_in(&mut other, &values).await {
            Ok(found) => assert_eq!((found, level), (same, "READ COMMITTED")),
            Err(error) => {
                assert!(is_conflict(&error) && level != "READ COMMITTED", "{error}");
            }
        }
        other.rollback().await.unwrap();
        let mut copy = begin().await.unwrap();
        assert_eq!(claim_in(&mut copy, &values).await.unwrap(), same);
        assert_eq!(orders(&pool).await, before + 1);
    }
}

/// The row's event of this second, signed and recognised.
fn updated(second: u32) -> Delivery {
    let body = format!(
        r#"{{"id":"evt_{second}","type":"row.updated","createdAt":"2026-11-21T09:30:{second:02}Z","workspaceId":"ws_1","data":{{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","changes":{{"Second":{{"after":{second}}}}}}}}}"#
    );
    let secret = Secret::new("whsec_made_up_for_this_test").unwrap();
    let timestamp =
        Timestamp::at(hookgate::clock::Clock::now(&hookgate::clock::SystemClock)).unwrap();
    let signature = Signature::sign(&secret, &timestamp, body.as_bytes()).to_header_value();
    let headers = [
        ("x-service-timestamp", timestamp.as_str()),
        ("x-service-signature", signature.as_str()),
    ];
    let head = RequestHead::new("POST", headers);
    let builder = Receiver::builder().secret(secret);
    let receiver = builder.without_deduplication().build().unwrap();
    let mut received = receiver.check_head(&head).unwrap();
    received.push(body.into()).unwrap();
    receiver.verify(received, &head).unwrap()
}

#[tokio::test]
async fn the_order_and_the_row_are_one_transaction() {
    let Some(server) = PostgresServer::start(&["fsync=off"]) else {
        return;
    };
    let url = format!("postgres://hookgate@{}/postgres", server.server.address);
    let pool = PgPool::connect(&url).await.unwrap();
    migrate(&pool).await.unwrap();
    let order = async |second, commits: bool| {
        let values = RowValues::of("test", &updated(second), Duration::from_secs(60)).unwrap();
        let mut transaction = pool.begin().await.unwrap();
        let ordered = order_in(&mut transaction, &values).await.unwrap();
        if commits {
            transaction.commit().await.unwrap();
        }
        ordered.order
    };
    assert_eq!(order(9, false).await, Order::Newest);
    assert_eq!(order(5, true).await, Order::Newest);
    assert_eq!(order(4, true).await, Order::Stale);
    assert_eq!(order(5, true).await, Order::Newest, "the same event again");
    assert_eq!(order(6, true).await, Order::Newest);
    assert_eq!(order(5, true).await, Order::Stale);
}

/// Both use SQLite's C library; linked into one program there is one copy, and both work.
#[tokio::test]
async fn one_sqlite_serves_both() {
    let mut theirs = sqlx::SqliteConnection::connect("sqlite::memory:")
        .await
        .unwrap();
    let theirs: String = sqlx::query("SELECT sqlite_version()")
        .fetch_one(&mut theirs)
        .await
        .unwrap()
        .get(0);
    // The version that hookgate's inbox would use.
    assert_eq!(theirs, rusqlite::version());
    assert!(
        rusqlite::version_number() >= 3_051_003,
        "{theirs}: has the WAL-reset bug"
    );
}

/// The program itself, over a socket: the first delivery is handled, the second is recognised, also
/// by the next process.
#[test]
fn the_example_handles_an_event_once() {
    let Some(database) = PostgresServer::start(&["fsync=off"]) else {
        return;
    };
    // Made for this process: the example refuses secrets that are published.
    let random = RandomState::new().build_hasher().finish();
    let secret = &format!("whsec_{random:032x}");
    let port = server::free_port();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hookgate-sqlx"));
    command
        .env("ADDR", format!("127.0.0.1:{port}"))
        .env("WEBHOOK_SECRET", secret)
        .env(
            "DATABASE_URL",
            format!("postgres://hookgate@{}/postgres", database.server.address),
        );
    let statuses = [(); 2].map(|()| {
        let example = server::Server::start(&mut command, port);
        [
            deliver(example.address, secret),
            deliver(example.address, secret),
        ]
    });
    assert_eq!(statuses, [[204, 200], [200, 200]]);
}

fn deliver(address: std::net::SocketAddr, secret: &str) -> u16 {
    use std::io::{Read, Write};

    use hookgate::clock::{Clock, SystemClock};

    let body = r#"{"id":"evt_1","type":"page.created"}"#;
    let timestamp = Timestamp::at(SystemClock.now()).unwrap();
    let secret = Secret::new(secret).unwrap();
    let signature = Signature::sign(&secret, &timestamp, body.as_bytes()).to_header_value();
    let request = format!(
        "POST /webhooks HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\nx-service-timestamp: {}\r\nx-service-signature: {signature}\r\n\r\n{body}",
        body.len(),
        timestamp.as_str()
    );
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer[9..12].parse().unwrap()
}
