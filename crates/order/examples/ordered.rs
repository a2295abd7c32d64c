//! Events of one row that come in the wrong order: the handler is told which is the newest, and an old one overwrites nothing.
//!
//! ```sh
//! WEBHOOK_SECRET=whsec_$(openssl rand -hex 16) cargo run -p hookgate-order --example ordered
//! ```
//!
//! It keeps rows in memory. It prints each event with its order and the row after it, and a line where an event was missed or
//! is late. `ADDR` sets another address.

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

/// Rows by their ids; their properties by name. An absent property was named by no event yet.
type Rows = BTreeMap<RowId, BTreeMap<String, Property>>;

struct Property {
    /// As JSON.
    value: String,
    /// `createdAt` of the event that named it last, in nanoseconds since 1970. `None` where that was not a date.
    at: Option<i128>,
}

impl fmt::Debug for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.value, f)
    }
}

async fn on_event(State(rows): State<Arc<Mutex<Rows>>>, event: Event, order: Order) -> StatusCode {
    let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
    let at = event
        .created_at
        .date()
        .ok()
        .and_then(|date| date.unix_nanos().ok());
    let row_id = match event.data {
        EventData::RowCreated(row) => {
            if let Some(known) = to_write(&mut rows, &row.row_id, order) {
                if order == Order::Newest {
                    // Of a former row, whose deletion was missed. What a newer event named stays: after a crash between the handler
                    // and its record, the guard does not know that event.
                    known.retain(|_, now| now.at > at);
                }
                for (name, value) in row.properties.iter() {
                    let value = json(&value);
                    // A known value of this time or later came with an update, which was handled before the creation.
                    if known.get(name).is_none_or(|now| now.at < at) {
                        known.insert(name.to_owned(), Property { value, at });
                    }
                }
            }
            row.row_id
        }
        EventData::RowUpdated(row) => {
            if let Some(known) = to_write(&mut rows, &row.row_id, order) {
                for (name, change) in row.changes.iter() {
                    let (before, value) = (json(&change.before), json(&change.after));
                    // A stale event still sets a property that no newer event has named. Of two events of one time, one may have found
                    // the other's value: it is the newer one.
                    let is_newest = known.get(name).is_none_or(|now| {
                        now.at < at || (now.at == at || at.is_none()) && now.value == before
                    });
                    if is_newest {
                        let at = at.max(known.get(name).and_then(|now| now.at));
                        known.insert(name.to_owned(), Property { value, at });
                    }
                }
            }
            row.row_id
        }
        EventData::RowDeleted(row) => {
            if order != Order::Stale {
                rows.remove(&row.row_id);
            } else if let Some(known) = rows.get_mut(&row.row_id) {
                known.retain(|_, now| now.at > at); // the row was created again
            }
            row.row_id
        }
        _ => return StatusCode::NO_CONTENT,
    };
    println!(
        "{} is {}: {row_id} is {:?}",
        event.id,
        order.name(),
        rows.get(&row_id)
    );
    StatusCode::NO_CONTENT
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
