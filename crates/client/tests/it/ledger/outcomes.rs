//! What becomes of a write, and when its event comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use hookgate::{Properties, clock::ManualClock, dedupe::StoreErrorKind};
use hookgate_client::{Client, ErrorKind, Ledger, Options};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::contract;
use super::service::{
    Asked, MODEL, client, clock, created, deleted, is_echo, orders, refusal, set_to_one, to_one,
    updated, usual,
};

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_in_memory_passes_the_suite() {
    let ledger = Ledger::in_memory();
    contract::check(|| ledger.clone()).await;
}

/// The service of this test answers a write once it is told to.
struct Held {
    client: Client,
    ledger: Ledger,
    sent: Arc<Notify>,
    answer: Arc<Notify>,
    clock: ManualClock,
}

fn held(answer_with: impl Fn(&Asked) -> (u16, Value) + Clone + Send + Sync + 'static) -> Held {
    let (sent, answer) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let notify = (Arc::clone(&sent), Arc::clone(&answer));
    let client = client(move |asked| {
        let (sent, answer) = notify.clone();
        let answer_with = answer_with.clone();
        async move {
            if asked.is("GET") {
                return usual(&asked);
            }
            sent.notify_one();
            answer.notified().await;
            answer_with(&asked)
        }
    });
    let clock = clock();
    let ledger = Ledger::in_memory().with_clock(clock.clone());
    Held {
        clock,
        client: client.writer("sync", &ledger),
        ledger,
        sent,
        answer,
    }
}

/// The service adds a status.
fn with_status(asked: &Asked) -> (u16, Value) {
    let mut data = asked.body["values"].clone();
    data["prop_3"] = json!("open");
    let row = json!({ "id": "row_own", "data": data, "createdAt": "" });
    (200, json!({ "data": row }))
}

#[tokio::test(start_paused = true)]
async fn an_event_that_comes_before_the_answer_waits_for_it() {
    let held = held(with_status);
    let orders = held.client.rows::<Properties>(MODEL);
    let writing = tokio::spawn(async move { orders.create(&json!({ "Customer": "Ada" })).await });
    held.sent.notified().await;
    // Another program creates an equal row at the same time.
    let looks = ["row_own", "row_foreign"].map(|row| {
        let ledger = held.ledger.clone();
        let values = json!({ "Customer": "Ada", "Status": "open" });
        let event = created(&format!("evt_{row}"), row, values);
        tokio::spawn(async move { is_echo(&ledger, &event).await })
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(looks.iter().all(|look| !look.is_finished()));
    held.answer.notify_one();
    writing.await.unwrap().unwrap();
    let [own, foreign] = looks;
    assert!(own.await.unwrap());
    assert!(!foreign.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn an_event_whose_answer_does_not_come_is_recognised_by_what_was_written() {
    let held = held(usual);
    let (ledger, sent, answer) = (&held.ledger, &held.sent, &held.answer);
    let orders = held.client.rows::<Properties>(MODEL);
    let writing = tokio::spawn(async move {
        let row = orders.create(&json!({ "Customer": "Ada" })).await?;
        orders.update("row_1", &json!({ "Total": 1.50 })).await?;
        orders.delete("row_1").await.map(|()| row.id)
    });
    let event = |id: &str, row: &str, name: &str| created(id, row, json!({ "Customer": name }));
    let began = tokio::time::Instant::now();
    sent.notified().await;
    assert!(!is_echo(ledger, &event("evt_0", "row_1", "Bo")).await);
    // The id is not known yet, the values are equal.
    let foreign = event("evt_1", "row_foreign", "Ada");
    assert!(is_echo(ledger, &foreign).await);
    // A second for each event.
    assert_eq!(began.elapsed(), Duration::from_secs(2));
    answer.notify_one();
    sent.notified().await;
    let update = updated("evt_2", 0, "row_1", json!({ "Total": 1.5 }));
    assert!(is_echo(ledger, &update).await);
    answer.notify_one();
    sent.notified().await;
    let delete = deleted("evt_3", "row_1");
    assert!(is_echo(ledger, &delete).await);
    answer.notify_one();
    let row = writing.await.unwrap().unwrap();
    // The answers change nothing, but for the row that was a foreign one.
    assert!(is_echo(ledger, &update).await && is_echo(ledger, &delete).await);
    assert!(!is_echo(ledger, &foreign).await);
    assert!(is_echo(ledger, &event("evt_4", &row, "Ada")).await);
}

// fault L2: an update of other properties waits a second for the answer of a write that can't be its cause
#[tokio::test(start_paused = true)]
async fn an_update_of_other_properties_waits_for_no_answer() {
    let held = held(usual);
    let orders = held.client.rows::<Properties>(MODEL);
    let values = json!({ "Customer": "Ada", "Total": 1 });
    let writing = tokio::spawn(async move { orders.update("row_1", &values).await });
    held.sent.notified().await;
    for (after, waits) in [
        (json!({ "Status": "open" }), false),
        (json!({ "Total": 1, "Status": "open" }), false),
        (json!({}), false),
        (json!({ "Total": 2 }), true),
    ] {
        let began = tokio::time::Instant::now();
        let event = updated("evt_1", 0, "row_1", after.clone());
        assert!(!is_echo(&held.ledger, &event).await, "{after}");
        assert_eq!(began.elapsed() > Duration::ZERO, waits, "{after}");
    }
    held.answer.notify_one();
    writing.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_given_up_may_have_been_made() {
    let held = held(usual);
    let orders = held.client.rows::<Properties>(MODEL);
    let writing = tokio::spawn(async move { set_to_one(&orders, "row_1").await });
    held.sent.notified().await;
    writing.abort();
    // The total time of the call is over: no answer is waited for.
    held.clock.advance(Duration::from_secs(151));
    let began = tokio::time::Instant::now();
    assert!(is_echo(&held.ledger, &to_one("evt_1", 0, "row_1")).await);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_began_after_the_event_had_come_is_not_its_cause() {
    let held = held(usual);
    let orders = held.client.rows::<Properties>(MODEL);
    let write = |total: u32| {
        let orders = orders.clone();
        tokio::spawn(async move { orders.update("row_1", &json!({ "Total": total })).await })
    };
    let first = write(1);
    held.sent.notified().await;
    let ledger = held.ledger.clone();
    let event = updated("evt_1", 0, "row_1", json!({ "Total": 2 }));
    let look = tokio::spawn(async move { is_echo(&ledger, &event).await });
    tokio::time::sleep(Duration::from_millis(120)).await;
    let second = write(2);
    held.sent.notified().await;
    assert!(!look.await.unwrap());
    held.answer.notify_one();
    first.await.unwrap().unwrap();
    held.answer.notify_one();
    second.await.unwrap().unwrap();
    let event = updated("evt_2", 0, "row_1", json!({ "Total": 2 }));
    assert!(is_echo(&held.ledger, &event).await);
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_cannot_be_read_may_have_been_made() {
    let ledger = Ledger::in_memory().with_clock(clock());
    let orders = orders(&ledger, |_| (200, json!({ "data": [] })));
    let values = json!({ "Customer": "Ada" });
    for (written, event) in [
        (
            orders.create(&values).await,
            created("evt_1", "row_2", values.clone()),
        ),
        (
            orders.update("row_1", &values).await,
            updated("evt_2", 0, "row_1", values.clone()),
        ),
    ] {
        assert_eq!(written.unwrap_err().kind(), ErrorKind::Answer);
        assert!(is_echo(&ledger, &event).await, "{event:?}");
    }
}

#[tokio::test]
async fn of_a_batch_the_rows_that_were_created_have_echoes() {
    let ledger = Ledger::in_memory().with_clock(clock());
    // The second row is refused. The answer does not say which it was.
    let orders = orders(&ledger, |asked| {
        let mut rest = asked.body["rows"].as_array().unwrap().clone();
        rest.remove(1);
        let asked = Asked {
            method: "POST".into(),
            path: asked.path.clone(),
            body: json!({ "rows": rest }),
        };
        let (status, mut answer) = usual(&asked);
        answer["meta"]["errors"] = json!([{ "message": "no" }]);
        (status, answer)
    });
    let rows = ["Ada", "Bo", "Cy"].map(|name| json!({ "Customer": name }));
    let made = orders.create_many(&rows).await.unwrap();
    assert_eq!((made.rows.len(), made.errors.len()), (2, 1));
    let event = |id, row: &str, name| created(id, row, json!({ "Customer": name }));
    let (ada, cy) = (&made.rows[0], &made.rows[1]);
    assert!(is_echo(&ledger, &event("evt_1", &cy.id, "Cy")).await);
    assert!(is_echo(&ledger, &event("evt_2", &ada.id, "Ada")).await);
    for foreign in [
        event("evt_3", &ada.id, "Ada"),
        event("evt_4", "row_foreign", "Bo"),
    ] {
        assert!(!is_echo(&ledger, &foreign).await, "no entry is left");
    }
}

#[tokio::test]
async fn of_a_batch_that_broke_off_the_rows_of_unknown_outcome_stay() {
    let ledger = Ledger::in_memory().with_clock(clock());
    let count = AtomicU32::new(0);
    let orders = orders(&ledger, move |asked| match count.fetch_add(1, Relaxed) {
        0 => usual(asked),
        _ => refusal(500),
    });
    let rows = ["Ada", "Bo", "Cy"].map(|name| json!({ "Customer": name }));
    let error = orders.batch_size(1).create_many(&rows).await.unwrap_err();
    assert!(error.is_outcome_unknown());
    let ada = &*error.batch().unwrap().created[0];
    // The third was not sent.
    for (at, id, expected) in [(0, ada, true), (1, "row_bo", true), (2, "row_cy", false)] {
        let event = created(&format!("evt_{at}"), id, rows[at].clone());
        assert_eq!(is_echo(&ledger, &event).await, expected, "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_is_noted_once_the_rate_permits_it() {
    let ledger = Ledger::in_memory().with_clock(clock());
    let client = client(|asked| std::future::ready(usual(&asked))).writer("sync", &ledger);
    let orders = client.rows::<Properties>(MODEL);
    set_to_one(&orders, "row_1").await;
    while client.rate().remaining > 0 {
        client.page("page_1").await.unwrap();
    }
    let hasty = client.with(Options::default().total_timeout(Duration::from_millis(1)));
    let hasty = hasty.rows::<Properties>(MODEL);
    let error = hasty.update("row_2", &json!({ "Total": 1 })).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Timeout);
    let update = tokio::spawn(async move { set_to_one(&orders, "row_3").await });
    tokio::task::yield_now().await;
    for row in ["row_2", "row_3"] {
        let event = to_one("evt_1", 0, row);
        assert!(!is_echo(&ledger, &event).await, "{row}");
    }
    update.await.unwrap();
    assert!(is_echo(&ledger, &to_one("evt_2", 0, "row_3")).await);
}

/// The table of this file is gone.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_write_that_cannot_be_noted_is_not_sent() {
    let path = std::env::temp_dir().join(format!("hookgate-ledger-{}.db", std::process::id()));
    let ledger = Ledger::open_sqlite(&path).unwrap();
    let file = rusqlite::Connection::open(&path).unwrap();
    file.execute_batch("DROP TABLE hookgate_ledger").unwrap();
    let orders = orders(&ledger, |_| panic!("a request"));
    let error = orders.update("row_1", &json!({ "Total": 1 })).await;
    let error = error.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Ledger, 0));
    assert!(!error.is_outcome_unknown());
    let failed = ledger.echo(&deleted("evt_1", "row_1")).await.unwrap_err();
    assert_eq!(failed.kind(), StoreErrorKind::Unavailable);
    drop((orders, ledger, file));
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", path.display()));
    }
}
