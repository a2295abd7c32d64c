//! `subscriptions`: the webhooks tab of the service's settings.

use serde_json::{Value, json};

use super::Call;
use crate::answer::{Answer, ApiError};
use crate::body;
use crate::deliver::Subscription;

pub(super) async fn list(call: Call) -> Result<Answer, ApiError> {
    let shown = call.hub.deliveries.subscriptions();
    let shown: Vec<Value> = shown.iter().map(Subscription::shown).collect();
    Ok(Answer::data(&shown))
}

pub(super) async fn create(call: Call) -> Result<Answer, ApiError> {
    let body = Value::Object(body::object(&call.body)?);
    let made = call.hub.deliveries.create(&body);
    let made = made.map_err(ApiError::validation)?;
    let mut shown = made.shown();
    shown["secret"] = json!(made.secret);
    Ok(Answer::data(&shown))
}

pub(super) async fn change(call: Call) -> Result<Answer, ApiError> {
    let patch = Value::Object(body::object(&call.body)?);
    let changed = call.hub.deliveries.change(call.id(0), &patch);
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
