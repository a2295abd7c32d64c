//! *List data models*, *Get a data model*, and the changes of data models.

use serde_json::{Value, json};

use crate::Service;
use crate::support::{count, each, fields};

#[tokio::test]
async fn the_list_has_every_data_model_without_properties() {
    let service = Service::orders().await;
    let list = service.get("/datamodels").await.json();
    assert_eq!(list["meta"], json!({ "total": 2 }), "only the total");
    let model = &list["data"][0];
    assert_eq!(
        fields(model),
        "createdAt description icon id title updatedAt"
    );
    assert_eq!(model["id"], "dm_clients");
    assert_eq!(model["icon"], json!({ "type": "emoji", "name": "people" }));
    assert_eq!(model["createdAt"], "2026-01-01T00:00:00Z");
}

#[tokio::test]
async fn search_matches_title_and_id() {
    let service = Service::orders().await;
    for (search, found) in [
        ("order", 1),
        ("CLIENT", 1),
        ("dm_", 2),
        ("retail", 0),
        ("", 2),
    ] {
        let path = format!("/datamodels?search={search}");
        let list = service.get(&path).await.json();
        assert_eq!(count(&list["data"]), found, "{search}");
        assert_eq!(list["meta"]["total"], found, "{search}");
    }
}

#[tokio::test]
async fn details_and_row_counts_are_asked_for() {
    let service = Service::orders().await;
    let list = async |query: &str| service.get(&format!("/datamodels?{query}")).await;
    let with = list("includeDetails=true&includeRowCounts=true")
        .await
        .data();
    assert_eq!(
        (count(&with[1]["properties"]), &with[1]["rowCount"]),
        (9, &json!(3))
    );
    let without = list("includeDetails=false&includeRowCounts=false")
        .await
        .data();
    assert!(without[0].get("properties").is_none() && without[0].get("rowCount").is_none());
    let wrong = list("includeDetails=maybe").await.invalid();
    assert!(wrong.contains("includeDetails"), "{wrong}");
}

#[tokio::test]
async fn a_list_has_100_data_models_by_default() {
    let models: Vec<_> = (0..101)
        .map(|number| json!({ "id": format!("dm_{number}"), "title": format!("T{number}") }))
        .collect();
    let seed = json!({ "keys": [{ "name": "k", "key": "tk_test_admin", "scope": "read" }], "dataModels": models });
    let service = Service::seeded(&seed.to_string()).await;
    for (query, expected) in [("", 100), ("?limit=3", 3), ("?limit=1000", 101)] {
        let list = service.get(&format!("/datamodels{query}")).await.json();
        assert_eq!(
            (count(&list["data"]), &list["meta"]["total"]),
            (expected, &json!(101))
        );
    }
    service.get("/datamodels?limit=x").await.invalid();
}

#[tokio::test]
async fn a_data_model_has_its_properties_with_options_and_relations() {
    let service = Service::orders().await;
    let model = service.get("/datamodels/dm_orders").await.data();
    assert_eq!(
        fields(&model),
        "createdAt description icon id properties title updatedAt"
    );
    let properties = &model["properties"];
    let customer = json!({ "id": "prop_customer", "name": "Customer", "type": "TEXT", "order": 1, "visible": true });
    assert_eq!(properties[0], customer);
    let paid = json!({ "value": "paid", "label": "Paid", "color": "green" });
    assert_eq!(properties[3]["options"][1], paid);
    let client = json!({ "targetDataModelId": "dm_clients", "relationshipType": "MANY_TO_ONE" });
    assert_eq!(properties[6]["relationConfig"], client);
    let types = json!([
        "TEXT",
        "NUMBER",
        "DATE",
        "SELECT",
        "MULTI_SELECT",
        "CHECKBOX",
        "RELATION",
        "FILE",
        "CURRENCY"
    ]);
    assert_eq!(json!(each(properties, "type")), types);
    service.get("/datamodels/dm_none").await.not_found();
}

#[tokio::test]
async fn data_models_are_created_changed_and_deleted() {
    let service = Service::orders().await;
    let body = json!({ "title": "Visits", "properties": [{ "name": "Day", "type": "DATE" }], "colour": "kept" });
    let made = service.post("/datamodels", body).await.data();
    let id = made["id"].as_str().unwrap();
    let property = made["properties"][0]["id"].as_str().unwrap();
    assert!(id.starts_with("dm_") && property.starts_with("prop_"));
    assert_eq!(made["colour"], "kept");
    let path = format!("/datamodels/{id}");
    let body = json!({ "title": "Calls", "icon": { "type": "emoji", "name": "phone" } });
    let changed = service.patch(&path, body).await.data();
    assert_eq!(
        (&changed["title"], &changed["id"]),
        (&json!("Calls"), &made["id"])
    );
    assert_eq!(service.get(&path).await.data(), changed);
    let deleted = service.delete(&path).await.data();
    assert_eq!(deleted, json!({ "id": id, "deleted": true }));
    service.get(&path).await.not_found();
    service.delete(&path).await.not_found();
    let refused = service.post("/datamodels", json!({})).await.invalid();
    assert!(refused.contains("`title`"), "{refused}");
}

#[tokio::test]
async fn properties_are_added_and_removed_with_their_values() {
    let service = Service::orders().await;
    let path = "/datamodels/dm_orders/properties";
    let body = json!({ "add": [{ "name": "Note", "type": "TEXT" }], "remove": ["prop_customer"] });
    let model = service.patch(path, body).await.data();
    let names = each(&model["properties"], "name");
    assert_eq!(
        (&names[0], &names[8], names.len()),
        (&json!("Quantity"), &json!("Note"), 9)
    );
    let rows = service.get("/datamodels/dm_orders/rows").await.data();
    assert!(rows[0]["data"].get("prop_customer").is_none());
    let unknown = json!({ "remove": ["prop_x"] });
    service.patch(path, unknown).await.not_found();
    service.patch(path, json!({ "drop": [] })).await.invalid();
}

#[tokio::test]
async fn the_use_of_409_is_a_switch() {
    let service = Service::orders().await;
    let taken = || service.post("/datamodels", json!({ "title": "Orders" }));
    taken().await.refused(409, "CONFLICT");
    service.switch("conflict", "relatedRow").await;
    taken().await.data();
    let named = "/datamodels/dm_clients/rows/row_client_1";
    let refused = service.delete(named).await.refused(409, "CONFLICT");
    assert!(refused.contains("row_order_1"), "{refused}");
    service.switch("conflict", "never").await;
    service.delete(named).await.data();
}

/// Returns the messages about a property: when it is added to `dm_orders`, and when it is the
/// second one of a new data model.
async fn refused_property(service: &Service, property: Value) -> [String; 2] {
    let add = json!({ "add": [property] });
    let path = "/datamodels/dm_orders/properties";
    let added = service.patch(path, add).await;
    let other = json!({ "name": "Customer", "type": "TEXT" });
    let model = json!({ "title": "New", "properties": [other, property] });
    let made = service.post("/datamodels", model).await;
    [added, made].map(|refused| refused.invalid())
}

#[tokio::test]
async fn properties_that_cannot_be_are_refused_by_name() {
    let service = Service::orders().await;
    let text = |name| json!({ "name": name, "type": "TEXT" });
    let relation = |config| json!({ "name": "R", "type": "RELATION", "relationConfig": config });
    let select = |options| json!({ "name": "S", "type": "SELECT", "options": options });
    let options = |values: [&str; 2]| select(json!(values.map(|value| json!({ "value": value }))));
    let properties = [
        text(""),
        text(" \t"),
        text("Customer"),
        text("Customer "),
        json!({ "name": "S", "type": "SELECT" }),
        select(json!([])),
        options(["a", ""]),
        options(["a", "a"]),
        options(["a", " a"]),
        json!({ "name": "R", "type": "RELATION" }),
        relation(json!({ "targetDataModelId": "dm_none" })),
    ];
    // `#` is the place of a property that has no name.
    let told = r##"#: `name` is "", expected more than white space
#: `name` is " \t", expected more than white space
"Customer": `name` is "Customer", which another property has, expected each name once
"Customer ": `name` is "Customer ", and another property has "Customer", expected more than white space to differ
"S": `options` is missing, expected at least one option of a SELECT
"S": `options` is missing, expected at least one option of a SELECT
"S": `options` item 1: `value` is "", expected more than white space
"S": `options` item 1: `value` is "a", which another option has, expected each value once
"S": `options` item 1: `value` is " a", and another option has "a", expected more than white space to differ
"R": `relationConfig` is missing, expected the data model of a RELATION
"R": `relationConfig` names the data model "dm_none", which does not exist, expected one that does"##;
    are_refused(&service, properties, told).await;
    let model = service.get("/datamodels/dm_orders").await.data();
    assert_eq!(count(&model["properties"]), 9);
}

/// Each of these properties is refused in the words of its line.
async fn are_refused<const N: usize>(service: &Service, properties: [Value; N], told: &str) {
    assert_eq!(told.lines().count(), N);
    for (property, told) in properties.into_iter().zip(told.lines()) {
        let expected = ["0", "1"].map(|at| format!("property {}", told.replacen('#', at, 1)));
        assert_eq!(refused_property(service, property).await, expected);
    }
}

#[tokio::test]
async fn properties_of_another_form_are_refused_in_the_services_words() {
    let service = Service::orders().await;
    let of = |field: &str, value: Value| {
        let mut property = json!({ "name": "P", "type": "TEXT" });
        property[field] = value;
        property
    };
    let properties = [
        json!({ "type": "TEXT" }),
        of("name", json!(7)),
        json!("Total"),
        json!({ "name": "P" }),
        of("type", json!("TEXTT")),
        of("order", json!("1")),
        of("visible", Value::Null),
        of("optoins", json!([])),
        of("options", json!({})),
        of("options", json!([{ "value": "a" }, "b"])),
        of("options", json!([{ "label": "A" }])),
        of("relationConfig", json!("dm_orders")),
        of("relationConfig", json!({})),
    ];
    let told = r##"#: `name` is missing, expected a string
#: `name` is a number, expected a string
# is the string "Total", expected an object of id, name, type, order, visible, options, relationConfig
"P": `type` is missing, expected one of TEXT, NUMBER, DATE, SELECT, MULTI_SELECT, CHECKBOX, RELATION, FILE, CURRENCY
"P": `type` is the string "TEXTT", expected one of TEXT, NUMBER, DATE, SELECT, MULTI_SELECT, CHECKBOX, RELATION, FILE, CURRENCY
"P": `order` is the string "1", expected an integer
"P": `visible` is null, expected true or false
"P": unknown field "optoins", expected one of id, name, type, order, visible, options, relationConfig
"P": `options` is an object, expected an array of objects
"P": `options` item 1 is the string "b", expected an object of value, label, color
"P": `options` item 0: `value` is missing, expected a string
"P": `relationConfig` is the string "dm_orders", expected an object of targetDataModelId, relationshipType
"P": `relationConfig`: `targetDataModelId` is missing, expected a string"##;
    are_refused(&service, properties, told).await;
    for case in r#"PATCH /datamodels/dm_orders/properties {"add": {"name": "P", "type": "TEXT"}} => `add` is an object, expected an array of properties
PATCH /datamodels/dm_orders/properties {"remove": "prop_total"} => `remove` is not an array of property ids
POST /datamodels {"title": "New", "properties": null} => `properties` is null, expected an array of properties
POST /datamodels {"title": "X", "properties": [{"type": "EMOJI"}]} => property 0: `name` is missing, expected a string
POST /datamodels {"title": "New", "icon": "box"} => `icon` is the string "box", expected an object of type, name
PATCH /datamodels/dm_orders {"title": "New", "icon": {"name": 7}} => `icon`: `name` is a number, expected a string
POST /datamodels {"title": " "} => `title` is " ", expected more than white space"#
        .lines()
    {
        let (request, said) = case.split_once(" => ").unwrap();
        let [method, path, body] = request.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            panic!("{case}")
        };
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(service.ask(method, path, body).await.invalid(), said);
    }
}

/// The specification shows no other `relationshipType` than one, and does not say that there is
/// none.
#[tokio::test]
async fn a_data_model_that_relations_point_to_is_not_deleted() {
    let service = Service::orders().await;
    let own = json!({ "name": "Before", "type": "RELATION", "relationConfig": { "targetDataModelId": "dm_clients", "relationshipType": "MANY" } });
    let add = json!({ "add": [own] });
    let path = "/datamodels/dm_clients";
    service
        .patch(&format!("{path}/properties"), add)
        .await
        .data();
    let told = "property \"Client\" of the data model `dm_orders` is a relation to `dm_clients`, expected it to be removed before";
    assert_eq!(service.delete(path).await.invalid(), told);
    service.get(path).await.data();
    let remove = json!({ "remove": ["prop_client"] });
    let properties = "/datamodels/dm_orders/properties";
    service.patch(properties, remove).await.data();
    // A relation to itself goes with it.
    service.delete(path).await.data();
    let snapshot = service.get("snapshot").await.json();
    assert_eq!(service.put("snapshot", snapshot).await.status, 204);
}
