//! *Response envelope* and *Errors*.

use http::Request;

use crate::Service;

#[tokio::test]
async fn every_answer_is_json_in_the_envelope() {
    let service = Service::orders().await;
    for (path, fields) in [
        ("/datamodels/dm_orders", vec!["data"]),
        ("/datamodels", vec!["data", "meta"]),
        ("/nothing", vec!["error"]),
    ] {
        let answer = service.get(path).await;
        assert_eq!(answer.headers["content-type"], "application/json");
        let json = answer.json();
        assert_eq!(json.as_object().unwrap().keys().collect::<Vec<_>>(), fields);
    }
}

#[tokio::test]
async fn malformed_json_is_a_validation_error() {
    let service = Service::orders().await;
    for body in [
        "",
        "{",
        "{\"values\":{}} x",
        "[]",
        "null",
        "{\"values\":{\"prop_customer\":\"\u{1}\"}}",
    ] {
        let request = Request::post(format!(
            "{}/datamodels/dm_orders/rows",
            service.emulator.base_url()
        ))
        .header("authorization", "Bearer tk_test_admin")
        .body(body.to_owned())
        .unwrap();
        service.send(request).await.refused(400, "VALIDATION_ERROR");
    }
}

#[tokio::test]
async fn a_body_beyond_8_mib_is_refused() {
    let service = Service::orders().await;
    let request = Request::post(format!("{}/blocks", service.emulator.base_url()))
        .header("authorization", "Bearer tk_test_admin")
        .body(format!("{{\"text\":\"{}\"}}", "x".repeat(8 << 20)))
        .unwrap();
    let message = service.send(request).await.refused(400, "VALIDATION_ERROR");
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
        let message = service
            .api(method, path, body)
            .await
            .refused(404, "NOT_FOUND");
        assert!(message.contains(named), "{message}");
    }
}
