//! Calls written by the specification alone, section after section, over real HTTP: method, path, parameters and body as the page has
//! them, and of each answer the status, every field, the headers and the error. Where the page shows nothing, nothing is asserted.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::any;
use hmac::{Hmac, KeyInit, Mac};
use hookgate_emulator::{Emulator, Seed};
use http::Request;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::Service;
use crate::support::Answer;

/// A workspace with the values of the specification's samples: all nine types, a key of each form and scope.
const WORKSPACE: &str = r#"{
 "workspace": {"id": "ws_books", "tier": "enterprise"},
 "keys": [{"name": "reader", "key": "mcp_reader", "scope": "read"},
          {"name": "writer", "key": "tk_test_writer", "scope": "write"},
          {"name": "owner", "key": "tk_live_owner", "scope": "admin"},
          {"name": "switched off", "key": "tk_test_off", "scope": "admin", "disabled": true},
          {"name": "expired", "key": "tk_live_old", "scope": "admin", "expiresAt": "2020-01-01T00:00:00Z"}],
 "members": [{"id": "usr_7", "name": "Ada", "email": "ada@example.com"}],
 "dataModels": [
  {"id": "dm_books", "title": "Library", "icon": {"type": "emoji", "name": "books"}, "description": "All of them",
   "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-02-01T00:00:00Z",
   "properties": [
    {"id": "prop_title", "name": "Title", "type": "TEXT", "order": 1, "visible": true},
    {"id": "prop_pages", "name": "Pages", "type": "NUMBER", "order": 2, "visible": true},
    {"id": "prop_due", "name": "Due", "type": "DATE", "order": 3, "visible": false},
    {"id": "prop_genre", "name": "Genre", "type": "SELECT", "order": 4, "visible": true,
     "options": [{"value": "novel", "label": "Novel", "color": "gray"}, {"value": "essay", "label": "Essay", "color": "green"}]},
    {"id": "prop_tags", "name": "Tags", "type": "MULTI_SELECT", "order": 5, "visible": true},
    {"id": "prop_lent", "name": "Lent", "type": "CHECKBOX", "order": 6, "visible": true},
    {"id": "prop_author", "name": "Author", "type": "RELATION", "order": 7, "visible": true,
     "relationConfig": {"targetDataModelId": "dm_authors", "relationshipType": "MANY_TO_ONE"}},
    {"id": "prop_scan", "name": "Scan", "type": "FILE", "order": 8, "visible": true},
    {"id": "prop_price", "name": "Price", "type": "CURRENCY", "order": 9, "visible": true}],
   "rows": [
    {"id": "row_1", "data": {"prop_title": "A", "prop_pages": 300, "prop_genre": "novel"}, "createdAt": "2026-01-02T00:00:00Z", "updatedAt": "2026-01-03T00:00:00Z"},
    {"id": "row_2", "data": {"prop_title": "B", "prop_pages": 100, "prop_genre": "essay"}, "createdAt": "2026-01-02T00:00:00Z", "updatedAt": "2026-01-02T00:00:00Z"},
    {"id": "row_3", "data": {"prop_title": "C", "prop_pages": 200, "prop_genre": "novel"}, "createdAt": "2026-01-02T00:00:00Z", "updatedAt": "2026-01-02T00:00:00Z"}]},
  {"id": "dm_authors", "title": "People", "icon": {"type": "emoji", "name": "pen"}, "description": "",
   "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z",
   "properties": [{"id": "prop_name", "name": "Name", "type": "TEXT", "order": 1, "visible": true}],
   "rows": [{"id": "row_ada", "data": {"prop_name": "Ada"}}]}],
 "pages": [{"id": "page_1", "title": "Home"}]
}"#;

/// A value for each of the nine types, as the table of value formats has them.
fn values() -> Value {
    json!({
        "prop_title": "D", "prop_pages": 12.5, "prop_due": "2026-03-04", "prop_genre": "essay", "prop_tags": ["old", "rare"],
        "prop_lent": true, "prop_author": ["row_ada"], "prop_scan": [{ "url": "https://files.example.com/d.pdf", "name": "d.pdf" }],
        "prop_price": 9.99,
    })
}

/// A user with a key, who counts the calls.
struct User {
    service: Service,
    calls: AtomicU32,
}

impl User {
    async fn new() -> Self {
        Self {
            service: Service::seeded(WORKSPACE).await,
            calls: AtomicU32::new(0),
        }
    }

    /// A call as *Endpoints* and *Authentication* describe it. Of each answer it checks the response envelope and the headers of
    /// *Limits*.
    async fn call(&self, key: &str, method: &str, path: &str, body: Value) -> Answer {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let body = (!body.is_null()).then_some(body);
        let now = self.service.emulator.now().as_i64();
        let answer = self.service.api_as(key, method, path, body).await;
        assert_eq!(answer.headers["content-type"], "application/json", "{path}");
        let json = answer.json();
        let fields: Vec<_> = json.as_object().unwrap().keys().cloned().collect();
        match answer.status.as_u16() {
            200..=299 => assert!(
                fields == ["data"] || fields == ["data", "meta"],
                "{method} {path}: {json}"
            ),
            _ => assert_eq!(fields, ["error"], "{method} {path}: {json}"),
        }
        if answer.status != 401 {
            assert!(answer.number("x-ratelimit-limit") > 0);
            assert!(answer.number("x-ratelimit-remaining") >= 0);
            // "The sample resembles Unix seconds": the end of a minute that is under way.
            let reset = answer.number("x-ratelimit-reset");
            assert!((now..=now + 61).contains(&reset), "{reset}, now {now}");
        }
        answer
    }

    async fn owner(&self, method: &str, path: &str, body: Value) -> Answer {
        self.call("tk_live_owner", method, path, body).await
    }
}

/// Asserts that an object has these fields and no other.
#[track_caller]
fn fields(object: &Value, expected: &[&str]) {
    let got: BTreeSet<_> = object
        .as_object()
        .unwrap_or_else(|| panic!("no object: {object}"))
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(got, expected.iter().copied().collect(), "{object}");
}

/// Asserts the form "ISO 8601 UTC timestamp".
#[track_caller]
fn time(value: &Value) {
    let text = value.as_str().unwrap_or_else(|| panic!("{value}"));
    assert!(text.ends_with('Z') && text.contains('T'), "{text}");
    assert!(hookgate::event::Date::parse(text).is_ok(), "{text}");
}

/// Asserts the form of an id of the samples.
#[track_caller]
fn id<'v>(value: &'v Value, prefix: &str) -> &'v str {
    let text = value.as_str().unwrap_or_else(|| panic!("{value}"));
    assert!(
        text.starts_with(prefix) && text.len() > prefix.len(),
        "{text}"
    );
    text
}

fn ids(rows: &Value) -> Vec<&str> {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| row["id"].as_str().unwrap()).collect()
}

const MODEL: [&str; 6] = [
    "id",
    "title",
    "icon",
    "description",
    "createdAt",
    "updatedAt",
];

#[tokio::test]
async fn data_models_as_the_specification_describes_them() {
    let user = User::new().await;

    // *List data models*: without properties unless includeDetails, meta.total alone.
    let all = user.owner("GET", "/datamodels", Value::Null).await;
    assert_eq!(all.status, 200);
    assert_eq!(all.json()["meta"], json!({ "total": 2 }));
    for model in all.data().as_array().unwrap() {
        fields(model, &MODEL);
        fields(&model["icon"], &["type", "name"]);
        id(&model["id"], "dm_");
        time(&model["createdAt"]);
        time(&model["updatedAt"]);
    }
    // search: "Matches against title and id".
    for (search, found) in [
        ("Libr", &["dm_books"][..]),
        ("dm_auth", &["dm_authors"]),
        ("none", &[]),
    ] {
        let path = format!("/datamodels?search={search}");
        let answer = user.owner("GET", &path, Value::Null).await;
        assert_eq!(ids(&answer.data()), found);
        assert_eq!(answer.json()["meta"]["total"], found.len());
    }
    // limit: "Maximum number of items returned".
    let one = user.owner("GET", "/datamodels?limit=1", Value::Null).await;
    assert_eq!(one.data().as_array().unwrap().len(), 1);
    // includeDetails: "Include properties in each item".
    let path = "/datamodels?includeDetails=true";
    let detailed = user.owner("GET", path, Value::Null).await.data();
    assert_eq!(detailed[0]["properties"].as_array().unwrap().len(), 9);
    // includeRowCounts: the name of the field is not shown, so it is the one that is new.
    let path = "/datamodels?includeRowCounts=true";
    let counted = user.owner("GET", path, Value::Null).await.data();
    let count = counted[0].as_object().unwrap().iter();
    let count: Vec<_> = count
        .filter(|(name, _)| !MODEL.contains(&name.as_str()))
        .collect();
    assert_eq!(count.len(), 1, "{counted}");
    assert_eq!(count[0].1, 3);
    // "limit: number", "includeDetails: boolean".
    for wrong in ["limit=many", "limit=-1", "includeDetails=perhaps"] {
        let path = format!("/datamodels?{wrong}");
        let answer = user.owner("GET", &path, Value::Null).await;
        answer.refused(400, "VALIDATION_ERROR");
    }

    // *Get a data model*, with *Property* in full.
    let books = user
        .owner("GET", "/datamodels/dm_books", Value::Null)
        .await
        .data();
    let workspace: Value = serde_json::from_str(WORKSPACE).unwrap();
    let mut expected = workspace["dataModels"][0].clone();
    expected.as_object_mut().unwrap().remove("rows");
    assert_eq!(books, expected);

    // *Groups without shown payloads*: create, change, properties, delete. Paths, envelope, and what a data model has.
    let body = json!({ "title": "Loans" });
    let made = user.owner("POST", "/datamodels", body).await.data();
    let made = id(&made["id"], "dm_").to_owned();
    let path = format!("/datamodels/{made}");
    let body = json!({ "description": "Lent books" });
    user.owner("PATCH", &path, body).await.data();
    let shown = user.owner("GET", &path, Value::Null).await.data();
    assert_eq!(
        (&shown["title"], &shown["description"]),
        (&json!("Loans"), &json!("Lent books"))
    );
    let properties = format!("{path}/properties");
    let body = json!({ "add": [{ "name": "Since", "type": "DATE" }] });
    user.owner("PATCH", &properties, body).await.data();
    let shown = user.owner("GET", &path, Value::Null).await.data();
    id(&shown["properties"][0]["id"], "prop_");
    user.owner("DELETE", &path, Value::Null).await.data();
    let gone = user.owner("GET", &path, Value::Null).await;
    assert!(gone.refused(404, "NOT_FOUND").contains(&made));
    assert_eq!(user.calls.into_inner(), 18);
}

#[tokio::test]
async fn rows_as_the_specification_describes_them() {
    let user = User::new().await;
    let rows = "/datamodels/dm_books/rows";

    // *List rows*: limit 100 and offset 0 by default; *Row* has four fields, keyed by property id.
    let all = user.owner("GET", rows, Value::Null).await;
    let meta = json!({ "total": 3, "limit": 100, "offset": 0, "hasMore": false });
    assert_eq!((all.status, &all.json()["meta"]), (StatusCode::OK, &meta));
    let first = json!({
        "id": "row_1", "data": { "prop_title": "A", "prop_pages": 300, "prop_genre": "novel" },
        "createdAt": "2026-01-02T00:00:00Z", "updatedAt": "2026-01-03T00:00:00Z",
    });
    let data = all.data();
    let same = data.as_array().unwrap().iter();
    assert_eq!(same.filter(|row| **row == first).count(), 1, "{data}");
    let path = format!("{rows}?limit=2&offset=1");
    let page = user.owner("GET", &path, Value::Null).await;
    let meta = json!({ "total": 3, "limit": 2, "offset": 1, "hasMore": false });
    assert_eq!(page.json()["meta"], meta);
    assert_eq!(page.data().as_array().unwrap().len(), 2);
    let path = format!("{rows}?limit=1");
    let page = user.owner("GET", &path, Value::Null).await.json();
    assert_eq!(page["meta"]["hasMore"], true);
    // orderBy: "earlier items take precedence".
    for (order, expected) in [
        ("prop_pages:asc", ["row_2", "row_3", "row_1"]),
        ("prop_pages:desc", ["row_1", "row_3", "row_2"]),
        (
            "prop_genre:desc,prop_pages:asc",
            ["row_3", "row_1", "row_2"],
        ),
    ] {
        let path = format!("{rows}?orderBy={order}");
        let data = user.owner("GET", &path, Value::Null).await.data();
        assert_eq!(ids(&data), expected, "{order}");
    }
    for wrong in [
        "orderBy=prop_pages:up",
        "orderBy=prop_none:asc",
        "limit=x",
        "offset=-1",
    ] {
        let path = format!("{rows}?{wrong}");
        let answer = user.owner("GET", &path, Value::Null).await;
        answer.refused(400, "VALIDATION_ERROR");
    }

    // *Create rows*, single: { data: { id, data, createdAt } }, with a value of each type as *Value formats* has it.
    let body = json!({ "values": values() });
    let made = user.owner("POST", rows, body).await.data();
    fields(&made, &["id", "data", "createdAt"]);
    let made_id = id(&made["id"], "row_").to_owned();
    time(&made["createdAt"]);
    assert_eq!(made["data"], values());
    // Batch: the items are the value maps, without a `values` wrapper; meta has createdCount and errors.
    let body =
        json!({ "rows": [{ "prop_title": "E" }, { "prop_due": "2026-03-04T10:00:00+02:00" }] });
    let batch = user.owner("POST", rows, body).await;
    assert_eq!(
        batch.json()["meta"],
        json!({ "createdCount": 2, "errors": [] })
    );
    for row in batch.data().as_array().unwrap() {
        id(&row["id"], "row_");
        time(&row["createdAt"]);
    }
    let body = json!({ "rows": [{ "prop_title": "F" }, { "prop_pages": "many" }] });
    let partly = user.owner("POST", rows, body).await.json();
    assert_eq!(partly["meta"]["createdCount"], 1);
    assert_eq!(partly["data"].as_array().unwrap().len(), 1);
    assert_eq!(partly["meta"]["errors"].as_array().unwrap().len(), 1);
    // Each type refuses what its line of *Value formats* does not have; the message names the property.
    for (property, wrong) in [
        ("prop_title", json!(5)),
        ("prop_pages", json!("5")),
        ("prop_due", json!("4 March 2026")),
        ("prop_due", json!("2026-03-04T10:00:00")), // a date-time has a zone
        ("prop_genre", json!("Novel")),             // the label, not the value
        ("prop_tags", json!("old")),
        ("prop_lent", json!("true")),
        ("prop_author", json!("row_ada")),
        ("prop_scan", json!([{ "name": "without a url" }])),
        ("prop_price", json!("9.99 EUR")),
        ("Title", json!("a name in place of an id")),
    ] {
        let body = json!({ "values": { property: wrong } });
        let refused = user.owner("POST", rows, body).await;
        let message = refused.refused(400, "VALIDATION_ERROR");
        assert!(message.contains(property), "{message}");
    }

    // *Update a row*: "Only the listed properties change"; data is the full row values.
    let row = format!("{rows}/{made_id}");
    let body = json!({ "values": { "prop_pages": 13 } });
    let updated = user.owner("PATCH", &row, body).await.data();
    fields(&updated, &["id", "data", "updatedAt"]);
    let mut full = values();
    full["prop_pages"] = json!(13);
    assert_eq!(
        (&updated["id"], &updated["data"]),
        (&made["id"], &json!(full))
    );
    time(&updated["updatedAt"]);

    // *Delete a row*.
    let deleted = user.owner("DELETE", &row, Value::Null).await.data();
    assert_eq!(deleted, json!({ "id": made_id, "deleted": true }));
    for (method, body) in [
        ("DELETE", Value::Null),
        ("PATCH", json!({ "values": { "prop_pages": 1 } })),
    ] {
        let gone = user.owner(method, &row, body).await;
        assert!(gone.refused(404, "NOT_FOUND").contains(&made_id));
    }
    assert_eq!(user.calls.into_inner(), 28);
}

#[tokio::test]
async fn groups_without_shown_payloads_keep_their_paths_and_the_envelope() {
    let user = User::new().await;
    for (group, prefix) in [("blocks", ""), ("workflows", ""), ("stats", "")] {
        let list = format!("/{group}");
        let body = json!({ "title": "Made by a user" });
        let made = user.owner("POST", &list, body).await.data();
        let one = format!("/{group}/{}", id(&made["id"], prefix));
        assert!(user.owner("GET", &list, Value::Null).await.json()["data"].is_array());
        let shown = user.owner("GET", &one, Value::Null).await.data();
        assert_eq!(shown["title"], "Made by a user");
        let body = json!({ "title": "Changed" });
        user.owner("PATCH", &one, body).await.data();
        if group != "blocks" {
            let run = format!("{one}/run");
            assert!(user.owner("POST", &run, json!({})).await.data().is_object());
        }
        user.owner("DELETE", &one, Value::Null).await.data();
        let gone = user.owner("GET", &one, Value::Null).await;
        gone.refused(404, "NOT_FOUND");
    }
    let page = user.owner("GET", "/pages/page_1", Value::Null).await.data();
    assert_eq!(page["id"], "page_1");
    // "Pages: paths other than GET /pages/<page_id>: not shown", and neither are endpoints for keys or subscriptions.
    for path in ["/pages", "/keys", "/webhooks"] {
        let none = user.owner("GET", path, Value::Null).await;
        none.refused(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn keys_scopes_and_errors_as_the_specification_describes_them() {
    let user = User::new().await;
    // *Authentication*: 401 "key missing, malformed (Bearer form), invalid or disabled; message states the expected key forms".
    let url = format!("{}/datamodels", user.service.emulator.base_url());
    let headers = [
        None,
        Some("tk_live_owner"),
        Some("Basic tk_live_owner"),
        Some("Bearertk_live_owner"),
        Some("Bearer sk_owner"),
        Some("Bearer tk_live_unknown"),
        Some("Bearer tk_test_off"),
        Some("Bearer tk_live_old"),
    ];
    for header in headers {
        let mut request = Request::get(&url);
        if let Some(header) = header {
            request = request.header("authorization", header);
        }
        let answer = user
            .service
            .send(request.body(String::new()).unwrap())
            .await;
        let message = answer.refused(401, "UNAUTHORIZED");
        for form in ["tk_live_", "tk_test_", "mcp_"] {
            assert!(message.contains(form), "{header:?}: {message}");
        }
    }

    // *Scopes*: cumulative. "403: key lacks the required scope; message names the scope".
    for key in ["mcp_reader", "tk_test_writer", "tk_live_owner"] {
        let read = user.call(key, "GET", "/datamodels", Value::Null).await;
        assert_eq!(read.status, 200);
    }
    let body = || json!({ "values": { "prop_title": "G" } });
    let rows = "/datamodels/dm_books/rows";
    let refused = user.call("mcp_reader", "POST", rows, body()).await;
    assert!(refused.refused(403, "FORBIDDEN").contains("write"));
    assert_eq!(
        user.call("tk_test_writer", "POST", rows, body())
            .await
            .status,
        200
    );
    let properties = "/datamodels/dm_books/properties";
    let refused = user
        .call("tk_test_writer", "PATCH", properties, json!({}))
        .await;
    assert!(refused.refused(403, "FORBIDDEN").contains("admin"));

    // *Errors*: 400 "malformed or invalid request data".
    let request = Request::post(format!("{url}/dm_books/rows"))
        .header("authorization", "Bearer tk_live_owner")
        .header("content-type", "application/json")
        .body("{\"values\": ".to_owned());
    let malformed = user.service.send(request.unwrap()).await;
    malformed.refused(400, "VALIDATION_ERROR");
    for body in [json!({}), json!([]), json!({ "values": [] })] {
        let invalid = user.owner("POST", rows, body).await;
        invalid.refused(400, "VALIDATION_ERROR");
    }
    for path in ["/datamodels/dm_none", "/datamodels/dm_none/rows"] {
        let none = user.owner("GET", path, Value::Null).await;
        assert!(none.refused(404, "NOT_FOUND").contains("dm_none"));
    }
}

#[tokio::test]
async fn the_61st_call_in_a_minute_is_429_on_the_standard_tier() {
    let seed = WORKSPACE.replace("enterprise", "standard");
    let user = User {
        service: Service::seeded(&seed).await,
        calls: AtomicU32::new(0),
    };
    // *Limits*: X-RateLimit-Limit "requests allowed", X-RateLimit-Remaining "requests left".
    for left in (0..60).rev() {
        let answer = user.owner("GET", "/pages/page_1", Value::Null).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.number("x-ratelimit-limit"), 60);
        assert_eq!(answer.number("x-ratelimit-remaining"), left);
    }
    let answer = user.owner("GET", "/pages/page_1", Value::Null).await;
    assert_eq!(answer.number("x-ratelimit-remaining"), 0);
    // "message asks the client to slow down".
    let message = answer.refused(429, "RATE_LIMITED");
    assert!(message.to_lowercase().contains("slow down"), "{message}");
}

type Calls = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// A receiver that keeps what it gets as it came.
async fn receiver(status: StatusCode) -> (Calls, String) {
    let calls = Calls::default();
    let keep = move |State(calls): State<Calls>, headers: HeaderMap, body: Bytes| async move {
        calls.lock().unwrap().push((headers, body));
        status
    };
    let app = Router::new()
        .route("/hooks", any(keep))
        .with_state(calls.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hooks", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    (calls, url)
}

/// *Signature*, steps 1 and 2.
fn signature(secret: &str, timestamp: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("{timestamp}.").as_bytes());
    mac.update(body);
    let digest = mac.finalize().into_bytes();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}

#[tokio::test]
async fn deliveries_as_the_specification_describes_them() {
    let user = User::new().await;
    let (calls, url) = receiver(StatusCode::OK).await;
    // *Subscription settings*: name, URL, events, data model; the secret is shown once, at the creation.
    let settings = json!({ "name": "mine", "url": url, "events": ["row.created", "row.updated", "row.deleted"], "dataModelId": "dm_books" });
    let made = user
        .service
        .control("POST", "subscriptions", Some(settings))
        .await
        .data();
    let secret = id(&made["secret"], "whsec_").to_owned();
    let subscription = id(&made["id"], "wh_").to_owned();

    let rows = "/datamodels/dm_books/rows";
    let body = json!({ "values": values() });
    let row = user.owner("POST", rows, body).await.data();
    let row = id(&row["id"], "row_").to_owned();
    let path = format!("{rows}/{row}");
    let body = json!({ "values": { "prop_pages": 13, "prop_lent": null } });
    user.owner("PATCH", &path, body).await.data();
    user.owner("DELETE", &path, Value::Null).await.data();
    // Of another data model: not sent.
    let body = json!({ "values": { "prop_name": "Bo" } });
    let authors = "/datamodels/dm_authors/rows";
    user.owner("POST", authors, body).await.data();
    user.service.emulator.settled().await;

    let calls = calls.lock().unwrap().clone();
    let mut bodies = Vec::new();
    for (headers, body) in &calls {
        let text = |name: &str| headers[name].to_str().unwrap();
        let event: Value = serde_json::from_slice(body).unwrap();
        // *Request headers on each delivery*.
        assert_eq!(text("content-type"), "application/json");
        assert_eq!(text("user-agent"), "Service-Webhook/1.0");
        assert_eq!(text("x-service-webhook-id"), subscription);
        assert_eq!(text("x-service-event-id"), event["id"]);
        assert_eq!(text("x-service-event-type"), event["type"]);
        let timestamp = text("x-service-timestamp");
        let age = user.service.emulator.now().as_i64() - timestamp.parse::<i64>().unwrap();
        assert!((0..=300).contains(&age), "{age}");
        assert_eq!(
            text("x-service-signature"),
            signature(&secret, timestamp, body)
        );
        // *Envelope*.
        fields(&event, &["id", "type", "createdAt", "workspaceId", "data"]);
        id(&event["id"], "evt_");
        time(&event["createdAt"]);
        assert_eq!(event["workspaceId"], "ws_books");
        assert_eq!(event["data"]["datamodelId"], "dm_books");
        assert_eq!(event["data"]["datamodelName"], "Library");
        assert_eq!(event["data"]["rowId"], json!(row));
        bodies.push(event);
    }
    bodies.sort_by_key(|event| event["type"].as_str().map(str::to_owned));
    let [created, deleted, updated] = &bodies[..] else {
        panic!("{bodies:#?}")
    };
    // "property names as keys, not property ids".
    let ada = json!({ "id": "usr_7", "name": "Ada", "email": "ada@example.com" });
    let model = ["datamodelId", "datamodelName", "rowId"];
    fields(
        &created["data"],
        &[&model[..], &["properties", "createdBy"]].concat(),
    );
    let by_name = json!({
        "Title": "D", "Pages": 12.5, "Due": "2026-03-04", "Genre": "essay", "Tags": ["old", "rare"], "Lent": true,
        "Author": ["row_ada"], "Scan": [{ "url": "https://files.example.com/d.pdf", "name": "d.pdf" }], "Price": 9.99,
    });
    assert_eq!(created["data"]["properties"], by_name);
    assert_eq!(created["data"]["createdBy"], ada);
    fields(
        &updated["data"],
        &[&model[..], &["changes", "updatedBy"]].concat(),
    );
    let changes = json!({ "Pages": { "before": 12.5, "after": 13 }, "Lent": { "before": true, "after": null } });
    assert_eq!(updated["data"]["changes"], changes);
    assert_eq!(updated["data"]["updatedBy"], ada);
    fields(&deleted["data"], &[&model[..], &["deletedBy"]].concat());
    assert_eq!(
        deleted["data"]["deletedBy"],
        json!({ "id": "usr_7", "name": "Ada" })
    );
}

#[tokio::test]
async fn retries_and_the_log_as_the_specification_describes_them() {
    // The clock stands still but for `clock/advance`, so that the sums of waits are exact.
    let clock = hookgate::clock::ManualClock::at(hookgate::clock::UnixSeconds::new(1_795_253_400));
    let seed = Seed::parse(WORKSPACE).unwrap();
    let emulator = Emulator::builder(seed).clock(clock).start().await.unwrap();
    let service = Service::of(emulator);
    let (calls, url) = receiver(StatusCode::INTERNAL_SERVER_ERROR).await;
    let settings = json!({ "name": "mine", "url": url, "events": ["row.created", "row.updated", "row.deleted"] });
    service
        .control("POST", "subscriptions", Some(settings))
        .await
        .data();
    let body = json!({ "values": { "prop_title": "H" } });
    let rows = "/datamodels/dm_books/rows";
    service
        .api_as("tk_live_owner", "POST", rows, Some(body))
        .await
        .data();
    service.emulator.settled().await;

    // *Delivery and retry*: 1 minute, 5 minutes, 30 minutes, 2 hours; five attempts in total, then discarded.
    let log = || async {
        let log = service.control("GET", "deliveries", None).await.data();
        log[0].clone()
    };
    for (made, wait) in (1..).zip(["59s", "4m59s", "29m59s", "1h59m59s"]) {
        let delivery = log().await;
        assert_eq!(delivery["attempts"].as_array().unwrap().len(), made);
        assert_eq!(delivery["state"], "pending");
        for (by, attempts) in [(wait, 0), ("1s", 1)] {
            let by = json!({ "by": by });
            let advanced = service.control("POST", "clock/advance", Some(by)).await;
            assert_eq!(advanced.json()["attempts"], attempts, "{wait}");
        }
    }
    let delivery = log().await;
    assert_eq!(delivery["state"], "discarded");
    // The log: "event id, event type, request time, response status, retry count, payload".
    id(&delivery["eventId"], "evt_");
    assert_eq!(delivery["eventType"], "row.created");
    assert_eq!(delivery["retryCount"], 4);
    assert_eq!(
        delivery["payload"]["data"]["properties"],
        json!({ "Title": "H" })
    );
    for attempt in delivery["attempts"].as_array().unwrap() {
        time(&attempt["at"]);
        assert_eq!(attempt["status"], 500);
    }
    // "The same event may be delivered more than once": the same id and the same bytes.
    let calls = calls.lock().unwrap();
    assert_eq!(calls.len(), 5);
    for (headers, body) in calls.iter() {
        assert_eq!(
            headers["x-service-event-id"],
            *delivery["eventId"].as_str().unwrap()
        );
        assert_eq!(body, &calls[0].1);
    }
}

#[tokio::test]
async fn triggers_as_the_specification_describes_them() {
    let trigger = |id: &str, method: &str, auth: Value, response: Value| json!({ "workflowId": id, "method": method, "auth": auth, "response": response });
    let header = json!({ "mode": "header", "name": "X-API-Key", "value": "k" });
    let basic = json!({ "mode": "basic", "username": "ada", "password": "pw" });
    let template = json!({
        "all": "{{trigger.body}}", "deep": "{{trigger.body.order.id}}", "header": "{{trigger.headers.x-from}}", "query": "{{trigger.query.page}}",
    });
    let completed = json!({ "mode": "afterCompletion", "template": template });
    let mut triggers = vec![
        trigger("wf_plain", "POST", json!({ "mode": "none" }), json!({})),
        trigger("wf_status", "POST", json!({}), json!({ "status": 202 })),
        trigger("wf_key", "POST", header, json!({})),
        trigger("wf_basic", "POST", basic, json!({})),
        trigger("wf_last", "POST", json!({}), completed),
    ];
    let methods = ["GET", "POST", "PUT", "PATCH", "DELETE"];
    triggers.extend(
        methods.map(|method| trigger(&format!("wf_{method}"), method, json!({}), json!({}))),
    );
    let service = Service::seeded(&json!({ "triggers": triggers }).to_string()).await;
    let call = async |method: &str, path: &str, headers: &[(&str, &str)], body: Value| {
        let url = format!("{}/webhooks/{path}", service.emulator.url());
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        service.send(request.body(body.to_string()).unwrap()).await
    };
    // "HTTP method: GET, POST, PUT, PATCH or DELETE"; "responds 200 at once in immediate mode", the default.
    for method in methods {
        let answer = call(method, &format!("wf_{method}"), &[], json!({})).await;
        assert_eq!(answer.status, 200, "{method}");
    }
    // "A repeated external call can run the workflow again; the service does not deduplicate".
    for _ in 0..2 {
        assert_eq!(call("POST", "wf_plain", &[], json!({})).await.status, 200);
    }
    // "Response status code: HTTP status used for immediate responses".
    assert_eq!(call("POST", "wf_status", &[], json!({})).await.status, 202);
    // "Basic Auth; Header Auth". The answer to a failed authentication is not shown, but it is no success.
    let basic = [("authorization", "Basic YWRhOnB3")];
    assert_eq!(
        call("POST", "wf_basic", &basic, json!({})).await.status,
        200
    );
    let key = [("X-API-Key", "k")];
    assert_eq!(call("POST", "wf_key", &key, json!({})).await.status, 200);
    for path in ["wf_basic", "wf_key"] {
        let refused = call("POST", path, &[], json!({})).await;
        assert!(refused.status.is_client_error());
    }
    // "After completion: respond with the result of the last node", with the expressions of rule 1 and the lower case of rule 2.
    let body = json!({ "order": { "id": 7 } });
    let answer = call(
        "POST",
        "wf_last?page=2",
        &[("X-From", "shop")],
        body.clone(),
    )
    .await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.json(),
        json!({ "all": body, "deep": 7, "header": "shop", "query": "2" })
    );
}
