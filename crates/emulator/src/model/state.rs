//! The state of the workspace, behind one lock. Of pages, blocks, workflows and stats the
//! specification shows no payload, so they are kept as the JSON that came.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{DataModel, Key, Rates};
use crate::answer::ApiError;
use crate::events::Actor;

/// A limit of memory: what rows, data models, pages, blocks, workflows and stats take together as
/// JSON.
const MAX_BYTES: usize = if cfg!(test) { 1 << 20 } else { 1 << 30 };

/// The workspace itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Workspace {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) tier: Tier,
}

impl Default for Workspace {
    fn default() -> Self {
        Self {
            id: "ws_1".to_owned(),
            tier: Tier::default(),
        }
    }
}

/// The specification does not show how a tier is assigned: the seed names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tier {
    #[default]
    Standard,
    Premium,
    Enterprise,
}

impl Tier {
    /// Requests a minute.
    pub(crate) fn limit(self) -> u32 {
        match self {
            Self::Standard | Self::Premium => 60,
            Self::Enterprise => 1_000,
        }
    }
}

/// The kinds whose payloads are not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Page,
    Block,
    Workflow,
    Stat,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Block => "block",
            Self::Workflow => "workflow",
            Self::Stat => "stat",
        }
    }

    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Page => "page_",
            Self::Block => "block_",
            Self::Workflow => "wf_",
            Self::Stat => "stat_",
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(crate) workspace: Workspace,
    pub(crate) keys: Vec<Key>,
    pub(crate) members: Vec<Actor>,
    pub(crate) models: Vec<DataModel>,
    pub(crate) pages: Things,
    pub(crate) blocks: Things,
    pub(crate) workflows: Things,
    pub(crate) stats: Things,
    pub(crate) rates: Rates,
    /// At least the bytes that are kept: those that were written since they were counted, and the
    /// count.
    pub(crate) written: usize,
}

impl State {
    pub(crate) fn model(&self, id: &str) -> Option<&DataModel> {
        self.models.iter().find(|model| model.id == id)
    }

    pub(crate) fn model_mut(&mut self, id: &str) -> Option<&mut DataModel> {
        self.models.iter_mut().find(|model| model.id == id)
    }

    pub(crate) fn model_ids(&self) -> Vec<String> {
        self.models.iter().map(|model| model.id.clone()).collect()
    }

    pub(crate) fn things(&mut self, kind: Kind) -> &mut Things {
        match kind {
            Kind::Page => &mut self.pages,
            Kind::Block => &mut self.blocks,
            Kind::Workflow => &mut self.workflows,
            Kind::Stat => &mut self.stats,
        }
    }

    /// Returns the member who makes changes: the first one. The specification does not show whom a
    /// key stands for.
    pub(crate) fn actor(&self) -> Actor {
        self.members.first().cloned().unwrap_or_else(|| Actor {
            id: "usr_emulator".to_owned(),
            name: "Emulator".to_owned(),
            email: "emulator@example.com".to_owned(),
        })
    }

    /// Refuses a write of so many bytes where the workspace is full. What is there can still be
    /// deleted.
    ///
    /// # Errors
    /// 400: everything together takes too much memory.
    pub(crate) fn check_room(&mut self, bytes: usize) -> Result<(), ApiError> {
        self.written = self.written.saturating_add(bytes);
        // What was written may be deleted or replaced since: it is counted anew.
        if self.written > MAX_BYTES {
            self.written = self.length() + bytes;
        }
        if self.written > MAX_BYTES {
            let message = "the workspace is full: the emulator keeps 1 GiB of JSON";
            return Err(ApiError::validation(message));
        }
        Ok(())
    }

    /// Returns the length of the workspace as JSON, which may be 1 GiB: it is counted, not made.
    fn length(&self) -> usize {
        struct Count(usize);
        impl Write for Count {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 += bytes.len();
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut count = Count(0);
        let things = [&self.pages, &self.blocks, &self.workflows, &self.stats];
        // Counting can't fail, and all keys are strings.
        let _ = serde_json::to_writer(&mut count, &(&self.models, things));
        count.0
    }
}

/// Objects by id, in the order of their creation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Things(Vec<Map<String, Value>>);

impl Things {
    pub(crate) fn find(&self, id: &str) -> Option<&Map<String, Value>> {
        self.0.iter().find(|thing| has_id(thing, id))
    }

    /// Adds an object under this id.
    pub(crate) fn add(&mut self, id: String, mut thing: Map<String, Value>) -> &Map<String, Value> {
        thing.insert("id".to_owned(), id.into());
        let at = self.0.len();
        self.0.push(thing);
        &self.0[at]
    }

    /// Sets the fields that are given; the others keep their values, and the id too.
    pub(crate) fn change(
        &mut self,
        id: &str,
        fields: Map<String, Value>,
    ) -> Option<&Map<String, Value>> {
        let thing = self.0.iter_mut().find(|thing| has_id(thing, id))?;
        let fields = fields.into_iter().filter(|(name, _)| name != "id");
        thing.extend(fields);
        Some(thing)
    }

    pub(crate) fn remove(&mut self, id: &str) -> Option<Map<String, Value>> {
        let at = self.0.iter().position(|thing| has_id(thing, id))?;
        Some(self.0.remove(at))
    }

    /// Returns the objects in whose JSON the text occurs.
    pub(crate) fn search(&self, text: &str) -> Vec<&Map<String, Value>> {
        let text = text.to_lowercase();
        let things = self.0.iter();
        things
            .filter(|thing| {
                let mut values = thing.values();
                text.is_empty()
                    || values.any(|value| value.to_string().to_lowercase().contains(&text))
            })
            .collect()
    }

    pub(crate) fn as_slice(&self) -> &[Map<String, Value>] {
        &self.0
    }
}

fn has_id(thing: &Map<String, Value>, id: &str) -> bool {
    thing.get("id").and_then(Value::as_str) == Some(id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ids::Ids;
    use crate::seed::Seed;

    /// With 1 MiB as the limit.
    #[test]
    fn a_full_workspace_takes_no_more_until_something_is_deleted() {
        let mut state = Seed::orders()
            .0
            .state("2026-01-01T00:00:00Z", &Ids::seeded(1));
        let text = json!("x".repeat(10_000));
        let mut added = 0;
        while state.check_room(10_000).is_ok() {
            let now: Box<str> = "".into();
            let data = [("prop_customer".to_owned(), text.clone())];
            let list = &mut state.models[1].rows;
            let id = format!("row_{added}");
            list.push(id, data.into_iter().collect(), now.clone(), now)
                .unwrap();
            added += 1;
        }
        assert!((95..=105).contains(&added), "{added}");
        assert!(state.check_room(10_000).is_err());
        state.models[1].rows.remove("row_1").unwrap();
        state.models[1].rows.remove("row_2").unwrap();
        assert!(state.check_room(10_000).is_ok());
        let thing = json!({ "text": text }).as_object().cloned().unwrap();
        state.things(Kind::Block).add("block_x".to_owned(), thing);
        assert!(state.check_room(10_000).is_err());
    }
}
