//! The picture of docs/emulator.md, drawn from the page as it is.

use serde_json::json;

use crate::{Receives, Served};

const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/pictures/emulate.png"
);
const WIDTH: i64 = 1180;
const HEIGHT: i64 = 700;
const MAX_BYTES: usize = 150_000;

/// Draws it again with `HOOKGATE_DRAW_PICTURES`; without, looks that it is there, small, and of this size.
#[tokio::test(flavor = "multi_thread")]
async fn the_picture_of_the_docs_is_of_the_page() {
    if std::env::var_os("HOOKGATE_DRAW_PICTURES").is_some() {
        draw().await;
    }
    let picture = std::fs::read(FILE).expect("scripts/pictures draws it");
    assert!(picture.len() < MAX_BYTES, "{} bytes", picture.len());
    assert!(picture.starts_with(b"\x89PNG\r\n\x1a\n"));
    let number = |at: usize| i64::from(u32::from_be_bytes(picture[at..at + 4].try_into().unwrap()));
    assert_eq!((number(16), number(20)), (WIDTH, HEIGHT));
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
    screen
        .eval("document.activeElement.blur(); scrollTo(0, 0)")
        .await;
    std::fs::write(FILE, screen.picture().await).unwrap();
    screen.end().await;
}
