//! What errors say, and what they never say.

use std::error::Error as _;

use hookgate_client::{ApiKey, Client, Error, ErrorKind, Scope, Trigger};
use serde_json::{Value, json};

use crate::support::{Fake, NOBODY, Order, answer, builder, client, orders, quick};

#[tokio::test]
async fn an_error_says_status_code_request_and_message() {
    let emulator = orders().await;
    let error = client(&emulator).data_model("dm_none").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(
        (error.status().unwrap().as_u16(), error.code()),
        (404, Some("NOT_FOUND"))
    );
    let told = error.to_string();
    assert!(
        told.starts_with("GET /datamodels/dm_none: 404 NOT_FOUND: "),
        "{told}"
    );
    assert_eq!((error.attempts(), error.is_outcome_unknown()), (1, false));
    let error = client(&emulator)
        .create_data_model(&json!({ "title": "Orders" }))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let error = client(&emulator)
        .rows::<Value>("dm_orders")
        .create(&json!({ "Quantity": "x" }))
        .await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Validation);
    let error = builder(&emulator, "tk_test_of_nobody")
        .build()
        .unwrap()
        .page("page_1")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
}

#[tokio::test]
async fn a_403_names_the_scope_that_is_missing() {
    let emulator = orders().await;
    let reader = builder(&emulator, "tk_test_read").build().unwrap();
    let writer = builder(&emulator, "tk_test_write").build().unwrap();
    let error = reader
        .rows::<Order>("dm_orders")
        .create(&Order::of("Ada", 1))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.missing_scope()),
        (ErrorKind::Forbidden, Some(Scope::Write))
    );
    assert!(
        error.to_string().contains("needs the scope write"),
        "{error}"
    );
    let error = writer
        .change_properties("dm_orders", &json!({}))
        .await
        .unwrap_err();
    assert_eq!(error.missing_scope(), Some(Scope::Admin));
    let error = reader.data_model("dm_none").await.unwrap_err();
    assert_eq!(
        error.missing_scope(),
        None,
        "a 404 is not a question of scopes"
    );
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
    texts.push(all_of(
        &rows.create(&json!({ "Quantity": 1 })).await.unwrap_err(),
    ));
    let nobody = Client::builder(NOBODY, key)
        .options(quick())
        .build()
        .unwrap();
    texts.push(all_of(&nobody.page("page_1").await.unwrap_err()));
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
        assert!(
            !text.contains(KEY) && !text.contains("made up") && !text.contains("made_up"),
            "{text}"
        );
    }
}

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
        let trigger = || {
            Trigger::with_service("https://service.example/", Fake::answering(answers())).unwrap()
        };
        let by_header = trigger().header_auth("X-API-Key", "whisper").unwrap();
        let by_password = trigger().basic_auth("ada", "whis:per").unwrap();
        let client = Fake::answering(answers()).client();
        for (error, secrets) in [
            (
                client.page("page_1").await.unwrap_err(),
                &["tk_test_", "made_up"][..],
            ),
            (by_header.call().send().await.unwrap_err(), &["whisper"]),
            (
                by_password.call().send().await.unwrap_err(),
                &["YWRhOndoaXM6cGVy", "whis:per"],
            ),
        ] {
            let told = all_of(&error);
            for secret in secrets {
                assert!(!told.contains(secret), "{secret}: {told}");
            }
        }
    }
}

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
    Client::builder("http://service.example", key())
        .allow_plain_http()
        .build()
        .unwrap();
}

#[tokio::test]
async fn answers_that_are_not_in_the_services_form_are_errors() {
    let read = async |status, body: &str| {
        let fake = Fake::answering([answer(status, None, body)]);
        fake.client()
            .with(quick())
            .page("page_1")
            .await
            .unwrap_err()
    };
    assert_eq!(read(200, "<html>").await.kind(), ErrorKind::Answer);
    assert_eq!(read(200, "{\"datum\": 1}").await.kind(), ErrorKind::Answer);
    // Read as a `Value`, this would be parsed again and again.
    let reserved = read(
        200,
        r#"{"data": {"\u0024serde_json::private::RawValue": "{}"}}"#,
    )
    .await;
    assert_eq!(reserved.kind(), ErrorKind::Answer);
    assert!(reserved.message().contains("$serde_json"), "{reserved}");
    let moved = read(302, "").await;
    assert_eq!((moved.kind(), moved.code()), (ErrorKind::Status, None));
    let long = format!(
        "{{\"error\": {{\"code\": \"X\", \"message\": \"\\u001b[2J{}\"}}}}",
        "long ".repeat(1_000)
    );
    let error = read(400, &long).await.to_string();
    assert!(error.len() < 700 && !error.contains('\u{1b}'), "{error}");
}

#[test]
fn a_key_comes_from_the_environment_and_the_error_names_the_variable() {
    let error = ApiKey::from_env("HOOKGATE_NO_SUCH_VARIABLE").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Key);
    assert!(
        error
            .to_string()
            .contains("HOOKGATE_NO_SUCH_VARIABLE is not set")
    );
    let error = ApiKey::from_env("PATH").unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("PATH: an API key begins with"),
        "{error}"
    );
}
