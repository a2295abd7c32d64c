//! Webhooks: their settings, the list and the detail of deliveries, and what can be done with one.

use std::time::Instant;

use serde_json::{Value, json};

use crate::{Receives, Served};

const LIST: &str = "[aria-label='Recent deliveries'] tbody";

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_made_changed_tried_and_removed_and_its_secret_shown_once() {
    let receiver = Receives::start().await;
    let service = Served::delivering_to("http://127.0.0.1:1/webhooks").await;
    let screen = open!(&service.page("webhooks"));
    screen.until_there("[data-subscription=wh_1]").await;
    screen.press("main", "New webhook").await;
    screen.fill("Name", "mine").await;
    screen.fill("URL", "ftp://example.com").await;
    screen.press("dialog", "Create").await;
    screen
        .until("document.querySelector('dialog .refusal').textContent.length > 0")
        .await;
    screen.was_refused(400).await;
    screen.fill("URL", &receiver.url).await;
    screen.press("dialog", "page.deleted").await;
    screen.fill("Data model", "dm_orders").await;
    screen.press("dialog", "Create").await;
    screen.until_there("dialog .secret").await;
    let secret = screen.texts("dialog .secret").await.remove(0);
    assert!(secret.starts_with("whsec_"), "{secret}");
    screen.press("dialog", "I have it").await;
    screen
        .until("document.querySelector('dialog') === null")
        .await;
    let shown = screen.eval("document.documentElement.textContent").await;
    assert!(!shown.as_str().unwrap().contains(&secret));
    let made = service.data("subscriptions").await[1].clone();
    assert_eq!(
        (&made["name"], &made["url"], &made["dataModelId"]),
        (&json!("mine"), &json!(receiver.url), &json!("dm_orders"))
    );
    let events: Vec<&str> = made["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_str().unwrap())
        .collect();
    assert!(
        events.len() == 7 && !events.contains(&"page.deleted"),
        "{events:?}"
    );

    // The receiver has another secret, so the test event is refused.
    let row = format!("[data-subscription={}]", made["id"].as_str().unwrap());
    screen.press(&row, "Test event").await;
    screen.until_text(".detail", "401").await;
    screen
        .until_text("#told .bad", "Test event: the receiver answered 401")
        .await;
    let id = screen
        .eval("document.querySelector('.detail').dataset.delivery")
        .await;
    let detail = service
        .data(&format!("deliveries/{}", id.as_str().unwrap()))
        .await;
    assert_eq!(detail["attempts"][0]["status"], 401);

    screen.press(&row, "Change").await;
    screen.fill("Name", "another name").await;
    screen.press("dialog", "Save").await;
    screen.until_text(&row, "another name").await;
    screen.press(&row, "Disable").await;
    screen.until_text(&row, "Enable").await;
    let changed = service.data("subscriptions").await[1].clone();
    assert_eq!(
        (&changed["name"], &changed["disabled"]),
        (&json!("another name"), &json!(true))
    );
    screen.press(&row, "Remove").await;
    screen.press("dialog", "Remove").await;
    screen
        .until(&format!("document.querySelector('{row}') === null"))
        .await;
    assert_eq!(
        service
            .data("subscriptions")
            .await
            .as_array()
            .unwrap()
            .len(),
        1
    );
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_and_the_detail_show_the_deliveries_of_the_endpoints() {
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    let screen = open!(&service.page("webhooks"));
    screen.until_text("main", "Nothing was delivered yet").await;
    for (number, status) in [204, 500, 204].into_iter().enumerate() {
        receiver.answer(status);
        let values = json!({ "values": { "prop_quantity": 40 + number } });
        service
            .control("PATCH", "models/dm_orders/rows/row_order_1", Some(values))
            .await;
        service
            .until_deliveries(|all| all.len() == number + 1 && all[0]["attempts"][0].is_object())
            .await;
    }
    screen
        .until(&format!(
            "document.querySelectorAll({:?}).length === 3",
            format!("{LIST} tr")
        ))
        .await;
    screen
        .until(&format!(
            "[...document.querySelectorAll({:?})].every((row) => row.dataset.state)",
            format!("{LIST} tr")
        ))
        .await;
    let rows = "[...document.querySelectorAll(\"[aria-label='Recent deliveries'] tbody tr\")].map((row) => \
                [row.dataset.delivery, row.dataset.state, ...[...row.children].map((cell) => cell.textContent)])";
    // The last of the changes may be drawn a frame later.
    screen.until(&format!("({rows})[0][8] === '204'")).await;
    let shown = screen.eval(rows).await;
    let there = service.data("deliveries").await;
    for (shown, there) in shown
        .as_array()
        .unwrap()
        .iter()
        .zip(there.as_array().unwrap())
    {
        assert_eq!((&shown[0], &shown[1]), (&there["id"], &there["state"]));
        assert_eq!(
            (&shown[4], &shown[5]),
            (&json!("Orders · row_order_1"), &there["eventType"])
        );
        let attempt = &there["attempts"][0];
        assert_eq!(shown[3], attempt["at"].as_str().unwrap()[11..19]);
        assert_eq!(shown[8], attempt["status"].to_string());
        let waits = shown[9].as_str().unwrap();
        assert_eq!(
            waits.starts_with("in "),
            there["nextAttemptAt"].is_string(),
            "{waits}"
        );
    }

    // The one that failed: its request and the countdown, then the retry by a step of the clock.
    screen.click("[data-delivery][data-state=pending]").await;
    screen.until_text(".detail", "Next attempt").await;
    let id = screen
        .eval("document.querySelector('.detail').dataset.delivery")
        .await;
    let path = format!("deliveries/{}", id.as_str().unwrap());
    let detail = service.data(&path).await;
    let request = &detail["attempts"][0]["request"];
    let headers = "[...document.querySelectorAll(\"[aria-label='Headers of the request'] tr\")].map((row) => [row.cells[0].textContent, row.cells[1].textContent])";
    assert_eq!(screen.eval(headers).await, request["headers"]);
    let body = "JSON.stringify(JSON.parse([...document.querySelectorAll('.detail .json')].at(-1).textContent))";
    let body: Value = serde_json::from_str(screen.eval(body).await.as_str().unwrap()).unwrap();
    let sent: Value = serde_json::from_str(request["body"].as_str().unwrap()).unwrap();
    assert_eq!(body, sent);
    let counted = "document.querySelector('.detail dd:last-of-type').textContent";
    let first = screen.eval(counted).await;
    screen.until(&format!("{counted} !== {first}")).await;
    screen.press("#top", "+1m").await;
    screen.until_text(".detail", "Attempt 2").await;
    screen
        .until("document.querySelector('.detail').dataset.state === 'delivered'")
        .await;

    screen.fill("State", "pending").await;
    screen
        .until(&format!(
            "document.querySelectorAll({:?}).length === 0",
            format!("{LIST} tr")
        ))
        .await;
    screen.end().await;
}

// fault V7: the page tells a failed test event in green, with the words of the HTTP client, and its row has six lines
#[tokio::test(flavor = "multi_thread")]
async fn a_test_event_that_fails_says_so_in_red_and_in_rows_of_two_lines() {
    // Nothing listens at port 1.
    let service = Served::delivering_to("http://127.0.0.1:1/webhooks").await;
    let screen = open!(&service.page("webhooks"));
    screen.press("main", "Test event").await;
    let told = "Test event: connection refused: nothing listens at 127.0.0.1:1";
    screen.until_text("#told .bad", told).await;
    assert_eq!(screen.texts("#told .good").await, Vec::<String>::new());
    screen.until_text(".detail .attempt", "no answer").await;
    // The event's type and its id are two lines. The list stands beside the open delivery.
    for width in [1280, 400] {
        screen.size(width, 900).await;
        let height = format!(
            "document.querySelector({:?}).offsetHeight",
            format!("{LIST} tr")
        );
        let most = if width == 400 { 110 } else { 60 };
        screen.until(&format!("{height} < {most}")).await;
        let scrolls = "[...document.querySelectorAll('.scroll')].every((one) => one.scrollWidth <= one.clientWidth)";
        screen.until(scrolls).await;
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
        service.control("POST", "events", Some(event))
    };
    emit().await;
    service
        .until_deliveries(|all| all.iter().any(|one| one["attempts"][0].is_object()))
        .await;
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
        "[...document.querySelectorAll({:?})].map((row) => row.dataset.delivery).join()",
        format!("{LIST} tr")
    );
    screen
        .until(&format!("{rows}.split(',').length === 100"))
        .await;
    screen.fill("State", "pending").await;
    screen.until(&format!("{rows} === '{first}'")).await;
    screen.fill("State", "discarded").await;
    screen
        .until_text("main", "No delivery fits the filter (101 searched).")
        .await;
    // What comes is searched as well.
    emit().await;
    screen.until_text("main", "(102 searched)").await;
    let shows_more = "[...document.querySelectorAll('main button')].some((one) => one.textContent === 'Show more' && !one.hidden)";
    assert_eq!(screen.eval(shows_more).await, false);
    screen.fill("State", "").await;
    screen.until(shows_more).await;
    screen.fill("Search", &format!("{first} 500")).await;
    screen.until(&format!("{rows} === '{first}'")).await;
    screen.until_text(".failed", "500").await;
    screen.fill("Event type", "row.").await;
    screen
        .until_text("main", "No delivery fits the filter (102 searched).")
        .await;
    screen.fill("Event type", "").await;
    screen.until(&format!("{rows} === '{first}'")).await;
    screen.click("tr[data-delivery]").await;
    screen
        .until_text(
            ".detail .refusal",
            "the handler failed or panicked, or the server",
        )
        .await;
    screen.reload().await;
    screen
        .until_text(".detail .refusal", "the handler failed or panicked")
        .await;
    screen
        .until(&format!(
            "location.hash === '#webhooks/{first}?search={first}+500'"
        ))
        .await;
    screen.key("Escape").await;
    screen
        .until(&format!("location.hash === '#webhooks?search={first}+500'"))
        .await;
    // The filter survived the reload.
    screen.fill("Search", "").await;
    screen.until("location.hash === '#webhooks'").await;
    screen.until(shows_more).await;
    // A retry of a delivery behind the list does not bring it to the top.
    let by = Some(json!({ "by": "2m" }));
    service.control("POST", "clock/advance", by).await;
    emit().await;
    let newest = service.data("deliveries?limit=1").await[0]["id"].take();
    screen
        .until(&format!("{rows}.split(',')[0] === {newest}"))
        .await;
    let is_shown = screen.eval(&format!("{rows}.includes('{first}')")).await;
    assert_eq!(is_shown, false);
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_sent_again_copied_as_curl_and_explained() {
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    let fault = json!({ "fault": "altered-byte", "first": 1 });
    service.control("POST", "faults", Some(fault)).await;
    let screen = open!(&service.page("webhooks"));
    screen.allow_clipboard().await;
    screen.press("main", "Emit an event").await;
    screen.fill("Type", "member.invited").await;
    screen.press("dialog", "Emit").await;
    screen.until_there("[data-delivery]").await;
    screen.click("[data-delivery]").await;
    screen.until_text(".detail", "fault: altered-byte").await;

    screen.press(".detail", "Why was it refused?").await;
    screen
        .until_text(".explained", "altered-byte was switched on")
        .await;
    screen
        .fill(
            "The secret that your receiver has",
            "\"whsec_made_up_for_the_browser\"",
        )
        .await;
    screen.key("Enter").await;
    screen.until_text(".explained", "altered").await;

    screen.press(".detail", "Copy as curl").await;
    screen.until_text("#told", "copied").await;
    let copied = screen.eval("navigator.clipboard.readText()").await;
    let command = copied.as_str().unwrap().to_owned();
    let id = screen
        .eval("document.querySelector('.detail').dataset.delivery")
        .await;
    let detail = service
        .data(&format!("deliveries/{}", id.as_str().unwrap()))
        .await;
    for (name, value) in detail["attempts"][0]["request"]["headers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| (&pair[0], &pair[1]))
    {
        let header = format!(
            "-H '{}: {}'",
            name.as_str().unwrap(),
            value.as_str().unwrap()
        );
        let is_of_curl = ["host", "content-length"].contains(&name.as_str().unwrap());
        assert!(
            is_of_curl || command.contains(&header),
            "{header}\n{command}"
        );
    }

    screen.press(".detail", "Send again").await;
    screen
        .until("document.querySelectorAll('[data-delivery]').length === 3")
        .await;
    let all = service
        .until_deliveries(|all| all.len() == 2 && all[0]["state"] == "delivered")
        .await;
    assert_eq!(all[0]["eventId"], all[1]["eventId"]);
    assert_eq!(receiver.events().len(), 1);
    screen
        .until("document.querySelector('tr[data-delivery]').dataset.state === 'delivered'")
        .await;

    // One that was accepted has no such question.
    screen.click("tr[data-delivery]").await;
    screen.until_text(".detail", "204").await;
    assert_eq!(
        screen.texts(".detail > .actions button").await,
        ["Send again", "Copy as curl"]
    );
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_deliveries_are_searched_and_opened_while_the_server_stops() {
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    let long = json!({ "values": { "prop_customer": "word ".repeat(20_000) } });
    let path = "models/dm_orders/rows/row_order_1";
    service.control("PATCH", path, Some(long)).await;
    for number in 1..1000 {
        let event = json!({ "type": "page.updated", "data": { "number": number } });
        service.control("POST", "events", Some(event)).await;
    }
    let address = service.emulator.address();
    let screen = open!(&service.page("webhooks"));
    screen.allow_clipboard().await;
    let began = Instant::now();
    screen.reload().await;
    let rows = "document.querySelectorAll('tr[data-delivery]').length";
    screen.until(&format!("{rows} === 100")).await;
    println!("first list: {:?}", began.elapsed());

    // By keys alone: the search, the list, the oldest delivery, back.
    let focused = "(document.activeElement.getAttribute('aria-label') || document.activeElement.closest('tr')?.dataset.delivery)";
    screen.key("/").await;
    screen.until(&format!("{focused} === 'Search'")).await;
    let began = Instant::now();
    screen.write("row.updated WORD").await;
    screen.until(&format!("{rows} === 1")).await;
    println!("search over all: {:?}", began.elapsed());
    let id = screen
        .eval("document.querySelector('tr[data-delivery]').dataset.delivery")
        .await;
    screen.key("ArrowDown").await;
    screen.until(&format!("{focused} === {id}")).await;
    let began = Instant::now();
    screen.key("Enter").await;
    screen.until_text(".detail", "word word").await;
    println!("body of 100 KB: {:?}", began.elapsed());
    screen.press(".detail", "Copy body").await;
    screen.until_text("#told", "Body copied").await;
    let copied = screen
        .eval("navigator.clipboard.readText().then((text) => text.length)")
        .await;
    assert!(copied.as_u64().unwrap() > 100_000, "{copied}");
    screen.key("Escape").await;
    screen.until(&format!("{focused} === {id}")).await;
    screen.fill("Search", "nowhere").await;
    screen
        .until_text("main", "No delivery fits the filter (1,000 searched).")
        .await;

    drop(service);
    screen.until_text("#connection", "connection lost").await;
    screen.fill("Search", "").await;
    screen
        .until_text("#told .bad", "The server does not answer.")
        .await;
    let _again = crate::emulator::started_at(address).await;
    screen.until_text("#connection", "live").await;
    screen
        .until_text("main", "Nothing was delivered yet.")
        .await;
    // The browser itself reports the requests that found no server.
    let mut problems = screen.problems();
    problems.retain(|problem| !problem.contains("ERR_"));
    assert_eq!(problems, Vec::<String>::new());
    screen.end().await;
}
