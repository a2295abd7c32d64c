//! The form of a seed, which a snapshot's workspace has too.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::deliver::Subscription;
use crate::events::Actor;
use crate::ids::Ids;
use crate::json;
use crate::model::{
    DataModel, Icon, Key, Property, Rates, RowData, Rows, Scope, State, Things, Workspace,
};
use crate::trigger::Trigger;

/// The whole file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct SeedFile {
    #[serde(deserialize_with = "json::object")]
    pub(crate) workspace: Workspace,
    pub(crate) switches: BTreeMap<String, Value>,
    #[serde(deserialize_with = "json::objects")]
    pub(crate) keys: Vec<SeedKey>,
    #[serde(deserialize_with = "json::objects")]
    pub(crate) members: Vec<SeedMember>,
    #[serde(deserialize_with = "json::objects")]
    pub(crate) data_models: Vec<SeedModel>,
    #[serde(deserialize_with = "json::objects")]
    pub(crate) subscriptions: Vec<Subscription>,
    #[serde(deserialize_with = "json::objects")]
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) pages: Vec<Map<String, Value>>,
    pub(crate) blocks: Vec<Map<String, Value>>,
    pub(crate) workflows: Vec<Map<String, Value>>,
    pub(crate) stats: Vec<Map<String, Value>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SeedKey {
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) key: Option<String>,
    #[serde(default)]
    pub(crate) scope: Scope,
    #[serde(default)]
    pub(crate) expires_at: Option<String>,
    #[serde(default)]
    pub(crate) disabled: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeedMember {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) email: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SeedModel {
    pub(crate) id: String,
    pub(crate) title: String,
    #[serde(default, deserialize_with = "json::object")]
    pub(crate) icon: Icon,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) created_at: Option<String>,
    #[serde(default)]
    pub(crate) updated_at: Option<String>,
    #[serde(default, deserialize_with = "json::objects")]
    pub(crate) properties: Vec<Property>,
    #[serde(default, deserialize_with = "json::objects")]
    pub(crate) rows: Vec<SeedRow>,
    /// Fields that a request of the API gave the data model.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) extra: Map<String, Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SeedRow {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) data: RowData,
    #[serde(default)]
    pub(crate) created_at: Option<String>,
    #[serde(default)]
    pub(crate) updated_at: Option<String>,
}

impl SeedFile {
    /// Returns the state that this seed describes, for the time `now` where it gives none.
    pub(crate) fn state(&self, now: &str, ids: &Ids) -> State {
        let keys = self.keys.iter().enumerate();
        State {
            workspace: self.workspace.clone(),
            keys: keys.map(|(at, key)| key.key(at, ids)).collect(),
            members: self.members.iter().map(SeedMember::actor).collect(),
            models: self
                .data_models
                .iter()
                .map(|model| model.model(now))
                .collect(),
            pages: things(&self.pages),
            blocks: things(&self.blocks),
            workflows: things(&self.workflows),
            stats: things(&self.stats),
            rates: Rates::default(),
        }
    }

    /// Returns a seed with this state. Switches, subscriptions and triggers are not part of it.
    pub(crate) fn of(state: &State) -> Self {
        Self {
            workspace: state.workspace.clone(),
            keys: state.keys.iter().map(SeedKey::of).collect(),
            members: state.members.iter().map(SeedMember::of).collect(),
            data_models: state.models.iter().map(SeedModel::of).collect(),
            pages: state.pages.as_slice().to_vec(),
            blocks: state.blocks.as_slice().to_vec(),
            workflows: state.workflows.as_slice().to_vec(),
            stats: state.stats.as_slice().to_vec(),
            ..Self::default()
        }
    }
}

fn things(list: &[Map<String, Value>]) -> Things {
    let mut things = Things::default();
    for thing in list {
        let id = thing.get("id").and_then(Value::as_str).unwrap_or_default();
        things.add(id, thing.clone());
    }
    things
}

impl SeedKey {
    fn key(&self, at: usize, ids: &Ids) -> Key {
        let name = self
            .name
            .clone()
            .unwrap_or_else(|| format!("key {}", at + 1));
        Key {
            name,
            key: self.key.clone().unwrap_or_else(|| ids.make("tk_test_")),
            scope: self.scope,
            expires_at: self.expires_at.clone(),
            disabled: self.disabled,
        }
    }

    fn of(key: &Key) -> Self {
        Self {
            name: Some(key.name.clone()),
            key: Some(key.key.clone()),
            scope: key.scope,
            expires_at: key.expires_at.clone(),
            disabled: key.disabled,
        }
    }
}

impl SeedMember {
    fn actor(&self) -> Actor {
        Actor {
            id: self.id.clone(),
            name: self.name.clone(),
            email: self.email.clone(),
        }
    }

    fn of(actor: &Actor) -> Self {
        Self {
            id: actor.id.clone(),
            name: actor.name.clone(),
            email: actor.email.clone(),
        }
    }
}

impl SeedModel {
    fn model(&self, now: &str) -> DataModel {
        let time = |given: &Option<String>, other: &str| -> Box<str> {
            given.as_deref().unwrap_or(other).into()
        };
        let created_at = time(&self.created_at, now);
        let mut rows = Rows::default();
        for row in &self.rows {
            let created = time(&row.created_at, &created_at);
            let updated = time(&row.updated_at, &created);
            rows.push(row.id.clone(), row.values(), created, updated);
        }
        let properties = self.properties.iter().enumerate();
        let properties = properties.map(|(at, property)| {
            let mut property = property.clone();
            let place = i64::try_from(at).unwrap_or(i64::MAX).saturating_add(1);
            property.order.get_or_insert(place);
            property
        });
        DataModel {
            id: self.id.clone(),
            title: self.title.clone(),
            icon: self.icon.clone(),
            description: self.description.clone(),
            updated_at: time(&self.updated_at, &created_at),
            created_at,
            properties: properties.collect(),
            extra: self.extra.clone(),
            rows,
        }
    }

    fn of(model: &DataModel) -> Self {
        let rows = model.rows.as_slice().iter().map(|row| SeedRow {
            id: row.id.clone(),
            data: row.data.clone(),
            created_at: Some(row.created_at.to_string()),
            updated_at: Some(row.updated_at.to_string()),
        });
        Self {
            id: model.id.clone(),
            title: model.title.clone(),
            icon: model.icon.clone(),
            description: model.description.clone(),
            created_at: Some(model.created_at.to_string()),
            updated_at: Some(model.updated_at.to_string()),
            properties: model.properties.clone(),
            rows: rows.collect(),
            extra: model.extra.clone(),
        }
    }
}

impl SeedRow {
    /// `null` stands for no value.
    fn values(&self) -> RowData {
        let mut data = self.data.clone();
        data.retain(|_, value| !value.is_null());
        data
    }
}
