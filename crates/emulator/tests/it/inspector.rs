//! The inspector: the page of a program that has received deliveries itself.

use std::sync::Arc;

use hookgate_emulator::{DeliveryFilter, Inspected, Inspector};
use http::Request;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::Service;

struct Two;

impl Inspected for Two {
    fn deliveries(&self, filter: &DeliveryFilter<'_>, limit: usize) -> (Vec<Value>, Value) {
        let two = [
            json!({ "id": "2" }),
            json!({ "id": "1", "state": "refused" }),
        ];
        let wanted = two
            .into_iter()
            .filter(|one| filter.state.is_none_or(|state| one["state"] == state))
            .filter(|one| {
                filter
                    .event_type
                    .is_none_or(|part| one["eventType"] == part)
            })
            .filter(|one| filter.search.is_none_or(|words| one["id"] == words));
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
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let inspector = Inspector::start(listener, Arc::new(Two)).unwrap();
    let service = Service::orders().await;
    let ask = async |method: &str, path: &str, host: Option<&str>| {
        let url = format!("{}{path}", inspector.url());
        let mut request = Request::builder().method(method).uri(url);
        if let Some(host) = host {
            request = request.header("host", host);
        }
        service.send(request.body(String::new()).unwrap()).await
    };
    let list = "/_listen/deliveries";
    assert_eq!(
        ask("GET", list, None).await.data(),
        json!([{ "id": "2" }, { "id": "1", "state": "refused" }])
    );
    let refused = format!("{list}?state=refused&limit=1");
    assert_eq!(
        ask("GET", &refused, None).await.json(),
        json!({ "data": [{ "id": "1", "state": "refused" }], "meta": { "kept": 2 } })
    );
    assert_eq!(
        ask("GET", &format!("{list}?limit=1"), None).await.data(),
        json!([{ "id": "2" }])
    );
    assert_eq!(
        ask("GET", &format!("{list}/1"), None).await.data(),
        json!({ "id": "1" })
    );
    assert_eq!(
        ask("POST", &format!("{list}/1/explain"), None).await.data(),
        json!({ "authentic": true })
    );
    for (query, ids) in [
        ("type=row.", json!([])),
        ("search=2&type=", json!([])),
        ("search=2", json!([{ "id": "2" }])),
    ] {
        let found = ask("GET", &format!("{list}?{query}"), None).await.data();
        assert_eq!(found, ids, "{query}");
    }
    assert_eq!(
        ask("POST", &format!("{list}/1/replay"), None).await.data(),
        json!({ "told": "delivered again" })
    );
    ask("POST", &format!("{list}/2/replay"), None)
        .await
        .refused(409, "CONFLICT");
    for (method, path) in [
        ("POST", "/_listen/deliveries/3/replay"),
        ("GET", "/_listen/deliveries/3"),
        ("POST", "/_listen/deliveries/3/explain"),
        ("POST", list),
        ("GET", "/_emulator/clock"),
        ("GET", "/_page/none.js"),
    ] {
        ask(method, path, None).await.refused(404, "NOT_FOUND");
    }
    for path in ["/", list, "/_listen/stream"] {
        ask("GET", path, Some("example.com"))
            .await
            .refused(403, "FORBIDDEN");
    }
    let page = ask("GET", "/", None).await;
    assert!(
        page.headers["content-security-policy"]
            .to_str()
            .unwrap()
            .starts_with("default-src 'none'")
    );
    assert!(String::from_utf8_lossy(&page.body).contains("/_page/listen.js"));
}

#[tokio::test]
async fn a_changed_body_is_sent_for_the_token_alone() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let inspector = Inspector::start(listener, Arc::new(Two)).unwrap();
    let service = Service::orders().await;
    let signing = inspector.signing_url();
    let token = signing.split("token=").nth(1).unwrap();
    assert!(token.len() == 32 && !format!("{inspector:?}").contains(token));
    let ask = async |method: &str, path: &str, token: &str| {
        let url = format!("{}/_listen/{path}", inspector.url());
        let mut request = Request::builder().method(method).uri(url);
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        service
            .send(request.body("changed".to_owned()).unwrap())
            .await
    };
    let send = "deliveries/evt%201%2Fa%2Bb%401/send";
    for wrong in ["", "made_up", &"0".repeat(32)] {
        let refused = ask("POST", send, wrong).await;
        refused.refused(403, "FORBIDDEN");
        let receiver = ask("GET", "receiver", wrong).await.data();
        assert_eq!(receiver["maySign"], false);
    }
    assert_eq!(
        ask("POST", send, token).await.data(),
        json!({ "told": "7 bytes sent" })
    );
    let receiver = ask("GET", "receiver", token).await.data();
    assert_eq!(
        (&receiver["maySign"], &receiver["url"]),
        (&json!(true), &json!("http://127.0.0.1:1/webhooks"))
    );
    ask("POST", "deliveries/1/send", token)
        .await
        .refused(404, "NOT_FOUND");
}

#[tokio::test]
async fn an_inspector_that_others_reach_is_refused() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let refused = Inspector::start(listener, Arc::new(Two)).unwrap_err();
    assert!(refused.to_string().contains("other machines"), "{refused}");
}
