//! The order of a row's events: the store, and transactions of one row.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hookgate::dedupe::{ClaimValues, ClaimedIn, StoreError, StoreErrorKind};
use hookgate_order::{Order, OrderGuard, OrderStore, OrderedIn, contract};
use hookgate_postgres::{Postgres, PostgresStore, forget, order_in, store_error};
use tokio_postgres::{Client, NoTls, Transaction};

use super::rights::as_on_the_page;
use super::{LEVELS, begin, claimed_in, key, patient, store};
use crate::support::{
    Child, ExpectedOrder, PostgresServer, client_at, given, in_its_lives, migrated, needed,
    page_created, record, told, undated, unflushed, until, updated, value,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The program's own tables: the row as the newest event left it, and each event that was handled.
const ORDERS: &str = "CREATE TABLE orders (id text PRIMARY KEY, second int NOT NULL);
CREATE TABLE handled (number bigserial, id text, second int, placed text)";

async fn order(transaction: &Transaction<'_>, row: &str, second: u32) -> Order {
    let ordered = order_in(transaction, "test", &updated(row, second), DAY).await;
    ordered.unwrap().order
}

/// Handles an event: writes the row, unless a newer event has written it.
async fn handle(transaction: &Transaction<'_>, row: &str, second: u32) -> Result<(), StoreError> {
    let event = in_its_lives(row, second);
    let OrderedIn { order, .. } = order_in(transaction, "test", &event, DAY).await?;
    let number = second as i32;
    if order != Order::Stale {
        let write = "INSERT INTO orders VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET second = $2";
        let written = transaction.execute(write, &[&row, &number]).await;
        written.map_err(store_error)?;
    }
    let log = "INSERT INTO handled (id, second, placed) VALUES ($1, $2, $3)";
    transaction
        .execute(log, &[&row, &number, &order.name()])
        .await
        .map(drop)
        .map_err(store_error)
}

async fn count(client: &Client, table: &str) -> i64 {
    value(client, &format!("SELECT count(*) FROM {table}")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_keeps_the_contract_of_order() {
    let server = needed!(PostgresServer::start(&["fsync=off"]));
    let app = as_on_the_page(&server.config().parse().unwrap(), "public").await;
    let postgres = Postgres::new(app.clone(), NoTls).with_timeout(Duration::from_secs(30));
    let store = PostgresStore::new(&postgres, "test");
    let checked = contract::check(Arc::new(store), tokio::time::sleep).await;
    checked.unwrap();
    // The calls in a transaction need no other rights.
    let (mut client, connection) = app.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    let values = ClaimValues::new("test", key("1"), b"{}", DAY);
    assert_eq!(claimed_in(&mut client, &values).await, ClaimedIn::Fresh);
    let transaction = client.transaction().await.unwrap();
    assert_eq!(order(&transaction, "row_1", 1).await, Order::Newest);
    transaction.commit().await.unwrap();
    forget(&client, 10).await.unwrap();
    // Another program has rows of its own.
    let other = PostgresStore::new(&postgres, "other");
    assert!(other.last(&[1; 16]).await.unwrap().is_none());
}

/// Of one name.
#[tokio::test(flavor = "multi_thread")]
async fn guards_of_several_processes_and_transactions_share_the_order() {
    let server = needed!(migrated(&["fsync=off"]).await);
    let guard = || OrderGuard::new(store(&server.config()));
    let (first, second) = (guard(), guard());
    assert_eq!(told(&first, "row_1", 5).await, Order::Newest);
    assert_eq!(told(&second, "row_1", 4).await, Order::Stale);
    let mut client = client_at(&server.config()).await;
    let transaction = begin(&mut client, LEVELS[0]).await;
    assert_eq!(order(&transaction, "row_1", 4).await, Order::Stale);
    assert_eq!(order(&transaction, "row_1", 7).await, Order::Newest);
    transaction.commit().await.unwrap();
    assert_eq!(told(&second, "row_1", 6).await, Order::Stale);
    assert_eq!(told(&first, "row_1", 8).await, Order::Newest);
}

#[tokio::test]
async fn an_order_goes_with_its_transaction() {
    let (_server, mut client) = needed!(unflushed().await);
    for (number, level) in LEVELS.into_iter().enumerate() {
        let row = &format!("row_{number}");
        let mut transaction = begin(&mut client, level).await;
        let inner = transaction.transaction().await.unwrap();
        assert_eq!(order(&inner, row, 9).await, Order::Newest);
        inner.rollback().await.unwrap();
        assert_eq!(order(&transaction, row, 5).await, Order::Newest);
        assert_eq!(order(&transaction, row, 4).await, Order::Stale);
        transaction.rollback().await.unwrap();
        assert_eq!(count(&client, "hookgate_order").await, number as i64);

        // Of an event without a date nothing is remembered.
        let transaction = begin(&mut client, level).await;
        let of_no_date = order_in(&transaction, "test", &undated(row), DAY).await;
        assert_eq!(of_no_date.unwrap().order, Order::Unknown);
        transaction.commit().await.unwrap();
        let transaction = begin(&mut client, level).await;
        assert_eq!(order(&transaction, row, 3).await, Order::Newest);
        transaction.commit().await.unwrap();
        for (second, expected) in [
            (2, Order::Stale),
            (3, Order::Newest), // the same event again
            (4, Order::Newest),
            (3, Order::Stale),
        ] {
            let transaction = begin(&mut client, level).await;
            assert_eq!(order(&transaction, row, second).await, expected);
            transaction.commit().await.unwrap();
        }
    }
    // Of another program it is another row, and an event that is not about a row has no order.
    let transaction = begin(&mut client, LEVELS[0]).await;
    let elsewhere = order_in(&transaction, "other", &updated("row_0", 1), DAY).await;
    assert_eq!(elsewhere.unwrap().order, Order::Newest);
    let of_no_row = order_in(&transaction, "test", &page_created(), DAY)
        .await
        .unwrap();
    assert_eq!((of_no_row.order, of_no_row.gap), (Order::Unknown, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_of_one_row_go_one_after_the_other() {
    let server = needed!(migrated(&["fsync=off"]).await);
    let mut first = client_at(&server.config()).await;
    for (number, level) in LEVELS.into_iter().enumerate() {
        // A row without a record, and one with a record.
        for second in [10, 20] {
            let row = &format!("row_{number}");
            let open = begin(&mut first, level).await;
            assert_eq!(order(&open, row, second).await, Order::Newest);
            let mut other = client_at(&server.config()).await;
            let unharmed = begin(&mut other, level).await;
            assert_eq!(order(&unharmed, "another", second).await, Order::Newest);
            unharmed.rollback().await.unwrap();
            other.batch_execute("SET lock_timeout = 50").await.unwrap();
            let transaction = begin(&mut other, level).await;
            let waited = order_in(&transaction, "test", &updated(row, second - 1), DAY).await;
            assert_eq!(waited.unwrap_err().kind(), StoreErrorKind::TimedOut);
            transaction.rollback().await.unwrap();

            other.batch_execute("SET lock_timeout = 0").await.unwrap();
            let waiting = tokio::spawn({
                let event = updated(row, second - 1);
                async move {
                    let transaction = begin(&mut other, level).await;
                    let ordered = order_in(&transaction, "test", &event, DAY).await;
                    ordered.map(|ordered| ordered.order)
                }
            });
            let observer = client_at(&server.config()).await;
            until("it waits", async || {
                assert!(!waiting.is_finished(), "it does not wait");
                value(
                    &observer,
                    "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted",
                )
                .await
            })
            .await;
            open.commit().await.unwrap();
            match waiting.await.unwrap() {
                Ok(order) => assert_eq!((order, number), (Order::Stale, 0)),
                Err(error) => {
                    assert_eq!(error.kind(), StoreErrorKind::Conflict);
                    assert_ne!(number, 0, "at READ COMMITTED");
                }
            }
        }
    }
}

/// Each event that was handled has its order among those before it, and the newest has written the
/// row.
async fn agrees(client: &Client, row: &str) -> ExpectedOrder {
    // The numbers were drawn under the row's lock, so their order is that of the commits.
    let handled = "SELECT second, placed FROM handled WHERE id = $1 ORDER BY number";
    let mut expected = ExpectedOrder::default();
    for event in client.query(handled, &[&row]).await.unwrap() {
        let (second, placed): (i32, String) = (event.get(0), event.get(1));
        let order = expected.next(second as u32);
        assert_eq!(placed, order.name(), "{second} of {row}");
    }
    let left = "SELECT second FROM orders WHERE id = $1";
    let left: i32 = client.query_one(left, &[&row]).await.unwrap().get(0);
    assert_eq!(Some(left as u32), expected.newest(), "{row}");
    expected
}

/// In any order, with transactions that are rolled back in between, at each level.
#[tokio::test(flavor = "multi_thread")]
async fn racing_transactions_leave_the_newest_and_mark_each_older_one() {
    const EVENTS: u32 = 64;
    const RACERS: usize = 8;
    let server = needed!(migrated(&["fsync=off"]).await);
    let observer = client_at(&server.config()).await;
    observer.batch_execute(ORDERS).await.unwrap();
    for level in LEVELS {
        let row = format!("{level:?}");
        let mut seconds: Vec<_> = (0..EVENTS).collect();
        fastrand::shuffle(&mut seconds);
        let left = Arc::new((seconds, AtomicU32::new(0)));
        let mut racers = Vec::new();
        for _ in 0..RACERS {
            let (left, row) = (Arc::clone(&left), row.clone());
            let mut client = client_at(&server.config()).await;
            racers.push(tokio::spawn(async move {
                let next = || left.1.fetch_add(1, Ordering::Relaxed) as usize;
                while let Some(&second) = left.0.get(next()) {
                    loop {
                        let transaction = begin(&mut client, level).await;
                        let ended = match handle(&transaction, &row, second).await {
                            Ok(_) if fastrand::u8(..4) == 0 => {
                                transaction.rollback().await.unwrap();
                                continue;
                            }
                            Ok(_) => transaction.commit().await.map_err(store_error),
                            Err(error) => Err(error),
                        };
                        match ended {
                            Ok(()) => break,
                            Err(error) => assert_eq!(error.kind(), StoreErrorKind::Conflict),
                        }
                    }
                }
            }));
        }
        for racer in racers {
            racer.await.unwrap();
        }
        let expected = agrees(&observer, &row).await;
        assert_eq!(expected.newest(), Some(EVENTS - 1));
    }
    let (handled, rows) = (i64::from(EVENTS) * 3, LEVELS.len() as i64);
    assert_eq!(count(&observer, "handled").await, handled);
    assert_eq!(count(&observer, "hookgate_order").await, rows);
}

/// Two writers, killed at any moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_leaves_the_row_and_its_record_in_agreement() {
    const KILLS: u32 = 12;
    if let Some(config) = given() {
        return write_for_ever(&config).await;
    }
    let server = needed!(migrated(&[]).await);
    let mut client = client_at(&server.config()).await;
    client.batch_execute(ORDERS).await.unwrap();
    let test = "order::a_killed_process_leaves_the_row_and_its_record_in_agreement";
    for round in 0..KILLS {
        let before = count(&client, "handled").await;
        let mut children = [(); 2].map(|()| Child::start(test, &server.config()));
        while count(&client, "handled").await < before + 20 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(fastrand::u64(..30))).await;
        for child in &mut children {
            child.kill();
        }
        // Waits for a transaction whose end the server has not noticed yet.
        let transaction = begin(&mut client, LEVELS[0]).await;
        assert_eq!(order(&transaction, "row_1", 0).await, Order::Stale);
        let mut expected = agrees(transaction.client(), "row_1").await;
        let newest = expected.newest().unwrap();
        // The record is that of the event that has written the row: it is the same event again.
        let same = in_its_lives("row_1", newest);
        let same = order_in(&transaction, "test", &same, DAY).await.unwrap();
        let again = (expected.next(newest), None);
        assert_eq!((same.order, same.record()), again, "round {round}");
        assert_eq!(order(&transaction, "row_1", newest - 1).await, Order::Stale);
        transaction.rollback().await.unwrap();
    }
}

/// Events that rise, with older ones in between.
async fn write_for_ever(config: &str) {
    let mut client = client_at(config).await;
    let newest = "SELECT coalesce(max(second), 0) FROM handled";
    let newest: i32 = value(&client, newest).await;
    let mut second = newest as u32;
    loop {
        second += fastrand::u32(1..4);
        let event = fastrand::choice([second, fastrand::u32(1..=second)]).unwrap();
        let transaction = begin(&mut client, LEVELS[0]).await;
        handle(&transaction, "row_1", event).await.unwrap();
        transaction.commit().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_of_rows_that_have_ended_are_deleted() {
    let (server, mut client) = needed!(unflushed().await);
    let fill = async |client: &mut Client| {
        let transaction = begin(client, LEVELS[0]).await;
        let ends = Duration::from_millis(1);
        for (row, retain) in [("kept", DAY), ("a", Duration::ZERO), ("b", ends)] {
            let ordered = order_in(&transaction, "test", &updated(row, 1), retain).await;
            let _ = ordered.unwrap();
        }
        transaction.commit().await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    fill(&mut client).await;
    assert_eq!(forget(&client, 1).await.unwrap(), 1);
    assert_eq!(forget(&client, 100).await.unwrap(), 1);
    assert_eq!(count(&client, "hookgate_order").await, 1);

    // The store's own task, and a record that has ended and is still there.
    fill(&mut client).await;
    let transaction = begin(&mut client, LEVELS[0]).await;
    let of_ended = order(&transaction, "a", 0).await;
    assert_eq!(of_ended, Order::Newest, "it has ended");
    transaction.rollback().await.unwrap();
    until("they are deleted", async || {
        // The first call of a store begins the task, which ends early where another call needs the
        // connection.
        let store = store(&server.config());
        assert!(store.last(&[7; 16]).await.unwrap().is_none());
        tokio::time::sleep(Duration::from_millis(200)).await;
        count(&client, "hookgate_order").await == 1
    })
    .await;
}

#[tokio::test]
async fn without_its_table_or_with_another_programs_bytes_an_order_is_an_error() {
    let (server, mut client) = needed!(unflushed().await);
    let store = PostgresStore::new(&patient(&server.config()), "default");
    assert!(store.swap(&[7; 16], 0, record(1), DAY).await.unwrap());
    let damage = "UPDATE hookgate_order SET last = 'x'";
    client.batch_execute(damage).await.unwrap();
    let error = store.last(&[7; 16]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    let dropped = "DROP TABLE hookgate_order";
    client.batch_execute(dropped).await.unwrap();
    let error = store.swap(&[7; 16], 0, record(1), DAY).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Missing);
    let transaction = begin(&mut client, LEVELS[0]).await;
    let error = order_in(&transaction, "test", &updated("row_1", 1), DAY).await;
    assert_eq!(error.unwrap_err().kind(), StoreErrorKind::Missing);
}
