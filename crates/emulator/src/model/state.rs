//! The state of the workspace, behind one lock.

use serde::{Deserialize, Serialize};

use super::{DataModel, Key, Rates, Things};
use crate::answer::ApiError;
use crate::events::Actor;

/// A limit of memory: about what rows, data models, pages, blocks, workflows and stats take together.
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

#[derive(Clone, Debug)]
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
}

impl State {
    pub(crate) fn model(&self, id: &str) -> Option<&DataModel> {
        self.models.iter().find(|model| model.id == id)
    }

    pub(crate) fn model_mut(&mut self, id: &str) -> Option<&mut DataModel> {
        self.models.iter_mut().find(|model| model.id == id)
    }

    pub(crate) fn things(&mut self, kind: Kind) -> &mut Things {
        match kind {
            Kind::Page => &mut self.pages,
            Kind::Block => &mut self.blocks,
            Kind::Workflow => &mut self.workflows,
            Kind::Stat => &mut self.stats,
        }
    }

    /// Returns the member who makes changes: the first one. The specification does not show whom a key stands for.
    pub(crate) fn actor(&self) -> Actor {
        self.members.first().cloned().unwrap_or_else(|| Actor {
            id: "usr_emulator".to_owned(),
            name: "Emulator".to_owned(),
            email: "emulator@example.com".to_owned(),
        })
    }

    /// Refuses a write where the workspace is full. What is there can still be deleted.
    ///
    /// # Errors
    /// 400: everything together takes too much memory.
    pub(crate) fn check_room(&self) -> Result<(), ApiError> {
        if self.bytes() >= MAX_BYTES {
            let message = "the workspace is full: the emulator keeps about 1 GiB";
            return Err(ApiError::validation(message));
        }
        Ok(())
    }

    pub(crate) fn row_count(&self) -> usize {
        self.models.iter().map(|model| model.rows.len()).sum()
    }

    fn bytes(&self) -> usize {
        let things = [&self.pages, &self.blocks, &self.workflows, &self.stats];
        let things: usize = things.iter().map(|things| things.bytes()).sum();
        let models = self.models.iter();
        let models = models.map(|model| model.rows.bytes() + model.own_bytes());
        things + models.sum::<usize>()
    }
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
        let empty = state.bytes();
        let text = json!("x".repeat(10_000));
        let data = || {
            [("prop_customer".to_owned(), text.clone())]
                .into_iter()
                .collect()
        };
        let mut added = 0;
        while state.check_room().is_ok() {
            let now: Box<str> = "".into();
            let list = &mut state.models[1].rows;
            list.push(format!("row_{added}"), data(), now.clone(), now)
                .unwrap();
            added += 1;
        }
        assert!((95..=105).contains(&added), "{added}");
        // A changed row counts once.
        let before = state.bytes();
        let list = &mut state.models[1].rows;
        list.replace("row_0", data(), "".into(), true).unwrap();
        assert_eq!(state.bytes(), before);
        state.models[1].rows.remove("row_1").unwrap();
        assert!(state.check_room().is_ok());
        for number in (0..added).filter(|number| *number != 1) {
            state.models[1]
                .rows
                .remove(&format!("row_{number}"))
                .unwrap();
        }
        assert_eq!(state.bytes(), empty);

        let before = state.bytes();
        let thing = json!({ "text": text }).as_object().cloned().unwrap();
        let blocks = state.things(Kind::Block);
        blocks.add("block_x", thing.clone());
        blocks.change("block_x", thing).unwrap();
        assert!((10_000..10_500).contains(&(state.bytes() - before)));
        state.things(Kind::Block).remove("block_x").unwrap();
        assert_eq!(state.bytes(), before);
    }
}
