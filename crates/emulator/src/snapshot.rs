//! Snapshots: everything that an emulator knows, as one JSON object.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hub::Hub;
use crate::seed::{Seed, SeedFile};

/// The form of a snapshot.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Snapshot {
    /// Changes with the form.
    hookgate_emulator: u32,
    /// The workspace in the form of a seed, with switches and triggers. The subscriptions are with the deliveries.
    seed: SeedFile,
    /// The time that was added to the real one.
    clock_offset_ms: u64,
    ids: u64,
    faults: Value,
    deliveries: Value,
}

const FORM: u32 = 1;

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
    }
}

/// Restores a snapshot. Where it is wrong, the state stays as it is.
///
/// # Errors
/// A sentence about the place and what was expected.
pub(crate) fn restore(hub: &Hub, text: &str) -> Result<(), String> {
    let snapshot: Snapshot = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if snapshot.hookgate_emulator != FORM {
        let form = snapshot.hookgate_emulator;
        return Err(format!("a snapshot of form {form}, expected {FORM}"));
    }
    // The same checks as for a seed.
    let seed = serde_json::to_string(&snapshot.seed).map_err(|error| error.to_string())?;
    let seed = Seed::parse(&seed).map_err(|error| format!("`seed`: {error}"))?;
    let before = hub.deliveries.snapshot();
    let mut state = hub.state();
    hub.deliveries
        .restore(&snapshot.deliveries)
        .map_err(|error| format!("`deliveries`: {error}"))?;
    if let Err(error) = hub.faults.restore(&snapshot.faults) {
        hub.deliveries.restore(&before)?;
        return Err(format!("`faults`: {error}"));
    }
    let now = hub.clock.iso();
    *state = seed.0.state(&now, &hub.ids);
    hub.switches.clear();
    hub.switches.set_all(&seed.0.switches)?;
    hub.triggers.set(seed.0.triggers.clone());
    hub.clock
        .set_offset(Duration::from_millis(snapshot.clock_offset_ms));
    hub.ids.set_position(snapshot.ids);
    hub.live.tell("reset", ());
    Ok(())
}
