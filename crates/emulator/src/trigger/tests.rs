use std::sync::Arc;

use hookgate::clock::{ManualClock, UnixSeconds};

use super::*;
use crate::time::SigningTime;

fn triggers(list: Value) -> Triggers {
    let clock = Arc::new(ManualClock::at(UnixSeconds::new(1_795_253_400)));
    let clock = EmulatorClock::new(clock, SigningTime::Real);
    let triggers = Triggers::new(Switches::default(), Live::new(), clock);
    let list: Vec<Trigger> = serde_json::from_value(list).unwrap();
    for trigger in &list {
        trigger.check().unwrap();
    }
    triggers.set(list, Vec::new());
    triggers
}

fn call(
    triggers: &Triggers,
    method: &str,
    target: &str,
    headers: &[(&'static str, &str)],
    body: &str,
) -> Option<(u16, Value)> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, HeaderValue::from_str(value).unwrap());
    }
    let method = method.parse().unwrap();
    let body = Bytes::copy_from_slice(body.as_bytes());
    let answer = triggers.call(&method, path, query, &map, &body)?;
    let json = match answer.body().is_empty() {
        true => Value::Null,
        false => serde_json::from_slice(answer.body()).unwrap(),
    };
    Some((answer.status().as_u16(), json))
}

#[test]
fn the_trigger_of_the_seed_answers_with_the_result_of_its_last_node() {
    let triggers = triggers(json!([{
        "workflowId": "wf_1", "method": "POST", "path": "/webhooks/wf_1",
        "auth": { "mode": "header", "name": "X-API-Key", "value": "k" },
        "response": { "mode": "afterCompletion", "status": 201, "template": {
            "got": "{{trigger.body.a}}", "by": "{{trigger.headers.user-agent}}", "tags": "{{trigger.query.tag}}", "all": "{{trigger.body}}",
        } },
    }]));
    let headers = [("x-api-key", "k"), ("user-agent", "curl/8")];
    let answer = call(
        &triggers,
        "POST",
        "/webhooks/wf_1?tag=a&tag=b%20c",
        &headers,
        r#"{"a":[1]}"#,
    );
    let result = json!({ "got": [1], "by": "curl/8", "tags": "b c", "all": { "a": [1] } });
    assert_eq!(answer, Some((201, result)));
    let (status, body) = call(&triggers, "POST", "/webhooks/wf_1", &headers, "no JSON").unwrap();
    assert_eq!(
        (status, &body["all"], &body["got"]),
        (201, &json!("no JSON"), &Value::Null)
    );
    assert_eq!(
        call(&triggers, "POST", "/webhooks/wf_1", &headers, "")
            .unwrap()
            .1["all"],
        Value::Null
    );
}

#[test]
fn immediate_is_the_default_and_answers_200_each_time() {
    let triggers = triggers(
        json!([{ "workflowId": "wf_1" }, { "workflowId": "wf_2", "response": { "status": 202 } }, { "workflowId": "wf_3", "response": { "status": 204 } }]),
    );
    for _ in 0..2 {
        let (status, body) = call(&triggers, "POST", "/webhooks/wf_1", &[], "{}").unwrap();
        assert_eq!((status, &body["data"]["workflowId"]), (200, &json!("wf_1")));
    }
    assert_eq!(triggers.calls().len(), 2, "nothing is deduplicated");
    assert_eq!(
        call(&triggers, "POST", "/webhooks/wf_2", &[], "")
            .unwrap()
            .0,
        202
    );
    assert_eq!(
        call(&triggers, "POST", "/webhooks/wf_3", &[], ""),
        Some((204, Value::Null))
    );
}

#[test]
fn method_and_path_choose_the_trigger() {
    let triggers = triggers(json!([
        { "workflowId": "wf_1", "method": "GET", "path": "/webhooks/shop/orders" },
        { "workflowId": "wf_1", "method": "DELETE", "response": { "status": 299 } },
    ]));
    assert_eq!(
        call(&triggers, "GET", "/webhooks/shop/orders", &[], "")
            .unwrap()
            .0,
        200
    );
    assert_eq!(
        call(&triggers, "GET", "/webhooks/wf_1", &[], "").unwrap().0,
        200
    );
    assert_eq!(
        call(&triggers, "DELETE", "/webhooks/wf_1", &[], "")
            .unwrap()
            .0,
        299
    );
    let (status, body) = call(&triggers, "POST", "/webhooks/wf_1", &[], "").unwrap();
    assert_eq!((status, &body["error"]["code"]), (404, &json!("NOT_FOUND")));
    for path in [
        "/webhooks/wf_2",
        "/webhooks/",
        "/webhooks",
        "/webhooks/wf_1/",
        "/",
    ] {
        assert_eq!(call(&triggers, "GET", path, &[], ""), None, "{path}");
    }
}

#[test]
fn a_call_without_the_secret_is_refused_as_the_switch_says() {
    let basic = json!({ "mode": "basic", "username": "u", "password": "p" });
    let triggers = triggers(
        json!([{ "workflowId": "wf_1", "auth": basic, "response": { "mode": "afterCompletion", "template": "done" } }]),
    );
    let (status, body) = call(&triggers, "POST", "/webhooks/wf_1", &[], "{}").unwrap();
    assert_eq!(
        (status, &body["error"]["code"]),
        (401, &json!("UNAUTHORIZED"))
    );
    triggers
        .switches
        .set("triggerRefusal", &json!("403"))
        .unwrap();
    let (status, body) = call(&triggers, "POST", "/webhooks/wf_1", &[], "{}").unwrap();
    assert_eq!((status, &body["error"]["code"]), (403, &json!("FORBIDDEN")));
    let right = [("authorization", "Basic dTpw")];
    assert_eq!(
        call(&triggers, "POST", "/webhooks/wf_1", &right, "{}"),
        Some((200, json!("done")))
    );
    // The log has all three, without the secret.
    let calls = triggers.calls();
    let statuses: Vec<_> = calls.iter().map(|call| call.status).collect();
    assert_eq!(statuses, [200, 403, 401]);
    assert!(!format!("{calls:?}").contains("dTpw"));
    assert!(
        !serde_json::to_string(&triggers.list()[0].shown())
            .unwrap()
            .contains("\"p\"")
    );
}

#[test]
fn the_log_is_bounded() {
    let triggers = triggers(json!([{ "workflowId": "wf_1" }]));
    let body = "ä".repeat(100_000);
    for number in 0..600 {
        let target = format!("/webhooks/wf_1?n={number}");
        call(
            &triggers,
            "POST",
            &target,
            &[("x-long", &"x".repeat(20_000))],
            &body,
        )
        .unwrap();
    }
    let calls = triggers.calls();
    assert_eq!((calls.len(), &*calls[0].query), (500, "n=599"));
    assert!(calls[0].body.len() <= 8 << 10 && calls[0].headers.is_empty());
}

#[test]
fn settings_are_checked() {
    for (json, field) in [
        (json!({ "method": "HEAD" }), "method"),
        (json!({ "path": "webhooks" }), "path"),
        (json!({ "path": "/" }), "path"),
        (json!({ "path": "/api/v1/rows" }), "path"),
        (json!({ "path": "/_emulator" }), "path"),
        (json!({ "path": "/a?b" }), "path"),
        (
            json!({ "auth": { "mode": "header", "name": "two words", "value": "k" } }),
            "auth",
        ),
        (json!({ "response": { "status": 100 } }), "response"),
        (json!({ "response": { "status": 600 } }), "response"),
    ] {
        let mut whole = json!({ "workflowId": "wf_1" });
        whole
            .as_object_mut()
            .unwrap()
            .extend(json.as_object().unwrap().clone());
        let trigger: Trigger = serde_json::from_value(whole).unwrap();
        let (at, told) = trigger.check().unwrap_err();
        assert!(at == field && told.contains("expected"), "{json}: {told}");
    }
    for json in [
        json!({}),
        json!({ "workflowId": "a", "x": 1 }),
        json!({ "workflowId": "a", "response": { "mode": "later" } }),
        json!({ "workflowId": "a", "auth": { "mode": "basic" } }),
    ] {
        assert!(serde_json::from_value::<Trigger>(json).is_err());
    }
}
