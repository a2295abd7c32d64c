//! Models and rows: what the grid shows, cells edited by mouse and keyboard, and the delivery that follows.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::screen::{PATIENCE, Screen};
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
    // None has caused a delivery, and no filter is set.
    screen.eval("location.hash = '#rows/dm_clients'").await;
    screen
        .until_text("main", "No delivery of this data model yet.")
        .await;
    let shown = screen.eval("document.body.innerText").await.to_string();
    assert!(!shown.contains("Clear filters"), "{shown}");
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
    // A busy machine may need longer once.
    for _ in 0..5 {
        let Some(took) = edited_cell_arrives_after().await else {
            return;
        };
        if took < Duration::from_secs(1) {
            return;
        }
    }
    panic!("it took longer each time");
}

/// Returns nothing where there is no browser.
async fn edited_cell_arrives_after() -> Option<Duration> {
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    let screen = Screen::open(&service.page("rows/dm_orders")).await?;
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
        .keys(&["ArrowRight", "ArrowDown", "ArrowLeft", "N"])
        .await;
    screen
        .until("document.querySelector('[data-row=row_order_2] input')?.value === 'N'")
        .await;
    screen.keys(&["Escape", "Enter"]).await;
    screen
        .until("document.activeElement.matches('[data-row=row_order_2] input')")
        .await;
    screen.write("South Mill").await;
    let began = Instant::now();
    screen.key("Enter").await;
    while receiver.events().is_empty() {
        assert!(began.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let (at, event) = receiver.events().remove(0);
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
    Some(at - began)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_type_is_edited_in_place_and_a_wrong_value_is_refused_in_its_cell() {
    let service = Served::delivering_to("http://127.0.0.1:1/webhooks").await;
    let screen = open!(&service.page("rows/dm_orders"));
    screen.until_there("[data-row=row_order_3]").await;
    let cell = |property: &str| format!("[data-row=row_order_3] [data-property={property}]");
    for (name, property, written, value) in [
        (
            "Customer",
            "prop_customer",
            "Ada & <Co>",
            json!("Ada & <Co>"),
        ),
        ("Quantity", "prop_quantity", "250", json!(250)),
        ("Due", "prop_due", "2027-01-02", json!("2027-01-02")),
        ("Status", "prop_status", "paid", json!("paid")),
        ("Tags", "prop_tags", "one,  two", json!(["one", "two"])),
        ("Gift", "prop_gift", "true", json!(true)),
        (
            "Client",
            "prop_client",
            "row_client_2",
            json!(["row_client_2"]),
        ),
        (
            "Invoice",
            "prop_invoice",
            r#"[{"url": "https://a", "name": "b"}]"#,
            json!([{ "url": "https://a", "name": "b" }]),
        ),
        ("Total", "prop_total", "12.5", json!(12.5)),
        ("Customer", "prop_customer", "", Value::Null),
    ] {
        screen.click(&cell(property)).await;
        screen.key("Enter").await;
        screen.fill(name, written).await;
        // A choice by the mouse is the end of the edit.
        if !["Status", "Gift"].contains(&name) {
            screen.key("Enter").await;
        }
        screen
            .until(&format!(
                "document.activeElement === document.querySelector({:?})",
                cell(property)
            ))
            .await;
        let rows = service.data("models/dm_orders/rows").await;
        let row = rows
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["id"] == "row_order_3")
            .unwrap();
        assert_eq!(row["data"][property], value, "{name}");
    }
    // The second click of the mouse edits.
    screen.click(&cell("prop_quantity")).await;
    screen.click(&cell("prop_quantity")).await;
    screen.fill("Quantity", "many").await;
    screen.key("Enter").await;
    screen
        .until_text(&cell("prop_quantity"), "expects a number")
        .await;
    screen.was_refused(400).await;
    // What changes meanwhile does not take the text away.
    let other = json!({ "values": { "prop_total": 99 } });
    service
        .control("PATCH", "models/dm_orders/rows/row_order_1", Some(other))
        .await;
    assert_eq!(screen.eval("document.activeElement.value").await, "many");
    screen.key("Escape").await;
    screen
        .until(&format!(
            "document.querySelector({:?}).textContent === '250'",
            cell("prop_quantity")
        ))
        .await;
    screen
        .until_text("[data-row=row_order_1] [data-property=prop_total]", "99")
        .await;
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_paged_sorted_added_and_deleted() {
    let service = Served::delivering_to("http://127.0.0.1:1/webhooks").await;
    let rows: Vec<Value> = (0..120)
        .map(|number| json!({ "prop_quantity": (number * 7) % 120 }))
        .collect();
    service
        .control(
            "POST",
            "models/dm_orders/rows",
            Some(json!({ "rows": rows })),
        )
        .await;
    let screen = open!(&service.page("rows/dm_orders"));
    screen.until_text("#range", "1–50 of 123").await;
    screen.press("main", "Later rows").await;
    screen.until_text("#range", "51–100 of 123").await;
    screen.press("main", "Later rows").await;
    screen.until_text("#range", "101–123 of 123").await;
    screen.press("thead", "Quantity").await;
    screen.until_there("th[aria-sort=ascending]").await;
    screen.press("thead", "Quantity ↑").await;
    screen.until_there("th[aria-sort=descending]").await;
    screen.until_text("#range", "1–50 of 123").await;
    let there = service
        .data("models/dm_orders/rows?limit=50&orderBy=prop_quantity:desc")
        .await;
    let ids: Vec<_> = there
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["id"].as_str().unwrap())
        .collect();
    screen
        .until(&format!(
            "document.querySelector('[data-row]').dataset.row === '{}'",
            ids[0]
        ))
        .await;
    assert_eq!(screen.texts("[data-row] code").await, ids);

    screen.press("main", "Add a row").await;
    screen.fill("Customer", "Made on the page").await;
    screen.fill("Quantity", "1000").await;
    screen.fill("Gift", "false").await;
    screen.press("dialog", "Add").await;
    screen.until_text("[data-row]", "Made on the page").await;
    let newest = service
        .data("models/dm_orders/rows?limit=1&orderBy=prop_quantity:desc")
        .await[0]
        .clone();
    assert_eq!(
        newest["data"],
        json!({ "prop_customer": "Made on the page", "prop_quantity": 1000, "prop_gift": false })
    );
    let id = newest["id"].as_str().unwrap();
    screen
        .press(&format!("[data-row={id}]"), &format!("Delete {id}"))
        .await;
    screen.press("dialog", "Delete").await;
    screen
        .until(&format!(
            "document.querySelector('[data-row={id}]') === null"
        ))
        .await;
    screen.until_text("#range", "of 123").await;
    let types = service.data("deliveries?limit=2").await;
    assert_eq!(
        (&types[0]["eventType"], &types[1]["eventType"]),
        (&json!("row.deleted"), &json!("row.created"))
    );
    // A search that was left for a button does not begin again.
    let longer_than_its_pause = || tokio::time::sleep(std::time::Duration::from_millis(500));
    screen.fill("Search rows", "row_").await;
    longer_than_its_pause().await;
    screen.press("main", "Later rows").await;
    screen.until_text("#range", "51–100 of 123").await;
    longer_than_its_pause().await;
    assert_eq!(screen.texts("#range").await, ["51–100 of 123"]);
    // All rows are searched, not those of the page alone.
    screen.fill("Search rows", "HARBOUR order_1").await;
    screen.until_text("#range", "1–1 of 1").await;
    screen.fill("Search rows", "nowhere").await;
    screen
        .until_text("main", "No row fits the search (123 searched).")
        .await;
    screen.press("main", "Clients 2").await;
    screen.until_text("#range", "1–2 of 2").await;
    // The deliveries are those of this data model.
    screen
        .until_text("main", "No delivery of this data model yet.")
        .await;
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_filled_and_sent_by_the_keyboard_alone_and_gives_the_focus_back() {
    let service = Served::delivering_to("http://127.0.0.1:1/webhooks").await;
    let screen = open!(&service.page("keys"));
    screen.until_there("[data-key=admin]").await;
    screen
        .eval("document.querySelector('.primary').focus()")
        .await;
    screen.key("Enter").await;
    screen
        .until("document.activeElement.labels?.[0]?.textContent === 'Name'")
        .await;
    screen.write("typed").await;
    // From the scope's list back to the name, whose Enter sends the form.
    screen
        .keys(&["Tab", "ArrowDown", "Shift+Tab", "Enter"])
        .await;
    screen.until_there("dialog .secret").await;
    screen.keys(&["Tab", "Enter"]).await;
    screen
        .until("document.querySelector('dialog') === null")
        .await;
    let made = service.data("keys").await[3].clone();
    assert_eq!(
        (&made["name"], &made["scope"]),
        (&json!("typed"), &json!("write"))
    );
    // Every control says what it is.
    for section in [
        "rows",
        "webhooks",
        "keys",
        "requests",
        "triggers",
        "faults",
        "workspace",
    ] {
        screen.eval(&format!("location.hash = '{section}'")).await;
        screen
            .until(&format!(
                "document.querySelector('[aria-current=page]').hash === '#{section}'"
            ))
            .await;
        screen
            .until("document.querySelector('main').innerText.length > 100")
            .await;
        let nameless = "[...document.querySelectorAll('button, a, input, select, textarea')].filter((one) => \
             !(one.getAttribute('aria-label') || one.labels?.length || one.textContent.trim())).map((one) => one.outerHTML)";
        assert_eq!(screen.eval(nameless).await, json!([]), "{section}");
    }
    screen.end().await;
}
