//! Data models: section *List data models* and *Get a data model*; the payloads of the others are
//! not shown.

use serde_json::{Map, Value, json};

use super::call::Call;
use crate::answer::{Answer, ApiError};
use crate::body;
use crate::hub::Hub;
use crate::model::{
    DataModel, Icon, Misfit, Property, Rows, State, check_icon, check_properties,
    check_properties_form,
};
use crate::switches::Switch;

const DEFAULT_LIMIT: u64 = 100;

pub(super) fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let query = call.query;
    let limit = query.number("limit", 1, DEFAULT_LIMIT)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let details = query.flag("includeDetails")?;
    let counts = query.flag("includeRowCounts")?;
    let search = query.text("search").unwrap_or_default().to_lowercase();
    let state = call.hub.state();
    let is_found = |model: &&DataModel| {
        let texts = [&model.title, &model.id];
        texts
            .iter()
            .any(|text| text.to_lowercase().contains(&search))
    };
    let found: Vec<_> = state.models.iter().filter(is_found).collect();
    let shown: Vec<_> = found
        .iter()
        .take(limit)
        .map(|model| model.shown(details, counts))
        .collect();
    Ok(Answer::list(&shown, &json!({ "total": found.len() })))
}

pub(super) fn get(call: &Call<'_>) -> Result<Answer, ApiError> {
    let state = call.hub.state();
    let model = state.model(call.id(0));
    let model = model.ok_or_else(|| ApiError::not_found("data model", call.id(0)))?;
    Ok(Answer::data(&model.shown(true, false)))
}

pub(super) fn create(call: &Call<'_>) -> Result<Answer, ApiError> {
    let hub = call.hub;
    let mut fields = body::object(call.body)?;
    let title = body::text(&fields, "title")?;
    let properties = fields.remove("properties").unwrap_or_else(|| json!([]));
    let now: Box<str> = hub.clock.iso().into();
    let mut state = hub.state();
    state.check_room(call.body.len())?;
    refuse_taken(hub, &state, &title, None)?;
    let mut model = DataModel {
        id: hub.ids.make("dm_"),
        title: String::new(),
        icon: Icon::default(),
        description: String::new(),
        created_at: now.clone(),
        updated_at: now,
        properties: added(hub, &state.model_ids(), "properties", properties, &[])?,
        extra: Map::new(),
        rows: Rows::default(),
    };
    set(&mut model, fields)?;
    let shown = model.shown(true, false);
    state.models.push(model);
    hub.live.tell("models", ());
    Ok(Answer::data(&shown))
}

pub(super) fn change(call: &Call<'_>) -> Result<Answer, ApiError> {
    let hub = call.hub;
    let fields = body::object(call.body)?;
    if fields.contains_key("properties") {
        let message = "`properties` are changed by PATCH /datamodels/<data_model_id>/properties";
        return Err(ApiError::validation(message));
    }
    let mut state = hub.state();
    state.check_room(call.body.len())?;
    let id = call.id(0);
    let missing = || ApiError::not_found("data model", id);
    if state.model(id).is_none() {
        return Err(missing());
    }
    if let Some(title) = body::optional_text(&fields, "title")? {
        refuse_taken(hub, &state, &title, Some(id))?;
    }
    let model = state.model_mut(id).ok_or_else(missing)?;
    let mut changed = DataModel {
        rows: Rows::default(),
        ..model.clone()
    };
    set(&mut changed, fields)?;
    changed.rows = std::mem::take(&mut model.rows);
    changed.updated_at = hub.clock.iso().into();
    *model = changed;
    hub.live.tell("models", ());
    Ok(Answer::data(&model.shown(true, false)))
}

pub(super) fn delete(call: &Call<'_>) -> Result<Answer, ApiError> {
    let mut state = call.hub.state();
    let id = call.id(0);
    let at = state.models.iter().position(|model| model.id == id);
    let at = at.ok_or_else(|| ApiError::not_found("data model", id))?;
    // A seed without the data model is refused too, so that a snapshot can be restored.
    let others = state.models.iter().filter(|other| other.id != id);
    if let Some((other, property)) = others.into_iter().find_map(|other| {
        let property = other.properties.iter().find(|one| one.is_to(id))?;
        Some((other, property))
    }) {
        let message = format!(
            "property {:?} of the data model `{}` is a relation to `{id}`, expected it to be removed before",
            property.name, other.id
        );
        return Err(ApiError::validation(message));
    }
    state.models.remove(at);
    call.hub.live.tell("models", ());
    Ok(Answer::deleted(id))
}

/// Sets the fields that the specification names, and keeps the others as they came.
fn set(model: &mut DataModel, fields: Map<String, Value>) -> Result<(), ApiError> {
    if let Some(title) = body::optional_text(&fields, "title")? {
        model.title = title;
    }
    if let Some(description) = body::optional_text(&fields, "description")? {
        model.description = description;
    }
    for (name, value) in fields {
        match &*name {
            "title" | "description" | "id" | "createdAt" | "updatedAt" | "rowCount" => {}
            "icon" => {
                check_icon(&value).map_err(|misfit| ApiError::validation(misfit.message))?;
                model.icon = serde_json::from_value(value)
                    .map_err(|error| ApiError::validation(format!("`icon`: {error}")))?;
            }
            _ => {
                model.extra.insert(name, value);
            }
        }
    }
    Ok(())
}

fn refuse_taken(hub: &Hub, state: &State, title: &str, own: Option<&str>) -> Result<(), ApiError> {
    if title.trim().is_empty() {
        let message = format!("`title` is {title:?}, expected more than white space");
        return Err(ApiError::validation(message));
    }
    let is_taken = |model: &DataModel| model.title == title && Some(&*model.id) != own;
    if hub.switches.is(Switch::Conflict, "takenTitle") && state.models.iter().any(is_taken) {
        let message = format!("a data model with the title {title:?} exists");
        return Err(ApiError::conflict(message));
    }
    Ok(())
}

pub(super) fn change_properties(call: &Call<'_>) -> Result<Answer, ApiError> {
    let hub = call.hub;
    let mut fields = body::object(call.body)?;
    body::only(&fields, &["add", "remove"])?;
    let remove = fields
        .remove("remove")
        .unwrap_or_else(|| Value::Array(Vec::new()));
    let remove: Vec<String> = serde_json::from_value(remove)
        .map_err(|_| ApiError::validation("`remove` is not an array of property ids"))?;
    let add = fields
        .remove("add")
        .unwrap_or_else(|| Value::Array(Vec::new()));
    let mut state = hub.state();
    state.check_room(call.body.len())?;
    let id = call.id(0);
    let missing = || ApiError::not_found("data model", id);
    let models = state.model_ids();
    let model = state.model_mut(id).ok_or_else(missing)?;
    let mut kept = model.properties.clone();
    for id in &remove {
        let at = kept.iter().position(|property| property.id == *id);
        let at = at.ok_or_else(|| ApiError::not_found("property", id))?;
        kept.remove(at);
    }
    kept.extend(added(hub, &models, "add", add, &kept)?);
    model.properties = kept;
    let now: Box<str> = hub.clock.iso().into();
    model.updated_at = now.clone();
    // The values of removed properties go with them.
    let rows: Vec<_> = model.rows.as_slice().to_vec();
    for row in rows {
        if remove.iter().any(|id| row.data.get(id).is_some()) {
            let mut data = row.data.clone();
            data.retain(|id, _| !remove.iter().any(|other| other == id));
            model
                .rows
                .replace(&row.id, data, row.updated_at.clone(), false);
        }
    }
    hub.live.tell("models", ());
    Ok(Answer::data(&model.shown(true, false)))
}

/// Reads an array of properties, which has this name in the request, and which are added to these
/// of a data model. Relations are to these data models. Those without an id get one, and those
/// without an order come last.
fn added(
    hub: &Hub,
    models: &[String],
    field: &str,
    value: Value,
    kept: &[Property],
) -> Result<Vec<Property>, ApiError> {
    let refused = |misfit: Misfit| ApiError::validation(misfit.message);
    check_properties_form(field, &value).map_err(refused)?;
    let properties = serde_json::from_value::<Vec<Property>>(value);
    let mut properties =
        properties.map_err(|error| ApiError::validation(format!("`{field}`: {error}")))?;
    let is_model = |id: &str| models.iter().any(|model| model == id);
    check_properties(kept, &properties, is_model).map_err(refused)?;
    let last = kept.iter().filter_map(|property| property.order).max();
    let mut order = last.unwrap_or_default();
    for at in 0..properties.len() {
        let property = &mut properties[at];
        order = order.saturating_add(1);
        property.order.get_or_insert(order);
        if property.id.is_empty() {
            property.id = hub.ids.make("prop_");
        }
        let (before, rest) = properties.split_at(at);
        let id = &rest[0].id;
        if kept.iter().any(|other| other.id == *id) {
            let message = format!("property `{id}` exists");
            return Err(ApiError::conflict(message));
        }
        if before.iter().any(|other| other.id == *id) {
            let message = format!("property `{id}` is there twice");
            return Err(ApiError::validation(message));
        }
    }
    Ok(properties)
}
