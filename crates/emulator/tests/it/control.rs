//! The control API: each endpoint in its fixed form.

use hookgate::clock::{Clock, ManualClock, UnixSeconds};
use hookgate_emulator::{Emulator, Seed, StartError};
use serde_json::{Value, json};

use crate::Service;
use crate::deliveries::SECRET;

#[tokio::test]
async fn the_table_of_controls_is_answered() {
    let service = Service::orders().await;
    let listed = service.controls().await;
    for fixed in [
        "POST reset",
        "GET clock",
        "POST clock/advance",
        "GET deliveries",
        "POST deliveries/*/redeliver",
        "GET faults",
        "POST faults",
        "DELETE faults",
        "POST events/test",
        "POST events",
        "GET subscriptions",
        "POST subscriptions",
        "PATCH subscriptions/*",
        "DELETE subscriptions/*",
        "GET keys",
        "POST keys",
        "PATCH keys/*",
        "GET switches",
        "PATCH switches",
        "GET snapshot",
        "PUT snapshot",
    ] {
        assert!(listed.iter().any(|other| other == fixed), "{fixed}");
    }
    service
        .control("GET", "nothing", None)
        .await
        .refused(404, "NOT_FOUND");
    service
        .control("PUT", "reset", None)
        .await
        .refused(404, "NOT_FOUND");
}

// fault V4: the emulator's time is told in whole seconds beside the times of attempts in milliseconds
#[tokio::test]
async fn the_clock_is_shown_and_advanced() {
    let service = Service::orders().await;
    let before = service.emulator.clock().now().as_i64();
    let now = service.control("GET", "clock", None).await.json();
    assert_eq!(now.as_object().unwrap().len(), 1);
    let text = now["now"].as_str().unwrap();
    assert!(text.ends_with('Z') && text.len() == "2026-01-01T00:00:00.000Z".len());
    let answer = service
        .control("POST", "clock/advance", Some(json!({ "by": "26h36m" })))
        .await
        .json();
    assert_eq!(answer["attempts"], 0);
    let passed = service.emulator.clock().now().as_i64() - before;
    assert!((95_760..95_770).contains(&passed), "{passed}");
    let now = hookgate::event::Date::parse(answer["now"].as_str().unwrap()).unwrap();
    assert!(now.unix_seconds().unwrap().as_i64() - before >= 95_760);
    for by in [
        json!("soon"),
        json!(""),
        json!("5"),
        json!("5w"),
        json!(60),
        json!("-5m"),
        Value::Null,
    ] {
        let refused = service
            .control("POST", "clock/advance", Some(json!({ "by": by })))
            .await;
        assert!(
            refused.refused(400, "VALIDATION_ERROR").contains("`by`"),
            "{by}"
        );
    }
}

#[tokio::test]
async fn switches_are_shown_and_set_by_name() {
    let service = Service::orders().await;
    let switches = service.control("GET", "switches", None).await.data();
    for (name, switch) in switches.as_object().unwrap() {
        let fields: Vec<_> = switch.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["about", "value", "values"]);
        for value in switch["values"].as_array().unwrap() {
            let set = service
                .control("PATCH", "switches", Some(json!({ name: value })))
                .await
                .data();
            assert_eq!(&set[name]["value"], value);
        }
    }
    let wrong = json!({ "rateLimit": "off", "listOrder": "random" });
    let message = service
        .control("PATCH", "switches", Some(wrong))
        .await
        .refused(400, "VALIDATION_ERROR");
    assert!(
        message.contains("listOrder") && message.contains("newest"),
        "{message}"
    );
}

#[tokio::test]
async fn reset_returns_to_the_seed() {
    let service = Service::orders().await;
    let before = service.control("GET", "snapshot", None).await.json();
    service
        .control("PATCH", "switches", Some(json!({ "rateLimit": "off" })))
        .await
        .data();
    service
        .api("DELETE", "/datamodels/dm_orders/rows/row_order_1", None)
        .await
        .data();
    service
        .api("POST", "/blocks", Some(json!({ "a": 1 })))
        .await
        .data();
    service
        .control("POST", "clock/advance", Some(json!({ "by": "2d" })))
        .await;
    let answer = service.control("POST", "reset", None).await;
    assert_eq!((answer.status.as_u16(), answer.body.len()), (204, 0));
    let mut after = service.control("GET", "snapshot", None).await.json();
    after["deliveries"] = before["deliveries"].clone();
    assert_eq!(
        after["dataModels"][1]["rows"],
        before["dataModels"][1]["rows"]
    );
    assert_eq!(after["switches"], before["switches"]);
    assert_eq!(after["blocks"], before["blocks"]);
    let passed = |snapshot: &Value| snapshot["clockOffsetMs"].as_u64().unwrap();
    assert_eq!(passed(&after), passed(&before));
    // The same requests get the same ids again.
    let id = |answer: Value| answer["id"].as_str().unwrap().to_owned();
    let first = id(service.api("POST", "/blocks", Some(json!({}))).await.data());
    service.control("POST", "reset", None).await;
    assert_eq!(
        id(service.api("POST", "/blocks", Some(json!({}))).await.data()),
        first
    );
}

#[tokio::test]
async fn a_snapshot_is_restored_and_a_wrong_one_changes_nothing() {
    let service = Service::orders().await;
    let body = json!({ "values": { "prop_customer": "Kept" } });
    service
        .api("POST", "/datamodels/dm_orders/rows", Some(body))
        .await
        .data();
    let snapshot = service.control("GET", "snapshot", None).await.json();
    service
        .api("DELETE", "/datamodels/dm_orders", None)
        .await
        .data();
    let mut wrong = snapshot.clone();
    wrong["dataModels"][0]["rows"] = json!(7);
    service
        .control("PUT", "snapshot", Some(wrong))
        .await
        .refused(400, "VALIDATION_ERROR");
    service
        .get("/datamodels/dm_orders")
        .await
        .refused(404, "NOT_FOUND");
    assert_eq!(
        service
            .control("PUT", "snapshot", Some(snapshot.clone()))
            .await
            .status,
        204
    );
    let rows = service.get("/datamodels/dm_orders/rows").await.data();
    assert_eq!(rows[3]["data"]["prop_customer"], "Kept");
    let again = service.control("GET", "snapshot", None).await.json();
    assert_eq!(again["dataModels"], snapshot["dataModels"]);
    // In another emulator too.
    let other = Service::seeded("{}").await;
    assert_eq!(
        other
            .control("PUT", "snapshot", Some(snapshot.clone()))
            .await
            .status,
        204
    );
    let there = other.control("GET", "snapshot", None).await.json();
    assert_eq!(there["dataModels"], snapshot["dataModels"]);
    // A seed is restored in the same way, and a snapshot starts as a seed does.
    let seed = json!({ "members": [{ "id": "usr_9" }] });
    let put = other.control("PUT", "snapshot", Some(seed)).await;
    assert_eq!(put.status, 204);
    let there = other.control("GET", "snapshot", None).await.json();
    assert_eq!(
        (&there["members"][0]["id"], &there["dataModels"]),
        (&json!("usr_9"), &json!([]))
    );
    let third = Service::seeded(&snapshot.to_string()).await;
    let there = third.control("GET", "snapshot", None).await.json();
    assert_eq!(there["dataModels"], snapshot["dataModels"]);
}

#[tokio::test]
async fn events_of_every_type_are_emitted_with_the_data_given() {
    let service = Service::orders().await;
    for name in [
        "page.created",
        "page.updated",
        "page.deleted",
        "member.invited",
        "member.removed",
        "row.created",
    ] {
        let event = json!({ "type": name, "data": { "pageId": "page_1" } });
        let event = service.control("POST", "events", Some(event)).await.data();
        assert_eq!(
            (&event["type"], &event["data"]),
            (&json!(name), &json!({ "pageId": "page_1" }))
        );
        assert!(event["id"].as_str().unwrap().starts_with("evt_"));
        assert_eq!(event["workspaceId"], "ws_1");
    }
    let message = service
        .control("POST", "events", Some(json!({ "type": "page.opened" })))
        .await
        .refused(400, "VALIDATION_ERROR");
    assert!(message.contains("page.updated"), "{message}");
}

#[tokio::test]
async fn the_page_changes_rows_without_a_key() {
    let service = Service::orders().await;
    let body = json!({ "values": { "prop_customer": "By hand" } });
    let row = service
        .control("POST", "models/dm_orders/rows", Some(body.clone()))
        .await
        .data();
    let path = format!("models/dm_orders/rows/{}", row["id"].as_str().unwrap());
    service.control("PATCH", &path, Some(body)).await.data();
    service.control("DELETE", &path, None).await.data();
    let page = service
        .control("GET", "models/dm_orders/rows?limit=2", None)
        .await
        .json();
    assert_eq!(
        (
            page["data"].as_array().unwrap().len(),
            &page["meta"]["total"]
        ),
        (2, &json!(3))
    );
    let requests = service.control("GET", "requests", None).await.data();
    assert_eq!(requests, json!([]), "none of them is a request of the API");
}

#[tokio::test]
async fn requests_of_the_api_are_listed_with_their_rate() {
    let service = Service::orders().await;
    service.get("/datamodels?search=x").await.data();
    service
        .api_as("tk_test_read", "POST", "/blocks", None)
        .await
        .refused(403, "FORBIDDEN");
    let requests = service.control("GET", "requests", None).await.data();
    assert_eq!(
        (&requests[0]["path"], &requests[0]["key"]),
        (&json!("/api/v1/datamodels?search=x"), &json!("admin"))
    );
    assert_eq!(
        (&requests[1]["status"], &requests[1]["code"]),
        (&json!(403), &json!("FORBIDDEN"))
    );
    assert_eq!(requests[1]["rate"]["remaining"], 999);
    assert!(requests[1].get("answer").is_none(), "{requests}");
    let one = service.control("GET", "requests/2", None).await.data();
    assert_eq!(
        (&one["number"], &one["path"]),
        (&json!(2), &requests[1]["path"])
    );
    let answer = one["answer"]["body"].as_str().unwrap();
    assert!(
        answer.contains(requests[1]["code"].as_str().unwrap()),
        "{answer}"
    );
    service
        .control("GET", "requests/3", None)
        .await
        .refused(404, "NOT_FOUND");
}

#[tokio::test]
async fn the_tier_is_set_and_decides_the_rate() {
    let service = Service::orders().await;
    let limit = async || {
        service
            .get("/pages/page_1")
            .await
            .number("x-ratelimit-limit")
    };
    assert_eq!(limit().await, 1_000);
    for (tier, expected) in [("premium", 60), ("standard", 60), ("enterprise", 1_000)] {
        let body = json!({ "tier": tier });
        let shown = service.control("PATCH", "workspace", Some(body)).await;
        assert_eq!(shown.data()["tier"], tier);
        assert_eq!(limit().await, expected, "{tier}");
    }
    let wrong = json!({ "tier": "gold" });
    let refused = service.control("PATCH", "workspace", Some(wrong)).await;
    let message = refused.refused(400, "VALIDATION_ERROR");
    assert!(
        message.contains("standard, premium, enterprise"),
        "{message}"
    );
}

/// The events that were emitted, the newest first: a subscription takes them, though no receiver is there.
async fn emitted(service: &Service) -> Vec<Value> {
    let log = service.control("GET", "deliveries", None).await.data();
    let log = log.as_array().unwrap().iter();
    log.map(|delivery| delivery["payload"].clone()).collect()
}

#[tokio::test]
async fn members_and_pages_are_changed_with_their_events() {
    let service = Service::orders().await;
    let url = "http://127.0.0.1:9/";
    service.emulator.subscribe(url, SECRET).unwrap();
    let actor = json!({ "id": "usr_1", "name": "Bo Lindqvist", "email": "bo@example.com" });

    let body = || Some(json!({ "name": "Cy", "email": "cy@example.com" }));
    let member = service.control("POST", "members", body()).await.data();
    assert!(
        member["id"].as_str().unwrap().starts_with("usr_"),
        "{member}"
    );
    let event = emitted(&service).await.remove(0);
    assert_eq!(event["type"], "member.invited");
    assert_eq!(
        event["data"],
        json!({ "member": member, "invitedBy": actor })
    );
    let twice = service.control("POST", "members", body()).await;
    assert!(twice.refused(409, "CONFLICT").contains("cy@example.com"));
    let nameless = service
        .control("POST", "members", Some(json!({ "name": "" })))
        .await;
    nameless.refused(400, "VALIDATION_ERROR");
    let path = format!("members/{}", member["id"].as_str().unwrap());
    service.control("DELETE", &path, None).await.data();
    assert_eq!(emitted(&service).await[0]["type"], "member.removed");
    let gone = service.control("DELETE", &path, None).await;
    gone.refused(404, "NOT_FOUND");

    let page = json!({ "title": "News", "blocks": ["block_1"] });
    let page = service.control("POST", "pages", Some(page)).await.data();
    let id = page["id"].as_str().unwrap();
    assert_eq!(service.get(&format!("/pages/{id}")).await.data(), page);
    let path = format!("pages/{id}");
    let patch = json!({ "title": "Old news", "id": "page_other" });
    let changed = service.control("PATCH", &path, Some(patch)).await.data();
    assert_eq!(
        (&changed["id"], &changed["title"]),
        (&page["id"], &json!("Old news"))
    );
    let events = emitted(&service).await;
    assert_eq!(
        events[1]["data"],
        json!({ "page": page, "createdBy": actor })
    );
    assert_eq!(
        events[0]["data"],
        json!({ "page": changed, "updatedBy": actor })
    );
    service.control("DELETE", &path, None).await.data();
    assert_eq!(emitted(&service).await[0]["type"], "page.deleted");
    for method in ["PATCH", "DELETE"] {
        let gone = service.control(method, &path, Some(json!({}))).await;
        gone.refused(404, "NOT_FOUND");
    }
    let pages = service.control("GET", "pages", None).await.data();
    assert_eq!(pages, json!([{ "id": "page_1", "title": "Home" }]));
}

#[tokio::test]
async fn triggers_are_added_changed_and_deleted_at_run_time() {
    let service = Service::orders().await;
    let status = async |method: &str| {
        let url = format!("{}/webhooks/wf_2", service.emulator.url());
        let request = http::Request::builder().method(method).uri(url);
        let answer = service.send(request.body(String::new()).unwrap()).await;
        answer.status.as_u16()
    };
    assert_eq!(status("POST").await, 404);
    let auth = json!({ "mode": "header", "name": "X-Key", "value": "made_up_secret" });
    let body = json!({ "workflowId": "wf_2", "auth": auth });
    let added = service
        .control("POST", "triggers", Some(body.clone()))
        .await;
    assert!(!String::from_utf8_lossy(&added.body).contains("made_up_secret"));
    assert_eq!(added.data()["workflowId"], "wf_2");
    assert_eq!(status("POST").await, 401);
    let twice = service.control("POST", "triggers", Some(body)).await;
    assert!(
        twice
            .refused(400, "VALIDATION_ERROR")
            .contains("each method once")
    );
    let get = json!({ "workflowId": "wf_2", "method": "GET" });
    service.control("POST", "triggers", Some(get)).await.data();
    assert_eq!(status("GET").await, 200);

    let patch = json!({ "response": { "status": 202 } });
    let path = "triggers/wf_2?method=GET";
    service.control("PATCH", path, Some(patch)).await.data();
    let patch = json!({ "auth": { "mode": "none" } });
    service
        .control("PATCH", "triggers/wf_2", Some(patch))
        .await
        .data();
    assert_eq!((status("POST").await, status("GET").await), (200, 202));
    for wrong in [
        json!({ "method": "TRACE" }),
        json!({ "method": "GET" }), // the other trigger has it
        json!({ "path": "/_emulator/keys" }),
        json!({ "workflowId": "" }),
        json!({ "unknown": 1 }),
    ] {
        let refused = service.control("PATCH", "triggers/wf_2", Some(wrong)).await;
        refused.refused(400, "VALIDATION_ERROR");
    }
    assert_eq!((status("POST").await, status("GET").await), (200, 202));
    service
        .control("DELETE", "triggers/wf_2", None)
        .await
        .data();
    assert_eq!(status("GET").await, 404);
    let gone = service.control("DELETE", "triggers/wf_2", None).await;
    gone.refused(404, "NOT_FOUND");
}

// fault F36: a snapshot of the emulator loses the hits of faults, the logs, the rate windows, or what the attempts of a delivery were
#[tokio::test]
async fn a_snapshot_holds_everything_and_another_emulator_goes_on_from_it() {
    let of = async |seed: Seed| {
        let clock = ManualClock::at(UnixSeconds::new(1_795_253_400));
        let emulator = Emulator::builder(seed).clock(clock).start().await.unwrap();
        Service::of(emulator)
    };
    let service = of(Seed::orders()).await;
    service
        .emulator
        .subscribe("http://127.0.0.1:9/", SECRET)
        .unwrap();
    // A changed body, a used rate window, a drawn fault, a trigger's call, time, and a retry that waits.
    service.emulator.fault_first("altered-byte", 1).unwrap();
    service.emulator.fault_seeded("status-500", 3).unwrap();
    let body = json!({ "values": { "prop_customer": "Kept" } });
    let rows = "/datamodels/dm_orders/rows";
    service.api("POST", rows, Some(body)).await;
    let url = format!("{}/webhooks/wf_1", service.emulator.url());
    service
        .send(http::Request::post(url).body(String::new()).unwrap())
        .await;
    let switch = json!({ "retrySignatures": "first" });
    service
        .control("PATCH", "switches", Some(switch))
        .await
        .data();
    service.emulator.settled().await;
    service
        .control("POST", "clock/advance", Some(json!({ "by": "90s" })))
        .await;
    let used = service
        .get("/pages/page_1")
        .await
        .number("x-ratelimit-remaining");
    assert_eq!(used, 999, "a new window");

    let snapshot = service.control("GET", "snapshot", None).await.json();
    let other = of(Seed::empty()).await;
    let put = other
        .control("PUT", "snapshot", Some(snapshot.clone()))
        .await;
    assert_eq!(put.status, 204, "{put:?}");
    assert_eq!(
        other.control("GET", "snapshot", None).await.json(),
        snapshot
    );
    for path in [
        "deliveries",
        "requests",
        "triggers/calls",
        "faults",
        "clock",
        "keys",
    ] {
        let [here, there] = [
            service.control("GET", path, None).await.json(),
            other.control("GET", path, None).await.json(),
        ];
        assert_eq!(here, there, "{path}");
    }
    // The body that went out, not the payload.
    let delivery = &other.emulator.deliveries()[0];
    let path = format!("deliveries/{}", delivery["id"].as_str().unwrap());
    let detail = other.control("GET", &path, None).await.data();
    assert_ne!(
        detail["attempts"][0]["request"]["body"],
        detail["payload"].to_string()
    );
    // Both go on alike: the window, the draws of the fault, the ids, and the retry at its time.
    for service in [&service, &other] {
        let left = service.get("/pages/page_1").await;
        assert_eq!(left.number("x-ratelimit-remaining"), 998);
        for (by, attempts) in [("4m29s", 0), ("1s", 1)] {
            let by = Some(json!({ "by": by }));
            let advanced = service.control("POST", "clock/advance", by).await;
            assert_eq!(advanced.json()["attempts"], attempts);
        }
    }
    let body = || Some(json!({ "values": {} }));
    let [here, there] = [
        service.api("POST", rows, body()).await.body,
        other.api("POST", rows, body()).await.body,
    ];
    assert_eq!(here, there);

    // No form of a seed, and a wrong part: told, and nothing has changed.
    let before = other.control("GET", "snapshot", None).await.json();
    let with = |part: &str, value: Value| {
        let mut wrong = snapshot.clone();
        wrong[part] = value;
        wrong
    };
    for (wrong, told) in [
        (json!([2]), "expected a JSON object"),
        (
            with(
                "faults",
                json!({ "entries": [{ "fault": "none", "first": 1 }], "calls": 0 }),
            ),
            "unknown fault",
        ),
        (
            with(
                "subscriptions",
                json!([{ "id": "a", "url": "http://example.com/" }]),
            ),
            "not on this machine",
        ),
        (
            with("rates", json!({ "tk": { "since": 0 } })),
            "missing field `used`",
        ),
    ] {
        let refused = other.control("PUT", "snapshot", Some(wrong)).await;
        let message = refused.refused(400, "VALIDATION_ERROR");
        assert!(message.contains(told), "{message}");
        let after = other.control("GET", "snapshot", None).await.json();
        assert!(after == before, "{told}");
    }
}

#[tokio::test]
async fn reset_returns_to_the_faults_and_switches_of_the_start() {
    let builder = Emulator::builder(Seed::orders())
        .fault_first("status-500", 1)
        .fault_seeded("stale", 7)
        .switch("attempts", "6");
    let service = Service::of(builder.start().await.unwrap());
    let shown = async || service.control("GET", "faults", None).await.data();
    let start = shown().await;
    assert_eq!(
        start[0],
        json!({ "fault": "status-500", "first": 1, "seed": null, "hits": 0, "on": true })
    );
    service
        .get("/datamodels")
        .await
        .refused(500, "INTERNAL_ERROR");
    service.control("DELETE", "faults", None).await.data();
    service
        .control("PATCH", "switches", Some(json!({ "attempts": 5 })))
        .await
        .data();
    service.control("POST", "reset", None).await;
    assert_eq!(shown().await, start);
    let switches = service.control("GET", "switches", None).await.data();
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
    let clock = ManualClock::at(UnixSeconds::new(1_795_253_400));
    let emulator = Emulator::builder(Seed::orders()).clock(clock);
    let service = Service::of(emulator.start().await.unwrap());
    for by in ["3651d", "99999999999999999999h", "-1s", "", "1e9s", "5 m"] {
        let refused = service
            .control("POST", "clock/advance", Some(json!({ "by": by })))
            .await;
        refused.refused(400, "VALIDATION_ERROR");
    }
    assert_eq!(service.emulator.now().as_i64(), 1_795_253_400);
    service
        .emulator
        .subscribe("http://127.0.0.1:9/", SECRET)
        .unwrap();
    service.emulator.advance(std::time::Duration::MAX).await;
    let end = service.control("GET", "clock", None).await.json();
    // A retry that would be due behind the end never comes, and nothing waits for it.
    service
        .emulator
        .rows("dm_orders")
        .delete("row_order_1")
        .unwrap();
    service.emulator.settled().await;
    for _ in 0..2 {
        let by = Some(json!({ "by": "3650d" }));
        let advanced = service.control("POST", "clock/advance", by).await.json();
        assert_eq!(
            (&advanced["now"], &advanced["attempts"]),
            (&end["now"], &json!(0))
        );
    }
    service.control("POST", "reset", None).await;
    assert_eq!(service.emulator.now().as_i64(), 1_795_253_400);
}

#[tokio::test]
async fn the_logs_keep_the_newest_1000_requests_and_500_calls_of_triggers() {
    let service = Service::orders().await;
    let off = json!({ "rateLimit": "off" });
    service.control("PATCH", "switches", Some(off)).await.data();
    for number in 0..1_020 {
        service.get(&format!("/pages/{number}")).await;
    }
    let log = service.control("GET", "requests", None).await.data();
    let log = log.as_array().unwrap();
    assert_eq!(
        (log.len(), &log[0]["path"]),
        (1_000, &json!("/api/v1/pages/20"))
    );
    let long = service.get(&format!("/pages/{}", "x".repeat(20_000))).await;
    long.refused(404, "NOT_FOUND");
    let log = service.control("GET", "requests", None).await.data();
    let path = log[999]["path"].as_str().unwrap();
    assert_eq!(path.len(), 2_000);
    for number in 0..510 {
        let url = format!("{}/webhooks/wf_1?number={number}", service.emulator.url());
        let body = "x".repeat(20_000);
        service
            .send(http::Request::post(url).body(body).unwrap())
            .await;
    }
    let calls = service.control("GET", "triggers/calls", None).await.data();
    let calls = calls.as_array().unwrap();
    assert_eq!(
        (calls.len(), &calls[499]["query"]),
        (500, &json!("number=10"))
    );
    assert_eq!(calls[0]["body"].as_str().unwrap().len(), 8 << 10);
}
