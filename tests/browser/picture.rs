//! The pictures of docs/emulator.md and docs/command.md, drawn from the pages as they are.

use serde_json::json;

use crate::listen::event;
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

/// Draws them again with `HOOKGATE_DRAW_PICTURES`; without, looks that each is there, small, and of
/// this size.
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

/// Draws a page into a file, of the file's size, once the steps before it are done. With
/// `HOOKGATE_LOOK_AT` the page is drawn into that folder too, at both widths and in both schemes.
macro_rules! draw {
    ($url:expr, $file:expr, $scheme:expr; $($step:ident($($argument:expr),*);)*) => {{
        let screen = open!($url);
        let (_, width, height) = FILES.into_iter().find(|one| one.0 == $file).unwrap();
        steps! { screen; size(width, height); scheme($scheme); $($step($($argument),*);)* }
        write(screen, $file).await;
    }};
}

async fn write(screen: Screen, file: &str) {
    screen
        .eval("document.activeElement.blur(); scrollTo(0, 0)")
        .await;
    let picture = screen.picture().await;
    std::fs::write(format!("{FOLDER}/{file}"), picture).unwrap();
    if let Ok(folder) = std::env::var("HOOKGATE_LOOK_AT") {
        for scheme in ["light", "dark"] {
            for (width, height) in [(1280, 900), (390, 1700)] {
                steps! { screen; scheme(scheme); size(width, height); }
                let picture = screen.picture().await;
                std::fs::write(format!("{folder}/{scheme}-{width}-{file}"), picture).unwrap();
            }
        }
    }
    screen.end().await;
}

async fn draw_listen() {
    let listening = listening!();
    draw! { listening.page_without_token(), "listen-empty.png", "light"; until_text(".empty", "Nothing has arrived"); }
    for (id, event_type) in [
        ("evt_8f2c", "row.created"),
        ("evt_8f2d", "row.updated"),
        ("evt_8f2d", "row.updated"),
        ("evt_8f2e", "page.updated"),
    ] {
        listening.event(id, event_type, "row_order_1").await;
    }
    let body = event("evt_8f2f", "row.deleted", "row_order_2");
    let changed = format!("{body} ");
    listening.deliver("evt_8f2f", &changed, &body).await;
    for (file, scheme) in [("listen-page.png", "light"), ("listen-refused.png", "dark")] {
        draw! { &listening.page, file, scheme;
            click("tr[data-state=refused]"); press(".detail", "Why was it refused?"); until_there(".explained");
        }
    }
    for number in 0..995 {
        let id = format!("evt_{number}");
        let kinds = ["row.created", "row.updated", "page.updated", "row.deleted"];
        let body = event(&id, kinds[number % 4], &format!("row_order_{number}"));
        let signed = if number % 11 == 3 { "other" } else { &body };
        listening.deliver(&id, &body, signed).await;
    }
    draw! { &listening.page, "listen-many.png", "dark"; until_text(".totals", "1,000 deliveries"); }
}

async fn draw() {
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    let name = json!({ "name": "my receiver" });
    service.control("PATCH", "subscriptions/wh_1", name).await;
    receiver
        .tries(&service, &[(204, 4), (500, 5), (204, 6)])
        .await;
    draw! { &service.page("rows/dm_orders"), "emulate.png", "light";
        until_count("tr[data-delivery]", 3);
        click("tr[data-state=pending]"); until_text(".detail", "Attempt 1"); until("document.getAnimations().length === 0");
    }
}
