//! What the page of `hookgate listen` says of deliveries, and what can be done with them.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::post;
use hookgate::clock::{Clock as _, SystemClock, UnixSeconds};
use serde_json::json;
use tokio::net::TcpListener;

use crate::listen::{Listening, event};
use crate::screen::{PATIENCE, Screen, chromium};

/// A server to pass deliveries on to: it fails with a reason, and with a long one for `long`.
async fn backend() -> String {
    let answer = async |body: String| {
        let reason = match body.as_str() {
            body if body.contains("row_long") => "x".repeat(70_000),
            body if body.contains("row_bad") => r#"{"error":"NullPointer at line 5"}"#.to_owned(),
            body if body.contains("row_gzip") => {
                let headers = [("content-encoding", "gzip")];
                return (StatusCode::INTERNAL_SERVER_ERROR, headers, "\u{1f}\0").into_response();
            }
            _ => return StatusCode::NO_CONTENT.into_response(),
        };
        let headers = [
            ("content-type", "application/json"),
            ("x-from-there", "yes"),
            ("set-cookie", "a=made_up"),
        ];
        (StatusCode::INTERNAL_SERVER_ERROR, headers, reason).into_response()
    };
    let app = Router::new().route("/hooks", post(answer));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}/hooks")
}

fn row(id: &str, model: &str, row_id: &str, customer: &str) -> String {
    json!({ "id": id, "type": "row.created", "createdAt": "2026-11-01T00:00:00Z", "workspaceId": "ws_1",
        "data": { "datamodelId": "dm_1", "datamodelName": model, "rowId": row_id, "properties": { "Customer": customer } } })
    .to_string()
}

async fn deliver_all(listening: &Listening, bodies: &[(&str, String)]) {
    for (id, body) in bodies {
        listening.deliver(id, body, body).await;
    }
}

/// A property of an element, as JavaScript has it.
async fn of(screen: &Screen, selector: &str, property: &str) -> serde_json::Value {
    screen
        .eval(&format!("document.querySelector({selector:?}).{property}"))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_the_forwarded_server_is_shown_whole() {
    if chromium().is_none() {
        return;
    }
    let listening = Listening::with(&["--forward", &backend().await]);
    deliver_all(
        &listening,
        &[
            ("evt_1", row("evt_1", "Orders", "row_bad", "Ada")),
            ("evt_2", row("evt_2", "Orders", "row_long", "Ada")),
        ],
    )
    .await;
    let screen = open!(&listening.page);
    screen
        .until("document.querySelectorAll('tr[data-state=failed]').length === 2")
        .await;
    screen
        .until_text("tbody tr:last-child .reason", "NullPointer at line 5")
        .await;
    // One that a person can't read.
    let body = row("evt_3", "Orders", "row_gzip", "Ada");
    listening.deliver("evt_3", &body, &body).await;
    screen
        .until_text("tbody tr:first-child .reason", "2 bytes, gzip")
        .await;
    screen.click("tbody tr:first-child").await;
    screen.until_text(".detail .attempt", "2 bytes, gzip").await;
    screen.click("tbody tr:last-child").await;
    screen
        .until_text(".detail .json", "NullPointer at line 5")
        .await;
    let shown = screen.texts(".detail .attempt").await.concat();
    for part in ["Answer500", "x-from-thereyes", "set-cookie[redacted]"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("made_up"), "{shown}");
    screen.click("tbody tr:nth-child(2)").await;
    screen
        .until_text(".detail", "The beginning of a body of 70,000 bytes.")
        .await;
    assert_eq!(
        of(&screen, ".detail .json", "textContent.length").await,
        65_536
    );
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_says_what_happened_and_how_often() {
    if chromium().is_none() {
        return;
    }
    let listening = Listening::with(&["--keep", "3"]);
    let body = row("evt_1", "Orders", "row_1", "Ada");
    deliver_all(
        &listening,
        &[
            ("evt_0", row("evt_0", "Orders", "row_0", "Ada")),
            ("evt_1", body.clone()),
        ],
    )
    .await;
    let screen = open!(&listening.page);
    screen.until_text(".totals", "2 deliveries").await;
    // By the stream from here on.
    listening.deliver("evt_1", &body, &body).await;
    listening.deliver("evt_1", &body, "other").await;
    screen.until_text(".totals", "3 of 4 deliveries").await;
    assert_eq!(
        screen.texts(".totals button").await,
        ["3 of 4 deliveries", "1 ✓ done", "1 = again", "1 ✗ refused"]
    );
    let cells = "[...document.querySelector('tr[data-state=refused]').cells].map((cell) => cell.hidden ? '' : cell.innerText).join('|')";
    let refused = screen.eval(cells).await;
    let refused: Vec<_> = refused.as_str().unwrap().split('|').collect();
    assert_eq!(refused[0], "✗ refused");
    assert_eq!(refused[2..4], ["Orders · row_1", "row.created"]);
    assert!(refused[4].contains("signature is not that"), "{refused:?}");
    assert!(refused[5].ends_with(" ms"), "{refused:?}");
    assert_eq!(refused[6..], ["401", "", ""]);
    // Each number is a filter.
    screen.press(".totals", "1 = again").await;
    screen
        .until("[...document.querySelectorAll('tr[data-delivery]')].every((row) => row.dataset.state === 'again')")
        .await;
    screen.until("location.hash === '#?state=again'").await;
    screen.press(".totals", "1 = again").await;
    screen
        .until("document.querySelectorAll('tr[data-delivery]').length === 3")
        .await;
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_and_the_next_command_are_there_to_copy() {
    if chromium().is_none() {
        return;
    }
    let listening = Listening::start();
    let screen = open!(&listening.page);
    screen.allow_clipboard().await;
    let url = format!("http://{}/webhooks", listening.address);
    let next = format!("hookgate send row.created --to {url}");
    for place in [".where", ".empty"] {
        screen.until_text(place, &url).await;
        screen.until_text(place, &next).await;
        for (button, text) in [("Copy the address", &url), ("Copy the command", &next)] {
            screen.eval("navigator.clipboard.writeText('')").await;
            screen.press(place, button).await;
            let copied =
                format!("navigator.clipboard.readText().then((text) => text === {text:?})");
            screen.until(&copied).await;
        }
    }
    let body = event("evt_1", "page.created", "row_1");
    listening.deliver("evt_1", &body, &body).await;
    screen.until_there("tr[data-delivery]").await;
    screen.until_text(".where", &url).await;
    assert!(
        !screen.texts(".beside").await.concat().contains(&next)
            || of(&screen, ".beside .empty", "hidden").await == true
    );
    // Where nothing fits, one button takes all filters away.
    screen.fill("Search", "nothing of this kind").await;
    screen.fill("Verdict", "failed").await;
    screen
        .until_text("main", "No delivery fits the filter (1 searched).")
        .await;
    screen.press("main", "Clear filters").await;
    screen.until_there("tr[data-delivery]").await;
    assert_eq!(of(&screen, "#search", "value").await, "");
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_delivery_and_the_filters_stand_in_the_address() {
    if chromium().is_none() {
        return;
    }
    let listening = Listening::with(&["--keep", "4"]);
    for number in 1..=3 {
        let id = format!("evt_{number}");
        let body = event(&id, "row.updated", "row_1");
        listening.deliver(&id, &body, &body).await;
    }
    let screen = open!(&listening.page);
    screen.fill("Search", "\"evt_2\" row").await;
    screen.fill("Event type", "row.updated").await;
    screen
        .until("document.querySelectorAll('tr[data-delivery]').length === 1")
        .await;
    screen.click("tr[data-delivery]").await;
    screen.until_text(".detail", "evt_2").await;
    screen
        .until("/^#evt_2@20\\d\\d-\\d\\d-\\d\\dT[\\d:]+Z\\?search=%22evt_2%22\\+row&type=row\\.updated$/.test(location.hash)")
        .await;
    screen.reload().await;
    screen.until("document.readyState === 'complete'").await;
    screen.until_text(".detail", "evt_2").await;
    screen
        .until("document.querySelectorAll('tr[data-delivery]').length === 1")
        .await;
    assert_eq!(of(&screen, "#search", "value").await, "\"evt_2\" row");
    assert_eq!(
        of(&screen, "[aria-label='Event type']", "value").await,
        "row.updated"
    );
    // It makes room for newer ones: its address says so.
    for number in 4..=8 {
        let id = format!("evt_{number}");
        let body = event(&id, "row.updated", "row_1");
        listening.deliver(&id, &body, &body).await;
    }
    screen.reload().await;
    screen
        .until_text(".detail", "The delivery of evt_2 at 20")
        .await;
    screen
        .until_text(".detail", "The page keeps the newest 4.")
        .await;
    screen.was_refused(404).await;
    screen.key("Escape").await;
    screen
        .until("document.querySelector('.detail').hidden")
        .await;
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn phrases_and_fields_of_the_body_are_searched() {
    if chromium().is_none() {
        return;
    }
    let listening = Listening::start();
    deliver_all(
        &listening,
        &[
            ("evt_1", row("evt_1", "Orders", "row_1", "Ada Lovelace")),
            (
                "evt_2",
                row("evt_2", "Orders", "row_2", "Lovelace, not Ada"),
            ),
            ("evt_3", row("evt_3", "Ada", "row_3", "Bo")),
        ],
    )
    .await;
    let screen = open!(&listening.page);
    screen
        .until("document.querySelectorAll('tr[data-delivery]').length === 3")
        .await;
    for (words, found) in [
        ("\"Ada Lovelace\"", 1),
        ("Ada Lovelace", 2),
        ("data.properties.Customer:\"Ada\"", 2),
        ("data.properties.Customer:\"ada lovelace\"", 1),
        ("datamodelName:ada", 1),
        ("Customer:Orders", 0),
    ] {
        screen.fill("Search", words).await;
        screen
            .until(&format!(
                "new URLSearchParams(location.hash.slice(2)).get('search') === {words:?} && document.querySelectorAll('tr[data-delivery]').length === {found}"
            ))
            .await;
    }
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_body_is_signed_and_sent_where_the_page_may_sign() {
    if chromium().is_none() {
        return;
    }
    let listening = Listening::start();
    let body = row("evt_1", "Orders", "row_1", "Ada");
    listening.deliver("evt_1", &body, "other").await;
    let screen = open!(&listening.page);
    screen.click("tr[data-state=refused]").await;
    screen.press(".detail", "Edit and send again").await;
    screen.until_there("dialog textarea").await;
    let prepared = of(&screen, "dialog textarea", "value").await;
    assert!(
        prepared.as_str().unwrap().contains("\"evt_1_"),
        "a new id: {prepared}"
    );
    screen
        .fill(
            "Body",
            &body.replace("evt_1", "evt_new").replace("Ada", "Bo"),
        )
        .await;
    screen.press("dialog", "Sign and send").await;
    screen
        .until_text("#told .good", "evt_new delivered with this body: 204")
        .await;
    // The new one is open.
    screen.until_there("tr[data-state=done].chosen").await;
    screen.until_text(".detail dl", "evt_new").await;
    screen.until_text(".detail .json", "\"Bo\"").await;
    screen.end().await;

    // Who was not given the token sees the same, without the button.
    let screen = open!(listening.page_without_token());
    screen.click("tr[data-state=done]").await;
    screen.until_text(".detail dl", "evt_new").await;
    assert_eq!(
        screen.texts(".detail > .actions button").await,
        ["Deliver again", "Copy as curl without signature"]
    );
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_body_goes_to_curl_through_its_standard_input() {
    if chromium().is_none() {
        return;
    }
    let listening = Listening::start();
    let long = event("evt_long", "row.updated", &"ä'".repeat(200_000));
    listening.deliver("evt_long", &long, &long).await;
    let screen = open!(&listening.page);
    screen.allow_clipboard().await;
    screen.click("tr[data-delivery]").await;
    screen
        .press(".detail", "Copy as curl without signature")
        .await;
    screen.until_text("#told", "copied").await;
    let command = screen.eval("navigator.clipboard.readText()").await;
    let command = command.as_str().unwrap();
    assert!(command.contains("--data-binary @-"));
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let script = std::env::temp_dir().join(format!(
        "hookgate-curl-{}-{}",
        std::process::id(),
        NUMBER.fetch_add(1, Ordering::Relaxed)
    ));
    std::fs::write(&script, command).unwrap();
    let ran = Command::new("sh").arg(&script).output().unwrap();
    std::fs::remove_file(script).unwrap();
    let answered = String::from_utf8_lossy(&ran.stdout);
    assert!(answered.contains("HTTP/1.1 401"), "{ran:?}");
    // The whole body came.
    screen.until_there("tr[data-state=refused]").await;
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_begins_with_the_deliveries_of_a_log() {
    if chromium().is_none() {
        return;
    }
    let log = std::env::temp_dir().join(format!("hookgate-history-{}.jsonl", std::process::id()));
    let _ = std::fs::remove_file(&log);
    let options = [
        "--log",
        log.to_str().unwrap(),
        "--record",
        log.to_str().unwrap(),
    ];
    let before = Listening::with(&options);
    let body = row("evt_before", "Orders", "row_1", "Ada");
    before.deliver("evt_before", &body, &body).await;
    before.deliver("evt_forged", &body, "other").await;
    // The recorder writes behind the answer.
    let end = std::time::Instant::now() + PATIENCE;
    while std::fs::read_to_string(&log)
        .unwrap_or_default()
        .lines()
        .count()
        < 2
    {
        assert!(std::time::Instant::now() < end);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    drop(before);
    let listening = Listening::with(&options);
    let screen = open!(&listening.page);
    screen.until_text(".totals", "2 deliveries").await;
    screen.click("tr[data-state=done]").await;
    screen.until_text(".detail dl", "evt_before").await;
    screen.press(".detail", "Deliver again").await;
    screen.until_text("#told .good", "204").await;
    screen.until_text(".totals", "3 deliveries").await;
    std::fs::remove_file(log).unwrap();
    screen.end().await;
}

const ROWS: &str = "document.querySelectorAll('tr[data-delivery]').length";

#[tokio::test(flavor = "multi_thread")]
async fn a_search_says_how_many_fit_and_each_number_is_what_its_state_leaves() {
    if chromium().is_none() {
        return;
    }
    let listening = Listening::start();
    let [one, two] = ["1", "2"].map(|number| row("evt_1", "Orders", &format!("row_{number}"), "A"));
    listening.deliver("evt_1", &one, &one).await;
    listening.deliver("evt_2", &two, "other").await;
    listening.deliver("evt_3", &two, "other").await;
    let screen = open!(&listening.page);
    screen.until_text(".totals", "3 deliveries").await;
    screen.fill("Search", "row_2").await;
    screen.until_text(".totals", "2 of 3 deliveries").await;
    let chips = ["2 of 3 deliveries", "2 ✗ refused"];
    assert_eq!(screen.texts(".totals button").await, chips);
    screen.press(".totals", "2 ✗ refused").await;
    screen
        .until(&format!(
            "{ROWS} === 2 && location.hash.includes('state=refused')"
        ))
        .await;
    // Also while others arrive.
    listening.deliver("evt_4", &one, "other").await;
    listening.deliver("evt_5", &two, "other").await;
    screen.until_text(".totals", "3 of 5 deliveries").await;
    screen.until(&format!("{ROWS} === 3")).await;
    screen.fill("Search", "nothing of this kind").await;
    screen.until_text(".totals", "0 of 5 deliveries").await;
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_what_is_done_says_that_nothing_was_passed_on() {
    if chromium().is_none() {
        return;
    }
    let listening = Listening::with(&["--forward", &backend().await]);
    let body = row("evt_1", "Orders", "row_1", "Ada");
    listening.deliver("evt_1", &body, &body).await;
    let screen = open!(&listening.page);
    screen.click("tr[data-state=done]").await;
    screen.press(".detail", "Deliver again").await;
    let told = "evt_1 delivered again: 200, done before: not passed on";
    screen.until_text("#told .good", told).await;
    // One of another body is no mere copy.
    let other = row("evt_1", "Orders", "row_1", "Bo");
    listening.deliver("evt_1", &other, &other).await;
    screen
        .until_text("tbody tr:first-child .reason", "its body differs")
        .await;
    screen.click("tbody tr:first-child").await;
    screen
        .until_text(".detail > .refusal", "its body differs")
        .await;
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_is_refused_keeps_the_focus_and_escape_closes_it_alone() {
    if chromium().is_none() {
        return;
    }
    let listening = Listening::start();
    let body = row("evt_1", "Orders", "row_1", "Ada");
    listening.deliver("evt_1", &body, &body).await;
    let screen = open!(&listening.page);
    screen.click("tr[data-state=done]").await;
    screen.press(".detail", "Edit and send again").await;
    screen.fill("Body", "not json").await;
    screen.press("dialog", "Sign and send").await;
    screen.until_text("dialog .refusal", "400").await;
    screen.was_refused(409).await;
    let focused = "document.activeElement.textContent === 'Sign and send'";
    assert_eq!(screen.eval(focused).await, true);
    // Also where nothing in it has the focus.
    screen.eval("document.activeElement.blur()").await;
    screen.key("Escape").await;
    screen.until("!document.querySelector('dialog')").await;
    assert_eq!(of(&screen, ".detail", "hidden").await, false);
    screen.key("Escape").await;
    screen
        .until("document.querySelector('.detail').hidden")
        .await;
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_events_leaves_out_is_counted_on_the_page() {
    if chromium().is_none() {
        return;
    }
    let listening = Listening::with(&["--events", "row.*"]);
    let screen = open!(&listening.page);
    screen.until_text("main", "Nothing has arrived yet").await;
    let body = event("evt_1", "page.created", "row_1");
    listening.deliver("evt_1", &body, &body).await;
    screen
        .until_text("main", "1 of other types left out by --events")
        .await;
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_delivery_that_made_room_says_so_when_it_is_to_be_delivered_again() {
    if chromium().is_none() {
        return;
    }
    let listening = Listening::with(&["--keep", "2"]);
    let body = row("evt_1", "Orders", "row_1", "Ada");
    listening.deliver("evt_1", &body, &body).await;
    let screen = open!(&listening.page);
    screen.click("tr[data-delivery]").await;
    screen.until_text(".detail dl", "evt_1").await;
    for id in ["evt_2", "evt_3"] {
        let body = row(id, "Orders", "row_1", "Ada");
        listening.deliver(id, &body, &body).await;
    }
    screen.until_text(".totals", "2 of 3 deliveries").await;
    screen.press(".detail", "Deliver again").await;
    screen
        .until_text("#told .bad", "The delivery of evt_1 at 20")
        .await;
    screen.was_refused(404).await;
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_without_a_time_is_its_newest_delivery_and_a_wrong_token_is_named() {
    if chromium().is_none() {
        return;
    }
    let listening = Listening::start();
    let body = row("evt_1", "Orders", "row_1", "Ada");
    listening.deliver("evt_1", &body, &body).await;
    listening.deliver("evt_1", &body, "other").await;
    let page = listening.page_without_token();
    let screen = open!(&format!("{page}?token=made_up#evt_1"));
    screen.until_there(".detail[data-state=refused]").await;
    screen.until("location.hash.startsWith('#evt_1@20')").await;
    screen.until_there("tr[data-state=refused].chosen").await;
    screen
        .until_text(".where", "The token of this address is not")
        .await;
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_without_the_body_says_so() {
    if chromium().is_none() {
        return;
    }
    let listening = Listening::start();
    let body = row("evt_1", "Orders", "row_1", "Ada");
    let before = UnixSeconds::new(SystemClock.now().as_i64() - 400);
    listening.deliver_at(before, "evt_1", &body, &body).await;
    let screen = open!(&listening.page);
    screen.allow_clipboard().await;
    screen.click("tr[data-state=refused]").await;
    screen
        .press(".detail", "Copy as curl without signature")
        .await;
    screen
        .until_text("#told", "without signature and body, which was not read")
        .await;
    screen.press(".detail", "Why was it refused?").await;
    screen.until_text(".explained", "not accepted").await;
    screen.end().await;
}
