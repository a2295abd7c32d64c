//! The changes of rows, each with its event. The API, the page and the handles of a test all come
//! here.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::answer::ApiError;
use crate::events::{Actor, BeforeAndAfter, DeletedBy, RowChange, RowData as EventData};
use crate::hub::Hub;
use crate::model::{DataModel, Row, RowData, State};
use crate::switches::Switch;

/// A limit of memory.
const MAX_ROWS: usize = 1_000_000;

/// Who makes a change, and whether it emits an event.
#[derive(Clone, Debug)]
pub(crate) struct By {
    pub(crate) actor: Actor,
    pub(crate) emits: bool,
}

impl By {
    /// A change made through the API.
    pub(crate) fn api(hub: &Hub, state: &State) -> Self {
        Self {
            actor: state.actor(),
            emits: hub.switches.is(Switch::ApiEmits, "on"),
        }
    }

    /// A change made on the page or by a test.
    pub(crate) fn page(_: &Hub, state: &State) -> Self {
        Self {
            actor: state.actor(),
            emits: true,
        }
    }
}

/// Creates a row.
///
/// # Errors
/// No such data model, or a value of another type than its property's.
pub(crate) fn create(
    hub: &Hub,
    state: &mut State,
    model: &str,
    values: &RowData,
    by: &By,
) -> Result<Arc<Row>, ApiError> {
    state.check_room(values.length())?;
    let rows = state.models.iter().map(|model| model.rows.len());
    if rows.sum::<usize>() >= MAX_ROWS {
        let message = format!("the emulator holds at most {MAX_ROWS} rows");
        return Err(ApiError::validation(message));
    }
    let found = of(state, model)?;
    found.check(values).map_err(ApiError::validation)?;
    let now: Box<str> = hub.clock.iso().into();
    let data = with_values(&RowData::default(), values);
    let row = loop {
        let (id, data) = (hub.ids.make("row_"), data.clone());
        if let Some(row) = found.rows.push(id, data, now.clone(), now.clone()) {
            break row;
        }
    };
    emit(hub, state, model, &row.id, by, "row.created", |model| {
        RowChange::Created {
            properties: model.by_name(&row.data),
            created_by: &by.actor,
        }
    });
    Ok(row)
}

/// Sets values of a row; the properties that are not named keep theirs. Where nothing changes, no
/// event is emitted and the time of the last change stays.
///
/// # Errors
/// No such data model or row, or a value of another type than its property's.
pub(crate) fn update(
    hub: &Hub,
    state: &mut State,
    model: &str,
    row: &str,
    values: &RowData,
    by: &By,
) -> Result<Arc<Row>, ApiError> {
    state.check_room(values.length())?;
    let found = of(state, model)?;
    let before = found.rows.find(row).cloned();
    let before = before.ok_or_else(|| ApiError::not_found("row", row))?;
    found.check(values).map_err(ApiError::validation)?;
    let data = with_values(&before.data, values);
    if data == before.data {
        return Ok(before);
    }
    let moves = hub.switches.is(Switch::ListOrder, "updatedLast");
    let after = found.rows.replace(row, data, hub.clock.iso().into(), moves);
    let after = after.ok_or_else(|| ApiError::not_found("row", row))?;
    emit(hub, state, model, row, by, "row.updated", |model| {
        let changes = changes(model, &before.data, &after.data);
        let updated_by = &by.actor;
        RowChange::Updated {
            changes,
            updated_by,
        }
    });
    Ok(after)
}

/// Deletes a row.
///
/// # Errors
/// No such data model or row; with the switch `conflict` at `relatedRow` also a row that another
/// row names.
pub(crate) fn delete(
    hub: &Hub,
    state: &mut State,
    model: &str,
    row: &str,
    by: &By,
) -> Result<(), ApiError> {
    if hub.switches.is(Switch::Conflict, "relatedRow")
        && let Some(other) = related(state, model, row)
    {
        let message = format!("row `{row}` is named by row `{other}`");
        return Err(ApiError::conflict(message));
    }
    let removed = of(state, model)?.rows.remove(row);
    removed.ok_or_else(|| ApiError::not_found("row", row))?;
    emit(hub, state, model, row, by, "row.deleted", |_| {
        RowChange::Deleted {
            deleted_by: DeletedBy {
                id: &by.actor.id,
                name: &by.actor.name,
            },
        }
    });
    Ok(())
}

fn of<'a>(state: &'a mut State, model: &str) -> Result<&'a mut DataModel, ApiError> {
    state
        .model_mut(model)
        .ok_or_else(|| ApiError::not_found("data model", model))
}

/// `null` clears a value.
fn with_values(data: &RowData, values: &RowData) -> RowData {
    let mut data = data.clone();
    for (id, value) in values.iter() {
        data.set(id, value);
    }
    data
}

/// The properties whose values differ, by name.
fn changes<'a>(
    model: &'a DataModel,
    before: &'a RowData,
    after: &'a RowData,
) -> BTreeMap<&'a str, BeforeAndAfter<'a>> {
    let value = |data: &'a RowData, id: &str| data.get(id).unwrap_or(&Value::Null);
    let properties = model.properties.iter().filter_map(|property| {
        let (before, after) = (value(before, &property.id), value(after, &property.id));
        (before != after).then_some((&*property.name, BeforeAndAfter { before, after }))
    });
    properties.collect()
}

fn emit<'a>(
    hub: &Hub,
    state: &'a State,
    model: &str,
    row: &'a str,
    by: &By,
    event_type: &str,
    change: impl FnOnce(&'a DataModel) -> RowChange<'a>,
) {
    let Some(model) = state.model(model) else {
        return;
    };
    hub.live.tell(
        "row",
        serde_json::json!({ "dataModelId": model.id, "rowId": row, "type": event_type }),
    );
    if by.emits {
        let data = EventData {
            datamodel_id: &model.id,
            datamodel_name: &model.title,
            row_id: row,
            change: change(model),
        };
        hub.emit(state, event_type, Some(&model.id), data);
    }
}

/// Returns a row that names this one in a relation.
fn related<'a>(state: &'a State, model: &str, row: &str) -> Option<&'a str> {
    let names = |other: &DataModel, data: &RowData| {
        other.properties.iter().any(|property| {
            let ids = data.get(&property.id).and_then(Value::as_array);
            property.is_to(model) && ids.is_some_and(|ids| ids.iter().any(|id| id == row))
        })
    };
    state.models.iter().find_map(|other| {
        let mut rows = other.rows.as_slice().iter();
        let row = rows.find(|other_row| names(other, &other_row.data))?;
        Some(&*row.id)
    })
}
