//! `PATCH /datamodels/<data_model_id>/properties`: the specification says *add/remove properties*, and shows no payload. Taken are
//! `add`, an array of properties, and `remove`, an array of property ids.

use serde_json::Value;

use super::Call;
use crate::answer::{Answer, ApiError};
use crate::body;
use crate::hub::Hub;
use crate::model::{Misfit, Property, check_properties, check_properties_form};

pub(super) fn change(call: &Call<'_>) -> Result<Answer, ApiError> {
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

/// Reads an array of properties, which has this name in the request, and which are added to these of a data model. Relations are to these
/// data models. Those without an id get one, and those without an order come last.
pub(super) fn added(
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
