//! Webhooks: their settings, the list and the detail of deliveries, and what can be done with one.

use std::time::Instant;

use serde_json::{Value, json};

use crate::{Receives, Served};

const ROW: &str = "[aria-label='Recent deliveries'] tbody tr";

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_made_changed_tried_and_removed_and_its_secret_shown_once() {
    let receiver = Receives::start().await;
    let service = Served::alone().await;
    let screen = open!(&service.page("webhooks"));
    steps! { screen;
        until_there("[data-subscription=wh_1]"); press("main", "New webhook");
        fill("Name", "mine"); fill("URL", "ftp://example.com"); press("dialog", "Create");
        until("document.querySelector('dialog .refusal').textContent.length > 0"); was_refused(400);
        fill("URL", &receiver.url); press("dialog", "page.deleted"); fill("Data model", "dm_orders");
        press("dialog", "Create"); until_there("dialog .secret");
    }
    let secret = screen.texts("dialog .secret").await.remove(0);
    assert!(secret.starts_with("whsec_"), "{secret}");
    steps! { screen; press("dialog", "I have it"); until_gone("dialog"); }
    let shown = screen.eval("document.documentElement.textContent").await;
    assert!(!shown.as_str().unwrap().contains(&secret));
    let made = service.data("subscriptions").await[1].take();
    let said = json!([made["name"], made["url"], made["dataModelId"]]);
    assert_eq!(said, json!(["mine", receiver.url, "dm_orders"]));
    let events = made["events"].as_array().unwrap();
    assert_eq!(events.len(), 7, "{events:?}");
    assert!(!events.contains(&json!("page.deleted")), "{events:?}");

    // The receiver has another secret, so the test event is refused.
    let row = format!("[data-subscription={}]", made["id"].as_str().unwrap());
    steps! { screen;
        press(&row, "Test event"); until_text(".detail", "401");
        until_text("#told .bad", "Test event: the receiver answered 401");
    }
    let detail = service.opened(&screen).await;
    assert_eq!(detail["attempts"][0]["status"], 401);

    steps! { screen;
        press(&row, "Change"); fill("Name", "another name"); press("dialog", "Save"); until_text(&row, "another name");
        press(&row, "Disable"); until_text(&row, "Enable");
    }
    let changed = service.data("subscriptions").await[1].take();
    let said = json!([changed["name"], changed["disabled"]]);
    assert_eq!(said, json!(["another name", true]));
    steps! { screen; press(&row, "Remove"); press("dialog", "Remove"); until_gone(&row); end(); }
    assert_eq!(service.list("subscriptions").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_and_the_detail_show_the_deliveries_of_the_endpoints() {
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    let screen = open!(&service.page("webhooks"));
    screen.until_text("main", "Nothing was delivered yet").await;
    receiver
        .tries(&service, &[(204, 40), (500, 41), (204, 42)])
        .await;
    let rows = "[...document.querySelectorAll(\"[aria-label='Recent deliveries'] tbody tr\")].map((row) => \
                [row.dataset.delivery, row.dataset.state, ...[...row.children].map((cell) => cell.textContent)])";
    steps! { screen;
        until_count(ROW, 3); until(&format!("({rows}).every((row) => row[1])"));
        // The last of the changes may be drawn a frame later.
        until(&format!("({rows})[0][8] === '204'"));
    }
    let shown = screen.eval(rows).await;
    let there = service.list("deliveries").await;
    for (shown, there) in shown.as_array().unwrap().iter().zip(&there) {
        let attempt = &there["attempts"][0];
        let at = &attempt["at"].as_str().unwrap()[11..19];
        let status = attempt["status"].to_string();
        let (row, kind) = ("Orders · row_order_1", &there["eventType"]);
        let expected = json!([there["id"], there["state"], at, row, kind, status]);
        let found = [0, 1, 3, 4, 5, 8].map(|at: usize| &shown[at]);
        assert_eq!(json!(found), expected);
        let waits = shown[9].as_str().unwrap();
        let is_waiting = there["nextAttemptAt"].is_string();
        assert_eq!(waits.starts_with("in "), is_waiting, "{waits}");
    }

    // The one that failed: its request and the countdown, then the retry by a step of the clock.
    steps! { screen; click("[data-delivery][data-state=pending]"); until_text(".detail", "Next attempt"); }
    let detail = service.opened(&screen).await;
    let request = &detail["attempts"][0]["request"];
    let headers = "[...document.querySelectorAll(\"[aria-label='Headers of the request'] tr\")].map((row) => [row.cells[0].textContent, row.cells[1].textContent])";
    screen.is(headers, request["headers"].clone()).await;
    let body = "JSON.parse([...document.querySelectorAll('.detail .json')].at(-1).textContent)";
    let sent: Value = serde_json::from_str(request["body"].as_str().unwrap()).unwrap();
    screen.is(body, sent).await;
    let counted = "document.querySelector('.detail dd:last-of-type').textContent";
    let first = screen.eval(counted).await;
    steps! { screen;
        until(&format!("{counted} !== {first}"));
        press("#top", "+1m"); until_text(".detail", "Attempt 2"); until_there(".detail[data-state=delivered]");
        fill("State", "pending"); until_count(ROW, 0);
        end();
    }
}

// fault V7: the page tells a failed test event in green, with the words of the HTTP client, and its row has six lines
#[tokio::test(flavor = "multi_thread")]
async fn a_test_event_that_fails_says_so_in_red_and_in_rows_of_two_lines() {
    let service = Served::alone().await;
    let screen = open!(&service.page("webhooks"));
    steps! { screen;
        press("main", "Test event"); until_text("#told .bad", "Test event: connection refused: nothing listens at 127.0.0.1:1");
        are("#told .good", &[]); until_text(".detail .attempt", "no answer");
    }
    // The event's type and its id are two lines. The list stands beside the open delivery.
    for (width, most) in [(1280, 60), (400, 110)] {
        let height = format!("document.querySelector({ROW:?}).offsetHeight < {most}");
        let scrolls = "[...document.querySelectorAll('.scroll')].every((one) => one.scrollWidth <= one.clientWidth)";
        steps! { screen; size(width, 900); until(&height); until(scrolls); }
    }
    screen.end().await;
}

// fault V6: a page's filter searches the newest 100 deliveries alone: a refused one behind them is not found, and "Nothing has arrived yet" stands beside "Show more"
// fault V10: a retry of an old delivery brings it to the top of the page's list, and pushes another one out
#[tokio::test(flavor = "multi_thread")]
async fn the_filter_finds_a_delivery_behind_many_others() {
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    receiver.answer(500);
    let emit = || {
        let event = json!({ "type": "page.updated", "data": {} });
        service.control("POST", "events", event)
    };
    emit().await;
    let is_tried = |all: &[Value]| all.iter().any(|one| one["attempts"][0].is_object());
    service.until_deliveries(is_tried).await;
    receiver.answer(204);
    for _ in 0..100 {
        emit().await;
    }
    let is_delivered = |all: &[Value]| {
        let mut newest = all.iter().take(100);
        all.len() == 101 && newest.all(|one| one["state"] == "delivered")
    };
    let all = service.until_deliveries(is_delivered).await;
    let first = all[100]["id"].as_str().unwrap();
    let screen = open!(&service.page("webhooks"));
    let rows = format!(
        "[...document.querySelectorAll({ROW:?})].map((row) => row.dataset.delivery).join()"
    );
    let alone = format!("{rows} === '{first}'");
    steps! { screen;
        until_count(ROW, 100);
        fill("State", "pending"); until(&alone);
        fill("State", "discarded"); until_text("main", "No delivery fits the filter (101 searched).");
    }
    // What comes is searched as well.
    emit().await;
    screen.until_text("main", "(102 searched)").await;
    let shows_more = "[...document.querySelectorAll('main button')].some((one) => one.textContent === 'Show more' && !one.hidden)";
    let search = format!("search={first}+500");
    steps! { screen;
        is(shows_more, false); fill("State", ""); until(shows_more);
        fill("Search", &format!("{first} 500")); until(&alone); until_text(".failed", "500");
        fill("Event type", "row."); until_text("main", "No delivery fits the filter (102 searched).");
        fill("Event type", ""); until(&alone);
        click("tr[data-delivery]"); until_text(".detail .refusal", "the handler failed or panicked, or the server");
        reload(); until_text(".detail .refusal", "the handler failed or panicked");
        until(&format!("location.hash === '#webhooks/{first}?{search}'"));
        key("Escape"); until(&format!("location.hash === '#webhooks?{search}'"));
        // The filter survived the reload.
        fill("Search", ""); until("location.hash === '#webhooks'"); until(shows_more);
    }
    // A retry of a delivery behind the list does not bring it to the top.
    service
        .control("POST", "clock/advance", json!({ "by": "2m" }))
        .await;
    emit().await;
    let newest = service.data("deliveries?limit=1").await[0]["id"].take();
    steps! { screen;
        until(&format!("{rows}.split(',')[0] === {newest}"));
        is(&format!("{rows}.includes('{first}')"), false);
        end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_sent_again_copied_as_curl_and_explained() {
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    let fault = json!({ "fault": "altered-byte", "first": 1 });
    service.control("POST", "faults", fault).await;
    let screen = open!(&service.page("webhooks"));
    steps! { screen;
        allow_clipboard(); press("main", "Emit an event"); fill("Type", "member.invited"); press("dialog", "Emit");
        until_there("[data-delivery]"); click("[data-delivery]"); until_text(".detail", "fault: altered-byte");
        press(".detail", "Why was it refused?"); until_text(".explained", "altered-byte was switched on");
        fill("The secret that your receiver has", "\"whsec_made_up_for_the_browser\"");
        key("Enter"); until_text(".explained", "altered");
        press(".detail", "Copy as curl"); until_text("#told", "copied");
    }
    let command = screen.copied().await;
    let detail = service.opened(&screen).await;
    let headers = &detail["attempts"][0]["request"]["headers"];
    for header in headers.as_array().unwrap() {
        let [name, value] = [0, 1].map(|at: usize| header[at].as_str().unwrap());
        let is_there = command.contains(&format!("-H '{name}: {value}'"));
        let is_of_curl = ["host", "content-length"].contains(&name);
        assert!(is_of_curl || is_there, "{header}\n{command}");
    }

    steps! { screen; press(".detail", "Send again"); until_count("[data-delivery]", 3); }
    let is_again = |all: &[Value]| all.len() == 2 && all[0]["state"] == "delivered";
    let all = service.until_deliveries(is_again).await;
    assert_eq!(all[0]["eventId"], all[1]["eventId"]);
    assert_eq!(receiver.events().len(), 1);
    steps! { screen;
        until("document.querySelector('tr[data-delivery]').dataset.state === 'delivered'");
        // One that was accepted has no such question.
        click("tr[data-delivery]"); until_text(".detail", "204");
        are(".detail > .actions button", &["Send again", "Copy as curl"]);
        end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_deliveries_are_searched_and_opened_while_the_server_stops() {
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    service
        .change(json!({ "prop_customer": "word ".repeat(20_000) }))
        .await;
    for number in 1..1000 {
        let event = json!({ "type": "page.updated", "data": { "number": number } });
        service.control("POST", "events", event).await;
    }
    let address = service.emulator.address();
    let screen = open!(&service.page("webhooks"));
    screen.allow_clipboard().await;
    let began = Instant::now();
    steps! { screen; reload(); until_count("tr[data-delivery]", 100); }
    println!("first list: {:?}", began.elapsed());

    // By keys alone: the search, the list, the oldest delivery, back.
    let focused = "(document.activeElement.getAttribute('aria-label') || document.activeElement.closest('tr')?.dataset.delivery)";
    steps! { screen; key("/"); until(&format!("{focused} === 'Search'")); }
    let began = Instant::now();
    steps! { screen; write("row.updated WORD"); until_count("tr[data-delivery]", 1); }
    println!("search over all: {:?}", began.elapsed());
    let id = screen
        .property("tr[data-delivery]", "dataset.delivery")
        .await;
    let on_it = format!("{focused} === {id}");
    steps! { screen; key("ArrowDown"); until(&on_it); }
    let began = Instant::now();
    steps! { screen; key("Enter"); until_text(".detail", "word word"); }
    println!("body of 100 KB: {:?}", began.elapsed());
    steps! { screen; press(".detail", "Copy body"); until_text("#told", "Body copied"); }
    assert!(screen.copied().await.len() > 100_000);
    steps! { screen;
        key("Escape"); until(&on_it);
        fill("Search", "nowhere"); until_text("main", "No delivery fits the filter (1,000 searched).");
    }

    drop(service);
    steps! { screen;
        until_text("#connection", "connection lost");
        fill("Search", ""); until_text("#told .bad", "The server does not answer.");
    }
    let _again = crate::emulator::started_at(address).await;
    steps! { screen; until_text("#connection", "live"); until_text("main", "Nothing was delivered yet."); }
    screen.forget_lost();
    screen.end().await;
}
