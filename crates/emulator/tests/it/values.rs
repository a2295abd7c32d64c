//! *Value formats by property type*.

use serde_json::{Value, json};

use crate::Service;

/// One row a type of the specification's table: values that it takes, and values that it refuses.
fn table() -> Vec<(&'static str, Vec<Value>, Vec<Value>)> {
    let file = json!({ "url": "https://files.example.com/a", "name": "a" });
    vec![
        (
            "TEXT",
            vec![json!(""), json!("Ada")],
            vec![json!(1), json!(true), json!([]), json!({})],
        ),
        (
            "NUMBER",
            vec![json!(0), json!(-3), json!(2.5)],
            vec![json!("2"), json!(true), json!([1])],
        ),
        (
            "DATE",
            vec![
                json!("2026-11-21"),
                json!("2026-11-21T09:30:00Z"),
                json!("2026-11-21T09:30:00.5+01:00"),
            ],
            vec![
                json!("2026-02-30"),
                json!("2026-11-21T09:30:00"),
                json!("21.11.2026"),
                json!(1_795_253_400),
            ],
        ),
        (
            "SELECT",
            vec![json!("open"), json!("paid")],
            vec![json!("Open"), json!(""), json!(["open"])],
        ),
        (
            "MULTI_SELECT",
            vec![json!([]), json!(["a", "b"])],
            vec![json!("a"), json!([1]), json!({})],
        ),
        (
            "CHECKBOX",
            vec![json!(true), json!(false)],
            vec![json!("true"), json!(1), json!(0)],
        ),
        (
            "RELATION",
            vec![json!([]), json!(["row_1"])],
            vec![json!("row_1"), json!([{ "id": "row_1" }])],
        ),
        (
            "FILE",
            vec![json!([]), json!([file])],
            vec![
                json!(file),
                json!([{ "url": "x" }]),
                json!(["x"]),
                json!([{ "name": 1, "url": "x" }]),
            ],
        ),
        (
            "CURRENCY",
            vec![json!(12), json!(12.5)],
            vec![json!("12 EUR"), json!({ "amount": 12 })],
        ),
    ]
}

async fn service() -> Service {
    let properties: Vec<_> = table()
        .iter()
        .map(|(name, _, _)| {
            let mut property = json!({ "id": format!("prop_{name}"), "name": format!("The {name}"), "type": name });
            if *name == "SELECT" {
                property["options"] = json!([{ "value": "open", "label": "Open", "color": "gray" }, { "value": "paid" }]);
            }
            if *name == "RELATION" {
                property["relationConfig"] = json!({ "targetDataModelId": "dm_all" });
            }
            property
        })
        .collect();
    let seed = json!({
        "workspace": { "id": "ws_1", "tier": "enterprise" },
        "keys": [{ "name": "admin", "key": "tk_test_admin", "scope": "admin" }],
        "dataModels": [{ "id": "dm_all", "title": "All", "properties": properties }],
    });
    Service::seeded(&seed.to_string()).await
}

#[tokio::test]
async fn each_type_takes_its_values_and_gives_them_back() {
    let service = service().await;
    for (name, values, _) in table() {
        for value in values {
            let id = format!("prop_{name}");
            let body = json!({ "values": { &id: value } });
            let row = service
                .api("POST", "/datamodels/dm_all/rows", Some(body))
                .await
                .data();
            assert_eq!(row["data"][&id], value, "{name}");
        }
    }
}

#[tokio::test]
async fn each_type_refuses_other_values_with_a_message_that_names_the_property() {
    let service = service().await;
    for (name, _, values) in table() {
        for value in values {
            let body = json!({ "values": { format!("prop_{name}"): value } });
            let answer = service
                .api("POST", "/datamodels/dm_all/rows", Some(body))
                .await;
            let message = answer.refused(400, "VALIDATION_ERROR");
            assert!(
                message.contains(&format!("prop_{name}"))
                    && message.contains(&format!("The {name}")),
                "{message}"
            );
        }
    }
    assert_eq!(
        service.get("/datamodels/dm_all/rows").await.json()["meta"]["total"],
        0
    );
}

#[tokio::test]
async fn of_an_array_the_wrong_item_is_named() {
    let service = service().await;
    let file = json!({ "url": "https://files.example/a", "name": "a" });
    for (name, value, said) in [
        (
            "FILE",
            json!([file, { "url": "x" }]),
            "item 1 is an object without the string name",
        ),
        (
            "FILE",
            json!([file, { "name": "x", "url": 1 }]),
            "item 1 is an object without the string url",
        ),
        ("FILE", json!(["x"]), "item 0 is the string \"x\""),
        ("MULTI_SELECT", json!(["a", 2]), "item 1 is a number"),
        (
            "RELATION",
            json!([{ "id": "row_1" }]),
            "item 0 is an object",
        ),
        ("TEXT", json!(["a"]), "expects a string, got an array"),
    ] {
        let body = json!({ "values": { format!("prop_{name}"): value } });
        let answer = service
            .api("POST", "/datamodels/dm_all/rows", Some(body))
            .await;
        let message = answer.refused(400, "VALIDATION_ERROR");
        assert!(message.ends_with(said), "{message}");
    }
}

#[tokio::test]
async fn what_are_no_values_is_named_with_its_place() {
    let service = service().await;
    let (path, wrong) = ("/datamodels/dm_all/rows", json!(7));
    let one = service
        .api("POST", path, Some(json!({ "values": wrong })))
        .await;
    let told = one.refused(400, "VALIDATION_ERROR");
    assert_eq!(told, "`values` is not an object of values by property id");
    let batch = service
        .api("POST", path, Some(json!({ "rows": [wrong] })))
        .await;
    let told = &batch.json()["meta"]["errors"][0]["message"];
    assert_eq!(
        told,
        "an item of `rows` is not an object of values by property id"
    );
}

#[tokio::test]
async fn an_unknown_property_is_refused_by_its_id() {
    let service = service().await;
    let body = json!({ "values": { "The TEXT": "by its name" } });
    let answer = service
        .api("POST", "/datamodels/dm_all/rows", Some(body))
        .await;
    let message = answer.refused(400, "VALIDATION_ERROR");
    assert!(
        message.contains("`The TEXT`") && message.contains("prop_TEXT"),
        "{message}"
    );
}
