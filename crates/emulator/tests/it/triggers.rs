//! *Inbound workflow trigger*.

use http::Request;
use serde_json::{Value, json};

use crate::Service;
use crate::support::Answer;

async fn with(trigger: Value) -> Service {
    Service::seeded(&json!({ "triggers": [trigger] }).to_string()).await
}

async fn call(
    service: &Service,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut request = Request::builder()
        .method(method)
        .uri(format!("{}{path}", service.emulator.url()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    service.send(request.body(body.to_owned()).unwrap()).await
}

#[tokio::test]
async fn a_call_is_answered_with_the_template_of_the_last_node() {
    let service = with(json!({
        "workflowId": "wf_1",
        "response": { "mode": "afterCompletion", "status": 201, "template": {
            "deep": "{{trigger.body.a.b}}", "whole": "{{trigger.body}}", "header": "{{trigger.headers.x-source}}",
            "query": "{{trigger.query.y}}", "text": "Dear {{trigger.body.name}}!",
        } },
    }))
    .await;
    let body = r#"{"a": {"b": [1, 2]}, "name": "Ada"}"#;
    let answer = call(
        &service,
        "POST",
        "/webhooks/wf_1?y=7",
        &[("X-Source", "shop")],
        body,
    )
    .await;
    assert_eq!(answer.status, 201);
    let json = answer.json();
    assert_eq!(
        (&json["deep"], &json["header"], &json["query"]),
        (&json!([1, 2]), &json!("shop"), &json!("7"))
    );
    assert_eq!(
        (&json["text"], &json["whole"]["name"]),
        (&json!("Dear Ada!"), &json!("Ada"))
    );
}

#[tokio::test]
async fn a_call_without_the_secret_is_refused() {
    for (auth, wrong, right) in [
        (
            json!({ "mode": "header", "name": "X-API-Key", "value": "k" }),
            ("x-api-key", "other"),
            ("x-api-key", "k"),
        ),
        (
            json!({ "mode": "basic", "username": "u", "password": "p" }),
            ("authorization", "Basic dTpx"),
            ("authorization", "Basic dTpw"),
        ),
    ] {
        let service = with(json!({ "workflowId": "wf_1", "auth": auth })).await;
        call(&service, "POST", "/webhooks/wf_1", &[], "{}")
            .await
            .refused(401, "UNAUTHORIZED");
        call(&service, "POST", "/webhooks/wf_1", &[wrong], "{}")
            .await
            .refused(401, "UNAUTHORIZED");
        assert_eq!(
            call(&service, "POST", "/webhooks/wf_1", &[right], "{}")
                .await
                .status,
            200
        );
        service
            .control(
                "PATCH",
                "switches",
                Some(json!({ "triggerRefusal": "403" })),
            )
            .await
            .data();
        call(&service, "POST", "/webhooks/wf_1", &[], "{}")
            .await
            .refused(403, "FORBIDDEN");
    }
}

#[tokio::test]
async fn each_method_and_a_path_of_its_own_are_taken_and_nothing_is_deduplicated() {
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        let service = with(json!({ "workflowId": "wf_1", "method": method, "path": "/hooks/own", "response": { "mode": "immediate", "status": 202 } })).await;
        for path in ["/hooks/own", "/webhooks/wf_1"] {
            for _ in 0..2 {
                assert_eq!(
                    call(&service, method, path, &[], "").await.status,
                    202,
                    "{method} {path}"
                );
            }
        }
        let calls = service.control("GET", "triggers/calls", None).await.data();
        assert_eq!(calls.as_array().unwrap().len(), 4);
        call(&service, "GET", "/webhooks/wf_2", &[], "")
            .await
            .refused(404, "NOT_FOUND");
    }
}
