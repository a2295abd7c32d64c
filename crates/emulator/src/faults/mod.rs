//! Faults that are asked for: by the first N or by a seed, never by chance.

use std::time::Duration;

use serde_json::Value;

/// A fault of the API's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApiFault {
    Status(u16),
    Slow(Duration),
    /// The change is made, and the connection is closed without an answer.
    ClosedAfterWrite,
}

/// The faults that are switched on. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {}

impl Faults {
    /// Adds a fault: `{"fault", "first" or "seed"}`.
    pub(crate) fn add(&self, _body: &Value) -> Result<Value, String> {
        Err("no fault exists".to_owned())
    }

    /// Returns the entries `{"fault", "first", "seed", "hits"}`.
    pub(crate) fn list(&self) -> Vec<Value> {
        Vec::new()
    }

    pub(crate) fn clear(&self) {}

    /// Returns the fault for the next request of the API.
    pub(crate) fn api(&self) -> Option<ApiFault> {
        None
    }

    pub(crate) fn snapshot(&self) -> Value {
        Value::Array(self.list())
    }

    pub(crate) fn restore(&self, _snapshot: &Value) -> Result<(), String> {
        Ok(())
    }
}
