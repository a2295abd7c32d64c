//! Models and rows: what the grid shows, cells edited by mouse and keyboard, and the delivery that
//! follows.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::screen::{PATIENCE, Screen};
use crate::{Receives, Served};

/// The texts of the grid's cells, row by row, without the last column.
const CELLS: &str = "[...document.querySelectorAll('[data-row]')].map((row) => [row.dataset.row, \
     Object.fromEntries([...row.querySelectorAll('[data-property]')].map((cell) => [cell.dataset.property, cell.textContent]))])";

#[tokio::test(flavor = "multi_thread")]
async fn the_grid_shows_the_rows_of_the_endpoint() {
    let service = Served::alone().await;
    let screen = open!(&service.page("rows/dm_orders"));
    screen.until_there("[data-row=row_order_3]").await;
    let shown = screen.eval(CELLS).await;
    let rows = service.list("models/dm_orders/rows").await;
    let shown = shown.as_array().unwrap();
    assert_eq!(shown.len(), rows.len());
    for (shown, row) in shown.iter().zip(&rows) {
        assert_eq!(shown[0], row["id"]);
        for (property, text) in shown[1].as_object().unwrap() {
            let expected = text_of(&row["data"][property]);
            assert_eq!(text, &expected, "{property} of {row}");
        }
    }
    // None has caused a delivery, and no filter is set.
    steps! { screen;
        eval("location.hash = '#rows/dm_clients'"); until_text("main", "No delivery of this data model yet.");
        is("document.body.innerText.includes('Clear filters')", false);
        end();
    }
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
        Value::Array(items) => {
            let items = items
                .iter()
                .map(|item| text_of(item.get("name").unwrap_or(item)));
            items.collect::<Vec<_>>().join(", ")
        }
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
    let cell = |row: u8| format!("[data-row=row_order_{row}] [data-property=prop_customer]");
    let on = |selector: &str| format!("document.activeElement.matches('{selector}')");
    let input = "[data-row=row_order_2] input";
    screen.until_there(&cell(1)).await;
    // The skip link, the bar, the sections and the models come before the grid.
    for _ in 0..60 {
        if screen.eval(&on(&cell(1))).await == true {
            break;
        }
        // The focus is seen.
        steps! { screen; key("Tab"); is("getComputedStyle(document.activeElement).outlineStyle !== 'none'", true); }
    }
    let typed = format!("document.querySelector('{input}')?.value === 'N'");
    steps! { screen;
        keys(&["ArrowRight", "ArrowDown", "ArrowLeft", "N"]); until(&typed);
        keys(&["Escape", "Enter"]); until(&on(input)); write("South Mill");
    }
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
    // The delivery that it caused is shown below.
    let caused = "[aria-label='Deliveries of this data model'] tbody tr";
    steps! { screen;
        until(&on(&cell(2))); until_text("[data-row=row_order_2]", "South Mill");
        until_text(caused, "row.updated"); until_text(caused, "delivered");
        end();
    }
    Some(at - began)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_type_is_edited_in_place_and_a_wrong_value_is_refused_in_its_cell() {
    let service = Served::alone().await;
    let screen = open!(&service.page("rows/dm_orders"));
    screen.until_there("[data-row=row_order_3]").await;
    let cell = |property: &str| format!("[data-row=row_order_3] [data-property={property}]");
    let invoice = r#"[{"url": "https://a", "name": "b"}]"#;
    for (name, written, value) in [
        ("Customer", "Ada & <Co>", json!("Ada & <Co>")),
        ("Quantity", "250", json!(250)),
        ("Due", "2027-01-02", json!("2027-01-02")),
        ("Status", "paid", json!("paid")),
        ("Tags", "one,  two", json!(["one", "two"])),
        ("Gift", "true", json!(true)),
        ("Client", "row_client_2", json!(["row_client_2"])),
        ("Invoice", invoice, serde_json::from_str(invoice).unwrap()),
        ("Total", "12.5", json!(12.5)),
        ("Customer", "", Value::Null),
    ] {
        let property = &*format!("prop_{}", name.to_lowercase());
        steps! { screen; click(&cell(property)); key("Enter"); fill(name, written); }
        // A choice by the mouse is the end of the edit.
        if !["Status", "Gift"].contains(&name) {
            screen.key("Enter").await;
        }
        screen
            .until(&format!(
                "document.activeElement.matches({:?})",
                cell(property)
            ))
            .await;
        let rows = service.list("models/dm_orders/rows").await;
        let row = rows.iter().find(|row| row["id"] == "row_order_3");
        assert_eq!(row.unwrap()["data"][property], value, "{name}");
    }
    // The second click of the mouse edits.
    let quantity = &*cell("prop_quantity");
    steps! { screen;
        click(quantity); click(quantity); fill("Quantity", "many"); key("Enter"); until_text(quantity, "expects a number");
        was_refused(400);
    }
    // What changes meanwhile does not take the text away.
    service.change(json!({ "prop_total": 99 })).await;
    steps! { screen;
        is("document.activeElement.value", "many");
        key("Escape"); until(&format!("document.querySelector({quantity:?}).textContent === '250'"));
        until_text("[data-row=row_order_1] [data-property=prop_total]", "99");
        end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_paged_sorted_added_and_deleted() {
    let service = Served::alone().await;
    let rows = (0..120).map(|number| json!({ "prop_quantity": (number * 7) % 120 }));
    let rows = json!({ "rows": rows.collect::<Vec<_>>() });
    service.control("POST", "models/dm_orders/rows", rows).await;
    let screen = open!(&service.page("rows/dm_orders"));
    let by_quantity = "models/dm_orders/rows?limit=50&orderBy=prop_quantity:desc";
    let there = service.list(by_quantity).await;
    let ids: Vec<_> = there
        .iter()
        .map(|row| row["id"].as_str().unwrap())
        .collect();
    let sorted = format!(
        "document.querySelector('[data-row]').dataset.row === '{}'",
        ids[0]
    );
    steps! { screen;
        until_text("#range", "1–50 of 123");
        press("main", "Later rows"); until_text("#range", "51–100 of 123");
        press("main", "Later rows"); until_text("#range", "101–123 of 123");
        press("thead", "Quantity"); until_there("th[aria-sort=ascending]");
        press("thead", "Quantity ↑"); until_there("th[aria-sort=descending]"); until_text("#range", "1–50 of 123");
        until(&sorted); are("[data-row] code", &ids);
        press("main", "Add a row");
        fill("Customer", "Made on the page"); fill("Quantity", "1000"); fill("Gift", "false");
        press("dialog", "Add"); until_text("[data-row]", "Made on the page");
    }
    let newest = service.data(by_quantity).await[0].take();
    let made =
        json!({ "prop_customer": "Made on the page", "prop_quantity": 1000, "prop_gift": false });
    assert_eq!(newest["data"], made);
    let id = newest["id"].as_str().unwrap();
    let row = &*format!("[data-row={id}]");
    steps! { screen;
        press(row, &format!("Delete {id}")); press("dialog", "Delete"); until_gone(row);
        until_text("#range", "of 123");
    }
    let deliveries = service.list("deliveries?limit=2").await;
    let types = [0, 1].map(|at: usize| &deliveries[at]["eventType"]);
    assert_eq!(types, ["row.deleted", "row.created"]);
    // A search that was left for a button does not begin again.
    let longer_than_its_pause = || tokio::time::sleep(Duration::from_millis(500));
    screen.fill("Search rows", "row_").await;
    longer_than_its_pause().await;
    steps! { screen; press("main", "Later rows"); until_text("#range", "51–100 of 123"); }
    longer_than_its_pause().await;
    steps! { screen;
        are("#range", &["51–100 of 123"]);
        // All rows are searched, not those of the page alone.
        fill("Search rows", "HARBOUR order_1"); until_text("#range", "1–1 of 1");
        fill("Search rows", "nowhere"); until_text("main", "No row fits the search (123 searched).");
        // The deliveries are those of this data model.
        press("main", "Clients 2"); until_text("#range", "1–2 of 2"); until_text("main", "No delivery of this data model yet.");
        end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_filled_and_sent_by_the_keyboard_alone_and_gives_the_focus_back() {
    let service = Served::alone().await;
    let screen = open!(&service.page("keys"));
    steps! { screen;
        until_there("[data-key=admin]"); eval("document.querySelector('.primary').focus()");
        key("Enter"); until("document.activeElement.labels?.[0]?.textContent === 'Name'");
        // From the scope's list back to the name, whose Enter sends the form.
        write("typed"); keys(&["Tab", "ArrowDown", "Shift+Tab", "Enter"]); until_there("dialog .secret");
        keys(&["Tab", "Enter"]); until_gone("dialog");
        end();
    }
    let made = service.data("keys").await[3].take();
    assert_eq!(
        json!([made["name"], made["scope"]]),
        json!(["typed", "write"])
    );
}
