//! Data models, and the groups without shown payloads.

use hookgate_client::{ErrorKind, PropertyType};
use hookgate_emulator::{Emulator, Seed};
use serde_json::json;

use crate::support::{client, orders};

#[tokio::test]
async fn data_models_are_listed_searched_and_detailed() {
    let emulator = orders().await;
    let client = client(&emulator);
    let models = client.data_models().list().await.unwrap();
    assert_eq!(models.len(), 2);
    assert!(models[0].properties.is_empty());
    let models = client
        .data_models()
        .search("orders")
        .details()
        .row_counts()
        .list()
        .await
        .unwrap();
    let [orders] = &models[..] else {
        panic!("{models:?}")
    };
    assert_eq!((&*orders.id, orders.properties.len()), ("dm_orders", 9));
    assert_eq!(orders.extra["rowCount"], 3);
    let detail = client.data_model("dm_orders").await.unwrap();
    assert_eq!(detail.properties, orders.properties);
    assert_eq!(detail.properties[3].r#type, PropertyType::Select);
    assert_eq!(
        detail.properties[3].options.as_ref().unwrap()[1].value,
        "paid"
    );
    let relation = detail.properties[6].relation_config.as_ref().unwrap();
    assert_eq!(relation.target_data_model_id, "dm_clients");
}

#[tokio::test]
async fn more_data_models_than_a_list_has_by_default_are_asked_for_in_one() {
    let models: Vec<_> = (0..130)
        .map(|at| json!({ "id": format!("dm_{at}"), "title": at.to_string() }))
        .collect();
    let seed = json!({ "keys": [{ "name": "k", "key": "tk_test_admin", "scope": "admin" }], "dataModels": models });
    let emulator = Emulator::start(Seed::parse(&seed.to_string()).unwrap())
        .await
        .unwrap();
    assert_eq!(
        client(&emulator).data_models().list().await.unwrap().len(),
        130
    );
}

#[tokio::test]
async fn a_data_model_is_created_changed_and_deleted() {
    let emulator = orders().await;
    let client = client(&emulator);
    let made = client
        .create_data_model(&json!({ "title": "Notes" }))
        .await
        .unwrap();
    let id = made["id"].as_str().unwrap();
    let changed = client
        .update_data_model(id, &json!({ "description": "d" }))
        .await
        .unwrap();
    assert_eq!(changed["description"], "d");
    let changed = json!({ "add": [{ "name": "Text", "type": "TEXT" }] });
    let changed = client.change_properties(id, &changed).await.unwrap();
    assert_eq!(changed["properties"][0]["name"], "Text");
    client.delete_data_model(id).await.unwrap();
    assert_eq!(
        client.data_model(id).await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[tokio::test]
async fn blocks_workflows_and_stats_are_read_and_written_as_they_are() {
    let emulator = orders().await;
    let client = client(&emulator);
    for objects in [client.blocks(), client.workflows(), client.stats()] {
        let before = objects.list().all().await.unwrap().len();
        let made = objects
            .create(&json!({ "title": "a needle" }))
            .await
            .unwrap();
        let id = made["id"].as_str().unwrap();
        let changed = objects.update(id, &json!({ "note": 1 })).await.unwrap();
        assert_eq!(objects.get(id).await.unwrap(), changed);
        assert_eq!(objects.list().all().await.unwrap().len(), before + 1);
        assert_eq!(
            objects.clone().search("needle").list().all().await.unwrap(),
            [changed]
        );
        objects.delete(id).await.unwrap();
        assert_eq!(
            objects.get(id).await.unwrap_err().kind(),
            ErrorKind::NotFound
        );
    }
    let blocks = client.blocks();
    for number in 0..205 {
        blocks.create(&json!({ "number": number })).await.unwrap();
    }
    assert_eq!(blocks.list().all().await.unwrap().len(), 206, "three pages");
}

#[tokio::test]
async fn workflows_and_stats_are_run_and_pages_are_read() {
    let emulator = orders().await;
    let client = client(&emulator);
    let run = client
        .run_workflow("wf_1", &json!({ "a": 1 }))
        .await
        .unwrap();
    assert_eq!(run["input"], json!({ "a": 1 }));
    let run = client.run_stat("stat_1", &json!({})).await.unwrap();
    assert_eq!(run["result"]["value"], 1);
    assert_eq!(client.page("page_1").await.unwrap()["title"], "Home");
}
