//! Names and ids of properties.

use std::time::Duration;

use hookgate_client::ErrorKind;
use hookgate_emulator::Emulator;
use serde_json::{Value, json};

use crate::support::{Fake, Order, answer, builder, client, orders, requests};

/// The requests for the detail.
async fn details(emulator: &Emulator) -> usize {
    let requests = requests(emulator).await.into_iter();
    let details = requests.filter(|request| request.ends_with("/datamodels/dm_orders"));
    details.count()
}

#[tokio::test]
async fn a_detail_is_asked_for_once_however_many_calls_wait() {
    let emulator = orders().await;
    let client = client(&emulator);
    let mut reading = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let rows = client.rows::<Order>("dm_orders");
        reading.spawn(async move { rows.page(0).await.unwrap() });
    }
    assert_eq!(reading.join_all().await.len(), 20);
    assert_eq!(details(&emulator).await, 1);
}

#[tokio::test]
async fn names_are_remembered_for_a_time() {
    let emulator = orders().await;
    let client = builder(&emulator, "tk_test_read").model_ttl(Duration::from_millis(50));
    let rows = client.build().unwrap().rows::<Order>("dm_orders");
    rows.page(0).await.unwrap();
    rows.page(0).await.unwrap();
    let before = details(&emulator).await;
    tokio::time::sleep(Duration::from_millis(60)).await;
    rows.page(0).await.unwrap();
    assert_eq!(details(&emulator).await, before + 1);
}

#[tokio::test]
async fn a_name_that_is_not_known_is_asked_for_again() {
    let emulator = orders().await;
    let (client, other) = (client(&emulator), client(&emulator));
    let rows = client.rows::<Value>("dm_orders");
    rows.page(0).await.unwrap();
    let added = json!({ "add": [{ "id": "prop_size", "name": "Size", "type": "NUMBER" }] });
    other.change_properties("dm_orders", &added).await.unwrap();
    let row = rows.create(&json!({ "Size": 7 })).await.unwrap();
    assert_eq!(row.properties, json!({ "Size": 7 }));
    // In what is read, too.
    let added = json!({ "add": [{ "id": "prop_note", "name": "Note", "type": "TEXT" }] });
    other.change_properties("dm_orders", &added).await.unwrap();
    let person = emulator.rows("dm_orders");
    let note = json!({ "prop_note": "new" });
    person.update(&row.id, note).unwrap();
    let read = rows.page(0).await.unwrap().items.pop().unwrap();
    assert_eq!(read.properties, json!({ "Size": 7, "Note": "new" }));
    let before = details(&emulator).await;
    let error = rows.update(&row.id, &json!({ "Colour": "red" })).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::UnknownProperty);
    // It was asked for once more.
    assert_eq!(details(&emulator).await, before + 1);
}

#[tokio::test]
async fn a_name_that_several_properties_have_is_an_error_and_ids_are_the_way_out() {
    let detail = r#"{"data": {"id": "dm_x", "title": "X", "properties": [{"id": "prop_1", "name": "Note", "type": "TEXT"},
        {"id": "prop_2", "name": "Note", "type": "TEXT"}, {"id": "prop_3", "name": "Size", "type": "NUMBER"}]}}"#;
    let list = r#"{"data": [{"id": "row_1", "data": {"prop_1": "a", "prop_2": "b", "prop_3": 1}}],
        "meta": {"total": 1, "limit": 100, "offset": 0}}"#;
    let row = r#"{"data": {"id": "row_1", "data": {"prop_1": "a", "prop_2": "c", "prop_3": 1}}}"#;
    let fake = Fake::answering([list, detail, row].map(|text| answer(200, None, text)));
    let rows = fake.client().rows::<Value>("dm_x");
    let listed = rows.list().all().await.unwrap_err();
    let updated = rows.update("row_1", &json!({ "Note": "c" })).await;
    for error in [listed, updated.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::AmbiguousProperty);
        assert!(error.message().contains("prop_1, prop_2"), "{error}");
    }
    let rows = rows.by_id();
    let row = rows.update("row_1", &json!({ "prop_2": "c" })).await;
    assert_eq!(
        row.unwrap().properties,
        json!({ "prop_1": "a", "prop_2": "c", "prop_3": 1 })
    );
    let seen = fake.seen.lock().unwrap();
    let details = seen.iter().filter(|request| request.ends_with("/dm_x"));
    assert_eq!(details.count(), 1, "not for ids: {seen:?}");
}

#[tokio::test]
async fn a_row_that_is_not_an_object_is_refused_before_it_is_sent() {
    let emulator = orders().await;
    let rows = client(&emulator).rows::<Value>("dm_orders");
    assert_eq!(rows.create(&[1]).await.unwrap_err().kind(), ErrorKind::Row);
    assert!(requests(&emulator).await.is_empty());
}

// fault K6: rows with a value of a deleted property cost a look-up of the data model at each call
#[tokio::test]
async fn a_value_without_a_property_costs_no_detail_for_each_call() {
    let detail = r#"{"data": {"id": "dm_x", "title": "X", "properties": [{"id": "prop_1", "name": "Note", "type": "TEXT"}]}}"#;
    let row = r#"{"data": {"id": "row_1", "data": {"prop_1": "a", "prop_deleted": "b"}}}"#;
    let [detail, row] = [detail, row].map(|text| answer(200, None, text));
    let fake = Fake::answering([detail.clone(), row.clone(), detail, row]);
    let client = fake.client();
    for _ in 0..3 {
        let rows = client.rows::<Value>("dm_x");
        let read = rows.update("row_1", &json!({ "Note": "a" })).await.unwrap();
        assert_eq!(read.properties, json!({ "Note": "a", "prop_deleted": "b" }));
    }
    let seen = fake.seen.lock().unwrap();
    let details = seen.iter().filter(|request| request.starts_with("GET"));
    assert_eq!(details.count(), 2, "{seen:?}");
}
