//! Texts of others are texts, a lost connection is said, and every section fits a narrow screen in
//! both schemes.

use hookgate_emulator::{Emulator, Seed};
use serde_json::{Value, json};

use crate::{Receives, Served};

pub(crate) const SECTIONS: [&str; 7] = [
    "rows",
    "webhooks",
    "keys",
    "requests",
    "triggers",
    "faults",
    "workspace",
];
const HOSTILE: &str =
    "<img src=x onerror=\"document.title = 'taken'\"><script>document.title = 'taken'</script>";

#[tokio::test(flavor = "multi_thread")]
async fn hostile_names_and_values_are_shown_as_text() {
    let receiver = Receives::start().await;
    let seed = json!({
        "workspace": { "id": HOSTILE },
        "members": [{ "id": "usr_1", "name": HOSTILE, "email": HOSTILE }],
        "keys": [{ "name": HOSTILE, "key": "tk_test_admin", "scope": "admin" }],
        "dataModels": [{ "id": "dm_1", "title": HOSTILE, "description": HOSTILE, "properties": [
            { "id": "prop_a", "name": HOSTILE, "type": "TEXT" },
            { "id": "prop_b", "name": "b", "type": "SELECT", "options": [{ "value": "x", "label": HOSTILE }] },
            { "id": "prop_c", "name": "c", "type": "FILE" }],
            "rows": [{ "id": "row_1", "data": { "prop_a": HOSTILE, "prop_b": "x", "prop_c": [{ "url": "javascript:alert(1)", "name": HOSTILE }] } }] }],
        "subscriptions": [{ "id": "wh_1", "name": HOSTILE, "url": receiver.url, "events": ["row.updated", "row.created"], "secret": "whsec_made_up_for_the_browser" }],
        "triggers": [{ "workflowId": "wf_1", "response": { "mode": "afterCompletion", "status": 200, "template": { HOSTILE: HOSTILE } } }],
        "pages": [{ "id": "page_1", "title": HOSTILE }],
    });
    let service = Served::seeded(&seed.to_string()).await;
    let screen = open!(&service.page("rows"));
    screen.until_there("[data-row=row_1]").await;
    let values = json!({ "values": { "prop_a": format!("{HOSTILE} again") } });
    service
        .control("PATCH", "models/dm_1/rows/row_1", values)
        .await;
    let path = HOSTILE
        .replace(' ', "%20")
        .replace(['<', '>', '"', '\''], "_");
    let asked = format!("GET /api/v1/{path} HTTP/1.1\r\nauthorization: Bearer tk_test_admin");
    service.request(&asked, Value::Null).await;
    let called = "POST /webhooks/wf_1 HTTP/1.1\r\nx-other: <img src=x onerror=alert(1)>";
    service.request(called, json!({ HOSTILE: HOSTILE })).await;
    steps! { screen; until_there("tr[data-delivery]"); click("tr[data-delivery]"); until_text(".detail", "Attempt 1"); }
    for section in SECTIONS {
        let made = "document.querySelectorAll('main img, main script, header img, dialog img, main [onerror]').length";
        steps! { screen; go(section); is(made, 0); }
    }
    for (section, selector, text) in [
        ("rows", "[data-row]", "<img src=x"),
        ("webhooks", "[data-subscription]", "<img src=x"),
        ("keys", "[data-key]", "<img src=x"),
        ("triggers", "[data-trigger]", "onerror="),
        ("workspace", "[data-member]", "<img src=x"),
    ] {
        steps! { screen; eval(&format!("location.hash = '{section}'")); until_text(selector, text); }
    }
    steps! { screen; is("document.title.includes('taken')", false); end(); }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_section_fits_a_narrow_screen_and_can_be_read_in_both_schemes() {
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    receiver.answer(500);
    service
        .change(json!({ "prop_customer": "x".repeat(300) }))
        .await;
    let long = "y".repeat(300);
    let asked = format!("GET /api/v1/{long} HTTP/1.1\r\nauthorization: Bearer tk_test_read");
    service.request(&asked, Value::Null).await;
    service
        .request("POST /webhooks/wf_1 HTTP/1.1", Value::Null)
        .await;
    let is_tried = |all: &[Value]| all[0]["attempts"][0].is_object();
    service.until_deliveries(is_tried).await;
    let screen = open!(&service.page("webhooks"));
    // The contrast of each text with the ground behind it, by the formula of WCAG.
    let faint = "(() => {
        const light = (colour) => { const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((c) => c / 255)
            .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const ground = (one) => { for (let at = one; at; at = at.parentElement) {
            const colour = getComputedStyle(at).backgroundColor; if (!/, 0\\)|transparent/.test(colour)) return colour; } return 'rgb(255, 255, 255)'; };
        const texts = [...document.querySelectorAll('body *')].filter((one) => one.checkVisibility() && !one.closest('[disabled], .off, .unseen, .skip')
            && [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()));
        return texts.map((one) => { const [a, b] = [light(getComputedStyle(one).color), light(ground(one))];
            return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), one.textContent.slice(0, 40)]; }).filter(([contrast]) => contrast < 4.5);
    })()";
    let mut grounds = Vec::new();
    let ground = "getComputedStyle(document.documentElement).backgroundColor";
    for scheme in ["light", "dark"] {
        screen.scheme(scheme).await;
        grounds.push(screen.eval(ground).await);
        for (width, height) in [(400, 800), (1280, 900)] {
            screen.size(width, height).await;
            for section in SECTIONS {
                screen.go(section).await;
                if section == "webhooks" {
                    steps! { screen; click("tr[data-delivery]"); until_text(".detail", "Attempt 1"); }
                }
                let wide = screen.eval("document.documentElement.scrollWidth").await;
                let wide = wide.as_i64().unwrap();
                assert!(wide <= width, "{section} is {wide} wide of {width}");
                assert_eq!(screen.eval(faint).await, json!([]), "{section} in {scheme}");
            }
        }
    }
    assert_ne!(grounds[0], grounds[1]);
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_said_and_what_was_missed_is_read_anew() {
    let first = Emulator::start(Seed::orders()).await.unwrap();
    let address = first.address();
    let screen = open!(&format!("{}/#rows/dm_orders", first.url()));
    steps! { screen; until_text("#connection", "live"); until_there("[data-row=row_order_1]"); }
    drop(first);
    screen.until_text("#connection", "connection lost").await;
    let again = crate::emulator::started_at(address).await;
    let changed = json!({ "prop_customer": "Changed meanwhile" });
    again
        .rows("dm_orders")
        .update("row_order_1", changed)
        .unwrap();
    steps! { screen; until_text("#connection", "live"); until_text("[data-row=row_order_1]", "Changed meanwhile"); }
    screen.forget_lost();
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exposed_emulator_opens_its_page_by_the_token_alone() {
    let builder = Emulator::builder(Seed::orders()).token("made_up_token");
    let emulator = builder.start().await.unwrap();
    let screen = open!(&format!("{}/?token=made_up_token", emulator.url()));
    steps! { screen; until_there("[data-row]"); until_text("#connection", "live"); is("location.search", ""); end(); }
}
