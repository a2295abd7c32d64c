//! Data models, and the groups without shown payloads.

use hookgate_client::{ErrorKind, PropertyType};
use serde_json::json;

use crate::support::{client, orders, seeded};

#[tokio::test]
async fn data_models_are_listed_searched_and_detailed() {
    let emulator = orders().await;
    let client = client(&emulator);
    let models = client.data_models().list().await.unwrap();
    assert_eq!((models.len(), models[0].properties.len()), (2, 0));
    let search = client.data_models().search("orders");
    let models = search.details().row_counts().list().await.unwrap();
    let [orders] = &models[..] else {
        panic!("{models:?}")
    };
    assert_eq!((&*orders.id, orders.properties.len()), ("dm_orders", 9));
    assert_eq!(orders.extra["rowCount"], 3);
    let detail = client.data_model("dm_orders").await.unwrap();
    assert_eq!(detail.properties, orders.properties);
    let status = &detail.properties[3];
    assert_eq!(status.r#type, PropertyType::Select);
    assert_eq!(status.options.as_ref().unwrap()[1].value, "paid");
    let relation = detail.properties[6].relation_config.as_ref().unwrap();
    assert_eq!(relation.target_data_model_id, "dm_clients");
}

#[tokio::test]
async fn more_data_models_than_a_list_has_by_default_are_asked_for_in_one() {
    let models: Vec<_> = (0..130)
        .map(|at| json!({ "id": format!("dm_{at}"), "title": at.to_string() }))
        .collect();
    let seed = json!({ "keys": [{ "name": "k", "key": "tk_test_admin", "scope": "admin" }], "dataModels": models });
    let emulator = seeded(&seed).await;
    let models = client(&emulator).data_models().list().await.unwrap();
    assert_eq!(models.len(), 130);
}

#[tokio::test]
async fn a_data_model_is_created_changed_and_deleted() {
    let emulator = orders().await;
    let client = client(&emulator);
    let made = client.create_data_model(&json!({ "title": "Notes" })).await;
    let made = made.unwrap();
    let id = made["id"].as_str().unwrap();
    let change = json!({ "description": "d" });
    let changed = client.update_data_model(id, &change).await.unwrap();
    assert_eq!(changed["description"], "d");
    let changed = json!({ "add": [{ "name": "Text", "type": "TEXT" }] });
    let changed = client.change_properties(id, &changed).await.unwrap();
    assert_eq!(changed["properties"][0]["name"], "Text");
    client.delete_data_model(id).await.unwrap();
    let gone = client.data_model(id).await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
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
        let found = objects.clone().search("needle").list().all().await;
        assert_eq!(found.unwrap(), [changed]);
        objects.delete(id).await.unwrap();
        let gone = objects.get(id).await.unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound);
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
    let input = json!({ "a": 1 });
    let run = client.run_workflow("wf_1", &input).await.unwrap();
    assert_eq!(run["input"], input);
    let run = client.run_stat("stat_1", &json!({})).await.unwrap();
    assert_eq!(run["result"]["value"], 1);
    assert_eq!(client.page("page_1").await.unwrap()["title"], "Home");
}
