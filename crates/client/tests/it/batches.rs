//! Batches of rows.

use hookgate_client::ErrorKind;
use serde_json::{Value, json};

use crate::support::{Order, client, orders, quick, requests};

#[tokio::test]
async fn a_batch_is_cut_to_a_size() {
    let emulator = orders().await;
    let rows = client(&emulator).rows::<Order>("dm_orders").batch_size(100);
    let input: Vec<_> = (0..250).map(|number| Order::of("Ada", number)).collect();
    let created = rows.create_many(&input).await.unwrap();
    assert!(created.errors.is_empty());
    let quantities: Vec<_> = created
        .rows
        .iter()
        .map(|row| row.properties.quantity.unwrap())
        .collect();
    assert_eq!(quantities, (0..250).collect::<Vec<_>>());
    let posts = requests(&emulator).await;
    assert_eq!(
        posts
            .iter()
            .filter(|request| request.starts_with("POST"))
            .count(),
        3
    );
    assert!(
        rows.create_many(&[] as &[Order])
            .await
            .unwrap()
            .rows
            .is_empty()
    );
}

#[tokio::test]
async fn rows_that_are_refused_are_told_by_their_index_in_the_whole_input() {
    let emulator = orders().await;
    let rows = client(&emulator).rows::<Value>("dm_orders").batch_size(2);
    let input: Vec<_> = (0..5)
        .map(|number| match number {
            1 | 4 => json!({ "Quantity": "no number" }),
            _ => json!({ "Quantity": number }),
        })
        .collect();
    let created = rows.create_many(&input).await.unwrap();
    let refused: Vec<_> = created
        .errors
        .iter()
        .map(|error| (error.index, error.is_exact))
        .collect();
    assert_eq!(refused, [(1, true), (4, true)]);
    assert_eq!(created.errors[1].json["code"], "VALIDATION_ERROR");
    assert!(
        created.errors[1].to_string().starts_with("row 4: "),
        "{}",
        created.errors[1]
    );
    let made: Vec<_> = created
        .rows
        .iter()
        .map(|row| row.properties["Quantity"].clone())
        .collect();
    assert_eq!(made, [0, 2, 3]);
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
    assert_eq!(
        (batch.failed_at, batch.failed_rows, batch.created.len()),
        (0, 2, 0)
    );
    assert_eq!(
        client
            .rows::<Order>("dm_orders")
            .list()
            .all()
            .await
            .unwrap()
            .len(),
        5,
        "two of six"
    );
}

#[tokio::test]
async fn a_name_that_is_wrong_anywhere_creates_nothing() {
    let emulator = orders().await;
    let rows = client(&emulator)
        .with(quick())
        .rows::<Value>("dm_orders")
        .batch_size(1);
    let error = rows
        .create_many(&[json!({ "Quantity": 1 }), json!({ "Size": 1 })])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownProperty);
    assert!(error.message().contains("dm_orders") && error.message().contains("\"Size\""));
    assert_eq!(rows.list().all().await.unwrap().len(), 3);
}
