//! Keys, requests, triggers, faults, the clock, switches, members, pages, snapshots and the way back.

use serde_json::{Value, json};

use crate::screen::PATIENCE;
use crate::{Receives, Served};

async fn called(service: &Served, key: &str, path: &str) -> u16 {
    let head = format!("GET /api/v1/{path} HTTP/1.1\r\nauthorization: Bearer {key}");
    service.request(&head, None).await.0
}

// fault V8: the page names a field of JSON in place of its box
#[tokio::test(flavor = "multi_thread")]
async fn keys_show_their_rate_and_are_made_changed_and_disabled() {
    let service = Served::delivering_to("http://127.0.0.1:1/webhooks").await;
    let screen = open!(&service.page("keys"));
    screen.until_there("[data-key=admin]").await;
    screen.press("main", "New key").await;
    screen.fill("Name", "made on the page").await;
    screen.fill("Scope", "write").await;
    screen.fill("Form", "mcp_").await;
    screen.press("dialog", "Create").await;
    screen.until_there("dialog .secret").await;
    let key = screen.texts("dialog .secret").await.remove(0);
    assert!(key.starts_with("mcp_"), "{key}");
    screen.press("dialog", "I have it").await;
    assert_eq!(called(&service, &key, "datamodels").await, 200);
    let row = "[data-key='made on the page']";
    screen.until_text(row, "999 / 1000, full in").await;
    screen.fill("Scope of made on the page", "read").await;
    screen.press(row, "Change").await;
    screen.fill("Expires at", "soon").await;
    screen.press("dialog", "Save").await;
    // The name of the box, and not that of the field in JSON.
    screen
        .until_text("dialog .refusal", "Expires at is \"soon\", expected")
        .await;
    screen.was_refused(400).await;
    screen.fill("Expires at", "2020-01-01T00:00:00Z").await;
    screen.press("dialog", "Save").await;
    screen.until_text(row, "expired").await;
    assert_eq!(called(&service, &key, "datamodels").await, 401);
    screen.press(row, "Disable").await;
    screen.until_text(row, "Enable").await;

    let keys = service.data("keys").await;
    let shown = "[...document.querySelectorAll('[data-key]')].map((row) => [row.dataset.key, row.cells[1].textContent, \
                 row.querySelector('select').value, row.classList.contains('off')])";
    let expected: Vec<Value> = keys
        .as_array()
        .unwrap()
        .iter()
        .map(|key| json!([key["name"], key["form"], key["scope"], key["disabled"]]))
        .collect();
    assert_eq!(screen.eval(shown).await, json!(expected));
    assert!(keys[3]["disabled"] == true && keys[3]["scope"] == "read");
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_calls_of_triggers_are_shown_as_they_come() {
    let service = Served::delivering_to("http://127.0.0.1:1/webhooks").await;
    let screen = open!(&service.page("requests"));
    screen.until_text("main", "No request yet").await;
    for (key, path) in [
        ("tk_test_read", "datamodels?limit=5"),
        ("tk_test_read", "datamodels/none"),
        ("tk_test_none", "pages"),
    ] {
        called(&service, key, path).await;
    }
    let rows = "[...document.querySelectorAll(\"[aria-label='API requests'] tbody tr\")].map((row) => [...row.cells].map((cell) => cell.textContent.trim()))";
    screen.until(&format!("({rows}).length === 3")).await;
    let requests = service.data("requests").await;
    let shown = screen.eval(rows).await;
    for (shown, request) in shown
        .as_array()
        .unwrap()
        .iter()
        .zip(requests.as_array().unwrap().iter().rev())
    {
        let text = |name: &str| request[name].as_str().unwrap_or_default().to_owned();
        assert_eq!(shown[0], text("at")[11..19]);
        assert_eq!(shown[1], format!("{} {}", text("method"), text("path")));
        assert_eq!(shown[2], request["key"].as_str().unwrap_or("none"));
        assert_eq!(
            shown[3],
            format!("{} {}", request["status"], text("code")).trim()
        );
        let left = request["rate"]["remaining"]
            .as_u64()
            .map(|left| format!("{left} / 1000"));
        assert_eq!(shown[5], left.unwrap_or_default());
    }
    screen.until_text("[data-rate=read]", "998 / 1000").await;

    screen.press("#sections", "Triggers").await;
    screen.until_there("[data-trigger=wf_1]").await;
    let head = "POST /webhooks/wf_1?from=shop HTTP/1.1\r\nx-api-key: made_up_for_local_tries\r\ncontent-type: application/json";
    assert_eq!(
        service.request(head, Some(json!({ "a": "<b>" }))).await.0,
        200
    );
    screen
        .until_text(".calls summary", "POST /webhooks/wf_1?from=shop")
        .await;
    screen.click(".calls summary").await;
    screen.until_text(".calls .json", "\"<b>\"").await;
    let calls = service.data("triggers/calls").await;
    assert_eq!(
        screen.texts(".calls summary .badge").await,
        [calls[0]["status"].to_string()]
    );
    assert!(
        !screen
            .texts(".calls")
            .await
            .concat()
            .contains("made_up_for_local_tries")
    );

    screen.press("main", "New trigger").await;
    screen.fill("Workflow", "wf_page").await;
    screen.fill("Authentication", "header").await;
    screen.fill("User or header", "X-Mine").await;
    screen.fill("Password or value", "made_up").await;
    screen
        .fill("Template", "{\"got\": \"{{trigger.body.a}}\"}")
        .await;
    screen.fill("Answers", "afterCompletion").await;
    screen.press("dialog", "Add").await;
    screen.until_there("[data-trigger=wf_page]").await;
    let mine =
        "POST /webhooks/wf_page HTTP/1.1\r\nx-mine: made_up\r\ncontent-type: application/json";
    let (status, got) = service.request(mine, Some(json!({ "a": 7 }))).await;
    assert_eq!((status, &got["got"]), (200, &json!(7)), "{got}");
    screen.press("[data-trigger=wf_page]", "Change").await;
    screen.fill("Status", "202").await;
    screen.press("dialog", "Save").await;
    screen.until_text("[data-trigger=wf_page]", "202").await;
    assert_eq!(
        service.request(mine, Some(json!({ "a": 7 }))).await.0,
        202,
        "its secret stayed"
    );
    screen.press("[data-trigger=wf_page]", "Remove").await;
    screen.press("dialog", "Remove").await;
    screen
        .until("document.querySelector('[data-trigger=wf_page]') === null")
        .await;
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_are_switched_on_counted_and_switched_off() {
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    let screen = open!(&service.page("faults"));
    screen.until_there("[data-fault=gzip]").await;
    let table = service.data("faults/table").await;
    let names: Vec<&str> = table
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| fault["fault"].as_str().unwrap())
        .collect();
    assert_eq!(screen.texts("[data-fault] code").await, names);
    screen.fill("Number for stale", "2").await;
    screen.press("[data-fault=stale]", "Switch stale on").await;
    screen.until_text("[data-fault=stale]", "first 2").await;
    screen.fill("How status-429 is chosen", "seed").await;
    screen
        .press("[data-fault=status-429]", "Switch status-429 on")
        .await;
    screen.until_text("[data-fault=status-429]", "seed 1").await;
    let change = json!({ "values": { "prop_quantity": 77 } });
    service
        .control("PATCH", "models/dm_orders/rows/row_order_1", Some(change))
        .await;
    screen.until_text("[data-fault=stale]", "1 hit").await;
    let on = service.data("faults").await;
    assert_eq!(
        (&on[0]["fault"], &on[0]["first"], &on[0]["hits"]),
        (&json!("stale"), &json!(2), &json!(1))
    );
    assert_eq!(
        (&on[1]["fault"], &on[1]["seed"]),
        (&json!("status-429"), &json!(1))
    );
    screen.until_text("#faults-on", "2 faults on").await;
    // A link to a reader too, and what it says is told.
    screen
        .until("document.querySelector('[role=status] > a#faults-on:not([role])') !== null")
        .await;
    // One that has come as often as it was asked for looks off.
    let change = json!({ "values": { "prop_quantity": 78 } });
    service
        .control("PATCH", "models/dm_orders/rows/row_order_1", Some(change))
        .await;
    screen
        .until_text("[data-fault=stale] .badge.calm", "off after 2")
        .await;
    screen.press("[data-fault=stale]", "Remove stale").await;
    screen
        .until_text("#faults-on", "fault on: status-429")
        .await;
    assert_eq!(service.data("faults").await.as_array().unwrap().len(), 1);
    screen.press("main", "Switch all off").await;
    screen
        .until("document.querySelector('#faults-on').hidden")
        .await;
    screen.until("[...document.querySelectorAll('[data-fault] .state')].every((cell) => cell.textContent === '')").await;
    assert_eq!(service.data("faults").await, json!([]));
    screen.end().await;
}

// fault V8: the page names a field of JSON in place of its box
#[tokio::test(flavor = "multi_thread")]
async fn the_clock_switches_members_pages_snapshot_and_reset_work() {
    let service = Served::delivering_to("http://127.0.0.1:1/webhooks").await;
    let screen = open!(&service.page("workspace"));
    screen.until_there("[data-switch=attempts]").await;
    screen.until_there("#now[datetime]").await;
    let difference = async || {
        let shown = screen
            .eval("Date.parse(document.querySelector('#now').getAttribute('datetime'))")
            .await;
        let now = service.control("GET", "clock", None).await["now"]
            .as_str()
            .unwrap()
            .to_owned();
        let now = screen.eval(&format!("Date.parse('{now}')")).await;
        now.as_f64().unwrap() - shown.as_f64().unwrap()
    };
    // The page hears of a leap by the stream, which may come after the answer to the request.
    let same_time = async || {
        let until = tokio::time::Instant::now() + PATIENCE;
        while difference().await.abs() >= 2_000.0 {
            assert!(
                tokio::time::Instant::now() < until,
                "the page shows another time"
            );
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    same_time().await;
    let before = screen
        .eval("Date.parse(document.querySelector('#now').getAttribute('datetime'))")
        .await;
    screen
        .fill("Time to pass, such as 90s, 26h36m or 2d", "26h36m")
        .await;
    screen.key("Enter").await;
    screen.until(&format!("Date.parse(document.querySelector('#now').getAttribute('datetime')) - {before} >= 26.6 * 3600000")).await;
    same_time().await;
    screen
        .fill("Time to pass, such as 90s, 26h36m or 2d", "much")
        .await;
    screen.key("Enter").await;
    let told = "The time to pass: \"much\" is not a duration";
    screen.until_text("#told [role=alert]", told).await;
    screen.was_refused(400).await;

    screen.fill("attempts", "6").await;
    screen
        .until_text("[data-switch=attempts]", "default: 5")
        .await;
    assert_eq!(service.data("switches").await["attempts"]["value"], "6");
    // Changed from outside, it is shown here.
    service
        .control("PATCH", "switches", Some(json!({ "listOrder": "newest" })))
        .await;
    screen
        .until("document.querySelector('[data-switch=listOrder] select').value === 'newest'")
        .await;
    let shown = "Object.fromEntries([...document.querySelectorAll('[data-switch]')].map((row) => [row.dataset.switch, row.querySelector('select').value]))";
    let switches = service.data("switches").await;
    let values: serde_json::Map<_, _> = switches
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, one)| (name.clone(), one["value"].clone()))
        .collect();
    assert_eq!(screen.eval(shown).await, Value::Object(values));

    screen.fill("Tier", "premium").await;
    screen.until_text("#workspace-id", "premium").await;
    screen.press("main", "Invite a member").await;
    screen.fill("Name", "Cy").await;
    screen.fill("Email", "cy@example.com").await;
    screen.press("dialog", "Invite").await;
    screen
        .until_text("[aria-label=Members]", "cy@example.com")
        .await;
    screen.press("[data-member=usr_1]", "Remove").await;
    screen.press("dialog", "Remove").await;
    screen
        .until("document.querySelector('[data-member=usr_1]') === null")
        .await;
    screen.press("main", "Add a page").await;
    screen.fill("Fields", "{\"title\": \"Plans\"}").await;
    screen.press("dialog", "Add").await;
    screen.until_text("[aria-label=Pages]", "Plans").await;
    screen.press("[data-page=page_1]", "Delete").await;
    screen
        .until("document.querySelector('[data-page=page_1]') === null")
        .await;
    let types: Vec<_> = service
        .data("deliveries")
        .await
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .map(|one| one["eventType"].clone())
        .collect();
    assert_eq!(
        types,
        [
            "member.invited",
            "member.removed",
            "page.created",
            "page.deleted"
        ]
    );

    // A snapshot is taken, the seed restored, and then the snapshot.
    let link = "(async () => { const link = document.querySelector('a[download]'); return (await (await fetch(link.href)).text()).length > 100; })()";
    screen.until(link).await;
    let snapshot = service.control("GET", "snapshot", None).await;
    screen.press("main", "Reset to the seed").await;
    screen.press("dialog", "Reset").await;
    screen.until_text("#workspace-id", "enterprise").await;
    screen
        .until("document.querySelector('[data-switch=attempts] select').value === '5'")
        .await;
    same_time().await;
    let file = std::env::temp_dir().join(format!("hookgate-snapshot-{}.json", std::process::id()));
    std::fs::write(&file, snapshot.to_string()).unwrap();
    screen.choose_file("[type=file]", &file).await;
    screen.press("dialog", "Restore").await;
    screen.until_text("#workspace-id", "premium").await;
    screen.until_text("[aria-label=Pages]", "Plans").await;
    std::fs::remove_file(&file).unwrap();
    screen.end().await;
}
