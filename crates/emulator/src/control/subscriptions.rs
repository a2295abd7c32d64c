//! `subscriptions`: the webhooks tab of the service's settings.

use serde_json::{Map, Value, json};

use super::Call;
use crate::answer::{Answer, ApiError};
use crate::body;
use crate::deliver::{EXAMPLE, Subscription};
use crate::events::EVENT_TYPES;

pub(super) async fn list(call: Call) -> Result<Answer, ApiError> {
    let shown = call.hub.deliveries.subscriptions();
    let shown: Vec<Value> = shown.iter().map(Subscription::shown).collect();
    Ok(Answer::data(&shown))
}

pub(super) async fn create(call: Call) -> Result<Answer, ApiError> {
    let fields = body::object(&call.body)?;
    check(&call, &fields, true)?;
    let made = call.hub.deliveries.create(&Value::Object(fields));
    let made = made.map_err(ApiError::validation)?;
    let mut shown = made.shown();
    shown["secret"] = json!(made.secret);
    Ok(Answer::data(&shown))
}

pub(super) async fn change(call: Call) -> Result<Answer, ApiError> {
    let patch = body::object(&call.body)?;
    check(&call, &patch, false)?;
    let changed = call
        .hub
        .deliveries
        .change(call.id(0), &Value::Object(patch));
    let changed = changed.ok_or_else(|| ApiError::not_found("subscription", call.id(0)))?;
    let changed = changed.map_err(ApiError::validation)?;
    Ok(Answer::data(&changed.shown()))
}

pub(super) async fn delete(call: Call) -> Result<Answer, ApiError> {
    if call.hub.deliveries.remove(call.id(0)) {
        return Ok(Answer::deleted(call.id(0)));
    }
    Err(ApiError::not_found("subscription", call.id(0)))
}

/// Checks what a seed may leave out: the service's settings have a URL and events, and offer the
/// data models that exist.
fn check(call: &Call, fields: &Map<String, Value>, is_new: bool) -> Result<(), ApiError> {
    let url = format!("one such as {EXAMPLE}");
    let events = format!("at least one of {}", EVENT_TYPES.join(", "));
    for (name, expected) in [("url", url), ("events", events)] {
        let is_given = match fields.get(name) {
            None => !is_new,
            Some(Value::Null) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Array(items)) => !items.is_empty(),
            Some(_) => true,
        };
        if !is_given {
            let message = format!("`{name}` is missing, expected {expected}");
            return Err(ApiError::validation(message));
        }
    }
    match body::optional_text(fields, "dataModelId")? {
        Some(id) if call.hub.state().model(&id).is_none() => {
            let message = format!(
                "`dataModelId` is {id:?}, expected the id of a data model, or null for all"
            );
            Err(ApiError::validation(message))
        }
        _ => Ok(()),
    }
}
