//! *Groups without shown payloads*: blocks, workflows, stats, pages.

use serde_json::json;

use crate::Service;

#[tokio::test]
async fn objects_are_kept_as_the_json_that_came_under_ids_of_the_service() {
    let service = Service::orders().await;
    for (group, prefix) in [
        ("/blocks", "block_"),
        ("/workflows", "wf_"),
        ("/stats", "stat_"),
    ] {
        let mut expected = json!({ "title": "Made", "deep": { "a": [1, null, "x"] } });
        let made = service.post(group, expected.clone()).await.data();
        let id = made["id"].as_str().unwrap();
        assert!(id.starts_with(prefix), "{id}");
        for field in ["title", "deep"] {
            assert_eq!(made[field], expected[field], "{field}");
        }
        let path = format!("{group}/{id}");
        assert_eq!(service.get(&path).await.data(), made);
        let change = json!({ "title": "Changed", "id": "other" });
        let changed = service.patch(&path, change).await.data();
        expected["title"] = json!("Changed");
        expected["id"] = json!(id);
        for field in ["title", "id", "deep"] {
            assert_eq!(changed[field], expected[field], "{field}");
        }
        let list = service.get(&format!("{group}?search=changed")).await.json();
        assert_eq!(list["data"], json!([changed]));
        let meta = json!({ "total": 1, "limit": 100, "offset": 0, "hasMore": false });
        assert_eq!(list["meta"], meta);
        let deleted = service.delete(&path).await.data();
        assert_eq!(deleted, json!({ "id": id, "deleted": true }));
        service.get(&path).await.not_found();
        service.post(group, json!([])).await.invalid();
    }
}

#[tokio::test]
async fn workflows_and_stats_run() {
    let service = Service::orders().await;
    let input = json!({ "order": 7 });
    let run = service
        .post("/workflows/wf_1/run", input.clone())
        .await
        .data();
    let shown = json!([run["workflowId"], run["status"], run["input"]]);
    assert_eq!(shown, json!(["wf_1", "completed", input]));
    let run = service.post("/stats/stat_1/run", None).await.data();
    let shown = json!([run["statId"], run["result"]]);
    assert_eq!(shown, json!(["stat_1", { "value": 1 }]));
    service.post("/stats/stat_2/run", None).await.not_found();
}

#[tokio::test]
async fn a_page_is_got_by_its_id_and_nothing_else_is_shown_of_pages() {
    let service = Service::orders().await;
    let page = service.get("/pages/page_1").await.data();
    assert_eq!(page, json!({ "id": "page_1", "title": "Home" }));
    for (method, path) in [
        ("GET", "/pages/page_2"),
        ("GET", "/pages"),
        ("POST", "/pages"),
        ("DELETE", "/pages/page_1"),
    ] {
        service.ask(method, path, None).await.not_found();
    }
}
