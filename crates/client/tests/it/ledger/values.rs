//! Which values an event may carry, and when.

use std::time::Duration;

use hookgate::Properties;
use hookgate_client::{Client, Ledger};
use serde_json::{Value, json};

use super::service::{
    Asked, MODEL, client, clock, created, deleted, is_echo, iso, orders, refusal, set_to_one,
    signed, to_one, updated, usual,
};

fn ledger() -> Ledger {
    Ledger::in_memory().with_clock(clock())
}

fn sync(ledger: &Ledger) -> Client {
    client(|asked| std::future::ready(usual(&asked))).writer("sync", ledger)
}

/// The service keeps these values, by property id, for each write.
fn keeping(values: Value) -> impl Fn(&Asked) -> (u16, Value) + Send + Sync {
    move |asked: &Asked| {
        let (method, path) = (asked.method.clone(), asked.path.clone());
        usual(&Asked {
            method,
            path,
            body: json!({ "values": values }),
        })
    }
}

#[tokio::test]
async fn an_update_carries_what_was_written_or_a_part_of_it() {
    let written = json!({ "Customer": "Ada", "Total": 12.5, "Tags": null });
    for (after, expected) in [
        (written.clone(), true),
        (json!({ "Total": 12.50 }), true), // the other values were there before
        (json!({ "Total": 12.5, "Customer": "Bo" }), false),
        (json!({ "Total": "12.5" }), false),
        (json!({ "Total": null }), false),
        (json!({ "Total": 12.5, "Tags": ["new"] }), false),
        // Not written.
        (json!({ "Total": 12.5, "Status": "open" }), false),
        (json!({ "Total": 12.5, "Status": null }), false),
        (json!({}), false),
    ] {
        let ledger = ledger();
        let orders = orders(&ledger, usual);
        orders.update("row_1", &written).await.unwrap();
        let event = updated("evt_1", 0, "row_1", after.clone());
        assert_eq!(is_echo(&ledger, &event).await, expected, "{after}");
        let other = updated("evt_2", 0, "row_2", after);
        assert!(!is_echo(&ledger, &other).await, "another row");
    }
}

#[tokio::test]
async fn values_that_the_service_writes_in_another_form_are_recognised() {
    let kept = json!({ "prop_1": "Ada", "prop_2": 12.5, "prop_3": "open" });
    for (written, event, expected) in [
        (
            json!({ "Customer": " Ada ", "Total": 12.50 }),
            json!({ "Customer": "Ada", "Total": 12.5 }),
            true,
        ),
        // An event may also have the values as they were written.
        (
            json!({ "Customer": " Ada " }),
            json!({ "Customer": " Ada " }),
            true,
        ),
        // A property that was not written is not an echo, also where the answer has its value.
        (
            json!({ "Customer": "Ada" }),
            json!({ "Customer": "Ada", "Status": "open" }),
            false,
        ),
    ] {
        let ledger = ledger();
        let orders = orders(&ledger, keeping(kept.clone()));
        orders.update("row_1", &written).await.unwrap();
        let event = updated("evt_1", 0, "row_1", event);
        assert_eq!(is_echo(&ledger, &event).await, expected, "{event:?}");
    }
}

#[tokio::test]
async fn a_new_row_carries_what_was_written_and_what_the_service_added() {
    let ledger = ledger();
    let kept = json!({ "prop_1": "Ada", "prop_3": "open" });
    let orders = orders(&ledger, keeping(kept));
    for (properties, expected) in [
        (json!({ "Customer": "Ada", "Status": "open" }), true),
        (
            json!({ "Customer": "Ada", "Status": "open", "Total": null }),
            true,
        ),
        (json!({ "Customer": " Ada ", "Status": "open" }), true),
        (json!({ "Customer": "Ada" }), true), // before the service added the status
        (json!({ "Customer": "Ada", "Status": "paid" }), false), // changed before the event was made
        (json!({ "Status": "open" }), false),
        (json!({ "Customer": "Ada", "Total": 1 }), false),
    ] {
        let written = json!({ "Customer": " Ada " });
        let row = orders.create(&written).await.unwrap();
        let event = created("evt_1", &row.id, properties.clone());
        assert_eq!(is_echo(&ledger, &event).await, expected, "{properties}");
        let foreign = created("evt_2", "row_foreign", properties);
        assert!(!is_echo(&ledger, &foreign).await, "the row's id is known");
    }
}

/// Only where the change is older, or a person undid it and made it again at once.
#[tokio::test]
async fn a_write_that_changed_nothing_is_not_the_cause_of_a_later_change() {
    let ledger = ledger();
    // The row has had the total since an hour.
    let orders = orders(&ledger, |asked| {
        let (status, mut answer) = usual(asked);
        answer["data"]["updatedAt"] = json!(iso(-3_600));
        (status, answer)
    });
    set_to_one(&orders, "row_1").await;
    for (seconds, expected) in [
        (-1, false),
        (0, false),
        (1, false),
        (600, false),
        (86_400, false),
        (-3_600, true),
    ] {
        let event = to_one(&format!("evt_{seconds}"), seconds, "row_1");
        assert_eq!(is_echo(&ledger, &event).await, expected, "{seconds}");
    }
}

#[tokio::test]
async fn an_event_is_the_echo_of_a_write_of_its_time() {
    let (ledger, clock) = (ledger(), clock());
    let ledger = ledger.with_clock(clock.clone());
    let answered = orders(&ledger, usual);
    let unanswered = orders(&ledger, |_| refusal(500));
    for (seconds, by_answer, by_clock) in [
        (-301, false, false),
        (-299, false, true),
        (-59, true, true),
        (59, true, true),
        (61, false, true),
        (299, false, true),
        (301, false, false),
    ] {
        let row = format!("row_{seconds}");
        set_to_one(&answered, &row).await;
        let event = to_one("evt_1", seconds, &row);
        assert_eq!(is_echo(&ledger, &event).await, by_answer, "{seconds}");
        let row = format!("row_unknown_{seconds}");
        let written = unanswered.update(&row, &json!({ "Total": 1 })).await;
        written.unwrap_err();
        let event = to_one("evt_2", seconds, &row);
        assert_eq!(is_echo(&ledger, &event).await, by_clock, "{seconds}");
    }
    // The event itself may come much later.
    set_to_one(&answered, "row_1").await;
    clock.advance(Duration::from_secs(26 * 3_600));
    assert!(is_echo(&ledger, &to_one("evt_3", 0, "row_1")).await);
}

/// The value goes there and back, so that three writes are equal.
// fault L1: equal writes of one row have their events in another order: the ledger takes the oldest entry, and the event of an own write is called foreign
#[tokio::test]
async fn equal_writes_have_their_own_events_in_any_order() {
    for order in [
        [0, 50, 100],
        [0, 100, 50],
        [50, 0, 100],
        [50, 100, 0],
        [100, 0, 50],
        [100, 50, 0],
    ] {
        let clock = clock();
        let ledger = Ledger::in_memory().with_clock(clock.clone());
        for written_at in [0, 50, 100] {
            let answer = move |asked: &Asked| {
                let (status, mut answer) = usual(asked);
                answer["data"]["updatedAt"] = json!(iso(written_at));
                (status, answer)
            };
            let client = client(move |asked| std::future::ready(answer(&asked)));
            let client = client.writer(&format!("at {written_at}"), &ledger);
            set_to_one(&client.rows(MODEL), "row_1").await;
            clock.advance(Duration::from_secs(50));
        }
        for at in order {
            let event = to_one(&format!("evt_{at}"), at, "row_1");
            let echo = ledger.echo(&event).await.unwrap();
            let writer = echo.map(|echo| echo.writer);
            assert_eq!(writer, Some(format!("at {at}")), "{order:?}");
        }
    }
}

#[tokio::test]
async fn an_event_without_a_date_is_an_echo_where_the_row_alone_proves_it() {
    let ledger = ledger();
    let orders = orders(&ledger, usual);
    orders.delete("row_1").await.unwrap();
    set_to_one(&orders, "row_1").await;
    let body = |kind, rest| {
        format!(
            r#"{{"id":"evt_{kind}","type":"row.{kind}","createdAt":"soon","workspaceId":"ws_1","data":{{"datamodelId":"dm_orders","datamodelName":"","rowId":"row_1"{rest}}}}}"#
        )
    };
    assert!(is_echo(&ledger, &signed(&body("deleted", ""))).await);
    let change = r#","changes":{"Total":{"before":null,"after":1}}"#;
    let update = body("updated", change);
    assert!(!is_echo(&ledger, &signed(&update)).await);
}

#[tokio::test]
async fn events_of_other_things_are_no_echoes() {
    let body = r#"{"id":"evt_1","type":"page.updated","createdAt":"2025-11-21T02:00:00Z","workspaceId":"ws_1","data":{}}"#;
    assert!(!is_echo(&ledger(), &signed(body)).await);
}

#[tokio::test]
async fn rows_by_the_ids_of_properties_are_recognised_by_their_names() {
    let ledger = ledger();
    let orders = sync(&ledger).rows::<Properties>(MODEL).by_id();
    let change = json!({ "prop_2": 1 });
    orders.update("row_1", &change).await.unwrap();
    assert!(is_echo(&ledger, &to_one("evt_1", 0, "row_1")).await);
    // Two properties have this name, so an event does not say which it means.
    let change = json!({ "prop_4": 1, "prop_2": 1 });
    orders.update("row_2", &change).await.unwrap();
    assert!(!is_echo(&ledger, &updated("evt_2", 0, "row_2", json!({ "Twin": 1 }))).await);
}

#[tokio::test]
async fn a_writer_is_named_by_64_characters_without_control_characters() {
    let ledger = ledger();
    let name = format!("a\u{1b}[31m\n{}", "ü".repeat(1_000));
    let orders = sync(&ledger).writer(&name, &ledger);
    let orders = orders.rows::<Properties>(MODEL);
    orders.delete("row_1").await.unwrap();
    let echo = ledger.echo(&deleted("evt_1", "row_1")).await.unwrap();
    assert_eq!(echo.unwrap().writer, format!("a[31m{}", "ü".repeat(64 - 7)));
}

/// The client without a ledger, and the one that was made before the writer.
#[tokio::test]
async fn a_client_without_a_writer_notes_nothing() {
    let ledger = ledger();
    let client = client(|asked| std::future::ready(usual(&asked)));
    let _writer = client.writer("sync", &ledger);
    let orders = client.rows::<Properties>(MODEL);
    orders.delete("row_1").await.unwrap();
    assert!(!is_echo(&ledger, &deleted("evt_1", "row_1")).await);
    let shown = format!("{ledger:?} {:?}", client.writer("sync", &ledger));
    assert!(shown.contains("sync") && !shown.contains("row_"), "{shown}");
}
