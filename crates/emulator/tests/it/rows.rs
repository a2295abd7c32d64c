//! *List rows*, *Create rows*, *Update a row*, *Delete a row*.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Service;
use crate::support::{cpu_time, in_still_time};

const ROWS: &str = "/datamodels/dm_orders/rows";

/// A service with so many rows of one number each.
pub(crate) async fn numbered(rows: usize) -> Service {
    let rows: Vec<_> = (0..rows)
        .map(|number| json!({ "id": format!("row_{number}"), "data": { "prop_n": number, "prop_even": number % 2 == 0 } }))
        .collect();
    let seed = json!({
        "workspace": { "id": "ws_1", "tier": "enterprise" },
        "keys": [{ "name": "admin", "key": "tk_test_admin", "scope": "admin" }],
        "dataModels": [{
            "id": "dm_n", "title": "Numbers", "rows": rows,
            "properties": [
                { "id": "prop_n", "name": "Number", "type": "NUMBER" },
                { "id": "prop_even", "name": "Even", "type": "CHECKBOX" },
                { "id": "prop_text", "name": "Text", "type": "TEXT" },
            ],
        }],
    });
    Service::seeded(&seed.to_string()).await
}

fn ids(rows: &Value) -> Vec<String> {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| row["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_list_of_rows_has_100_by_default_and_500_at_most() {
    let service = numbered(501).await;
    for (query, count, limit) in [("", 100, 100), ("?limit=7", 7, 7), ("?limit=500", 500, 500)] {
        let page = service
            .get(&format!("/datamodels/dm_n/rows{query}"))
            .await
            .json();
        assert_eq!(page["data"].as_array().unwrap().len(), count);
        let meta = json!({ "total": 501, "limit": limit, "offset": 0, "hasMore": true });
        assert_eq!(page["meta"], meta);
    }
}

#[tokio::test]
async fn a_limit_above_500_is_taken_as_500_or_refused_as_the_switch_says() {
    let service = numbered(501).await;
    let page = service.get("/datamodels/dm_n/rows?limit=501").await.json();
    assert_eq!(
        (
            page["data"].as_array().unwrap().len(),
            &page["meta"]["limit"]
        ),
        (500, &json!(500))
    );
    service
        .control(
            "PATCH",
            "switches",
            Some(json!({ "limitAbove500": "refuse" })),
        )
        .await
        .data();
    let refused = service.get("/datamodels/dm_n/rows?limit=501").await;
    assert!(refused.refused(400, "VALIDATION_ERROR").contains("`limit`"));
}

#[tokio::test]
async fn offset_skips_rows_and_the_last_page_has_no_more() {
    let service = numbered(10).await;
    let page = service
        .get("/datamodels/dm_n/rows?limit=4&offset=8")
        .await
        .json();
    assert_eq!(ids(&page["data"]), ["row_8", "row_9"]);
    assert_eq!(
        page["meta"],
        json!({ "total": 10, "limit": 4, "offset": 8, "hasMore": false })
    );
    let page = service.get("/datamodels/dm_n/rows?offset=99").await.json();
    assert_eq!(
        (&page["data"], &page["meta"]["total"]),
        (&json!([]), &json!(10))
    );
}

#[tokio::test]
async fn order_by_sorts_by_several_properties_and_earlier_ones_take_precedence() {
    let service = numbered(6).await;
    let list = |query: &str| {
        let path = format!("/datamodels/dm_n/rows?orderBy={query}");
        let service = &service;
        async move {
            ids(&service.get(&path).await.data())
                .join(" ")
                .replace("row_", "")
        }
    };
    assert_eq!(list("prop_n:desc").await, "5 4 3 2 1 0");
    assert_eq!(list("prop_even:desc,prop_n:asc").await, "0 2 4 1 3 5");
    assert_eq!(
        list("prop_even:asc,prop_n:desc&limit=2&offset=2").await,
        "1 4"
    );
    assert_eq!(
        list("prop_even%3Aasc").await,
        "1 3 5 0 2 4",
        "equal values keep the list's order"
    );
    // Rows without a value come last in both directions.
    let text = json!({ "values": { "prop_text": "a" } });
    service
        .api("PATCH", "/datamodels/dm_n/rows/row_3", Some(text))
        .await
        .data();
    assert_eq!(list("prop_text:asc&limit=1").await, "3");
    assert_eq!(list("prop_text:desc&limit=1").await, "3");
}

#[tokio::test]
async fn a_parameter_of_another_form_is_refused_by_name() {
    let service = numbered(1).await;
    for (query, named) in [
        ("limit=many", "`limit`"),
        ("limit=-1", "`limit`"),
        ("limit=0", "`limit`"),
        ("offset=1.5", "`offset`"),
        ("orderBy=prop_n", "orderBy"),
        ("orderBy=prop_n:up", "orderBy"),
        ("orderBy=prop_x:asc", "`prop_x`"),
    ] {
        let answer = service.get(&format!("/datamodels/dm_n/rows?{query}")).await;
        let message = answer.refused(400, "VALIDATION_ERROR");
        assert!(message.contains(named), "{query}: {message}");
    }
}

#[tokio::test]
async fn the_order_of_a_list_is_a_switch() {
    let service = numbered(3).await;
    let order = || async { ids(&service.get("/datamodels/dm_n/rows").await.data()).join(" ") };
    assert_eq!(order().await, "row_0 row_1 row_2");
    service
        .control("PATCH", "switches", Some(json!({ "listOrder": "newest" })))
        .await
        .data();
    assert_eq!(order().await, "row_2 row_1 row_0");
    service
        .control(
            "PATCH",
            "switches",
            Some(json!({ "listOrder": "updatedLast" })),
        )
        .await
        .data();
    let values = json!({ "values": { "prop_n": 7 } });
    service
        .api("PATCH", "/datamodels/dm_n/rows/row_0", Some(values))
        .await
        .data();
    assert_eq!(order().await, "row_1 row_2 row_0");
}

#[tokio::test]
async fn a_row_in_a_list_has_id_data_and_both_times() {
    let service = Service::orders().await;
    let rows = service.get(ROWS).await.data();
    let fields: Vec<_> = rows[0]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(fields, ["createdAt", "data", "id", "updatedAt"]);
    assert_eq!(rows[0]["data"]["prop_customer"], "Harbour Books");
}

#[tokio::test]
async fn a_single_row_is_created_from_values() {
    let service = Service::orders().await;
    let values = json!({ "prop_customer": "Ada", "prop_quantity": 2.5 });
    let row = service
        .api("POST", ROWS, Some(json!({ "values": values })))
        .await
        .data();
    let fields: Vec<_> = row
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(fields, ["createdAt", "data", "id"]);
    assert!(row["id"].as_str().unwrap().starts_with("row_"));
    assert_eq!(row["data"], values);
    let listed = service.get(&format!("{ROWS}?offset=3")).await.data();
    assert_eq!(
        (&listed[0]["id"], &listed[0]["createdAt"]),
        (&row["id"], &row["createdAt"])
    );
}

#[tokio::test]
async fn a_batch_creates_what_is_right_and_reports_the_others() {
    let service = Service::orders().await;
    let rows = json!({ "rows": [
        { "prop_customer": "A" }, { "prop_quantity": "two" }, { "prop_customer": "B" }, 7, { "prop_x": 1 },
    ] });
    let answer = service.api("POST", ROWS, Some(rows)).await.json();
    let names: Vec<_> = answer["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["data"]["prop_customer"])
        .collect();
    assert_eq!(names, ["A", "B"]);
    let fields: Vec<_> = answer["data"][0]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        fields,
        ["createdAt", "data", "id", "updatedAt"],
        "a whole row"
    );
    assert_eq!(answer["meta"]["createdCount"], 2);
    let errors = answer["meta"]["errors"].as_array().unwrap();
    let places: Vec<_> = errors
        .iter()
        .map(|error| error["index"].as_u64().unwrap())
        .collect();
    assert_eq!(places, [1, 3, 4]);
    assert!(
        errors[0]["message"]
            .as_str()
            .unwrap()
            .contains("prop_quantity")
    );
    assert_eq!(service.get(ROWS).await.json()["meta"]["total"], 5);
    let none = service
        .api("POST", ROWS, Some(json!({ "rows": [] })))
        .await
        .json();
    assert_eq!(
        none,
        json!({ "data": [], "meta": { "createdCount": 0, "errors": [] } })
    );
    // The entries are bare values: `values` is taken for a property.
    let wrapped = json!({ "rows": [{ "values": { "prop_customer": "C" } }] });
    let wrapped = service.api("POST", ROWS, Some(wrapped)).await.json();
    assert_eq!(wrapped["meta"]["createdCount"], 0);
    assert_eq!(wrapped["meta"]["errors"][0]["index"], 0);
}

#[tokio::test]
async fn a_body_of_neither_form_is_refused() {
    let service = Service::orders().await;
    for body in [
        json!({}),
        json!({ "values": {}, "rows": [] }),
        json!({ "rows": {} }),
        json!({ "values": [] }),
        json!({ "value": {} }),
        json!([]),
    ] {
        service
            .api("POST", ROWS, Some(body))
            .await
            .refused(400, "VALIDATION_ERROR");
    }
    for body in [
        json!({}),
        json!({ "values": 1 }),
        json!({ "values": {}, "more": 1 }),
    ] {
        let path = format!("{ROWS}/row_order_1");
        service
            .api("PATCH", &path, Some(body))
            .await
            .refused(400, "VALIDATION_ERROR");
    }
}

#[tokio::test]
async fn an_update_changes_the_listed_properties_and_answers_the_full_row() {
    let service = Service::orders().await;
    let before = service.get(ROWS).await.data()[1].take();
    service
        .control("POST", "clock/advance", Some(json!({ "by": "5m" })))
        .await;
    let values = json!({ "values": { "prop_status": "cancelled" } });
    let row = service
        .api("PATCH", &format!("{ROWS}/row_order_2"), Some(values))
        .await
        .data();
    let fields: Vec<_> = row
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(fields, ["data", "id", "updatedAt"]);
    let mut expected = before["data"].clone();
    expected["prop_status"] = json!("cancelled");
    assert_eq!(row["data"], expected);
    let after = service.get(ROWS).await.data()[1].take();
    assert_eq!(
        (&after["updatedAt"], &after["createdAt"]),
        (&row["updatedAt"], &before["createdAt"])
    );
    assert_ne!(after["updatedAt"], before["updatedAt"]);
}

#[tokio::test]
async fn null_clears_a_value() {
    let service = Service::orders().await;
    let values = json!({ "values": { "prop_customer": null } });
    let row = service
        .api("PATCH", &format!("{ROWS}/row_order_2"), Some(values))
        .await
        .data();
    assert!(row["data"].get("prop_customer").is_none() && row["data"].get("prop_total").is_some());
}

#[tokio::test]
async fn a_deleted_row_is_gone() {
    let service = Service::orders().await;
    let path = format!("{ROWS}/row_order_2");
    let deleted = service.api("DELETE", &path, None).await.data();
    assert_eq!(deleted, json!({ "id": "row_order_2", "deleted": true }));
    assert_eq!(
        ids(&service.get(ROWS).await.data()),
        ["row_order_1", "row_order_3"]
    );
    service
        .api("DELETE", &path, None)
        .await
        .refused(404, "NOT_FOUND");
    service
        .api("PATCH", &path, Some(json!({ "values": {} })))
        .await
        .refused(404, "NOT_FOUND");
}

#[tokio::test]
async fn the_control_searches_all_rows_for_words_in_ids_values_and_labels() {
    let option = |value, label| json!({ "value": value, "label": label });
    let many = (0..120).map(|number| json!({ "id": format!("row_{number}"), "data": { "prop_name": "Zoë Ash", "prop_n": 7.25 } }));
    let few = [
        json!({ "id": "row_last", "data": { "prop_tags": ["t1", "t2"], "prop_gift": true, "prop_files": [{ "url": "https://files.example.com/1", "name": "Plan.pdf" }] } }),
    ];
    let service = Service::seeded(
        &json!({ "workspace": { "id": "ws_1", "tier": "enterprise" },
            "keys": [{ "name": "admin", "key": "tk_test_admin", "scope": "admin" }],
            "dataModels": [{ "id": "dm_1", "title": "People", "rows": many.chain(few).collect::<Vec<_>>(), "properties": [
                { "id": "prop_name", "name": "Name", "type": "TEXT" },
                { "id": "prop_n", "name": "Number", "type": "NUMBER" },
                { "id": "prop_files", "name": "Files", "type": "FILE" },
                { "id": "prop_gift", "name": "Gift", "type": "CHECKBOX" },
                { "id": "prop_tags", "name": "Tags", "type": "MULTI_SELECT", "options": [option("t1", "Late"), option("t2", "Äther"), option("t3", "Unused")] },
            ] }] })
        .to_string(),
    )
    .await;
    let found = async |query: &str| {
        let path = format!("models/dm_1/rows?limit=2&{query}");
        let page = service.control("GET", &path, None).await.json();
        let count = page["data"].as_array().unwrap().len();
        (count, page["meta"]["total"].as_u64().unwrap())
    };
    assert_eq!(found("search=").await, (2, 121));
    assert_eq!(found("search=zO%C3%8B+7.25&offset=119").await, (1, 120));
    for words in [
        "ROW_LAST",
        "plan",
        "t2",
        "yes",
        "late+%C3%A4TH",
        "+last++plan+",
    ] {
        assert_eq!(found(&format!("search={words}")).await, (1, 1), "{words}");
    }
    for words in ["unused", "zo%C3%AB+plan", "prop_n", "nowhere"] {
        assert_eq!(found(&format!("search={words}")).await, (0, 0), "{words}");
    }
    // The service's own list does not search.
    let own = service
        .get("/datamodels/dm_1/rows?search=plan")
        .await
        .json();
    assert_eq!(own["meta"]["total"], 121);
}

/// Compared with pages of a table that has no other rows, read in between, by the processor time of this thread, in which all of the
/// work is. A sort of all rows takes as long as 50 pages.
#[tokio::test]
async fn a_page_of_500_out_of_100_000_rows_is_quick() {
    let (large, small) = (numbered(100_000).await, numbered(500).await);
    let timed = async |service: &Service, query: &str, pages: u32| {
        let began = cpu_time();
        for _ in 0..pages {
            let path = format!("/datamodels/dm_n/rows?limit=500{query}");
            let page = service.get(&path).await;
            assert_eq!(page.data().as_array().unwrap().len(), 500);
        }
        cpu_time() - began
    };
    let order = "&orderBy=prop_even:asc,prop_n:desc";
    in_still_time(async {
        for (query, offset, most) in [("", 0, 5), ("", 99_000, 5), (order, 50_000, 30)] {
            let (mut best, mut allowed) = (Duration::MAX, Duration::MAX);
            for _ in 0..20 {
                best = best.min(timed(&large, &format!("{query}&offset={offset}"), 1).await);
                allowed = allowed.min(timed(&small, query, most).await);
                println!("{query} {offset}: {best:?}, {most} pages {allowed:?}");
                if best <= allowed {
                    break;
                }
            }
            assert!(
                best <= allowed,
                "{query} {offset}: {best:?}, {most} pages take {allowed:?}"
            );
        }
    })
    .await;
}
