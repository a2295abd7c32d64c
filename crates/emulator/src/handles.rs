//! Handles for tests in the same process: rows, time, faults and deliveries without HTTP and without a rate.

use std::fmt::Write as _;
use std::time::Duration;

use hookgate::clock::{Clock, UnixSeconds};
use serde_json::{Value, json};

use crate::answer::ApiError;
use crate::changes::{self, By};
use crate::emulator::Emulator;
use crate::model::RowData;

/// The reason why a call of a handle was refused: the message that the API answers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(String);

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self(format!(
            "{} {}: {}",
            error.status.as_u16(),
            error.code,
            error.message
        ))
    }
}

/// The rows of a data model, from [`Emulator::rows`]. Changes emit events, like changes that a person makes on the service's pages.
#[derive(Clone, Copy, Debug)]
pub struct RowsHandle<'e> {
    emulator: &'e Emulator,
    model: &'e str,
}

impl Emulator {
    /// Returns the rows of a data model.
    #[must_use]
    pub fn rows<'e>(&'e self, model: &'e str) -> RowsHandle<'e> {
        RowsHandle {
            emulator: self,
            model,
        }
    }

    /// Advances the time, and makes every attempt that becomes due, in order of time. Returns the number of attempts.
    pub async fn advance(&self, by: Duration) -> u64 {
        self.hub.deliveries.advance(by).await
    }

    /// Returns the emulator's time.
    #[must_use]
    pub fn now(&self) -> UnixSeconds {
        self.hub.clock.now()
    }

    /// Waits until no attempt is under way. It does not wait for later retries.
    pub async fn settled(&self) {
        self.hub.deliveries.settled().await;
    }

    /// Returns the log of deliveries, the newest first, in the form of `GET /_emulator/deliveries`.
    #[must_use]
    pub fn deliveries(&self) -> Vec<Value> {
        let records = self.hub.deliveries.records(None);
        records.iter().map(|record| json!(record)).collect()
    }

    /// Switches a fault on for the first `count` deliveries or requests.
    ///
    /// # Errors
    /// There is no fault of this name.
    pub fn fault_first(&self, fault: &str, count: u64) -> Result<(), Refused> {
        self.add_fault(&json!({ "fault": fault, "first": count }))
    }

    /// Switches a fault on for the deliveries or requests that the seed selects.
    ///
    /// # Errors
    /// There is no fault of this name.
    pub fn fault_seeded(&self, fault: &str, seed: u64) -> Result<(), Refused> {
        self.add_fault(&json!({ "fault": fault, "seed": seed }))
    }

    /// Switches every fault on: the first for the deliveries or requests that this seed draws, each other one for those of the next seed.
    pub fn every_fault_seeded(&self, seed: u64) {
        self.hub.faults.add_every(seed);
    }

    fn add_fault(&self, fault: &Value) -> Result<(), Refused> {
        self.hub.faults.add(fault).map(drop).map_err(Refused)
    }

    /// Switches every fault off.
    pub fn clear_faults(&self) {
        self.hub.faults.clear();
    }

    /// Returns the faults that are switched on, with their hits, in the form of `GET /_emulator/faults`.
    #[must_use]
    pub fn faults(&self) -> Vec<Value> {
        self.hub.faults.list()
    }

    /// Makes a subscription to all events for this URL, with this secret, and returns its id.
    ///
    /// # Errors
    /// The URL or the secret is not valid, or the emulator may not deliver to that host.
    pub fn subscribe(&self, url: &str, secret: &str) -> Result<String, Refused> {
        let made = self
            .hub
            .deliveries
            .create(&json!({ "url": url, "secret": secret }));
        made.map(|made| made.id).map_err(Refused)
    }

    /// Asserts that an event of this type was delivered, and that its `data` has these fields with these values. Other fields are not
    /// compared.
    ///
    /// # Panics
    /// No such event was delivered. The message lists the deliveries of that type, each with its state and its differences.
    #[track_caller]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the caller writes a `json!` here"
    )]
    pub fn assert_delivered(&self, event_type: &str, data: Value) {
        let records = self.deliveries();
        let of_type = records
            .iter()
            .filter(|record| record["eventType"] == event_type);
        let mut told = String::new();
        for record in of_type {
            let mut found = Vec::new();
            differences("data", &data, &record["payload"]["data"], &mut found);
            if found.is_empty() && record["state"] == "delivered" {
                return;
            }
            let _ = writeln!(
                told,
                "  {} {}",
                text(&record["eventId"]),
                text(&record["state"])
            );
            for difference in found {
                let _ = writeln!(told, "    {difference}");
            }
            if let Some(attempt) = record["attempts"].as_array().and_then(|all| all.last()) {
                let _ = writeln!(
                    told,
                    "    last attempt: {} {}",
                    attempt["status"], attempt["error"]
                );
            }
        }
        if told.is_empty() {
            let _ = writeln!(told, "  none of that type, of {} deliveries", records.len());
        }
        panic!("no {event_type} with {data} was delivered:\n{told}");
    }

    /// Returns to the seed.
    pub fn reset(&self) {
        // What a start with this seed accepted is accepted again.
        let _ = self.hub.reset();
    }

    /// Returns the whole state as JSON, in the form of a [`Seed`](crate::Seed). It holds secrets.
    #[must_use]
    pub fn snapshot(&self) -> String {
        serde_json::to_string(&self.hub.snapshot()).unwrap_or_default()
    }

    /// Restores a snapshot, or another seed. If it is wrong, the state does not change.
    ///
    /// # Errors
    /// The text is not a snapshot.
    pub fn restore(&self, snapshot: &str) -> Result<(), Refused> {
        self.hub.restore(snapshot).map_err(Refused)
    }
}

impl RowsHandle<'_> {
    /// Creates a row from values by property id, and returns its id.
    ///
    /// # Errors
    /// As the API's 400 and 404.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the caller writes a `json!` here"
    )]
    pub fn create(&self, values: Value) -> Result<String, Refused> {
        let hub = &self.emulator.hub;
        let mut state = hub.state();
        let by = By::page(&state);
        let row = changes::create(hub, &mut state, self.model, &row_data(&values)?, &by)?;
        Ok(row.id.clone())
    }

    /// Sets values by property id.
    ///
    /// # Errors
    /// As the API's 400 and 404.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the caller writes a `json!` here"
    )]
    pub fn update(&self, row: &str, values: Value) -> Result<(), Refused> {
        let hub = &self.emulator.hub;
        let mut state = hub.state();
        let by = By::page(&state);
        changes::update(hub, &mut state, self.model, row, &row_data(&values)?, &by)?;
        Ok(())
    }

    /// Deletes a row.
    ///
    /// # Errors
    /// As the API's 404.
    pub fn delete(&self, row: &str) -> Result<(), Refused> {
        let hub = &self.emulator.hub;
        let mut state = hub.state();
        let by = By::page(&state);
        Ok(changes::delete(hub, &mut state, self.model, row, &by)?)
    }

    /// Returns the values of a row by property id.
    #[must_use]
    pub fn get(&self, row: &str) -> Option<Value> {
        let state = self.emulator.hub.state();
        let row = state.model(self.model)?.rows.find(row)?;
        Some(json!(row.data))
    }
}

fn row_data(values: &Value) -> Result<RowData, Refused> {
    let values = values.as_object().cloned();
    let values = values.ok_or_else(|| Refused("the values are not an object".to_owned()))?;
    Ok(values.into_iter().collect())
}

/// Lists the values of `expected` that differ in `got`, by their path.
fn differences(path: &str, expected: &Value, got: &Value, found: &mut Vec<String>) {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            for (name, value) in expected {
                let other = got.get(name).unwrap_or(&Value::Null);
                differences(&format!("{path}.{name}"), value, other, found);
            }
        }
        _ if expected == got => {}
        _ => found.push(format!("{path}: expected {expected}, delivered {got}")),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
