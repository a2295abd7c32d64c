//! A table that follows a data model: mirror, order guard, handler and passes. Whatever is missed,
//! killed or comes in another order, the table is repaired:
//! `cargo run -p hookgate-client --features reconcile --example repaired`.
//!
//! The service is the emulator in this process. The page about reconciliation shows this program.

#![allow(missing_docs)] // a program has no API
#![allow(clippy::print_stdout)] // an example prints for its user

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use hookgate::{
    Event, EventData, HandlerError, MemoryStore, Receiver, Secret,
    event::{Date, Json, RowId, Value},
    layer::AlreadyHandled,
};
use hookgate_client::reconcile::{
    MemoryMirror, Mirror, Reconcile, ReconcileError, Reconciled, RowSource, Settings, begin,
};
use hookgate_client::{ApiKey, Client};
use hookgate_emulator::{Emulator, Seed};
use hookgate_order::{MemoryOrderStore, Order, OrderGuard};
use serde_json::json;
use tokio::net::TcpListener;

// The page shows the part from here.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) mirror: Arc<dyn Mirror>,
    pub(crate) table: Arc<Table>,
}

/// The handler of the events, inside the receiver's layer and the order guard.
pub(crate) async fn on_event(
    State(app): State<App>,
    event: Event,
    order: Order,
) -> Result<Result<StatusCode, AlreadyHandled>, HandlerError> {
    // Where the mirror fails, the answer is 503, and the event comes again.
    let Some(begun) = begin(&*app.mirror, &event, order).await? else {
        return Ok(Err(AlreadyHandled::new())); // a retry whose row was repaired meanwhile
    };
    app.table.apply(&event, begun.order());
    begun.finish().await?;
    Ok(Ok(StatusCode::NO_CONTENT))
}

/// Your table: a row's properties by name. Make each method one transaction of your database.
#[derive(Default)]
pub(crate) struct Table(Mutex<Rows>);

type Rows = BTreeMap<RowId, BTreeMap<String, Property>>;

#[derive(Clone)]
pub(crate) struct Property {
    /// `null` too: an event may come that is older than the one that set it.
    pub(crate) value: String,
    /// `createdAt` of the event that named it last, or `updatedAt` of its repaired row, in
    /// nanoseconds since 1970. `None` if that was no date.
    at: Option<i128>,
}

impl Table {
    pub(crate) fn apply(&self, event: &Event, order: Order) {
        let at = event
            .created_at
            .date()
            .ok()
            .and_then(|date| date.unix_nanos().ok());
        let mut rows = self.rows();
        match &event.data {
            EventData::RowCreated(row) => {
                let Some(known) = to_write(&mut rows, &row.row_id, order) else {
                    return;
                };
                if order == Order::Newest {
                    known.retain(|_, now| now.at > at); // of a former row with this id
                }
                for (name, value) in row.properties.iter() {
                    let value = json(&value);
                    if known.get(name).is_none_or(|now| now.at < at) {
                        known.insert(name.to_owned(), Property { value, at });
                    }
                }
            }
            EventData::RowUpdated(row) => {
                let Some(known) = to_write(&mut rows, &row.row_id, order) else {
                    return;
                };
                for (name, change) in row.changes.iter() {
                    let (before, value) = (json(&change.before), json(&change.after));
                    // Of two events of one time, one may have found the other's value: it is the
                    // newer one.
                    let is_newest = known.get(name).is_none_or(|now| {
                        now.at < at || (now.at == at || at.is_none()) && now.value == before
                    });
                    if is_newest {
                        let at = at.max(known.get(name).and_then(|now| now.at));
                        known.insert(name.to_owned(), Property { value, at });
                    }
                }
            }
            EventData::RowDeleted(row) => {
                if order != Order::Stale {
                    rows.remove(&row.row_id);
                } else if let Some(known) = rows.get_mut(&row.row_id) {
                    known.retain(|_, now| now.at > at); // the row was created again
                }
            }
            _ => {}
        }
    }

    /// The row as a pass has read it, whole and without a look at times: an event that it contains
    /// does not come to `apply` later.
    pub(crate) fn repair(&self, finding: &Reconciled) {
        match finding {
            Reconciled::Created(row) | Reconciled::Updated(row) => {
                let date = Date::parse(&row.updated_at).ok();
                let at = date.and_then(|date| date.unix_nanos().ok());
                let properties = row.properties.iter().map(|(name, value)| {
                    let value = json(&value);
                    (name.to_owned(), Property { value, at })
                });
                self.rows().insert(row.row_id.clone(), properties.collect());
            }
            Reconciled::Deleted(row) => drop(self.rows().remove(&row.row_id)),
            other => println!("look at {other:?}"),
        }
    }

    pub(crate) fn rows(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The row to write to. A stale event makes no row: it may have been deleted.
fn to_write<'a>(
    rows: &'a mut Rows,
    row: &RowId,
    order: Order,
) -> Option<&'a mut BTreeMap<String, Property>> {
    match order {
        Order::Stale => rows.get_mut(row),
        Order::Newest | Order::Unknown => Some(rows.entry(row.clone()).or_default()),
    }
}

/// The value in one form. An absent one is empty, as `null` is.
fn json(value: &Value<'_>) -> String {
    value.json().map_or("null".into(), Json::canonical)
}

impl App {
    /// The handler of the findings.
    pub(crate) async fn repair(&self, finding: Reconciled) -> Result<(), Infallible> {
        self.table.repair(&finding);
        Ok(())
    }

    /// The first pass: it fills the table and the mirror with the rows that exist.
    pub(crate) async fn fill<S: RowSource>(
        &self,
        source: S,
    ) -> Result<(), ReconcileError<S::Error>> {
        let mut settings = Settings::default();
        (settings.is_filling, settings.fills_table) = (true, true);
        let mut filling = Reconcile::new(source, Arc::clone(&self.mirror), "dm_orders", settings);
        filling.pass(|row| self.repair(row)).await?;
        Ok(())
    }
}
// The page shows the part up to here.

pub(crate) async fn followed() -> Result<Vec<String>, Box<dyn Error>> {
    let service = Emulator::start(Seed::orders()).await?;
    let client = Client::builder(&service.base_url(), ApiKey::new("tk_test_read")?)
        .allow_plain_http()
        .build()?;
    let orders = service.rows("dm_orders");
    let ada = orders.create(json!({ "prop_customer": "Ada", "prop_total": 12.5 }))?;
    let bo = orders.create(json!({ "prop_customer": "Bo", "prop_total": 3 }))?;

    let app = App {
        mirror: Arc::new(MemoryMirror::default()),
        table: Arc::default(),
    };
    app.fill(client.clone()).await?;

    let secret = "whsec_made_up_for_this_example";
    let receiver = Receiver::builder()
        .secret(Secret::new(secret)?)
        .store(MemoryStore::default().with_clock(service.clock()))
        .clock(service.clock())
        .build()?;
    let guard = OrderGuard::new(MemoryOrderStore::default());
    let router = Router::new()
        .route("/webhooks", post(on_event).layer((receiver.layer(), guard)))
        .with_state(app.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/webhooks", listener.local_addr()?);
    service.subscribe(&url, secret)?;
    let server = tokio::spawn(async move { axum::serve(listener, router).await });

    service.advance(Duration::from_secs(60)).await;
    orders.update(&ada, json!({ "prop_total": 20 }))?;
    service.settled().await;
    server.abort();
    // Nothing receives these.
    orders.delete(&bo)?;
    orders.create(json!({ "prop_customer": "Cy", "prop_total": 7 }))?;

    let mirror = Arc::clone(&app.mirror);
    let mut reconcile = Reconcile::new(client, mirror, "dm_orders", Settings::default());
    for _ in 0..3 {
        reconcile.pass(|finding| app.repair(finding)).await?;
    }
    let line = |row: &BTreeMap<String, Property>| {
        let value = |name: &str| row.get(name).map_or("null", |now| now.value.as_str());
        format!("{}: {}", value("Customer"), value("Total"))
    };
    let mut lines: Vec<_> = app.table.rows().values().map(line).collect();
    lines.sort();
    Ok(lines)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    for line in followed().await? {
        println!("{line}");
    }
    Ok(())
}
