//! *Value formats by property type*.

use serde_json::{Value, json};

use crate::Service;
use crate::support::Answer;

/// One row a type of the specification's table: values that it takes, and values that it refuses.
fn table() -> Vec<(&'static str, Vec<Value>, Vec<Value>)> {
    let table = r#"TEXT: ["", "Ada"] not [1, true, [], {}]
NUMBER: [0, -3, 2.5] not ["2", true, [1]]
DATE: ["2026-11-21", "2026-11-21T09:30:00Z", "2026-11-21T09:30:00.5+01:00"] not ["2026-02-30", "2026-11-21T09:30:00", "21.11.2026", 1795253400]
SELECT: ["open", "paid"] not ["Open", "", ["open"]]
MULTI_SELECT: [[], ["a", "b"]] not ["a", [1], {}]
CHECKBOX: [true, false] not ["true", 1, 0]
RELATION: [[], ["row_1"]] not ["row_1", [{ "id": "row_1" }]]
FILE: [[], [FILE]] not [FILE, [{ "url": "x" }], ["x"], [{ "name": 1, "url": "x" }]]
CURRENCY: [12, 12.5] not ["12 EUR", { "amount": 12 }]"#;
    let file = r#"{ "url": "https://files.example.com/a", "name": "a" }"#;
    let values = |text: &str| serde_json::from_str(&text.replace("FILE", file)).unwrap();
    let rows = table.lines().map(|line| {
        let (name, both) = line.split_once(": ").unwrap();
        let (taken, refused) = both.split_once(" not ").unwrap();
        (name, values(taken), values(refused))
    });
    rows.collect()
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
            let row = written(&service, name, &value).await.data();
            assert_eq!(row["data"][format!("prop_{name}")], value, "{name}");
        }
    }
}

/// Creates a row with this value of the type's property.
async fn written(service: &Service, name: &str, value: &Value) -> Answer {
    let body = json!({ "values": { format!("prop_{name}"): value } });
    service.post("/datamodels/dm_all/rows", body).await
}

#[tokio::test]
async fn each_type_refuses_other_values_with_a_message_that_names_the_property() {
    let service = service().await;
    for (name, _, values) in table() {
        for value in values {
            let message = written(&service, name, &value).await.invalid();
            for named in [format!("prop_{name}"), format!("The {name}")] {
                assert!(message.contains(&named), "{message}");
            }
        }
    }
    let rows = service.get("/datamodels/dm_all/rows").await.json();
    assert_eq!(rows["meta"]["total"], 0);
}

#[tokio::test]
async fn of_an_array_the_wrong_item_is_named() {
    let service = service().await;
    let file = json!({ "url": "https://files.example/a", "name": "a" });
    let (no_name, no_url) = (json!({ "url": "x" }), json!({ "name": "x", "url": 1 }));
    for (name, value, said) in [
        (
            "FILE",
            json!([file, no_name]),
            "item 1 is an object without the string name",
        ),
        (
            "FILE",
            json!([file, no_url]),
            "item 1 is an object without the string url",
        ),
        ("FILE", json!(["x"]), "item 0 is the string \"x\""),
        ("MULTI_SELECT", json!(["a", 2]), "item 1 is a number"),
        ("RELATION", json!([no_name]), "item 0 is an object"),
        ("TEXT", json!(["a"]), "expects a string, got an array"),
    ] {
        let message = written(&service, name, &value).await.invalid();
        assert!(message.ends_with(said), "{message}");
    }
}

#[tokio::test]
async fn what_are_no_values_is_named_with_its_place() {
    let service = service().await;
    let path = "/datamodels/dm_all/rows";
    let told = service.post(path, json!({ "values": 7 })).await.invalid();
    assert_eq!(told, "`values` is not an object of values by property id");
    let batch = service.post(path, json!({ "rows": [7] })).await.json();
    let told = &batch["meta"]["errors"][0]["message"];
    let expected = "an item of `rows` is not an object of values by property id";
    assert_eq!(told, expected);
}

#[tokio::test]
async fn an_unknown_property_is_refused_by_its_id() {
    let body = json!({ "values": { "The TEXT": "by its name" } });
    let answer = service().await.post("/datamodels/dm_all/rows", body).await;
    let message = answer.invalid();
    let is_named = message.contains("`The TEXT`") && message.contains("prop_TEXT");
    assert!(is_named, "{message}");
}
