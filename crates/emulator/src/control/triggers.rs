//! `triggers`: the inbound triggers of workflows.

use serde_json::Value;

use super::Call;
use crate::answer::{Answer, ApiError};
use crate::body;
use crate::trigger::Trigger;

pub(super) async fn list(call: Call) -> Result<Answer, ApiError> {
    let triggers = call.hub.triggers.list();
    let shown: Vec<Trigger> = triggers.iter().map(Trigger::shown).collect();
    Ok(Answer::data(&shown))
}

pub(super) async fn create(call: Call) -> Result<Answer, ApiError> {
    let trigger = Value::Object(body::object(&call.body)?);
    let trigger: Trigger = serde_json::from_value(trigger)
        .map_err(|error| ApiError::validation(body::told(&error)))?;
    let shown = trigger.shown();
    let added = call.hub.triggers.add(trigger);
    added.map_err(ApiError::validation)?;
    told(&call, &shown)
}

pub(super) async fn change(call: Call) -> Result<Answer, ApiError> {
    let patch = body::object(&call.body)?;
    let method = call.query.text("method");
    let changed = call.hub.triggers.change(call.id(0), method, &patch);
    let changed = changed.ok_or_else(|| missing(&call))?;
    told(&call, &changed.map_err(ApiError::validation)?.shown())
}

pub(super) async fn delete(call: Call) -> Result<Answer, ApiError> {
    if !call.hub.triggers.remove(call.id(0)) {
        return Err(missing(&call));
    }
    call.hub.live.tell("triggers", ());
    Ok(Answer::deleted(call.id(0)))
}

pub(super) async fn calls(call: Call) -> Result<Answer, ApiError> {
    Ok(Answer::data(&call.hub.triggers.calls()))
}

fn told(call: &Call, shown: &Trigger) -> Result<Answer, ApiError> {
    call.hub.live.tell("triggers", ());
    Ok(Answer::data(shown))
}

fn missing(call: &Call) -> ApiError {
    ApiError::not_found("trigger of workflow", call.id(0))
}
