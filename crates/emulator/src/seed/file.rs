//! The form of a seed. A snapshot is a seed too: it has all that has happened since.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::deliver::{Delivery, Subscription};
use crate::events::Actor;
use crate::faults::FaultState;
use crate::ids::Ids;
use crate::model::{DataModel, Key, Rates, State, Things, Workspace};
use crate::requests::Request;
use crate::trigger::{Trigger, TriggerCall};

/// The whole file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct SeedFile {
    pub(crate) workspace: Workspace,
    pub(crate) switches: BTreeMap<String, Value>,
    pub(crate) keys: Vec<Key>,
    pub(crate) members: Vec<Actor>,
    pub(crate) data_models: Vec<DataModel>,
    pub(crate) subscriptions: Vec<Subscription>,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) pages: Things,
    pub(crate) blocks: Things,
    pub(crate) workflows: Things,
    pub(crate) stats: Things,
    pub(crate) faults: FaultState,
    /// The time that was added to the real one.
    pub(crate) clock_offset_ms: u64,
    /// Where the stream of ids goes on.
    pub(crate) ids: Option<u64>,
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) rates: Rates,
    /// The log of the API's requests, the oldest first.
    pub(crate) requests: Vec<Request>,
    /// The log of the triggers' calls, the newest first.
    pub(crate) trigger_calls: Vec<TriggerCall>,
}

impl SeedFile {
    /// Returns the state that this seed describes. What it leaves out gets a name, an id, a place,
    /// or the time `now`.
    pub(crate) fn state(&self, now: &str, ids: &Ids) -> State {
        let mut keys = self.keys.clone();
        for (key, number) in keys.iter_mut().zip(1..) {
            if key.name.is_empty() {
                key.name = format!("key {number}");
            }
            if key.key.is_empty() {
                key.key = ids.make("tk_test_");
            }
        }
        let mut models = self.data_models.clone();
        for model in &mut models {
            model.fill(now);
        }
        State {
            workspace: self.workspace.clone(),
            keys,
            members: self.members.clone(),
            models,
            pages: self.pages.clone(),
            blocks: self.blocks.clone(),
            workflows: self.workflows.clone(),
            stats: self.stats.clone(),
            rates: self.rates.clone(),
            written: 0,
        }
    }
}
