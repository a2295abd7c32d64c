//! The report as text, as JSON, and beside another.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use hookgate::Event;
use hookgate_record::LoggedAnswer;
use hookgate_testing::Faults;
use hookgate_testing::replay::{ReplayError, Report};

use super::apps::{Effects, forgetfully, in_memory};
use super::*;
use crate::says;

async fn replayed(faults: Faults) -> Report {
    forgetfully(play(small_log()).with(faults), &Effects::default()).await
}

/// A handler that wants a number where the log has a text: 422 in the log, and again.
#[tokio::test(start_paused = true)]
async fn an_event_that_failed_in_the_log_may_fail_again_and_its_reason_is_reported() {
    #[derive(serde::Deserialize)]
    struct Order {
        #[serde(rename = "Total")]
        _total: f64,
    }
    let mut failed = logged("evt_2", 1);
    let body = r#"{"id":"evt_2","type":"row.created","createdAt":"2025-11-21T01:53:20Z","workspaceId":"ws_1","data":{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","properties":{"Total":"twelve"},"createdBy":{"id":"usr_1","name":"Ada"}}}"#;
    let headers = Signer::new(secret()).at(failed.received_at).headers(body);
    failed = LoggedDelivery::new(failed.received_at, headers, body);
    failed.target = "/webhooks".into();
    failed.answer = Some(answer(422, "type_mismatch"));
    let replay = |answer: LoggedAnswer| {
        let mut failed = failed.clone();
        failed.answer = Some(answer);
        play(log([logged("evt_1", 0), failed])).against(|harness| {
            let guard = harness.layer(in_memory(&harness))?;
            let handler = async |_: Event<Order>| StatusCode::NO_CONTENT;
            let app = Router::new().route("/webhooks", post(handler).layer(guard));
            Ok::<_, ReplayError>(app)
        })
    };
    let report = replay(answer(422, "type_mismatch")).await.unwrap();
    assert!(!report.each_event_committed_once() && report.each_event_committed_as_logged());
    let event = report.event("evt_2").unwrap();
    assert!(event.failed_in_log() && !report.event("evt_1").unwrap().failed_in_log());
    let reason = event.attempts[0].reason.as_deref().unwrap();
    says(reason, "data.properties.Total does not fit: found a string");
    assert!(!reason.contains("twelve"));
    let text = report.to_string();
    says(&text, "422 type_mismatch (");
    says(&text, "data.properties.Total");
    says(&text, "it failed in the log too");
    // Handled in the log, and no more: that is a change for the worse.
    let report = replay(answer(204, "handled")).await.unwrap();
    assert!(!report.each_event_committed_as_logged(), "{report}");
}

#[tokio::test(start_paused = true)]
async fn a_report_of_failures_is_readable() {
    let report = replayed(Faults::seeded(3).share(0.1).handler_fails(6)).await;
    let text = report.to_string();
    let begin = "12 deliveries, 5 events: 4 committed once, 1 never, 0 twice\n";
    assert!(text.starts_with(begin), "{text}");
    says(&text, "\n1 never were authentic: 0 of them let in\n");
    says(&text, "NEVER: evt_");
    says(&text, "  6 runs, 0 of them handled it, 0 commits\n");
    says(&text, ", attempt 6: 500 handler_status");
    says(&text, "    run: made to fail by the plan\n");
    let end = "\nrepeat it with Faults::seeded(3).share(0.1).handler_fails(6)";
    assert!(text.ends_with(end), "{text}");
    // No body and no secret.
    assert!(!text.contains("Ada") && !text.contains("whsec"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_report_that_was_kept_is_the_same_report() {
    let report = replayed(Faults::seeded(7).duplicate().sender_hangs_up()).await;
    let json = serde_json::to_string(&report).unwrap();
    let kept: Report = serde_json::from_str(&json).unwrap();
    // Fields are named as those of every command's `--json`.
    says(&json, r#""beganAt":"#);
    assert_eq!(kept, report);
    assert!(!json.contains("Ada") && !json.contains("whsec"), "{json}");
}

/// A log holds the recorded answers, and a replay the answers of now.
#[tokio::test(start_paused = true)]
async fn another_answer_than_the_logs_is_named() {
    let mut failed = logged("evt_1", 0);
    failed.answer = Some(answer(500, "panicked"));
    let effects = Effects::default();
    let report = forgetfully(play(log([failed])), &effects).await;
    assert!(report.each_event_committed_once(), "{report}");
    let text = report.to_string();
    says(&text, "answered otherwise than the log says:\n");
    says(&text, "line 1: 204 handled; logged: 500 panicked\n");
}

#[tokio::test(start_paused = true)]
async fn ids_are_escaped_on_a_terminal() {
    for (id, is_event) in [("evt_\u{202e}1", true), ("evt_\u{9b}31m", false)] {
        let effects = Effects::default();
        let report = forgetfully(
            play(log([logged(id, 0)])).with(Faults::seeded(1).handler_fails(6)),
            &effects,
        )
        .await;
        assert_eq!(report.events().len(), usize::from(is_event));
        assert_eq!(report.never().count(), usize::from(is_event));
        let text = report.to_string();
        let tricks = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!text.contains(tricks), "{text:?}");
    }
}
