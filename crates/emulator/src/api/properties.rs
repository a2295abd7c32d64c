//! `PATCH /datamodels/<data_model_id>/properties`: the specification says *add/remove properties*, and shows no payload. Taken are
//! `add`, an array of properties, and `remove`, an array of property ids.

use serde_json::Value;

use super::call::Call;
use crate::answer::{Answer, ApiError};
use crate::body;
use crate::hub::Hub;
use crate::model::{Property, check_properties};

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
    let last = kept.iter().filter_map(|property| property.order).max();
    for property in parse(hub, &models, add, last.unwrap_or_default())? {
        if kept.iter().any(|other| other.id == property.id) {
            let message = format!("property `{}` exists", property.id);
            return Err(ApiError::conflict(message));
        }
        kept.push(property);
    }
    refuse_wrong(&kept)?;
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

/// Reads an array of properties, whose relations are to these data models. Those without an id get one, and those without an order come last.
pub(super) fn parse(
    hub: &Hub,
    models: &[String],
    value: Value,
    last: i64,
) -> Result<Vec<Property>, ApiError> {
    let Value::Array(items) = value else {
        return Err(ApiError::validation("no array of properties"));
    };
    let read = |(at, item): (usize, Value)| {
        let name = item.get("name").and_then(Value::as_str);
        let which = name.map_or_else(
            || format!("property {at}"),
            |name| format!("property `{name}`"),
        );
        let property = serde_json::from_value::<Property>(item);
        property.map_err(|error| ApiError::validation(format!("{which}: {}", body::told(&error))))
    };
    let properties: Result<Vec<_>, _> = items.into_iter().enumerate().map(read).collect();
    let mut properties = properties?;
    let mut order = last;
    for at in 0..properties.len() {
        let property = &mut properties[at];
        order = order.saturating_add(1);
        let target = property.relation_config.as_ref();
        let target = target.map(|target| &target.target_data_model_id);
        if let Some(target) = target.filter(|target| !models.contains(target)) {
            let message = format!(
                "property {:?}: `relationConfig` names the data model {target:?}, which does not exist",
                property.name
            );
            return Err(ApiError::validation(message));
        }
        property.order.get_or_insert(order);
        if property.id.is_empty() {
            property.id = hub.ids.make("prop_");
        }
        let (before, rest) = properties.split_at(at);
        if before.iter().any(|other| other.id == rest[0].id) {
            let message = format!("property `{}` is there twice", rest[0].id);
            return Err(ApiError::validation(message));
        }
    }
    Ok(properties)
}

/// # Errors
/// 400: a property that can't be, by its name.
pub(super) fn refuse_wrong(properties: &[Property]) -> Result<(), ApiError> {
    check_properties(properties).map_err(|(at, field, message)| {
        let name = &properties[at].name;
        ApiError::validation(format!("property {name:?}: `{field}` is {message}"))
    })
}
