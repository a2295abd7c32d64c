//! Client and ledger against the emulator, whose deliveries a receiver handles.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use axum::routing::post;
use hookgate::{Event, Properties};
use hookgate_client::{Ledger, Rows};
use hookgate_emulator::{Emulator, Seed};
use serde_json::json;

use crate::support::{builder, quick, serve};

#[allow(dead_code)] // its `main`
#[path = "../../../examples/write_back.rs"]
mod example;

#[tokio::test(flavor = "multi_thread")]
async fn the_example_knows_its_own_writes() {
    let mut handled = example::handled().await.unwrap();
    // The echo may be delivered before the handler that wrote goes on.
    handled.sort();
    let expected = "row.created, row.updated: echo of totals, row.updated: total of 3 written";
    assert_eq!(handled.join(", "), expected);
}

struct House {
    emulator: Emulator,
    orders: Rows<Properties>,
    /// Event types, with the writer of an echo.
    seen: Arc<Mutex<Vec<String>>>,
    /// The number of runs that fail.
    failures: Arc<AtomicU32>,
}

impl House {
    async fn new() -> Self {
        Self::with(|emulator| Ledger::in_memory().with_clock(emulator.clock())).await
    }

    async fn with(ledger: impl Fn(&Emulator) -> Ledger) -> Self {
        let emulator = Emulator::builder(Seed::orders()).switch("rateLimit", "off");
        let emulator = emulator.start().await.unwrap();
        let ledger = ledger(&emulator);
        let client = builder(&emulator, "tk_test_write").build().unwrap();
        let orders = client.with(quick()).writer("sync", &ledger);
        let (seen, failures) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<AtomicU32>::default());
        let shared = (Arc::clone(&seen), Arc::clone(&failures));
        let on_event = move |event: Event| {
            let ((seen, failures), ledger) = (shared.clone(), ledger.clone());
            async move {
                let echo = ledger.echo(&event).await.unwrap();
                let writer = echo.map_or("foreign".to_owned(), |echo| echo.writer);
                let line = format!("{} {writer}", event.event_type());
                seen.lock().unwrap().push(line);
                let less = |left: u32| left.checked_sub(1);
                match failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) {
                    Ok(_) => StatusCode::INTERNAL_SERVER_ERROR,
                    Err(_) => StatusCode::NO_CONTENT,
                }
            }
        };
        serve(&emulator, |receiver| post(on_event).layer(receiver.layer())).await;
        Self {
            emulator,
            orders: orders.rows("dm_orders"),
            seen,
            failures,
        }
    }

    /// Creates a row, whose answer is lost.
    async fn create_unknown(&self) {
        self.emulator.fault_first("closed-after-write", 1).unwrap();
        let error = self.orders.create(&json!({ "Customer": "Ada" })).await;
        assert!(error.unwrap_err().is_outcome_unknown());
    }

    async fn advance(&self, hours: u64) {
        let time = Duration::from_secs(hours * 3_600);
        self.emulator.advance(time).await;
    }

    async fn seen(&self) -> Vec<String> {
        self.emulator.settled().await;
        let mut seen = std::mem::take(&mut *self.seen.lock().unwrap());
        seen.sort();
        seen
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_of_the_client_are_echoes_and_those_of_a_person_are_not() {
    let house = House::new().await;
    let values = json!({ "Customer": "Ada", "Total": 12.50 });
    let row = house.orders.create(&values).await.unwrap().id;
    assert_eq!(house.seen().await, ["row.created sync"]);
    // The customer does not change, so the event has the total alone.
    let change = json!({ "Customer": "Ada", "Total": 13.00 });
    house.orders.update(&row, &change).await.unwrap();
    assert_eq!(house.seen().await, ["row.updated sync"]);
    // Nothing changes, so there is no event. A person's change to the same total, 2 minutes later,
    // is not an echo.
    house.orders.update(&row, &change).await.unwrap();
    house.emulator.advance(Duration::from_secs(120)).await;
    let person = house.emulator.rows("dm_orders");
    for total in [14, 13] {
        person.update(&row, json!({ "prop_total": total })).unwrap();
        assert_eq!(house.seen().await, ["row.updated foreign"], "{total}");
    }
    house.orders.delete(&row).await.unwrap();
    assert_eq!(house.seen().await, ["row.deleted sync"]);
    let row = person.create(json!({ "prop_customer": "Ada" })).unwrap();
    person.delete(&row).unwrap();
    let foreign = ["row.created foreign", "row.deleted foreign"];
    assert_eq!(house.seen().await, foreign);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_whose_handler_failed_is_an_echo_again_until_the_last_attempt() {
    let house = House::new().await;
    house.failures.store(4, Ordering::SeqCst);
    let made = house.orders.create(&json!({ "Customer": "Ada" })).await;
    made.unwrap();
    house.seen().await;
    house.advance(27).await;
    assert_eq!(house.seen().await, ["row.created sync"; 4]);
}

// fault L5: a ledger on the machine's clock beside an emulator whose clock was advanced calls each write of unknown outcome foreign, and no page says why
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_needs_the_services_clock_to_know_a_write_of_unknown_outcome() {
    let own = House::new().await;
    let others = House::with(|_| Ledger::in_memory()).await;
    for (house, hours, writer) in [
        (&own, 0, "sync"),
        (&own, 30, "sync"),
        (&others, 30, "foreign"),
    ] {
        house.advance(hours).await;
        house.create_unknown().await;
        assert_eq!(
            house.seen().await,
            [format!("row.created {writer}")],
            "{hours}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_batch_with_a_wrong_row_the_others_have_echoes() {
    let house = House::new().await;
    let rows = [
        json!({ "Customer": "Ada", "Total": 1 }),
        json!({ "Customer": "Bo", "Total": "many" }),
        json!({ "Customer": "Cy", "Total": 3 }),
    ];
    let made = house.orders.create_many(&rows).await.unwrap();
    assert_eq!(made.errors.len(), 1);
    assert_eq!(house.seen().await, ["row.created sync"; 2]);
}
