//! *Response envelope* and *Errors*.

use crate::Service;
use crate::support::{KEY, fields};

#[tokio::test]
async fn every_answer_is_json_in_the_envelope() {
    let service = Service::orders().await;
    for (path, expected) in [
        ("/datamodels/dm_orders", "data"),
        ("/datamodels", "data meta"),
        ("/nothing", "error"),
    ] {
        let answer = service.get(path).await;
        assert_eq!(answer.headers["content-type"], "application/json");
        assert_eq!(fields(&answer.json()), expected);
    }
}

#[tokio::test]
async fn malformed_json_is_a_validation_error() {
    let service = Service::orders().await;
    let path = "/api/v1/datamodels/dm_orders/rows";
    let control = "{\"values\":{\"prop_customer\":\"\u{1}\"}}";
    for body in ["", "{", "{\"values\":{}} x", "[]", "null", control] {
        service.raw("POST", path, &[KEY], body).await.invalid();
    }
}

#[tokio::test]
async fn a_body_beyond_8_mib_is_refused() {
    let service = Service::orders().await;
    let body = format!("{{\"text\":\"{}\"}}", "x".repeat(8 << 20));
    let answer = service.raw("POST", "/api/v1/blocks", &[KEY], body).await;
    let message = answer.invalid();
    assert!(message.contains("longer than"), "{message}");
}

#[tokio::test]
async fn what_does_not_exist_is_404_with_its_name() {
    let service = Service::orders().await;
    for (method, path, named) in [
        ("GET", "/datamodels/dm_x", "dm_x"),
        ("GET", "/datamodels/dm_x/rows", "dm_x"),
        ("POST", "/datamodels/dm_x/rows", "dm_x"),
        ("DELETE", "/datamodels/dm_orders/rows/row_x", "row_x"),
        ("GET", "/keys", "/api/v1/keys"),
        ("PUT", "/datamodels", "PUT /api/v1/datamodels"),
    ] {
        let body = (method == "POST").then(|| serde_json::json!({ "values": {} }));
        let message = service.ask(method, path, body).await.not_found();
        assert!(message.contains(named), "{message}");
    }
}
