//! The state of the workspace, behind one lock.

use serde::{Deserialize, Serialize};

use super::{DataModel, Key, Rates, Things};
use crate::events::Actor;

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

    pub(crate) fn row_count(&self) -> usize {
        self.models.iter().map(|model| model.rows.len()).sum()
    }
}
