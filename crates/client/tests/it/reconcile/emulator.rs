//! Client, driver and mirror against the emulator: what its API lists, and events that were never
//! delivered.

use std::convert::Infallible;
use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookgate::{dedupe::StoreFuture, event::DataModelId};
use hookgate_client::reconcile::{
    Column, Life, MemoryMirror, Mirror, Mirrored, PassPage, Reconcile, ReconcileError, Reconciled,
    RowSource,
};
use hookgate_client::{Client, Error};
use hookgate_emulator::{Emulator, Seed};
use http::Method;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::driver::{quick, settings};
use crate::support::{TestClock, builder, control};

#[allow(dead_code)] // its `main`
#[path = "../../../examples/reconcile.rs"]
mod example;

#[tokio::test]
async fn the_example_finds_what_the_outage_hid() {
    let found = example::found().await.unwrap();
    assert_eq!(found, ["updated: Ada", "created: Cy", "deleted: Bo"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_without_a_delivery_are_found_through_the_api() {
    let emulator = Emulator::builder(Seed::orders()).switch("rateLimit", "off");
    let emulator = emulator.start().await.unwrap();
    let client = builder(&emulator, "tk_test_read").build().unwrap();
    let rows = emulator.rows("dm_orders");
    let create = |name: &str, total: u32| {
        let row = json!({ "prop_customer": name, "prop_total": total });
        rows.create(row).unwrap()
    };
    for number in 0..600 {
        create(&format!("Customer {number}"), number);
    }
    let mirror = Arc::new(MemoryMirror::with_values());
    let passes = |is_filling| {
        let mirror = Arc::clone(&mirror);
        Reconcile::new(client.clone(), mirror, "dm_orders", settings(is_filling))
    };
    let mut filling = passes(true);
    let report = filling.pass(quick).await.unwrap();
    assert!(
        report.pass.is_complete && report.handled >= 600,
        "{report:?}"
    );

    // The receiver is down.
    let (created, updated) = (create("Ada", 12), create("Bo", 1));
    filling.pass(quick).await.unwrap();
    rows.update(&updated, json!({ "prop_customer": "Cy" }))
        .unwrap();
    rows.delete(&created).unwrap();
    let other = create("Di", 3);

    let mut reconcile = passes(false);
    let found = Mutex::new(Vec::new());
    for _ in 0..4 {
        let note = |finding: Reconciled| {
            let line = format!("{} {}", finding.kind(), finding.row_id());
            found.lock().unwrap().push(line);
            ready(Ok::<_, Infallible>(()))
        };
        assert!(reconcile.pass(note).await.unwrap().pass.is_complete);
    }
    let mut found = found.into_inner().unwrap();
    found.sort();
    let expected = [
        ("created", other),
        ("deleted", created),
        ("updated", updated),
    ];
    assert_eq!(found, expected.map(|(kind, row)| format!("{kind} {row}")));
}

/// A client that notes when it had each page, and deletes the data model before the second where it
/// is told to.
struct Watched {
    client: Client,
    pages: Arc<Mutex<Vec<Instant>>>,
    deletes_as: Option<Client>,
}

impl RowSource for Watched {
    type Error = Error;

    fn columns<'a>(&'a self, model: &'a DataModelId) -> StoreFuture<'a, Vec<Column>, Error> {
        self.client.columns(model)
    }

    fn page<'a>(
        &'a self,
        model: &'a DataModelId,
        offset: u64,
        limit: u64,
    ) -> StoreFuture<'a, PassPage, Error> {
        StoreFuture::boxed(async move {
            let number = self.pages.lock().unwrap().len();
            if let Some(client) = self.deletes_as.as_ref().filter(|_| number == 1) {
                client.delete_data_model(model.as_str()).await?;
            }
            let page = RowSource::page(&self.client, model, offset, limit).await;
            self.pages.lock().unwrap().push(Instant::now());
            page
        })
    }

    fn is_no_model(&self, error: &Error) -> bool {
        self.client.is_no_model(error)
    }
}

// fault M6: a data model is deleted during a pass, and the error names a page that could not be read
#[tokio::test]
async fn a_data_model_that_is_deleted_during_a_pass_deletes_no_row() {
    let emulator = Emulator::start(Seed::orders()).await.unwrap();
    let rows = emulator.rows("dm_orders");
    for number in 0..600 {
        rows.create(json!({ "prop_total": number })).unwrap();
    }
    let client = builder(&emulator, "tk_test_read").build().unwrap();
    let mirror = Arc::new(MemoryMirror::default());
    let first = Arc::clone(&mirror);
    let mut filling = Reconcile::new(client.clone(), first, "dm_orders", settings(true));
    let never = |finding: Reconciled| ready(Err(format!("{finding:?}")));
    filling.pass(never).await.unwrap();

    let source = Watched {
        client: client.clone(),
        pages: Arc::default(),
        deletes_as: Some(builder(&emulator, "tk_test_admin").build().unwrap()),
    };
    let watched = Arc::clone(&mirror);
    let mut reconcile = Reconcile::new(source, watched, "dm_orders", settings(false));
    for _ in 0..5 {
        let error = reconcile.pass(never).await.unwrap_err();
        assert!(matches!(error, ReconcileError::NoModel(_)), "{error}");
        let said = "there is no such data model, so none of its rows is found as deleted: ";
        assert!(error.to_string().starts_with(said), "{error}");
    }
    let states = mirror.list(&"dm_orders".into(), None, 1_000).await.unwrap();
    let live = |known: &Mirrored| known.state.life == Life::Live;
    assert_eq!(states.iter().filter(|(_, known)| live(known)).count(), 603);
    // A name that never was one.
    let mut wrong = Reconcile::new(client, mirror, "dm_order", settings(false));
    let error = wrong.pass(never).await.unwrap_err();
    assert!(matches!(error, ReconcileError::NoModel(_)), "{error}");
}

/// 60 requests a minute, of which another part of the program makes 30: it never waits, and the
/// pass has the rest.
// fault M7: an emulator whose time was advanced tells the end of a rate's window beside the real date: a client waits too long, or not at all
#[tokio::test(start_paused = true)]
async fn a_pass_takes_half_of_the_rate_and_leaves_half_to_others() {
    const ROWS: u64 = 2_000;
    let emulator = Emulator::builder(Seed::orders()).clock(TestClock(Instant::now()));
    let emulator = emulator.start().await.unwrap();
    let tier = json!({ "tier": "standard" });
    control(&emulator, Method::PATCH, "workspace", Some(tier)).await;
    for number in 0..ROWS {
        let row = json!({ "prop_total": number });
        emulator.rows("dm_orders").create(row).unwrap();
    }
    let client = builder(&emulator, "tk_test_read").build().unwrap();
    let pages = Arc::new(Mutex::new(Vec::new()));
    let source = Watched {
        client: client.clone(),
        pages: Arc::clone(&pages),
        deletes_as: None,
    };
    let mut settings = settings(true);
    settings.page_rows = 20;
    let mut reconcile = Reconcile::new(source, MemoryMirror::default(), "dm_orders", settings);
    let began = Instant::now();
    let pass = reconcile.pass(quick);
    let others = async {
        loop {
            let asked = Instant::now();
            client.stats().list().all().await.unwrap();
            let waited = asked.elapsed();
            assert!(waited < Duration::from_secs(1), "waited {waited:?}");
            sleep(Duration::from_millis(2_010)).await;
        }
    };
    tokio::select! {
        report = pass => assert!(report.unwrap().pass.is_complete),
        () = others => {}
    }
    let pages = pages.lock().unwrap();
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    println!("{} pages in {minutes:.2} minutes", pages.len());
    let begun_minutes = minutes as usize + 1;
    // Neither was more left to it, nor did it take more than half.
    let expected = 30 * (begun_minutes - 1) + 1..=30 * begun_minutes;
    assert!(expected.contains(&pages.len()), "{}", pages.len());
    // Two halves may meet at the end of a minute.
    for (first, last) in pages.iter().zip(&pages[60..]) {
        assert!(*last - *first >= Duration::from_secs(58));
    }
}
