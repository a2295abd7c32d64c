//! All parts of one emulator, behind one `Arc`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;

use crate::deliver::Deliveries;
use crate::events::{Emitted, Envelope};
use crate::faults::Faults;
use crate::ids::Ids;
use crate::live::Live;
use crate::model::State;
use crate::requests::Requests;
use crate::seed::Seed;
use crate::switches::Switches;
use crate::time::EmulatorClock;
use crate::trigger::Triggers;

/// The parts. Only `state` has a lock that a request holds; the other parts have their own, and never take this one.
#[derive(Debug)]
pub(crate) struct Hub {
    state: Mutex<State>,
    pub(crate) seed: Seed,
    pub(crate) id_seed: u64,
    pub(crate) clock: EmulatorClock,
    pub(crate) ids: Ids,
    pub(crate) switches: Switches,
    /// The positions that the command line gave, which `reset` keeps.
    pub(crate) given_switches: Vec<(String, Value)>,
    pub(crate) live: Live,
    pub(crate) deliveries: Deliveries,
    pub(crate) faults: Faults,
    pub(crate) triggers: Triggers,
    pub(crate) requests: Requests,
}

pub(crate) type Shared = Arc<Hub>;

/// The parts that are made before the hub.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) seed: Seed,
    pub(crate) id_seed: u64,
    pub(crate) clock: EmulatorClock,
    pub(crate) ids: Ids,
    pub(crate) switches: Switches,
    pub(crate) given_switches: Vec<(String, Value)>,
    pub(crate) live: Live,
    pub(crate) deliveries: Deliveries,
    pub(crate) faults: Faults,
}

impl Hub {
    /// Makes a hub in the state of its seed.
    ///
    /// # Errors
    /// A switch of the command line that does not exist.
    pub(crate) fn new(parts: Parts) -> Result<Shared, String> {
        let state = parts.seed.0.state(&parts.clock.iso(), &parts.ids);
        let triggers = Triggers::new(
            parts.switches.clone(),
            parts.live.clone(),
            parts.clock.clone(),
        );
        let hub = Self {
            state: Mutex::new(state),
            seed: parts.seed,
            id_seed: parts.id_seed,
            clock: parts.clock,
            ids: parts.ids,
            switches: parts.switches,
            given_switches: parts.given_switches,
            live: parts.live,
            deliveries: parts.deliveries,
            faults: parts.faults,
            triggers,
            requests: Requests::default(),
        };
        hub.begin()?;
        Ok(Arc::new(hub))
    }

    /// Sets switches, subscriptions and triggers to those of the seed.
    fn begin(&self) -> Result<(), String> {
        self.switches.clear();
        self.switches.set_all(&self.seed.0.switches)?;
        for (name, value) in &self.given_switches {
            self.switches.set(name, value)?;
        }
        let subscriptions = self.seed.0.subscriptions.clone();
        self.deliveries.set_subscriptions(subscriptions)?;
        self.triggers.set(self.seed.0.triggers.clone());
        Ok(())
    }

    /// Returns to the seed: its state, switches, no faults, no deliveries, and the clock as at the start.
    ///
    /// # Errors
    /// None that a start with the same seed would not have had.
    pub(crate) fn reset(&self) -> Result<(), String> {
        let mut state = self.state();
        self.faults.clear();
        self.deliveries.reset();
        self.clock.set_offset(std::time::Duration::ZERO);
        self.ids.set_position(self.id_seed);
        self.requests.clear();
        *state = self.seed.0.state(&self.clock.iso(), &self.ids);
        self.begin()?;
        self.live.tell("reset", ());
        Ok(())
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes an event and gives it to the deliveries. It is called with the state's lock held, so that events are emitted in the
    /// order of the changes.
    pub(crate) fn emit(
        &self,
        state: &State,
        event_type: &str,
        model: Option<&str>,
        data: impl Serialize,
    ) -> Emitted {
        let event = Envelope {
            id: &self.ids.make("evt_"),
            r#type: event_type,
            created_at: &self.clock.iso(),
            workspace_id: &state.workspace.id,
            data,
        };
        let emitted = event.emitted(model);
        self.deliveries.emit(&emitted);
        emitted
    }
}
