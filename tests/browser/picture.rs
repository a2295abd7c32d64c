//! The pictures of docs/emulator.md and docs/command.md, drawn from the pages as they are.

use serde_json::json;

use crate::listen::{Listening, event};
use crate::screen::Screen;

use crate::{Receives, Served};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pictures");
/// Each with its size.
const FILES: [(&str, i64, i64); 5] = [
    ("emulate.png", WIDTH, HEIGHT),
    ("listen-page.png", WIDTH, HEIGHT),
    ("listen-refused.png", 768, 900),
    ("listen-many.png", 768, 560),
    ("listen-empty.png", 390, 560),
];
const WIDTH: i64 = 1180;
const HEIGHT: i64 = 700;
const MAX_BYTES: usize = 150_000;

/// Draws them again with `HOOKGATE_DRAW_PICTURES`; without, looks that each is there, small, and of this size.
#[tokio::test(flavor = "multi_thread")]
async fn the_pictures_of_the_docs_are_of_the_pages() {
    if std::env::var_os("HOOKGATE_DRAW_PICTURES").is_some() {
        draw().await;
        draw_listen().await;
    }
    for (file, width, height) in FILES {
        let picture = std::fs::read(format!("{FOLDER}/{file}")).expect("scripts/pictures draws it");
        assert!(picture.len() < MAX_BYTES, "{} bytes", picture.len());
        assert!(picture.starts_with(b"\x89PNG\r\n\x1a\n"));
        let number =
            |at: usize| i64::from(u32::from_be_bytes(picture[at..at + 4].try_into().unwrap()));
        assert_eq!((number(16), number(20)), (width, height), "{file}");
    }
}

/// Writes a picture. With `HOOKGATE_LOOK_AT` the page is drawn into that folder too, at both widths and in both schemes.
async fn write(screen: Screen, file: &str) {
    screen
        .eval("document.activeElement.blur(); scrollTo(0, 0)")
        .await;
    let picture = screen.picture().await;
    std::fs::write(format!("{FOLDER}/{file}"), picture).unwrap();
    if let Ok(folder) = std::env::var("HOOKGATE_LOOK_AT") {
        for scheme in ["light", "dark"] {
            screen.scheme(scheme).await;
            for (width, height) in [(1280, 900), (390, 1700)] {
                screen.size(width, height).await;
                let picture = screen.picture().await;
                std::fs::write(format!("{folder}/{scheme}-{width}-{file}"), picture).unwrap();
            }
        }
    }
    screen.end().await;
}

async fn draw_listen() {
    let listening = Listening::start();
    let screen = open!(listening.page_without_token());
    screen.size(390, 560).await;
    screen.scheme("light").await;
    screen.until_text(".empty", "Nothing has arrived").await;
    write(screen, "listen-empty.png").await;
    for (id, event_type) in [
        ("evt_8f2c", "row.created"),
        ("evt_8f2d", "row.updated"),
        ("evt_8f2d", "row.updated"),
        ("evt_8f2e", "page.updated"),
    ] {
        let body = event(id, event_type, "row_order_1");
        listening.deliver(id, &body, &body).await;
    }
    let body = event("evt_8f2f", "row.deleted", "row_order_2");
    listening
        .deliver("evt_8f2f", &format!("{body} "), &body)
        .await;
    let screen = open!(&listening.page);
    screen.size(WIDTH, HEIGHT).await;
    screen.scheme("light").await;
    screen.click("tr[data-state=refused]").await;
    screen.press(".detail", "Why was it refused?").await;
    screen.until_there(".explained").await;
    write(screen, "listen-page.png").await;
    let screen = open!(&listening.page);
    screen.size(768, 900).await;
    screen.scheme("dark").await;
    screen.click("tr[data-state=refused]").await;
    screen.press(".detail", "Why was it refused?").await;
    screen.until_there(".explained").await;
    write(screen, "listen-refused.png").await;
    for number in 0..995 {
        let id = format!("evt_{number}");
        let kinds = ["row.created", "row.updated", "page.updated", "row.deleted"];
        let body = event(&id, kinds[number % 4], &format!("row_order_{number}"));
        let signed = if number % 11 == 3 { "other" } else { &body };
        listening.deliver(&id, &body, signed).await;
    }
    let screen = open!(&listening.page);
    screen.size(768, 560).await;
    screen.scheme("dark").await;
    screen.until_text(".totals", "1,000 deliveries").await;
    write(screen, "listen-many.png").await;
}

async fn draw() {
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    let name = json!({ "name": "my receiver" });
    service
        .control("PATCH", "subscriptions/wh_1", Some(name))
        .await;
    let screen = open!(&service.page("rows/dm_orders"));
    screen.size(WIDTH, HEIGHT).await;
    screen.scheme("light").await;
    screen.until_there("[data-row=row_order_1]").await;
    for (number, (status, quantity)) in [(204, 4), (500, 5), (204, 6)].into_iter().enumerate() {
        receiver.answer(status);
        let values = json!({ "values": { "prop_quantity": quantity } });
        service
            .control("PATCH", "models/dm_orders/rows/row_order_1", Some(values))
            .await;
        service
            .until_deliveries(|all| all.len() == number + 1 && all[0]["attempts"][0].is_object())
            .await;
    }
    screen
        .until("document.querySelectorAll('tr[data-delivery]').length === 3")
        .await;
    screen.click("tr[data-state=pending]").await;
    screen.until_text(".detail", "Attempt 1").await;
    // The cell that has changed last is not coloured any more.
    screen.until("document.getAnimations().length === 0").await;
    write(screen, "emulate.png").await;
}
