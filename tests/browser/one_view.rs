//! What the page of `hookgate listen` says of deliveries, and what can be done with them.

use std::process::Command;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::post;
use hookgate::clock::{Clock as _, SystemClock, UnixSeconds};
use tokio::net::TcpListener;

use crate::listen::row;
use crate::screen::PATIENCE;

/// A server to pass deliveries on to: it fails with a reason, and with a long one for `long`.
async fn backend() -> String {
    let answer = async |body: String| {
        let failed = StatusCode::INTERNAL_SERVER_ERROR;
        let reason = match body.as_str() {
            body if body.contains("row_long") => "x".repeat(70_000),
            body if body.contains("row_bad") => r#"{"error":"NullPointer at line 5"}"#.to_owned(),
            body if body.contains("row_gzip") => {
                return (failed, [("content-encoding", "gzip")], "\u{1f}\0").into_response();
            }
            _ => return StatusCode::NO_CONTENT.into_response(),
        };
        let kind = ("content-type", "application/json");
        let others = [("x-from-there", "yes"), ("set-cookie", "a=made_up")];
        (failed, [kind, others[0], others[1]], reason).into_response()
    };
    let app = Router::new().route("/hooks", post(answer));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}/hooks")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_the_forwarded_server_is_shown_whole() {
    let listening = listening!("--forward", &backend().await);
    listening.row("evt_1", "row_bad", "Ada").await;
    listening.row("evt_2", "row_long", "Ada").await;
    let screen = open!(&listening.page);
    steps! { screen;
        until_count("tr[data-state=failed]", 2);
        until_text("tbody tr:last-child .reason", "NullPointer at line 5");
    }
    // One that a person can't read.
    listening.row("evt_3", "row_gzip", "Ada").await;
    steps! { screen;
        until_text("tbody tr:first-child .reason", "2 bytes, gzip");
        click("tbody tr:first-child"); until_text(".detail .attempt", "2 bytes, gzip");
        click("tbody tr:last-child"); until_text(".detail .json", "NullPointer at line 5");
    }
    let shown = screen.texts(".detail .attempt").await.concat();
    for part in ["Answer500", "x-from-thereyes", "set-cookie[redacted]"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("made_up"), "{shown}");
    steps! { screen;
        click("tbody tr:nth-child(2)"); until_text(".detail", "The beginning of a body of 70,000 bytes.");
        is("document.querySelector('.detail .json').textContent.length", 65_536);
        end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_says_what_happened_and_how_often() {
    let listening = listening!("--keep", "3");
    listening.row("evt_0", "row_0", "Ada").await;
    let body = listening.row("evt_1", "row_1", "Ada").await;
    let screen = open!(&listening.page);
    screen.until_text(".totals", "2 deliveries").await;
    // By the stream from here on.
    listening.deliver("evt_1", &body, &body).await;
    listening.forged("evt_1", &body).await;
    let chips = ["3 of 4 deliveries", "1 ✓ done", "1 = again", "1 ✗ refused"];
    steps! { screen; until_text(".totals", chips[0]); are(".totals button", &chips); }
    let cells = "[...document.querySelector('tr[data-state=refused]').cells].map((cell) => cell.hidden ? '' : cell.innerText).join('|')";
    let refused = screen.eval(cells).await;
    let refused: Vec<_> = refused.as_str().unwrap().split('|').collect();
    assert_eq!(refused[0], "✗ refused");
    assert_eq!(refused[2..4], ["Orders · row_1", "row.created"]);
    assert!(refused[4].contains("signature is not that"), "{refused:?}");
    assert!(refused[5].ends_with(" ms"), "{refused:?}");
    assert_eq!(refused[6..], ["401", "", ""]);
    // Each number is a filter.
    steps! { screen;
        press(".totals", "1 = again");
        until("[...document.querySelectorAll('tr[data-delivery]')].every((row) => row.dataset.state === 'again')");
        until("location.hash === '#?state=again'");
        press(".totals", "1 = again"); until_count("tr[data-delivery]", 3);
        end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_and_the_next_command_are_there_to_copy() {
    let listening = listening!();
    let screen = open!(&listening.page);
    screen.allow_clipboard().await;
    let url = format!("http://{}/webhooks", listening.address);
    let next = format!("hookgate send row.created --to {url}");
    for place in [".where", ".empty"] {
        steps! { screen; until_text(place, &url); until_text(place, &next); }
        for (button, text) in [("Copy the address", &url), ("Copy the command", &next)] {
            let copied = format!("navigator.clipboard.readText().then((it) => it === {text:?})");
            steps! { screen; eval("navigator.clipboard.writeText('')"); press(place, button); until(&copied); }
        }
    }
    listening.event("evt_1", "page.created", "row_1").await;
    steps! { screen; until_there("tr[data-delivery]"); until_text(".where", &url); }
    let is_said = screen.texts(".beside").await.concat().contains(&next);
    assert!(!is_said || screen.property(".beside .empty", "hidden").await == true);
    // Where nothing fits, one button takes all filters away.
    steps! { screen;
        fill("Search", "nothing of this kind"); fill("Verdict", "failed");
        until_text("main", "No delivery fits the filter (1 searched).");
        press("main", "Clear filters"); until_there("tr[data-delivery]");
        is("document.querySelector('#search').value", "");
        end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_delivery_and_the_filters_stand_in_the_address() {
    let listening = listening!("--keep", "4");
    let deliver = async |numbers: std::ops::RangeInclusive<u8>| {
        for number in numbers {
            listening
                .event(&format!("evt_{number}"), "row.updated", "row_1")
                .await;
        }
    };
    deliver(1..=3).await;
    let screen = open!(&listening.page);
    steps! { screen;
        fill("Search", "\"evt_2\" row"); fill("Event type", "row.updated"); until_count("tr[data-delivery]", 1);
        click("tr[data-delivery]"); until_text(".detail", "evt_2");
        until("/^#evt_2@20\\d\\d-\\d\\d-\\d\\dT[\\d:]+Z\\?search=%22evt_2%22\\+row&type=row\\.updated$/.test(location.hash)");
        reload(); until_text(".detail", "evt_2"); until_count("tr[data-delivery]", 1);
        is("document.querySelector('#search').value", "\"evt_2\" row");
        is("document.querySelector(\"[aria-label='Event type']\").value", "row.updated");
    }
    // It makes room for newer ones: its address says so.
    deliver(4..=8).await;
    steps! { screen;
        reload(); until_text(".detail", "The delivery of evt_2 at 20"); until_text(".detail", "The page keeps the newest 4.");
        was_refused(404);
        key("Escape"); until_hidden(".detail");
        end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn phrases_and_fields_of_the_body_are_searched() {
    let listening = listening!();
    listening.row("evt_1", "row_1", "Ada Lovelace").await;
    listening.row("evt_2", "row_2", "Lovelace, not Ada").await;
    let body = row("evt_3", "Ada", "row_3", "Bo");
    listening.deliver("evt_3", &body, &body).await;
    let screen = open!(&listening.page);
    screen.until_count("tr[data-delivery]", 3).await;
    for (words, found) in [
        ("\"Ada Lovelace\"", 1),
        ("Ada Lovelace", 2),
        ("data.properties.Customer:\"Ada\"", 2),
        ("data.properties.Customer:\"ada lovelace\"", 1),
        ("datamodelName:ada", 1),
        ("Customer:Orders", 0),
    ] {
        let search = "new URLSearchParams(location.hash.slice(2)).get('search')";
        let is_told = format!("{search} === {words:?}");
        let rows = format!("document.querySelectorAll('tr[data-delivery]').length === {found}");
        steps! { screen; fill("Search", words); until(&format!("{is_told} && {rows}")); }
    }
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_body_is_signed_and_sent_where_the_page_may_sign() {
    let listening = listening!();
    let body = row("evt_1", "Orders", "row_1", "Ada");
    listening.forged("evt_1", &body).await;
    let screen = open!(&listening.page);
    steps! { screen;
        click("tr[data-state=refused]"); press(".detail", "Edit and send again"); until_there("dialog textarea");
    }
    let prepared = screen.property("dialog textarea", "value").await;
    let prepared = prepared.as_str().unwrap();
    assert!(prepared.contains("\"evt_1_"), "a new id: {prepared}");
    let changed = body.replace("evt_1", "evt_new").replace("Ada", "Bo");
    steps! { screen;
        fill("Body", &changed); press("dialog", "Sign and send");
        until_text("#told .good", "evt_new delivered with this body: 204");
        // The new one is open.
        until_there("tr[data-state=done].chosen"); until_text(".detail dl", "evt_new"); until_text(".detail .json", "\"Bo\"");
        end();
    }

    // Who was not given the token sees the same, without the button.
    let screen = open!(listening.page_without_token());
    steps! { screen;
        click("tr[data-state=done]"); until_text(".detail dl", "evt_new");
        are(".detail > .actions button", &["Deliver again", "Copy as curl without signature"]);
        end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_body_goes_to_curl_through_its_standard_input() {
    let listening = listening!();
    listening
        .event("evt_long", "row.updated", &"ä'".repeat(200_000))
        .await;
    let screen = open!(&listening.page);
    steps! { screen;
        allow_clipboard();
        click("tr[data-delivery]"); press(".detail", "Copy as curl without signature"); until_text("#told", "copied");
    }
    let command = screen.copied().await;
    assert!(command.contains("--data-binary @-"));
    let script = std::env::temp_dir().join(format!("hookgate-curl-{}", std::process::id()));
    std::fs::write(&script, command).unwrap();
    let ran = Command::new("sh").arg(&script).output().unwrap();
    std::fs::remove_file(script).unwrap();
    let answered = String::from_utf8_lossy(&ran.stdout);
    assert!(answered.contains("HTTP/1.1 401"), "{ran:?}");
    // The whole body came.
    steps! { screen; until_there("tr[data-state=refused]"); end(); }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_begins_with_the_deliveries_of_a_log() {
    let log = std::env::temp_dir().join(format!("hookgate-history-{}.jsonl", std::process::id()));
    let _ = std::fs::remove_file(&log);
    let path = log.to_str().unwrap();
    let before = listening!("--log", path, "--record", path);
    let body = before.row("evt_before", "row_1", "Ada").await;
    before.forged("evt_forged", &body).await;
    // The recorder writes behind the answer.
    let end = Instant::now() + PATIENCE;
    while !std::fs::read_to_string(&log).is_ok_and(|log| log.lines().count() == 2) {
        assert!(Instant::now() < end);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(before);
    let listening = listening!("--log", path, "--record", path);
    let screen = open!(&listening.page);
    steps! { screen;
        until_text(".totals", "2 deliveries");
        click("tr[data-state=done]"); until_text(".detail dl", "evt_before");
        press(".detail", "Deliver again"); until_text("#told .good", "204"); until_text(".totals", "3 deliveries");
        end();
    }
    std::fs::remove_file(log).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_says_how_many_fit_and_each_number_is_what_its_state_leaves() {
    let listening = listening!();
    let one = listening.row("evt_1", "row_1", "A").await;
    let two = row("evt_1", "Orders", "row_2", "A");
    listening.forged("evt_2", &two).await;
    listening.forged("evt_3", &two).await;
    let screen = open!(&listening.page);
    steps! { screen;
        until_text(".totals", "3 deliveries");
        fill("Search", "row_2"); until_text(".totals", "2 of 3 deliveries");
        are(".totals button", &["2 of 3 deliveries", "2 ✗ refused"]);
        press(".totals", "2 ✗ refused"); until_count("tr[data-delivery]", 2); until("location.hash.includes('state=refused')");
    }
    // Also while others arrive.
    listening.forged("evt_4", &one).await;
    listening.forged("evt_5", &two).await;
    steps! { screen;
        until_text(".totals", "3 of 5 deliveries"); until_count("tr[data-delivery]", 3);
        fill("Search", "nothing of this kind"); until_text(".totals", "0 of 5 deliveries");
        end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_what_is_done_says_that_nothing_was_passed_on() {
    let listening = listening!("--forward", &backend().await);
    listening.row("evt_1", "row_1", "Ada").await;
    let screen = open!(&listening.page);
    steps! { screen;
        click("tr[data-state=done]"); press(".detail", "Deliver again");
        until_text("#told .good", "evt_1 delivered again: 200, done before: not passed on");
    }
    // One of another body is no mere copy.
    listening.row("evt_1", "row_1", "Bo").await;
    steps! { screen;
        until_text("tbody tr:first-child .reason", "its body differs");
        click("tbody tr:first-child"); until_text(".detail > .refusal", "its body differs");
        end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_is_refused_keeps_the_focus_and_escape_closes_it_alone() {
    let listening = listening!();
    listening.row("evt_1", "row_1", "Ada").await;
    let screen = open!(&listening.page);
    steps! { screen;
        click("tr[data-state=done]"); press(".detail", "Edit and send again");
        fill("Body", "not json"); press("dialog", "Sign and send"); until_text("dialog .refusal", "400"); was_refused(409);
        is("document.activeElement.textContent === 'Sign and send'", true);
        // Also where nothing in it has the focus.
        eval("document.activeElement.blur()");
        key("Escape"); until_gone("dialog"); is("document.querySelector('.detail').hidden", false);
        key("Escape"); until_hidden(".detail");
        end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_events_leaves_out_is_counted_on_the_page() {
    let listening = listening!("--events", "row.*");
    let screen = open!(&listening.page);
    screen.until_text("main", "Nothing has arrived yet").await;
    listening.event("evt_1", "page.created", "row_1").await;
    steps! { screen; until_text("main", "1 of other types left out by --events"); end(); }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_delivery_that_made_room_says_so_when_it_is_to_be_delivered_again() {
    let listening = listening!("--keep", "2");
    listening.row("evt_1", "row_1", "Ada").await;
    let screen = open!(&listening.page);
    steps! { screen; click("tr[data-delivery]"); until_text(".detail dl", "evt_1"); }
    for id in ["evt_2", "evt_3"] {
        listening.row(id, "row_1", "Ada").await;
    }
    steps! { screen;
        until_text(".totals", "2 of 3 deliveries");
        press(".detail", "Deliver again"); until_text("#told .bad", "The delivery of evt_1 at 20"); was_refused(404);
        end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_without_a_time_is_its_newest_delivery_and_a_wrong_token_is_named() {
    let listening = listening!();
    let body = listening.row("evt_1", "row_1", "Ada").await;
    listening.forged("evt_1", &body).await;
    let page = listening.page_without_token();
    let screen = open!(&format!("{page}?token=made_up#evt_1"));
    steps! { screen;
        until_there(".detail[data-state=refused]"); until("location.hash.startsWith('#evt_1@20')");
        until_there("tr[data-state=refused].chosen"); until_text(".where", "The token of this address is not");
        end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_without_the_body_says_so() {
    let listening = listening!();
    let body = row("evt_1", "Orders", "row_1", "Ada");
    let before = UnixSeconds::new(SystemClock.now().as_i64() - 400);
    listening.deliver_at(before, "evt_1", &body, &body).await;
    let screen = open!(&listening.page);
    steps! { screen;
        allow_clipboard(); click("tr[data-state=refused]");
        press(".detail", "Copy as curl without signature"); until_text("#told", "without signature and body, which was not read");
        press(".detail", "Why was it refused?"); until_text(".explained", "not accepted");
        end();
    }
}
