//! The examples of this crate, as processes of their own.

use crate::process::{Example, own_secret, row_created};
use crate::support::Folder;

#[test]
fn remembered_claims_knows_after_a_kill_what_it_has_handled() {
    let folder = Folder::new();
    let folder = folder.path();
    let variables = [
        ("WEBHOOK_SECRET", own_secret()),
        ("DATA", folder.to_str().unwrap()),
    ];
    let order = |number: u32| row_created(&format!("evt_{number}"), "{}");
    let first = Example::start("remembered_claims", &variables);
    assert_eq!(first.deliver(own_secret(), &order(1)).status, 204);
    drop(first); // killed
    let next = Example::start("remembered_claims", &variables);
    assert!(next.deliver(own_secret(), &order(1)).is_replay());
    assert_eq!(next.deliver(own_secret(), &order(2)).status, 204);
    drop(next);
    // The claims in the transaction know it too.
    for name in ["claims.db", "claims.db-wal", "claims.db-shm"] {
        let _ = std::fs::remove_file(folder.join(name));
    }
    let last = Example::start("remembered_claims", &variables);
    assert!(last.deliver(own_secret(), &order(1)).is_replay());
    drop(last);
    let orders = rusqlite::Connection::open(folder.join("orders.db")).unwrap();
    let count = "SELECT count(*) FROM orders";
    let count: i64 = orders.query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(count, 2);
}
