//! *Authentication* and *Scopes*.

use hookgate::clock::{Clock, UnixSeconds};
use serde_json::json;

use crate::Service;
use crate::support::Answer;

const ALL: [&str; 3] = ["read", "write", "admin"];

#[tokio::test]
async fn a_missing_or_malformed_key_is_401_and_the_message_states_the_forms() {
    let service = Service::orders().await;
    for header in [
        None,
        Some(""),
        Some("Bearer"),
        Some("Bearer "),
        Some("tk_test_admin"),
        Some("bearer tk_test_admin"),
        Some("Basic tk_test_admin"),
        Some("Bearer  tk_test_admin"),
        Some("Bearer sk_test_admin"),
        Some("Bearer tk_test_unknown"),
    ] {
        let headers = header.map(|header| ("authorization", header));
        let answer = service
            .raw("GET", "/api/v1/datamodels", headers.as_slice(), "")
            .await;
        let message = answer.refused(401, "UNAUTHORIZED");
        for form in ["Bearer", "tk_live_", "tk_test_", "mcp_"] {
            assert!(message.contains(form), "{header:?}: {message}");
        }
    }
}

#[tokio::test]
async fn all_three_forms_of_keys_are_accepted() {
    let keys: Vec<_> = ["tk_live_a", "tk_test_a", "mcp_a"]
        .iter()
        .map(|key| json!({ "name": key, "key": key, "scope": "read" }))
        .collect();
    let service = Service::seeded(&json!({ "keys": keys }).to_string()).await;
    for key in ["tk_live_a", "tk_test_a", "mcp_a"] {
        service.api_as(key, "GET", "/datamodels", None).await.data();
    }
}

#[tokio::test]
async fn a_disabled_key_and_an_expired_one_are_401() {
    let service = Service::orders().await;
    let list = || service.api_as("tk_test_read", "GET", "/datamodels", None);
    let disable = async |is_disabled: bool| {
        let disabled = json!({ "disabled": is_disabled });
        service.patch("keys/read", disabled).await.data()
    };
    disable(true).await;
    let message = list().await.refused(401, "UNAUTHORIZED");
    assert!(message.contains("disabled"), "{message}");
    disable(false).await;
    list().await.data();
}

#[tokio::test]
async fn an_expiry_follows_the_emulators_time() {
    let service = Service::orders().await;
    let now = service.emulator.clock().now().as_i64();
    let key = json!({ "name": "30 days", "scope": "read", "expiresAt": null });
    let made = service.post("keys", key).await.data();
    let list = || service.api_as(made["key"].as_str().unwrap(), "GET", "/datamodels", None);
    list().await.data();
    let later = hookgate_testing::iso8601(UnixSeconds::new(now + 30 * 86_400));
    let later = json!({ "expiresAt": later });
    service.patch("keys/30%20days", later).await.data();
    list().await.data();
    service.advance("30d").await;
    let message = list().await.refused(401, "UNAUTHORIZED");
    assert!(message.contains("expired"), "{message}");
}

#[tokio::test]
async fn a_new_key_is_shown_once() {
    let service = Service::orders().await;
    for form in ["tk_live_", "tk_test_", "mcp_"] {
        let body = json!({ "name": form, "scope": "write", "form": form });
        let made = service.post("keys", body).await.data();
        let key = made["key"].as_str().unwrap().to_owned();
        assert!(key.starts_with(form) && key.len() > form.len() + 10);
        assert!(!service.get("keys").await.text().contains(&key));
        service
            .api_as(&key, "GET", "/datamodels", None)
            .await
            .data();
    }
    let again = json!({ "name": "mcp_", "scope": "write" });
    service.post("keys", again).await.refused(409, "CONFLICT");
}

/// The scope column of the endpoint overview, with the scope list's for properties.
fn endpoints() -> Vec<(&'static str, &'static str, &'static str)> {
    vec![
        ("GET", "/blocks", "read"),
        ("GET", "/blocks/block_1", "read"),
        ("POST", "/blocks", "write"),
        ("PATCH", "/blocks/block_1", "write"),
        ("DELETE", "/blocks/block_1", "write"),
        ("GET", "/datamodels", "read"),
        ("GET", "/datamodels/dm_orders", "read"),
        ("POST", "/datamodels", "write"),
        ("PATCH", "/datamodels/dm_orders", "write"),
        ("PATCH", "/datamodels/dm_orders/properties", "admin"),
        ("GET", "/datamodels/dm_orders/rows", "read"),
        ("POST", "/datamodels/dm_orders/rows", "write"),
        ("PATCH", "/datamodels/dm_orders/rows/row_order_1", "write"),
        ("DELETE", "/datamodels/dm_orders/rows/row_order_1", "write"),
        ("GET", "/workflows", "read"),
        ("GET", "/workflows/wf_1", "read"),
        ("POST", "/workflows", "write"),
        ("PATCH", "/workflows/wf_1", "write"),
        ("POST", "/workflows/wf_1/run", "write"),
        ("DELETE", "/workflows/wf_1", "write"),
        ("GET", "/stats", "read"),
        ("GET", "/stats/stat_1", "read"),
        ("POST", "/stats", "write"),
        ("PATCH", "/stats/stat_1", "write"),
        ("POST", "/stats/stat_1/run", "write"),
        ("DELETE", "/stats/stat_1", "write"),
        ("GET", "/pages/page_1", "read"),
        ("DELETE", "/datamodels/dm_orders", "write"),
    ]
}

async fn called(service: &Service, key: &str, method: &str, path: &str) -> Answer {
    let body = match (method, path) {
        (_, "/datamodels") => json!({ "title": format!("Made by {key}") }),
        (_, path) if path.contains("/rows") => json!({ "values": {} }),
        (_, path) if path.ends_with("/properties") => json!({}),
        _ => json!({ "title": "Another" }),
    };
    let has_body = matches!(method, "POST" | "PATCH");
    service
        .api_as(key, method, path, has_body.then_some(body))
        .await
}

#[tokio::test]
async fn scopes_are_cumulative_and_403_names_the_scope() {
    for own in ALL {
        let service = Service::orders().await;
        for (method, path, needed) in endpoints() {
            let answer = called(&service, &format!("tk_test_{own}"), method, path).await;
            let place = |scope| ALL.iter().position(|other| *other == scope);
            if place(own) < place(needed) {
                let message = answer.refused(403, "FORBIDDEN");
                assert!(
                    message.contains(&format!("scope {needed}")),
                    "{method} {path}: {message}"
                );
            } else {
                answer.data();
            }
        }
    }
}

#[tokio::test]
async fn a_switch_puts_data_model_writes_under_admin() {
    let service = Service::orders().await;
    service.switch("dataModelScope", "admin").await;
    for (method, path) in [
        ("POST", "/datamodels"),
        ("PATCH", "/datamodels/dm_orders"),
        ("DELETE", "/datamodels/dm_orders"),
    ] {
        called(&service, "tk_test_write", method, path)
            .await
            .refused(403, "FORBIDDEN");
        called(&service, "tk_test_admin", method, path).await.data();
    }
}
