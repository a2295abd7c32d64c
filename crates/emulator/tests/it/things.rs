//! *Groups without shown payloads*: blocks, workflows, stats, pages.

use serde_json::json;

use crate::Service;

#[tokio::test]
async fn objects_are_kept_as_the_json_that_came_under_ids_of_the_service() {
    let service = Service::orders().await;
    for (group, prefix) in [
        ("blocks", "block_"),
        ("workflows", "wf_"),
        ("stats", "stat_"),
    ] {
        let came = json!({ "title": "Made", "deep": { "a": [1, null, "x"] } });
        let made = service
            .api("POST", &format!("/{group}"), Some(came.clone()))
            .await
            .data();
        let id = made["id"].as_str().unwrap().to_owned();
        assert!(id.starts_with(prefix), "{id}");
        assert_eq!(
            (&made["title"], &made["deep"]),
            (&came["title"], &came["deep"])
        );
        let path = format!("/{group}/{id}");
        assert_eq!(service.get(&path).await.data(), made);
        let changed = service
            .api(
                "PATCH",
                &path,
                Some(json!({ "title": "Changed", "id": "other" })),
            )
            .await
            .data();
        assert_eq!(
            (&changed["title"], &changed["id"], &changed["deep"]),
            (&json!("Changed"), &json!(id), &came["deep"])
        );
        let list = service
            .get(&format!("/{group}?search=changed"))
            .await
            .json();
        assert_eq!(list["data"], json!([changed]));
        assert_eq!(
            list["meta"],
            json!({ "total": 1, "limit": 100, "offset": 0, "hasMore": false })
        );
        assert_eq!(
            service.api("DELETE", &path, None).await.data(),
            json!({ "id": id, "deleted": true })
        );
        service.get(&path).await.refused(404, "NOT_FOUND");
        service
            .api("POST", &format!("/{group}"), Some(json!([])))
            .await
            .refused(400, "VALIDATION_ERROR");
    }
}

#[tokio::test]
async fn workflows_and_stats_run() {
    let service = Service::orders().await;
    let run = service
        .api("POST", "/workflows/wf_1/run", Some(json!({ "order": 7 })))
        .await
        .data();
    assert_eq!(
        (&run["workflowId"], &run["status"], &run["input"]),
        (&json!("wf_1"), &json!("completed"), &json!({ "order": 7 }))
    );
    let run = service.api("POST", "/stats/stat_1/run", None).await.data();
    assert_eq!(
        (&run["statId"], &run["result"]),
        (&json!("stat_1"), &json!({ "value": 1 }))
    );
    service
        .api("POST", "/stats/stat_2/run", None)
        .await
        .refused(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_page_is_got_by_its_id_and_nothing_else_is_shown_of_pages() {
    let service = Service::orders().await;
    assert_eq!(
        service.get("/pages/page_1").await.data(),
        json!({ "id": "page_1", "title": "Home" })
    );
    service.get("/pages/page_2").await.refused(404, "NOT_FOUND");
    for (method, path) in [
        ("GET", "/pages"),
        ("POST", "/pages"),
        ("DELETE", "/pages/page_1"),
    ] {
        service
            .api(method, path, None)
            .await
            .refused(404, "NOT_FOUND");
    }
}
