//! Repeats, and the outcome that is known or not.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookgate_client::{ApiKey, Client, ErrorKind, WaitReason};
use serde_json::Value;

use crate::support::{NOBODY, Order, client, hits, orders, quick, requests};

#[tokio::test]
async fn a_read_is_repeated_after_429_and_500() {
    let emulator = orders().await;
    let rows = client(&emulator).rows::<Value>("dm_orders").by_id();
    for fault in ["status-429", "status-500"] {
        emulator.clear_faults();
        emulator.fault_first(fault, 3).unwrap();
        assert_eq!(rows.page(0).await.unwrap().items.len(), 3, "{fault}");
        assert_eq!(hits(&emulator), 3);
    }
}

#[tokio::test]
async fn the_budget_of_repeats_is_spent_and_no_more() {
    let emulator = orders().await;
    emulator.fault_first("status-500", 100).unwrap();
    let error = client(&emulator)
        .with(quick().retries(3))
        .page("page_1")
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.attempts(), hits(&emulator)),
        (ErrorKind::Server, 4, 4)
    );
    assert!(error.to_string().ends_with("; after 4 attempts"), "{error}");
    assert!(!error.is_outcome_unknown(), "a read changes nothing");
    let error = client(&emulator)
        .with(quick().retries(0))
        .page("page_1")
        .await
        .unwrap_err();
    assert_eq!((error.attempts(), hits(&emulator)), (1, 5));
}

#[tokio::test]
async fn a_write_is_repeated_after_429_alone() {
    let emulator = orders().await;
    let rows = client(&emulator).rows::<Order>("dm_orders");
    rows.page(0).await.unwrap();
    emulator.fault_first("status-429", 2).unwrap();
    rows.create(&Order::of("Ada", 1)).await.unwrap();
    assert_eq!(hits(&emulator), 2);
    for write in ["create", "update"] {
        emulator.clear_faults();
        emulator.fault_first("status-500", 2).unwrap();
        let order = Order::of("Ada", 2);
        let error = match write {
            "create" => rows.create(&order).await.unwrap_err(),
            _ => rows.update("row_order_1", &order).await.unwrap_err(),
        };
        assert_eq!(
            (error.kind(), hits(&emulator)),
            (ErrorKind::Server, 1),
            "{write}"
        );
        assert!(error.is_outcome_unknown());
        assert!(error.to_string().contains("outcome unknown"), "{error}");
    }
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_made_once_and_its_outcome_unknown() {
    let emulator = orders().await;
    let rows = client(&emulator).rows::<Order>("dm_orders");
    rows.page(0).await.unwrap();
    emulator.fault_first("closed-after-write", 1).unwrap();
    let error = rows.create(&Order::of("Ada", 1)).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Connection, 1));
    assert!(error.is_outcome_unknown());
    assert_eq!(rows.list().all().await.unwrap().len(), 4);
}

#[tokio::test]
async fn a_deletion_whose_answer_is_lost_is_repeated_and_404_is_its_success() {
    let emulator = orders().await;
    let rows = client(&emulator).rows::<Value>("dm_orders");
    emulator.fault_first("closed-after-write", 1).unwrap();
    rows.delete("row_order_1").await.unwrap();
    let deletions = requests(&emulator).await;
    assert_eq!(
        deletions
            .iter()
            .filter(|path| path.starts_with("DELETE"))
            .count(),
        2
    );
    // After 429 alone nothing was deleted, and 404 is what it is.
    emulator.clear_faults();
    emulator.fault_first("status-429", 1).unwrap();
    let error = rows.delete("row_order_1").await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::NotFound, 2));
    // A deletion that fails for good after it was sent.
    emulator.clear_faults();
    emulator.fault_first("status-500", 9).unwrap();
    let error = rows.delete("row_order_2").await.unwrap_err();
    assert!(
        error.is_outcome_unknown() && error.attempts() == 5,
        "{error}"
    );
}

#[tokio::test]
async fn an_attempt_and_a_call_have_times_of_their_own() {
    let emulator = orders().await;
    // The answer comes after 10 s.
    emulator.fault_first("slow-answer", 1).unwrap();
    let options = quick().attempt_timeout(Duration::from_millis(300));
    client(&emulator)
        .with(options)
        .page("page_1")
        .await
        .unwrap();
    assert_eq!(hits(&emulator), 1, "the second attempt was answered");
    let rows = client(&emulator)
        .with(options)
        .rows::<Value>("dm_orders")
        .by_id();
    emulator.fault_first("slow-answer", 1).unwrap();
    let error = rows
        .create(&serde_json::json!({ "prop_quantity": 1 }))
        .await
        .unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Timeout, 1));
    assert!(error.is_outcome_unknown());
    emulator.fault_first("slow-answer", 9).unwrap();
    let options = quick()
        .total_timeout(Duration::from_millis(300))
        .retries(100);
    let error = client(&emulator)
        .with(options)
        .page("page_1")
        .await
        .unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Timeout, 1));
    assert!(error.message().contains("total time"), "{error}");
}

#[tokio::test]
async fn a_write_that_found_no_connection_was_not_sent_and_is_repeated() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&told);
    let client = Client::builder(NOBODY, ApiKey::new("tk_test_made_up").unwrap())
        .options(quick())
        .on_wait(move |wait| {
            seen.lock()
                .unwrap()
                .push((wait.reason, wait.attempts, wait.request.to_owned()))
        })
        .build()
        .unwrap();
    let rows = client.rows::<Value>("dm_orders").by_id();
    let error = rows.create(&serde_json::json!({})).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Connection, 5));
    assert!(!error.is_outcome_unknown(), "{error}");
    assert!(error.message().contains("not sent"));
    let told = told.lock().unwrap().clone();
    assert_eq!(told.len(), 4);
    assert_eq!(
        told[3],
        (
            WaitReason::Repeat,
            4,
            "POST /datamodels/dm_orders/rows".to_owned()
        )
    );
    let error = rows.delete("row_1").await.unwrap_err();
    assert!(!error.is_outcome_unknown(), "{error}");
}
