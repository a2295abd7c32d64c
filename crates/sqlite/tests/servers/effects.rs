//! `claim_in` of SQLite: what goes with its transaction, and what other transactions do to it.

use std::time::Duration;

use hookgate::dedupe::{ClaimValues, ClaimedIn, EventKey, NotFresh, StoreErrorKind};
use hookgate_sqlite::{claim_in, claim_values_in, migrate, store_error};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::{RETAIN, delivery, receiver};
use crate::support::{Folder, says};

fn open(folder: &Folder) -> Connection {
    let connection = Connection::open(folder.path().join("orders.db")).unwrap();
    connection.busy_timeout(Duration::from_millis(50)).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS orders (event_id TEXT);",
        )
        .unwrap();
    migrate(&connection).unwrap();
    connection
}

fn begin(connection: &mut Connection) -> Transaction<'_> {
    let immediate = TransactionBehavior::Immediate;
    connection.transaction_with_behavior(immediate).unwrap()
}

fn values(id: &str, body: &str) -> ClaimValues {
    let key = EventKey::new("default", id);
    ClaimValues::new("orders", key, body.as_bytes(), RETAIN)
}

fn count(connection: &Connection, table: &str) -> i64 {
    let count = format!("SELECT count(*) FROM {table}");
    connection.query_row(&count, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_claim_in_sqlite_goes_with_its_transaction() {
    let folder = Folder::new();
    let mut orders = open(&folder);
    let (receiver, id) = (receiver(), "evt_1");
    let order = "INSERT INTO orders VALUES ('evt_1')";
    let transaction = begin(&mut orders);
    let fresh = claim_in(&transaction, "orders", &delivery(&receiver, id), RETAIN).unwrap();
    assert_eq!(fresh.fresh(), Ok(()));
    transaction.execute(order, []).unwrap();
    drop(transaction); // rolled back, as after a failure
    assert_eq!(count(&orders, "orders"), 0);
    assert_eq!(count(&orders, "hookgate_effects"), 0);

    let transaction = begin(&mut orders);
    let again = claim_in(&transaction, "orders", &delivery(&receiver, id), RETAIN).unwrap();
    assert_eq!(again, ClaimedIn::Fresh);
    transaction.execute(order, []).unwrap();
    transaction.commit().unwrap();

    let transaction = begin(&mut orders);
    let known = claim_in(&transaction, "orders", &delivery(&receiver, id), RETAIN).unwrap();
    assert_eq!(known.fresh(), Err(NotFresh::Duplicate { same_body: true }));
    // Another body under the same id, and the same id of another program.
    let values = |name| ClaimValues::new(name, EventKey::new("default", id), b"other", RETAIN);
    let other = claim_values_in(&transaction, &values("orders")).unwrap();
    assert_eq!(other, ClaimedIn::Duplicate { same_body: false });
    let other = claim_values_in(&transaction, &values("members")).unwrap();
    assert_eq!(other, ClaimedIn::Fresh);
    transaction.commit().unwrap();
    assert_eq!(count(&orders, "orders"), 1);
}

#[test]
fn a_savepoint_of_sqlite_takes_its_claim_along() {
    let folder = Folder::new();
    let mut orders = open(&folder);
    let transaction = begin(&mut orders);
    transaction.execute_batch("SAVEPOINT inner").unwrap();
    let claimed = claim_values_in(&transaction, &values("evt_1", "{}"));
    assert_eq!(claimed.unwrap(), ClaimedIn::Fresh);
    transaction.execute_batch("ROLLBACK TO inner").unwrap();
    let claimed = claim_values_in(&transaction, &values("evt_1", "{}"));
    assert_eq!(claimed.unwrap(), ClaimedIn::Fresh);
}

#[test]
fn a_transaction_of_sqlite_that_meets_another_is_503_or_a_duplicate() {
    let folder = Folder::new();
    let (mut first, mut second) = (open(&folder), open(&folder));
    // Deferred, and nothing read: the claim waits, and then sees what was committed.
    let deferred = second.transaction().unwrap();
    let open = begin(&mut first);
    let claimed = claim_values_in(&open, &values("evt_1", "{}")).unwrap();
    assert_eq!(claimed, ClaimedIn::Fresh);
    let error = claim_values_in(&deferred, &values("evt_1", "{}")).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::TimedOut);
    open.commit().unwrap();
    let known = claim_values_in(&deferred, &values("evt_1", "{}")).unwrap();
    assert_eq!(known, ClaimedIn::Duplicate { same_body: true });
    drop(deferred);
    // Deferred, after a read: another has committed since.
    let deferred = second.transaction().unwrap();
    assert_eq!(count(&deferred, "orders"), 0);
    let open = begin(&mut first);
    let claimed = claim_values_in(&open, &values("evt_2", "{}")).unwrap();
    assert_eq!(claimed, ClaimedIn::Fresh);
    open.commit().unwrap();
    let error = claim_values_in(&deferred, &values("evt_2", "{}")).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Conflict, "{error:?}");
    drop(deferred);
    // Immediate: it is BEGIN that waits.
    let open = begin(&mut first);
    let begun = second.transaction_with_behavior(TransactionBehavior::Immediate);
    let error = store_error(begun.map(drop).unwrap_err());
    assert_eq!(error.kind(), StoreErrorKind::TimedOut);
    drop(open);
    let transaction = begin(&mut second);
    let known = claim_values_in(&transaction, &values("evt_2", "{}")).unwrap();
    assert_eq!(known, ClaimedIn::Duplicate { same_body: true });
}

// fault H1: a handler is copied from a page that does not call `migrate`: each delivery is answered 503 until it is discarded, and a program without a hook and without `tracing` says nothing
#[test]
fn a_claim_without_its_table_says_so() {
    let mut empty = Connection::open_in_memory().unwrap();
    let transaction = begin(&mut empty);
    let error = claim_values_in(&transaction, &values("evt_1", "{}")).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Missing);
    says(&error, "hookgate_sqlite::migrate");
}

#[test]
fn ended_effects_are_deleted_by_later_claims() {
    let folder = Folder::new();
    let mut orders = open(&folder);
    migrate(&orders).unwrap(); // a second time
    let claim = |connection: &mut Connection, id: &str, retain| {
        let values = ClaimValues::new("orders", EventKey::new("default", id), b"{}", retain);
        let transaction = begin(connection);
        let claimed = claim_values_in(&transaction, &values).unwrap();
        assert_eq!(claimed, ClaimedIn::Fresh);
        transaction.commit().unwrap();
    };
    claim(&mut orders, "evt_kept", RETAIN);
    for number in 0..20 {
        let ends = Duration::from_millis(300);
        claim(&mut orders, &format!("evt_{number}"), ends);
    }
    std::thread::sleep(Duration::from_millis(400));
    for number in 0..20 {
        claim(&mut orders, &format!("evt_next_{number}"), RETAIN);
    }
    assert_eq!(count(&orders, "hookgate_effects"), 21);
    let transaction = begin(&mut orders);
    let kept = claim_values_in(&transaction, &values("evt_kept", "{}")).unwrap();
    assert_eq!(kept, ClaimedIn::Duplicate { same_body: true });
}
