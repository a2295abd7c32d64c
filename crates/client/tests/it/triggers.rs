//! Inbound triggers.

use std::time::Duration;

use hookgate_client::{ErrorKind, Options, Trigger};
use hookgate_emulator::Emulator;
use http::Method;
use serde_json::{Value, json};

use crate::support::{Fake, NOBODY, answer, hook, quick, seeded};

async fn emulator(trigger: Value) -> Emulator {
    seeded(&json!({ "triggers": [trigger] })).await
}

fn trigger(emulator: &Emulator) -> Trigger {
    Trigger::new(&format!("{}/webhooks/wf_1", emulator.url())).unwrap()
}

#[tokio::test]
async fn body_query_and_headers_reach_the_workflow_and_its_result_comes_back() {
    let emulator = emulator(json!({ "workflowId": "wf_1", "auth": { "mode": "header", "name": "X-API-Key", "value": "whisper" },
        "response": { "mode": "afterCompletion", "status": 201,
            "template": { "a": "{{trigger.body.a}}", "from": "{{trigger.query.from}}", "trace": "{{trigger.headers.x-trace}}" } } }))
    .await;
    let trigger = trigger(&emulator).header_auth("X-API-Key", "whisper");
    let trigger = trigger.unwrap();
    let call = trigger.call().query("from", "a & b");
    let call = call.header("X-Trace", "t1").unwrap();
    let answer = call.json(&json!({ "a": 1 })).unwrap().send().await.unwrap();
    assert_eq!(answer.status.as_u16(), 201);
    let result: Value = answer.json().unwrap();
    assert_eq!(result["from"], "a & b");
    assert_eq!(result["trace"], "t1");
    assert!(result["a"] == 1 || result["a"] == "1", "{result}");
}

#[tokio::test]
async fn the_immediate_mode_answers_with_its_status_by_any_method() {
    let seed = json!({ "workflowId": "wf_1", "method": "GET", "response": { "status": 202 } });
    let emulator = emulator(seed).await;
    let trigger = trigger(&emulator).method(Method::GET);
    assert_eq!(trigger.call().send().await.unwrap().status.as_u16(), 202);
    let error = trigger.method(Method::POST).call().send().await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn basic_authentication_is_sent_and_a_wrong_password_told() {
    let emulator = emulator(json!({ "workflowId": "wf_1", "auth": { "mode": "basic", "username": "ada", "password": "whis:per" } })).await;
    let trigger = trigger(&emulator);
    let right = trigger.clone().basic_auth("ada", "whis:per").unwrap();
    right.call().send().await.unwrap();
    let wrong = trigger.clone().basic_auth("ada", "shouted").unwrap();
    let error = wrong.call().send().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    let text = format!("{right:?} {:?} {wrong:?} {error} {error:?}", right.call());
    for hidden in ["whis:per", "shouted", "YWRhOndoaXM6cGVy"] {
        assert!(!text.contains(hidden), "{text}");
    }
    let error = trigger.basic_auth("a:b", "c").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Key);
}

// fault K15: a change is answered 3xx or 408 by a proxy, or a trigger whose workflow ran answers 4xx, and the error says that nothing was changed
#[tokio::test]
async fn a_call_is_never_repeated_unless_that_is_asked_for() {
    // The answers, the repeats, the requests, and whether the outcome is unknown where the call
    // fails.
    for (answers, repeat, sent, is_unknown) in [
        ([429, 429, 200], 0, 1, Some(true)),
        ([500, 500, 200], 0, 1, Some(true)),
        ([500, 429, 200], 2, 3, None),
        ([429, 408, 200], 2, 2, Some(true)),
        ([500, 500, 500], 1, 2, Some(true)),
        // A workflow that ran may answer any status.
        ([404, 200, 200], 2, 1, Some(true)),
    ] {
        let fake = Fake::answering(answers.map(|status| answer(status, None, "{}")));
        let trigger = hook(fake.clone()).options(quick());
        let error = trigger.call().repeat(repeat).send().await.err();
        assert_eq!(fake.seen.lock().unwrap().len(), sent, "{answers:?}");
        let told = error.map(|error| (error.is_outcome_unknown(), error.attempts()));
        let expected = is_unknown.map(|is_unknown| (is_unknown, sent as u32));
        assert_eq!(told, expected, "{answers:?}");
    }
}

#[tokio::test]
async fn a_call_without_an_answer_in_time_has_an_unknown_outcome() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/webhooks/wf_1", listener.local_addr().unwrap());
    let options = Options::default().attempt_timeout(Duration::from_secs(1));
    let trigger = Trigger::new(&url).unwrap().options(options);
    let call = trigger.call().json("x").unwrap();
    let error = call.send().await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Timeout, 1));
    assert!(error.is_outcome_unknown());
    let error = Trigger::new(NOBODY).unwrap().call().send().await;
    let error = error.unwrap_err();
    assert!(!error.is_outcome_unknown(), "nothing was sent: {error}");
}

#[tokio::test]
async fn a_secret_is_not_sent_over_plain_http_to_other_machines() {
    let fake = Fake::answering([answer(200, None, "{}")]);
    let trigger =
        Trigger::with_service("http://service.example/webhooks/wf_1", fake.clone()).unwrap();
    let trigger = trigger.header_auth("X-API-Key", "whisper").unwrap();
    let error = trigger.call().send().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    trigger.allow_plain_http().call().send().await.unwrap();
    assert_eq!(fake.seen.lock().unwrap().len(), 1);
}

// fault K3: `Debug` of a trigger shows its URL, its query and its body
#[test]
fn neither_url_nor_query_nor_body_of_a_trigger_is_shown() {
    let fake = Fake::answering([answer(200, None, "{}")]);
    let url = "https://service.example/webhooks/wf_hard-to-guess?token=whisper";
    let trigger = Trigger::with_service(url, fake).unwrap();
    let call = trigger.call().query("from", "shouted");
    let call = call.header("X-Trace", "hummed").unwrap();
    let call = call.json("murmured").unwrap();
    let text = format!("{trigger:?} {call:?}");
    for hidden in ["guess", "whisper", "shouted", "hummed", "murmured"] {
        assert!(!text.contains(hidden), "{hidden}: {text}");
    }
    assert!(text.contains("service.example"), "{text}");
    // As bytes, since `Debug` of some bodies shows them so.
    let bytes = format!("{:?}", b"murmured");
    assert!(!text.contains(bytes.trim_matches(['[', ']'])), "{text}");
}
