//! *Inbound workflow trigger*.

use serde_json::{Value, json};

use crate::Service;
use crate::support::count;

async fn with(trigger: Value) -> Service {
    Service::seeded(&json!({ "triggers": [trigger] }).to_string()).await
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
    let source = [("X-Source", "shop")];
    let answer = service
        .raw("POST", "/webhooks/wf_1?y=7", &source, body)
        .await;
    assert_eq!(answer.status, 201);
    let whole: Value = serde_json::from_str(body).unwrap();
    let expected = json!({ "deep": [1, 2], "whole": whole, "header": "shop", "query": "7", "text": "Dear Ada!" });
    assert_eq!(answer.json(), expected);
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
        let call = async |headers: &[(&str, &str)]| {
            service.raw("POST", "/webhooks/wf_1", headers, "{}").await
        };
        call(&[]).await.refused(401, "UNAUTHORIZED");
        call(&[wrong]).await.refused(401, "UNAUTHORIZED");
        assert_eq!(call(&[right]).await.status, 200);
        service.switch("triggerRefusal", "403").await;
        call(&[]).await.refused(403, "FORBIDDEN");
    }
}

#[tokio::test]
async fn each_method_and_a_path_of_its_own_are_taken_and_nothing_is_deduplicated() {
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        let service = with(json!({ "workflowId": "wf_1", "method": method, "path": "/hooks/own", "response": { "mode": "immediate", "status": 202 } })).await;
        for path in [
            "/hooks/own",
            "/webhooks/wf_1",
            "/hooks/own",
            "/webhooks/wf_1",
        ] {
            let answer = service.raw(method, path, &[], "").await;
            assert_eq!(answer.status, 202, "{method} {path}");
        }
        assert_eq!(count(&service.get("triggers/calls").await.data()), 4);
        let none = service.raw("GET", "/webhooks/wf_2", &[], "").await;
        none.not_found();
    }
}
