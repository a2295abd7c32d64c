//! Rows: read, listed, written.

use futures_core::Stream;
use hookgate_client::{Direction, ErrorKind};
use serde_json::{Value, json};

use crate::support::{Order, client, orders, requests};

#[tokio::test]
async fn rows_are_read_by_name_as_the_structs_of_events() {
    let emulator = orders().await;
    let list = client(&emulator).rows::<Order>("dm_orders").list();
    let rows = list.all().await.unwrap();
    let first = &rows[0];
    assert_eq!((rows.len(), &*first.id), (3, "row_order_1"));
    assert_eq!(first.properties.customer, "Harbour Books");
    assert_eq!(first.properties.quantity, Some(3));
    assert_eq!(first.properties.total.as_ref().unwrap().as_str(), "120.5");
    assert!(first.created_at.is_some() && first.updated_at.is_some());
    // As hookgate's own properties, too.
    let rows = client(&emulator).rows::<hookgate::Properties>("dm_orders");
    let row = rows.list().next().await.unwrap().unwrap();
    let due = row.properties.required().date("Due").unwrap();
    assert!(due.is_date_only());
}

#[tokio::test]
async fn a_list_asks_for_the_next_page_when_one_is_used_up() {
    let emulator = orders().await;
    let handle = emulator.rows("dm_orders");
    for number in 0..1_100 {
        let values = json!({ "prop_customer": "Ada", "prop_quantity": number });
        handle.create(values).unwrap();
    }
    let mut list = client(&emulator).rows::<Order>("dm_orders").list();
    let mut count = 0;
    let pages = async || {
        let mut listed = requests(&emulator).await;
        listed.retain(|path| path.contains("/rows?"));
        listed
    };
    while let Some(row) = list.next().await {
        row.unwrap();
        count += 1;
        if count == 500 {
            // The next page is not asked for before it is needed.
            assert_eq!(pages().await.len(), 1);
        }
    }
    assert_eq!(count, 1_103);
    let page = |offset| format!("GET /api/v1/datamodels/dm_orders/rows?limit=500&offset={offset}");
    assert_eq!(pages().await, [page(0), page(500), page(1_000)]);
}

#[tokio::test]
async fn a_list_is_a_stream_and_begins_where_it_is_told() {
    fn is_stream<S: Stream + Send + Unpin>(stream: S) -> S {
        stream
    }
    let emulator = orders().await;
    let rows = client(&emulator).rows::<Order>("dm_orders");
    let mut list = is_stream(rows.page_size(1).list().skip(1));
    let next = std::future::poll_fn(|context| std::pin::Pin::new(&mut list).poll_next(context));
    assert_eq!(next.await.unwrap().unwrap().id, "row_order_2");
    assert_eq!(list.all().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_page_says_what_follows() {
    let emulator = orders().await;
    let rows = client(&emulator).rows::<Value>("dm_orders").page_size(2);
    for (offset, items, has_more) in [(0, 2, true), (2, 1, false)] {
        let page = rows.page(offset).await.unwrap();
        assert_eq!((page.offset, page.total), (offset, Some(3)));
        assert_eq!((page.items.len(), page.has_more), (items, has_more));
    }
}

#[tokio::test]
async fn an_order_is_given_by_names() {
    let emulator = orders().await;
    let rows = client(&emulator).rows::<Order>("dm_orders");
    let unknown = rows.clone().order_by("Size", Direction::Ascending);
    let rows = rows.order_by("Customer", Direction::Descending);
    let rows = rows.order_by("Quantity", Direction::Ascending);
    let rows = rows.list().all().await.unwrap();
    let ids: Vec<_> = rows.iter().map(|row| &*row.id).collect();
    assert_eq!(ids, ["row_order_2", "row_order_3", "row_order_1"]);
    let error = unknown.list().all().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownProperty);
}

#[tokio::test]
async fn a_row_is_created_changed_and_deleted() {
    let emulator = orders().await;
    let rows = client(&emulator).rows::<Order>("dm_orders");
    let row = rows.create(&Order::of("Ada", 4)).await.unwrap();
    assert_eq!(row.properties, Order::of("Ada", 4));
    assert!(row.created_at.is_some());
    let stored = emulator.rows("dm_orders").get(&row.id).unwrap();
    let expected = json!({ "prop_customer": "Ada", "prop_quantity": 4 });
    assert_eq!(stored, expected);

    let change = json!({ "Quantity": null, "Total": 12.5 });
    let changed = rows.update(&row.id, &change).await.unwrap();
    assert_eq!(changed.properties.quantity, None);
    assert!(changed.updated_at.is_some());
    assert_eq!(changed.properties.customer, "Ada");

    rows.delete(&row.id).await.unwrap();
    assert_eq!(emulator.rows("dm_orders").get(&row.id), None);
    let gone = rows.delete(&row.id).await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn numbers_keep_their_digits_on_the_way_out_and_in() {
    let emulator = orders().await;
    let rows = client(&emulator).rows::<Order>("dm_orders");
    let total: hookgate::event::Number = serde_json::from_str("12.10").unwrap();
    let order = Order {
        total: Some(total),
        ..Order::of("Ada", 1)
    };
    // The emulator keeps a number as a float; the request had the digits.
    let row = rows.create(&order).await.unwrap();
    assert_eq!(row.properties.total.unwrap().to_f64_lossy(), 12.1);
}

/// As everywhere in hookgate: `Number` takes it, with every digit.
#[tokio::test]
async fn an_integer_written_with_a_fraction_is_none_of_an_integers_type() {
    let emulator = orders().await;
    let values = json!({ "prop_customer": "Ada", "prop_quantity": 3.0 });
    let row = emulator.rows("dm_orders").create(values).unwrap();
    let list = client(&emulator).rows::<Order>("dm_orders").list();
    let error = list.all().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Row);
    let told = error.to_string();
    for said in [&*row, "\"Quantity\" is a number, expected i64"] {
        assert!(told.contains(said), "{told}");
    }
}

#[tokio::test]
async fn a_value_that_does_not_fit_is_named_and_not_repeated() {
    #[derive(Debug, serde::Deserialize)]
    struct Wrong {
        #[serde(rename = "Customer")]
        _customer: u32,
    }
    #[derive(Debug, serde::Deserialize)]
    struct Missing {
        #[serde(rename = "Size")]
        _size: u32,
    }
    let emulator = orders().await;
    let list = client(&emulator).rows::<Wrong>("dm_orders").list();
    let error = list.all().await.unwrap_err();
    let told = format!("{error} {error:?}");
    let said = "row row_order_1: the property \"Customer\" is a text, expected u32";
    assert!(told.contains(said) && !told.contains("Harbour"), "{told}");
    let list = client(&emulator).rows::<Missing>("dm_orders").list();
    let error = list.all().await.unwrap_err();
    assert!(error.message().contains("missing field `Size`"), "{error}");
}

#[tokio::test]
async fn ids_with_odd_characters_stay_one_segment_and_empty_ones_are_refused() {
    let emulator = orders().await;
    let rows = client(&emulator).rows::<Value>("dm_orders");
    let outside = "../../dm_clients/rows/row_client_1?x#y";
    let error = rows.delete(outside).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let segment = "/..%2F..%2Fdm_clients%2Frows%2Frow_client_1%3Fx%23y";
    assert!(error.request().unwrap().ends_with(segment), "{error}");
    for id in ["", ".", ".."] {
        assert_eq!(rows.delete(id).await.unwrap_err().kind(), ErrorKind::Config);
    }
    assert!(emulator.rows("dm_clients").get("row_client_1").is_some());
}
