//! Snapshots: everything that an emulator knows, as one JSON object.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hub::Hub;
use crate::json;
use crate::model::Rates;
use crate::requests::Request;
use crate::seed::{Seed, SeedFile};
use crate::trigger::TriggerCall;

/// A snapshot.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Snapshot {
    hookgate_emulator: u32,
    /// The workspace in the form of a seed, with switches and triggers. The subscriptions are with the deliveries.
    #[serde(deserialize_with = "json::object")]
    seed: SeedFile,
    /// The time that was added to the real one.
    clock_offset_ms: u64,
    ids: u64,
    faults: Value,
    deliveries: Value,
    rates: Rates,
    /// The log of the API's requests.
    #[serde(deserialize_with = "json::objects")]
    requests: Vec<Request>,
    /// The log of the triggers' calls.
    #[serde(deserialize_with = "json::objects")]
    trigger_calls: Vec<TriggerCall>,
}

/// The part of a snapshot that every form of it has.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    hookgate_emulator: u32,
}

/// The form of a snapshot: another one as soon as its fields change.
const FORM: u32 = 2;

/// Takes a snapshot.
pub(crate) fn taken(hub: &Hub) -> Snapshot {
    let state = hub.state();
    let mut seed = SeedFile::of(&state);
    seed.switches = hub.switches.values();
    seed.triggers = hub.triggers.list();
    Snapshot {
        hookgate_emulator: FORM,
        seed,
        clock_offset_ms: u64::try_from(hub.clock.offset().as_millis()).unwrap_or(u64::MAX),
        ids: hub.ids.position(),
        faults: hub.faults.snapshot(),
        deliveries: hub.deliveries.snapshot(),
        rates: state.rates.clone(),
        requests: hub.requests.list(),
        trigger_calls: hub.triggers.calls(),
    }
}

/// Restores a snapshot. Where it is wrong, the state stays as it is.
///
/// # Errors
/// A sentence about the place and what was expected.
pub(crate) fn restore(hub: &Hub, text: &str) -> Result<(), String> {
    let read = |error: serde_json::Error| error.to_string();
    let head: Head = json::parse(text).map_err(read)?;
    if head.hookgate_emulator != FORM {
        let form = head.hookgate_emulator;
        return Err(format!("a snapshot of form {form}, expected {FORM}"));
    }
    let snapshot: Snapshot = json::parse(text).map_err(read)?;
    // The same checks as for a seed.
    let seed = serde_json::to_string(&snapshot.seed).map_err(read)?;
    let seed = Seed::parse(&seed).map_err(|error| format!("`seed`: {error}"))?;
    let mut state = hub.state();
    let (faults, ids) = (hub.faults.snapshot(), hub.ids.position());
    hub.faults
        .restore(&snapshot.faults)
        .map_err(|error| format!("`faults`: {error}"))?;
    let offset = Duration::from_millis(snapshot.clock_offset_ms);
    if let Err(error) = hub.deliveries.restore(&snapshot.deliveries, offset) {
        hub.faults.restore(&faults)?;
        hub.ids.set_position(ids);
        return Err(format!("`deliveries`: {error}"));
    }
    *state = seed.0.state(&hub.clock.iso(), &hub.ids);
    state.rates = snapshot.rates;
    hub.switches.clear();
    hub.switches.set_all(&seed.0.switches)?;
    hub.triggers
        .set(seed.0.triggers.clone(), snapshot.trigger_calls);
    hub.requests.set(snapshot.requests);
    hub.ids.set_position(snapshot.ids);
    hub.live.tell("reset", ());
    Ok(())
}
