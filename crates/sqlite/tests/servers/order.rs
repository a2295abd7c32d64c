//! The order of a row's events: the store in a file, and transactions of one row.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hookgate::{
    clock::{ManualClock, UnixSeconds},
    dedupe::{StoreError, StoreErrorKind},
};
use hookgate_order::{Order, OrderGuard, OrderStore, OrderedIn, contract};
use hookgate_sqlite::{SqliteStore, migrate, order_in, store_error};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::RETAIN;
use super::full::{fill, in_a_small_file_system};
use crate::support::{
    Child, ExpectedOrder, Folder, given, in_its_lives, page_created, record, says, told, undated,
    until, updated,
};

const ROW: &[u8; 16] = &[7; 16];

fn open(file: &std::path::Path) -> Connection {
    let connection = Connection::open(file).unwrap();
    connection.busy_timeout(Duration::from_secs(60)).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL;
            CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, second INTEGER);
            CREATE TABLE IF NOT EXISTS handled (number INTEGER PRIMARY KEY, second INTEGER, placed TEXT);",
        )
        .unwrap();
    migrate(&connection).unwrap();
    connection
}

fn begin(connection: &mut Connection) -> Transaction<'_> {
    let immediate = TransactionBehavior::Immediate;
    connection.transaction_with_behavior(immediate).unwrap()
}

fn order(transaction: &Transaction<'_>, row: &str, second: u32) -> Order {
    let ordered = order_in(transaction, "test", &updated(row, second), RETAIN);
    ordered.unwrap().order
}

/// Handles an event: writes the row, unless a newer event has written it.
fn handle(transaction: &Transaction<'_>, row: &str, second: u32) -> Result<(), StoreError> {
    let event = in_its_lives(row, second);
    let OrderedIn { order, .. } = order_in(transaction, "test", &event, RETAIN)?;
    if order != Order::Stale {
        let write = "INSERT INTO orders VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET second = ?2";
        transaction
            .execute(write, (row, second))
            .map_err(store_error)?;
    }
    let log = "INSERT INTO handled (second, placed) VALUES (?1, ?2)";
    let logged = transaction.execute(log, (second, order.name()));
    logged.map(drop).map_err(store_error)
}

fn number(connection: &Connection, query: &str) -> u32 {
    connection.query_row(query, [], |row| row.get(0)).unwrap()
}

fn records(connection: &Connection) -> u32 {
    number(connection, "SELECT count(*) FROM hookgate_order")
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_the_contract_of_order() {
    let folder = Folder::new();
    let clock = ManualClock::at(UnixSeconds::new(1_763_690_000));
    let store = SqliteStore::open_with_clock(folder.path().join("order.db"), clock.clone());
    let checked = contract::check(Arc::new(store.unwrap()), async |time| clock.advance(time));
    checked.await.unwrap();
}

#[tokio::test]
async fn a_guard_on_a_file_knows_the_order_after_a_restart() {
    let folder = Folder::new();
    let file = folder.path().join("order.db");
    let guard = || OrderGuard::new(SqliteStore::open(&file).unwrap());
    let (before, other) = (guard(), guard());
    assert_eq!(told(&before, "row_1", 5).await, Order::Newest);
    assert_eq!(told(&other, "row_1", 4).await, Order::Stale);
    drop((before, other));
    let after = guard();
    assert_eq!(told(&after, "row_1", 4).await, Order::Stale);
    assert_eq!(told(&after, "row_1", 6).await, Order::Newest);
}

#[tokio::test]
async fn a_restart_remembers_rows_and_another_programs_bytes_are_an_error() {
    let folder = Folder::new();
    let file = folder.path().join("order.db");
    let store = SqliteStore::open(&file).unwrap();
    assert!(store.swap(ROW, 0, record(1), RETAIN).await.unwrap());
    drop(store);
    let store = SqliteStore::open(&file).unwrap();
    let (revision, last) = store.last(ROW).await.unwrap().unwrap();
    assert_eq!(last, record(1));
    assert!(store.swap(ROW, revision, record(2), RETAIN).await.unwrap());

    let connection = Connection::open(&file).unwrap();
    connection.busy_timeout(Duration::from_secs(60)).unwrap();
    let damage = "UPDATE hookgate_order SET last = x'00'";
    connection.execute_batch(damage).unwrap();
    let error = store.last(ROW).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
}

#[tokio::test]
async fn records_that_have_ended_are_deleted_from_the_file() {
    let folder = Folder::new();
    let file = folder.path().join("order.db");
    let clock = ManualClock::at(UnixSeconds::new(1_763_690_000));
    let store = SqliteStore::open_with_clock(&file, clock.clone()).unwrap();
    for row in 0..20 {
        let retain = Duration::from_secs(if row == 0 { 9 } else { 3 });
        let swapped = store.swap(&[row; 16], 0, record(row), retain).await;
        assert!(swapped.unwrap());
    }
    let connection = Connection::open(&file).unwrap();
    connection.busy_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(records(&connection), 20);
    clock.advance(Duration::from_secs(4));
    // Also while no call comes.
    until("they are deleted", async || records(&connection) <= 1).await;
    assert!(store.last(&[0; 16]).await.unwrap().is_some());
}

#[test]
fn on_a_full_disk_no_row_is_begun_and_those_begun_are_written() {
    in_a_small_file_system(
        "order::on_a_full_disk_no_row_is_begun_and_those_begun_are_written",
        async |disk| {
            let store = SqliteStore::open(disk.join("order.db")).unwrap();
            assert!(store.last(ROW).await.unwrap().is_none());
            fill(&disk);
            // The log has room for some more, as it was written before; then the reserve is taken.
            let mut row = 0_u128;
            let refused = loop {
                fill(&disk);
                let key = row.to_be_bytes();
                assert!(store.swap(&key, 0, record(1), RETAIN).await.unwrap());
                match store.last(&key).await {
                    Ok(known) => assert_eq!(known.unwrap().1, record(1)),
                    Err(error) => break error,
                }
                row += 1;
                assert!(row < 10_000, "it is full");
            };
            assert_eq!(refused.kind(), StoreErrorKind::Full);
            assert!(store.swap(ROW, 0, record(2), RETAIN).await.unwrap());
        },
    );
}

#[test]
fn an_order_in_sqlite_goes_with_its_transaction() {
    let folder = Folder::new();
    let mut orders = open(&folder.path().join("orders.db"));
    let transaction = begin(&mut orders);
    transaction.execute_batch("SAVEPOINT inner").unwrap();
    assert_eq!(order(&transaction, "row_1", 9), Order::Newest);
    transaction.execute_batch("ROLLBACK TO inner").unwrap();
    assert_eq!(order(&transaction, "row_1", 5), Order::Newest);
    assert_eq!(order(&transaction, "row_1", 4), Order::Stale);
    drop(transaction); // rolled back, as after a failure
    assert_eq!(records(&orders), 0);

    // Of an event without a date nothing is remembered.
    let transaction = begin(&mut orders);
    let of_no_date = order_in(&transaction, "test", &undated("row_1"), RETAIN);
    assert_eq!(of_no_date.unwrap().order, Order::Unknown);
    transaction.commit().unwrap();
    for (second, expected) in [
        (3, Order::Newest),
        (2, Order::Stale),
        (3, Order::Newest), // the same event again
        (4, Order::Newest),
        (3, Order::Stale),
    ] {
        let transaction = begin(&mut orders);
        assert_eq!(order(&transaction, "row_1", second), expected);
        transaction.commit().unwrap();
    }
    // Of another program it is another row, and an event that is not about a row has no order.
    let transaction = begin(&mut orders);
    let elsewhere = order_in(&transaction, "other", &updated("row_1", 1), RETAIN);
    assert_eq!(elsewhere.unwrap().order, Order::Newest);
    let of_no_row = order_in(&transaction, "test", &page_created(), RETAIN).unwrap();
    assert_eq!((of_no_row.order, of_no_row.gap), (Order::Unknown, None));
}

#[test]
fn rows_that_have_ended_are_forgotten_by_later_events_of_other_rows() {
    let folder = Folder::new();
    let mut orders = open(&folder.path().join("orders.db"));
    let mut handle = |row: String, retain| {
        let transaction = begin(&mut orders);
        let ordered = order_in(&transaction, "test", &updated(&row, 5), retain).unwrap();
        transaction.commit().unwrap();
        ordered.order
    };
    for number in 0..20 {
        let ends = Duration::from_millis(300);
        assert_eq!(handle(format!("row_{number}"), ends), Order::Newest);
    }
    std::thread::sleep(Duration::from_millis(400));
    for number in 0..20 {
        assert_eq!(handle(format!("next_{number}"), RETAIN), Order::Newest);
    }
    assert_eq!(records(&orders), 20);
    let transaction = begin(&mut orders);
    let of_ended = order(&transaction, "row_1", 1);
    assert_eq!(of_ended, Order::Newest, "it has ended");
    assert_eq!(order(&transaction, "next_1", 1), Order::Stale);
}

// fault H1: a handler is copied from a page that does not call `migrate`: each delivery is answered 503 until it is discarded, and a program without a hook and without `tracing` says nothing
#[test]
fn an_order_without_its_table_says_so() {
    let mut empty = Connection::open_in_memory().unwrap();
    let transaction = begin(&mut empty);
    let error = order_in(&transaction, "test", &updated("row_1", 1), RETAIN).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Missing);
    says(&error, "hookgate_sqlite::migrate");
}

/// In any order, with transactions that are rolled back in between, of both kinds.
#[test]
fn racing_transactions_of_sqlite_leave_the_newest_and_mark_each_older_one() {
    use StoreErrorKind::{Conflict, TimedOut};
    const EVENTS: u32 = 64;
    use TransactionBehavior::{Deferred, Immediate};
    for behavior in [Immediate, Deferred] {
        let folder = Folder::new();
        let file = folder.path().join("orders.db");
        let orders = open(&file);
        let mut seconds: Vec<_> = (0..EVENTS).collect();
        fastrand::shuffle(&mut seconds);
        let taken = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut orders = open(&file);
                    let next = || taken.fetch_add(1, Ordering::Relaxed) as usize;
                    while let Some(&second) = seconds.get(next()) {
                        loop {
                            let transaction = orders.transaction_with_behavior(behavior).unwrap();
                            if fastrand::bool() && matches!(behavior, Deferred) {
                                let _ = records(&transaction); // takes its snapshot
                            }
                            let ended = match handle(&transaction, "row_1", second) {
                                Ok(()) if fastrand::u8(..4) == 0 => continue, // rolled back
                                Ok(()) => transaction.commit().map_err(store_error),
                                Err(error) => Err(error),
                            };
                            match ended {
                                Ok(()) => break,
                                // A deferred one that has read does not wait for another that
                                // writes.
                                Err(error) => assert!(
                                    matches!(behavior, Deferred)
                                        && [Conflict, TimedOut].contains(&error.kind()),
                                    "{error:?}"
                                ),
                            }
                        }
                    }
                });
            }
        });
        let expected = agrees(&orders, EVENTS as usize);
        assert_eq!(expected.newest(), Some(EVENTS - 1));
    }
}

/// Each event that was handled has its order among those before it, and the newest has written the
/// row.
fn agrees(orders: &Connection, events: usize) -> ExpectedOrder {
    let handled = "SELECT second, placed FROM handled ORDER BY number";
    let mut handled = orders.prepare(handled).unwrap();
    let handled = handled.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    let handled: Vec<(u32, String)> = handled.unwrap().map(Result::unwrap).collect();
    assert!(handled.len() >= events);
    let mut expected = ExpectedOrder::default();
    for (second, placed) in handled {
        assert_eq!(placed, expected.next(second).name(), "{second}");
    }
    let left = number(orders, "SELECT second FROM orders");
    assert_eq!(Some(left), expected.newest());
    expected
}

/// Two writers, killed at any moment.
#[tokio::test]
async fn a_killed_process_leaves_the_row_and_its_record_in_agreement_in_a_file() {
    const KILLS: usize = 12;
    if let Some(file) = given() {
        return write_for_ever(file.as_ref());
    }
    let folder = Folder::new();
    let file = folder.path().join("orders.db");
    let mut orders = open(&file);
    let test = "order::a_killed_process_leaves_the_row_and_its_record_in_agreement_in_a_file";
    for round in 1..=KILLS {
        let mut children = [(); 2].map(|()| Child::start(test, file.to_str().unwrap()));
        let all = 20 * round as u32;
        until("all are handled", async || {
            number(&orders, "SELECT count(*) FROM handled") >= all
        })
        .await;
        std::thread::sleep(Duration::from_millis(fastrand::u64(..30)));
        for child in &mut children {
            child.kill();
        }
        let mut expected = agrees(&orders, 20 * round);
        let newest = expected.newest().unwrap();
        // The record is that of the event that has written the row: it is the same event again.
        let transaction = begin(&mut orders);
        let same = in_its_lives("row_1", newest);
        let same = order_in(&transaction, "test", &same, RETAIN).unwrap();
        let again = (expected.next(newest), None);
        assert_eq!((same.order, same.record()), again, "round {round}");
        assert_eq!(order(&transaction, "row_1", newest - 1), Order::Stale);
    }
}

/// Events that rise, with older ones in between.
fn write_for_ever(file: &std::path::Path) {
    let mut orders = open(file);
    let mut second = number(&orders, "SELECT coalesce(max(second), 0) FROM handled");
    loop {
        second += fastrand::u32(1..4);
        let event = fastrand::choice([second, fastrand::u32(1..=second)]).unwrap();
        let transaction = begin(&mut orders);
        handle(&transaction, "row_1", event).unwrap();
        transaction.commit().unwrap();
    }
}
