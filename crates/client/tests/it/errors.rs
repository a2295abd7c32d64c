//! What errors say, and what they never say.

use std::error::Error as _;

use hookgate_client::{ApiKey, Client, Error, ErrorKind, Scope};
use serde_json::{Value, json};

use crate::support::{
    Fake, NOBODY, Order, answer, builder, client, hook, orders, quick, with_header,
};

#[tokio::test]
async fn an_error_says_status_code_request_and_message() {
    let emulator = orders().await;
    let one = client(&emulator);
    let error = one.data_model("dm_none").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.status().unwrap().as_u16(), 404);
    assert_eq!(error.code(), Some("NOT_FOUND"));
    let told = error.to_string();
    assert!(
        told.starts_with("GET /datamodels/dm_none: 404 NOT_FOUND: "),
        "{told}"
    );
    assert_eq!((error.attempts(), error.is_outcome_unknown()), (1, false));
    let taken = one.create_data_model(&json!({ "title": "Orders" })).await;
    assert_eq!(taken.unwrap_err().kind(), ErrorKind::Conflict);
    let rows = one.rows::<Value>("dm_orders");
    let wrong = rows.create(&json!({ "Quantity": "x" })).await;
    assert_eq!(wrong.unwrap_err().kind(), ErrorKind::Validation);
    let nobody = builder(&emulator, "tk_test_of_nobody").build().unwrap();
    let error = nobody.page("page_1").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
}

#[tokio::test]
async fn a_403_names_the_scope_that_is_missing() {
    let emulator = orders().await;
    let [reader, writer] =
        ["tk_test_read", "tk_test_write"].map(|key| builder(&emulator, key).build().unwrap());
    let rows = reader.rows::<Order>("dm_orders");
    let error = rows.create(&Order::of("Ada", 1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    assert_eq!(error.missing_scope(), Some(Scope::Write));
    assert!(
        error.to_string().contains("needs the scope write"),
        "{error}"
    );
    let error = writer.change_properties("dm_orders", &json!({})).await;
    assert_eq!(error.unwrap_err().missing_scope(), Some(Scope::Admin));
    // The specification names two for it, and the service says which one it asks for.
    let model = json!({ "title": "New" });
    let error = reader.create_data_model(&model).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    let told = error.to_string();
    assert_eq!(told.matches("needs the scope").count(), 1, "{told}");
    // A 404 is not a question of scopes.
    let error = reader.data_model("dm_none").await.unwrap_err();
    assert_eq!(error.missing_scope(), None);
}

/// `main` prints an error with `Debug`.
#[tokio::test]
async fn debug_is_one_line_with_kind_host_and_cause() {
    let error = nobody().page("page_1").await.unwrap_err();
    let (shown, host) = (format!("{error:?}"), NOBODY.split('/').nth(2).unwrap());
    let begin = format!("Error(Connection): {error}: ");
    assert!(
        shown.starts_with(&begin) && !shown.contains('\n'),
        "{shown}"
    );
    let said = format!("GET /pages/page_1: the request was not sent to {host}");
    assert!(error.to_string().starts_with(&said), "{error}");
    assert!(shown.to_lowercase().contains("refused"), "{shown}");
}

/// A client of an address at which nothing listens.
fn nobody() -> Client {
    let key = ApiKey::new("tk_test_admin").unwrap();
    Client::builder(NOBODY, key)
        .options(quick())
        .build()
        .unwrap()
}

/// Everything that an error shows, its sources included.
fn all_of(error: &Error) -> String {
    let mut text = format!("{error} {error:?} {error:#?}");
    let mut below = error.source();
    while let Some(source) = below {
        text.push_str(&format!("{source} {source:?}"));
        below = source.source();
    }
    text
}

#[tokio::test]
async fn no_text_shows_the_key() {
    const KEY: &str = "tk_test_admin";
    let emulator = orders().await;
    let key = ApiKey::new(KEY).unwrap();
    let builder = Client::builder(&emulator.base_url(), key.clone());
    let mut texts = vec![format!("{key:?} {key:#?} {builder:?}")];
    let client = builder.build().unwrap();
    let rows = client.rows::<Value>("dm_orders");
    texts.push(format!(
        "{client:?} {client:#?} {rows:?} {:?} {:?}",
        rows.list(),
        client.blocks()
    ));
    texts.push(all_of(&client.data_model("dm_none").await.unwrap_err()));
    emulator.fault_first("closed-after-write", 1).unwrap();
    let lost = rows.create(&json!({ "Quantity": 1 })).await;
    texts.push(all_of(&lost.unwrap_err()));
    texts.push(all_of(&nobody().page("page_1").await.unwrap_err()));
    for wrong in [
        "whsec_made_up",
        "tk_test_",
        "tk_test_made up",
        "tk_live_\u{e9}",
        "sk_made_up",
    ] {
        texts.push(all_of(&ApiKey::new(wrong).unwrap_err()));
    }
    for text in &texts {
        for hidden in [KEY, "made up", "made_up"] {
            assert!(!text.contains(hidden), "{text}");
        }
    }
}

// fault K12: the service repeats the key in its error, and the client's error shows it
#[tokio::test]
async fn a_secret_that_the_service_repeats_is_not_shown() {
    // The first is cut at the most characters of a message.
    let long = "long ".repeat(98);
    for said in [
        format!("{long} tk_test_made_up"),
        "no `Bearer tk_test_made_up`, \"whisper\", YWRhOndoaXM6cGVy or whis:per is known".into(),
    ] {
        let error = json!({ "error": { "code": "NO_tk_test_made_up", "message": said } });
        let answers = || [answer(401, None, &error.to_string())];
        let trigger = || hook(Fake::answering(answers()));
        let by_header = trigger().header_auth("X-API-Key", "whisper").unwrap();
        let by_password = trigger().basic_auth("ada", "whis:per").unwrap();
        let client = Fake::answering(answers()).client();
        let passwords = ["YWRhOndoaXM6cGVy", "whis:per"];
        for (error, secrets) in [
            (
                client.page("page_1").await.unwrap_err(),
                &["tk_test_", "made_up"][..],
            ),
            (by_header.call().send().await.unwrap_err(), &["whisper"]),
            (by_password.call().send().await.unwrap_err(), &passwords),
        ] {
            let told = all_of(&error);
            for secret in secrets {
                assert!(!told.contains(secret), "{secret}: {told}");
            }
        }
    }
}

// fault K12: the service repeats the key in its error, and the client's error shows it
#[tokio::test]
async fn a_refused_row_of_a_batch_does_not_show_the_key() {
    const SAID: &str = r#"{"index": 0, "message": "no Bearer tk_test_made_up", "tk_test_made_up": ["tk_test_made\u005fup", 1]}"#;
    let refused = format!(r#"{{"data": [], "meta": {{"errors": [{SAID}]}}}}"#);
    let fake = Fake::answering([answer(200, None, &refused), answer(400, None, "")]);
    let rows = fake.client().rows::<Value>("dm_1").by_id().batch_size(1);
    let error = rows.create_many(&[json!({}), json!({})]).await.unwrap_err();
    let row = &error.batch().unwrap().errors[0];
    let told = format!("{row} {} {}", row.json, all_of(&error));
    assert!(!told.contains("made_up"), "{told}");
    let redacted =
        json!({ "index": 0, "message": "no Bearer [redacted]", "[redacted]": ["[redacted]", 1] });
    assert_eq!(row.json, redacted);
}

// fault K14: a base address with a fragment sends each request to the address without its path; one with a port out of range goes to the default port
#[tokio::test]
async fn settings_that_cannot_work_are_refused_without_repeating_them() {
    let key = || ApiKey::new("tk_test_made_up").unwrap();
    for url in [
        "service.example/api/v1",
        "ftp://service.example",
        "http://service.example/api/v1",
        "https://ada:whisper@service.example",
        "https://service.example/api/v1?key=whisper",
        "https://",
        "https://service.example/api/v1#whisper",
        "https://service.example:99999/api/v1",
        "https://service.example:0/api/v1",
        "https://[::1]:65536/api/v1",
    ] {
        let error = Client::new(url, key()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{url}");
        assert!(!all_of(&error).contains("whisper"));
    }
    for url in [
        "http://localhost:1/api/v1/",
        "http://127.0.0.2:1",
        "http://[::1]:1",
        "http://[::1]",
        "https://service.example:65535",
    ] {
        Client::new(url, key()).unwrap();
    }
    let plain = Client::builder("http://service.example", key());
    plain.allow_plain_http().build().unwrap();
}

#[tokio::test]
async fn answers_that_are_not_in_the_services_form_are_errors() {
    let read = async |status, body: &str| {
        let fake = Fake::answering([answer(status, None, body)]);
        let client = fake.client().with(quick());
        client.page("page_1").await.unwrap_err()
    };
    // Read as a `Value`, the last would be parsed again and again.
    let reserved = r#"{"data": {"\u0024serde_json::private::RawValue": "{}"}}"#;
    for (body, said) in [
        ("<html>", ""),
        (r#"{"datum": 1}"#, ""),
        (reserved, "$serde_json"),
    ] {
        let error = read(200, body).await;
        assert_eq!(error.kind(), ErrorKind::Answer, "{body}");
        assert!(error.message().contains(said), "{error}");
    }
    let moved = read(302, "").await;
    assert_eq!((moved.kind(), moved.code()), (ErrorKind::Status, None));
    let message = format!("\u{1b}[2J{}", "long ".repeat(1_000));
    let long = json!({ "error": { "code": "X", "message": message } });
    let error = read(400, &long.to_string()).await.to_string();
    assert!(error.len() < 700 && !error.contains('\u{1b}'), "{error}");
}

/// Some 76 KB: texts in texts, which `serde_json::Value` parses until the stack overflows.
fn nested() -> String {
    let mut json = "1".to_owned();
    for _ in 0..80 {
        // In this form a quote grows by five bytes with each text around it, and not to twice its
        // length.
        let text = json.replace('\\', "\\u005c").replace('"', "\\u0022");
        let object = format!(r#"{{"$serde_json::private::RawValue":"{text}"}}"#);
        json = format!("{}{object}{}", "[".repeat(118), "]".repeat(118));
    }
    json
}

/// A reader that looked for such keys by parsing the text stopped at each of these faults.
#[tokio::test]
async fn reserved_keys_are_errors_whatever_else_is_in_the_answer() {
    #[derive(Debug, serde::Deserialize)]
    struct Kept {
        #[serde(rename = "prop_1")]
        _value: Value,
    }
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    for behind in ["1", "1e999", r#""\ud800""#, &deep] {
        for nested in [nested(), nested().replace('$', "\\u0024")] {
            let body = format!(
                r#"{{"data": [{{"id": "row_1", "data": {{"prop_1": {nested}}}, "createdAt": "x"}}],
                    "meta": {{"total": 1, "limit": 100, "offset": 0}}, "behind": {behind}}}"#
            );
            let fake = Fake::answering([answer(200, None, &body)]);
            let rows = fake.client().rows::<Kept>("dm_1").by_id();
            let listed = rows.list().all().await.unwrap_err();
            let called = hook(fake).call().send().await.unwrap();
            for error in [listed, called.json::<Value>().unwrap_err()] {
                assert_eq!(error.kind(), ErrorKind::Answer);
                assert!(error.message().contains("$serde_json"), "{error}");
            }
        }
    }
}

/// The name of a property comes in another answer than the row.
#[tokio::test]
async fn a_propertys_reserved_name_is_an_error_of_the_row() {
    let model = r#"{"data": {"id": "dm_1", "title": "A", "properties": [
        {"id": "prop_1", "name": "$serde_json::private::RawValue", "type": "TEXT"}]}}"#;
    let row = r#"{"data": [{"id": "row_1", "data": {"prop_1": "1"}}],
        "meta": {"total": 1, "limit": 100, "offset": 0}}"#;
    let fake = Fake::answering([answer(200, None, row), answer(200, None, model)]);
    let rows = fake.client().rows::<Value>("dm_1");
    let error = rows.list().all().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Row);
    assert!(error.message().contains("$serde_json"), "{error}");
}

#[tokio::test]
async fn an_answer_of_another_program_questions_the_url() {
    let asks = "is the URL that of the service's API";
    for (status, name, value, body, said) in [
        (
            301,
            "location",
            "https://service.example/login",
            "",
            "to https://service.example/login:",
        ),
        (
            200,
            "content-type",
            "text/html",
            "\n<!doctype html>",
            "but HTML",
        ),
        (
            200,
            "content-encoding",
            "gzip",
            "\u{1f}\u{8b}",
            "compressed (gzip)",
        ),
        (200, "content-encoding", "identity", "moved", "is not JSON"),
        // The key is not shown, although the other program repeats it.
        (
            307,
            "location",
            "https://other.example/?key=tk_test_made_up",
            "",
            "key=[redacted]",
        ),
    ] {
        let answered = with_header(answer(status, None, body), name, value);
        let client = Fake::answering([answered]).client();
        let error = client.page("page_1").await.unwrap_err();
        let message = error.message();
        assert!(
            message.contains(said) && message.contains(asks),
            "{message}"
        );
    }
}

#[test]
fn a_key_comes_from_the_environment_and_the_error_names_the_variable() {
    let error = ApiKey::from_env("HOOKGATE_NO_SUCH_VARIABLE").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Key);
    let told = error.to_string();
    assert!(
        told.contains("HOOKGATE_NO_SUCH_VARIABLE is not set"),
        "{told}"
    );
    let told = ApiKey::from_env("PATH").unwrap_err().to_string();
    assert!(told.starts_with("PATH: an API key begins with"), "{told}");
}
