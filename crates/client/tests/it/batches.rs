//! Batches of rows.

use hookgate_client::ErrorKind;
use serde_json::{Value, json};

use crate::support::{Order, client, count, orders};

#[tokio::test]
async fn a_batch_is_cut_to_a_size() {
    let emulator = orders().await;
    let rows = client(&emulator).rows::<Order>("dm_orders").batch_size(100);
    let input: Vec<_> = (0..250).map(|number| Order::of("Ada", number)).collect();
    let created = rows.create_many(&input).await.unwrap();
    assert!(created.errors.is_empty());
    let quantities = created.rows.iter().map(|row| row.properties.quantity);
    assert!(quantities.eq((0..250).map(Some)), "{created:?}");
    assert_eq!(count(&emulator, "POST").await, 3);
    let none = rows.create_many(&[] as &[Order]).await.unwrap();
    assert!(none.rows.is_empty());
}

#[tokio::test]
async fn rows_that_are_refused_are_told_by_their_index_in_the_whole_input() {
    let emulator = orders().await;
    let rows = client(&emulator).rows::<Value>("dm_orders").batch_size(2);
    let wrong = json!("no number");
    let input = [json!(0), wrong.clone(), json!(2), json!(3), wrong];
    let input = input.map(|quantity| json!({ "Quantity": quantity }));
    let created = rows.create_many(&input).await.unwrap();
    let refused = created
        .errors
        .iter()
        .map(|error| (error.index, error.is_exact));
    assert_eq!(refused.collect::<Vec<_>>(), [(1, true), (4, true)]);
    let last = &created.errors[1];
    assert_eq!(last.json["code"], "VALIDATION_ERROR");
    assert!(last.to_string().starts_with("row 4: "), "{last}");
    let made = created.rows.iter().map(|row| &row.properties["Quantity"]);
    assert_eq!(made.collect::<Vec<_>>(), [0, 2, 3]);
}

#[tokio::test]
async fn a_request_that_fails_says_what_was_created_before_it() {
    let emulator = orders().await;
    let client = client(&emulator);
    let rows = client.rows::<Order>("dm_orders").batch_size(2);
    let input: Vec<_> = (0..6).map(|number| Order::of("Ada", number)).collect();
    client.data_model("dm_orders").await.unwrap();
    // The fault takes the first change: one batch is made, and unknown to the client.
    emulator.fault_first("closed-after-write", 1).unwrap();
    let error = rows.create_many(&input).await.unwrap_err();
    assert!(error.is_outcome_unknown());
    let batch = error.batch().unwrap();
    assert_eq!((batch.failed_at, batch.failed_rows), (0, 2));
    assert_eq!(batch.created.len(), 0);
    // Two of six.
    assert_eq!(rows.list().all().await.unwrap().len(), 5);
}

#[tokio::test]
async fn a_name_that_is_wrong_anywhere_creates_nothing() {
    let emulator = orders().await;
    let rows = client(&emulator).rows::<Value>("dm_orders").batch_size(1);
    let input = [json!({ "Quantity": 1 }), json!({ "Size": 1 })];
    let error = rows.create_many(&input).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownProperty);
    assert!(error.message().contains("dm_orders") && error.message().contains("\"Size\""));
    assert_eq!(rows.list().all().await.unwrap().len(), 3);
}
