//! How both pages look: contrasts computed from the stylesheet, and sizes, focus and texts as a browser has them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::listen::{Listening, event};
use crate::screen::{Screen, chromium};
use crate::{Receives, Served};

const CSS: &str = include_str!("../../crates/emulator/src/page/page.css");

/// The colours of one scheme by their names: those of the light one, with those of the dark one over them.
fn colours(is_dark: bool) -> BTreeMap<&'static str, &'static str> {
    let blocks = CSS.split(":root {").skip(1);
    let blocks = blocks.take(if is_dark { 2 } else { 1 });
    let declared = blocks.flat_map(|block| block.split('}').next().unwrap().split(';'));
    let pairs = declared.filter_map(|one| one.trim().strip_prefix("--")?.split_once(": #"));
    pairs.collect()
}

/// The relative luminance of `RRGGBB`, as WCAG defines it.
fn luminance(colour: &str) -> f64 {
    let part = |at: usize| {
        let part = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        if part <= 0.040_45 {
            part / 12.92
        } else {
            ((part + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * part(0) + 0.7152 * part(2) + 0.0722 * part(4)
}

fn contrast(one: &str, other: &str) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn texts_and_edges_have_their_contrast_in_both_schemes() {
    assert!((contrast("000000", "ffffff") - 21.0).abs() < 0.01);
    let grounds = ["panel", "sunk", "ground", "chosen", "changed"];
    let texts = ["text", "dim", "bad"];
    let badges = ["good", "bad", "wait", "calm"].map(|name| (name, format!("{name}-ground")));
    for is_dark in [false, true] {
        let colours = colours(is_dark);
        let of = |one: &str, other: &str| contrast(colours[one], colours[other]);
        let mut pairs: Vec<(String, String, f64)> = Vec::new();
        for ground in grounds {
            pairs.extend(texts.map(|text| (text.into(), ground.into(), 4.5)));
        }
        pairs.extend(
            badges
                .iter()
                .map(|(name, ground)| ((*name).into(), ground.clone(), 4.5)),
        );
        let of_json = ["json-name", "json-string", "json-value"];
        pairs.extend(of_json.map(|text| (text.into(), "sunk".into(), 4.5)));
        pairs.push(("on-accent".into(), "accent".into(), 4.5));
        // The edge of a field, and the ring around what has the focus.
        for ground in ["panel", "sunk", "ground"] {
            pairs.extend(["edge", "accent"].map(|edge| (edge.into(), ground.into(), 3.0)));
        }
        for (one, other, least) in pairs {
            let found = of(&one, &other);
            assert!(
                found >= least,
                "dark: {is_dark}, {one} on {other}: {found:.2}"
            );
        }
    }
    // The rules use these colours, unmixed.
    for rule in [
        "button, .button, input, select, textarea { font: inherit; color: inherit; border: 1px solid var(--edge)",
        "input:not([type=checkbox]), select, textarea { background: var(--sunk)",
        "::placeholder { color: var(--dim); opacity: 1; }",
        "@keyframes changed { from { background: var(--changed); } }",
    ] {
        assert!(CSS.contains(rule), "{rule}");
    }
}

/// What a finger has to hit, in CSS pixels: the height of each button, link, field and choice that is shown.
const SMALL_TARGETS: &str = "[...document.querySelectorAll('button, a, input, select, textarea, summary')].filter((one) => one.checkVisibility() && \
     (one.closest('label') ?? one).getBoundingClientRect().height < 40).map((one) => one.outerHTML.slice(0, 90))";

/// Controls and heads of columns without a name.
const NAMELESS: &str = "[...document.querySelectorAll('th, button, a, input, select, textarea')].filter((one) => !(one.textContent.trim() || \
     one.getAttribute('aria-label') || one.labels?.length)).map((one) => one.outerHTML.slice(0, 90))";

async fn assert_none(screen: &Screen, found: &str, at: &str) {
    assert_eq!(screen.eval(found).await, json!([]), "{at}");
}

#[tokio::test(flavor = "multi_thread")]
async fn at_390_pixels_targets_are_40_high_and_nothing_goes_beyond_the_side() {
    if chromium().is_none() {
        return;
    }
    let listening = Listening::start();
    let body = event("evt_1", "row.created", "row_1");
    let listened = open!(&listening.page);
    listened.size(390, 844).await;
    listened.until_text(".where", "Send to").await;
    assert_none(&listened, SMALL_TARGETS, "the empty list").await;
    listening.deliver("evt_1", &body, "other").await;
    listened.click("tr[data-state=refused]").await;
    listened.until_there(".detail h2").await;
    for found in [SMALL_TARGETS, NAMELESS] {
        assert_none(&listened, found, "an open delivery").await;
    }
    let inside = "document.documentElement.scrollWidth <= innerWidth";
    assert_eq!(listened.eval(inside).await, true);
    listened.end().await;

    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    let screen = open!(&service.page("rows"));
    screen.size(390, 844).await;
    for section in [
        "rows",
        "webhooks",
        "keys",
        "requests",
        "triggers",
        "faults",
        "workspace",
    ] {
        screen.eval(&format!("location.hash = '#{section}'")).await;
        screen
            .until("document.querySelector('#sections [aria-current]')?.hash === location.hash.replace(/\\?.*/, '').replace(/\\/.*/, '')")
            .await;
        for found in [SMALL_TARGETS, NAMELESS] {
            assert_none(&screen, found, section).await;
        }
        assert_eq!(screen.eval(inside).await, true, "{section}");
    }
    // The steps of the clock are one line.
    let tops = "new Set([...document.querySelectorAll('.steps > *')].map((one) => Math.round(one.getBoundingClientRect().top))).size";
    assert_eq!(screen.eval(tops).await, 1);
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opened_delivery_has_the_focus_on_its_heading_and_the_head_of_the_page_stays() {
    if chromium().is_none() {
        return;
    }
    let listening = Listening::start();
    for number in 0..60 {
        let id = format!("evt_{number}");
        let body = event(&id, "row.created", "row_1");
        listening.deliver(&id, &body, &body).await;
    }
    let screen = open!(&listening.page);
    for width in [1280, 768, 390] {
        screen.size(width, 800).await;
        screen
            .until("document.querySelectorAll('tr[data-delivery]').length === 60")
            .await;
        screen.click("tr[data-delivery]").await;
        screen
            .until("document.activeElement?.matches('.detail h2')")
            .await;
        let ring = "(() => { const ringed = (one) => one && getComputedStyle(one).outlineStyle !== 'none'; \
             return [ringed(document.querySelector('.detail h2')), ringed(document.querySelector('.detail'))]; })()";
        assert_eq!(screen.eval(ring).await, json!([true, false]), "{width}");
        let head = "document.querySelector('h1').getBoundingClientRect().top >= 0";
        assert_eq!(screen.eval(head).await, true, "{width}");
        screen.key("Escape").await;
        screen
            .until("document.querySelector('.detail').hidden")
            .await;
    }
    // From the end of a long list, the delivery opens in sight.
    screen.size(1280, 800).await;
    screen.click("tr[data-delivery]:last-child").await;
    screen
        .until("(() => { const { top } = document.querySelector('.detail h2').getBoundingClientRect(); return top >= 0 && top < 400; })()")
        .await;
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_others_keep_their_direction_to_themselves() {
    if chromium().is_none() {
        return;
    }
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    let turned = "Ada\u{202e}\u{2066}evil\u{7}";
    let values = json!({ "values": { "prop_customer": turned } });
    service
        .control("PATCH", "models/dm_orders/rows/row_order_1", Some(values))
        .await;
    let screen = open!(&service.page("rows/dm_orders"));
    screen
        .until_text("[data-row=row_order_1]", "Ada\\u202e\\u2066evil\\u0007")
        .await;
    screen.click("tr[data-delivery]").await;
    screen.until_text(".detail .json", "\\u202e").await;
    let shown = screen.eval("document.body.innerText").await;
    let turns = ['\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}'];
    assert!(!shown.as_str().unwrap().contains(turns), "{shown}");
    // A text that is written from right to left is isolated from what stands beside it.
    for selector in [
        "[data-row] td[role=gridcell]",
        ".grid th bdi, .grid th [dir=auto]",
        ".detail h2[dir=auto]",
        ".detail dd[dir=auto]",
        ".detail .json[dir=auto]",
        ".chip bdi",
        ".deliveries .main button[dir=auto]",
    ] {
        screen.until_there(selector).await;
    }
    assert_eq!(
        screen
            .eval("document.querySelector('[data-row] td').dir")
            .await,
        "auto"
    );
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_keep_their_width_while_a_cell_is_edited() {
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    let screen = open!(&service.page("rows/dm_orders"));
    screen.until_there("[data-row=row_order_1]").await;
    let widths = "[...document.querySelectorAll('.grid th')].map((one) => Math.round(one.getBoundingClientRect().width))";
    let before: Value = screen.eval(widths).await;
    for property in ["prop_quantity", "prop_status", "prop_tags"] {
        let cell = format!("[data-row=row_order_1] [data-property={property}]");
        screen.click(&cell).await;
        screen.key("Enter").await;
        screen.until_there(".editing").await;
        assert_eq!(screen.eval(widths).await, before, "{property}");
        screen.key("Escape").await;
        screen.until("!document.querySelector('.editing')").await;
        assert_eq!(screen.eval(widths).await, before, "{property}");
    }
    screen.end().await;
}

const ONE_REQUEST: &str = "document.querySelectorAll('tr[data-number]').length === 1";

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_the_api_show_their_bodies_and_are_filtered() {
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    let rows = "/api/v1/datamodels/dm_orders/rows HTTP/1.1\r\nauthorization: Bearer tk_test_write";
    let (status, _) = service.request(&format!("GET {rows}"), None).await;
    assert_eq!(status, 200);
    let wrong = json!({ "values": { "Nope": "made-up" } });
    let (status, _) = service.request(&format!("POST {rows}"), Some(wrong)).await;
    assert_eq!(status, 400);
    let screen = open!(&service.page("requests"));
    screen
        .until("document.querySelectorAll('tr[data-number]').length === 2")
        .await;
    screen.fill("Status", "4").await;
    screen
        .until("document.querySelectorAll('tr[data-number]').length === 1")
        .await;
    screen.click("tr[data-number] td").await;
    screen.until_text(".bodies", "made-up").await;
    screen.until_text(".bodies", "VALIDATION_ERROR").await;
    screen.key("Escape").await;
    screen.until("!document.querySelector('.bodies')").await;
    screen.click("tr[data-number] button").await;
    screen.until_text(".bodies", "made-up").await;
    // It stays open when others come.
    service.request(&format!("GET {rows}"), None).await;
    screen.fill("Status", "").await;
    screen
        .until("document.querySelectorAll('tr[data-number]').length === 3")
        .await;
    screen.until_there(".bodies").await;
    screen.fill("Search requests", "no such path").await;
    screen
        .until_text("main", "No request fits the filter (3 searched).")
        .await;
    screen.press("main", "Clear filters").await;
    screen
        .until("document.querySelectorAll('tr[data-number]').length === 3")
        .await;
    // The search looks at the bodies, and stands in the address.
    screen.fill("Search requests", "Made-Up").await;
    screen.until(ONE_REQUEST).await;
    screen.reload().await;
    screen.until(ONE_REQUEST).await;
    screen
        .until("location.hash === '#requests?search=Made-Up'")
        .await;
    screen.end().await;
}
