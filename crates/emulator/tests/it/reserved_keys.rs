//! Bodies with keys that serde_json reserves for itself. Read as a `serde_json::Value`, each text
//! below one is parsed again, until the stack overflows and the process aborts.

use serde_json::json;

use crate::Service;
use crate::support::KEY;

const RAW: &str = "$serde_json::private::RawValue";

/// Some 36 KB: texts in texts, 128 levels of them.
fn nested() -> String {
    let mut json = "1".to_owned();
    for _ in 0..70 {
        // In this form a quote grows by five bytes with each text around it, and not to twice its
        // length.
        let text = json.replace('\\', "\\u005c").replace('"', "\\u0022");
        json = format!(
            "{}{{\"{RAW}\":\"{text}\"}}{}",
            "[".repeat(120),
            "]".repeat(120)
        );
    }
    json
}

/// What breaks a reader that looks for such keys by parsing the text.
fn behind() -> [String; 4] {
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    [
        "1".to_owned(),
        "1e999".to_owned(),
        r#""\ud800""#.to_owned(),
        deep,
    ]
}

#[tokio::test]
async fn a_body_with_reserved_keys_is_400_wherever_json_is_taken() {
    let service = Service::orders().await;
    let values = |json: &str, end: &str| {
        format!(r#"{{"values": {{"prop_customer": {json}}}, "behind": {end}}}"#)
    };
    for end in behind() {
        for nested in [nested(), nested().replace('$', "\\u0024")] {
            for (method, path) in [
                ("POST", "/api/v1/datamodels/dm_orders/rows"),
                ("POST", "/api/v1/blocks"),
                ("POST", "/api/v1/datamodels"),
                ("PATCH", "/api/v1/datamodels/dm_orders/properties"),
                ("POST", "/_emulator/members"),
                ("POST", "/_emulator/pages"),
                ("POST", "/_emulator/events"),
                ("POST", "/_emulator/faults"),
                ("POST", "/_emulator/triggers"),
                ("PUT", "/_emulator/snapshot"),
            ] {
                let answer = service
                    .raw(method, path, &[KEY], values(&nested, &end))
                    .await;
                let message = answer.invalid();
                assert!(message.contains("$serde_json"), "{path}: {message}");
            }
        }
    }
    service.get("/datamodels").await.data();
}

/// Without any key. A body that is not JSON is a text, so only such a key is refused.
#[tokio::test]
async fn a_triggers_call_with_reserved_keys_is_400() {
    let answers = json!({ "mode": "afterCompletion", "template": "{{trigger.body}}" });
    let seed = json!({ "triggers": [{ "workflowId": "wf_1", "response": answers }] });
    let service = Service::seeded(&seed.to_string()).await;
    for end in behind() {
        let body = format!(r#"{{"a": {}, "behind": {end}}}"#, nested());
        let answer = service.raw("POST", "/webhooks/wf_1", &[], body).await;
        answer.invalid();
    }
    let body = format!("{RAW}: {}", behind()[3]);
    let answer = service
        .raw("POST", "/webhooks/wf_1", &[], body.clone())
        .await;
    assert_eq!((answer.status.as_u16(), answer.json()), (200, json!(body)));
}

/// Names become keys of events, which the log of deliveries shows as JSON.
#[tokio::test]
async fn no_property_has_a_reserved_name() {
    let service = Service::orders().await;
    for (field, other) in [("id", "name"), ("name", "id")] {
        let property = json!({ field: RAW, other: "x", "type": "TEXT" });
        let add = json!({ "add": [property] });
        let path = "/datamodels/dm_orders/properties";
        let message = service.patch(path, add).await.invalid();
        let is_named = message.contains(field) && message.contains("$serde_json");
        assert!(is_named, "{message}");
        let model = json!({ "id": "dm_1", "title": "A", "properties": [property] });
        let seed = json!({ "dataModels": [model] }).to_string();
        let refused = hookgate_emulator::Seed::parse(&seed).unwrap_err();
        assert!(refused.to_string().contains("$serde_json"), "{refused}");
    }
}

/// The payload is a text in a snapshot, so that it is the JSON that it was, byte for byte.
#[tokio::test]
async fn a_snapshots_payload_with_reserved_keys_is_shown_as_text() {
    let service = Service::orders().await;
    service.subscribe_nobody();
    service.delete_order();
    let emulator = &service.emulator;
    let mut snapshot: serde_json::Value = serde_json::from_str(&emulator.snapshot()).unwrap();
    snapshot["deliveries"][0]["payload"] = nested().into();
    emulator.restore(&snapshot.to_string()).unwrap();
    assert_eq!(emulator.deliveries()[0]["payload"], nested());
}
