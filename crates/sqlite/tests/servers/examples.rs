//! The examples of this crate, as processes of their own.

use crate::process::{Example, row_created};
use crate::support::Folder;

const SECRET: &str = "whsec_made_up_for_the_examples";

#[test]
fn durable_inbox_handles_what_it_has_answered_whatever_kills_it() {
    let folder = Folder::new();
    let file = folder.path().join("inbox.db");
    let start = |takes| {
        let inbox = file.to_str().unwrap();
        let variables = [
            ("WEBHOOK_SECRET", SECRET),
            ("INBOX", inbox),
            ("TAKES_MS", takes),
        ];
        Example::start("durable_inbox", &variables)
    };
    let order = |number: u32| {
        let properties = r#"{"Customer":"Ada","Total":12.50}"#;
        row_created(&format!("evt_{number}"), properties).replace("dm_1", "dm_orders")
    };
    // Handlers that take longer than any sender waits.
    let mut slow = start("600000");
    for number in 0..12 {
        assert_eq!(slow.deliver(SECRET, &order(number)).status, 200);
    }
    let copy = slow.deliver(SECRET, &order(3));
    assert!(copy.is_replay(), "{copy:?}");
    assert_eq!(
        slow.deliver("whsec_made_up_and_another", &order(99)).status,
        401
    );
    assert_eq!(slow.count_lines_with("ordered"), 0);
    // Killed, with eight of them begun and four waiting.
    drop(slow);

    let mut next = start("0");
    for number in 0..12 {
        next.line_with(&format!("evt_{number}: Ada ordered for 12.50"));
    }
    assert!(next.deliver(SECRET, &order(3)).is_replay());
    assert_eq!(next.deliver(SECRET, &order(12)).status, 200);
    next.line_with("evt_12: Ada ordered");
    assert_eq!(next.count_lines_with("ordered"), 13, "each once");
    // One that does not fit is tried again later, and waits in the file meanwhile.
    let mismatch = order(13).replace("12.50", "\"twelve\"");
    assert_eq!(next.deliver(SECRET, &mismatch).status, 200);
    next.line_with("evt_13 failed: Retry");
    assert!(next.terminate(), "ends well when it is told to");
    next.line_with("stopped, 0 given back, 1 left to do");
}

#[test]
fn remembered_claims_knows_after_a_kill_what_it_has_handled() {
    let folder = Folder::new();
    let folder = folder.path();
    let variables = [
        ("WEBHOOK_SECRET", SECRET),
        ("DATA", folder.to_str().unwrap()),
    ];
    let order = |number: u32| row_created(&format!("evt_{number}"), "{}");
    let first = Example::start("remembered_claims", &variables);
    assert_eq!(first.deliver(SECRET, &order(1)).status, 204);
    drop(first); // killed
    let next = Example::start("remembered_claims", &variables);
    assert!(next.deliver(SECRET, &order(1)).is_replay());
    assert_eq!(next.deliver(SECRET, &order(2)).status, 204);
    drop(next);
    // The claims in the transaction know it too.
    for name in ["claims.db", "claims.db-wal", "claims.db-shm"] {
        let _ = std::fs::remove_file(folder.join(name));
    }
    let last = Example::start("remembered_claims", &variables);
    assert!(last.deliver(SECRET, &order(1)).is_replay());
    drop(last);
    let orders = rusqlite::Connection::open(folder.join("orders.db")).unwrap();
    let count = "SELECT count(*) FROM orders";
    let count: i64 = orders.query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(count, 2);
}
