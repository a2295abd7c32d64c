//! The control API: each endpoint in its fixed form.

use hookgate::Clock;
use serde_json::{Value, json};

use crate::Service;

#[tokio::test]
async fn the_table_of_controls_is_answered() {
    let service = Service::orders().await;
    let listed = service.controls().await;
    for fixed in [
        "POST reset",
        "GET clock",
        "POST clock/advance",
        "GET deliveries",
        "POST deliveries/*/redeliver",
        "GET faults",
        "POST faults",
        "DELETE faults",
        "POST events/test",
        "POST events",
        "GET subscriptions",
        "POST subscriptions",
        "PATCH subscriptions/*",
        "DELETE subscriptions/*",
        "GET keys",
        "POST keys",
        "PATCH keys/*",
        "GET switches",
        "PATCH switches",
        "GET snapshot",
        "PUT snapshot",
    ] {
        assert!(listed.iter().any(|other| other == fixed), "{fixed}");
    }
    service
        .control("GET", "nothing", None)
        .await
        .refused(404, "NOT_FOUND");
    service
        .control("PUT", "reset", None)
        .await
        .refused(404, "NOT_FOUND");
}

#[tokio::test]
async fn the_clock_is_shown_and_advanced() {
    let service = Service::orders().await;
    let before = service.emulator.clock().now().as_i64();
    let now = service.control("GET", "clock", None).await.json();
    assert_eq!(now.as_object().unwrap().len(), 1);
    assert!(now["now"].as_str().unwrap().ends_with('Z'));
    let answer = service
        .control("POST", "clock/advance", Some(json!({ "by": "26h36m" })))
        .await
        .json();
    assert_eq!(answer["attempts"], 0);
    let passed = service.emulator.clock().now().as_i64() - before;
    assert!((95_760..95_770).contains(&passed), "{passed}");
    let now = hookgate::Date::parse(answer["now"].as_str().unwrap()).unwrap();
    assert!(now.unix_seconds().as_i64() - before >= 95_760);
    for by in [
        json!("soon"),
        json!(""),
        json!("5"),
        json!("5w"),
        json!(60),
        json!("-5m"),
        Value::Null,
    ] {
        let refused = service
            .control("POST", "clock/advance", Some(json!({ "by": by })))
            .await;
        assert!(
            refused.refused(400, "VALIDATION_ERROR").contains("`by`"),
            "{by}"
        );
    }
}

#[tokio::test]
async fn switches_are_shown_and_set_by_name() {
    let service = Service::orders().await;
    let switches = service.control("GET", "switches", None).await.data();
    for (name, switch) in switches.as_object().unwrap() {
        let fields: Vec<_> = switch.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["about", "value", "values"]);
        for value in switch["values"].as_array().unwrap() {
            let set = service
                .control("PATCH", "switches", Some(json!({ name: value })))
                .await
                .data();
            assert_eq!(&set[name]["value"], value);
        }
    }
    let wrong = json!({ "rateLimit": "off", "listOrder": "random" });
    let message = service
        .control("PATCH", "switches", Some(wrong))
        .await
        .refused(400, "VALIDATION_ERROR");
    assert!(
        message.contains("listOrder") && message.contains("newest"),
        "{message}"
    );
}

#[tokio::test]
async fn reset_returns_to_the_seed() {
    let service = Service::orders().await;
    let before = service.control("GET", "snapshot", None).await.json();
    service
        .control("PATCH", "switches", Some(json!({ "rateLimit": "off" })))
        .await
        .data();
    service
        .api("DELETE", "/datamodels/dm_orders/rows/row_order_1", None)
        .await
        .data();
    service
        .api("POST", "/blocks", Some(json!({ "a": 1 })))
        .await
        .data();
    service
        .control("POST", "clock/advance", Some(json!({ "by": "2d" })))
        .await;
    let answer = service.control("POST", "reset", None).await;
    assert_eq!((answer.status.as_u16(), answer.body.len()), (204, 0));
    let mut after = service.control("GET", "snapshot", None).await.json();
    after["deliveries"] = before["deliveries"].clone();
    assert_eq!(
        after["seed"]["dataModels"][1]["rows"],
        before["seed"]["dataModels"][1]["rows"]
    );
    assert_eq!(after["seed"]["switches"], before["seed"]["switches"]);
    assert_eq!(after["seed"]["blocks"], before["seed"]["blocks"]);
    let passed = |snapshot: &Value| snapshot["clockOffsetMs"].as_u64().unwrap();
    assert_eq!(passed(&after), passed(&before));
    // The same requests get the same ids again.
    let id = |answer: Value| answer["id"].as_str().unwrap().to_owned();
    let first = id(service.api("POST", "/blocks", Some(json!({}))).await.data());
    service.control("POST", "reset", None).await;
    assert_eq!(
        id(service.api("POST", "/blocks", Some(json!({}))).await.data()),
        first
    );
}

#[tokio::test]
async fn a_snapshot_is_restored_and_a_wrong_one_changes_nothing() {
    let service = Service::orders().await;
    let body = json!({ "values": { "prop_customer": "Kept" } });
    service
        .api("POST", "/datamodels/dm_orders/rows", Some(body))
        .await
        .data();
    let snapshot = service.control("GET", "snapshot", None).await.json();
    service
        .api("DELETE", "/datamodels/dm_orders", None)
        .await
        .data();
    let mut wrong = snapshot.clone();
    wrong["seed"]["dataModels"][0]["rows"] = json!(7);
    service
        .control("PUT", "snapshot", Some(wrong))
        .await
        .refused(400, "VALIDATION_ERROR");
    service
        .get("/datamodels/dm_orders")
        .await
        .refused(404, "NOT_FOUND");
    assert_eq!(
        service
            .control("PUT", "snapshot", Some(snapshot.clone()))
            .await
            .status,
        204
    );
    let rows = service.get("/datamodels/dm_orders/rows").await.data();
    assert_eq!(rows[3]["data"]["prop_customer"], "Kept");
    let again = service.control("GET", "snapshot", None).await.json();
    assert_eq!(again["seed"], snapshot["seed"]);
    // In another emulator too.
    let other = Service::seeded("{}").await;
    assert_eq!(
        other
            .control("PUT", "snapshot", Some(snapshot.clone()))
            .await
            .status,
        204
    );
    assert_eq!(
        other.control("GET", "snapshot", None).await.json()["seed"],
        snapshot["seed"]
    );
}

#[tokio::test]
async fn events_of_every_type_are_emitted_with_the_data_given() {
    let service = Service::orders().await;
    for name in [
        "page.created",
        "page.updated",
        "page.deleted",
        "member.invited",
        "member.removed",
        "row.created",
    ] {
        let event = json!({ "type": name, "data": { "pageId": "page_1" } });
        let event = service.control("POST", "events", Some(event)).await.data();
        assert_eq!(
            (&event["type"], &event["data"]),
            (&json!(name), &json!({ "pageId": "page_1" }))
        );
        assert!(event["id"].as_str().unwrap().starts_with("evt_"));
        assert_eq!(event["workspaceId"], "ws_1");
    }
    let message = service
        .control("POST", "events", Some(json!({ "type": "page.opened" })))
        .await
        .refused(400, "VALIDATION_ERROR");
    assert!(message.contains("page.updated"), "{message}");
}

#[tokio::test]
async fn the_page_changes_rows_without_a_key() {
    let service = Service::orders().await;
    let body = json!({ "values": { "prop_customer": "By hand" } });
    let row = service
        .control("POST", "models/dm_orders/rows", Some(body.clone()))
        .await
        .data();
    let path = format!("models/dm_orders/rows/{}", row["id"].as_str().unwrap());
    service.control("PATCH", &path, Some(body)).await.data();
    service.control("DELETE", &path, None).await.data();
    let page = service
        .control("GET", "models/dm_orders/rows?limit=2", None)
        .await
        .json();
    assert_eq!(
        (
            page["data"].as_array().unwrap().len(),
            &page["meta"]["total"]
        ),
        (2, &json!(3))
    );
    let requests = service.control("GET", "requests", None).await.data();
    assert_eq!(requests, json!([]), "none of them is a request of the API");
}

#[tokio::test]
async fn requests_of_the_api_are_listed_with_their_rate() {
    let service = Service::orders().await;
    service.get("/datamodels?search=x").await.data();
    service
        .api_as("tk_test_read", "POST", "/blocks", None)
        .await
        .refused(403, "FORBIDDEN");
    let requests = service.control("GET", "requests", None).await.data();
    assert_eq!(
        (&requests[0]["path"], &requests[0]["key"]),
        (&json!("/api/v1/datamodels?search=x"), &json!("admin"))
    );
    assert_eq!(
        (&requests[1]["status"], &requests[1]["code"]),
        (&json!(403), &json!("FORBIDDEN"))
    );
    assert_eq!(requests[1]["rate"]["remaining"], 999);
}
