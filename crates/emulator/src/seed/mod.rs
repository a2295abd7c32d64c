//! Seeds: the JSON that a workspace begins with.

mod check;
mod error;

use std::collections::BTreeMap;
use std::sync::Arc;

use hookgate::internal::from_foreign_json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::deliver::{Delivery, Subscription};
use crate::events::Actor;
use crate::faults::FaultState;
use crate::ids::Ids;
use crate::model::{DataModel, Key, Rates, State, Things, Workspace};
use crate::requests::Request;
use crate::trigger::{Trigger, TriggerCall};
pub use error::SeedError;

/// The workspace that an emulator starts with, and returns to with `reset`. A snapshot is a seed as well.
///
/// `docs/emulator.md` has the form, and says which fields are required. An unknown field is an error, except in `pages`, `blocks`,
/// `workflows` and `stats`.
///
/// ```
/// use hookgate_emulator::Seed;
///
/// let seed = Seed::parse(r#"{"keys": [{"name": "ci", "key": "tk_test_admin", "scope": "admin"}]}"#);
/// assert!(seed.is_ok());
///
/// let wrong = Seed::parse("{\n  \"keis\": []\n}").unwrap_err();
/// assert_eq!((wrong.line(), wrong.column()), (2, 8));
/// assert!(wrong.to_string().contains("expected one of `workspace`, `switches`, `keys`"), "{wrong}");
/// ```
#[derive(Clone, Debug)]
pub struct Seed(pub(crate) Arc<SeedFile>);

impl Seed {
    /// Reads a seed.
    ///
    /// # Errors
    /// The text is not JSON of this form. The error has the line, the column and the expected form.
    pub fn parse(text: &str) -> Result<Self, SeedError> {
        let start = text.trim_ascii_start();
        if !start.is_empty() && !start.starts_with('{') {
            let offset = text.len() - start.len();
            return Err(SeedError::at(text, offset, "expected a JSON object"));
        }
        let read = from_foreign_json::<SeedFile>(text.as_bytes());
        let file = read.map_err(|error| {
            let value = from_foreign_json::<Value>(text.as_bytes()).ok();
            match value.as_ref().map(check::check_form) {
                Some(Err(wrong)) => wrong.in_text(text),
                _ => SeedError::of_json(text, &error),
            }
        })?;
        check::check(&file).map_err(|wrong| wrong.in_text(text))?;
        Ok(Self(Arc::new(file)))
    }

    /// Adds a subscription to all events for this URL.
    ///
    /// # Errors
    /// The id, the URL or the secret is not valid, or the id is taken.
    pub fn subscription(self, id: &str, url: &str, secret: &str) -> Result<Self, SeedError> {
        let mut file = SeedFile::clone(&self.0);
        let subscription = serde_json::json!({ "id": id, "url": url, "secret": secret });
        let subscription = serde_json::from_value(subscription);
        file.subscriptions
            .push(subscription.map_err(|error| SeedError::of_json("", &error))?);
        check::check(&file).map_err(|wrong| SeedError::at("", 0, wrong.message))?;
        Ok(Self(Arc::new(file)))
    }

    /// Returns an empty workspace: `ws_1`, of the tier Standard, without keys.
    #[must_use]
    pub fn empty() -> Self {
        Self(Arc::new(SeedFile::default()))
    }

    /// Returns the sample workspace of the docs: orders and their clients, a key of each scope (`tk_test_read`, `tk_test_write`,
    /// `tk_test_admin`), two members, pages and a trigger. It has no subscription.
    ///
    /// # Panics
    /// Never: a test parses the sample.
    #[must_use]
    pub fn orders() -> Self {
        #[allow(clippy::expect_used)] // a constant, which a test parses
        Self::parse(include_str!("orders.json")).expect("the sample seed is a seed")
    }
}

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
    /// Returns the state that this seed describes. What it leaves out gets a name, an id, a place, or the time `now`.
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

#[cfg(test)]
mod tests;
