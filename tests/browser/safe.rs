//! Texts of others are texts, a lost connection is said, and every section fits a narrow screen in both schemes.

use hookgate_emulator::{Emulator, Seed};
use serde_json::json;

use crate::{Receives, Served};

const SECTIONS: [&str; 7] = [
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
        .control("PATCH", "models/dm_1/rows/row_1", Some(values))
        .await;
    let path = HOSTILE
        .replace(' ', "%20")
        .replace(['<', '>', '"', '\''], "_");
    service
        .request(
            &format!("GET /api/v1/{path} HTTP/1.1\r\nauthorization: Bearer tk_test_admin"),
            None,
        )
        .await;
    service
        .request(
            "POST /webhooks/wf_1 HTTP/1.1\r\nx-other: <img src=x onerror=alert(1)>",
            Some(json!({ HOSTILE: HOSTILE })),
        )
        .await;
    screen.until_there("tr[data-delivery]").await;
    screen.click("tr[data-delivery]").await;
    screen.until_text(".detail", "Attempt 1").await;
    for section in SECTIONS {
        screen.eval(&format!("location.hash = '{section}'")).await;
        screen
            .until(&format!(
                "document.querySelector('[aria-current=page]').hash === '#{section}'"
            ))
            .await;
        screen
            .until("document.querySelector('main').innerText.length > 100")
            .await;
        let made = screen.eval("document.querySelectorAll('main img, main script, header img, dialog img, main [onerror]').length").await;
        assert_eq!(made, 0, "{section}");
    }
    for (section, selector) in [
        ("rows", "[data-row]"),
        ("webhooks", "[data-subscription]"),
        ("keys", "[data-key]"),
        ("triggers", "[data-trigger]"),
        ("workspace", "[data-member]"),
    ] {
        screen.eval(&format!("location.hash = '{section}'")).await;
        let text = if section == "triggers" {
            "onerror="
        } else {
            "<img src=x"
        };
        screen.until_text(selector, text).await;
    }
    assert!(
        !screen
            .eval("document.title")
            .await
            .as_str()
            .unwrap()
            .contains("taken")
    );
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_section_fits_a_narrow_screen_and_can_be_read_in_both_schemes() {
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    receiver.answer(500);
    let change = json!({ "values": { "prop_customer": "x".repeat(300) } });
    service
        .control("PATCH", "models/dm_orders/rows/row_order_1", Some(change))
        .await;
    service
        .request(
            &format!(
                "GET /api/v1/{} HTTP/1.1\r\nauthorization: Bearer tk_test_read",
                "y".repeat(300)
            ),
            None,
        )
        .await;
    service.request("POST /webhooks/wf_1 HTTP/1.1", None).await;
    service
        .until_deliveries(|all| all[0]["attempts"][0].is_object())
        .await;
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
    for scheme in ["light", "dark"] {
        screen.scheme(scheme).await;
        grounds.push(
            screen
                .eval("getComputedStyle(document.documentElement).backgroundColor")
                .await,
        );
        for (width, height) in [(400, 800), (1280, 900)] {
            screen.size(width, height).await;
            for section in SECTIONS {
                screen.eval(&format!("location.hash = '{section}'")).await;
                screen
                    .until(&format!(
                        "document.querySelector('[aria-current=page]').hash === '#{section}'"
                    ))
                    .await;
                screen
                    .until("document.querySelector('main').innerText.length > 100")
                    .await;
                if section == "webhooks" {
                    screen.click("tr[data-delivery]").await;
                    screen.until_text(".detail", "Attempt 1").await;
                }
                let wide = screen.eval("document.documentElement.scrollWidth").await;
                assert!(
                    wide.as_i64().unwrap() <= width,
                    "{section} is {wide} wide of {width}"
                );
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
    screen.until_text("#connection", "live").await;
    screen.until_there("[data-row=row_order_1]").await;
    drop(first);
    screen.until_text("#connection", "connection lost").await;
    let again = crate::emulator::started_at(address).await;
    again
        .rows("dm_orders")
        .update(
            "row_order_1",
            json!({ "prop_customer": "Changed meanwhile" }),
        )
        .unwrap();
    screen.until_text("#connection", "live").await;
    screen
        .until_text("[data-row=row_order_1]", "Changed meanwhile")
        .await;
    // The browser itself reports the requests that found no server.
    let other: Vec<_> = screen
        .problems()
        .into_iter()
        .filter(|problem| !problem.contains("ERR_"))
        .collect();
    assert_eq!(other, Vec::<String>::new());
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exposed_emulator_opens_its_page_by_the_token_alone() {
    let emulator = Emulator::builder(Seed::orders())
        .token("made_up_token")
        .start()
        .await
        .unwrap();
    let screen = open!(&format!("{}/?token=made_up_token", emulator.url()));
    screen.until_there("[data-row]").await;
    screen.until_text("#connection", "live").await;
    assert_eq!(screen.eval("location.search").await, "");
    screen.end().await;
}
