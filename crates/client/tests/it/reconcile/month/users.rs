//! The users of the service: they change rows, on its pages and through the API.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookgate_client::{Client, ErrorKind};
use hookgate_emulator::Emulator;
use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::super::service::Chance;
use super::history::{History, Kind, PROPERTIES};
use super::{MODEL, MONTH};
use crate::support::control;

pub struct Users {
    pub emulator: Arc<Emulator>,
    pub client: Client,
    pub history: Arc<Mutex<History>>,
    pub chance: Chance,
    /// About so many rows are kept.
    pub rows: u64,
}

/// The values of a new row, each with the number of its change.
fn values(number: u64) -> Value {
    json!({ "prop_customer": value("Customer", number), "prop_quantity": number, "prop_total": number })
}

/// A property's value by which its change is recognised.
fn value(property: &str, number: u64) -> Value {
    match property {
        "Customer" => json!(format!("c{number:09}")),
        _ => json!(number),
    }
}

fn id(property: &str) -> String {
    format!("prop_{}", property.to_lowercase())
}

/// Creates a row on the service's page.
pub fn create(emulator: &Emulator, history: &Mutex<History>, number: u64) {
    let mut history = history.lock().unwrap();
    let row = emulator.rows(MODEL).create(values(number)).unwrap();
    history.changed(number, Kind::Created, &row);
}

impl Users {
    pub async fn work(mut self, first: u64, changes: u64) {
        let start = Instant::now();
        let each = MONTH.as_secs() * 1_000 / changes;
        for number in 0..changes {
            let jitter = self.chance.below(each as usize) as u64;
            let at = Duration::from_millis(number * each + jitter);
            sleep_until(start + at).await;
            self.change(first + 1 + number).await;
        }
    }

    async fn change(&mut self, number: u64) {
        let through_api = self.chance.one_in(20);
        let row = self.history.lock().unwrap().any_row(&mut self.chance);
        let is_below = (self.history.lock().unwrap().rows() as u64) < self.rows;
        let kind = match self.chance.below(5) {
            0 if is_below => Kind::Created,
            0 => Kind::Deleted,
            // A row that is created now and deleted soon.
            1 if self.chance.one_in(10) => Kind::Created,
            _ => Kind::Updated(self.chance.below(PROPERTIES.len())),
        };
        if !through_api {
            let rows = self.emulator.rows(MODEL);
            let mut history = self.history.lock().unwrap();
            let row = match kind {
                Kind::Created => rows.create(values(number)).unwrap(),
                Kind::Updated(property) => {
                    let name = PROPERTIES[property];
                    rows.update(&row, json!({ id(name): value(name, number) }))
                        .unwrap();
                    row
                }
                Kind::Deleted => {
                    rows.delete(&row).unwrap();
                    row
                }
            };
            history.changed(number, kind, &row);
            return;
        }
        self.history.lock().unwrap().begun(number, kind, &row);
        let row = match kind {
            Kind::Created => self.written("Quantity", number, None).await,
            Kind::Updated(property) => self.written(PROPERTIES[property], number, Some(&row)).await,
            Kind::Deleted => {
                let rows = self.client.rows::<Value>(MODEL).by_id();
                while let Err(error) = rows.delete(&row).await {
                    if error.kind() == ErrorKind::NotFound {
                        break;
                    }
                }
                row
            }
        };
        self.history.lock().unwrap().changed(number, kind, &row);
    }

    /// Writes a row through the API. Where the outcome is unknown, looks before it repeats. Returns the row.
    async fn written(&self, property: &str, number: u64, row: Option<&str>) -> String {
        let rows = self.client.rows::<Value>(MODEL).by_id();
        loop {
            let written = match row {
                None => rows.create(&values(number)).await.map(|row| row.id),
                Some(row) => {
                    let change = json!({ id(property): value(property, number) });
                    rows.update(row, &change).await.map(|row| row.id)
                }
            };
            match written {
                Ok(row) => return row,
                Err(error) if !error.is_outcome_unknown() => continue,
                Err(_) => {}
            }
            // No other change has a greater number.
            let at = id(property);
            let path = format!("models/{MODEL}/rows?limit=1&orderBy={at}:desc");
            let newest = control(&self.emulator, Method::GET, &path, None).await;
            let newest = &newest["data"][0];
            if newest["data"][&at] == value(property, number) {
                return newest["id"].as_str().unwrap().to_owned();
            }
        }
    }
}

pub async fn set_switch(emulator: &Emulator, name: &str, value: &str) {
    control(
        emulator,
        Method::PATCH,
        "switches",
        Some(json!({ name: value })),
    )
    .await;
}

/// The service's rows.
pub async fn listed(emulator: &Emulator) -> Vec<Value> {
    let mut rows = Vec::new();
    loop {
        let path = format!("models/{MODEL}/rows?limit=500&offset={}", rows.len());
        let mut page = control(emulator, Method::GET, &path, None).await;
        rows.append(page["data"].as_array_mut().unwrap());
        if page["meta"]["hasMore"] == false {
            return rows;
        }
    }
}
