//! Repeats, and the outcome that is known or not.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookgate_client::{ApiKey, Client, ErrorKind, WaitReason};
use http::Response;
use serde_json::{Value, json};

use crate::support::{Fake, NOBODY, Order, answer, client, count, hits, hook, orders, quick};

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
    for (retries, all) in [(3, 4), (0, 5)] {
        let client = client(&emulator).with(quick().retries(retries));
        let error = client.page("page_1").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Server);
        assert_eq!((error.attempts(), hits(&emulator)), (retries + 1, all));
        let says = error.to_string().ends_with("; after 4 attempts");
        assert_eq!(says, retries > 0, "{error}");
        assert!(!error.is_outcome_unknown(), "a read changes nothing");
    }
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
        assert_eq!(error.kind(), ErrorKind::Server, "{write}");
        assert_eq!(hits(&emulator), 1, "{write}");
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

// fault K8: a change that is answered 2xx with a body that can't be read is told as one that was not made, and the program that repeats it makes the row twice
#[tokio::test]
async fn a_change_that_is_answered_2xx_with_an_unreadable_body_has_an_unknown_outcome() {
    for (status, body) in [
        (200, &b"<html>the page of a proxy</html>"[..]),
        (200, b""),
        (204, b""),
        (200, b"{\"data\": {\"id\": \"\xff\"}}"),
        (200, b"{\"data\": {\"id\": \"row_1\", \"da"),
        (201, b"{\"datum\": {}}"),
    ] {
        let answer = Response::builder().status(status).body(body).unwrap();
        let fake = Fake::answering([answer]);
        let (trigger, client) = (hook(fake.clone()), fake.client());
        let (rows, values) = (client.rows::<Value>("dm_1").by_id(), json!({ "prop_1": 1 }));
        let first = rows.create(&values).await.unwrap_err();
        let told = first.to_string();
        let start = format!("POST /datamodels/dm_1/rows: {status}: the answer is not ");
        let end = "; outcome unknown: the change may have been made";
        assert!(told.starts_with(&start) && told.ends_with(end), "{told}");
        let errors = [
            first,
            rows.update("row_1", &values).await.unwrap_err(),
            rows.create_many(&[&values]).await.unwrap_err(),
            client.blocks().create(&values).await.unwrap_err(),
            client.blocks().update("1", &values).await.unwrap_err(),
            client.run_workflow("wf_1", &values).await.unwrap_err(),
            client.run_stat("stat_1", &values).await.unwrap_err(),
            client.create_data_model(&values).await.unwrap_err(),
            client.update_data_model("1", &values).await.unwrap_err(),
            client.change_properties("1", &values).await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Answer, "{error}");
            assert!(error.is_outcome_unknown(), "{error}");
        }
        match rows.delete("row_1").await {
            Ok(()) => assert!(body.is_empty(), "a deletion needs no body"),
            Err(error) => assert!(error.is_outcome_unknown(), "{error}"),
        }
        let answer = trigger.call().send().await.unwrap();
        // A trigger may answer any JSON.
        if let Err(error) = answer.json::<Value>() {
            assert!(error.is_outcome_unknown(), "{error}");
        }
        let read = client.page("page_1").await.unwrap_err();
        assert!(!read.is_outcome_unknown(), "a read changes nothing: {read}");
    }
}

// fault K15: a change is answered 3xx or 408 by a proxy, or a trigger whose workflow ran answers 4xx, and the error says that nothing was changed
#[tokio::test]
async fn a_change_that_a_proxy_may_have_passed_on_is_not_repeated() {
    for (status, is_unknown) in [(303, true), (307, true), (408, true), (409, false)] {
        let fake = Fake::answering([answer(status, None, "")]);
        let rows = fake.client().rows::<Value>("dm_1").by_id();
        let errors = [
            rows.create(&json!({})).await.unwrap_err(),
            rows.delete("row_1").await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.is_outcome_unknown(), is_unknown, "{error}");
        }
        let read = rows.page(0).await.unwrap_err();
        assert!(!read.is_outcome_unknown(), "a read changes nothing: {read}");
        assert_eq!(fake.seen.lock().unwrap().len(), 3, "{status}");
    }
}

// fault K9: a row that was created and does not fit its type is told as one that was not sent
#[tokio::test]
async fn a_written_row_that_does_not_fit_its_type_has_an_unknown_outcome() {
    #[derive(Debug, serde::Deserialize)]
    struct Wrong {
        #[serde(rename = "prop_1")]
        _count: u32,
    }
    let row = json!({ "id": "row_1", "data": { "prop_1": "Ada" } });
    for (data, is_batch) in [(row.clone(), false), (json!([row]), true)] {
        let body = json!({ "data": data }).to_string();
        let fake = Fake::answering([Response::new(body)]);
        let rows = fake.client().rows::<Wrong>("dm_1").by_id();
        let values = json!({ "prop_1": "Ada" });
        let errors = match is_batch {
            true => vec![rows.create_many(&[&values]).await.unwrap_err()],
            false => vec![
                rows.create(&values).await.unwrap_err(),
                rows.update("row_1", &values).await.unwrap_err(),
            ],
        };
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Row);
            assert!(error.is_outcome_unknown(), "{error}");
            let why = "row_1 can't be read: the property \"prop_1\" is a text, expected u32";
            assert!(is_batch || error.message().ends_with(why), "{error}");
            assert!(error.message().contains("row_1"), "{error}");
        }
    }
    let rows = Fake::default().client().rows::<Value>("dm_1").by_id();
    let error = rows.create("no object").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Row);
    assert!(!error.is_outcome_unknown(), "nothing was sent: {error}");
}

#[tokio::test]
async fn a_deletion_whose_answer_is_lost_is_repeated_and_404_is_its_success() {
    let emulator = orders().await;
    let rows = client(&emulator).rows::<Value>("dm_orders");
    emulator.fault_first("closed-after-write", 1).unwrap();
    rows.delete("row_order_1").await.unwrap();
    assert_eq!(count(&emulator, "DELETE").await, 2);
    // After 429 alone nothing was deleted, and 404 is what it is.
    emulator.clear_faults();
    emulator.fault_first("status-429", 1).unwrap();
    let error = rows.delete("row_order_1").await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::NotFound, 2));
    // A deletion that fails for good after it was sent.
    emulator.clear_faults();
    emulator.fault_first("status-500", 9).unwrap();
    let error = rows.delete("row_order_2").await.unwrap_err();
    assert_eq!((error.is_outcome_unknown(), error.attempts()), (true, 5));
}

#[tokio::test]
async fn an_attempt_and_a_call_have_times_of_their_own() {
    let emulator = orders().await;
    // The answer comes after 10 s.
    emulator.fault_first("slow-answer", 1).unwrap();
    let second = Duration::from_secs(1);
    let short = client(&emulator).with(quick().attempt_timeout(second));
    short.page("page_1").await.unwrap();
    assert_eq!(hits(&emulator), 1, "the second attempt was answered");
    let rows = short.rows::<Value>("dm_orders").by_id();
    emulator.fault_first("slow-answer", 1).unwrap();
    let error = rows
        .create(&json!({ "prop_quantity": 1 }))
        .await
        .unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Timeout, 1));
    assert!(error.is_outcome_unknown());
    emulator.fault_first("slow-answer", 9).unwrap();
    let short = short.with(quick().total_timeout(second).retries(100));
    let error = short.page("page_1").await.unwrap_err();
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
            let told = (wait.reason, wait.attempts, wait.request.to_owned());
            seen.lock().unwrap().push(told);
        })
        .build()
        .unwrap();
    let rows = client.rows::<Value>("dm_orders").by_id();
    let error = rows.create(&json!({})).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Connection, 5));
    assert!(!error.is_outcome_unknown(), "{error}");
    assert!(error.message().contains("not sent"));
    let told = std::mem::take(&mut *told.lock().unwrap());
    let request = "POST /datamodels/dm_orders/rows".to_owned();
    assert_eq!(
        (told.len(), &told[3]),
        (4, &(WaitReason::Repeat, 4, request))
    );
    let error = rows.delete("row_1").await.unwrap_err();
    assert!(!error.is_outcome_unknown(), "{error}");
}
