//! Models and rows: what the grid shows, cells edited by mouse and keyboard, and the delivery that follows.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{Receives, Served};

/// The texts of the grid's cells, row by row, without the last column.
const CELLS: &str = "[...document.querySelectorAll('[data-row]')].map((row) => [row.dataset.row, \
     Object.fromEntries([...row.querySelectorAll('[data-property]')].map((cell) => [cell.dataset.property, cell.textContent]))])";

#[tokio::test(flavor = "multi_thread")]
async fn the_grid_shows_the_rows_of_the_endpoint() {
    let service = Served::delivering_to("http://127.0.0.1:1/webhooks").await;
    let screen = open!(&service.page("rows/dm_orders"));
    screen.until_there("[data-row=row_order_3]").await;
    let shown = screen.eval(CELLS).await;
    let rows = service.data("models/dm_orders/rows").await;
    assert_eq!(
        shown.as_array().unwrap().len(),
        rows.as_array().unwrap().len()
    );
    for (shown, row) in shown
        .as_array()
        .unwrap()
        .iter()
        .zip(rows.as_array().unwrap())
    {
        assert_eq!(shown[0], row["id"]);
        for (property, text) in shown[1].as_object().unwrap() {
            assert_eq!(
                text,
                &text_of(&row["data"][property]),
                "{property} of {}",
                row["id"]
            );
        }
    }
    screen.end().await;
}

/// The text that a cell shows for a value of the sample.
fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) if ["open", "paid", "cancelled"].contains(&&**text) => {
            text[..1].to_uppercase() + &text[1..]
        }
        Value::String(text) => text.clone(),
        Value::Array(items) => items
            .iter()
            .map(|item| text_of(item.get("name").unwrap_or(item)))
            .collect::<Vec<_>>()
            .join(", "),
        other => other.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cell_edited_by_the_keyboard_alone_arrives_at_a_real_receiver_within_a_second() {
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    let screen = open!(&service.page("rows/dm_orders"));
    screen
        .until_there("[data-row=row_order_1] [data-property=prop_customer]")
        .await;
    // The skip link, the bar, the sections and the models come before the grid.
    for _ in 0..60 {
        if screen.eval("document.activeElement.matches('[data-row=row_order_1] [data-property=prop_customer]')").await == true {
            break;
        }
        screen.key("Tab").await;
        assert_ne!(
            screen
                .eval("getComputedStyle(document.activeElement).outlineStyle")
                .await,
            "none",
            "the focus is seen"
        );
    }
    screen
        .keys(&["ArrowRight", "ArrowDown", "ArrowLeft", "Enter"])
        .await;
    screen
        .until("document.activeElement.matches('[data-row=row_order_2] input')")
        .await;
    screen.write("South Mill").await;
    let began = Instant::now();
    screen.key("Enter").await;
    while receiver.events().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let (at, event) = receiver.events().remove(0);
    assert!(at - began < Duration::from_secs(1), "{:?}", at - began);
    assert_eq!(event["type"], "row.updated");
    let changes = json!({ "Customer": { "before": "North Mill", "after": "South Mill" } });
    assert_eq!(event["data"]["changes"], changes);
    screen.until("document.activeElement.matches('[data-row=row_order_2] [data-property=prop_customer]')").await;
    screen
        .until_text("[data-row=row_order_2]", "South Mill")
        .await;
    // The delivery that it caused is shown below.
    screen
        .until_text(
            "[aria-label='Deliveries of this data model'] tbody tr",
            "row.updated",
        )
        .await;
    screen
        .until_text(
            "[aria-label='Deliveries of this data model'] tbody tr",
            "delivered",
        )
        .await;
    screen.end().await;
}
