//! The suite that the ledgers of all stores pass.

use std::time::Duration;

use hookgate::clock::ManualClock;
use hookgate_client::Ledger;
use serde_json::json;

use super::service::{
    clock, created, deleted, is_echo, orders, refusal, set_to_one, to_one, updated, usual,
};

/// `open` opens the same ledger again, as another replica does. No other test may write there.
pub async fn check(open: impl Fn() -> Ledger) {
    let clock = clock();
    let open = || open().with_clock(clock.clone());
    each_kind_of_write_is_recognised_by_another_replica(&open).await;
    two_equal_writes_have_one_echo_each(&open).await;
    a_write_that_failed_has_no_echo(&open).await;
    a_write_of_unknown_outcome_may_have_one(&open).await;
    ten_replicas_give_each_write_one_echo(&open).await;
    entries_end(&open, &clock).await;
}

async fn each_kind_of_write_is_recognised_by_another_replica(open: &impl Fn() -> Ledger) {
    let (writes, reads) = (open(), open());
    let orders = orders(&writes, usual);
    let values = json!({ "Customer": "Ada" });
    let row = orders.create(&values).await.unwrap().id;
    let change = json!({ "Total": 12.5, "Status": null });
    orders.update("row_1", &change).await.unwrap();
    orders.delete("row_2").await.unwrap();
    let events = |first: u32| {
        let id = |number| format!("evt_{}", first + number);
        [
            created(&id(0), &row, values.clone()),
            updated(&id(1), 0, "row_1", change.clone()),
            deleted(&id(2), "row_2"),
        ]
    };
    for event in events(1) {
        assert!(is_echo(&reads, &event).await, "{event:?}");
        assert!(is_echo(&writes, &event).await, "the same event: {event:?}");
    }
    // No write is left.
    for event in events(4).into_iter().chain([deleted("evt_7", "row_1")]) {
        assert!(!is_echo(&reads, &event).await, "{event:?}");
    }
}

async fn two_equal_writes_have_one_echo_each(open: &impl Fn() -> Ledger) {
    let ledger = open();
    let orders = orders(&ledger, usual);
    for _ in 0..2 {
        set_to_one(&orders, "row_3").await;
    }
    let mut echoes = Vec::new();
    for id in ["evt_11", "evt_12", "evt_11", "evt_13", "evt_12"] {
        echoes.push(is_echo(&ledger, &to_one(id, 0, "row_3")).await);
    }
    assert_eq!(echoes, [true, true, true, false, true]);
}

async fn a_write_that_failed_has_no_echo(open: &impl Fn() -> Ledger) {
    let ledger = open();
    let orders = orders(&ledger, |_| refusal(400));
    let values = json!({ "Customer": "Bo" });
    orders.create(&values).await.unwrap_err();
    orders.update("row_4", &values).await.unwrap_err();
    orders.delete("row_4").await.unwrap_err();
    for event in [
        created("evt_21", "row_5", values.clone()),
        updated("evt_22", 0, "row_4", values),
        deleted("evt_23", "row_4"),
    ] {
        assert!(!is_echo(&ledger, &event).await, "{event:?}");
    }
}

async fn a_write_of_unknown_outcome_may_have_one(open: &impl Fn() -> Ledger) {
    let ledger = open();
    let orders = orders(&ledger, |_| refusal(500));
    let values = json!({ "Customer": "Cy" });
    let error = orders.create(&values).await.unwrap_err();
    assert!(error.is_outcome_unknown());
    orders.update("row_6", &values).await.unwrap_err();
    orders.delete("row_6").await.unwrap_err();
    let more = json!({ "Customer": "Cy", "Status": "open" });
    for (event, expected) in [
        (created("evt_31", "row_7", more), false),
        (created("evt_32", "row_8", values.clone()), true),
        (created("evt_33", "row_9", values.clone()), false),
        (created("evt_32", "row_8", values.clone()), true),
        (updated("evt_34", 0, "row_6", values), true),
        (deleted("evt_35", "row_6"), true),
    ] {
        assert_eq!(is_echo(&ledger, &event).await, expected, "{event:?}");
    }
}

/// One of them writes, and all receive.
async fn ten_replicas_give_each_write_one_echo(open: &impl Fn() -> Ledger) {
    let writes = open();
    let orders = orders(&writes, usual);
    for _ in 0..10 {
        set_to_one(&orders, "row_10").await;
    }
    let replicas: Vec<_> = (0..10).map(|_| open()).collect();
    // Each event reaches two replicas at the same time. Five of the fifteen are foreign.
    let receivers = (0..30).map(|number| {
        let ledger = replicas[number % 10].clone();
        let event = to_one(&format!("evt_4{}", number % 15), 0, "row_10");
        tokio::spawn(async move { (event.id.clone(), is_echo(&ledger, &event).await) })
    });
    let mut echoes = std::collections::BTreeMap::<_, Vec<bool>>::new();
    for receiver in receivers.collect::<Vec<_>>() {
        let (id, is_echo) = receiver.await.unwrap();
        echoes.entry(id).or_default().push(is_echo);
    }
    assert!(echoes.values().all(|both| both[0] == both[1]), "{echoes:?}");
    let own = echoes.values().filter(|both| both[0]).count();
    assert_eq!(own, 10, "{echoes:?}");
}

async fn entries_end(open: &impl Fn() -> Ledger, clock: &ManualClock) {
    let ledger = open().with_capacity(3);
    let one = orders(&ledger, usual);
    let rows = (0..5).map(|number| json!({ "Customer": format!("Di {number}") }));
    let rows: Vec<_> = rows.collect();
    let made = one.create_many(&rows).await.unwrap().rows;
    let mut echoes = Vec::new();
    for (number, row) in made.iter().enumerate() {
        let event = created(&format!("evt_5{number}"), &row.id, rows[number].clone());
        echoes.push(is_echo(&ledger, &event).await);
    }
    // The oldest are forgotten first.
    assert_eq!(echoes, [false, false, true, true, true]);

    // The last attempt comes 26 h 36 min after the change.
    let ledger = open();
    let orders = orders(&ledger, usual);
    for row in ["row_11", "row_12"] {
        orders.delete(row).await.unwrap();
    }
    clock.advance(Duration::from_secs(26 * 3_600 + 36 * 60));
    assert!(is_echo(&ledger, &deleted("evt_61", "row_11")).await);
    clock.advance(Duration::from_secs(25 * 60));
    assert!(!is_echo(&ledger, &deleted("evt_62", "row_12")).await);
    assert!(!is_echo(&ledger, &deleted("evt_61", "row_11")).await);
}
