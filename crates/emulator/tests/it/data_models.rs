//! *List data models*, *Get a data model*, and the changes of data models.

use serde_json::{Value, json};

use crate::Service;

fn fields(object: &Value) -> Vec<&str> {
    object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[tokio::test]
async fn the_list_has_every_data_model_without_properties() {
    let service = Service::orders().await;
    let list = service.get("/datamodels").await.json();
    assert_eq!(list["meta"], json!({ "total": 2 }), "only the total");
    let model = &list["data"][0];
    assert_eq!(
        fields(model),
        [
            "createdAt",
            "description",
            "icon",
            "id",
            "title",
            "updatedAt"
        ]
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
        let list = service
            .get(&format!("/datamodels?search={search}"))
            .await
            .json();
        assert_eq!(list["data"].as_array().unwrap().len(), found, "{search}");
        assert_eq!(list["meta"]["total"], found);
    }
}

#[tokio::test]
async fn details_and_row_counts_are_asked_for() {
    let service = Service::orders().await;
    let list = service
        .get("/datamodels?includeDetails=true&includeRowCounts=true")
        .await
        .data();
    assert_eq!(list[1]["properties"].as_array().unwrap().len(), 9);
    assert_eq!(list[1]["rowCount"], 3);
    let list = service
        .get("/datamodels?includeDetails=false&includeRowCounts=false")
        .await
        .data();
    assert!(list[0].get("properties").is_none() && list[0].get("rowCount").is_none());
    let wrong = service.get("/datamodels?includeDetails=maybe").await;
    assert!(
        wrong
            .refused(400, "VALIDATION_ERROR")
            .contains("includeDetails")
    );
}

#[tokio::test]
async fn a_list_has_100_data_models_by_default() {
    let models: Vec<_> = (0..101)
        .map(|number| json!({ "id": format!("dm_{number}"), "title": format!("T{number}") }))
        .collect();
    let seed = json!({ "keys": [{ "name": "k", "key": "tk_test_admin", "scope": "read" }], "dataModels": models });
    let service = Service::seeded(&seed.to_string()).await;
    let count = |list: &Value| list["data"].as_array().unwrap().len();
    let list = service.get("/datamodels").await.json();
    assert_eq!((count(&list), &list["meta"]["total"]), (100, &json!(101)));
    assert_eq!(count(&service.get("/datamodels?limit=3").await.json()), 3);
    assert_eq!(
        count(&service.get("/datamodels?limit=1000").await.json()),
        101
    );
    service
        .get("/datamodels?limit=x")
        .await
        .refused(400, "VALIDATION_ERROR");
}

#[tokio::test]
async fn a_data_model_has_its_properties_with_options_and_relations() {
    let service = Service::orders().await;
    let model = service.get("/datamodels/dm_orders").await.data();
    assert_eq!(
        fields(&model),
        [
            "createdAt",
            "description",
            "icon",
            "id",
            "properties",
            "title",
            "updatedAt"
        ]
    );
    let properties = model["properties"].as_array().unwrap();
    let customer = json!({ "id": "prop_customer", "name": "Customer", "type": "TEXT", "order": 1, "visible": true });
    assert_eq!(properties[0], customer);
    let status = properties
        .iter()
        .find(|property| property["type"] == "SELECT")
        .unwrap();
    assert_eq!(
        status["options"][1],
        json!({ "value": "paid", "label": "Paid", "color": "green" })
    );
    let client = properties
        .iter()
        .find(|property| property["type"] == "RELATION")
        .unwrap();
    assert_eq!(
        client["relationConfig"],
        json!({ "targetDataModelId": "dm_clients", "relationshipType": "MANY_TO_ONE" })
    );
    let types: Vec<_> = properties
        .iter()
        .map(|property| property["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        types,
        [
            "TEXT",
            "NUMBER",
            "DATE",
            "SELECT",
            "MULTI_SELECT",
            "CHECKBOX",
            "RELATION",
            "FILE",
            "CURRENCY"
        ]
    );
    service
        .get("/datamodels/dm_none")
        .await
        .refused(404, "NOT_FOUND");
}

#[tokio::test]
async fn data_models_are_created_changed_and_deleted() {
    let service = Service::orders().await;
    let body = json!({ "title": "Visits", "properties": [{ "name": "Day", "type": "DATE" }], "colour": "kept" });
    let made = service.api("POST", "/datamodels", Some(body)).await.data();
    let id = made["id"].as_str().unwrap();
    assert!(
        id.starts_with("dm_")
            && made["properties"][0]["id"]
                .as_str()
                .unwrap()
                .starts_with("prop_")
    );
    assert_eq!(made["colour"], "kept");
    let path = format!("/datamodels/{id}");
    let body = json!({ "title": "Calls", "icon": { "type": "emoji", "name": "phone" } });
    let changed = service.api("PATCH", &path, Some(body)).await.data();
    assert_eq!(
        (&changed["title"], &changed["id"]),
        (&json!("Calls"), &made["id"])
    );
    assert_eq!(service.get(&path).await.data(), changed);
    let deleted = service.api("DELETE", &path, None).await.data();
    assert_eq!(deleted, json!({ "id": id, "deleted": true }));
    service.get(&path).await.refused(404, "NOT_FOUND");
    service
        .api("DELETE", &path, None)
        .await
        .refused(404, "NOT_FOUND");
    let refused = service.api("POST", "/datamodels", Some(json!({}))).await;
    assert!(refused.refused(400, "VALIDATION_ERROR").contains("`title`"));
    service
        .api(
            "POST",
            "/datamodels",
            Some(json!({ "title": "X", "properties": [{ "type": "EMOJI" }] })),
        )
        .await
        .refused(400, "VALIDATION_ERROR");
}

#[tokio::test]
async fn properties_are_added_and_removed_with_their_values() {
    let service = Service::orders().await;
    let path = "/datamodels/dm_orders/properties";
    let body = json!({ "add": [{ "name": "Note", "type": "TEXT" }], "remove": ["prop_customer"] });
    let model = service.api("PATCH", path, Some(body)).await.data();
    let names: Vec<_> = model["properties"]
        .as_array()
        .unwrap()
        .iter()
        .map(|property| property["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        (names.first(), names.last(), names.len()),
        (Some(&"Quantity"), Some(&"Note"), 9)
    );
    let rows = service.get("/datamodels/dm_orders/rows").await.data();
    assert!(rows[0]["data"].get("prop_customer").is_none());
    service
        .api("PATCH", path, Some(json!({ "remove": ["prop_x"] })))
        .await
        .refused(404, "NOT_FOUND");
    service
        .api("PATCH", path, Some(json!({ "drop": [] })))
        .await
        .refused(400, "VALIDATION_ERROR");
}

#[tokio::test]
async fn the_use_of_409_is_a_switch() {
    let service = Service::orders().await;
    let taken = || service.api("POST", "/datamodels", Some(json!({ "title": "Orders" })));
    taken().await.refused(409, "CONFLICT");
    service
        .control(
            "PATCH",
            "switches",
            Some(json!({ "conflict": "relatedRow" })),
        )
        .await
        .data();
    taken().await.data();
    let named = service
        .api("DELETE", "/datamodels/dm_clients/rows/row_client_1", None)
        .await;
    assert!(named.refused(409, "CONFLICT").contains("row_order_1"));
    service
        .control("PATCH", "switches", Some(json!({ "conflict": "never" })))
        .await
        .data();
    service
        .api("DELETE", "/datamodels/dm_clients/rows/row_client_1", None)
        .await
        .data();
}

/// Returns the messages about a property: when it is added to `dm_orders`, and when it is the second one of a new data model.
async fn refused_property(service: &Service, property: Value) -> [String; 2] {
    let add = json!({ "add": [property] });
    let path = "/datamodels/dm_orders/properties";
    let added = service.api("PATCH", path, Some(add)).await;
    let other = json!({ "name": "Customer", "type": "TEXT" });
    let model = json!({ "title": "New", "properties": [other, property] });
    let made = service.api("POST", "/datamodels", Some(model)).await;
    [added, made].map(|refused| refused.refused(400, "VALIDATION_ERROR"))
}

#[tokio::test]
async fn properties_that_cannot_be_are_refused_by_name() {
    let service = Service::orders().await;
    let relation = |config| json!({ "name": "R", "type": "RELATION", "relationConfig": config });
    let select = |options| json!({ "name": "S", "type": "SELECT", "options": options });
    let options = |values: [&str; 2]| select(json!(values.map(|value| json!({ "value": value }))));
    for (property, subject, said) in [
        (
            json!({ "name": "", "type": "TEXT" }),
            "",
            "`name` is \"\", expected more than white space",
        ),
        (
            json!({ "name": " \t", "type": "TEXT" }),
            "",
            "`name` is \" \\t\", expected more than white space",
        ),
        (
            json!({ "name": "Customer", "type": "TEXT" }),
            "\"Customer\"",
            "`name` is \"Customer\", which another property has, expected each name once",
        ),
        (
            json!({ "name": "Customer ", "type": "TEXT" }),
            "\"Customer \"",
            "`name` is \"Customer \", and another property has \"Customer\", expected more than white space to differ",
        ),
        (
            json!({ "name": "S", "type": "SELECT" }),
            "\"S\"",
            "`options` is missing, expected at least one option of a SELECT",
        ),
        (
            select(json!([])),
            "\"S\"",
            "`options` is missing, expected at least one option of a SELECT",
        ),
        (
            options(["a", ""]),
            "\"S\"",
            "`options` item 1: `value` is \"\", expected more than white space",
        ),
        (
            options(["a", "a"]),
            "\"S\"",
            "`options` item 1: `value` is \"a\", which another option has, expected each value once",
        ),
        (
            options(["a", " a"]),
            "\"S\"",
            "`options` item 1: `value` is \" a\", and another option has \"a\", expected more than white space to differ",
        ),
        (
            json!({ "name": "R", "type": "RELATION" }),
            "\"R\"",
            "`relationConfig` is missing, expected the data model of a RELATION",
        ),
        (
            relation(json!({ "targetDataModelId": "dm_none" })),
            "\"R\"",
            "`relationConfig` names the data model \"dm_none\", which does not exist, expected one that does",
        ),
    ] {
        let [added, made] = refused_property(&service, property).await;
        let of = |at| match subject {
            "" => format!("property {at}: {said}"),
            name => format!("property {name}: {said}"),
        };
        assert_eq!([added, made], [of(0), of(1)]);
    }
    let model = service.get("/datamodels/dm_orders").await.data();
    assert_eq!(model["properties"].as_array().unwrap().len(), 9);
}

#[tokio::test]
async fn properties_of_another_form_are_refused_in_the_services_words() {
    let service = Service::orders().await;
    let fields = "id, name, type, order, visible, options, relationConfig";
    let of = |field: &str, value: Value| {
        let mut property = json!({ "name": "P", "type": "TEXT" });
        property[field] = value;
        property
    };
    for (property, said) in [
        (json!({ "type": "TEXT" }), "property 1: `name` is missing, expected a string".to_owned()),
        (of("name", json!(7)), "property 1: `name` is a number, expected a string".to_owned()),
        (json!("Total"), format!("property 1 is the string \"Total\", expected an object of {fields}")),
        (
            json!({ "name": "P" }),
            "property \"P\": `type` is missing, expected one of TEXT, NUMBER, DATE, SELECT, MULTI_SELECT, CHECKBOX, RELATION, FILE, CURRENCY".to_owned(),
        ),
        (
            of("type", json!("TEXTT")),
            "property \"P\": `type` is the string \"TEXTT\", expected one of TEXT, NUMBER, DATE, SELECT, MULTI_SELECT, CHECKBOX, RELATION, FILE, CURRENCY".to_owned(),
        ),
        (of("order", json!("1")), "property \"P\": `order` is the string \"1\", expected an integer".to_owned()),
        (of("visible", Value::Null), "property \"P\": `visible` is null, expected true or false".to_owned()),
        (of("optoins", json!([])), format!("property \"P\": unknown field \"optoins\", expected one of {fields}")),
        (of("options", json!({})), "property \"P\": `options` is an object, expected an array of objects".to_owned()),
        (
            of("options", json!([{ "value": "a" }, "b"])),
            "property \"P\": `options` item 1 is the string \"b\", expected an object of value, label, color".to_owned(),
        ),
        (
            of("options", json!([{ "label": "A" }])),
            "property \"P\": `options` item 0: `value` is missing, expected a string".to_owned(),
        ),
        (
            of("relationConfig", json!("dm_orders")),
            "property \"P\": `relationConfig` is the string \"dm_orders\", expected an object of targetDataModelId, relationshipType".to_owned(),
        ),
        (
            of("relationConfig", json!({})),
            "property \"P\": `relationConfig`: `targetDataModelId` is missing, expected a string".to_owned(),
        ),
    ] {
        let [added, made] = refused_property(&service, property).await;
        assert_eq!([added, made], [said.replace("property 1", "property 0"), said]);
    }
    let icon = |icon: Value| json!({ "title": "New", "icon": icon });
    for (method, path, body, said) in [
        (
            "PATCH",
            "/datamodels/dm_orders/properties",
            json!({ "add": { "name": "P", "type": "TEXT" } }),
            "`add` is an object, expected an array of properties",
        ),
        (
            "PATCH",
            "/datamodels/dm_orders/properties",
            json!({ "remove": "prop_total" }),
            "`remove` is not an array of property ids",
        ),
        (
            "POST",
            "/datamodels",
            json!({ "title": "New", "properties": null }),
            "`properties` is null, expected an array of properties",
        ),
        (
            "POST",
            "/datamodels",
            icon(json!("box")),
            "`icon` is the string \"box\", expected an object of type, name",
        ),
        (
            "PATCH",
            "/datamodels/dm_orders",
            icon(json!({ "name": 7 })),
            "`icon`: `name` is a number, expected a string",
        ),
        (
            "POST",
            "/datamodels",
            json!({ "title": " " }),
            "`title` is \" \", expected more than white space",
        ),
    ] {
        let refused = service.api(method, path, Some(body)).await;
        assert_eq!(refused.refused(400, "VALIDATION_ERROR"), said);
    }
}

/// The specification shows no other `relationshipType` than one, and does not say that there is none.
#[tokio::test]
async fn a_data_model_that_relations_point_to_is_not_deleted() {
    let service = Service::orders().await;
    let own = json!({ "name": "Before", "type": "RELATION", "relationConfig": { "targetDataModelId": "dm_clients", "relationshipType": "MANY" } });
    let add = json!({ "add": [own] });
    service
        .api("PATCH", "/datamodels/dm_clients/properties", Some(add))
        .await
        .data();
    let delete = || service.api("DELETE", "/datamodels/dm_clients", None);
    assert_eq!(
        delete().await.refused(400, "VALIDATION_ERROR"),
        "property \"Client\" of the data model `dm_orders` is a relation to `dm_clients`, expected it to be removed before"
    );
    service.get("/datamodels/dm_clients").await.data();
    let remove = json!({ "remove": ["prop_client"] });
    service
        .api("PATCH", "/datamodels/dm_orders/properties", Some(remove))
        .await
        .data();
    // A relation to itself goes with it.
    delete().await.data();
    let snapshot = service.control("GET", "snapshot", None).await.json();
    let restored = service.control("PUT", "snapshot", Some(snapshot)).await;
    assert_eq!(restored.status, 204);
}
