//! The inspector: the page of a program that has received deliveries itself.

use std::sync::Arc;

use hookgate_emulator::{DeliveryFilter, Inspected, Inspector};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::Service;

struct Two;

impl Inspected for Two {
    fn deliveries(&self, filter: &DeliveryFilter<'_>, limit: usize) -> (Vec<Value>, Value) {
        let is = |wanted: Option<&str>, value: &Value| wanted.is_none_or(|wanted| value == wanted);
        let two = [
            json!({ "id": "2" }),
            json!({ "id": "1", "state": "refused" }),
        ];
        let wanted = two.into_iter().filter(|one| {
            is(filter.state, &one["state"])
                && is(filter.event_type, &one["eventType"])
                && is(filter.search, &one["id"])
        });
        (wanted.take(limit).collect(), json!({ "kept": 2 }))
    }

    fn receiver(&self) -> Value {
        json!({ "url": "http://127.0.0.1:1/webhooks" })
    }

    fn delivery(&self, id: &str) -> Option<Value> {
        (id == "1").then(|| json!({ "id": id }))
    }

    fn explain(&self, id: &str) -> Option<Value> {
        (id == "1").then(|| json!({ "authentic": true }))
    }

    fn replay(&self, id: &str) -> Option<Result<Value, String>> {
        match id {
            "1" => Some(Ok(json!({ "told": "delivered again" }))),
            "2" => Some(Err("not authentic".to_owned())),
            _ => None,
        }
    }

    fn send(&self, id: &str, body: bytes::Bytes) -> Option<Result<Value, String>> {
        (id == "evt 1/a+b@1").then(|| Ok(json!({ "told": format!("{} bytes sent", body.len()) })))
    }
}

#[tokio::test]
async fn an_inspector_serves_its_page_and_the_deliveries_to_this_machine_alone() {
    let (inspector, service) = inspector().await;
    let ask = async |method, path: &str, headers: &[(&str, &str)]| {
        let url = format!("{}{path}", inspector.url());
        service.raw(method, &url, headers, "").await
    };
    let list = "/_listen/deliveries";
    let refused = json!({ "id": "1", "state": "refused" });
    for (method, path, expected) in [
        ("GET", "", json!([{ "id": "2" }, refused])),
        ("GET", "?limit=1", json!([{ "id": "2" }])),
        ("GET", "?type=row.", json!([])),
        ("GET", "?search=2&type=", json!([])),
        ("GET", "?search=2", json!([{ "id": "2" }])),
        ("GET", "/1", json!({ "id": "1" })),
        ("POST", "/1/explain", json!({ "authentic": true })),
        ("POST", "/1/replay", json!({ "told": "delivered again" })),
    ] {
        let answer = ask(method, &format!("{list}{path}"), &[]).await;
        assert_eq!(answer.data(), expected, "{path}");
    }
    let one = ask("GET", &format!("{list}?state=refused&limit=1"), &[]).await;
    assert_eq!(
        one.json(),
        json!({ "data": [refused], "meta": { "kept": 2 } })
    );
    let again = ask("POST", &format!("{list}/2/replay"), &[]).await;
    again.refused(409, "CONFLICT");
    for (method, path) in [
        ("POST", "/_listen/deliveries/3/replay"),
        ("GET", "/_listen/deliveries/3"),
        ("POST", "/_listen/deliveries/3/explain"),
        ("POST", list),
        ("GET", "/_emulator/clock"),
        ("GET", "/_page/none.js"),
    ] {
        ask(method, path, &[]).await.not_found();
    }
    for path in ["/", list, "/_listen/stream"] {
        let answer = ask("GET", path, &[("host", "example.com")]).await;
        answer.refused(403, "FORBIDDEN");
    }
    let page = ask("GET", "/", &[]).await;
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert!(page.text().contains("/_page/listen.js"));
}

/// With a client.
async fn inspector() -> (Inspector, Service) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let inspector = Inspector::start(listener, Arc::new(Two)).unwrap();
    (inspector, Service::orders().await)
}

#[tokio::test]
async fn a_changed_body_is_sent_for_the_token_alone() {
    let (inspector, service) = inspector().await;
    let signing = inspector.signing_url();
    let token = signing.split("token=").nth(1).unwrap();
    assert!(token.len() == 32 && !format!("{inspector:?}").contains(token));
    let ask = async |method, path: &str, token: &str| {
        let url = format!("{}/_listen/{path}", inspector.url());
        let bearer = format!("Bearer {token}");
        let header = (!token.is_empty()).then_some(("authorization", &*bearer));
        service
            .raw(method, &url, header.as_slice(), "changed")
            .await
    };
    let send = "deliveries/evt%201%2Fa%2Bb%401/send";
    for wrong in ["", "made_up", &"0".repeat(32)] {
        let refused = ask("POST", send, wrong).await;
        refused.refused(403, "FORBIDDEN");
        let receiver = ask("GET", "receiver", wrong).await.data();
        assert_eq!(receiver["maySign"], false);
    }
    let sent = ask("POST", send, token).await.data();
    assert_eq!(sent, json!({ "told": "7 bytes sent" }));
    let receiver = ask("GET", "receiver", token).await.data();
    assert_eq!(receiver["maySign"], true);
    assert_eq!(receiver["url"], "http://127.0.0.1:1/webhooks");
    ask("POST", "deliveries/1/send", token).await.not_found();
}

#[tokio::test]
async fn an_inspector_that_others_reach_is_refused() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let refused = Inspector::start(listener, Arc::new(Two)).unwrap_err();
    assert!(refused.to_string().contains("other machines"), "{refused}");
}
