//! Events of one row that come in the wrong order: the handler is told which is the newest, and an
//! old one overwrites nothing.
//!
//! ```sh
//! WEBHOOK_SECRET=whsec_$(openssl rand -hex 16) cargo run -p hookgate-order --example ordered
//! ```
//!
//! It keeps rows in memory. It prints each event with its order and the row after it, and a line
//! where an event was missed or is late. `ADDR` sets another address.

#![allow(clippy::print_stdout)] // an example prints for its user

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use hookgate::{
    Event, EventData, MemoryStore, Receiver, Secret,
    event::{Json, RowId, Value},
};
use hookgate_order::{MemoryOrderStore, Order, OrderGuard};

/// Rows by their ids, deleted ones too.
#[derive(Default)]
pub(crate) struct Rows(BTreeMap<RowId, Row>);

#[derive(Default)]
struct Row {
    /// `createdAt` of the newest creation or deletion, in nanoseconds since 1970: values of older
    /// events are ignored. A program may delete the mark of a deleted row when no older event can
    /// come any more.
    floor: Option<i128>,
    /// Whether that was a deletion.
    is_deleted: bool,
    /// By name. An absent property was named by no event since.
    properties: BTreeMap<String, Property>,
}

pub(crate) struct Property {
    /// As JSON.
    value: String,
    /// `createdAt` of the event that named it last. `None` where that was not a date.
    at: Option<i128>,
}

impl fmt::Debug for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.value, f)
    }
}

impl Row {
    /// Returns whether an event of this time is older than the newest creation or deletion.
    fn ignores(&self, at: Option<i128>) -> bool {
        at.is_some() && at < self.floor
    }

    /// Makes a creation or a deletion the floor: older values are forgotten, newer ones stay.
    fn raise(&mut self, at: Option<i128>, is_deleted: bool) {
        self.floor = self.floor.max(at);
        self.is_deleted = is_deleted;
        self.properties.retain(|_, now| now.at >= at);
    }
}

impl Rows {
    /// The properties of a row that exists: it was not deleted, or an event was handled that is
    /// newer than its deletion.
    pub(crate) fn get(&self, id: &RowId) -> Option<&BTreeMap<String, Property>> {
        let row = self.0.get(id)?;
        (!row.is_deleted || !row.properties.is_empty()).then_some(&row.properties)
    }

    /// Writes what an event of a row says, unless a newer event has said otherwise. Times alone
    /// decide, so that the rows are the same in any order of the events. Returns the row's id.
    pub(crate) fn apply(&mut self, event: Event) -> Option<RowId> {
        let at = event
            .created_at
            .date()
            .ok()
            .and_then(|date| date.unix_nanos().ok());
        match event.data {
            EventData::RowCreated(created) => {
                let row = self.0.entry(created.row_id.clone()).or_default();
                if !row.ignores(at) {
                    row.raise(at, false);
                    for (name, value) in created.properties.iter() {
                        let (name, value) = (name.to_owned(), json(&value));
                        // A known value came with an update that was handled before the creation.
                        let property = Property { value, at };
                        row.properties.entry(name).or_insert(property);
                    }
                }
                Some(created.row_id)
            }
            EventData::RowUpdated(updated) => {
                let row = self.0.entry(updated.row_id.clone()).or_default();
                if !row.ignores(at) {
                    for (name, change) in updated.changes.iter() {
                        let (before, value) = (json(&change.before), json(&change.after));
                        let known = row.properties.get(name);
                        // An older event still sets a property that no newer one has named. Of two
                        // events of one time, one may have found the other's value: it is the newer
                        // one.
                        let is_newest = known.is_none_or(|now| {
                            now.at < at || (now.at == at || at.is_none()) && now.value == before
                        });
                        if is_newest {
                            let at = at.max(known.and_then(|now| now.at));
                            let property = Property { value, at };
                            row.properties.insert(name.to_owned(), property);
                        }
                    }
                }
                Some(updated.row_id)
            }
            EventData::RowDeleted(deleted) => {
                let row = self.0.entry(deleted.row_id.clone()).or_default();
                // A deletion without a time, or of the time of a creation, deletes nothing: it may
                // be the older one.
                if at.is_some() && at > row.floor {
                    row.raise(at, true);
                }
                Some(deleted.row_id)
            }
            _ => None,
        }
    }
}

async fn on_event(State(rows): State<Arc<Mutex<Rows>>>, event: Event, order: Order) -> StatusCode {
    let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
    let event_id = event.id.clone();
    if let Some(row_id) = rows.apply(event) {
        let row = rows.get(&row_id);
        println!("{event_id} is {}: {row_id} is {row:?}", order.name());
    }
    StatusCode::NO_CONTENT
}

/// The value in one form. An absent one is empty, as `null` is.
fn json(value: &Value<'_>) -> String {
    value.json().map_or("null".into(), Json::canonical)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let receiver = Receiver::builder()
        .secret(Secret::from_env("WEBHOOK_SECRET")?)
        .store(MemoryStore::default())
        .build()?;
    let guard = OrderGuard::new(MemoryOrderStore::default()).on_ordered(|ordered| {
        if ordered.has_overlapped {
            let id = ordered.delivery.event_id();
            println!("{id} and another event of {} have overlapped", ordered.row);
        }
        if let Some(reason) = ordered.gap {
            println!("missed or late: {} ({})", ordered.row, reason.name());
        }
    });

    let route = post(on_event).layer((receiver.layer(), guard));
    let app = Router::new()
        .route("/webhooks", route)
        .with_state(Arc::default());
    let address = env::var("ADDR").unwrap_or_else(|_| "127.0.0.1:8787".into());
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .map_err(|error| format!("can't listen on {address}: {error}"))?;
    println!("listening on http://{}/webhooks", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
