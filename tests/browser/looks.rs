//! How both pages look: contrasts computed from the stylesheet, and sizes, focus and texts as a
//! browser has them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::listen::event;
use crate::safe::SECTIONS;
use crate::{Receives, Served};

const CSS: &str = include_str!("../../crates/emulator/src/page/page.css");

/// The colours of one scheme by their names: those of the light one, with those of the dark one
/// over them.
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
        let of_badge = |(name, ground): &(&str, String)| ((*name).into(), ground.clone(), 4.5);
        pairs.extend(badges.iter().map(of_badge));
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

/// What a finger has to hit, in CSS pixels: the height of each button, link, field and choice that
/// is shown.
const SMALL_TARGETS: &str = "[...document.querySelectorAll('button, a, input, select, textarea, summary')].filter((one) => one.checkVisibility() && \
     (one.closest('label') ?? one).getBoundingClientRect().height < 40).map((one) => one.outerHTML.slice(0, 90))";

/// Controls and heads of columns without a name.
const NAMELESS: &str = "[...document.querySelectorAll('th, button, a, input, select, textarea')].filter((one) => !(one.textContent.trim() || \
     one.getAttribute('aria-label') || one.labels?.length)).map((one) => one.outerHTML.slice(0, 90))";

/// Nothing is wider than the screen.
const INSIDE: &str = "document.documentElement.scrollWidth <= innerWidth";

#[tokio::test(flavor = "multi_thread")]
async fn at_390_pixels_targets_are_40_high_and_nothing_goes_beyond_the_side() {
    let none = || json!([]);
    let listening = listening!();
    let listened = open!(&listening.page);
    steps! { listened; size(390, 844); until_text(".where", "Send to"); is(SMALL_TARGETS, none()); }
    listening
        .forged("evt_1", &event("evt_1", "row.created", "row_1"))
        .await;
    steps! { listened;
        click("tr[data-state=refused]"); until_there(".detail h2");
        is(SMALL_TARGETS, none()); is(NAMELESS, none()); is(INSIDE, true);
        end();
    }

    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    let screen = open!(&service.page("rows"));
    screen.size(390, 844).await;
    for section in SECTIONS {
        steps! { screen; go(section); is(SMALL_TARGETS, none()); is(NAMELESS, none()); is(INSIDE, true); }
    }
    // The steps of the clock are one line.
    let tops = "new Set([...document.querySelectorAll('.steps > *')].map((one) => Math.round(one.getBoundingClientRect().top))).size";
    steps! { screen; is(tops, 1); end(); }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opened_delivery_has_the_focus_on_its_heading_and_the_head_of_the_page_stays() {
    let listening = listening!();
    for number in 0..60 {
        listening
            .event(&format!("evt_{number}"), "row.created", "row_1")
            .await;
    }
    let screen = open!(&listening.page);
    let ring = "(() => { const ringed = (one) => one && getComputedStyle(one).outlineStyle !== 'none'; \
         return [ringed(document.querySelector('.detail h2')), ringed(document.querySelector('.detail'))]; })()";
    for width in [1280, 768, 390] {
        steps! { screen;
            size(width, 800); until_count("tr[data-delivery]", 60);
            click("tr[data-delivery]"); until("document.activeElement?.matches('.detail h2')");
            is(ring, json!([true, false])); is("document.querySelector('h1').getBoundingClientRect().top >= 0", true);
            key("Escape"); until_hidden(".detail");
        }
    }
    // From the end of a long list, the delivery opens in sight.
    steps! { screen;
        size(1280, 800); click("tr[data-delivery]:last-child");
        until("(() => { const { top } = document.querySelector('.detail h2').getBoundingClientRect(); return top >= 0 && top < 400; })()");
        end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_others_keep_their_direction_to_themselves() {
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    service
        .change(json!({ "prop_customer": "Ada\u{202e}\u{2066}evil\u{7}" }))
        .await;
    let screen = open!(&service.page("rows/dm_orders"));
    steps! { screen;
        until_text("[data-row=row_order_1]", "Ada\\u202e\\u2066evil\\u0007");
        click("tr[data-delivery]"); until_text(".detail .json", "\\u202e");
    }
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
    steps! { screen; is("document.querySelector('[data-row] td').dir", "auto"); end(); }
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_keep_their_width_while_a_cell_is_edited() {
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    let screen = open!(&service.page("rows/dm_orders"));
    screen.until_there("[data-row=row_order_1]").await;
    let widths = "[...document.querySelectorAll('.grid th')].map((one) => Math.round(one.getBoundingClientRect().width))";
    let before = screen.eval(widths).await;
    for property in ["prop_quantity", "prop_status", "prop_tags"] {
        let cell = format!("[data-row=row_order_1] [data-property={property}]");
        steps! { screen;
            click(&cell); key("Enter"); until_there(".editing"); is(widths, before.clone());
            key("Escape"); until_gone(".editing"); is(widths, before.clone());
        }
    }
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_the_api_show_their_bodies_and_are_filtered() {
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    let rows = "/api/v1/datamodels/dm_orders/rows HTTP/1.1\r\nauthorization: Bearer tk_test_write";
    let ask = || async { service.request(&format!("GET {rows}"), Value::Null).await.0 };
    assert_eq!(ask().await, 200);
    let wrong = json!({ "values": { "Nope": "made-up" } });
    let (status, _) = service.request(&format!("POST {rows}"), wrong).await;
    assert_eq!(status, 400);
    let screen = open!(&service.page("requests"));
    let row = "tr[data-number]";
    steps! { screen;
        until_count(row, 2); fill("Status", "4"); until_count(row, 1);
        click("tr[data-number] td"); until_text(".bodies", "made-up"); until_text(".bodies", "VALIDATION_ERROR");
        key("Escape"); until_gone(".bodies");
        click("tr[data-number] button"); until_text(".bodies", "made-up");
    }
    // It stays open when others come.
    ask().await;
    steps! { screen;
        fill("Status", ""); until_count(row, 3); until_there(".bodies");
        fill("Search requests", "no such path"); until_text("main", "No request fits the filter (3 searched).");
        press("main", "Clear filters"); until_count(row, 3);
        // The search looks at the bodies, and stands in the address.
        fill("Search requests", "Made-Up"); until_count(row, 1);
        reload(); until_count(row, 1); until("location.hash === '#requests?search=Made-Up'");
        end();
    }
}
