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

#[tokio::test]
async fn properties_that_cannot_be_are_refused_by_name() {
    let service = Service::orders().await;
    let path = "/datamodels/dm_orders/properties";
    for (property, said) in [
        (json!({ "name": "", "type": "TEXT" }), "`name` is missing"),
        (
            json!({ "name": "Customer", "type": "TEXT" }),
            "each name once",
        ),
        (
            json!({ "name": "S", "type": "SELECT" }),
            "`options` is missing",
        ),
        (
            json!({ "name": "S", "type": "SELECT", "options": [] }),
            "`options` is missing",
        ),
        (
            json!({ "name": "R", "type": "RELATION" }),
            "`relationConfig` is missing",
        ),
        (
            json!({ "name": "R", "type": "RELATION", "relationConfig": { "targetDataModelId": "dm_none" } }),
            "\"dm_none\", which does not exist",
        ),
    ] {
        let name = property["name"].to_string();
        let add = json!({ "add": [property] });
        let refused = service.api("PATCH", path, Some(add)).await;
        let message = refused.refused(400, "VALIDATION_ERROR");
        assert!(
            message.contains(said) && message.contains(&name),
            "{message}"
        );
        let other = json!({ "name": "Customer", "type": "TEXT" });
        let model = json!({ "title": "New", "properties": [other, property] });
        let refused = service.api("POST", "/datamodels", Some(model)).await;
        refused.refused(400, "VALIDATION_ERROR");
    }
    let add = json!({ "add": [{ "name": "S", "type": "SELEKT" }] });
    let refused = service.api("PATCH", path, Some(add)).await;
    let message = refused.refused(400, "VALIDATION_ERROR");
    assert!(
        message.contains("property `S`: unknown value `SELEKT`, expected one of `TEXT`"),
        "{message}"
    );
    let add = json!({ "add": [{ "name": "T", "type": "TEXT" }, { "type": "TEXT" }] });
    let refused = service.api("PATCH", path, Some(add)).await;
    let message = refused.refused(400, "VALIDATION_ERROR");
    assert!(
        message.contains("property 1: missing field `name`"),
        "{message}"
    );
    let model = service.get("/datamodels/dm_orders").await.data();
    assert_eq!(model["properties"].as_array().unwrap().len(), 9);
}
