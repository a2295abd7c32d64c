//! The view of a delivery's body as [`Event`].

use hookgate::{
    Event, EventData, Properties,
    event::{Actor, DataModelId, RowId},
};
use hookgate_testing::event;

use super::item::Item;
use super::page_line::{Kind, PageLine, field, line, unread};
use super::pretty;
use crate::fault::chain;
use crate::printable::printable;

/// The lines that show the body as [`Event`] reads it.
pub(crate) fn typed(item: &Item) -> Vec<PageLine> {
    let Some(bytes) = &item.delivery.body else {
        return vec![unread(&item.delivery)];
    };
    let mut lines = Vec::new();
    if !item.authentic {
        lines.push(line(
            Kind::Bad,
            "Not authentic: no handler sees this. What it would be:",
        ));
    }
    match event::<Properties>(bytes) {
        Ok(event) => lines.extend(fields(&event)),
        Err(error) => {
            let text = format!("no event: {}", chain(&error));
            lines.push(line(Kind::Bad, printable(&text)));
            lines.extend(error.path().map(|path| field("at", printable(path))));
        }
    }
    lines
}

fn fields(event: &Event) -> Vec<PageLine> {
    let mut lines = vec![
        field("id", printable(event.id.as_str())),
        field("type", printable(event.event_type())),
        field("createdAt", printable(event.created_at.as_str())),
        field("workspaceId", printable(event.workspace_id.as_str())),
    ];
    let row = |model: &DataModelId, name: &str, row: &RowId| {
        let model = format!("{} ({})", printable(name), printable(model.as_str()));
        [
            field("data model", model),
            field("row", printable(row.as_str())),
        ]
    };
    let count = |number: usize, of: &str| line(Kind::Remark, format!("{number} {of}"));
    let by = |did: &str, actor: &Option<Actor>| {
        let Some(actor) = actor else {
            return field(did, "(not said)");
        };
        let email = actor
            .email
            .as_deref()
            .map(|email| format!(", {}", printable(email)));
        let (name, id) = (printable(&actor.name), printable(actor.id.as_str()));
        field(did, format!("{name} ({id}{})", email.unwrap_or_default()))
    };
    match &event.data {
        EventData::RowCreated(data) => {
            lines.extend(row(&data.datamodel_id, &data.datamodel_name, &data.row_id));
            lines.push(by("created by", &data.created_by));
            lines.push(count(data.properties.len(), "properties"));
            lines.extend(data.properties.iter().map(|(name, value)| {
                let json = value.json().map_or("", |json| json.as_str());
                field(&format!("  {}", printable(name)), printable(json))
            }));
        }
        EventData::RowUpdated(data) => {
            lines.extend(row(&data.datamodel_id, &data.datamodel_name, &data.row_id));
            lines.push(by("updated by", &data.updated_by));
            lines.push(count(data.changes.iter().len(), "changes"));
            lines.extend(data.changes.iter().map(|(name, change)| {
                let json = |value: hookgate::event::Value<'_>| {
                    let text = value
                        .json()
                        .map(|json| printable(json.as_str()).into_owned());
                    text.unwrap_or_else(|| "(absent)".to_owned())
                };
                let change = format!("{} → {}", json(change.before), json(change.after));
                field(&format!("  {}", printable(name)), change)
            }));
        }
        EventData::RowDeleted(data) => {
            lines.extend(row(&data.datamodel_id, &data.datamodel_name, &data.row_id));
            lines.push(by("deleted by", &data.deleted_by));
        }
        EventData::Other(other) => {
            lines.push(line(
                Kind::Remark,
                "data, whose shape this crate doesn't know:",
            ));
            let data = pretty::lines(other.data.as_str().as_bytes(), false);
            lines.extend(data.into_iter().map(|text| line(Kind::Plain, text)));
        }
        _ => lines.push(line(Kind::Remark, "data of a newer kind")),
    }
    let extra = event.extra.iter();
    lines.extend(extra.map(|(name, json)| field(&printable(name), printable(json.as_str()))));
    lines
}
