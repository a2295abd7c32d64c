//! The Rust struct of a data model, which the compiler has to take.

use hookgate_client::{DataModel, ErrorKind, RustStruct};
use serde_json::json;

use crate::support::{client, orders};

/// What `hookgate rows struct dm_orders --name Order --required Customer` prints.
#[rustfmt::skip]
mod order {
    include!("written/order.rs");
}
/// Names that are not names of Rust, and a type that the specification does not show.
#[rustfmt::skip]
mod odd {
    include!("written/odd.rs");
}

/// Compares with a file that is compiled in. `WRITE_STRUCTS=1` writes it again.
#[track_caller]
fn compare(file: &str, written: &str, compiled: &str) {
    if std::env::var_os("WRITE_STRUCTS").is_some() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/written");
        std::fs::write(format!("{folder}/{file}"), written).unwrap();
    }
    assert_eq!(written, compiled);
}

#[tokio::test]
async fn the_struct_of_nine_types_is_compiled_and_reads_the_rows_that_it_is_for() {
    let emulator = orders().await;
    let client = client(&emulator);
    let model = client.data_model("dm_orders").await.unwrap();
    let written = RustStruct::of(&model)
        .name("Order")
        .required("Customer")
        .write()
        .unwrap();
    compare("order.rs", &written, include_str!("written/order.rs"));

    let rows = client.rows::<order::Order>("dm_orders");
    let read = rows.list().all().await.unwrap();
    let first = &read[0].properties;
    assert_eq!(first.customer, "Harbour Books");
    assert!(first.due.as_ref().unwrap().is_date_only());
    assert_eq!(first.client.as_ref().unwrap()[0], "row_client_1");
    assert_eq!(first.invoice.as_ref().unwrap()[0].name, "invoice-1.pdf");
    assert_eq!(
        (first.gift, first.tags.as_ref().map(Vec::len)),
        (Some(false), Some(1))
    );
    assert!(read[2].properties.due.is_none());
    // It is written as it is read.
    let made = rows.create(first).await.unwrap();
    let stored = emulator.rows("dm_orders");
    assert_eq!(stored.get(&made.id), stored.get("row_order_1"));
}

fn odd() -> DataModel {
    let names = [
        "type",
        "Type",
        "self",
        "2nd \"try\"",
        "日付",
        "名前",
        "a\nb\u{202e}",
        "camelCase",
        "ok",
    ];
    let properties: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(at, name)| json!({ "id": format!("prop_{at}"), "name": name, "type": if at == 8 { "FORMULA" } else { "TEXT" }, "order": at }))
        .collect();
    serde_json::from_value(
        json!({ "id": "dm_odd", "title": "2 odd */ things", "properties": properties }),
    )
    .unwrap()
}

#[test]
fn odd_names_become_names_of_fields_and_keep_their_renames() {
    let written = RustStruct::of(&odd()).write().unwrap();
    compare("odd.rs", &written, include_str!("written/odd.rs"));
    let values = json!({ "type": "a", "Type": "b", "self": "c", "2nd \"try\"": "d", "日付": "e", "名前": "f",
        "a\nb\u{202e}": "g", "camelCase": "h", "ok": [1.50] });
    let read: odd::Row2OddThings = serde_json::from_str(&values.to_string()).unwrap();
    let texts = [
        &read.r#type,
        &read.type_2,
        &read.self_,
        &read._2nd_try,
        &read.property,
        &read.property_2,
        &read.a_b,
        &read.camel_case,
    ];
    let texts: String = texts.into_iter().flatten().map(String::as_str).collect();
    assert_eq!(texts, "abcdefgh");
    assert_eq!(read.ok.as_ref().unwrap().as_str(), "[1.5]");
    assert_eq!(serde_json::to_value(&read).unwrap(), values);
}

#[test]
fn a_struct_that_cannot_be_is_refused() {
    let mut model = odd();
    assert_eq!(
        RustStruct::of(&model)
            .name("order")
            .write()
            .unwrap_err()
            .kind(),
        ErrorKind::Config
    );
    assert_eq!(
        RustStruct::of(&model)
            .required("Size")
            .write()
            .unwrap_err()
            .kind(),
        ErrorKind::UnknownProperty
    );
    model.properties[1].name = "type".to_owned();
    assert_eq!(
        RustStruct::of(&model).write().unwrap_err().kind(),
        ErrorKind::AmbiguousProperty
    );
}
