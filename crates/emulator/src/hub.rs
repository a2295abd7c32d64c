//! All parts of one emulator, behind one `Arc`.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::deliver::{Deliveries, Parts, Reach, Route};
use crate::events::{Emitted, Envelope};
use crate::faults::Faults;
use crate::ids::Ids;
use crate::live::Live;
use crate::model::State;
use crate::requests::Requests;
use crate::seed::{Seed, SeedFile};
use crate::switches::Switches;
use crate::time::EmulatorClock;
use crate::trigger::Triggers;

/// The parts. Only `state` has a lock that a request holds; the other parts have their own, and
/// never take this one.
#[derive(Debug)]
pub(crate) struct Hub {
    state: Mutex<State>,
    start: Start,
    pub(crate) clock: EmulatorClock,
    pub(crate) ids: Ids,
    pub(crate) switches: Switches,
    pub(crate) live: Live,
    pub(crate) deliveries: Deliveries,
    pub(crate) faults: Faults,
    pub(crate) triggers: Triggers,
    pub(crate) requests: Requests,
}

pub(crate) type Shared = Arc<Hub>;

/// The state that an emulator starts with, and that `reset` returns to.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) seed: Seed,
    pub(crate) ids: u64,
    /// Set after those of the seed.
    pub(crate) switches: Vec<(String, Value)>,
    /// Each in the form of the control API.
    pub(crate) faults: Vec<Value>,
}

/// The reason why an emulator did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The emulator can't listen on this address.
    #[error("can't listen on {0}: {1}")]
    Address(SocketAddr, io::Error),
    /// A switch or a fault of the builder does not exist, or can't have this value.
    #[error("{0}")]
    Setting(String),
    /// The seed has a subscription to which this emulator can't deliver.
    #[error("{0}")]
    Seed(String),
}

impl Hub {
    /// Makes a hub in its first state. Deliveries go this way: `None` is HTTP/1.1.
    ///
    /// # Errors
    /// A switch or a fault does not exist, or a subscription of the seed can't be delivered to.
    pub(crate) fn new(
        start: Start,
        clock: EmulatorClock,
        reach: Reach,
        route: Option<Route>,
    ) -> Result<Shared, StartError> {
        let (ids, switches) = (Ids::seeded(start.ids), Switches::default());
        let (live, faults) = (Live::new(), Faults::default());
        let deliveries = Deliveries::new(Parts {
            clock: clock.clone(),
            ids: ids.clone(),
            switches: switches.clone(),
            live: live.clone(),
            faults: faults.clone(),
            reach,
            route,
        });
        let triggers = Triggers::new(switches.clone(), live.clone(), clock.clone());
        let hub = Self {
            state: Mutex::default(),
            start,
            clock,
            ids,
            switches,
            live,
            deliveries,
            faults,
            triggers,
            requests: Requests::default(),
        };
        hub.begin(&mut hub.state())?;
        Ok(Arc::new(hub))
    }

    /// Begins with the seed, and with the switches and faults that were set after it.
    fn begin(&self, state: &mut State) -> Result<(), StartError> {
        self.ids.set_position(self.start.ids);
        self.load(state, &self.start.seed.0)
            .map_err(StartError::Seed)?;
        for (name, value) in &self.start.switches {
            let set = self.switches.set(name, value);
            set.map_err(StartError::Setting)?;
        }
        for fault in &self.start.faults {
            self.faults.add(fault).map_err(StartError::Setting)?;
        }
        Ok(())
    }

    /// Takes a snapshot.
    pub(crate) fn snapshot(&self) -> SeedFile {
        let state = self.state();
        let (subscriptions, deliveries) = self.deliveries.saved();
        SeedFile {
            workspace: state.workspace.clone(),
            switches: self.switches.values(),
            keys: state.keys.clone(),
            members: state.members.clone(),
            data_models: state.models.clone(),
            subscriptions,
            triggers: self.triggers.list(),
            pages: state.pages.clone(),
            blocks: state.blocks.clone(),
            workflows: state.workflows.clone(),
            stats: state.stats.clone(),
            faults: self.faults.saved(),
            clock_offset_ms: u64::try_from(self.clock.offset().as_millis()).unwrap_or(u64::MAX),
            ids: Some(self.ids.position()),
            deliveries,
            rates: state.rates.clone(),
            requests: self.requests.list(),
            trigger_calls: self.triggers.calls(),
        }
    }

    /// Replaces everything by what a seed holds, which was checked as it was read.
    ///
    /// # Errors
    /// A subscription can't be delivered to. Then nothing has changed.
    fn load(&self, state: &mut State, seed: &SeedFile) -> Result<(), String> {
        let (subscriptions, deliveries) = (seed.subscriptions.clone(), seed.deliveries.clone());
        let position = self.ids.position();
        self.deliveries
            .load(
                subscriptions,
                deliveries,
                Duration::from_millis(seed.clock_offset_ms),
            )
            .inspect_err(|_| self.ids.set_position(position))?;
        if let Some(position) = seed.ids {
            self.ids.set_position(position);
        }
        *state = seed.state(&self.clock.iso(), &self.ids);
        self.switches.clear();
        self.switches.set_all(&seed.switches)?;
        self.faults.set(seed.faults.clone());
        self.triggers
            .set(seed.triggers.clone(), seed.trigger_calls.clone());
        self.requests.set(seed.requests.clone());
        Ok(())
    }

    /// Restores a snapshot, or any other seed.
    ///
    /// # Errors
    /// A sentence about the place and what was expected. Then nothing has changed.
    pub(crate) fn restore(&self, text: &str) -> Result<(), String> {
        let seed = Seed::parse(text).map_err(|error| error.to_string())?;
        self.load(&mut self.state(), &seed.0)?;
        self.live.tell("reset", ());
        Ok(())
    }

    /// Returns to the start: the state of the seed, its switches and faults, its deliveries, and
    /// its clock.
    ///
    /// # Errors
    /// None that the start would not have had.
    pub(crate) fn reset(&self) -> Result<(), StartError> {
        self.begin(&mut self.state())?;
        self.live.tell("reset", ());
        Ok(())
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes an event and gives it to the deliveries. It is called with the state's lock held, so
    /// that events are emitted in the order of the changes.
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
