//! The events that changes emit: their bodies are made here once, and sent byte for byte.

use std::collections::BTreeMap;

use bytes::Bytes;
pub(crate) use hookgate_testing::factory::EVENT_TYPES;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An event that is ready to be delivered.
#[derive(Clone, Debug)]
pub(crate) struct Emitted {
    pub(crate) id: String,
    pub(crate) event_type: String,
    /// The data model that a row's event is about.
    pub(crate) model: Option<String>,
    /// The envelope, as it is signed and sent.
    pub(crate) body: Bytes,
}

/// The member who made a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Actor {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) email: String,
}

/// The envelope of an event. The order of its fields is that of the specification's table.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Envelope<'a, D> {
    pub(crate) id: &'a str,
    pub(crate) r#type: &'a str,
    pub(crate) created_at: &'a str,
    pub(crate) workspace_id: &'a str,
    pub(crate) data: D,
}

/// The data of a row's event. Properties are keyed by name, not by id.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RowData<'a> {
    pub(crate) datamodel_id: &'a str,
    pub(crate) datamodel_name: &'a str,
    pub(crate) row_id: &'a str,
    #[serde(flatten)]
    pub(crate) change: RowChange<'a>,
}

/// The part of a row's event that its type decides.
#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(crate) enum RowChange<'a> {
    Created {
        properties: BTreeMap<&'a str, &'a Value>,
        created_by: &'a Actor,
    },
    Updated {
        changes: BTreeMap<&'a str, BeforeAndAfter<'a>>,
        updated_by: &'a Actor,
    },
    Deleted {
        deleted_by: DeletedBy<'a>,
    },
}

/// The values of a property before and after a change; `null` for none.
#[derive(Serialize)]
pub(crate) struct BeforeAndAfter<'a> {
    pub(crate) before: &'a Value,
    pub(crate) after: &'a Value,
}

/// The specification shows no email here.
#[derive(Serialize)]
pub(crate) struct DeletedBy<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
}

impl<D: Serialize> Envelope<'_, D> {
    pub(crate) fn emitted(&self, model: Option<&str>) -> Emitted {
        // Strings, numbers and maps with string keys can always be written.
        let body = serde_json::to_vec(self).unwrap_or_default();
        Emitted {
            id: self.id.to_owned(),
            event_type: self.r#type.to_owned(),
            model: model.map(str::to_owned),
            body: body.into(),
        }
    }
}
