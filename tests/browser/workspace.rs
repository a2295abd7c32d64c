//! Keys, requests, triggers, faults, the clock, switches, members, pages, snapshots and the way
//! back.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::screen::PATIENCE;
use crate::{Receives, Served};

async fn called(service: &Served, key: &str, path: &str) -> u16 {
    let head = format!("GET /api/v1/{path} HTTP/1.1\r\nauthorization: Bearer {key}");
    service.request(&head, Value::Null).await.0
}

// fault V8: the page names a field of JSON in place of its box
#[tokio::test(flavor = "multi_thread")]
async fn keys_show_their_rate_and_are_made_changed_and_disabled() {
    let service = Served::alone().await;
    let screen = open!(&service.page("keys"));
    steps! { screen;
        until_there("[data-key=admin]"); press("main", "New key");
        fill("Name", "made on the page"); fill("Scope", "write"); fill("Form", "mcp_");
        press("dialog", "Create"); until_there("dialog .secret");
    }
    let key = screen.texts("dialog .secret").await.remove(0);
    assert!(key.starts_with("mcp_"), "{key}");
    screen.press("dialog", "I have it").await;
    assert_eq!(called(&service, &key, "datamodels").await, 200);
    let row = "[data-key='made on the page']";
    steps! { screen;
        until_text(row, "999 / 1000, full in"); fill("Scope of made on the page", "read"); press(row, "Change");
        // The name of the box, and not that of the field in JSON.
        fill("Expires at", "soon"); press("dialog", "Save"); until_text("dialog .refusal", "Expires at is \"soon\", expected");
        was_refused(400);
        fill("Expires at", "2020-01-01T00:00:00Z"); press("dialog", "Save"); until_text(row, "expired");
    }
    assert_eq!(called(&service, &key, "datamodels").await, 401);
    steps! { screen; press(row, "Disable"); until_text(row, "Enable"); }

    let keys = service.list("keys").await;
    let shown = "[...document.querySelectorAll('[data-key]')].map((row) => [row.dataset.key, row.cells[1].textContent, \
                 row.querySelector('select').value, row.classList.contains('off')])";
    let cells = |key: &Value| json!([key["name"], key["form"], key["scope"], key["disabled"]]);
    let expected: Vec<_> = keys.iter().map(cells).collect();
    screen.is(shown, expected).await;
    assert!(keys[3]["disabled"] == true && keys[3]["scope"] == "read");
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_calls_of_triggers_are_shown_as_they_come() {
    let service = Served::alone().await;
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
    let requests = service.list("requests").await;
    let shown = screen.eval(rows).await;
    for (shown, request) in shown.as_array().unwrap().iter().zip(requests.iter().rev()) {
        let text = |name: &str| request[name].as_str().unwrap_or_default().to_owned();
        assert_eq!(shown[0], text("at")[11..19]);
        assert_eq!(shown[1], format!("{} {}", text("method"), text("path")));
        assert_eq!(shown[2], request["key"].as_str().unwrap_or("none"));
        let answer = format!("{} {}", request["status"], text("code"));
        assert_eq!(shown[3], answer.trim());
        let left = request["rate"]["remaining"].as_u64();
        let left = left.map(|left| format!("{left} / 1000"));
        assert_eq!(shown[5], left.unwrap_or_default());
    }
    let called = "POST /webhooks/wf_1?from=shop";
    steps! { screen;
        until_text("[data-rate=read]", "998 / 1000");
        press("#sections", "Triggers"); until_there("[data-trigger=wf_1]");
    }
    let json = "content-type: application/json";
    let head = format!("{called} HTTP/1.1\r\nx-api-key: made_up_for_local_tries\r\n{json}");
    let (status, _) = service.request(&head, json!({ "a": "<b>" })).await;
    assert_eq!(status, 200);
    let calls = service.data("triggers/calls").await;
    let status = calls[0]["status"].to_string();
    steps! { screen;
        until_text(".calls summary", called); click(".calls summary"); until_text(".calls .json", "\"<b>\"");
        are(".calls summary .badge", &[&status]);
    }
    let shown = screen.texts(".calls").await.concat();
    assert!(!shown.contains("made_up_for_local_tries"), "{shown}");

    steps! { screen;
        press("main", "New trigger"); fill("Workflow", "wf_page");
        fill("Authentication", "header"); fill("User or header", "X-Mine"); fill("Password or value", "made_up");
        fill("Template", "{\"got\": \"{{trigger.body.a}}\"}"); fill("Answers", "afterCompletion");
        press("dialog", "Add"); until_there("[data-trigger=wf_page]");
    }
    let mine = format!("POST /webhooks/wf_page HTTP/1.1\r\nx-mine: made_up\r\n{json}");
    let (status, got) = service.request(&mine, json!({ "a": 7 })).await;
    assert_eq!((status, &got["got"]), (200, &json!(7)), "{got}");
    let trigger = "[data-trigger=wf_page]";
    steps! { screen; press(trigger, "Change"); fill("Status", "202"); press("dialog", "Save"); until_text(trigger, "202"); }
    let (status, _) = service.request(&mine, json!({ "a": 7 })).await;
    assert_eq!(status, 202, "its secret stayed");
    steps! { screen; press(trigger, "Remove"); press("dialog", "Remove"); until_gone(trigger); end(); }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_are_switched_on_counted_and_switched_off() {
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    let screen = open!(&service.page("faults"));
    let (stale, limited) = ("[data-fault=stale]", "[data-fault=status-429]");
    let table = service.list("faults/table").await;
    let names: Vec<_> = table
        .iter()
        .map(|fault| fault["fault"].as_str().unwrap())
        .collect();
    steps! { screen;
        until_there("[data-fault=gzip]"); are("[data-fault] code", &names);
        fill("Number for stale", "2"); press(stale, "Switch stale on"); until_text(stale, "first 2");
        fill("How status-429 is chosen", "seed"); press(limited, "Switch status-429 on"); until_text(limited, "seed 1");
    }
    service.change(json!({ "prop_quantity": 77 })).await;
    screen.until_text(stale, "1 hit").await;
    let on = service.data("faults").await;
    let first = json!([on[0]["fault"], on[0]["first"], on[0]["hits"]]);
    assert_eq!(first, json!(["stale", 2, 1]));
    let second = json!([on[1]["fault"], on[1]["seed"]]);
    assert_eq!(second, json!(["status-429", 1]));
    steps! { screen;
        until_text("#faults-on", "2 faults on");
        // A link to a reader too, and what it says is told.
        until_there("[role=status] > a#faults-on:not([role])");
    }
    // One that has come as often as it was asked for looks off.
    service.change(json!({ "prop_quantity": 78 })).await;
    steps! { screen;
        until_text("[data-fault=stale] .badge.calm", "off after 2");
        press(stale, "Remove stale"); until_text("#faults-on", "fault on: status-429");
    }
    assert_eq!(service.list("faults").await.len(), 1);
    steps! { screen;
        press("main", "Switch all off"); until_hidden("#faults-on");
        until("[...document.querySelectorAll('[data-fault] .state')].every((cell) => cell.textContent === '')");
        end();
    }
    assert_eq!(service.data("faults").await, json!([]));
}

// fault V8: the page names a field of JSON in place of its box
#[tokio::test(flavor = "multi_thread")]
async fn the_clock_switches_members_pages_snapshot_and_reset_work() {
    let service = Served::alone().await;
    let screen = open!(&service.page("workspace"));
    steps! { screen; until_there("[data-switch=attempts]"); until_there("#now[datetime]"); }
    let now = "Date.parse(document.querySelector('#now').getAttribute('datetime'))";
    let difference = async || {
        let shown = screen.eval(now).await;
        let clock = service.control("GET", "clock", Value::Null).await;
        let there = screen.eval(&format!("Date.parse({})", clock["now"])).await;
        there.as_f64().unwrap() - shown.as_f64().unwrap()
    };
    // The page hears of a leap by the stream, which may come after the answer to the request.
    let same_time = async || {
        let until = Instant::now() + PATIENCE;
        while difference().await.abs() >= 2_000.0 {
            assert!(Instant::now() < until, "the page shows another time");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    same_time().await;
    let before = screen.eval(now).await;
    let passes = "Time to pass, such as 90s, 26h36m or 2d";
    steps! { screen;
        fill(passes, "26h36m"); key("Enter"); until(&format!("{now} - {before} >= 26.6 * 3600000"));
    }
    same_time().await;
    steps! { screen;
        fill(passes, "much"); key("Enter"); until_text("#told [role=alert]", "The time to pass: \"much\" is not a duration");
        was_refused(400);
        fill("attempts", "6"); until_text("[data-switch=attempts]", "default: 5");
    }
    assert_eq!(service.data("switches").await["attempts"]["value"], "6");
    // Changed from outside, it is shown here.
    service
        .control("PATCH", "switches", json!({ "listOrder": "newest" }))
        .await;
    screen
        .until("document.querySelector('[data-switch=listOrder] select').value === 'newest'")
        .await;
    let shown = "Object.fromEntries([...document.querySelectorAll('[data-switch]')].map((row) => [row.dataset.switch, row.querySelector('select').value]))";
    let switches = service.data("switches").await;
    let values = switches.as_object().unwrap().iter();
    let values = values.map(|(name, one)| (name.clone(), one["value"].clone()));
    steps! { screen;
        is(shown, values.collect::<Value>());
        fill("Tier", "premium"); until_text("#workspace-id", "premium");
        press("main", "Invite a member"); fill("Name", "Cy"); fill("Email", "cy@example.com");
        press("dialog", "Invite"); until_text("[aria-label=Members]", "cy@example.com");
        press("[data-member=usr_1]", "Remove"); press("dialog", "Remove"); until_gone("[data-member=usr_1]");
        press("main", "Add a page"); fill("Fields", "{\"title\": \"Plans\"}");
        press("dialog", "Add"); until_text("[aria-label=Pages]", "Plans");
        press("[data-page=page_1]", "Delete"); until_gone("[data-page=page_1]");
    }
    let deliveries = service.list("deliveries").await;
    let types: Vec<_> = deliveries
        .iter()
        .rev()
        .map(|one| &one["eventType"])
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
    let snapshot = service.control("GET", "snapshot", Value::Null).await;
    steps! { screen;
        press("main", "Reset to the seed"); press("dialog", "Reset"); until_text("#workspace-id", "enterprise");
        until("document.querySelector('[data-switch=attempts] select').value === '5'");
    }
    same_time().await;
    let file = std::env::temp_dir().join(format!("hookgate-snapshot-{}.json", std::process::id()));
    std::fs::write(&file, snapshot.to_string()).unwrap();
    steps! { screen;
        choose_file("[type=file]", &file); press("dialog", "Restore");
        until_text("#workspace-id", "premium"); until_text("[aria-label=Pages]", "Plans");
        end();
    }
    std::fs::remove_file(&file).unwrap();
}
