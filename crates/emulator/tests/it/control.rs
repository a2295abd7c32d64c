//! The control API: each endpoint in its fixed form.

use hookgate::clock::Clock;
use hookgate_emulator::{Emulator, Seed, StartError};
use serde_json::{Value, json};

use crate::Service;
use crate::support::{BY_HAND, count, each, fields};

#[tokio::test]
async fn the_table_of_controls_is_answered() {
    let service = Service::orders().await;
    let listed = service.controls().await;
    for fixed in
        "POST reset, GET clock, POST clock/advance, GET deliveries, POST deliveries/*/redeliver, \
        GET faults, POST faults, DELETE faults, POST events/test, POST events, GET subscriptions, \
        POST subscriptions, PATCH subscriptions/*, DELETE subscriptions/*, GET keys, POST keys, \
        PATCH keys/*, GET switches, PATCH switches, GET snapshot, PUT snapshot"
            .split(", ")
    {
        assert!(listed.iter().any(|other| other == fixed), "{fixed}");
    }
    service.get("nothing").await.not_found();
    service.ask("PUT", "reset", None).await.not_found();
}

// fault V4: the emulator's time is told in whole seconds beside the times of attempts in milliseconds
#[tokio::test]
async fn the_clock_is_shown_and_advanced() {
    let service = Service::orders().await;
    let before = service.emulator.clock().now().as_i64();
    let now = service.get("clock").await.json();
    assert_eq!(fields(&now), "now");
    let text = now["now"].as_str().unwrap();
    assert!(text.ends_with('Z') && text.len() == "2026-01-01T00:00:00.000Z".len());
    let answer = service.advance("26h36m").await.json();
    assert_eq!(answer["attempts"], 0);
    let passed = service.emulator.clock().now().as_i64() - before;
    assert!((95_760..95_770).contains(&passed), "{passed}");
    let now = hookgate::event::Date::parse(answer["now"].as_str().unwrap()).unwrap();
    assert!(now.unix_seconds().unwrap().as_i64() - before >= 95_760);
    for by in [
        json!("soon"),
        json!("5"),
        json!("5w"),
        json!(""),
        json!(60),
        json!("-5m"),
        Value::Null,
    ] {
        let refused = service.advance(by.clone()).await.invalid();
        assert!(refused.contains("`by`"), "{by}: {refused}");
    }
}

#[tokio::test]
async fn switches_are_shown_and_set_by_name() {
    let service = Service::orders().await;
    let switches = service.get("switches").await.data();
    for (name, switch) in switches.as_object().unwrap() {
        assert_eq!(fields(switch), "about value values");
        for value in switch["values"].as_array().unwrap() {
            let set = service.patch("switches", json!({ name: value })).await;
            assert_eq!(&set.data()[name]["value"], value);
        }
    }
    let wrong = json!({ "rateLimit": "off", "listOrder": "random" });
    let message = service.patch("switches", wrong).await.invalid();
    let is_named = message.contains("listOrder") && message.contains("newest");
    assert!(is_named, "{message}");
}

#[tokio::test]
async fn reset_returns_to_the_seed() {
    let service = Service::orders().await;
    let before = service.get("snapshot").await.json();
    service.switch("rateLimit", "off").await;
    let row = "/datamodels/dm_orders/rows/row_order_1";
    service.delete(row).await.data();
    service.post("/blocks", json!({ "a": 1 })).await.data();
    service.advance("2d").await;
    let answer = service.post("reset", None).await;
    assert_eq!((answer.status.as_u16(), answer.body.len()), (204, 0));
    let after = service.get("snapshot").await.json();
    for part in "/dataModels/1/rows /switches /blocks /clockOffsetMs".split(' ') {
        assert!(before.pointer(part).is_some(), "{part}");
        assert_eq!(after.pointer(part), before.pointer(part), "{part}");
    }
    // The same requests get the same ids again.
    let made = async || service.post("/blocks", json!({})).await.data()["id"].clone();
    let first = made().await;
    service.post("reset", None).await;
    assert_eq!(made().await, first);
}

#[tokio::test]
async fn a_snapshot_is_restored_and_a_wrong_one_changes_nothing() {
    let service = Service::orders().await;
    let restored = async |service: &Service, snapshot: &Value| {
        let put = service.put("snapshot", snapshot.clone()).await;
        assert_eq!(put.status, 204, "{put:?}");
        service.get("snapshot").await.json()
    };
    let body = json!({ "values": { "prop_customer": "Kept" } });
    let made = service.post("/datamodels/dm_orders/rows", body).await;
    made.data();
    let snapshot = service.get("snapshot").await.json();
    let models = &snapshot["dataModels"];
    service.delete("/datamodels/dm_orders").await.data();
    let mut wrong = snapshot.clone();
    wrong["dataModels"][0]["rows"] = json!(7);
    service.put("snapshot", wrong).await.invalid();
    service.get("/datamodels/dm_orders").await.not_found();
    let again = restored(&service, &snapshot).await;
    assert_eq!(&again["dataModels"], models);
    let rows = service.get("/datamodels/dm_orders/rows").await.data();
    assert_eq!(rows[3]["data"]["prop_customer"], "Kept");
    // In another emulator too.
    let other = Service::seeded("{}").await;
    let there = restored(&other, &snapshot).await;
    assert_eq!(&there["dataModels"], models);
    // A seed is restored in the same way, and a snapshot starts as a seed does.
    let there = restored(&other, &json!({ "members": [{ "id": "usr_9" }] })).await;
    assert_eq!(there["members"][0]["id"], "usr_9");
    assert_eq!(there["dataModels"], json!([]));
    let third = Service::seeded(&snapshot.to_string()).await;
    let there = third.get("snapshot").await.json();
    assert_eq!(&there["dataModels"], models);
}

#[tokio::test]
async fn events_of_every_type_are_emitted_with_the_data_given() {
    let service = Service::orders().await;
    for name in "page.created page.updated page.deleted member.invited member.removed row.created"
        .split(' ')
    {
        let data = json!({ "pageId": "page_1" });
        let event = json!({ "type": name, "data": data });
        let event = service.post("events", event).await.data();
        assert_eq!((&event["type"], &event["data"]), (&json!(name), &data));
        assert!(event["id"].as_str().unwrap().starts_with("evt_"));
        assert_eq!(event["workspaceId"], "ws_1");
    }
    let unknown = json!({ "type": "page.opened" });
    let message = service.post("events", unknown).await.invalid();
    assert!(message.contains("page.updated"), "{message}");
}

#[tokio::test]
async fn the_page_changes_rows_without_a_key() {
    let service = Service::orders().await;
    let rows = "models/dm_orders/rows";
    let body = json!({ "values": { "prop_customer": "By hand" } });
    let row = service.post(rows, body.clone()).await.data();
    let path = format!("{rows}/{}", row["id"].as_str().unwrap());
    service.patch(&path, body).await.data();
    service.delete(&path).await.data();
    let page = service.get(&format!("{rows}?limit=2")).await.json();
    assert_eq!(count(&page["data"]), 2);
    assert_eq!(page["meta"]["total"], 3);
    let requests = service.get("requests").await.data();
    assert_eq!(requests, json!([]), "none of them is a request of the API");
}

#[tokio::test]
async fn requests_of_the_api_are_listed_with_their_rate() {
    let service = Service::orders().await;
    service.get("/datamodels?search=x").await.data();
    let refused = service
        .api_as("tk_test_read", "POST", "/blocks", None)
        .await;
    refused.refused(403, "FORBIDDEN");
    let requests = service.get("requests").await.data();
    let (first, second) = (&requests[0], &requests[1]);
    assert_eq!(first["path"], "/api/v1/datamodels?search=x");
    assert_eq!(first["key"], "admin");
    assert_eq!(second["status"], 403);
    assert_eq!(second["code"], "FORBIDDEN");
    assert_eq!(second["rate"]["remaining"], 999);
    assert!(second.get("answer").is_none(), "{requests}");
    let one = service.get("requests/2").await.data();
    assert_eq!((&one["number"], &one["path"]), (&json!(2), &second["path"]));
    let answer = one["answer"]["body"].as_str().unwrap();
    assert!(answer.contains("FORBIDDEN"), "{answer}");
    service.get("requests/3").await.not_found();
}

#[tokio::test]
async fn the_tier_is_set_and_decides_the_rate() {
    let service = Service::orders().await;
    let limit = async || {
        let page = service.get("/pages/page_1").await;
        page.number("x-ratelimit-limit")
    };
    assert_eq!(limit().await, 1_000);
    for (tier, expected) in [("premium", 60), ("standard", 60), ("enterprise", 1_000)] {
        let shown = service.patch("workspace", json!({ "tier": tier })).await;
        assert_eq!(shown.data()["tier"], tier);
        assert_eq!(limit().await, expected, "{tier}");
    }
    let wrong = service.patch("workspace", json!({ "tier": "gold" })).await;
    let message = wrong.invalid();
    assert!(
        message.contains("standard, premium, enterprise"),
        "{message}"
    );
}

/// The events that were emitted, the newest first: a subscription takes them, though no receiver is
/// there.
async fn emitted(service: &Service) -> Vec<Value> {
    each(&service.get("deliveries").await.data(), "payload")
}

#[tokio::test]
async fn members_and_pages_are_changed_with_their_events() {
    let service = Service::orders().await;
    service.subscribe_nobody();
    let actor = json!({ "id": "usr_1", "name": "Bo Lindqvist", "email": "bo@example.com" });

    let body = || json!({ "name": "Cy", "email": "cy@example.com" });
    let member = service.post("members", body()).await.data();
    let id = member["id"].as_str().unwrap();
    assert!(id.starts_with("usr_"), "{member}");
    let event = emitted(&service).await.remove(0);
    assert_eq!(event["type"], "member.invited");
    let invited = json!({ "member": member, "invitedBy": actor });
    assert_eq!(event["data"], invited);
    let twice = service.post("members", body()).await;
    assert!(twice.refused(409, "CONFLICT").contains("cy@example.com"));
    let nameless = service.post("members", json!({ "name": "" })).await;
    nameless.invalid();
    let path = format!("members/{id}");
    service.delete(&path).await.data();
    assert_eq!(emitted(&service).await[0]["type"], "member.removed");
    service.delete(&path).await.not_found();

    let page = json!({ "title": "News", "blocks": ["block_1"] });
    let page = service.post("pages", page).await.data();
    let path = format!("pages/{}", page["id"].as_str().unwrap());
    assert_eq!(service.get(&format!("/{path}")).await.data(), page);
    let patch = json!({ "title": "Old news", "id": "page_other" });
    let changed = service.patch(&path, patch).await.data();
    assert_eq!(changed["id"], page["id"]);
    assert_eq!(changed["title"], "Old news");
    let events = emitted(&service).await;
    let created = json!({ "page": page, "createdBy": actor });
    assert_eq!(events[1]["data"], created);
    let updated = json!({ "page": changed, "updatedBy": actor });
    assert_eq!(events[0]["data"], updated);
    service.delete(&path).await.data();
    assert_eq!(emitted(&service).await[0]["type"], "page.deleted");
    for method in ["PATCH", "DELETE"] {
        service.ask(method, &path, json!({})).await.not_found();
    }
    let pages = service.get("pages").await.data();
    assert_eq!(pages, json!([{ "id": "page_1", "title": "Home" }]));
}

#[tokio::test]
async fn triggers_are_added_changed_and_deleted_at_run_time() {
    let service = Service::orders().await;
    let status = async |method| {
        let answer = service.raw(method, "/webhooks/wf_2", &[], "").await;
        answer.status.as_u16()
    };
    assert_eq!(status("POST").await, 404);
    let auth = json!({ "mode": "header", "name": "X-Key", "value": "made_up_secret" });
    let body = json!({ "workflowId": "wf_2", "auth": auth });
    let added = service.post("triggers", body.clone()).await;
    assert!(!added.text().contains("made_up_secret"));
    assert_eq!(added.data()["workflowId"], "wf_2");
    assert_eq!(status("POST").await, 401);
    let twice = service.post("triggers", body).await.invalid();
    assert!(twice.contains("each method once"), "{twice}");
    let get = json!({ "workflowId": "wf_2", "method": "GET" });
    service.post("triggers", get).await.data();
    assert_eq!(status("GET").await, 200);

    let path = "triggers/wf_2";
    let patch = json!({ "response": { "status": 202 } });
    let get = format!("{path}?method=GET");
    service.patch(&get, patch).await.data();
    let patch = json!({ "auth": { "mode": "none" } });
    service.patch(path, patch).await.data();
    assert_eq!((status("POST").await, status("GET").await), (200, 202));
    for wrong in [
        json!({ "method": "TRACE" }),
        json!({ "method": "GET" }), // the other trigger has it
        json!({ "path": "/_emulator/keys" }),
        json!({ "workflowId": "" }),
        json!({ "unknown": 1 }),
    ] {
        service.patch(path, wrong).await.invalid();
    }
    assert_eq!((status("POST").await, status("GET").await), (200, 202));
    service.delete(path).await.data();
    assert_eq!(status("GET").await, 404);
    service.delete(path).await.not_found();
}

// fault F36: a snapshot of the emulator loses the hits of faults, the logs, the rate windows, or what the attempts of a delivery were
#[tokio::test]
async fn a_snapshot_holds_everything_and_another_emulator_goes_on_from_it() {
    let service = Service::by_hand(Seed::orders()).await;
    service.subscribe_nobody();
    // A changed body, a used rate window, a drawn fault, a trigger's call, time, and a retry that
    // waits.
    service.emulator.fault_first("altered-byte", 1).unwrap();
    service.emulator.fault_seeded("status-500", 3).unwrap();
    let rows = "/datamodels/dm_orders/rows";
    let body = json!({ "values": { "prop_customer": "Kept" } });
    service.post(rows, body).await;
    service.raw("POST", "/webhooks/wf_1", &[], "").await;
    service.switch("retrySignatures", "first").await;
    service.emulator.settled().await;
    service.advance("90s").await;
    let left = async |service: &Service| {
        let page = service.get("/pages/page_1").await;
        page.number("x-ratelimit-remaining")
    };
    assert_eq!(left(&service).await, 999, "a new window");

    let snapshot = service.get("snapshot").await.json();
    let other = Service::by_hand(Seed::empty()).await;
    let put = other.put("snapshot", snapshot.clone()).await;
    assert_eq!(put.status, 204, "{put:?}");
    assert_eq!(other.get("snapshot").await.json(), snapshot);
    for path in "deliveries requests triggers/calls faults clock keys".split(' ') {
        let [here, there] = [service.get(path).await, other.get(path).await];
        assert_eq!(here.json(), there.json(), "{path}");
    }
    // The body that went out, not the payload.
    let delivery = &other.emulator.deliveries()[0];
    let path = format!("deliveries/{}", delivery["id"].as_str().unwrap());
    let detail = other.get(&path).await.data();
    let body = &detail["attempts"][0]["request"]["body"];
    assert_ne!(*body, detail["payload"].to_string());
    // Both go on alike: the window, the draws of the fault, the ids, and the retry at its time.
    for service in [&service, &other] {
        assert_eq!(left(service).await, 998);
        for (by, attempts) in [("4m29s", 0), ("1s", 1)] {
            assert_eq!(service.advance(by).await.json()["attempts"], attempts);
        }
    }
    let made = |service| Service::post(service, rows, json!({ "values": {} }));
    assert_eq!(made(&service).await.body, made(&other).await.body);

    // No form of a seed, and a wrong part: told, and nothing has changed.
    let before = other.get("snapshot").await.json();
    let with = |part: &str, value: Value| {
        let mut wrong = snapshot.clone();
        wrong[part] = value;
        wrong
    };
    let faults = json!({ "entries": [{ "fault": "none", "first": 1 }], "calls": 0 });
    let away = json!([{ "id": "a", "url": "http://example.com/" }]);
    let rates = json!({ "tk": { "since": 0 } });
    for (wrong, told) in [
        (json!([2]), "expected a JSON object"),
        (with("faults", faults), "unknown fault"),
        (with("subscriptions", away), "not on this machine"),
        (with("rates", rates), "missing field `used`"),
    ] {
        let message = other.put("snapshot", wrong).await.invalid();
        assert!(message.contains(told), "{message}");
        assert!(other.get("snapshot").await.json() == before, "{told}");
    }
}

#[tokio::test]
async fn reset_returns_to_the_faults_and_switches_of_the_start() {
    let builder = Emulator::builder(Seed::orders())
        .fault_first("status-500", 1)
        .fault_seeded("stale", 7)
        .switch("attempts", "6");
    let service = Service::of(builder.start().await.unwrap());
    let start = service.get("faults").await.data();
    let first = json!({ "fault": "status-500", "first": 1, "seed": null, "hits": 0, "on": true });
    assert_eq!(start[0], first);
    let failed = service.get("/datamodels").await;
    failed.refused(500, "INTERNAL_ERROR");
    service.delete("faults").await.data();
    service.switch("attempts", 5).await;
    service.post("reset", None).await;
    assert_eq!(service.get("faults").await.data(), start);
    let switches = service.get("switches").await.data();
    assert_eq!(switches["attempts"]["value"], "6");

    let seed = r#"{"subscriptions": [{"id": "wh_1", "url": "http://example.com/", "secret": "whsec_made_up_for_local_tries"}]}"#;
    let away = Emulator::builder(Seed::parse(seed).unwrap()).start().await;
    assert!(matches!(away, Err(StartError::Seed(told)) if told.contains("wh_1")));
    for builder in [
        Emulator::builder(Seed::empty()).fault_first("none", 1),
        Emulator::builder(Seed::empty()).switch("none", "on"),
    ] {
        let told = builder.start().await.unwrap_err();
        assert!(matches!(told, StartError::Setting(_)), "{told:?}");
    }
}

#[tokio::test]
async fn absurd_durations_are_refused_or_end_at_the_end_of_the_clock() {
    let service = Service::by_hand(Seed::orders()).await;
    for by in ["3651d", "99999999999999999999h", "-1s", "", "1e9s", "5 m"] {
        service.advance(by).await.invalid();
    }
    assert_eq!(service.emulator.now().as_i64(), BY_HAND);
    service.subscribe_nobody();
    service.emulator.advance(std::time::Duration::MAX).await;
    let end = service.get("clock").await.json();
    // A retry that would be due behind the end never comes, and nothing waits for it.
    service.delete_order();
    service.emulator.settled().await;
    for _ in 0..2 {
        let advanced = service.advance("3650d").await.json();
        assert_eq!(advanced["now"], end["now"]);
        assert_eq!(advanced["attempts"], 0);
    }
    service.post("reset", None).await;
    assert_eq!(service.emulator.now().as_i64(), BY_HAND);
}

#[tokio::test]
async fn the_logs_keep_the_newest_1000_requests_and_500_calls_of_triggers() {
    let service = Service::orders().await;
    service.switch("rateLimit", "off").await;
    for number in 0..1_020 {
        service.get(&format!("/pages/{number}")).await;
    }
    let log = service.get("requests").await.data();
    assert_eq!(count(&log), 1_000);
    assert_eq!(log[0]["path"], "/api/v1/pages/20");
    let long = service.get(&format!("/pages/{}", "x".repeat(20_000))).await;
    long.not_found();
    let log = service.get("requests").await.data();
    assert_eq!(log[999]["path"].as_str().unwrap().len(), 2_000);
    for number in 0..510 {
        let path = format!("/webhooks/wf_1?number={number}");
        service.raw("POST", &path, &[], "x".repeat(20_000)).await;
    }
    let calls = service.get("triggers/calls").await.data();
    assert_eq!(count(&calls), 500);
    assert_eq!(calls[499]["query"], "number=10");
    assert_eq!(calls[0]["body"].as_str().unwrap().len(), 8 << 10);
}
